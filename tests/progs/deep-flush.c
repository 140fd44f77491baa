// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The deepest queues, flushed because of a peer: each end has all its receives posted when
 * one Write to no region ends the connection. All of them come back in order.
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

static void post_receives(struct conn *c, uint32_t n)
{
	struct ibv_recv_wr wr = { 0 }, *bad;

	for (wr.wr_id = 0; wr.wr_id < n; wr.wr_id++)
		if (ibv_post_recv(c->id->qp, &wr, &bad))
			fail("receive %u cannot be posted", (unsigned int)wr.wr_id);
}

/* The client's Write comes back before its receives, or among them. */
static void take_all(struct conn *c, uint32_t n)
{
	struct ibv_wc wc[WCS];
	uint32_t next = 0;
	int i, got;

	while (next < n) {
		got = conn_poll(c, wc, WCS, TIMEOUT_MS);
		if (!got)
			fail("%u of %u receives came back", next, n);
		for (i = 0; i < got; i++) {
			if (wc[i].wr_id == UINT64_MAX)
				continue;
			if (wc[i].wr_id != next++ || wc[i].status != IBV_WC_WR_FLUSH_ERR)
				fail("receive %u with status %d in place %u",
				     (unsigned int)wc[i].wr_id, wc[i].status, next - 1);
		}
	}
}

/* Of one octet, to where nothing is. */
static void write_astray(struct conn *c)
{
	static uint8_t octet;
	struct ibv_mr *mr = conn_reg(c, &octet, 1, 0);
	struct ibv_sge sge = { .addr = (uintptr_t)&octet, .length = 1, .lkey = mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = UINT64_MAX,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma = { .rkey = 0x12345601 },
	}, *bad;

	if (ibv_post_send(c->id->qp, &wr, &bad))
		fail("the Write cannot be posted");
}

static void round_of(struct conn *server, const char *addr)
{
	struct conn client = { .timeout_ms = TIMEOUT_MS, .busy_poll = true };

	conn_pair(&client, server, addr, PORT, DEPTH, 0);
	post_receives(&client, DEPTH);
	post_receives(server, DEPTH);
	write_astray(&client);
	take_all(server, DEPTH);
	take_all(&client, DEPTH);
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
	for (i = 0; i < rounds; i++)
		round_of(&server, argv[1]);
	printf("%d times all receives of both ends were flushed\n", rounds);
	return 0;
}
