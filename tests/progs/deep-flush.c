// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The deepest queues, flushed because of a peer. First each end has all its receives posted when
 * one Write to no region ends the connection. Then one end has its send queue full of Reads, too,
 * which wait behind a Send for which the peer has no receive, until the peer gives that up. All of
 * them come back in order.
 *
 *   deep-flush ADDR [ROUNDS]        both ends in this process, over the device that has ADDR
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

/* Of one octet: @opcode, to or from where nothing is. */
static void post(struct conn *c, enum ibv_wr_opcode opcode, uint64_t wr_id)
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
		.wr.rdma = { .rkey = 0x12345601 },
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
	post(&client, IBV_WR_RDMA_WRITE, UINT64_MAX);
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
	post(&client, IBV_WR_SEND, UINT64_MAX);
	for (i = 0; i < DEPTH - 1; i++)
		post(&client, IBV_WR_RDMA_READ, READS + i);
	take_all(&client, DEPTH, DEPTH - 1);
	conn_close(&client);
	conn_close(server);
}

int main(int argc, char **argv)
{
	struct conn server = { .timeout_ms = TIMEOUT_MS, .busy_poll = true };
	int i, rounds = argc > 2 ? atoi(argv[2]) : 1;

	conn_program = "deep-flush";
	if (argc < 2)
		fail("whose address?");
	conn_listen(&server, argv[1], PORT);
	for (i = 0; i < rounds; i++) {
		round_of_receives(&server, argv[1]);
		round_of_both(&server, argv[1]);
	}
	printf("%d times all receives of both ends were flushed, and all requests of one\n", rounds);
	return 0;
}
