// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A wrong program for each rule of weft-run --judge, and its right twin:
 *
 *     weft-judged ADDR RULE wrong|right
 *
 * The QP is connected to itself, over the device that has the GID of ADDR. "wrong" breaks the rule
 * in the one statement that asks for it. Nothing here knows weft.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../progs/byhand/byhand.h"

#define PATIENCE_MS 20000

static struct hand_device dev;
static struct hand_end e;
static struct hand_name name;
static struct ibv_comp_channel *channel;
static bool wrong;

/* What a case wants to be different. */
struct shape {
	int cqe;
	uint32_t send_wr;
	bool has_channel, signals_all, gid_0;
	int access;
};

static const struct shape usual = {
	.cqe = 64, .send_wr = 16, .signals_all = true,
	.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
};

static void begin_with(struct shape s)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC, .sq_sig_all = s.signals_all,
		.cap = { s.send_wr, 16, 1, 1, 64 },
	};

	e.dev = &dev;
	e.set = hand_usual;
	if (s.has_channel)
		channel = ibv_create_comp_channel(dev.ctx);
	e.cq = ibv_create_cq(dev.ctx, s.cqe, NULL, channel, 0);
	attr.send_cq = attr.recv_cq = e.cq;
	e.qp = e.cq ? ibv_create_qp(dev.pd, &attr) : NULL;
	e.mr = ibv_reg_mr(dev.pd, e.buf, sizeof(e.buf), s.access);
	if (!e.qp || !e.mr)
		hand_fail("no QP: %s", strerror(errno));
	if (s.gid_0)
		dev.gid_index = 0;
	hand_tell(&e, &name);
	hand_ready(&e, &name);
}

static void begin(void)
{
	begin_with(usual);
}

static void end(void)
{
	if (ibv_destroy_qp(e.qp) || (e.mr && ibv_dereg_mr(e.mr)) || ibv_destroy_cq(e.cq) ||
	    (channel && ibv_destroy_comp_channel(channel)))
		hand_fail("something cannot be destroyed");
	hand_close(&dev);
}

static struct ibv_wc next(enum ibv_wc_status status)
{
	struct ibv_wc wc;

	if (!hand_poll(e.cq, &wc, PATIENCE_MS))
		hand_fail("nothing completes");
	if (wc.status != status)
		hand_fail("%lu came with %s", (unsigned long)wc.wr_id, ibv_wc_status_str(wc.status));
	return wc;
}

/* A Send of @len octets at @buf; the flags are those of verbs. */
static void send_from(void *buf, uint32_t len, uint32_t lkey, unsigned int flags)
{
	struct ibv_sge sge = { .addr = (uintptr_t)buf, .length = len, .lkey = lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = 7, .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1,
		.send_flags = flags,
	};

	if (ibv_post_send(e.qp, &wr, &bad))
		hand_fail("ibv_post_send");
}

static void receive_to(void *buf, uint32_t len)
{
	struct ibv_sge sge = { .addr = (uintptr_t)buf, .length = len, .lkey = e.mr->lkey };
	struct ibv_recv_wr *bad, wr = { .wr_id = 9, .sg_list = &sge, .num_sge = 1 };

	if (ibv_post_recv(e.qp, &wr, &bad))
		hand_fail("ibv_post_recv");
}

/* ---- objects ---- */

static void left_at_close(void)
{
	struct ibv_mr *more = ibv_reg_mr(dev.pd, e.buf, 64, IBV_ACCESS_LOCAL_WRITE);

	if (!wrong)
		ibv_dereg_mr(more);
	else
		ibv_close_device(dev.ctx);
	if (!wrong)
		hand_close(&dev);
}

static void left_at_exit(void)
{
	begin();
	if (!wrong)
		end();
}

static void busy_ignored(void)
{
	begin();
	if (wrong) {
		ibv_dealloc_pd(dev.pd);
		ibv_destroy_qp(e.qp);
		ibv_dereg_mr(e.mr);
		ibv_destroy_cq(e.cq);
		return;
	}
	/* It is no fault to try. */
	if (ibv_dealloc_pd(dev.pd) != EBUSY)
		hand_fail("the domain is not busy");
	end();
}

static void wait_for_event(bool acknowledges)
{
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(channel, &cq, &context))
		hand_fail("ibv_get_cq_event");
	if (acknowledges)
		ibv_ack_cq_events(cq, 1);
}

