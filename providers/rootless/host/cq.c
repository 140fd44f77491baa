// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Completion queues: publishing, waking, and who moves octets for them.
 *
 * The sockets of a CQ's connections are in an epoll of the CQ's own. Whoever polls the CQ and
 * finds nothing looks there and works in its own context (rl_cq_kick()); for whoever sleeps, or
 * never polls, the progress thread waits for that epoll. So that the two do not fight over every
 * packet, there is a lease: while the CQ is polled busily the progress thread looks away, and makes
 * sure every LEASE_MS that it still is. A poll that finds the CQ armed hands the lease back at
 * once: its program is about to sleep.
 *
 * A poll works for another CQ, too, that nobody polls: a program that waits at one CQ while it is
 * the target of one-sided operations at another would otherwise keep the CPU from the thread that
 * serves it.
 */
#include <stdlib.h>

#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>

#include "process/file.h"
#include "process/options.h"
#include "process/raw.h"
#include "process/stats.h"
#include "verbs.h"

#define EVENTS 64
#define LEASE_MS 2
/* Polls in a lease's time that are busy polling: one in 20 us. */
#define BUSY_POLLS 100

/* ---- completing ---- */

static void say_completion(struct rl_cq *cq)
{
	struct ib_uverbs_comp_event_desc desc = { .cq_handle = cq->o.user_handle };

	if (cq->chan)
		rl_chan_say(cq->chan, &cq->o, &cq->comp_reported, &desc, sizeof(desc));
}

/* The QPs' locks are not ours to take here: we are inside one of them. */
static void overflowed(struct rl_cq *cq)
{
	rl_context_say(cq->ctx, &cq->o, IBV_EVENT_CQ_ERR, &cq->async_reported);
	rl_watch_poke(&cq->watch);
}

void rl_cq_complete(struct rl_cq *cq, const struct weft_cqe *e)
{
	enum weft_cq_push pushed;
	struct weft_cqe stamped;

	pthread_mutex_lock(&cq->lock);
	/* Under the lock: no completion is older than the one before it. */
	if (cq->stamps) {
		stamped = *e;
		stamped.timestamp = rl_now_ns();
		stamped.flags |= WEFT_CQE_TIMESTAMP;
		e = &stamped;
	}
	pushed = weft_cqc_push(&cq->core, e);
	pthread_mutex_unlock(&cq->lock);
	if (pushed == WEFT_CQ_WAKE)
		say_completion(cq);
	else if (pushed == WEFT_CQ_OVERFLOW)
		overflowed(cq);
}

/* ---- lingering ---- */

static bool is_armed(const struct rl_cq *cq)
{
	return READ_ONCE(cq->core.q.ring->arm) != WEFT_ARM_NONE;
}

/* Without the lock a resize may unmap the ring meanwhile. */
static bool look_if_armed(struct rl_cq *cq)
{
	bool armed;

	pthread_mutex_lock(&cq->lock);
	armed = is_armed(cq);
	pthread_mutex_unlock(&cq->lock);
	return armed;
}

bool rl_cq_linger(struct rl_cq *cq, struct rl_qp *qp)
{
	bool ok;

	pthread_mutex_lock(&cq->lock);
	ok = !cq->lingerer && !is_armed(cq);
	if (ok)
		WRITE_ONCE(cq->lingerer, qp);
	pthread_mutex_unlock(&cq->lock);
	return ok;
}

void rl_cq_linger_over(struct rl_cq *cq, struct rl_qp *qp)
{
	pthread_mutex_lock(&cq->lock);
	if (cq->lingerer == qp)
		WRITE_ONCE(cq->lingerer, NULL);
	pthread_mutex_unlock(&cq->lock);
}

static struct rl_qp *get_lingerer(struct rl_cq *cq)
{
	struct rl_qp *qp;

	/* Most polls: who begins to linger just now is found by the next. */
	if (!READ_ONCE(cq->lingerer))
		return NULL;
	pthread_mutex_lock(&cq->lock);
	qp = cq->lingerer;
	if (qp)
		rl_qp_get(qp);
	pthread_mutex_unlock(&cq->lock);
	return qp;
}

/* ---- moving octets ---- */

