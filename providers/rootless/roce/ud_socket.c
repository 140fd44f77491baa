// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * UDP sockets of UD QPs. One serves all QPs of a port, whatever their CQs: each CQ's epoll waits
 * for the sockets of its QPs, and reading a socket serves all of its QPs.
 */
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "kernel/core/ud.h"
#include "datagram.h"
#include "ip.h"
#include "process/pool.h"
#include "port_group.h"
#include "process/raw.h"
#include "process/stats.h"
#include "ud.h"

/* Datagrams read at a time. */
#define BATCH		32
#define PAYLOAD_MAX	4096
/* One octet more than is allowed, to detect datagrams that are too long. */
#define ROOM		(RL_DATAGRAM_HEADER + PAYLOAD_MAX + 1)
/* For bursts; the host may allow less. */
#define RECEIVE_BUFFER	(8 << 20)
/* There is no waiting for UDP's room to send: retry. */
#define RETRY_MS	1

struct rl_ud_socket {
	struct rl_watch watch;		/* first: the references */
	struct list_head node;		/* the table's lock */
	u16 port;
	bool six;
	rl_ud_deliver_fn *deliver;
	void *group;			/* NULL: for a port's numbers; constant */
	pthread_mutex_t lock;		/* held by the reader */
	int fd;				/* lock; the port group's; -1: closed */
	struct list_head uds;		/* the table's lock */
};

static struct {
	pthread_mutex_t lock;
	struct list_head sockets;
} table = { .lock = PTHREAD_MUTEX_INITIALIZER, .sockets = LIST_HEAD_INIT(table.sockets) };

static struct rl_ud_socket *socket_of(struct rl_watch *w)
{
	return container_of(w, struct rl_ud_socket, watch);
}

struct rl_watch *rl_ud_socket_watch(struct rl_ud_socket *s)
{
	return &s->watch;
}

int rl_ud_socket_fd(const struct rl_ud_socket *s)
{
	return READ_ONCE(s->fd);
}

bool rl_ud_socket_is_six(const struct rl_ud_socket *s)
{
	return s->six;
}

/* ---- receiving ---- */

struct slot {
	struct sockaddr_storage from;
	struct iovec iov;
	u8 control[RL_IP_ROOM] __attribute__((aligned(8)));
	u8 data[ROOM] __attribute__((aligned(8)));
};

struct batch {
	struct mmsghdr msg[BATCH];
	struct slot at[BATCH];
};
static_assert(sizeof(struct batch) <= RL_POOL_BLOCK, "one block");

static void lay_out(struct batch *b)
{
	u32 i;

	for (i = 0; i < BATCH; i++) {
		struct slot *s = &b->at[i];

		s->iov = (struct iovec){ s->data, sizeof(s->data) };
		b->msg[i].msg_hdr = (struct msghdr){
			.msg_name = &s->from, .msg_namelen = sizeof(s->from),
			.msg_iov = &s->iov, .msg_iovlen = 1,
			.msg_control = s->control, .msg_controllen = sizeof(s->control),
		};
	}
}

static u16 sender_port(const struct sockaddr_storage *a)
{
	return ntohs(a->ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)a)->sin6_port
					      : ((const struct sockaddr_in *)a)->sin_port);
}

/* The sender's number must name the port that the datagram came from. */
static bool ports_match(const struct rl_ud_socket *s, const struct rl_datagram *d,
		      const struct sockaddr_storage *from)
{
	return rl_qpn_port(d->to) == s->port && rl_qpn_port(d->from) == sender_port(from);
}

/*
 * lo has all of 127.0.0.0/8, its GID table only the first address. A program that answers looks up
 * there the address that the datagram was sent to.
 */
static void name_loopback(u8 to[RL_GID_LEN])
{
	const struct in6_addr *a = (const struct in6_addr *)to;

	if (IN6_IS_ADDR_V4MAPPED(a) && to[12] == IN_LOOPBACKNET)
		memcpy(to + 12, (const u8 []){ IN_LOOPBACKNET, 0, 0, 1 }, 4);
}

void *rl_ud_socket_group(const struct rl_ud_socket *s)
{
	return s->group;
}