static void event_not_acknowledged(void)
{
	struct shape s = usual;

	s.has_channel = true;
	begin_with(s);
	ibv_req_notify_cq(e.cq, 0);
	hand_recv(&e, 1);
	hand_send(&e, 2, 64);
	wait_for_event(!wrong);
	next(IBV_WC_SUCCESS);
	next(IBV_WC_SUCCESS);
	end();
}

/* ---- memory ---- */

static void changed_under_way(void)
{
	int i;

	begin();
	for (i = 0; i < 2; i++)
		receive_to(e.buf + HAND_BUF + 64 * i, 64);
	send_from(e.buf, 64, e.mr->lkey, 0);
	if (wrong)
		e.buf[3]++;
	next(IBV_WC_SUCCESS);
	next(IBV_WC_SUCCESS);
	e.buf[3]++;
	/* What is inline was copied. */
	send_from(e.buf, 64, e.mr->lkey, IBV_SEND_INLINE);
	e.buf[3]++;
	next(IBV_WC_SUCCESS);
	next(IBV_WC_SUCCESS);
	end();
}

/* The peer, not this program, writes to what is being sent. */
static void written_by_peer(void)
{
	int i;

	begin();
	memset(e.buf, 1, 64);
	memset(e.buf + 64, 2, 64);
	receive_to(e.buf, 64);
	receive_to(e.buf + HAND_BUF, 64);
	send_from(e.buf + 64, 64, e.mr->lkey, 0);
	send_from(e.buf, 64, e.mr->lkey, 0);
	for (i = 0; i < 4; i++)
		next(IBV_WC_SUCCESS);
	end();
}

static void note_child(int signal)
{
	static const char text[] = "a signal\n";

	(void)signal;
	(void)!write(STDOUT_FILENO, text, sizeof(text) - 1);
}

/* What a report needs must not be seen here. */
static void waits_for_children(void)
{
	signal(SIGCHLD, note_child);
	changed_under_way();
	printf("%s\n", waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD ? "no child" : "a child");
}

static void unmapped_under_way(void)
{
	size_t len = 1 << 16;
	void *page = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr;
	struct ibv_wc wc;

	begin();
	mr = ibv_reg_mr(dev.pd, page, len, IBV_ACCESS_LOCAL_WRITE);
	receive_to(e.buf, 64);
	send_from(page, 64, mr->lkey, 0);
	if (wrong) {
		munmap(page, len);
		/* The receive's may come first. */
		if (hand_poll(e.cq, &wc, PATIENCE_MS))
			hand_poll(e.cq, &wc, PATIENCE_MS);
		return;
	}
	next(IBV_WC_SUCCESS);
	next(IBV_WC_SUCCESS);
	munmap(page, len);
	ibv_dereg_mr(mr);
	end();
}

static void deregistered_under_way(void)
{
	begin();
	receive_to(e.buf, 64);
	if (!wrong)
		hand_to(&e, IBV_QPS_ERR);
	ibv_dereg_mr(e.mr);
	e.mr = NULL;
	end();
}

static void receives_overlap(void)
{
	begin();
	receive_to(e.buf, 64);
	receive_to(e.buf + (wrong ? 63 : 64), 64);
	end();
}

/* ---- queues ---- */

static void cq_too_small(void)
{
	struct shape s = usual;
	int i;

	s.cqe = 4;
	begin_with(s);
	for (i = 0; i < e.cq->cqe + wrong; i++)
		receive_to(e.buf + 64 * i, 64);
	end();
}

/* One Write in sixteen is signaled; in the wrong program, one in a hundred. */
static void send_queue_full(void)
{
	struct shape s = usual;
	uint64_t i;

	s.signals_all = false;
	begin_with(s);
	for (i = 1; i <= 32; i++) {
		struct ibv_sge sge = { .addr = (uintptr_t)e.buf, .length = 8, .lkey = e.mr->lkey };
		struct ibv_send_wr *bad, wr = {
			.wr_id = i, .opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1,
			.send_flags = i % (wrong ? 100 : 16) ? 0 : IBV_SEND_SIGNALED,
			.wr.rdma = { name.addr, name.rkey },
		};

		while (ibv_post_send(e.qp, &wr, &bad) == ENOMEM)
			;
		if (wr.send_flags)
			next(IBV_WC_SUCCESS);
	}
	end();
}

