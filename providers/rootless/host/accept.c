// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <poll.h>
#include <sys/socket.h>

#include "accept.h"
#include "budget.h"
#include "process/file.h"
#include "process/raw.h"

/* Connections that are accepted in one go. */
#define ACCEPT_ROUND	16
#define HALF_OPEN_MAX	256
/* After a lack of memory or descriptors. */
#define ACCEPT_RETRY_MS	100

static const struct rl_watch_ops acceptor_watch_ops;

static struct rl_acceptor *acceptor_of(struct rl_watch *w)
{
	return container_of(w, struct rl_acceptor, watch);
}

/* ---- half-open connections ---- */

static void add_half_open(struct rl_acceptor *a, struct rl_conn *c)
{
	rl_watch_get(&a->watch);
	rl_conn_get(c);
	pthread_mutex_lock(&a->half_open_lock);
	c->acceptor = a;
	list_add_tail(&c->half_open_node, &a->half_open);
	a->half_open_cap.n++;
	pthread_mutex_unlock(&a->half_open_lock);
}

void rl_acceptor_remove_half_open(struct rl_conn *c)
{
	struct rl_acceptor *a = c->acceptor;

	if (!a)
		return;
	c->acceptor = NULL;
	pthread_mutex_lock(&a->half_open_lock);
	list_del(&c->half_open_node);
	a->half_open_cap.n--;
	pthread_mutex_unlock(&a->half_open_lock);
	rl_watch_put(&a->watch);
	rl_conn_put(c);
}

/* The oldest, referenced; NULL: there is none, or with @capped, fewer than the cap. */
static struct rl_conn *oldest(struct rl_acceptor *a, bool capped)
{
	struct rl_conn *c = NULL;

	pthread_mutex_lock(&a->half_open_lock);
	if (!list_empty(&a->half_open) && (!capped || weft_cap_is_reached(&a->half_open_cap)))
		c = list_first_entry(&a->half_open, struct rl_conn, half_open_node);
	if (c)
		rl_conn_get(c);
	pthread_mutex_unlock(&a->half_open_lock);
	return c;
}

/* Makes room for one more. */
static void evict_oldest(struct rl_acceptor *a)
{
	struct rl_conn *c = oldest(a, true);

	if (!c)
		return;
	rl_conn_lock(c);
	if (c->acceptor == a)
		rl_budget_evict(c);
	rl_conn_unlock(c);
	rl_conn_put(c);
}

void rl_acceptor_drop_half_open(struct rl_acceptor *a)
{
	struct rl_conn *c;

	while ((c = oldest(a, false))) {
		rl_conn_lock(c);
		rl_acceptor_remove_half_open(c);
		rl_conn_act(c, weft_link_kill(&c->link));
		rl_conn_unlock(c);
		rl_conn_put(c);
	}
}

/* ---- accepting; with the acceptor's lock ---- */

static void acceptor_adopt(struct rl_acceptor *a, int fd)
{
	struct rl_conn *c = rl_conn_new(NULL, false, fd, a->ops->ulp);

	if (!c)
		return;
	rl_conn_configure(c);
	add_half_open(a, c);
	rl_budget_enter(c);
	if (a->ops->adopt(a, c)) {
		weft_link_await_request(&c->link, rl_now_ms());
		/* The progress thread reads a Request that is already there. */
		rl_conn_watch(c);
		rl_conn_update_cable(c);
	} else {
		rl_conn_abandon(c);
	}
	rl_conn_unlock(c);
	rl_conn_put(c);
}

static bool has_peer_waiting(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct timespec now = {};

	return rl_raw(SYS_ppoll, &p, 1, &now, NULL, 0) > 0;
}

/* 0: there is room; -EAGAIN: none wants it; -EMFILE: peers have to wait. */
static int make_room_for(struct rl_acceptor *a)
{
	if (likely(!rl_budget_is_spent()))
		return 0;
	if (!has_peer_waiting(a->fd))
		return -EAGAIN;
	return rl_budget_make_room() ? 0 : -EMFILE;
}

