// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Connections that are set up and ended again and again, for tests of what they leave behind:
 *   weft-churn -l -b ADDR          serves one connection after another, for ever
 *   weft-churn -n N HOST           N times: connect, one message, disconnect
 *   weft-churn -x N HOST           N times: begin to connect, and destroy at once
 *   weft-churn -t SECONDS HOST     Writes without pause; exit status 3 if the
 *                                  connection ends first
 *   weft-churn -e                  listens on all addresses again and again until
 *                                  SIGTERM: no listen may be refused. Prints
 *                                  "listening" after the first
 * -p PORT is for all. Prints the longest time, or how often. Nothing here knows weft.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "conn.h"

#define DEPTH		16
#define MSG		16384
#define TIMEOUT		20000
#define LONGEST		10000		/* that any connection may take */

static struct conn c;
static const char *port = "7472";
static uint8_t buf[DEPTH * MSG];

/* Where a client may write: the server's private data. */
struct target {
	uint64_t addr;
	uint32_t rkey;
};

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000LL + ts.tv_nsec / 1000000;
}

/* ---- the server ---- */

static bool post_recv(const struct ibv_mr *mr, uint64_t slot)
{
	struct ibv_sge sge = { .addr = (uintptr_t)buf + slot * MSG, .length = MSG,
			       .lkey = mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 }, *bad;

	return !ibv_post_recv(c.id->qp, &wr, &bad);
}

/* Takes what comes until the peer has gone. */
static void take_all(const struct ibv_mr *mr)
{
	struct ibv_wc wc[DEPTH];
	int n, i;

	while (!c.gone) {
		n = conn_poll(&c, wc, DEPTH, 1000);
		for (i = 0; i < n; i++)
			if (wc[i].status != IBV_WC_SUCCESS || !post_recv(mr, wc[i].wr_id))
				return;
	}
}

static void serve(const char *addr)
{
	struct target target;
	struct ibv_mr *mr;
	uint64_t slot;

	conn_listen(&c, addr, port);
	for (;;) {
		conn_await_request(&c);
		conn_make_qp(&c, DEPTH, DEPTH, 0);
		mr = conn_reg(&c, buf, sizeof(buf),
			      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
		target = (struct target){ .addr = (uintptr_t)buf, .rkey = mr->rkey };
		for (slot = 0; slot < DEPTH; slot++)
			post_recv(mr, slot);
		conn_accept(&c, &target, sizeof(target));
		take_all(mr);
		conn_close(&c);
	}
}

static volatile sig_atomic_t enough;

static void end(int sig)
{
	(void)sig;
	enough = 1;
}

static void listen_everywhere(void)
{
	const struct sigaction on_term = { .sa_handler = end };
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(atoi(port)) };
	struct rdma_event_channel *events = rdma_create_event_channel();
	struct rdma_cm_id *id;
	int n;

	sigaction(SIGTERM, &on_term, NULL);
	for (n = 0; !enough; n++) {
		if (!events || rdma_create_id(events, &id, NULL, RDMA_PS_TCP))
			fail("rdma_create_id: %s", strerror(errno));
		if (rdma_bind_addr(id, (struct sockaddr *)&any) || rdma_listen(id, 1))
			fail("listen %d: %s", n, strerror(errno));
		if (rdma_destroy_id(id))
			fail("rdma_destroy_id: %s", strerror(errno));
		if (!n)
			printf("listening\n");
		fflush(stdout);
	}
	rdma_destroy_event_channel(events);
	printf("listened %d times\n", n);
}

/* ---- the client ---- */

static struct ibv_mr *open_conn(const char *host)
{
	struct ibv_mr *mr;

	conn_resolve(&c, host, port);
	conn_make_qp(&c, DEPTH, DEPTH, 0);
	mr = conn_reg(&c, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);
	conn_connect(&c, NULL, 0);
	return mr;
}