static void deliver_to_number(struct rl_ud_socket *s, const struct rl_datagram *d,
			      const struct weft_ud_in *in)
{
	struct rl_qp *qp = rl_qp_find(d->to);

	if (!qp || !qp->ud) {
		rl_count(RL_DROP_DATAGRAMS, 1);
	} else {
		rl_ud_deliver(qp, d->qkey, in);
	}
	if (qp)
		rl_qp_put(qp);
}

static void take_datagram(struct rl_ud_socket *s, struct mmsghdr *m, struct slot *slot)
{
	struct rl_ip_header ip = { .hop_limit = 64, .len = m->msg_len };
	struct weft_ud_in in;
	struct rl_datagram d;

	if (m->msg_hdr.msg_flags & MSG_TRUNC || m->msg_len >= ROOM ||
	    !rl_datagram_read(slot->data, m->msg_len, &d) || !ports_match(s, &d, &slot->from)) {
		rl_count(RL_STRANGE_DATAGRAMS, 1);
		return;
	}
	rl_gid_of_address(&slot->from, ip.from);
	memcpy(ip.to, ip.from, sizeof(ip.to));
	rl_ip_read_control(&m->msg_hdr, &ip);
	name_loopback(ip.to);
	in = (struct weft_ud_in){
		.payload = slot->data + RL_DATAGRAM_HEADER,
		.len = m->msg_len - RL_DATAGRAM_HEADER,
		.src_qpn = d.from,
		.imm = d.imm, .imm_data = d.imm_data,
		.solicited = d.solicited,
	};
	rl_datagram_grh(in.grh, &ip);
	s->deliver(s, &d, &in);
}

/* With the lock. */
static bool read_some(struct rl_ud_socket *s, struct batch *b)
{
	long n, i;

	lay_out(b);
	n = rl_raw(SYS_recvmmsg, s->fd, b->msg, BATCH, MSG_DONTWAIT, NULL);
	rl_count(RL_RX_CALLS, 1);
	for (i = 0; i < n; i++)
		take_datagram(s, &b->msg[i], &b->at[i]);
	return n < BATCH;
}

static bool read_watched(struct rl_watch *w)
{
	struct rl_ud_socket *s = socket_of(w);
	struct batch *b;
	bool all = true;

	/* Another thread is reading it, and may leave some. */
	if (pthread_mutex_trylock(&s->lock))
		return false;
	b = s->fd >= 0 ? rl_pool_take() : NULL;
	if (b) {
		all = read_some(s, b);
		rl_pool_give(b);
	}
	pthread_mutex_unlock(&s->lock);
	return all;
}

/* ---- life ---- */

static void ud_socket_ready(struct rl_watch *w, u32 events)
{
}

/* The QPs that wait, referenced: how many. */
static u32 waiting(struct rl_ud_socket *s, struct rl_qp *qps[RL_GROUP_QPS])
{
	struct rl_ud *ud;
	u32 n = 0;

	pthread_mutex_lock(&table.lock);
	list_for_each_entry(ud, &s->uds, node)
		if (READ_ONCE(ud->waits) && n < RL_GROUP_QPS) {
			rl_qp_get(ud->qp);
			qps[n++] = ud->qp;
		}
	pthread_mutex_unlock(&table.lock);
	return n;
}

static void ud_socket_timeout(struct rl_watch *w)
{
	struct rl_qp *qps[RL_GROUP_QPS];
	u32 n = waiting(socket_of(w), qps), i;

	for (i = 0; i < n; i++) {
		rl_ud_resume(qps[i]);
		rl_qp_put(qps[i]);
	}
}

/* The CQ's epoll that waits for it is shared with the parent. */
static void ud_socket_revive(struct rl_watch *w)
{
}

static void ud_socket_release(struct rl_watch *w)
{
	struct rl_ud_socket *s = socket_of(w);

	pthread_mutex_destroy(&s->lock);
	free(s);
}

static const struct rl_watch_ops socket_ops = {
	.ready = ud_socket_ready,
	.timeout = ud_socket_timeout,
	.revive = ud_socket_revive,
	.release = ud_socket_release,
	.read = read_watched,
};

