// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Which thread moves octets for a CQ.
 *
 * The sockets of a CQ's connections are in an epoll of the CQ's own. A poll that finds the CQ empty
 * checks that epoll and works in its own context (rl_cq_kick()). For a program that sleeps or never
 * polls, the progress thread waits for that epoll. A lease keeps the two from fighting over every
 * packet: while the CQ is polled busily the progress thread looks away, and checks every LEASE_MS
 * that it still is. A poll that finds the CQ armed returns the lease at once: its program is about
 * to sleep. The pollers of one CQ of a QP have the lease of the other, too, unless that is armed.
 *
 * A thread that waits at the CQ's channel polls that epoll, too, and works itself (chan.h). It has
 * the lease while it waits, and once or twice LEASE_MS after that: most come back sooner.
 *
 * A poll also works for another CQ that is not polled: a program that waits at one CQ while it is
 * the target of one-sided operations at another would otherwise keep the CPU from the thread that
 * serves that one.
 */
#include <poll.h>

#include "conn.h"
#include "judge/judge.h"
#include "cq.h"
#include "process/options.h"
#include "process/raw.h"
#include "process/stats.h"
#include "qp.h"

#define EVENTS 64
#define LEASE_MS 2
/* So many polls during a lease are busy polling: one in 20 us. */
#define BUSY_POLLS 100

/* ---- moving octets ---- */

/* False: there was nothing to do. */
static bool handle_conn_events(struct rl_conn *c, u32 events)
{
	bool had_room = events & EPOLLOUT && c->full;
	u32 news = c->news;

	rl_conn_handle_events(c, events);
	news -= c->news;
	rl_conn_unlock(c);
	rl_conn_put(c);
	return news || had_room;
}

/* The only connection: its socket is read without asking the epoll. */
static struct rl_conn *get_only(struct rl_cq *cq)
{
	struct rl_conn *c = NULL;

	rl_lock(&cq->lock);
	if (cq->nconns == 1 && !cq->nsources && cq->last) {
		c = cq->last;
		rl_conn_get(c);
	}
	rl_unlock(&cq->lock);
	return c;
}

/* The only source, if there is no connection. */
static struct rl_watch *get_only_source(struct rl_cq *cq)
{
	struct rl_watch *w = NULL;

	rl_lock(&cq->lock);
	if (cq->nsources == 1 && !cq->nconns && cq->source) {
		w = cq->source;
		rl_watch_get(w);
	}
	rl_unlock(&cq->lock);
	return w;
}

/* False: there may be more. */
static bool read_source(struct rl_watch *w)
{
	bool all = !w->ops->read || w->ops->read(w);

	rl_watch_put(w);
	return all;
}

/* False: there was nothing to do; or it is a source, which does not tell. */
static bool handle_key_events(struct rl_cq *cq, u32 key, u32 events)
{
	struct rl_conn *c = rl_conn_find(key);
	struct rl_watch *w = !c && READ_ONCE(cq->nsources) ? rl_watch_find(key) : NULL;

	if (c)
		return handle_conn_events(c, events);
	if (w)
		read_source(w);
	return false;
}

/* How many were ready; *@done: there was something to do for one. */
static int handle_ready(struct rl_cq *cq, bool *done)
{
	struct epoll_event ev[EVENTS];
	int n = rl_raw(SYS_epoll_pwait, cq->epfd, ev, EVENTS, 0, NULL, 8), i;

	*done = false;
	for (i = 0; i < n; i++)
		*done |= handle_key_events(cq, ev[i].data.u32, ev[i].events);
	return n;
}

/* False: there may be more. *@done: as above. */
static bool poll_ready(struct rl_cq *cq, bool *done)
{
	int n = handle_ready(cq, done);

	/* A source may have left some. */
	return n < EVENTS && !(n > 0 && READ_ONCE(cq->nsources));
}

/* The only connection's octets, of a CQ whose epoll says that something is ready. */
static bool read_only_conn(struct rl_cq *cq)
{
	struct rl_conn *c = get_only(cq);

	if (!c)
		return false;
	rl_conn_lock(c);
	return handle_conn_events(c, c->poller == RL_POLLER_CQS && !c->full ? EPOLLIN : 0);
}