/* 0: accepted one; -EAGAIN: none is waiting; other errors: not now. */
static int accept_one(struct rl_acceptor *a)
{
	int fd = make_room_for(a);

	if (fd)
		return fd;
	do
		fd = rl_raw(SYS_accept4, a->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	while (fd == -ECONNABORTED || fd == -EINTR);
	if (fd >= 0)
		fd = rl_fd_hide(fd);
	if (fd < 0)
		return fd;
	evict_oldest(a);
	acceptor_adopt(a, fd);
	return 0;
}

static void accept_some(struct rl_acceptor *a)
{
	int i, rv = 0;

	for (i = 0; i < ACCEPT_ROUND && !rv; i++)
		rv = accept_one(a);
	if (rv && rv != -EAGAIN) {
		rl_thread_modify(&a->watch, a->fd, 0);
		rl_watch_set_deadline(&a->watch, rl_now_ms() + ACCEPT_RETRY_MS);
	}
}

/* ---- the progress thread's calls ---- */

static void acceptor_ready(struct rl_watch *w, u32 events)
{
	struct rl_acceptor *a = acceptor_of(w);

	pthread_mutex_lock(&a->lock);
	if (a->fd >= 0)
		accept_some(a);
	pthread_mutex_unlock(&a->lock);
}

/* There may be descriptors or memory again. */
static void acceptor_timeout(struct rl_watch *w)
{
	struct rl_acceptor *a = acceptor_of(w);

	pthread_mutex_lock(&a->lock);
	if (a->fd >= 0) {
		rl_thread_modify(w, a->fd, EPOLLIN);
		accept_some(a);
	}
	pthread_mutex_unlock(&a->lock);
	if (a->ops->timeout)
		a->ops->timeout(a);
}

static void acceptor_revive(struct rl_watch *w)
{
	struct rl_acceptor *a = acceptor_of(w);

	pthread_mutex_lock(&a->lock);
	if (a->fd >= 0)
		rl_thread_add(w, a->fd, EPOLLIN);
	pthread_mutex_unlock(&a->lock);
}

static void acceptor_release(struct rl_watch *w)
{
	struct rl_acceptor *a = acceptor_of(w);

	a->ops->release(a);
}

static const struct rl_watch_ops acceptor_watch_ops = {
	.revive = acceptor_revive,
	.ready = acceptor_ready,
	.timeout = acceptor_timeout,
	.release = acceptor_release,
};

/* ---- life ---- */

void rl_acceptor_init(struct rl_acceptor *a, const struct rl_acceptor_ops *ops)
{
	rl_watch_init(&a->watch, &acceptor_watch_ops);
	a->ops = ops;
	pthread_mutex_init(&a->lock, NULL);
	pthread_mutex_init(&a->half_open_lock, NULL);
	a->fd = -1;
	INIT_LIST_HEAD(&a->half_open);
	a->half_open_cap = (struct weft_cap) { .most = HALF_OPEN_MAX };
}

void rl_acceptor_fini(struct rl_acceptor *a)
{
	pthread_mutex_destroy(&a->half_open_lock);
	pthread_mutex_destroy(&a->lock);
}

int rl_acceptor_start(struct rl_acceptor *a, int fd, u32 backlog)
{
	int rv = rl_raw(SYS_listen, fd, backlog);

	if (rv)
		return rv;
	rv = rl_watch_begin(&a->watch);
	if (rv)
		return rv;
	pthread_mutex_lock(&a->lock);
	rv = rl_thread_add(&a->watch, fd, EPOLLIN);
	if (!rv)
		a->fd = fd;
	pthread_mutex_unlock(&a->lock);
	if (rv)
		rl_watch_end(&a->watch);
	return rv;
}

void rl_acceptor_stop(struct rl_acceptor *a)
{
	pthread_mutex_lock(&a->lock);
	rl_thread_remove(a->fd);
	/* A child of fork() may hold the socket, too: closing would not stop it. */
	rl_raw(SYS_shutdown, a->fd, SHUT_RDWR);
	rl_fd_close_hidden(a->fd);
	a->fd = -1;
	pthread_mutex_unlock(&a->lock);
	rl_watch_end(&a->watch);
}
