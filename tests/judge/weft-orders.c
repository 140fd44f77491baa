// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Programs that rely on an order which no specification promises, and their right twins:
 *
 *     weft-orders ADDR CASE wrong|right
 *
 * A wrong one works by the usual order, and fails by some seeds of weft-run --adverse; a right one
 * by none. QPs are connected to themselves. Nothing here knows weft.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../progs/byhand/byhand.h"

#define PATIENCE_MS	20000
#define ROUNDS		12
#define LONG		400000		/* octets of several FPDUs */
#define QUESTIONS	100
#define DATA		4000		/* octets of a message; in the second half of the buffer */

static struct hand_device dev;
static struct hand_end ends[2];
static struct hand_name names[2];
static bool wrong;

/* ---- two QPs, of one CQ ---- */

static void begin(struct ibv_comp_channel *channel)
{
	struct ibv_cq *cq = ibv_create_cq(dev.ctx, 64, NULL, channel, 0);
	int i;

	if (!cq)
		hand_fail("no CQ: %s", strerror(errno));
	for (i = 0; i < 2; i++) {
		hand_make(&ends[i], &dev, &hand_usual, cq);
		hand_tell(&ends[i], &names[i]);
		hand_ready(&ends[i], &names[i]);
	}
}

static void end(void)
{
	struct ibv_cq *cq = ends[0].cq;
	int i;

	for (i = 0; i < 2; i++)
		hand_unmake(&ends[i]);
	if (ibv_destroy_cq(cq))
		hand_fail("the CQ cannot be destroyed");
	hand_close(&dev);
}

static struct ibv_wc next(void)
{
	struct ibv_wc wc;

	if (!hand_poll(ends[0].cq, &wc, PATIENCE_MS))
		hand_fail("nothing completes");
	if (wc.status != IBV_WC_SUCCESS)
		hand_fail("%lu came with %s", (unsigned long)wc.wr_id, ibv_wc_status_str(wc.status));
	return wc;
}

static uint8_t *source(struct hand_end *e) { return e->buf; }
static uint8_t *sink(struct hand_end *e) { return e->buf + HAND_BUF; }

/* By QP @qp: @len octets from the first half of @to's buffer to the second. */
static void write_to(struct hand_end *qp, struct hand_end *to, const struct hand_name *at,
		     uint32_t len, enum ibv_wr_opcode op)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)source(to), .length = len, .lkey = to->mr->lkey,
	};
	struct ibv_send_wr *bad, wr = {
		.wr_id = 1, .opcode = op, .sg_list = &sge, .num_sge = 1, .imm_data = 1,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)sink(to), at->rkey },
	};

	if (ibv_post_send(qp->qp, &wr, &bad))
		hand_fail("ibv_post_send: %s", strerror(errno));
}

static void await_octet(const volatile uint8_t *at, uint8_t value)
{
	const long until = hand_now_ms() + PATIENCE_MS;

	while (__atomic_load_n(at, __ATOMIC_ACQUIRE) != value)
		if (hand_now_ms() > until)
			hand_fail("an octet does not come");
}

static void await_event(struct ibv_comp_channel *channel)
{
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(channel, &cq, &context))
		hand_fail("ibv_get_cq_event");
	ibv_ack_cq_events(cq, 1);
}

/* ---- orders ---- */

/* ofiwg/libfabric#655: the last octet of a Write is there; are the others? */
static void last_octet_of_a_write(void)
{
	int i;

	begin(NULL);
	for (i = 1; i <= ROUNDS; i++) {
		memset(source(&ends[0]), i, DATA);
		hand_recv(&ends[0], 2);
		write_to(&ends[0], &ends[0], &names[0], DATA, wrong ? IBV_WR_RDMA_WRITE :
							       IBV_WR_RDMA_WRITE_WITH_IMM);
		if (wrong)
			await_octet(sink(&ends[0]) + DATA - 1, i);
		else
			next();
		if (!wrong)
			next();
		if (sink(&ends[0])[0] != i || sink(&ends[0])[DATA / 2] != i)
			hand_fail("round %d: the flag came before the data", i);
		if (wrong)
			next();
	}
	end();
}

/* flagos-ai/FlagCX#461: data by one QP, and the message that announces it by another. */
static void data_and_flag_on_two_qps(void)
{
	struct ibv_wc wc;
	int i, k;

	begin(NULL);
	for (i = 1; i <= ROUNDS; i++) {
		memset(source(&ends[0]), i, DATA);
		hand_recv(&ends[1], 2);
		write_to(&ends[0], &ends[0], &names[0], DATA, IBV_WR_RDMA_WRITE);
		if (!wrong)
			next();
		hand_send(&ends[1], 3, 8);
		for (k = 0; k < 2 + wrong; k++) {
			wc = next();
			if (wc.opcode == IBV_WC_RECV && sink(&ends[0])[0] != i)
				hand_fail("round %d: the message came before the data", i);
		}
	}
	end();
}

/* Completions of two QPs, of which one was posted first. */
static void completions_of_two_qps(void)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(dev.ctx);
	struct ibv_wc wc;
	int i;

	begin(channel);
	for (i = 0; i < ROUNDS; i++) {
		if (ibv_req_notify_cq(ends[0].cq, 0))
			hand_fail("ibv_req_notify_cq");
		write_to(&ends[0], &ends[0], &names[0], 64, IBV_WR_RDMA_WRITE);
		await_event(channel);
		if (!wrong)
			next();
		write_to(&ends[1], &ends[1], &names[1], 64, IBV_WR_RDMA_WRITE);
		wc = next();
		if (wrong && wc.qp_num != ends[0].qp->qp_num)
			hand_fail("round %d: the later completion came first", i);
		if (wrong)
			next();
	}
	end();
	ibv_destroy_comp_channel(channel);
}