/* Under cq->progress. False: there may be more to do. *@done: there was something, or perhaps. */
static bool move_octets(struct rl_cq *cq, bool *done)
{
	struct rl_watch *source = READ_ONCE(cq->nsources) ? get_only_source(cq) : NULL;
	struct rl_conn *c = source ? NULL : get_only(cq);
	bool full;

	*done = source;
	if (source)
		return read_source(source);
	if (!c)
		return poll_ready(cq, done);
	rl_conn_lock(c);
	/* The epoll reports room that is worth a call; every poll would fill a little of it. */
	full = c->full;
	/* Its poller may have changed meanwhile. */
	*done = handle_conn_events(c, c->poller == RL_POLLER_CQS && !full ? EPOLLIN : 0);
	return full ? poll_ready(cq, done) : true;
}

/* ---- the lease ---- */

static void end_lease(struct rl_cq *cq)
{
	WRITE_ONCE(cq->served, false);
	WRITE_ONCE(cq->leased, false);
	WRITE_ONCE(cq->waited_for, false);
	cq->waited = false;
}

static void return_lease(struct rl_cq *cq)
{
	rl_lock(&cq->lock);
	if (cq->leased)
		rl_cq_rearm_thread(cq);
	rl_cq_unpark(cq);
	end_lease(cq);
	rl_unlock(&cq->lock);
}

/* In a child, whose epoll is its parent's: the parent may have ended before it reads again. */
void rl_cq_end_leases(struct rl_cq *cq)
{
	rl_lock(&cq->lock);
	cq->wait = 0;
	rl_cq_unpark(cq);
	end_lease(cq);
	rl_unlock(&cq->lock);
}

/*
 * Returns the lease if the CQ is armed. The thread's events change under the lock, too: otherwise
 * a lease that is returned just as it is taken would leave the thread looking away.
 */
static void note_poll(struct rl_cq *cq)
{
	/* Two that poll at once may count one: it is a measure. */
	__atomic_store_n(&cq->polls, __atomic_load_n(&cq->polls, __ATOMIC_RELAXED) + 1,
			 __ATOMIC_RELAXED);
	if (!READ_ONCE(cq->leased) || READ_ONCE(cq->waited_for) || !rl_cq_is_armed(cq))
		return;
	return_lease(cq);
}

static bool is_busy(u32 polls, u64 ns)
{
	return (u64)polls * LEASE_MS * 1000000 >= ns * BUSY_POLLS;
}

/* When the lease is judged again. A thread that waits says when it ends. CQ's lock. */
static void set_end_of_lease(struct rl_cq *cq)
{
	if (!cq->wait)
		rl_cq_wake_at(cq, rl_now_ms() + LEASE_MS);
}

/*
 * Is the CQ polled busily? Then its pollers get the lease. Judged by the rate of polls since the
 * last judgement, which stands for half a lease.
 */
static bool judge_polls(struct rl_cq *cq)
{
	u32 polls = __atomic_load_n(&cq->polls, __ATOMIC_RELAXED), looks;
	u64 now = rl_now_ns(), time = now - cq->seen_at;

	if (time >= LEASE_MS * 1000000 / 2) {
		looks = __atomic_exchange_n(&cq->looks, 0, __ATOMIC_RELAXED);
		WRITE_ONCE(cq->polled, is_busy(polls - cq->seen, time));
		cq->busy = is_busy(polls - cq->seen + looks, time);
		cq->seen = polls;
		cq->seen_at = now;
	}
	return cq->busy && READ_ONCE(cq->core.q.ring->arm) == WEFT_ARM_NONE;
}

/*
 * A ping-pong polls its send CQ only for completions, so that it never seems to be polled busily.
 * Pollers of the other CQ of all its connections serve this one, too. CQ's lock: a connection keeps
 * both CQs.
 */
static bool is_served_by_other(const struct rl_cq *cq)
{
	return cq->other && !cq->nsources && READ_ONCE(cq->other->served) &&
	       READ_ONCE(cq->core.q.ring->arm) == WEFT_ARM_NONE;
}

