// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * One end of a connection that somebody else cuts. It posts receives, and with -s keeps sends under
 * way, until the connection is over. It prints "connected", how many requests have completed, once a
 * second if there are more, and at last how many failed, and how.
 *
 *   weft-deadpeer -l [-s] ADDR   listens
 *   weft-deadpeer -c [-s] ADDR   connects
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "conn.h"

#define PORT		"7479"
#define DEPTH		16
#define LEN		4096
#define TIMEOUT_MS	300000
#define SENDS		1000	/* the wr_id of the first send */

static uint8_t buf[2][LEN];
static struct ibv_mr *mr[2];

static void post_receive(struct conn *c, uint64_t id)
{
	struct ibv_sge sge = { (uintptr_t)buf[0], LEN, mr[0]->lkey };
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 }, *bad;

	if (ibv_post_recv(c->id->qp, &wr, &bad))
		fail("no receive can be posted");
}

static void post_send(struct conn *c, uint64_t id)
{
	struct ibv_sge sge = { (uintptr_t)buf[1], LEN, mr[1]->lkey };
	struct ibv_send_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1,
				  .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED }, *bad;

	if (ibv_post_send(c->id->qp, &wr, &bad))
		fail("no send can be posted");
}

static void begin(struct conn *c)
{
	int i;

	conn_make_qp(c, DEPTH, 2 * DEPTH, 0);
	for (i = 0; i < 2; i++)
		mr[i] = conn_reg(c, buf[i], LEN, IBV_ACCESS_LOCAL_WRITE);
	for (i = 0; i < 2 * DEPTH; i++)
		post_receive(c, i);
}

/* Until the connection is over. */
static void go_on(struct conn *c, bool sends)
{
	unsigned int done = 0, failed = 0, i;
	const char *why = "none";
	struct ibv_wc wc[DEPTH];
	time_t last = 0;
	int n;

	for (i = 0; sends && i < DEPTH; i++)
		post_send(c, SENDS + i);
	while ((n = conn_poll(c, wc, DEPTH, TIMEOUT_MS))) {
		for (i = 0; i < (unsigned int)n; i++) {
			if (wc[i].status != IBV_WC_SUCCESS) {
				why = failed++ ? why : ibv_wc_status_str(wc[i].status);
				continue;
			}
			done++;
			if (wc[i].wr_id >= SENDS)
				post_send(c, wc[i].wr_id);
			else
				post_receive(c, wc[i].wr_id);
		}
		if (time(NULL) != last && !failed) {
			last = time(NULL);
			printf("%u\n", done);
		}
	}
	if (!c->gone)
		fail("nothing has happened for %d s", TIMEOUT_MS / 1000);
	printf("over: %u failed, first: %s\n", failed, why);
}

int main(int argc, char **argv)
{
	struct conn c = { .timeout_ms = TIMEOUT_MS };
	bool listens = argc > 2 && !strcmp(argv[1], "-l");
	bool sends = argc > 3 && !strcmp(argv[2], "-s");

	conn_program = "weft-deadpeer";
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc != 3 + sends || (!listens && strcmp(argv[1], "-c")))
		fail("usage: weft-deadpeer -l|-c [-s] ADDR");
	if (listens) {
		conn_listen(&c, argv[argc - 1], PORT);
		conn_await_request(&c);
		begin(&c);
		conn_accept(&c, NULL, 0);
	} else {
		conn_resolve(&c, argv[argc - 1], PORT);
		begin(&c);
		conn_connect(&c, NULL, 0);
	}
	puts("connected");
	go_on(&c, sends);
	conn_close(&c);
	return 0;
}
