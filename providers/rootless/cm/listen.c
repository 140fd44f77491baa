// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Listeners. Each accepted connection (accept.h) gets an id at once, as a request (request.h). */
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <infiniband/verbs.h>

#include "host/accept.h"
#include "host/budget.h"
#include "id.h"
#include "request.h"
#include "ud.h"
#include "process/file.h"
#include "process/raw.h"
#include "host/qp.h"

/* The kernel's limit; also the default. */
#define BACKLOG_MAX	1024
/* The program's backlog does not limit half-open connections. */
#define TCP_QUEUE_MIN	128

struct rl_listener {
	struct rl_acceptor acceptor;	/* first: the references */
	u16 ps;
	u8 qp_type;

	/* the table's lock */
	struct rl_cmid *id;		/* NULL: it does not listen any more */
	struct rl_requests requests;
};

static struct rl_listener *listener_of(struct rl_acceptor *a)
{
	return container_of(a, struct rl_listener, acceptor);
}

static struct rl_listener *parent_of(const struct rl_cmid *child)
{
	return child->parent ? container_of(child->parent, struct rl_listener, requests) : NULL;
}

/* ---- requests; with the table's lock ---- */

void rl_cm_move_requests(struct rl_cmid *id, struct rl_chan *to)
{
	struct rl_cmid *child;

	if (!id->listener)
		return;
	list_for_each_entry(child, &id->listener->requests.ids, sibling) {
		if (child->request_state != RL_REQUEST_QUEUED)
			continue;
		rl_chan_get(to);
		rl_chan_put(child->chan);
		child->chan = to;
	}
}

static int queue_request(struct rl_listener *l, struct rl_cmid *child,
			 const struct rl_cm_event_data *w)
{
	int rv;

	if (!l || !l->id)
		return -ECONNABORTED;
	if (!rl_request_has_room(&l->requests, child))
		return rl_request_wait(&l->requests, child) ? -ENOBUFS : -ECONNABORTED;
	rv = rl_cmid_report_request(l->id, child, w);
	if (rv)
		return rv;
	rl_request_queued(&l->requests, child);
	return 0;
}

/* The first waiting request, referenced. NULL: none. */
static struct rl_cmid *first_in_line(struct rl_listener *l)
{
	struct rl_cmid *first;

	rl_cmid_table_lock();
	first = rl_request_first_waiting(&l->requests);
	if (first)
		rl_cmid_get(first);
	rl_cmid_table_unlock();
	return first;
}

/* ---- what a connection tells ---- */

static int listener_ask_program(struct rl_conn *c)
{
	const struct rl_profile *p = ((const struct rl_cmid *)c->user)->dev->about;
	const struct weft_mpa_frame *f = &c->link.st.frame;
	/* The program's depths follow from the peer's. RFC 5044 carries none. */
	const u16 none = WEFT_MPA_NO_NEGOTIATION;
	const struct rl_cm_event_data w = {
		.event = RL_CM_CONNECT_REQUEST,
		.initiator_depth = rl_cm_depth(f->enhanced ? f->ird : none, p->max_qp_init_rd_atom),
		.responder_resources = rl_cm_depth(f->enhanced ? f->ord : none, p->max_qp_rd_atom),
		.pd = c->link.st.pd,
		.pd_len = f->pd_len,
	};
	struct rl_cmid *id = c->user;
	int rv;

	rl_cmid_table_lock();
	rv = queue_request(parent_of(id), id, &w);
	rl_cmid_table_unlock();
	return rv;
}

static void listener_report_request(struct rl_conn *c)
{
	int rv = c->user ? listener_ask_program(c) : -ECONNABORTED;

	if (!rv)
		weft_link_ulp_was_asked(&c->link);
	if (!rv || (rv == -ENOBUFS && weft_link_ulp_is_full(&c->link, rl_now_ms()))) {
		rl_acceptor_remove_half_open(c);
		rl_budget_unread(c);
		return;
	}
	/* It stays half-open until it ends. */
	rl_cmid_leave(c);
	rl_conn_reject(c, NULL, 0);
}

static bool is_waiting(const struct rl_cmid *child)
{
	bool waits;

	rl_cmid_table_lock();
	waits = child->request_state == RL_REQUEST_WAITING;
	rl_cmid_table_unlock();
	return waits;
}

/* False: there is still no room, or no request waits. */
static bool ask_for_one(struct rl_listener *l)
{
	struct rl_cmid *child = first_in_line(l);
	struct rl_conn *c = child ? rl_cmid_lock_conn(child) : NULL;
	bool asked = false;

	if (c) {
		listener_report_request(c);
		asked = !is_waiting(child);
		rl_conn_unlock(c);
		rl_conn_put(c);
	}
	if (child)
		rl_cmid_put(child);
	return asked;
}

/* ---- accepting ---- */

/* The id of a request on @c; NULL: out of memory, or the listener does not exist any more. */
static struct rl_cmid *new_request(struct rl_listener *l, struct rl_conn *c)
{
	struct rl_cmid *child = rl_cmid_new(l->ps, l->qp_type);

	if (!child)
		return NULL;
	rl_conn_names(c, &child->src, &child->dst);
	child->dev = rl_device_of_address((struct sockaddr *)&child->src);
	child->phase = RL_CM_REQUEST;
	c->dev = child->dev;
	rl_cmid_join(child, c);
	rl_cmid_table_lock();
	rl_request_enter(&l->requests, child);
	rl_cmid_table_unlock();
	return child;
}