static bool lease(struct rl_cq *cq)
{
	bool busy, waited_for;

	rl_lock(&cq->lock);
	waited_for = cq->wait || cq->waited;
	cq->waited = false;
	WRITE_ONCE(cq->served, judge_polls(cq) || waited_for);
	busy = cq->served || is_served_by_other(cq);
	if (busy != cq->leased)
		rl_thread_modify(&cq->watch, cq->epfd, busy ? 0 : EPOLLIN | EPOLLET);
	WRITE_ONCE(cq->leased, busy);
	WRITE_ONCE(cq->waited_for, waited_for);
	if (busy && !waited_for)
		rl_cq_park(cq);
	else
		rl_cq_unpark(cq);
	if (busy)
		set_end_of_lease(cq);
	rl_unlock(&cq->lock);
	return busy;
}

/*
 * The CQ is neither polled nor waited for: its program is the target of one-sided operations, or
 * busy. With --spin the thread looks on for a while instead of sleeping.
 */
static void spin(struct rl_cq *cq)
{
	u64 until = rl_now_ns() + rl_options()->spin_us * 1000ull;
	u32 polls = READ_ONCE(cq->polls);
	bool done;

	while (rl_cq_is_unattended(cq) && READ_ONCE(cq->polls) == polls && rl_now_ns() < until &&
	       !rl_thread_is_wanted())
		move_octets(cq, &done);
}

/*
 * A program may arm the CQ between our check and the lease: then it polls once more, and returns
 * the lease. @leased: it had the lease, and nothing is known to be ready. If the lease has ended,
 * the thread gets an event.
 */
static void poll_or_lease(struct rl_cq *cq, bool leased)
{
	bool done;

	if (lease(cq) || leased)
		return;
	rl_lock(&cq->progress);
	/* One edge stands for all that is ready: get another, after the thread's other work. */
	if (!move_octets(cq, &done))
		rl_cq_rearm_thread(cq);
	if (rl_options()->spin_us)
		spin(cq);
	rl_unlock(&cq->progress);
}

void rl_cq_thread_poll(struct rl_cq *cq)
{
	rl_count(RL_WAKES, 1);
	poll_or_lease(cq, false);
}

void rl_cq_renew_lease(struct rl_cq *cq)
{
	if (READ_ONCE(cq->leased))
		poll_or_lease(cq, true);
}

/* ---- threads that wait at the channel ---- */

static struct rl_cq *cq_of_source(struct rl_chan_source *s)
{
	return container_of(s, struct rl_cq, source_of_events);
}

static void source_get(struct rl_chan_source *s)
{
	rl_watch_get(&cq_of_source(s)->watch);
}

static void source_put(struct rl_chan_source *s)
{
	rl_watch_put(&cq_of_source(s)->watch);
}

static void source_begin(struct rl_chan_source *s, u32 wait)
{
	struct rl_cq *cq = cq_of_source(s);

	rl_lock(&cq->lock);
	cq->wait = wait;
	if (!cq->leased)
		rl_thread_modify(&cq->watch, cq->epfd, 0);
	rl_cq_unpark(cq);
	WRITE_ONCE(cq->leased, true);
	WRITE_ONCE(cq->served, true);
	WRITE_ONCE(cq->waited_for, true);
	set_end_of_lease(cq);
	rl_unlock(&cq->lock);
}

/* Most come back soon: the progress thread looks away for a while yet. */
static void source_end(struct rl_chan_source *s, u32 wait, bool others)
{
	struct rl_cq *cq = cq_of_source(s);
	bool was;

	rl_lock(&cq->lock);
	was = cq->wait == wait;
	if (was)
		cq->wait = 0;
	cq->waited = was && !others;
	if (cq->waited)
		set_end_of_lease(cq);
	rl_unlock(&cq->lock);
	if (was && others)
		return_lease(cq);
}

/* By events if there are no octets: of room, or of an end. */
static bool source_work(struct rl_chan_source *s)
{
	struct rl_cq *cq = cq_of_source(s);
	bool done;

	rl_lock(&cq->progress);
	done = read_only_conn(cq);
	if (!done)
		handle_ready(cq, &done);
	rl_unlock(&cq->progress);
	return done;
}

/* Under the lock a completion is added and its event decided on, both or neither. */
static void source_sleep(struct rl_chan_source *s)
{
	struct rl_cq *cq = cq_of_source(s);
	const struct weft_ring *ring;
	u32 n;

	rl_lock(&cq->lock);
	ring = cq->core.q.ring;
	n = READ_ONCE(ring->arm) == WEFT_ARM_NEXT ? cq->core.q.idx - READ_ONCE(ring->user_idx) : 0;
	rl_unlock(&cq->lock);
	if (n && n <= cq->core.q.slots)
		rl_judge_sleeps(cq->ctx, cq->o.handle, n);
}

