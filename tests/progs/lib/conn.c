// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "conn.h"

const char *conn_program = "conn";

void fail(const char *fmt, ...)
{
	va_list ap;

	printf("%s: FAIL ", conn_program);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	exit(1);
}

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000LL + ts.tv_nsec / 1000000;
}

static bool readable(int fd, int timeout_ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, timeout_ms) > 0;
}

/* ---- connection manager events ---- */

static void keep_private_data(struct conn *c, const struct rdma_conn_param *p)
{
	size_t len = p->private_data_len < CONN_PRIVATE ? p->private_data_len : CONN_PRIVATE;

	memset(c->peer, 0, sizeof(c->peer));
	if (p->private_data)
		memcpy(c->peer, p->private_data, len);
}

/* Takes one event; true if it is @wanted, or ends hope for it. */
static bool take_event(struct conn *c, enum rdma_cm_event_type wanted,
		       enum rdma_cm_event_type *type)
{
	struct rdma_cm_event *ev;
	bool mine;

	if (rdma_get_cm_event(c->events, &ev))
		fail("rdma_get_cm_event: %s", strerror(errno));
	*type = ev->event;
	mine = ev->id == c->id;
	if (ev->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		keep_private_data(c, &ev->param.conn);
		c->next = ev->id;
	} else if (mine && ev->event == RDMA_CM_EVENT_ESTABLISHED && !c->listener) {
		keep_private_data(c, &ev->param.conn);
	}
	if (mine && (ev->event == RDMA_CM_EVENT_DISCONNECTED ||
		     ev->event == RDMA_CM_EVENT_DEVICE_REMOVAL))
		c->gone = true;
	rdma_ack_cm_event(ev);
	/* What an earlier connection still has to say does not matter. */
	return *type == wanted || (mine && *type != RDMA_CM_EVENT_TIMEWAIT_EXIT);
}

static void await(struct conn *c, enum rdma_cm_event_type wanted, int timeout_ms)
{
	enum rdma_cm_event_type type;

	do {
		if (!readable(c->events->fd, timeout_ms))
			fail("waiting for %s: nothing for %d ms", rdma_event_str(wanted),
			     timeout_ms);
	} while (!take_event(c, wanted, &type));
	if (type != wanted)
		fail("waiting for %s: %s", rdma_event_str(wanted), rdma_event_str(type));
}

/* Looks at what has come up by itself. */
static void note_events(struct conn *c)
{
	enum rdma_cm_event_type type;

	while (readable(c->events->fd, 0))
		take_event(c, RDMA_CM_EVENT_DISCONNECTED, &type);
}

static void open_channel(struct conn *c)
{
	c->events = rdma_create_event_channel();
	if (!c->events)
		fail("rdma_create_event_channel: %s", strerror(errno));
}

static struct rdma_addrinfo *look_up(const char *host, const char *port, int flags)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP, .ai_flags = flags };
	struct rdma_addrinfo *ai;

	if (rdma_getaddrinfo(host, port, &hints, &ai))
		fail("%s: no such address (%s)", host ? host : "any", strerror(errno));
	return ai;
}

void conn_listen(struct conn *c, const char *addr, const char *port)
{
	struct rdma_addrinfo *ai = look_up(addr, port, RAI_PASSIVE);

	open_channel(c);
	if (rdma_create_id(c->events, &c->listener, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(c->listener, ai->ai_src_addr) || rdma_listen(c->listener, 8))
		fail("listening on port %s: %s", port, strerror(errno));
	rdma_freeaddrinfo(ai);
}

void conn_await_request(struct conn *c)
{
	c->gone = false;
	/* A server waits as long as it takes for the first. */
	if (!c->next)
		await(c, RDMA_CM_EVENT_CONNECT_REQUEST, c->shares ? c->timeout_ms : -1);
	c->id = c->next;
	c->next = NULL;
}

void conn_resolve(struct conn *c, const char *host, const char *port)
{
	struct rdma_addrinfo *ai = look_up(host, port, 0);

	if (!c->events)
		open_channel(c);
	c->gone = false;
	if (rdma_create_id(c->events, &c->id, NULL, RDMA_PS_TCP) ||
	    rdma_resolve_addr(c->id, NULL, ai->ai_dst_addr, c->timeout_ms))
		fail("rdma_resolve_addr: %s", strerror(errno));
	await(c, RDMA_CM_EVENT_ADDR_RESOLVED, c->timeout_ms);
	if (rdma_resolve_route(c->id, c->timeout_ms))
		fail("rdma_resolve_route: %s", strerror(errno));
	await(c, RDMA_CM_EVENT_ROUTE_RESOLVED, c->timeout_ms);
	rdma_freeaddrinfo(ai);
}

/* ---- queues ---- */

static void ask_device(struct conn *c)
{
	struct ibv_device_attr attr;

	if (ibv_query_device(c->id->verbs, &attr))
		fail("ibv_query_device: %s", strerror(errno));
	c->ird = attr.max_qp_rd_atom < 16 ? attr.max_qp_rd_atom : 16;
	c->ord = attr.max_qp_init_rd_atom < 16 ? attr.max_qp_init_rd_atom : 16;
}

static int create_qp(struct conn *c, struct ibv_qp_init_attr_ex *attr)
{
	int rv = rdma_create_qp_ex(c->id, attr);

	if (!rv || !attr->cap.max_inline_data)
		return rv;
	/* Inline data is an extra that not every device has. */
	attr->cap.max_inline_data = 0;
	return rdma_create_qp_ex(c->id, attr);
}

static void make_srq(struct conn *c)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = c->srq_wr, .max_sge = 1 } };

	c->srq = ibv_create_srq(c->pd, &attr);
	if (!c->srq)
		fail("ibv_create_srq: %s", strerror(errno));
}

