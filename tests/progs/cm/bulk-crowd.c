// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Many connections, each with bulk traffic both ways: Writes and Reads of 64 KB, a few outstanding
 * at each end.
 *
 *   bulk-crowd ADDR [CONNECTIONS [SECONDS]]     both ends in this process, over the device of ADDR
 *
 * Prints the number of octets moved. Each connection must have moved some.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "conn.h"

#define PORT		"7478"
#define MSG		(64 * 1024)
#define OUTSTANDING	4
#define TIMEOUT_MS	60000

/* Its content is not checked. */
static uint8_t mem[2][MSG] __attribute__((aligned(4096)));

static struct ibv_mr *mr[2];		/* of each side's PD, which all its connections share */

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000LL + ts.tv_nsec / 1000000;
}

/* Every other one a Read. wr_id says which connection. */
static void post(struct conn *c, int side, uint64_t which, uint32_t n)
{
	struct ibv_sge sge = { .addr = (uintptr_t)mem[side], .length = MSG, .lkey = mr[side]->lkey };
	struct ibv_send_wr wr = {
		.wr_id = which, .sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED,
		.opcode = n & 1 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
		.wr.rdma = { .remote_addr = (uintptr_t)mem[!side], .rkey = mr[!side]->rkey },
	}, *bad;

	if (ibv_post_send(c->id->qp, &wr, &bad))
		fail("connection %" PRIu64 " takes no request", which);
}

static struct conn *ends[2];
static uint32_t *done[2];
static uint32_t connections = 300;

static void connect_all(const char *addr)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	uint32_t i;
	int side;

	for (side = 0; side < 2; side++) {
		ends[side] = calloc(connections, sizeof(struct conn));
		done[side] = calloc(connections, sizeof(uint32_t));
		if (!ends[side] || !done[side])
			fail("no memory");
		ends[side][0] = (struct conn){ .timeout_ms = TIMEOUT_MS, .busy_poll = true,
					       .cq_len = 2 * OUTSTANDING * connections };
	}
	conn_listen(&ends[1][0], addr, PORT);
	for (i = 0; i < connections; i++) {
		if (i) {
			conn_share(&ends[0][i], &ends[0][0]);
			conn_share(&ends[1][i], &ends[1][0]);
		}
		conn_pair(&ends[0][i], &ends[1][i], addr, PORT, 2 * OUTSTANDING, 0);
		for (side = 0; side < 2 && !i; side++)
			mr[side] = conn_reg(&ends[side][0], mem[side], MSG, access);
	}
}

static void take(int side, bool more)
{
	struct ibv_wc wc[64];
	int i, n = ibv_poll_cq(ends[side][0].cq, 64, wc);

	for (i = 0; i < n; i++) {
		if (wc[i].status)
			fail("connection %" PRIu64 ": status %d", wc[i].wr_id, wc[i].status);
		done[side][wc[i].wr_id]++;
		if (more)
			post(&ends[side][wc[i].wr_id], side, wc[i].wr_id, done[side][wc[i].wr_id]);
	}
}

static uint64_t all_done(void)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < connections; i++)
		sum += done[0][i] + done[1][i];
	return sum;
}

static void run(int64_t ms)
{
	uint64_t posted = 2ULL * OUTSTANDING * connections;
	uint32_t i, n;
	int64_t end;
	int side;

	for (n = 0; n < OUTSTANDING; n++)
		for (side = 0; side < 2; side++)
			for (i = 0; i < connections; i++)
				post(&ends[side][i], side, i, n);
	end = now_ms() + ms;
	while (now_ms() < end)
		for (side = 0; side < 2; side++)
			take(side, true);
	/* Each that was done has had its successor. */
	posted += all_done();
	end = now_ms() + TIMEOUT_MS;
	while (all_done() < posted && now_ms() < end)
		for (side = 0; side < 2; side++)
			take(side, false);
	if (all_done() < posted)
		fail("%" PRIu64 " of %" PRIu64 " requests are done", all_done(), posted);
}

int main(int argc, char **argv)
{
	int seconds = argc > 3 ? atoi(argv[3]) : 5;
	uint32_t i;

	conn_program = "bulk-crowd";
	if (argc < 2)
		fail("whose address?");
	if (argc > 2)
		connections = atoi(argv[2]);
	connect_all(argv[1]);
	run(seconds * 1000LL);
	for (i = 0; i < connections; i++)
		if (!done[0][i] || !done[1][i])
			fail("connection %u moved nothing", i);
	printf("%u connections moved %" PRIu64 " MB\n", connections, all_done() * MSG >> 20);
	return 0;
}
