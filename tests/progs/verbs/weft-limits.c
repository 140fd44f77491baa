// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What verbs promise where programs seldom go: a region that goes while it is read, events that are
 * not acknowledged, channels that do not wait, a CQ that has overflowed; and, with a name (they take
 * gigabytes of copying), the longest message and a region beyond 4 GB. Each case has a connection of
 * its own, both ends in this process, over the device that has ADDR. TAP on stdout.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cases.h"
#include "ends.h"

#define READS		8		/* under way */
#define RIGHTS		(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

static struct ends t;

static void *serve(void *unused)
{
	(void)unused;
	conn_await_request(&t.s);
	conn_make_qp(&t.s, DEPTH, DEPTH, 0);
	conn_accept(&t.s, NULL, 0);
	return NULL;
}

static void open_pair(const void *unused)
{
	(void)unused;
	ends_open(&t, serve, NULL);
}

static void close_pair(void)
{
	ends_close(&t);
}

static void post_recv(struct conn *c, uint64_t id, struct ibv_sge *sge)
{
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = sge, .num_sge = !!sge }, *bad;

	if (ibv_post_recv(c->id->qp, &wr, &bad))
		fail("no receive can be posted");
}

static int try_post(struct conn *c, uint64_t id, enum ibv_wr_opcode op, struct ibv_sge *sge,
		    uint64_t remote, uint32_t rkey)
{
	struct ibv_send_wr wr = {
		.wr_id = id, .sg_list = sge, .num_sge = !!sge, .opcode = op,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = remote, .rkey = rkey },
	}, *bad;

	return ibv_post_send(c->id->qp, &wr, &bad);
}

static void post(struct conn *c, uint64_t id, enum ibv_wr_opcode op, struct ibv_sge *sge,
		 uint64_t remote, uint32_t rkey)
{
	int err = try_post(c, id, op, sge, remote, rkey);

	if (err)
		fail("post_send: %s", strerror(err));
}

/* ---- a region goes ---- */

static struct ibv_mr *volatile read_mr;

/* Reads until one fails: how many were good. -1: one has brought octets of after ibv_dereg_mr(). */
static void *read_for_ever(void *good)
{
	static uint8_t sink[READS][BUF];
	struct ibv_mr *mr = conn_reg(&t.c, sink, sizeof(sink), IBV_ACCESS_LOCAL_WRITE |
				     IBV_ACCESS_REMOTE_WRITE);
	uint32_t rkey = read_mr->rkey;
	struct ibv_sge sge;
	struct ibv_wc wc;
	long *n = good;
	int i;

	for (i = 0; i < READS; i++) {
		sge = sge_of(sink[i], BUF, mr);
		post(&t.c, i, IBV_WR_RDMA_READ, &sge, (uintptr_t)t.to, rkey);
	}
	while (conn_poll(&t.c, &wc, 1, TIMEOUT) == 1 && wc.status == IBV_WC_SUCCESS) {
		for (i = 0; i < BUF; i++)
			if (sink[wc.wr_id][i] != 0xA5) {
				*n = -1;
				return NULL;
			}
		++*n;
		memset(sink[wc.wr_id], 0, BUF);
		sge = sge_of(sink[wc.wr_id], BUF, mr);
		/* The connection may have ended. */
		if (try_post(&t.c, wc.wr_id, IBV_WR_RDMA_READ, &sge, (uintptr_t)t.to, rkey))
			break;
	}
	return NULL;
}

/* What the memory holds once ibv_dereg_mr() has returned is not read any more. */
static bool a_region_goes_while_it_is_read(void)
{
	pthread_t reader;
	volatile long n = 0;
	bool ok;

	memset(t.to, 0xA5, BUF);
	read_mr = ibv_reg_mr(t.s.pd, t.to, BUF, RIGHTS);
	if (!read_mr || pthread_create(&reader, NULL, read_for_ever, (void *)&n))
		fail("no region, or no thread");
	while (n >= 0 && n < 100)
		sched_yield();
	ok = !ibv_dereg_mr(read_mr);
	memset(t.to, 0x5A, BUF);
	pthread_join(reader, NULL);
	printf("# %ld Reads before\n", n);
	return ok && n >= 100;
}

/* ---- events ---- */

static volatile bool destroyed;

static void *destroys(void *cq)
{
	destroyed = !ibv_destroy_cq(cq);
	return NULL;
}

