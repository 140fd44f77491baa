// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Listeners: they accept TCP's connections, each of which gets an id at once, as a request of the
 * listener's. The backlog bounds how many may wait for the program; those behind them wait, in the order
 * of their MPA Requests, until it has taken one. Strangers can have as many as they like of both that
 * wait and that say nothing: a listener puts up with so many.
 */
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "cm.h"
#include "cm_id.h"
#include "file.h"
#include "raw.h"
#include "verbs.h"

/* Connections that are accepted in one go. */
#define ACCEPT_ROUND	16
/* Of which the MPA Request is to come: then the oldest is asked to go. */
#define SILENT_MAX	256
/* For which the program has no room: those beyond are refused. */
#define WAITING_MAX	256
/* When there was no memory or no descriptor to accept with. */
#define ACCEPT_RETRY_MS	100
/* The kernel's, too: of those that ask for more, or do not say. */
#define BACKLOG_MAX	1024
/* The program's backlog is no measure of how many strangers may come at once. */
#define TCP_QUEUE_MIN	128

struct rl_listener {
	struct rl_watch watch;		/* first: the references */
	u16 ps;
	u8 qp_type;
	u32 backlog;

	pthread_mutex_t lock;
	int fd;				/* lock; hidden; -1: it listens no more */

	/* the table's lock */
	struct rl_cmid *id;		/* NULL: it listens no more */
	struct rl_cmid *requests;
	u32 awaited;			/* requests of which the MPA Request is to come */
	u32 room;			/* requests that may yet wait for the program */
	u32 waiting;			/* requests for which there is no room */
	u64 turns;			/* that were given to them so far */
};

static struct rl_listener *listener_of(struct rl_watch *w)
{
	return container_of(w, struct rl_listener, watch);
}

/* ---- requests; with the table's lock ---- */

static void enter_listener(struct rl_listener *l, struct rl_cmid *child)
{
	rl_watch_get(&l->watch);
	child->parent = l;
	child->asking = RL_ASKING_PEER;
	child->next = l->requests;
	child->prev = &l->requests;
	if (child->next)
		child->next->prev = &child->next;
	l->requests = child;
	l->awaited++;
}

/* There is room for one more, and perhaps one that waits for it. */
static void make_room(struct rl_listener *l)
{
	l->room++;
	if (l->waiting)
		rl_watch_poke(&l->watch);
}

/* @child is counted no more as what it was. */
static void stop_counting(struct rl_listener *l, const struct rl_cmid *child)
{
	if (child->asking == RL_ASKING_PEER)
		l->awaited--;
	else if (child->asking == RL_ASKING_WAITING)
		l->waiting--;
	else if (child->asking == RL_ASKING_QUEUED)
		make_room(l);
}

void rl_cm_leave_listener(struct rl_cmid *child)
{
	struct rl_listener *l = child->parent;

	if (!l)
		return;
	child->parent = NULL;
	*child->prev = child->next;
	if (child->next)
		child->next->prev = child->prev;
	stop_counting(l, child);
	child->asking = RL_ASKING_PROGRAM;
	rl_watch_put(&l->watch);
}

void rl_cm_request_taken(struct rl_cmid *child)
{
	if (child->parent && child->asking == RL_ASKING_QUEUED)
		make_room(child->parent);
	child->asking = RL_ASKING_PROGRAM;
}

void rl_cm_move_requests(struct rl_cmid *id, struct rl_chan *to)
{
	struct rl_cmid *child;

	if (!id->listener)
		return;
	for (child = id->listener->requests; child; child = child->next) {
		if (child->asking != RL_ASKING_QUEUED)
			continue;
		rl_chan_get(to);
		rl_chan_put(child->chan);
		child->chan = to;
	}
}

static int queue_request(struct rl_listener *l, struct rl_cmid *child, const struct rl_cm_words *w)
{
	int rv;

	if (!l || !l->id)
		return -ECONNABORTED;
	/* Those that wait already come first. */
	if (!l->room || (l->waiting && child->asking != RL_ASKING_WAITING))
		return -ENOBUFS;
	rv = rl_cmid_say_request(l->id, child, w);
	if (rv)
		return rv;
	stop_counting(l, child);
	child->asking = RL_ASKING_QUEUED;
	l->room--;
	return 0;
}

/* False: there are too many, or nobody listens. */
static bool wait_for_room(struct rl_listener *l, struct rl_cmid *child)
{
	if (!l || !l->id)
		return false;
	if (child->asking == RL_ASKING_WAITING)
		return true;
	if (l->waiting >= WAITING_MAX)
		return false;
	stop_counting(l, child);
	child->asking = RL_ASKING_WAITING;
	child->turn = ++l->turns;
	l->waiting++;
	return true;
}

/* The one that is first, or the oldest that says nothing; referenced. NULL: none. */
static struct rl_cmid *first_that_is(struct rl_listener *l, enum rl_cm_asking what)
{
	struct rl_cmid *child, *first = NULL;