static void look_at(struct rl_conn *c, u32 events)
{
	rl_conn_look(c, events);
	rl_conn_unlock(c);
	rl_conn_put(c);
}

/* The only connection: its socket is asked, and nobody else. */
static struct rl_conn *get_only(struct rl_cq *cq)
{
	struct rl_conn *c = NULL;

	pthread_mutex_lock(&cq->lock);
	if (cq->nconns == 1 && !cq->nsources && cq->last) {
		c = cq->last;
		rl_conn_get(c);
	}
	pthread_mutex_unlock(&cq->lock);
	return c;
}

/* The only source, where there is no connection. */
static struct rl_watch *get_only_source(struct rl_cq *cq)
{
	struct rl_watch *w = NULL;

	pthread_mutex_lock(&cq->lock);
	if (cq->nsources == 1 && !cq->nconns && cq->source) {
		w = cq->source;
		rl_watch_get(w);
	}
	pthread_mutex_unlock(&cq->lock);
	return w;
}

static bool read_source(struct rl_watch *w)
{
	bool all = !w->ops->read || w->ops->read(w);

	rl_watch_put(w);
	return all;
}

static void look_at_key(struct rl_cq *cq, u32 key, u32 events)
{
	struct rl_conn *c = rl_conn_find(key);
	struct rl_watch *w = !c && READ_ONCE(cq->nsources) ? rl_watch_find(key) : NULL;

	if (c)
		look_at(c, events);
	else if (w)
		read_source(w);
}

/* False: there may be more. */
static bool look_at_ready(struct rl_cq *cq)
{
	struct epoll_event ev[EVENTS];
	int n = rl_raw(SYS_epoll_pwait, cq->epfd, ev, EVENTS, 0, NULL, 8), i;

	for (i = 0; i < n; i++)
		look_at_key(cq, ev[i].data.u32, ev[i].events);
	/* A source may have left some. */
	return n < EVENTS && !(n > 0 && READ_ONCE(cq->nsources));
}

/* Under cq->progress. False: there may be more to do. */
static bool move_octets(struct rl_cq *cq)
{
	struct rl_watch *source = READ_ONCE(cq->nsources) ? get_only_source(cq) : NULL;
	struct rl_conn *c = source ? NULL : get_only(cq);
	bool full;

	if (source)
		return read_source(source);
	if (!c)
		return look_at_ready(cq);
	rl_conn_lock(c);
	/* TCP says when it has room worth a call; every poll would fill a little of it. */
	full = c->full;
	/* It may have gone elsewhere meanwhile. */
	look_at(c, c->place == RL_PLACE_CQS && !full ? EPOLLIN : 0);
	return full ? look_at_ready(cq) : true;
}

/* ---- the lease ---- */

static void let_thread_look(struct rl_cq *cq)
{
	rl_thread_modify(&cq->watch, cq->epfd, EPOLLIN | EPOLLET);
}

/*
 * Those who poll have the lease, or give it back if the CQ is armed. What the thread waits for
 * changes under the lock, too: else a lease that is given back just when it is taken would leave
 * the thread looking away.
 */
static void note_poll(struct rl_cq *cq)
{
	__atomic_fetch_add(&cq->polls, 1, __ATOMIC_RELAXED);
	if (!READ_ONCE(cq->leased) || !look_if_armed(cq))
		return;
	pthread_mutex_lock(&cq->lock);
	if (cq->leased)
		let_thread_look(cq);
	WRITE_ONCE(cq->leased, false);
	pthread_mutex_unlock(&cq->lock);
}

static bool is_busy(u32 polls, u64 ns)
{
	return (u64)polls * LEASE_MS * 1000000 >= ns * BUSY_POLLS;
}

bool rl_cq_is_left_alone(struct rl_cq *cq)
{
	return READ_ONCE(cq->nconns) == 1 && !READ_ONCE(cq->polled) && !look_if_armed(cq);
}

void rl_cq_looked(struct rl_cq *cq)
{
	__atomic_fetch_add(&cq->looks, 1, __ATOMIC_RELAXED);
}

/*
 * Is the CQ polled busily, by somebody who will go on? Then he has the lease. By the rate of polls
 * since this was asked last, a lease's time ago or longer; until then as it was found then.
 */