static void lost_wake_up(void)
{
	struct shape s = usual;
	struct ibv_wc wc;

	s.has_channel = true;
	begin_with(s);
	receive_to(e.buf, 64);
	send_from(e.buf + HAND_BUF, 64, e.mr->lkey, 0);
	next(IBV_WC_SUCCESS);
	/* The other completion comes before the CQ is armed. */
	while (!wrong && !ibv_poll_cq(e.cq, 1, &wc))
		;
	if (wrong)
		sleep(1);
	ibv_req_notify_cq(e.cq, 0);
	if (!wrong) {
		receive_to(e.buf, 64);
		send_from(e.buf + HAND_BUF, 64, e.mr->lkey, 0);
	}
	wait_for_event(true);
	end();
}

/* ---- completions ---- */

static void field_after_error(void)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 64, .wc_flags = IBV_WC_EX_WITH_BYTE_LEN,
	};
	struct ibv_poll_cq_attr poll = { 0 };
	struct ibv_cq_ex *cq = ibv_create_cq_ex(dev.ctx, &attr);

	if (!cq)
		hand_fail("no CQ");
	hand_make(&e, &dev, &hand_usual, ibv_cq_ex_to_cq(cq));
	hand_tell(&e, &name);
	hand_ready(&e, &name);
	receive_to(e.buf, 64);
	hand_to(&e, IBV_QPS_ERR);
	while (ibv_start_poll(cq, &poll) == ENOENT)
		;
	if (wrong || cq->status == IBV_WC_SUCCESS)
		printf("%u octets\n", ibv_wc_read_byte_len(cq));
	ibv_end_poll(cq);
	hand_unmake(&e);
	ibv_destroy_cq(ibv_cq_ex_to_cq(cq));
	hand_close(&dev);
}

/* Those of a plain completion are overwritten: the wrong program takes it for a Send's. */
static void opcode_of_an_error(void)
{
	struct ibv_wc wc;

	begin();
	receive_to(e.buf, 64);
	hand_to(&e, IBV_QPS_ERR);
	wc = next(IBV_WC_WR_FLUSH_ERR);
	printf("%s\n", wc.opcode == IBV_WC_RECV && !wc.byte_len ? "a receive" : "undefined");
	end();
}

/* ---- portability ---- */

static void read_sink(void)
{
	struct ibv_mr *mr;

	begin();
	mr = ibv_reg_mr(dev.pd, e.buf, HAND_BUF,
			IBV_ACCESS_LOCAL_WRITE | (wrong ? 0 : IBV_ACCESS_REMOTE_WRITE));
	struct ibv_sge sge = { .addr = (uintptr_t)e.buf, .length = 8, .lkey = mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = 1, .opcode = IBV_WR_RDMA_READ, .sg_list = &sge, .num_sge = 1,
		.wr.rdma = { name.addr, name.rkey },
	};

	if (ibv_post_send(e.qp, &wr, &bad))
		hand_fail("ibv_post_send");
	next(IBV_WC_SUCCESS);
	ibv_dereg_mr(mr);
	end();
}

static void gid_index_0(void)
{
	struct shape s = usual;

	s.gid_0 = wrong;
	begin_with(s);
	end();
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "left-at-close", left_at_close },
	{ "left-at-exit", left_at_exit },
	{ "busy-ignored", busy_ignored },
	{ "event-not-acknowledged", event_not_acknowledged },
	{ "changed-under-way", changed_under_way },
	{ "memory-that-a-peer-writes", written_by_peer },
	{ "waits-for-children", waits_for_children },
	{ "unmapped-under-way", unmapped_under_way },
	{ "deregistered-under-way", deregistered_under_way },
	{ "receives-overlap", receives_overlap },
	{ "cq-too-small", cq_too_small },
	{ "send-queue-full", send_queue_full },
	{ "lost-wake-up", lost_wake_up },
	{ "field-after-error", field_after_error },
	{ "opcode-of-an-error", opcode_of_an_error },
	{ "read-sink", read_sink },
	{ "gid-index-0", gid_index_0 },
};

int main(int argc, char **argv)
{
	unsigned int i;

	hand_program = argv[0];
	if (argc != 4)
		hand_fail("usage: ADDR RULE wrong|right");
	wrong = !strcmp(argv[3], "wrong");
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (!strcmp(cases[i].name, argv[2])) {
			hand_open(&dev, argv[1]);
			cases[i].run();
			return 0;
		}
	hand_fail("no such rule");
}