/* An event says that there may be a completion. */
static void event_without_completion(void)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(dev.ctx);
	struct ibv_wc wc;
	int i, n;

	begin(channel);
	for (i = 0; i < ROUNDS; i++) {
		if (ibv_req_notify_cq(ends[0].cq, 0))
			hand_fail("ibv_req_notify_cq");
		write_to(&ends[0], &ends[0], &names[0], 64, IBV_WR_RDMA_WRITE);
		do {
			await_event(channel);
			if (ibv_req_notify_cq(ends[0].cq, 0))
				hand_fail("ibv_req_notify_cq");
			n = ibv_poll_cq(ends[0].cq, 1, &wc);
			if (!n && wrong)
				hand_fail("round %d: an event, and no completion", i);
		} while (!n);
	}
	end();
	ibv_destroy_comp_channel(channel);
}

/* The same of one that is longer than any FPDU. */
static void last_octet_of_a_long_write(void)
{
	uint8_t *long_buf = malloc(2 * LONG);
	struct ibv_mr *mr;
	int i;

	begin(NULL);
	mr = ibv_reg_mr(dev.pd, long_buf, 2 * LONG,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!mr)
		hand_fail("ibv_reg_mr: %s", strerror(errno));
	memset(long_buf, 0, 2 * LONG);
	for (i = 1; i <= ROUNDS; i++) {
		struct ibv_sge sge = { (uintptr_t)long_buf, LONG, mr->lkey };
		struct ibv_send_wr *bad, wr = {
			.opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = { (uintptr_t)long_buf + LONG, mr->rkey },
		};

		memset(long_buf, i, LONG);
		if (ibv_post_send(ends[i % 2].qp, &wr, &bad))
			hand_fail("ibv_post_send: %s", strerror(errno));
		if (wrong)
			await_octet(long_buf + 2 * LONG - 1, i);
		else
			next();
		if (long_buf[LONG] != i)
			hand_fail("round %d: the last octet came before the first", i);
		if (wrong)
			next();
	}
	if (ibv_dereg_mr(mr))
		hand_fail("ibv_dereg_mr");
	free(long_buf);
	end();
}

/* An answer does not give back the place of its question: a completion that was polled does. */
static void send_queue_not_polled(void)
{
	struct ibv_cq *cqs[2] = { ibv_create_cq(dev.ctx, QUESTIONS, NULL, NULL, 0),
				  ibv_create_cq(dev.ctx, QUESTIONS, NULL, NULL, 0) };
	struct ibv_qp_init_attr attr = {
		.send_cq = cqs[0], .recv_cq = cqs[1], .qp_type = IBV_QPT_RC, .sq_sig_all = 1,
		.cap = { 16, 16, 1, 1, 0 },
	};
	struct hand_end *e = &ends[0];
	struct ibv_wc wc;
	int i;

	*e = (struct hand_end){ .dev = &dev, .set = hand_usual };
	e->qp = cqs[0] && cqs[1] ? ibv_create_qp(dev.pd, &attr) : NULL;
	e->mr = ibv_reg_mr(dev.pd, e->buf, sizeof(e->buf), IBV_ACCESS_LOCAL_WRITE);
	if (!e->qp || !e->mr)
		hand_fail("no QP: %s", strerror(errno));
	hand_tell(e, &names[0]);
	hand_ready(e, &names[0]);
	for (i = 1; i <= QUESTIONS; i++) {
		struct ibv_sge sge = { (uintptr_t)e->buf, 8, e->mr->lkey };
		struct ibv_send_wr *bad, wr = {
			.opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1,
		};

		hand_recv(e, 2);
		if (ibv_post_send(e->qp, &wr, &bad))
			hand_fail("round %d: the send queue is full", i);
		if (!hand_poll(cqs[1], &wc, PATIENCE_MS) || wc.status != IBV_WC_SUCCESS)
			hand_fail("no answer");
		if (!wrong && (!hand_poll(cqs[0], &wc, PATIENCE_MS) || wc.status != IBV_WC_SUCCESS))
			hand_fail("nothing completes");
	}
	if (ibv_destroy_qp(e->qp) || ibv_dereg_mr(e->mr) || ibv_destroy_cq(cqs[0]) ||
	    ibv_destroy_cq(cqs[1]))
		hand_fail("something cannot be destroyed");
	hand_close(&dev);
}

static const struct hand_twin cases[] = {
	{ "last-octet-of-a-write", last_octet_of_a_write },
	{ "data-and-flag-on-two-qps", data_and_flag_on_two_qps },
	{ "completions-of-two-qps", completions_of_two_qps },
	{ "event-without-completion", event_without_completion },
	{ "last-octet-of-a-long-write", last_octet_of_a_long_write },
	{ "send-queue-not-polled", send_queue_not_polled },
};

int main(int argc, char **argv)
{
	const struct hand_twin *c = hand_find_twin(argc, argv, cases, sizeof(cases) / sizeof(cases[0]), &wrong);

	hand_open(&dev, argv[1]);
	c->run();
	return 0;
}