void rl_ud_socket_retry(struct rl_ud_socket *s)
{
	rl_watch_set_deadline(&s->watch, rl_now_ms() + RETRY_MS);
}

static void set_socket_option(int fd, int level, int option, int value)
{
	rl_raw(SYS_setsockopt, fd, level, option, &value, sizeof(value));
}

/* Control messages with IP's fields; and fragmentation on links with a small MTU. */
static void set_ud_options(const struct rl_ud_socket *s)
{
	set_socket_option(s->fd, SOL_SOCKET, SO_RCVBUF, RECEIVE_BUFFER);
	rl_ip_enable_control(s->fd, s->six);
	set_socket_option(s->fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DONT);
	if (s->six)
		set_socket_option(s->fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DONT);
}

struct rl_ud_socket *rl_ud_socket_new(int fd, bool six, u16 port, rl_ud_deliver_fn *deliver,
				      void *group)
{
	struct rl_ud_socket *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	rl_watch_init(&s->watch, &socket_ops);
	pthread_mutex_init(&s->lock, NULL);
	s->port = port;
	s->fd = fd;
	s->six = six;
	s->deliver = deliver;
	s->group = group;
	INIT_LIST_HEAD(&s->uds);
	if (rl_watch_begin(&s->watch)) {
		rl_watch_put(&s->watch);
		return NULL;
	}
	set_ud_options(s);
	return s;
}

static struct rl_ud_socket *open_ud_socket(u32 qpn)
{
	bool six;
	int fd = rl_port_group_udp(qpn, &six);

	return rl_ud_socket_new(fd, six, rl_qpn_port(qpn), deliver_to_number, NULL);
}

/* Removes it from the table. The table's lock. */
static void close_socket(struct rl_ud_socket *s)
{
	list_del(&s->node);
	rl_watch_end(&s->watch);
}

static struct rl_ud_socket *find_socket(u32 qpn)
{
	struct rl_ud_socket *s;

	list_for_each_entry(s, &table.sockets, node)
		if (s->port == rl_qpn_port(qpn))
			return s;
	s = open_ud_socket(qpn);
	if (s)
		list_add(&s->node, &table.sockets);
	return s;
}

/* Does a QP of @s, @ud's not being in its list, receive at the same CQ as @ud's? */
static bool socket_serves_cq(const struct rl_ud_socket *s, const struct rl_ud *ud)
{
	const struct rl_ud *other;

	list_for_each_entry(other, &s->uds, node)
		if (other->qp->rcq == ud->qp->rcq)
			return true;
	return false;
}

int rl_ud_join_socket(struct rl_ud *ud)
{
	struct rl_ud_socket *s;
	int rv = -ENOMEM;

	pthread_mutex_lock(&table.lock);
	s = find_socket(ud->qp->core.id);
	if (s)
		rv = socket_serves_cq(s, ud) ? 0 : rl_cq_add_source(ud->qp->rcq, &s->watch, s->fd);
	if (!rv) {
		ud->socket = s;
		list_add(&ud->node, &s->uds);
	} else if (s && list_empty(&s->uds)) {
		close_socket(s);
		rl_watch_put(&s->watch);
	}
	pthread_mutex_unlock(&table.lock);
	return rv;
}

/* Without the table's lock, which is taken inside the socket's. */
static void stop_reading(struct rl_ud_socket *s)
{
	pthread_mutex_lock(&s->lock);
	WRITE_ONCE(s->fd, -1);
	pthread_mutex_unlock(&s->lock);
}

void rl_ud_leave_socket(struct rl_ud *ud)
{
	struct rl_ud_socket *s = ud->socket;
	bool last;

	pthread_mutex_lock(&table.lock);
	list_del(&ud->node);
	if (!socket_serves_cq(s, ud))
		rl_cq_remove_source(ud->qp->rcq, &s->watch, s->fd);
	last = list_empty(&s->uds);
	if (last)
		close_socket(s);
	pthread_mutex_unlock(&table.lock);
	if (!last)
		return;
	stop_reading(s);
	rl_watch_put(&s->watch);
}

void rl_ud_socket_end(struct rl_ud_socket *s)
{
	rl_watch_end(&s->watch);
	stop_reading(s);
	rl_watch_put(&s->watch);
}