static bool lease(struct rl_cq *cq)
{
	u32 polls = __atomic_load_n(&cq->polls, __ATOMIC_RELAXED);
	u64 now = rl_now_ns(), time = now - cq->seen_at;
	bool busy;

	pthread_mutex_lock(&cq->lock);
	if (time >= LEASE_MS * 1000000 / 2) {
		u32 looks = __atomic_exchange_n(&cq->looks, 0, __ATOMIC_RELAXED);

		WRITE_ONCE(cq->polled, is_busy(polls - cq->seen, time));
		cq->busy = is_busy(polls - cq->seen + looks, time);
		cq->seen = polls;
		cq->seen_at = now;
	}
	busy = cq->busy && !is_armed(cq);
	if (busy != cq->leased)
		rl_thread_modify(&cq->watch, cq->epfd, busy ? 0 : EPOLLIN | EPOLLET);
	WRITE_ONCE(cq->leased, busy);
	pthread_mutex_unlock(&cq->lock);
	return busy;
}

/*
 * Nobody polls the CQ or waits for it: its program is the target of one-sided operations, or busy.
 * Who would rather spend a CPU than wait for the thread to wake (--spin) has it look on for a while.
 */
static void look_on(struct rl_cq *cq)
{
	u64 until = rl_now_ns() + rl_options()->spin_us * 1000ull;
	u32 polls = READ_ONCE(cq->polls);

	while (rl_cq_is_left_alone(cq) && READ_ONCE(cq->polls) == polls && rl_now_ns() < until &&
	       !rl_thread_is_wanted())
		move_octets(cq);
}

/*
 * A program may arm the CQ between our look at it and the lease: then it polls once more, and
 * finds that it has the lease to give back. @leased: it had the lease, and nothing is known to be
 * ready; if it has it no more, the thread will hear.
 */
static void look_or_lease(struct rl_cq *cq, bool leased)
{
	if (lease(cq)) {
		rl_watch_set_deadline(&cq->watch, rl_now_ms() + LEASE_MS);
		return;
	}
	if (leased)
		return;
	pthread_mutex_lock(&cq->progress);
	/* An edge tells of all that is ready; who comes next in the thread gets his turn first. */
	if (!move_octets(cq))
		let_thread_look(cq);
	if (rl_options()->spin_us)
		look_on(cq);
	pthread_mutex_unlock(&cq->progress);
}

/* ---- all CQs ---- */

static struct {
	pthread_mutex_t lock;		/* a leaf */
	struct rl_cq *first, *turn;	/* whose turn it is to be helped; NULL: the first's */
	u32 count;
} all = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void list(struct rl_cq *cq)
{
	pthread_mutex_lock(&all.lock);
	cq->next = all.first;
	cq->prev = &all.first;
	if (cq->next)
		cq->next->prev = &cq->next;
	all.first = cq;
	WRITE_ONCE(all.count, all.count + 1);
	pthread_mutex_unlock(&all.lock);
}

static void unlist(struct rl_cq *cq)
{
	pthread_mutex_lock(&all.lock);
	if (cq->prev) {
		*cq->prev = cq->next;
		if (cq->next)
			cq->next->prev = cq->prev;
		if (all.turn == cq)
			all.turn = cq->next;
		cq->prev = NULL;
		WRITE_ONCE(all.count, all.count - 1);
	}
	pthread_mutex_unlock(&all.lock);
}

/* The next in turn, referenced, if it can use help of who polls @cq; else NULL. */
static struct rl_cq *next_to_help(const struct rl_cq *cq)
{
	struct rl_cq *o;

	pthread_mutex_lock(&all.lock);
	o = all.turn ? all.turn : all.first;
	all.turn = o ? o->next : NULL;
	/* The send CQ and the receive CQ of one connection are served by each other's polls. */
	if (o && o != cq && !READ_ONCE(o->polled) &&
	    ((READ_ONCE(o->nconns) && READ_ONCE(o->last) != READ_ONCE(cq->last)) ||
	     (READ_ONCE(o->nsources) && READ_ONCE(o->source) != READ_ONCE(cq->source))))
		rl_watch_get(&o->watch);
	else
		o = NULL;
	pthread_mutex_unlock(&all.lock);
	return o;
}

