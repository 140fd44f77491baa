// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A listener of datagrams. Each SIDR request becomes a request of the program, with an id of its
 * own, and one event. The peer repeats it until it has a reply: answered requests are remembered,
 * and get the same reply again. What peers can use up is capped: requests that the program has not
 * seen, by its backlog; the remembered ones; and a reply is not longer than the request.
 */
#include <netinet/in.h>
#include <stdlib.h>

#include <infiniband/verbs.h>

#include "sidr.h"
#include "ud.h"
#include "devices/device.h"
#include "process/file.h"
#include "roce/ip.h"
#include "process/raw.h"
#include "process/stats.h"
#include "host/qp.h"

/* Datagrams read in one go. */
#define ROUND		64
#define ANSWERED_MAX	1024

struct rl_sidr_request {
	struct list_head node;
	struct rl_sidr_server *server;
	struct rl_cmid *child;		/* referenced; NULL: answered */
	struct sockaddr_storage from;
	u8 to[RL_GID_LEN];		/* our address that the peer sent to */
	u64 number;
	u8 answer[RL_SIDR_LEN];
};

/* The oldest first. */
struct queue {
	struct list_head list;
	u32 n;
};

struct rl_sidr_server {
	struct rl_watch watch;		/* first: the references; one is the open socket's */

	/* rdma_cm's lock */
	struct rl_cmid *id;		/* NULL: it does not listen any more */
	int fd;				/* hidden; -1: closed */
	u16 ps, port;
	bool six;
	u32 backlog;
	struct queue open, answered;
};

static struct rl_sidr_server *server_of(struct rl_watch *w)
{
	return container_of(w, struct rl_sidr_server, watch);
}

/* ---- queues ---- */

static void init_queue(struct queue *q)
{
	INIT_LIST_HEAD(&q->list);
	q->n = 0;
}

static void queue_append(struct queue *to, struct rl_sidr_request *q)
{
	list_add_tail(&q->node, &to->list);
	to->n++;
}

static void queue_take(struct queue *from, struct rl_sidr_request *q)
{
	list_del(&q->node);
	from->n--;
}

static void forget_oldest(struct queue *answered)
{
	struct rl_sidr_request *q = list_first_entry(&answered->list, struct rl_sidr_request, node);

	queue_take(answered, q);
	free(q);
}

static struct rl_sidr_request *queue_find(const struct queue *in,
					  const struct sockaddr_storage *from, u64 number)
{
	struct rl_sidr_request *q;

	list_for_each_entry(q, &in->list, node)
		if (q->number == number && !memcmp(&q->from, from, sizeof(*from)))
			return q;
	return NULL;
}

/* ---- answers ---- */

