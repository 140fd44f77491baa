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
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

#include "../progs/byhand/byhand.h"

#define PATIENCE_MS 20000

static struct hand_device dev;
/* Its pages are not in a child after ibv_fork_init(): nothing else that one needs is there. */
static struct hand_end e __attribute__((aligned(4096)));
static struct hand_name name;
static struct ibv_comp_channel *channel;
static struct ibv_cq *send_cq;		/* NULL: e.cq, as for receives */
static struct ibv_cq *idle_cq;		/* of the channel, before e.cq */
static const char *own_addr;
static bool wrong;

/* What a case wants to be different. */
struct shape {
	int cqe;
	uint32_t send_wr;
	bool has_channel, has_send_cq, has_idle_cq, signals_all, gid_0;
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
	if (s.has_idle_cq)
		idle_cq = ibv_create_cq(dev.ctx, s.cqe, NULL, channel, 0);
	e.cq = ibv_create_cq(dev.ctx, s.cqe, NULL, channel, 0);
	if (s.has_send_cq)
		send_cq = ibv_create_cq(dev.ctx, s.cqe, NULL, NULL, 0);
	attr.send_cq = send_cq ? send_cq : e.cq;
	attr.recv_cq = e.cq;
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
	    (send_cq && ibv_destroy_cq(send_cq)) || (idle_cq && ibv_destroy_cq(idle_cq)) ||
	    (channel && ibv_destroy_comp_channel(channel)))
		hand_fail("something cannot be destroyed");
	hand_close(&dev);
}

/* Reports name a function that is not inlined by its own name. */
#define APART __attribute__((noinline))

static APART struct ibv_wc next_of(struct ibv_cq *cq, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	if (!hand_poll(cq, &wc, PATIENCE_MS))
		hand_fail("nothing completes");
	if (wc.status != status)
		hand_fail("%lu came with %s", (unsigned long)wc.wr_id, ibv_wc_status_str(wc.status));
	return wc;
}