const struct rl_chan_source_ops rl_cq_source_ops = {
	.get = source_get, .put = source_put, .sleep = source_sleep,
	.begin = source_begin, .end = source_end, .work = source_work,
};

/* ---- all CQs ---- */

/* A look is a call of TCP: so many polls, at most, leave out a CQ that had nothing to do. */
#define SKIP_MAX 15

static struct {
	struct rl_lock lock;		/* a leaf */
	struct list_head cqs, *turn;	/* the next to be helped; the head: the first */
	u32 count;
} all = {
	.cqs = LIST_HEAD_INIT(all.cqs),
	.turn = &all.cqs,
};

void rl_cq_enlist(struct rl_cq *cq)
{
	rl_lock(&all.lock);
	list_add(&cq->node, &all.cqs);
	WRITE_ONCE(all.count, all.count + 1);
	rl_unlock(&all.lock);
}

void rl_cq_delist(struct rl_cq *cq)
{
	rl_lock(&all.lock);
	if (!list_empty(&cq->node)) {
		if (all.turn == &cq->node)
			all.turn = cq->node.next;
		list_del_init(&cq->node);
		WRITE_ONCE(all.count, all.count - 1);
	}
	rl_unlock(&all.lock);
}

/* all.lock */
static bool is_due(struct rl_cq *o)
{
	if (!o->skip)
		return true;
	o->skip--;
	return false;
}

static void set_due(struct rl_cq *o, bool done)
{
	rl_lock(&all.lock);
	o->skipped = done ? 0 : min_t(u32, 2 * o->skipped + 1, SKIP_MAX);
	o->skip = o->skipped;
	rl_unlock(&all.lock);
}

/* The next in turn, referenced, if a poller of @cq can help it; else NULL. */
static struct rl_cq *next_to_help(const struct rl_cq *cq)
{
	struct rl_cq *o = NULL;

	rl_lock(&all.lock);
	if (all.turn == &all.cqs)
		all.turn = all.cqs.next;
	if (all.turn != &all.cqs) {
		o = list_entry(all.turn, struct rl_cq, node);
		all.turn = all.turn->next;
	}
	/* Polls of a connection's send CQ serve its receive CQ anyway, and vice versa. */
	if (o && o != cq && !READ_ONCE(o->polled) &&
	    ((READ_ONCE(o->nconns) && READ_ONCE(o->last) != READ_ONCE(cq->last)) ||
	     (READ_ONCE(o->nsources) && READ_ONCE(o->source) != READ_ONCE(cq->source))) &&
	    is_due(o))
		rl_watch_get(&o->watch);
	else
		o = NULL;
	rl_unlock(&all.lock);
	return o;
}

static void help_another(const struct rl_cq *cq)
{
	struct rl_cq *o = READ_ONCE(all.count) > 1 ? next_to_help(cq) : NULL;
	bool done;

	if (!o)
		return;
	if (rl_lock_try(&o->progress)) {
		move_octets(o, &done);
		rl_unlock(&o->progress);
		set_due(o, done);
	}
	rl_cq_note_look(o);
	rl_watch_put(&o->watch);
}

static struct rl_qp *get_lingerer(struct rl_cq *cq)
{
	struct rl_qp *qp;

	/* The common case. A QP that begins to linger now is found by the next poll. */
	if (!READ_ONCE(cq->lingerer))
		return NULL;
	rl_lock(&cq->lock);
	qp = cq->lingerer;
	if (qp)
		rl_qp_get(qp);
	rl_unlock(&cq->lock);
	return qp;
}

void rl_cq_kick(struct rl_cq *cq)
{
	struct rl_qp *lingerer = get_lingerer(cq);
	bool done = false;

	rl_count(RL_POLLS, 1);
	if (lingerer) {
		rl_qp_kick(lingerer);
		rl_qp_put(lingerer);
	}
	if (rl_lock_try(&cq->progress)) {
		move_octets(cq, &done);
		rl_unlock(&cq->progress);
	}
	/* What has come is for the program, which waits. */
	if (!done || !(READ_ONCE(cq->polls) % (SKIP_MAX + 1)))
		help_another(cq);
	note_poll(cq);
}