/* To the requester, from the address that it sent to. A lost reply is asked for again. */
static void sidr_server_send_reply(const struct rl_sidr_server *d, const struct rl_sidr_request *q)
{
	u8 control[RL_IP_CONTROL] __attribute__((aligned(8)));
	struct sockaddr_storage to = q->from;
	struct iovec iov = { (void *)q->answer, sizeof(q->answer) };
	struct msghdr m = {
		.msg_name = &to, .msg_namelen = rl_addr_len(&to),
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control,
	};

	rl_ip_put_source(&m, d->six, q->to, 0);
	rl_raw(SYS_sendmsg, d->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Closes the socket once no listener and no unanswered request is left. */
static void close_if_idle(struct rl_sidr_server *d)
{
	if (d->id || d->open.n)
		return;
	while (d->answered.n)
		forget_oldest(&d->answered);
	rl_thread_remove(d->fd);
	rl_fd_close_hidden(d->fd);
	d->fd = -1;
	rl_watch_end(&d->watch);
	rl_watch_put(&d->watch);
}

static void reply(struct rl_cmid *child, struct rl_sidr_msg *a)
{
	struct rl_sidr_request *q = child->sidr_request;
	struct rl_sidr_server *d = q->server;

	a->kind = RL_SIDR_REPLY;
	a->ps = d->ps;
	a->number = q->number;
	rl_sidr_write(q->answer, a);
	sidr_server_send_reply(d, q);
	child->phase = RL_CM_ANSWERED;
	child->sidr_request = NULL;
	q->child = NULL;
	queue_take(&d->open, q);
	queue_append(&d->answered, q);
	if (d->answered.n > ANSWERED_MAX)
		forget_oldest(&d->answered);
	close_if_idle(d);
	rl_cmid_put(child);
}

static bool is_datagrams(u32 qpn)
{
	struct rl_qp *qp = rl_qp_find(qpn);
	bool yes = qp && qp->ud;

	if (qp)
		rl_qp_put(qp);
	return yes;
}

int rl_sidr_server_accept(struct rl_cmid *child, u64 uid, const struct rdma_ucm_conn_param *p)
{
	struct rl_sidr_msg a = {
		.status = RL_SIDR_VALID, .qpn = p->qp_num, .len = p->private_data_len,
	};

	if (!p->valid || !is_datagrams(p->qp_num))
		return -EINVAL;
	a.qkey = p->qkey ? p->qkey : RL_CM_QKEY;
	memcpy(a.data, p->private_data, a.len);
	rl_cmid_table_lock();
	child->uid = uid;
	rl_cmid_table_unlock();
	reply(child, &a);
	return 0;
}

int rl_sidr_server_reject(struct rl_cmid *child, const void *pd, u32 pd_len)
{
	struct rl_sidr_msg a = { .status = RL_SIDR_REJECTED, .len = pd_len };

	if (pd_len)
		memcpy(a.data, pd, pd_len);
	reply(child, &a);
	return 0;
}

/* ---- questions ---- */

/* The table's lock. */
static u32 count_unseen(const struct rl_sidr_server *d)
{
	const struct rl_sidr_request *q;
	u32 n = 0;

	list_for_each_entry(q, &d->open.list, node)
		n += q->child->request_state == RL_REQUEST_QUEUED;
	return n;
}

static int sidr_server_ask_program(struct rl_sidr_server *d, struct rl_cmid *child,
				   const struct rl_sidr_msg *a)
{
	struct rdma_ucm_ud_param ud = { .private_data_len = (u8)a->len };
	const struct rl_cm_event_data w = { .event = RL_CM_CONNECT_REQUEST, .ud = &ud };
	int rv = -ENOBUFS;

	memcpy(ud.private_data, a->data, a->len);
	rl_cmid_table_lock();
	if (count_unseen(d) < d->backlog)
		rv = rl_cmid_report_request(d->id, child, &w);
	if (!rv)
		child->request_state = RL_REQUEST_QUEUED;
	rl_cmid_table_unlock();
	return rv;
}

static void set_addresses(struct rl_cmid *child, const struct rl_sidr_server *d,
			  const struct rl_sidr_request *q, u32 ifindex)
{
	struct sockaddr_in6 own = { .sin6_family = AF_INET6, .sin6_scope_id = ifindex };
	u8 from[RL_GID_LEN];

	memcpy(&own.sin6_addr, q->to, sizeof(own.sin6_addr));
	child->dev = rl_device_of_address((struct sockaddr *)&own);
	if (!child->dev)
		return;
	rl_gid_of_address(&q->from, from);
	rl_gid_to_address(child->dev, q->to, d->port, &child->src);
	rl_gid_to_address(child->dev, from, rl_addr_port(&q->from), &child->dst);
}

static int make_request(struct rl_sidr_server *d, struct rl_sidr_request *q,
			const struct rl_sidr_msg *a, u32 ifindex)
{
	struct rl_cmid *child = rl_cmid_new(d->ps, IBV_QPT_UD);
	int rv;

	if (!child)
		return -ENOMEM;
	child->phase = RL_CM_REQUEST;
	set_addresses(child, d, q, ifindex);
	rv = child->dev ? sidr_server_ask_program(d, child, a) : -ENODEV;
	if (rv) {
		rl_cmid_put(child);
		return rv;
	}
	q->child = child;
	child->sidr_request = q;
	queue_append(&d->open, q);
	return 0;
}

static void take_new(struct rl_sidr_server *d, const struct sockaddr_storage *from,
		     const struct rl_ip_header *ip, const struct rl_sidr_msg *a)
{
	struct rl_sidr_request *q = d->id ? calloc(1, sizeof(*q)) : NULL;

	if (q) {
		q->server = d;
		q->from = *from;
		q->number = a->number;
		memcpy(q->to, ip->to, sizeof(q->to));
	}
	/* A later repetition may find room. */
	if (!q || make_request(d, q, a, ip->ifindex)) {
		rl_count(RL_DROP_DATAGRAMS, 1);
		free(q);
	}
}

static void take_request(struct rl_sidr_server *d, const struct sockaddr_storage *from,
			 const struct rl_ip_header *ip, const struct rl_sidr_msg *a)
{
	const struct rl_sidr_request *q = queue_find(&d->answered, from, a->number);

	if (q)
		sidr_server_send_reply(d, q);
	else if (!queue_find(&d->open, from, a->number))
		take_new(d, from, ip, a);
}

/* False: no more to read. */
static bool sidr_server_read_one(struct rl_sidr_server *d)
{
	u8 buf[RL_SIDR_LEN + 1], control[RL_IP_ROOM] __attribute__((aligned(8)));
	struct sockaddr_storage from = { 0 };
	struct iovec iov = { buf, sizeof(buf) };
	struct msghdr m = {
		.msg_name = &from, .msg_namelen = sizeof(from),
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct rl_ip_header ip = { 0 };
	struct rl_sidr_msg a;
	long n = rl_raw(SYS_recvmsg, d->fd, &m, MSG_DONTWAIT);

	if (n < 0)
		return false;
	rl_ip_read_control(&m, &ip);
	if (rl_sidr_read(buf, (u32)n, &a) && a.kind == RL_SIDR_REQUEST && a.ps == d->ps)
		take_request(d, &from, &ip, &a);
	else
		rl_count(RL_STRANGE_DATAGRAMS, 1);
	return true;
}

/* ---- the progress thread's calls ---- */

static void sidr_server_ready(struct rl_watch *w, u32 events)
{
	struct rl_sidr_server *d = server_of(w);
	u32 i;

	rl_cm_lock();
	for (i = 0; i < ROUND && d->fd >= 0 && sidr_server_read_one(d); i++)
		;
	rl_cm_unlock();
}

static void sidr_server_timeout(struct rl_watch *w)
{
}

static void sidr_server_revive(struct rl_watch *w)
{
	struct rl_sidr_server *d = server_of(w);

	rl_cm_lock();
	if (d->fd >= 0)
		rl_thread_add(w, d->fd, EPOLLIN);
	rl_cm_unlock();
}

static void sidr_server_release(struct rl_watch *w)
{
	free(server_of(w));
}

static const struct rl_watch_ops server_ops = {
	.ready = sidr_server_ready,
	.timeout = sidr_server_timeout,
	.revive = sidr_server_revive,
	.release = sidr_server_release,
};

/* ---- life ---- */

int rl_sidr_server_open(struct rl_cmid *id, u32 backlog)
{
	struct rl_sidr_server *d = calloc(1, sizeof(*d));
	int rv;

	if (!d)
		return -ENOMEM;
	rl_watch_init(&d->watch, &server_ops);
	d->ps = id->ps;
	d->port = rl_addr_port(&id->src);
	d->six = id->src.ss_family == AF_INET6;
	d->backlog = backlog;
	init_queue(&d->open);
	init_queue(&d->answered);
	rl_ip_enable_control(id->sock, d->six);
	d->fd = id->sock;
	d->id = id;
	rv = rl_watch_begin(&d->watch);
	if (!rv)
		rv = rl_thread_add(&d->watch, d->fd, EPOLLIN);
	if (rv) {
		rl_watch_end(&d->watch);
		rl_watch_put(&d->watch);
		return rv;
	}
	id->sock = -1;
	id->sidr_server = d;
	return 0;
}

/* A request that the program has not seen; NULL: none. */
static struct rl_cmid *first_unseen(struct rl_sidr_server *d)
{
	struct rl_cmid *child = NULL;
	struct rl_sidr_request *q;

	rl_cmid_table_lock();
	list_for_each_entry(q, &d->open.list, node) {
		if (q->child->request_state == RL_REQUEST_QUEUED) {
			child = q->child;
			break;
		}
	}
	rl_cmid_table_unlock();
	return child;
}

/* The program has not seen its event yet. */
static void sidr_server_drop_unseen(struct rl_cmid *child)
{
	rl_cmid_unlist(child);
	rl_sidr_server_reject(child, NULL, 0);
	rl_cmid_put(child);
}

void rl_sidr_server_close(struct rl_cmid *id)
{
	struct rl_sidr_server *d = id->sidr_server;
	struct rl_cmid *child;

	id->sidr_server = NULL;
	while ((child = first_unseen(d)))
		sidr_server_drop_unseen(child);
	d->id = NULL;
	close_if_idle(d);
}

void rl_sidr_server_move_requests(struct rl_cmid *id, struct rl_chan *to)
{
	struct rl_sidr_request *q;

	list_for_each_entry(q, &id->sidr_server->open.list, node)
		if (q->child->request_state == RL_REQUEST_QUEUED) {
			rl_chan_get(to);
			rl_chan_put(q->child->chan);
			q->child->chan = to;
		}
}