void conn_share(struct conn *c, struct conn *other)
{
	*c = *other;
	c->shares = true;
	c->gone = false;
	c->id = NULL;
	c->n_mrs = 0;
	other->next = NULL;
}

static void make_cq(struct conn *c, uint32_t len)
{
	ask_device(c);
	c->pd = ibv_alloc_pd(c->id->verbs);
	c->comp = ibv_create_comp_channel(c->id->verbs);
	if (!c->pd || !c->comp)
		fail("PD or completion channel: %s", strerror(errno));
	c->cq = ibv_create_cq(c->id->verbs, len, NULL, c->comp, 0);
	if (!c->cq || ibv_req_notify_cq(c->cq, 0))
		fail("CQ of %u: %s", len, strerror(errno));
	if (c->srq_wr)
		make_srq(c);
}

void conn_make_qp(struct conn *c, uint32_t send_wr, uint32_t recv_wr, uint32_t max_inline)
{
	struct ibv_qp_init_attr_ex attr = {
		.cap = { .max_send_wr = send_wr, .max_recv_wr = recv_wr,
			 .max_send_sge = c->max_sge ? c->max_sge : 1,
			 .max_recv_sge = c->max_recv_sge ? c->max_recv_sge : 1,
			 .max_inline_data = max_inline },
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
	};

	if (!c->cq)
		make_cq(c, c->cq_len ? c->cq_len : send_wr + recv_wr);
	attr.pd = c->pd;
	attr.srq = c->srq;
	attr.send_cq = c->send_cq ? c->send_cq : c->cq;
	attr.recv_cq = c->cq;
	if (c->extended) {
		attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		attr.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ |
				      IBV_QP_EX_WITH_SEND | c->more_ops;
	}
	if (create_qp(c, &attr))
		fail("rdma_create_qp_ex: %s", strerror(errno));
	c->max_inline = attr.cap.max_inline_data;
}

static struct rdma_conn_param params(const struct conn *c, const void *private_data, uint8_t len)
{
	return (struct rdma_conn_param){
		.private_data = private_data,
		.private_data_len = len,
		.responder_resources = c->ird,
		.initiator_depth = c->ord,
		.retry_count = 7,
		.rnr_retry_count = 7,
	};
}

void conn_accept(struct conn *c, const void *private_data, uint8_t len)
{
	struct rdma_conn_param p = params(c, private_data, len);

	if (rdma_accept(c->id, &p))
		fail("rdma_accept: %s", strerror(errno));
	await(c, RDMA_CM_EVENT_ESTABLISHED, c->timeout_ms);
}

void conn_connect(struct conn *c, const void *private_data, uint8_t len)
{
	struct rdma_conn_param p = params(c, private_data, len);

	if (rdma_connect(c->id, &p))
		fail("rdma_connect: %s", strerror(errno));
	await(c, RDMA_CM_EVENT_ESTABLISHED, c->timeout_ms);
}

/* ---- both ends in one process ---- */

struct acceptor {
	struct conn *server;
	uint32_t depth;
};

static void *accept_one(void *arg)
{
	struct acceptor *a = arg;

	conn_await_request(a->server);
	conn_make_qp(a->server, a->depth, a->depth, 0);
	conn_accept(a->server, NULL, 0);
	return NULL;
}