static void help_another(const struct rl_cq *cq)
{
	struct rl_cq *o = READ_ONCE(all.count) > 1 ? next_to_help(cq) : NULL;

	if (!o)
		return;
	if (!pthread_mutex_trylock(&o->progress)) {
		move_octets(o);
		pthread_mutex_unlock(&o->progress);
	}
	rl_cq_looked(o);
	rl_watch_put(&o->watch);
}

void rl_cq_kick(struct rl_cq *cq)
{
	struct rl_qp *lingerer = get_lingerer(cq);

	rl_count(RL_POLLS, 1);
	if (lingerer) {
		rl_qp_kick(lingerer);
		rl_qp_put(lingerer);
	}
	if (!pthread_mutex_trylock(&cq->progress)) {
		move_octets(cq);
		pthread_mutex_unlock(&cq->progress);
	}
	help_another(cq);
	note_poll(cq);
}

/* ---- connections ---- */

static int control(struct rl_cq *cq, int op, struct rl_conn *c, u32 events)
{
	struct epoll_event ev = { .events = events, .data.u32 = c->watch.key };

	return rl_raw(SYS_epoll_ctl, cq->epfd, op, c->fd, &ev);
}

int rl_cq_add_conn(struct rl_cq *cq, struct rl_conn *c, u32 events)
{
	int rv = control(cq, EPOLL_CTL_ADD, c, events);
	struct rl_conn *old;

	if (rv)
		return rv;
	rl_conn_get(c);
	pthread_mutex_lock(&cq->lock);
	WRITE_ONCE(cq->nconns, cq->nconns + 1);
	old = cq->last;
	WRITE_ONCE(cq->last, c);
	pthread_mutex_unlock(&cq->lock);
	if (old)
		rl_conn_put(old);
	return 0;
}

/*
 * Linux says nothing of room that TCP has by now if it has said something of the socket that
 * nobody fetched by epoll_wait(), as who knows the only socket does not: so the thread looks anew.
 */
void rl_cq_modify_conn(struct rl_cq *cq, struct rl_conn *c, u32 events)
{
	control(cq, EPOLL_CTL_MOD, c, events);
	if (events & EPOLLOUT && !READ_ONCE(cq->leased))
		let_thread_look(cq);
}

void rl_cq_remove_conn(struct rl_cq *cq, struct rl_conn *c)
{
	bool was_last;

	control(cq, EPOLL_CTL_DEL, c, 0);
	pthread_mutex_lock(&cq->lock);
	WRITE_ONCE(cq->nconns, cq->nconns - 1);
	was_last = cq->last == c;
	if (was_last)
		WRITE_ONCE(cq->last, NULL);
	pthread_mutex_unlock(&cq->lock);
	/* Its caller has a reference of its own. */
	if (was_last)
		rl_conn_put(c);
}

/* ---- sources ---- */

int rl_cq_add_source(struct rl_cq *cq, struct rl_watch *w, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u32 = w->key };
	int rv = rl_raw(SYS_epoll_ctl, cq->epfd, EPOLL_CTL_ADD, fd, &ev);
	struct rl_watch *old;

	if (rv)
		return rv;
	rl_watch_get(w);
	pthread_mutex_lock(&cq->lock);
	WRITE_ONCE(cq->nsources, cq->nsources + 1);
	old = cq->source;
	WRITE_ONCE(cq->source, w);
	pthread_mutex_unlock(&cq->lock);
	if (old)
		rl_watch_put(old);
	return 0;
}

void rl_cq_remove_source(struct rl_cq *cq, struct rl_watch *w, int fd)
{
	struct epoll_event ev = { 0 };
	bool was_last;

	rl_raw(SYS_epoll_ctl, cq->epfd, EPOLL_CTL_DEL, fd, &ev);
	pthread_mutex_lock(&cq->lock);
	WRITE_ONCE(cq->nsources, cq->nsources - 1);
	was_last = cq->source == w;
	if (was_last)
		WRITE_ONCE(cq->source, NULL);
	pthread_mutex_unlock(&cq->lock);
	if (was_last)
		rl_watch_put(w);
}

/* ---- life ---- */

static struct rl_cq *cq_of(struct rl_watch *w)
{
	return container_of(w, struct rl_cq, watch);
}