	rl_cmid_table_lock();
	for (child = l->requests; child; child = child->next)
		if (child->asking == what && (!first || child->turn <= first->turn))
			first = child;
	if (first)
		rl_cmid_get(first);
	rl_cmid_table_unlock();
	return first;
}

/* ---- what a connection tells ---- */

static int ask_program(struct rl_conn *c)
{
	const struct weft_mpa_frame *f = &c->link.st.frame;
	/* The program's depths follow from the peer's. RFC 5044 tells none. */
	const struct rl_cm_words w = {
		.event = RL_CM_CONNECT_REQUEST,
		.initiator_depth = f->enhanced ? rl_cm_depth(f->ird) : RL_MAX_IRD,
		.responder_resources = f->enhanced ? rl_cm_depth(f->ord) : RL_MAX_ORD,
		.pd = c->link.st.pd,
		.pd_len = f->pd_len,
	};
	int rv;

	rl_cmid_table_lock();
	rv = queue_request(c->id->parent, c->id, &w);
	if (rv == -ENOBUFS && !wait_for_room(c->id->parent, c->id))
		rv = -ECONNABORTED;
	rl_cmid_table_unlock();
	return rv;
}

void rl_cm_tell_request(struct rl_conn *c)
{
	int rv = c->id ? ask_program(c) : -ECONNABORTED;
	struct weft_tcp_view v;

	if (!rv)
		weft_link_ulp_was_asked(&c->link);
	if (!rv || (rv == -ENOBUFS && weft_link_ulp_is_full(&c->link, rl_now_ms())))
		return;
	rl_cmid_leave(c);
	rl_conn_view(c, &v);
	rl_conn_act(c, weft_link_reject(&c->link, NULL, 0, &v, rl_now_ms()));
}

static bool is_waiting(const struct rl_cmid *child)
{
	bool waits;

	rl_cmid_table_lock();
	waits = child->asking == RL_ASKING_WAITING;
	rl_cmid_table_unlock();
	return waits;
}

/* False: there is still no room, or nobody waits. */
static bool ask_for_one(struct rl_listener *l)
{
	struct rl_cmid *child = first_that_is(l, RL_ASKING_WAITING);
	struct rl_conn *c = child ? rl_cmid_lock_conn(child) : NULL;
	bool asked = false;

	if (c) {
		rl_cm_tell_request(c);
		asked = !is_waiting(child);
		rl_conn_unlock(c);
		rl_conn_put(c);
	}
	if (child)
		rl_cmid_put(child);
	return asked;
}

/* ---- accepting ---- */

/* The id of a request on @c; NULL: no memory, or the listener has gone. */
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
	enter_listener(l, child);
	rl_cmid_table_unlock();
	return child;
}

static void adopt(struct rl_listener *l, int fd)
{
	struct rl_conn *c = rl_conn_new(NULL, false, fd);
	struct rl_cmid *child;

	if (!c)
		return;
	child = new_request(l, c);
	rl_conn_configure(c);
	if (child && child->dev) {
		weft_link_await_request(&c->link, rl_now_ms());
		/* A Request that is there already has its turn behind those before it. */
		rl_conn_watch(c);
	} else {
		rl_cmid_leave(c);
		rl_conn_abandon(c);
	}
	rl_conn_unlock(c);
	rl_conn_put(c);
	if (child)
		rl_cmid_put(child);
}

static void evict(struct rl_cmid *child)
{
	struct rl_conn *c = rl_cmid_lock_conn(child);
	struct weft_tcp_view v;

	if (!c)
		return;
	rl_conn_receive(c);
	rl_conn_view(c, &v);
	rl_conn_act(c, weft_link_evict(&c->link, &v));
	rl_conn_unlock(c);
	rl_conn_put(c);
}

/* For one more that says nothing. */
static void make_way(struct rl_listener *l)
{
	struct rl_cmid *oldest;

	if (READ_ONCE(l->awaited) < SILENT_MAX)
		return;
	oldest = first_that_is(l, RL_ASKING_PEER);
	if (!oldest)
		return;
	evict(oldest);
	rl_cmid_put(oldest);
}