static APART struct ibv_wc next(enum ibv_wc_status status)
{
	return next_of(e.cq, status);
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

static void receive_by(void *buf, uint32_t len, uint32_t lkey)
{
	struct ibv_sge sge = { .addr = (uintptr_t)buf, .length = len, .lkey = lkey };
	struct ibv_recv_wr *bad, wr = { .wr_id = 9, .sg_list = &sge, .num_sge = 1 };

	if (ibv_post_recv(e.qp, &wr, &bad))
		hand_fail("ibv_post_recv");
}

static void receive_to(void *buf, uint32_t len)
{
	receive_by(buf, len, e.mr->lkey);
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

/* Another context of the same file, which has the same objects. */
static void imported_context(void)
{
	struct ibv_context *other = ibv_import_device(dup(dev.ctx->cmd_fd));

	if (!other)
		hand_fail("ibv_import_device: %s", strerror(errno));
	begin();
	if (ibv_close_device(other))
		hand_fail("ibv_close_device");
	if (!wrong)
		end();
	else
		ibv_close_device(dev.ctx);
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

/* The region's structure is the provider's: without a judge this may do anything. */
static void destroyed_twice(void)
{
	struct ibv_mr *mr = ibv_reg_mr(dev.pd, e.buf, 64, IBV_ACCESS_LOCAL_WRITE);

	ibv_dereg_mr(mr);
	if (wrong)
		ibv_dereg_mr(mr);
	hand_close(&dev);
}

static void posted_after_destroy(void)
{
	struct ibv_recv_wr *bad, wr = { .wr_id = 1 };
	struct ibv_qp *qp;

	begin();
	qp = e.qp;
	if (!wrong && ibv_post_recv(qp, &wr, &bad))
		hand_fail("ibv_post_recv");
	ibv_destroy_qp(qp);
	if (wrong && !ibv_post_recv(qp, &wr, &bad))
		hand_fail("a QP that is gone takes a receive");
	ibv_dereg_mr(e.mr);
	ibv_destroy_cq(e.cq);
	hand_close(&dev);
}

static void channel_in_use(void)
{
	struct rdma_event_channel *ids = rdma_create_event_channel();
	struct rdma_cm_id *id;

	if (!ids || rdma_create_id(ids, &id, NULL, RDMA_PS_TCP))
		hand_fail("no id");
	if (!wrong)
		rdma_destroy_id(id);
	rdma_destroy_event_channel(ids);
	hand_close(&dev);
}

static void cm_event_not_acknowledged(void)
{
	struct rdma_event_channel *ids = rdma_create_event_channel();
	struct addrinfo *to;
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	if (getaddrinfo(own_addr, "7471", NULL, &to) || !ids ||
	    rdma_create_id(ids, &id, NULL, RDMA_PS_TCP) ||
	    rdma_resolve_addr(id, NULL, to->ai_addr, 2000) || rdma_get_cm_event(ids, &event))
		hand_fail("no event");
	if (!wrong)
		rdma_ack_cm_event(event);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(ids);
	freeaddrinfo(to);
	hand_close(&dev);
}

static void fork_unprepared(void)
{
	int status;
	pid_t pid;

	begin();
	pid = fork();
	if (!pid)
		_exit(0);
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		hand_fail("fork");
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

/* By one call: the second is under way before the first can be placed. */
static void send_both(void *first, void *second)
{
	struct ibv_sge sges[2] = {
		{ .addr = (uintptr_t)first, .length = 64, .lkey = e.mr->lkey },
		{ .addr = (uintptr_t)second, .length = 64, .lkey = e.mr->lkey },
	};
	struct ibv_send_wr *bad, wrs[2] = {
		{ .next = &wrs[1], .opcode = IBV_WR_SEND, .sg_list = &sges[0], .num_sge = 1 },
		{ .opcode = IBV_WR_SEND, .sg_list = &sges[1], .num_sge = 1 },
	};

	if (ibv_post_send(e.qp, wrs, &bad))
		hand_fail("ibv_post_send");
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
	send_both(e.buf + 64, e.buf);
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

static void freed_under_way(void)
{
	void *buf = malloc(256);
	struct ibv_mr *mr;

	begin();
	mr = ibv_reg_mr(dev.pd, buf, 256, IBV_ACCESS_LOCAL_WRITE);
	receive_by(buf, 256, mr->lkey);
	if (wrong)
		free(buf);
	hand_to(&e, IBV_QPS_ERR);
	next(IBV_WC_WR_FLUSH_ERR);
	ibv_dereg_mr(mr);
	if (!wrong)
		free(buf);
	end();
}

#define PAGE 4096

static uint8_t *new_pages(size_t n)
{
	void *p = mmap(NULL, n * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		hand_fail("mmap: %s", strerror(errno));
	return p;
}

/* Whole pages; what lies beside them is the program's. */
static void touched_under_way(void)
{
	volatile uint8_t *pages = new_pages(4);
	struct ibv_mr *mr = ibv_reg_mr(dev.pd, (void *)pages, 4 * PAGE, IBV_ACCESS_LOCAL_WRITE);
	int i;

	begin();
	receive_by((void *)(pages + 2 * PAGE), PAGE, mr->lkey);
	send_from((void *)pages, PAGE, mr->lkey, 0);
	pages[PAGE] = pages[0];
	pages[3 * PAGE] = 1;
	if (wrong)
		pages[100]++;
	for (i = 0; i < 2; i++)
		next(IBV_WC_SUCCESS);
	pages[100]++;
	printf("%u\n", pages[2 * PAGE + 100]);
	ibv_dereg_mr(mr);
	end();
}

/* Waits for a message by looking at its memory. */
static void read_before_completion(void)
{
	volatile uint8_t *pages = new_pages(1);
	struct ibv_mr *mr = ibv_reg_mr(dev.pd, (void *)pages, PAGE, IBV_ACCESS_LOCAL_WRITE);
	int i;

	begin();
	e.buf[PAGE - 1] = 1;
	receive_by((void *)pages, PAGE, mr->lkey);
	send_from(e.buf, PAGE, e.mr->lkey, 0);
	while (wrong && !pages[PAGE - 1])
		;
	for (i = 0; i < 2; i++)
		next(IBV_WC_SUCCESS);
	if (!pages[PAGE - 1])
		hand_fail("nothing was received");
	ibv_dereg_mr(mr);
	end();
}

static void foreign_domain(void)
{
	struct ibv_pd *other;
	struct ibv_mr *mr;

	begin();
	other = ibv_alloc_pd(dev.ctx);
	mr = ibv_reg_mr(wrong ? other : dev.pd, e.buf, 64, IBV_ACCESS_LOCAL_WRITE);
	receive_by(e.buf, 64, mr->lkey);
	hand_to(&e, IBV_QPS_ERR);
	next(IBV_WC_WR_FLUSH_ERR);
	ibv_dereg_mr(mr);
	ibv_dealloc_pd(other);
	end();
}

/* A region whose addresses are not those of its memory: @iova is that of the first octet. */
static struct ibv_mr *register_elsewhere(void *buf, size_t len, uint64_t *iova)
{
	struct ibv_mr *mr;

	*iova = 0x10000 + ((uintptr_t)buf & 0xfff);
	mr = ibv_reg_mr_iova(dev.pd, buf, len, *iova, IBV_ACCESS_LOCAL_WRITE);
	if (!mr)
		hand_fail("ibv_reg_mr_iova: %s", strerror(errno));
	return mr;
}

static void outside_region(void)
{
	struct ibv_mr *mr;
	uint64_t iova;

	begin();
	mr = register_elsewhere(e.buf + 64, 64, &iova);
	receive_by((void *)(uintptr_t)(iova + 32), wrong ? 33 : 32, mr->lkey);
	hand_to(&e, IBV_QPS_ERR);
	next(IBV_WC_WR_FLUSH_ERR);
	ibv_dereg_mr(mr);
	end();
}

static void no_local_write(void)
{
	struct ibv_mr *mr;

	begin();
	mr = ibv_reg_mr(dev.pd, e.buf, 64, wrong ? 0 : IBV_ACCESS_LOCAL_WRITE);
	receive_by(e.buf, 64, mr->lkey);
	hand_to(&e, IBV_QPS_ERR);
	next(IBV_WC_WR_FLUSH_ERR);
	ibv_dereg_mr(mr);
	end();
}

static void changed_by_iova(void)
{
	struct ibv_mr *mr;
	uint64_t iova;
	int i;

	begin();
	mr = register_elsewhere(e.buf, 64, &iova);
	receive_to(e.buf + HAND_BUF, 64);
	send_from((void *)(uintptr_t)iova, 64, mr->lkey, 0);
	e.buf[wrong ? 3 : 64]++;
	for (i = 0; i < 2; i++)
		next(IBV_WC_SUCCESS);
	ibv_dereg_mr(mr);
	end();
}

/* ---- datagrams ---- */

static struct ibv_ah *begin_datagrams(void)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD, .cap = { 16, 16, 1, 1, 0 } };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 1 };
	struct ibv_ah_attr to = {
		.is_global = 1, .port_num = 1,
		.grh = { .dgid = dev.gid, .sgid_index = dev.gid_index, .hop_limit = 1 },
	};
	int err;

	e.cq = init.recv_cq = ibv_create_cq(dev.ctx, 16, NULL, NULL, 0);
	send_cq = init.send_cq = ibv_create_cq(dev.ctx, 16, NULL, NULL, 0);
	e.qp = ibv_create_qp(dev.pd, &init);
	e.mr = ibv_reg_mr(dev.pd, e.buf, sizeof(e.buf), IBV_ACCESS_LOCAL_WRITE);
	err = ibv_modify_qp(e.qp, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
	attr.qp_state = IBV_QPS_RTR;
	err = err ? err : ibv_modify_qp(e.qp, &attr, IBV_QP_STATE);
	attr.qp_state = IBV_QPS_RTS;
	err = err ? err : ibv_modify_qp(e.qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
	if (err)
		hand_fail("no UD: %s", strerror(err));
	return ibv_create_ah(dev.pd, &to);
}

static void send_datagram(struct ibv_ah *ah)
{
	struct ibv_sge sge = { .addr = (uintptr_t)e.buf, .length = 64, .lkey = e.mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = 7, .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.ud = { .ah = ah, .remote_qpn = e.qp->qp_num, .remote_qkey = 1 },
	};

	if (ibv_post_send(e.qp, &wr, &bad))
		hand_fail("ibv_post_send");
}

/* What is received may say that the datagram has left: from then on the buffer may be used. */
static void datagram_changed(void)
{
	struct ibv_ah *ah = begin_datagrams();

	receive_to(e.buf + HAND_BUF, 256);
	send_datagram(ah);
	if (wrong)
		e.buf[3]++;
	next(IBV_WC_SUCCESS);
	e.buf[3]++;
	next_of(send_cq, IBV_WC_SUCCESS);
	ibv_destroy_ah(ah);
	end();
}

/* ---- */

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

static void read_own(void)
{
	struct ibv_sge sge = { .addr = (uintptr_t)e.buf, .length = 8, .lkey = e.mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = 1, .opcode = IBV_WR_RDMA_READ, .sg_list = &sge, .num_sge = 1,
		.wr.rdma = { name.addr, name.rkey },
	};

	if (ibv_post_send(e.qp, &wr, &bad))
		hand_fail("ibv_post_send");
}

/* A Read is answered after the Send before it was received: that has completed then. */
static void lost_wake_up_with(bool has_idle_cq)
{
	struct shape s = usual;

	s.has_channel = s.has_send_cq = true;
	s.has_idle_cq = has_idle_cq;
	begin_with(s);
	receive_to(e.buf, 64);
	send_from(e.buf + HAND_BUF, 64, e.mr->lkey, 0);
	read_own();
	next_of(send_cq, IBV_WC_SUCCESS);
	next_of(send_cq, IBV_WC_SUCCESS);
	if (!wrong)
		next(IBV_WC_SUCCESS);
	ibv_req_notify_cq(e.cq, 0);
	if (!wrong) {
		receive_to(e.buf, 64);
		send_from(e.buf + HAND_BUF, 64, e.mr->lkey, 0);
	}
	wait_for_event(true);
	end();
}

static void lost_wake_up(void)
{
	lost_wake_up_with(false);
}

static void lost_wake_up_of_second_cq(void)
{
	lost_wake_up_with(true);
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

static const struct hand_twin cases[] = {
	{ "left-at-close", left_at_close },
	{ "left-at-exit", left_at_exit },
	{ "imported-context", imported_context },
	{ "destroyed-twice", destroyed_twice },
	{ "posted-after-destroy", posted_after_destroy },
	{ "channel-in-use", channel_in_use },
	{ "cm-event-not-acknowledged", cm_event_not_acknowledged },
	{ "fork-unprepared", fork_unprepared },
	{ "freed-under-way", freed_under_way },
	{ "touched-under-way", touched_under_way },
	{ "read-before-completion", read_before_completion },
	{ "foreign-domain", foreign_domain },
	{ "outside-region", outside_region },
	{ "no-local-write", no_local_write },
	{ "changed-by-iova", changed_by_iova },
	{ "datagram-changed", datagram_changed },
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
	{ "lost-wake-up-of-second-cq", lost_wake_up_of_second_cq },
	{ "field-after-error", field_after_error },
	{ "opcode-of-an-error", opcode_of_an_error },
	{ "read-sink", read_sink },
	{ "gid-index-0", gid_index_0 },
};

int main(int argc, char **argv)
{
	const struct hand_twin *c = hand_find_twin(argc, argv, cases, sizeof(cases) / sizeof(cases[0]), &wrong);

	own_addr = argv[1];
	if (c->run == fork_unprepared && !wrong && ibv_fork_init())
		hand_fail("ibv_fork_init");
	hand_open(&dev, own_addr);
	c->run();
	return 0;
}