static void ready(struct rl_watch *w, u32 events)
{
	rl_count(RL_WAKES, 1);
	look_or_lease(cq_of(w), false);
}

static void timeout(struct rl_watch *w)
{
	struct rl_cq *cq = cq_of(w);

	if (cq->core.overflow)
		rl_qp_fail_users(cq);
	if (READ_ONCE(cq->leased))
		look_or_lease(cq, true);
}

static void release(struct rl_watch *w)
{
	struct rl_cq *cq = cq_of(w);

	if (cq->epfd >= 0)
		rl_fd_close_hidden(cq->epfd);
	if (cq->chan)
		rl_chan_put(cq->chan);
	pthread_mutex_destroy(&cq->progress);
	pthread_mutex_destroy(&cq->lock);
	free(cq);
}

static void revive(struct rl_watch *w)
{
	rl_thread_add(w, cq_of(w)->epfd, EPOLLIN | EPOLLET);
}

static const struct rl_watch_ops cq_watch_ops = {
	.revive = revive,
	.ready = ready,
	.timeout = timeout,
	.release = release,
};

static int start_watching(struct rl_cq *cq)
{
	int rv, fd = rl_raw(SYS_epoll_create1, EPOLL_CLOEXEC);

	cq->epfd = fd < 0 ? fd : rl_fd_hide(fd);
	if (cq->epfd < 0)
		return cq->epfd;
	rv = rl_watch_begin(&cq->watch);
	return rv ?: rl_thread_add(&cq->watch, cq->epfd, EPOLLIN | EPOLLET);
}

int rl_cq_new(struct rl_context *ctx, u32 entries, struct rl_chan *chan, struct rl_cq **out)
{
	struct rl_cq *cq = calloc(1, sizeof(*cq));
	int rv;

	if (!cq)
		return -ENOMEM;
	cq->o.kind = RL_CQ;
	cq->ctx = ctx;
	cq->epfd = -1;
	pthread_mutex_init(&cq->lock, NULL);
	pthread_mutex_init(&cq->progress, NULL);
	rl_watch_init(&cq->watch, &cq_watch_ops);
	rv = rl_ring_alloc(ctx, &cq->ring, entries);
	if (!rv) {
		weft_cqc_init(&cq->core, cq->ring.mem, entries);
		rv = start_watching(cq);
	}
	if (rv) {
		rl_cq_stop(cq);
		rl_cq_destroy(cq);
		return rv;
	}
	cq->chan = chan;
	if (chan)
		rl_chan_get(chan);
	list(cq);
	*out = cq;
	return 0;
}

static struct weft_ring no_ring;

/* The progress thread may be in a call of its own yet: that finds no connection, and this ring. */
void rl_cq_stop(struct rl_cq *cq)
{
	unlist(cq);
	rl_watch_end(&cq->watch);
	if (cq->epfd >= 0)
		rl_thread_remove(cq->epfd);
	pthread_mutex_lock(&cq->lock);
	cq->core.q.ring = &no_ring;
	pthread_mutex_unlock(&cq->lock);
	if (cq->chan)
		rl_chan_drop(cq->chan, &cq->o);
	rl_context_forget(cq->ctx, &cq->o);
}

void rl_cq_destroy(struct rl_cq *cq)
{
	rl_ring_free(cq->ctx, &cq->ring);
	rl_watch_put(&cq->watch);
}

/* The program has been told of the new ring before it counts. */
int rl_cq_resize(struct rl_cq *cq, u32 entries, struct weft_resize_cq_resp *resp)
{
	struct weft_ring_move move = { .slots = entries };
	struct rl_ring ring;
	int rv = rl_ring_alloc(cq->ctx, &ring, entries);
	struct rl_ring old = ring;

	if (rv)
		return rv;
	move.mem = ring.mem;
	rl_ring_describe(&ring, entries, 1, &resp->cq);
	pthread_mutex_lock(&cq->lock);
	do {
		weft_ring_move_copy(&move);
		rv = weft_cqc_move(&cq->core, &move);
	} while (rv == -EAGAIN);
	if (!rv) {
		old = cq->ring;
		cq->ring = ring;
	}
	pthread_mutex_unlock(&cq->lock);
	rl_ring_free(cq->ctx, &old);
	return rv;
}