void conn_pair(struct conn *client, struct conn *server, const char *host, const char *port,
	       uint32_t depth, uint32_t max_inline)
{
	struct acceptor a = { .server = server, .depth = depth };
	pthread_t thread;

	if (pthread_create(&thread, NULL, accept_one, &a))
		fail("no thread");
	conn_resolve(client, host, port);
	conn_make_qp(client, depth, depth, max_inline);
	conn_connect(client, NULL, 0);
	pthread_join(thread, NULL);
}

struct ibv_mr *conn_reg(struct conn *c, void *buf, size_t len, int access)
{
	struct ibv_mr *mr = ibv_reg_mr(c->pd, buf, len, access);

	if (!mr)
		fail("ibv_reg_mr of %zu bytes: %s", len, strerror(errno));
	if (c->n_mrs == sizeof(c->mrs) / sizeof(c->mrs[0]))
		fail("too many memory regions");
	c->mrs[c->n_mrs++] = mr;
	return mr;
}

/* ---- completions ---- */

static int poll_once(struct conn *c, struct ibv_wc *wc, int n)
{
	int got = ibv_poll_cq(c->cq, n, wc);

	if (got < 0)
		fail("ibv_poll_cq: %d", got);
	return got;
}

/* The removal of a device discards unread CQ events; reads then fail with EIO. */
static void take_cq_event(struct conn *c)
{
	struct ibv_cq *cq;
	void *ctx;

	if (ibv_get_cq_event(c->comp, &cq, &ctx)) {
		if (errno == EIO) {
			c->gone = true;
			return;
		}
		fail("ibv_get_cq_event: %s", strerror(errno));
	}
	ibv_ack_cq_events(cq, 1);
	if (ibv_req_notify_cq(cq, 0))
		fail("ibv_req_notify_cq: %s", strerror(errno));
}

/* Sleeps until one of the two channels has something, or time is up. */
static void sleep_on_channels(struct conn *c, int timeout_ms)
{
	struct pollfd p[2] = {
		{ .fd = c->comp->fd, .events = POLLIN },
		{ .fd = c->events->fd, .events = POLLIN },
	};

	if (poll(p, 2, timeout_ms) < 0 && errno != EINTR)
		fail("poll: %s", strerror(errno));
	if (p[0].revents)
		take_cq_event(c);
	if (p[1].revents)
		note_events(c);
}

int conn_poll(struct conn *c, struct ibv_wc *wc, int n, int timeout_ms)
{
	int64_t end = now_ms() + timeout_ms, left = timeout_ms;
	unsigned int spins = 0;
	int got;

	for (;;) {
		got = poll_once(c, wc, n);
		if (got)
			return got;
		if (c->busy_poll && ++spins % 4096)
			continue;
		left = end - now_ms();
		/* What the CQ held when the peer went has been taken by now. */
		if (c->gone || left < 0)
			return 0;
		if (c->busy_poll)
			note_events(c);
		else
			sleep_on_channels(c, left);
	}
}

static void free_cq(struct conn *c)
{
	if (c->srq && ibv_destroy_srq(c->srq))
		fail("ibv_destroy_srq: %s", strerror(errno));
	c->srq = NULL;
	if (ibv_destroy_cq(c->cq))
		fail("ibv_destroy_cq: %s", strerror(errno));
	if (ibv_destroy_comp_channel(c->comp))
		fail("ibv_destroy_comp_channel: %s", strerror(errno));
	if (ibv_dealloc_pd(c->pd))
		fail("ibv_dealloc_pd: %s", strerror(errno));
	c->cq = NULL;
}

void conn_close(struct conn *c)
{
	rdma_disconnect(c->id);
	if (c->id->qp)
		rdma_destroy_qp(c->id);
	while (c->n_mrs)
		if (ibv_dereg_mr(c->mrs[--c->n_mrs]))
			fail("ibv_dereg_mr: %s", strerror(errno));
	if (!c->shares)
		free_cq(c);
	if (rdma_destroy_id(c->id))
		fail("rdma_destroy_id: %s", strerror(errno));
	c->id = NULL;
}

void conn_end(struct conn *c)
{
	conn_close(c);
	rdma_destroy_event_channel(c->events);
}

int conn_next_event(struct rdma_event_channel *events, int timeout_ms)
{
	struct pollfd p = { .fd = events->fd, .events = POLLIN };
	struct rdma_cm_event *ev;
	int type;

	if (poll(&p, 1, timeout_ms) <= 0)
		return -1;
	if (rdma_get_cm_event(events, &ev))
		fail("rdma_get_cm_event: %s", strerror(errno));
	type = ev->event;
	rdma_ack_cm_event(ev);
	return type;
}