static bool listener_adopt(struct rl_acceptor *a, struct rl_conn *c)
{
	struct rl_cmid *child = new_request(listener_of(a), c);
	bool wanted = child && child->dev;

	if (!wanted)
		rl_cmid_leave(c);
	if (child)
		rl_cmid_put(child);
	return wanted;
}

/* ---- the acceptor's calls ---- */

static void listener_timeout(struct rl_acceptor *a)
{
	while (ask_for_one(listener_of(a)))
		;
}

static void listener_release(struct rl_acceptor *a)
{
	rl_acceptor_fini(a);
	free(listener_of(a));
}

static const struct rl_conn_ulp passive_ulp = {
	.configure = rl_cm_configure,
	.failed = rl_cm_report_failed,
	.request = listener_report_request,
	.ended = rl_cm_report_ended,
	.dead = rl_cm_report_dead,
};

static const struct rl_acceptor_ops listener_ops = {
	.ulp = &passive_ulp,
	.adopt = listener_adopt,
	.timeout = listener_timeout,
	.release = listener_release,
};

/* ---- the end of a listener ---- */

/* Removes a request from the list: referenced, or NULL. */
static struct rl_cmid *listener_take_request(struct rl_listener *l, enum rl_request_state *state)
{
	struct rl_cmid *child;

	rl_cmid_table_lock();
	child = list_first_entry_or_null(&l->requests.ids, struct rl_cmid, sibling);
	if (child) {
		rl_cmid_get(child);
		*state = child->request_state;
		rl_request_leave(child);
	}
	rl_cmid_table_unlock();
	return child;
}

/* Requests that the program has seen get a deadline, since it may have forgotten them. */
static void drop_or_orphan(struct rl_cmid *child, bool drop)
{
	struct rl_conn *c = rl_cmid_lock_conn(child);

	if (!c)
		return;
	if (drop) {
		rl_cmid_leave(c);
		rl_conn_abandon(c);
	} else {
		weft_link_orphan(&c->link, rl_now_ms());
	}
	rl_conn_unlock(c);
	rl_conn_put(c);
}

/* The program has not seen its event yet. */
static void listener_drop_unseen(struct rl_cmid *child)
{
	rl_cmid_unlist(child);
	rl_cm_end_connection(child);
	rl_cmid_put(child);
}

static void drop_requests(struct rl_listener *l)
{
	enum rl_request_state state;
	struct rl_cmid *child;

	while ((child = listener_take_request(l, &state))) {
		if (state == RL_REQUEST_QUEUED)
			listener_drop_unseen(child);
		else
			drop_or_orphan(child, state != RL_REQUEST_TAKEN);
		rl_cmid_put(child);
	}
}

/* Nothing is accepted any more when this returns. */
static void close_listener(struct rl_listener *l)
{
	rl_cmid_table_lock();
	l->id = NULL;
	rl_cmid_table_unlock();
	rl_acceptor_stop(&l->acceptor);
}

void rl_cm_stop_listening(struct rl_cmid *id)
{
	struct rl_listener *l = id->listener;

	id->listener = NULL;
	close_listener(l);
	drop_requests(l);
	rl_watch_put(&l->acceptor.watch);
}

/* ---- the beginning ---- */

static struct rl_listener *new_listener(struct rl_cmid *id, u32 backlog)
{
	struct rl_listener *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	rl_acceptor_init(&l->acceptor, &listener_ops);
	l->ps = id->ps;
	l->qp_type = id->qp_type;
	rl_requests_init(&l->requests, &l->acceptor.watch, backlog);
	l->id = id;
	return l;
}

static int start_listening(struct rl_listener *l, int fd, u32 backlog)
{
	int on = 1;

	/* Lets a later listener bind while this one's connections are still closing. */
	rl_raw(SYS_setsockopt, fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	return rl_acceptor_start(&l->acceptor, fd, max_t(u32, backlog, TCP_QUEUE_MIN));
}

static int bind_to_any(struct rl_cmid *id)
{
	const struct sockaddr_storage any = { .ss_family = AF_INET };

	return rl_cm_bind(id, &any);
}

static int listen_for_connections(struct rl_cmid *id, u32 backlog)
{
	struct rl_listener *l = new_listener(id, backlog);
	int rv;

	if (!l)
		return -ENOMEM;
	rv = start_listening(l, id->sock, backlog);
	if (rv) {
		rl_watch_put(&l->acceptor.watch);
		return rv;
	}
	id->sock = -1;
	id->listener = l;
	return 0;
}

int rl_cm_listen(struct rl_cmid *id, u32 backlog)
{
	int rv = 0;

	if (!backlog || backlog > BACKLOG_MAX)
		backlog = BACKLOG_MAX;
	if (id->phase == RL_CM_IDLE)
		rv = bind_to_any(id);
	if (rv)
		return rv;
	if (id->phase != RL_CM_BOUND)
		return -EINVAL;
	rv = id->qp_type == IBV_QPT_UD ? rl_sidr_server_open(id, backlog) :
					 listen_for_connections(id, backlog);
	if (!rv)
		id->phase = RL_CM_LISTEN;
	return rv;
}