static bool unacknowledged_events_keep_their_queue(void)
{
	struct ibv_cq *cq, *old = t.s.cq;
	pthread_t thread;
	void *ctx;
	bool early;

	post_recv(&t.s, 1, NULL);
	post(&t.c, 2, IBV_WR_SEND, NULL, 0, 0);
	if (ibv_get_cq_event(t.s.comp, &cq, &ctx) || cq != old)
		fail("no event");
	/* The next case, and the end of this one, have a CQ of their own. */
	rdma_destroy_qp(t.s.id);
	t.s.cq = ibv_create_cq(t.s.id->verbs, 1, NULL, t.s.comp, 0);
	destroyed = false;
	if (!t.s.cq || pthread_create(&thread, NULL, destroys, old))
		fail("no CQ, or no thread");
	usleep(100000);
	early = destroyed;
	ibv_ack_cq_events(old, 1);
	pthread_join(thread, NULL);
	return !early && destroyed;
}

static void add(int ep, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET, .data.fd = fd };

	if (fcntl(fd, F_SETFL, O_NONBLOCK) || epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev))
		fail("epoll: %s", strerror(errno));
}

static bool says(int ep, int fd)
{
	struct epoll_event ev;

	return epoll_wait(ep, &ev, 1, TIMEOUT) == 1 && ev.data.fd == fd;
}

static bool is_empty(int rv)
{
	return rv == -1 && errno == EAGAIN;
}

static bool channels_do_not_wait(void)
{
	struct rdma_cm_event *event;
	int ep = epoll_create1(0);
	struct ibv_cq *cq;
	void *ctx;
	bool ok;

	add(ep, t.s.comp->fd);
	add(ep, t.s.events->fd);
	ok = is_empty(ibv_get_cq_event(t.s.comp, &cq, &ctx)) &&
	     is_empty(rdma_get_cm_event(t.s.events, &event));
	post_recv(&t.s, 1, NULL);
	post(&t.c, 2, IBV_WR_SEND, NULL, 0, 0);
	ok = ok && says(ep, t.s.comp->fd) && !ibv_get_cq_event(t.s.comp, &cq, &ctx) &&
	     is_empty(ibv_get_cq_event(t.s.comp, &cq, &ctx));
	if (!ok)
		return false;
	ibv_ack_cq_events(cq, 1);
	ok = took(&t.s, 1) && took(&t.c, 2) && !ibv_req_notify_cq(t.s.cq, 0);
	rdma_disconnect(t.c.id);
	/* Flushed receives there are none: the first event is the connection's. */
	ok = ok && says(ep, t.s.events->fd) && !rdma_get_cm_event(t.s.events, &event) &&
	     event->event == RDMA_CM_EVENT_DISCONNECTED;
	if (ok)
		rdma_ack_cm_event(event);
	ok = ok && is_empty(rdma_get_cm_event(t.s.events, &event));
	close(ep);
	fcntl(t.s.events->fd, F_SETFL, 0);
	return ok;
}

/* ---- a CQ overflows ---- */

static unsigned int async_events(int n)
{
	struct ibv_context *ctx = t.s.id->verbs;
	struct pollfd p = { .fd = ctx->async_fd, .events = POLLIN };
	struct ibv_async_event ev;
	unsigned int types = 0;

	while (n-- && poll(&p, 1, TIMEOUT) == 1 && !ibv_get_async_event(ctx, &ev)) {
		types |= 1u << ev.event_type;
		ibv_ack_async_event(&ev);
	}
	return types;
}

/*
 * Its QP is in error, too. What is posted then is accepted, as by any QP in error, and not reported:
 * ibv_poll_cq() fails once what the CQ had has been read.
 */
static bool an_overflow_is_told_of_queue_and_queue_pair(void)
{
	const unsigned int both = 1u << IBV_EVENT_CQ_ERR | 1u << IBV_EVENT_QP_FATAL;
	struct ibv_wc wc;
	int i, n;

	if (ibv_resize_cq(t.s.cq, 4))
		return false;
	n = t.s.cq->cqe + 1;
	for (i = 0; i < n; i++)
		post_recv(&t.s, i, NULL);
	for (i = 0; i < n; i++)
		post(&t.c, i, IBV_WR_SEND, NULL, 0, 0);
	if (async_events(2) != both)
		return false;
	for (i = 0; i < n - 1; i++)
		if (ibv_poll_cq(t.s.cq, 1, &wc) != 1 || wc.status != IBV_WC_SUCCESS)
			return false;
	return ibv_poll_cq(t.s.cq, 1, &wc) < 0 && !try_post(&t.s, 9, IBV_WR_SEND, NULL, 0, 0) &&
	       ibv_poll_cq(t.s.cq, 1, &wc) < 0;
}

/* ---- lengths ---- */

#define PIECE		(2u << 20)
#define PIECES		2049		/* 4 GB and one */

