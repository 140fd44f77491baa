// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The deepest queues, flushed by a peer's error. First each end has all its receives posted when a
 * Write to an unknown region ends the connection. Then one end also has its send queue full of
 * Reads, behind a Send without a receive, until the peer gives that up. All of them are flushed in
 * order. In another test nothing fails: a full queue of Writes behind a Read completes when the
 * Response arrives.
 *
 *   deep-flush ADDR ROUNDS [done]   both ends in this process, over the device that has ADDR; done: the
 *                                   last test alone, for a device that waits long for receives
 */
#include <stdio.h>
#include <stdlib.h>

#include "conn.h"

#define PORT		"7477"
#define DEPTH		16384	/* what a software RNIC may have at most */
#define TIMEOUT_MS	60000
#define WCS		64
#define READS		(1ULL << 32)	/* the first Read's wr_id */

static void post_receives(struct conn *c, uint32_t n)
{
	struct ibv_recv_wr wr = { 0 }, *bad;

	for (wr.wr_id = 0; wr.wr_id < n; wr.wr_id++)
		if (ibv_post_recv(c->id->qp, &wr, &bad))
			fail("receive %u cannot be posted", (unsigned int)wr.wr_id);
}

/* The one that is in place @next; the first Read may say why. */
static void judge(const struct ibv_wc *wc, uint64_t next)
{
	bool why = wc->wr_id == READS && wc->status != IBV_WC_SUCCESS;

	if (wc->wr_id != next || (wc->status != IBV_WC_WR_FLUSH_ERR && !why))
		fail("request %#llx with status %d in place %#llx", (unsigned long long)wc->wr_id,
		     wc->status, (unsigned long long)next);
}

/* What the client sent first comes back before all others, or among them. */
static void take_all(struct conn *c, uint32_t receives, uint32_t reads)
{
	uint64_t next[2] = { 0, READS };
	struct ibv_wc wc[WCS];
	int i, got;

	while (next[0] < receives || next[1] < READS + reads) {
		got = conn_poll(c, wc, WCS, TIMEOUT_MS);
		if (!got)
			fail("%u of %u receives came back, and %u of %u Reads", (uint32_t)next[0],
			     receives, (uint32_t)(next[1] - READS), reads);
		for (i = 0; i < got; i++)
			if (wc[i].wr_id != UINT64_MAX)
				judge(&wc[i], next[wc[i].wr_id >= READS]++);
	}
}

/* No region has it. */
#define NO_RKEY		0x12345601

/* Of one octet, that of @remote, or to or from where nothing is. */
static void post(struct conn *c, enum ibv_wr_opcode opcode, uint64_t wr_id,
		 const struct ibv_mr *remote)
{
	static uint8_t octet;
	struct ibv_mr *mr = c->n_mrs ? c->mrs[0] : conn_reg(c, &octet, 1, IBV_ACCESS_LOCAL_WRITE |
							   IBV_ACCESS_REMOTE_WRITE);
	struct ibv_sge sge = { .addr = (uintptr_t)&octet, .length = 1, .lkey = mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {
			.remote_addr = remote ? (uintptr_t)remote->addr : 0,
			.rkey = remote ? remote->rkey : NO_RKEY,
		},
	}, *bad;

	if (ibv_post_send(c->id->qp, &wr, &bad))
		fail("request %#llx cannot be posted", (unsigned long long)wr_id);
}

static void round_of_receives(struct conn *server, const char *addr)
{
	struct conn client = { .timeout_ms = TIMEOUT_MS, .busy_poll = true };

	conn_pair(&client, server, addr, PORT, DEPTH, 0);
	post_receives(&client, DEPTH);
	post_receives(server, DEPTH);
	post(&client, IBV_WR_RDMA_WRITE, UINT64_MAX, NULL);
	take_all(server, DEPTH, 0);
	take_all(&client, DEPTH, 0);
	conn_close(&client);
	conn_close(server);
}

static void round_of_both(struct conn *server, const char *addr)
{
	struct conn client = { .timeout_ms = TIMEOUT_MS, .busy_poll = true };
	uint32_t i;

	conn_pair(&client, server, addr, PORT, DEPTH, 0);
	post_receives(&client, DEPTH);
	post(&client, IBV_WR_SEND, UINT64_MAX, NULL);
	for (i = 0; i < DEPTH - 1; i++)
		post(&client, IBV_WR_RDMA_READ, READS + i, NULL);
	take_all(&client, DEPTH, DEPTH - 1);
	conn_close(&client);
	conn_close(server);
}

static void post_nothing(struct conn *c, enum ibv_wr_opcode opcode, uint64_t wr_id)
{
	struct ibv_send_wr wr = {
		.wr_id = wr_id,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
	}, *bad;

	if (ibv_post_send(c->id->qp, &wr, &bad))
		fail("request %#llx cannot be posted", (unsigned long long)wr_id);
}

static void expect_done(struct conn *c, uint64_t from, uint32_t n)
{
	struct ibv_wc wc[WCS];
	uint64_t next = from;
	int i, got;

	while (next < from + n) {
		got = conn_poll(c, wc, WCS, TIMEOUT_MS);
		if (!got)
			fail("%u of %u requests are done", (uint32_t)(next - from), n);
		for (i = 0; i < got; i++, next++)
			if (wc[i].wr_id != next || wc[i].status != IBV_WC_SUCCESS)
				fail("request %#llx with status %d in place %#llx",
				     (unsigned long long)wc[i].wr_id, wc[i].status,
				     (unsigned long long)next);
	}
}

/* The peer, which has no receive for the Send, answers the Read behind it when all else is sent. */
static void round_of_done(struct conn *server, const char *addr)
{
	struct conn client = { .timeout_ms = TIMEOUT_MS, .busy_poll = true };
	static uint8_t octet;
	struct ibv_mr *mr;
	uint32_t i;

	conn_pair(&client, server, addr, PORT, DEPTH, 0);
	mr = conn_reg(server, &octet, 1, IBV_ACCESS_REMOTE_READ);
	post_nothing(&client, IBV_WR_SEND, 0);
	post(&client, IBV_WR_RDMA_READ, 1, mr);
	for (i = 2; i < DEPTH; i++)
		post_nothing(&client, IBV_WR_RDMA_WRITE, i);
	post_receives(server, 1);
	expect_done(server, 0, 1);
	expect_done(&client, 0, DEPTH);
	conn_close(&client);
	conn_close(server);
}

int main(int argc, char **argv)
{
	struct conn server = { .timeout_ms = TIMEOUT_MS, .busy_poll = true };
	int i, rounds;

	conn_program = "deep-flush";
	if (argc < 3)
		fail("whose address, how often?");
	rounds = atoi(argv[2]);
	conn_listen(&server, argv[1], PORT);
	for (i = 0; i < rounds && argc > 3; i++)
		round_of_done(&server, argv[1]);
	for (i = 0; i < rounds && argc == 3; i++) {
		round_of_receives(&server, argv[1]);
		round_of_both(&server, argv[1]);
	}
	printf(argc > 3 ? "%d times a queue was done behind a Read\n" :
	       "%d times all receives of both ends were flushed, and all requests of one\n", rounds);
	return 0;
}