static bool post(struct ibv_send_wr *wr, const struct ibv_mr *mr, uint32_t len)
{
	struct ibv_sge sge = { .addr = (uintptr_t)buf + wr->wr_id * MSG, .length = len,
			       .lkey = mr->lkey };
	struct ibv_send_wr *bad;

	wr->sg_list = &sge;
	wr->num_sge = 1;
	wr->send_flags = IBV_SEND_SIGNALED;
	return !ibv_post_send(c.id->qp, wr, &bad);
}

static void post_write(const struct ibv_mr *mr, uint64_t slot)
{
	struct ibv_send_wr wr = { .wr_id = slot, .opcode = IBV_WR_RDMA_WRITE };
	struct target target;

	memcpy(&target, c.peer, sizeof(target));
	wr.wr.rdma.remote_addr = target.addr + slot * MSG;
	wr.wr.rdma.rkey = target.rkey;
	if (!post(&wr, mr, MSG))
		exit(3);
}

static void connect_once(const char *host)
{
	struct ibv_send_wr send = { .opcode = IBV_WR_SEND };
	struct ibv_mr *mr = open_conn(host);
	struct ibv_wc wc = {};

	if (!post(&send, mr, 64))
		fail("the message cannot be posted");
	if (conn_poll(&c, &wc, 1, TIMEOUT) != 1 || wc.status != IBV_WC_SUCCESS)
		fail("the message was not sent: %s", ibv_wc_status_str(wc.status));
	conn_close(&c);
}

static void give_up_once(const char *host)
{
	struct rdma_conn_param param = {};

	conn_resolve(&c, host, port);
	conn_make_qp(&c, DEPTH, DEPTH, 0);
	if (rdma_connect(c.id, &param))
		fail("rdma_connect: %s", strerror(errno));
	conn_close(&c);
}

static void repeat(void (*once)(const char *host), int n, const char *host)
{
	int64_t start, took, longest = 0;
	int i;

	for (i = 0; i < n; i++) {
		start = now_ms();
		once(host);
		took = now_ms() - start;
		longest = took > longest ? took : longest;
	}
	printf("%d times, the longest took %d ms\n", n, (int)longest);
	if (longest > LONGEST)
		fail("that is more than %d ms", LONGEST);
}

static void traffic(int seconds, const char *host)
{
	int64_t end = now_ms() + seconds * 1000LL;
	struct ibv_mr *mr = open_conn(host);
	struct ibv_wc wc[DEPTH];
	uint64_t slot;
	int n, i;

	for (slot = 0; slot < DEPTH; slot++)
		post_write(mr, slot);
	printf("running\n");
	fflush(stdout);
	while (now_ms() < end) {
		n = conn_poll(&c, wc, DEPTH, TIMEOUT);
		if (n <= 0)
			exit(3);
		for (i = 0; i < n; i++) {
			if (wc[i].status != IBV_WC_SUCCESS)
				exit(3);
			post_write(mr, wc[i].wr_id);
		}
	}
	conn_close(&c);
}

int main(int argc, char **argv)
{
	const char *addr = NULL;
	int opt, times = 0, holes = 0, seconds = 0;
	bool server = false, everywhere = false;

	conn_program = "weft-churn";
	c.timeout_ms = TIMEOUT;
	while ((opt = getopt(argc, argv, "leb:p:n:x:t:")) != -1) {
		switch (opt) {
		case 'l': server = true; break;
		case 'e': everywhere = true; break;
		case 'b': addr = optarg; break;
		case 'p': port = optarg; break;
		case 'n': times = atoi(optarg); break;
		case 'x': holes = atoi(optarg); break;
		case 't': seconds = atoi(optarg); break;
		default: return 2;
		}
	}
	if (server)
		serve(addr);
	if (everywhere) {
		listen_everywhere();
		return 0;
	}
	if (argc - optind != 1)
		return 2;
	if (times)
		repeat(connect_once, times, argv[optind]);
	if (holes)
		repeat(give_up_once, holes, argv[optind]);
	if (seconds)
		traffic(seconds, argv[optind]);
	return 0;
}