/* 0: one was; -EAGAIN: there is none; other errors: not now. */
static int accept_one(struct rl_listener *l)
{
	int fd;

	do
		fd = rl_raw(SYS_accept4, l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	while (fd == -ECONNABORTED || fd == -EINTR);
	if (fd < 0)
		return fd;
	make_way(l);
	adopt(l, fd);
	return 0;
}

static void stop_accepting(struct rl_listener *l)
{
	rl_thread_modify(&l->watch, l->fd, 0);
}

/* With the listener's lock. */
static void accept_some(struct rl_listener *l)
{
	int i, rv = 0;

	for (i = 0; i < ACCEPT_ROUND && !rv; i++)
		rv = accept_one(l);
	if (rv && rv != -EAGAIN) {
		stop_accepting(l);
		rl_watch_set_deadline(&l->watch, rl_now_ms() + ACCEPT_RETRY_MS);
	}
}

static void ready(struct rl_watch *w, u32 events)
{
	struct rl_listener *l = listener_of(w);

	pthread_mutex_lock(&l->lock);
	if (l->fd >= 0)
		accept_some(l);
	pthread_mutex_unlock(&l->lock);
}

/* There is room again, or perhaps memory. */
static void timeout(struct rl_watch *w)
{
	struct rl_listener *l = listener_of(w);

	pthread_mutex_lock(&l->lock);
	if (l->fd >= 0) {
		rl_thread_modify(w, l->fd, EPOLLIN);
		accept_some(l);
	}
	pthread_mutex_unlock(&l->lock);
	while (ask_for_one(l))
		;
}

static void revive(struct rl_watch *w)
{
	struct rl_listener *l = listener_of(w);

	pthread_mutex_lock(&l->lock);
	if (l->fd >= 0)
		rl_thread_add(w, l->fd, EPOLLIN);
	pthread_mutex_unlock(&l->lock);
}

static void release(struct rl_watch *w)
{
	struct rl_listener *l = listener_of(w);

	pthread_mutex_destroy(&l->lock);
	free(l);
}

static const struct rl_watch_ops listener_watch_ops = {
	.revive = revive,
	.ready = ready,
	.timeout = timeout,
	.release = release,
};

/* ---- the end of a listener ---- */

/* Takes a request off the list: referenced, or NULL. */
static struct rl_cmid *take_request(struct rl_listener *l, enum rl_cm_asking *asking)
{
	struct rl_cmid *child;

	rl_cmid_table_lock();
	child = l->requests;
	if (child) {
		rl_cmid_get(child);
		*asking = child->asking;
		rl_cm_leave_listener(child);
	}
	rl_cmid_table_unlock();
	return child;
}

/* Those that the program has get a while, for perhaps it has forgotten them. */
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

static void drop_requests(struct rl_listener *l)
{
	enum rl_cm_asking asking;
	struct rl_cmid *child;

	while ((child = take_request(l, &asking))) {
		if (asking == RL_ASKING_QUEUED)
			rl_cm_destroy(child);
		else
			drop_or_orphan(child, asking != RL_ASKING_PROGRAM);
		rl_cmid_put(child);
	}
}

/* Nothing is accepted any more when this returns. */
static void close_listener(struct rl_listener *l)
{
	rl_cmid_table_lock();
	l->id = NULL;
	rl_cmid_table_unlock();
	pthread_mutex_lock(&l->lock);
	rl_thread_remove(l->fd);
	/* A child of fork() may have the socket, too. */
	rl_raw(SYS_shutdown, l->fd, SHUT_RDWR);
	rl_fd_close_hidden(l->fd);
	l->fd = -1;
	pthread_mutex_unlock(&l->lock);
	rl_watch_end(&l->watch);
}

void rl_cm_stop_listening(struct rl_cmid *id)
{
	struct rl_listener *l = id->listener;

	id->listener = NULL;
	close_listener(l);
	drop_requests(l);
	rl_watch_put(&l->watch);
}

/* ---- the beginning ---- */

static struct rl_listener *new_listener(struct rl_cmid *id, u32 backlog)
{
	struct rl_listener *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	rl_watch_init(&l->watch, &listener_watch_ops);
	pthread_mutex_init(&l->lock, NULL);
	l->ps = id->ps;
	l->qp_type = id->qp_type;
	l->backlog = backlog;
	l->room = backlog;
	l->id = id;
	l->fd = id->sock;
	return l;
}

static int start_listening(struct rl_listener *l)
{
	int on = 1, rv;

	/* A later listener shall not mind what is left of this one's connections. */
	rl_raw(SYS_setsockopt, l->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	rv = rl_raw(SYS_listen, l->fd, max_t(u32, l->backlog, TCP_QUEUE_MIN));
	if (rv)
		return rv;
	rv = rl_watch_begin(&l->watch);
	if (rv)
		return rv;
	pthread_mutex_lock(&l->lock);
	rv = rl_thread_add(&l->watch, l->fd, EPOLLIN);
	if (rv)
		l->fd = -1;
	pthread_mutex_unlock(&l->lock);
	if (rv)
		rl_watch_end(&l->watch);
	return rv;
}

static int bind_to_any(struct rl_cmid *id)
{
	const struct sockaddr_storage any = { .ss_family = AF_INET };

	return rl_cm_bind(id, &any);
}

int rl_cm_listen(struct rl_cmid *id, u32 backlog)
{
	struct rl_listener *l;
	int rv = 0;

	if (!backlog || backlog > BACKLOG_MAX)
		backlog = BACKLOG_MAX;
	if (id->phase == RL_CM_IDLE)
		rv = bind_to_any(id);
	if (rv)
		return rv;
	if (id->phase != RL_CM_BOUND)
		return -EINVAL;
	l = new_listener(id, backlog);
	if (!l)
		return -ENOMEM;
	rv = start_listening(l);
	if (rv) {
		rl_watch_put(&l->watch);
		return rv;
	}
	id->sock = -1;
	id->listener = l;
	id->phase = RL_CM_LISTEN;
	return 0;
}