/* So many octets of addresses, each PIECE the same memory. */
static uint8_t *same_memory(uint8_t first)
{
	uint8_t *base = mmap(NULL, (size_t)PIECES * PIECE, PROT_NONE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int fd = memfd_create("piece", 0);
	unsigned int i;

	if (base == MAP_FAILED || fd < 0 || ftruncate(fd, PIECE))
		fail("no addresses");
	for (i = 0; i < PIECES; i++)
		if (mmap(base + (size_t)i * PIECE, PIECE, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
			fail("no mapping");
	close(fd);
	for (i = 0; i < PIECE; i++)
		base[i] = (uint8_t)(first + i * 2654435761u / 16777216);
	return base;
}

static bool the_longest_message_arrives(void)
{
	uint8_t *from = same_memory(1), *to = same_memory(0);
	struct ibv_mr *own = conn_reg(&t.c, from, (size_t)PIECES * PIECE, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_mr *mr = conn_reg(&t.s, to, (size_t)PIECES * PIECE, RIGHTS);
	struct ibv_port_attr port;
	struct ibv_sge src, dst;
	struct ibv_wc wc;
	bool ok;

	if (ibv_query_port(t.c.id->verbs, t.c.id->port_num, &port))
		fail("no port");
	printf("# the longest message has %u octets\n", port.max_msg_sz);
	src = sge_of(from, port.max_msg_sz, own);
	dst = sge_of(to, port.max_msg_sz, mr);
	post_recv(&t.s, 1, &dst);
	post(&t.c, 2, IBV_WR_SEND, &src, 0, 0);
	ok = conn_poll(&t.s, &wc, 1, 10 * TIMEOUT) == 1 && wc.status == IBV_WC_SUCCESS &&
	     wc.byte_len == port.max_msg_sz && took(&t.c, 2) && !memcmp(from, to, PIECE);
	/* One octet more is no message. */
	src.length = port.max_msg_sz + 1;
	return ok && (src.length < port.max_msg_sz ||
		      try_post(&t.c, 3, IBV_WR_SEND, &src, 0, 0) ||
		      (conn_poll(&t.c, &wc, 1, TIMEOUT) == 1 && wc.status == IBV_WC_LOC_LEN_ERR));
}

static bool the_end_of_a_large_region_is_reached(void)
{
	uint8_t *from = same_memory(1), *to = same_memory(0);
	struct ibv_mr *own = conn_reg(&t.c, from, (size_t)PIECES * PIECE, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_mr *mr = conn_reg(&t.s, to, (size_t)PIECES * PIECE, RIGHTS);
	const size_t at = (size_t)(PIECES - 1) * PIECE;
	struct ibv_sge sge = sge_of(from + at, PIECE, own);
	struct ibv_wc wc;

	post(&t.c, 1, IBV_WR_RDMA_WRITE, &sge, (uintptr_t)to + at, mr->rkey);
	post_recv(&t.s, 7, NULL);
	post(&t.c, 2, IBV_WR_SEND, NULL, 0, 0);
	if (!took(&t.c, 1) || !took(&t.c, 2) || !took(&t.s, 7) || memcmp(from, to, PIECE))
		return false;
	/* One octet beyond it. */
	sge.length = 2;
	post(&t.c, 3, IBV_WR_RDMA_WRITE, &sge, (uintptr_t)to + (size_t)PIECES * PIECE - 1, mr->rkey);
	while (conn_poll(&t.c, &wc, 1, TIMEOUT) == 1)
		;
	return t.c.gone;
}

static const struct a_case list[] = {
	{ "a-region-goes-while-it-is-read", a_region_goes_while_it_is_read, NULL },
	{ "unacknowledged-events-keep-their-queue", unacknowledged_events_keep_their_queue, NULL },
	{ "channels-do-not-wait", channels_do_not_wait, NULL },
	{ "an-overflow-is-told-of-queue-and-queue-pair",
	  an_overflow_is_told_of_queue_and_queue_pair, NULL },
};

static const struct a_case large[] = {
	{ "the-longest-message-arrives", the_longest_message_arrives, NULL },
	{ "the-end-of-a-large-region-is-reached", the_end_of_a_large_region_is_reached, NULL },
};

static const struct cases cases = CASES(open_pair, close_pair, list);
static const struct cases large_cases = CASES(open_pair, close_pair, large);

int main(int argc, char **argv)
{
	const char *addr = cases_begin(argc, argv, "weft-limits");

	ends_init(&t, addr, "7480");
	cases_run(&cases, "");
	if (argc > 2)
		cases_run(&large_cases, "");
	return cases_end();
}
