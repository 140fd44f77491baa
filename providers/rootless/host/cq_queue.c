// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A CQ's completions, its lingering QP, and the descriptors by which its QPs receive. */
#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>

#include "conn.h"
#include "cq.h"
#include "process/raw.h"

/* ---- completing ---- */

static void report_completion(struct rl_cq *cq)
{
	struct ib_uverbs_comp_event_desc desc = { .cq_handle = cq->o.user_handle };

	if (cq->chan)
		rl_chan_report(cq->chan, &cq->o, &cq->comp_reported, &desc, sizeof(desc));
}

/* The caller may hold a QP's lock: the progress thread fails the QPs. */
static void overflowed(struct rl_cq *cq)
{
	rl_context_report(cq->ctx, &cq->o, IBV_EVENT_CQ_ERR, &cq->async_reported);
	rl_watch_poke(&cq->watch);
}

enum weft_cq_push rl_cq_push(struct rl_cq *cq, const struct weft_cqe *e)
{
	struct weft_cqe stamped;

	/* Under the lock: no completion is older than the one before it. */
	if (cq->stamps) {
		stamped = *e;
		stamped.timestamp = rl_now_ns();
		stamped.flags |= WEFT_CQE_TIMESTAMP;
		e = &stamped;
	}
	return weft_cqc_push(&cq->core, e);
}

void rl_cq_pushed(struct rl_cq *cq, enum weft_cq_push pushed)
{
	if (pushed == WEFT_CQ_WAKE)
		report_completion(cq);
	else if (pushed == WEFT_CQ_OVERFLOW)
		overflowed(cq);
}

void rl_cq_complete(struct rl_cq *cq, const struct weft_cqe *e)
{
	enum weft_cq_push pushed;

	rl_lock(&cq->lock);
	pushed = rl_cq_push(cq, e);
	rl_unlock(&cq->lock);
	rl_cq_pushed(cq, pushed);
}

/* ---- lingering ---- */

static bool is_armed(const struct rl_cq *cq)
{
	return READ_ONCE(cq->core.q.ring->arm) != WEFT_ARM_NONE;
}

/* Without the lock a resize may unmap the ring meanwhile. */
bool rl_cq_is_armed(struct rl_cq *cq)
{
	bool armed;

	rl_lock(&cq->lock);
	armed = is_armed(cq);
	rl_unlock(&cq->lock);
	return armed;
}

bool rl_cq_linger(struct rl_cq *cq, struct rl_qp *qp)
{
	bool ok;

	rl_lock(&cq->lock);
	ok = !cq->lingerer && !is_armed(cq);
	if (ok)
		WRITE_ONCE(cq->lingerer, qp);
	rl_unlock(&cq->lock);
	return ok;
}

void rl_cq_linger_over(struct rl_cq *cq, struct rl_qp *qp)
{
	rl_lock(&cq->lock);
	if (cq->lingerer == qp)
		WRITE_ONCE(cq->lingerer, NULL);
	rl_unlock(&cq->lock);
}

/* ---- polling ---- */

bool rl_cq_is_unattended(struct rl_cq *cq)
{
	return READ_ONCE(cq->nconns) == 1 && !READ_ONCE(cq->polled) && !rl_cq_is_armed(cq);
}

void rl_cq_note_look(struct rl_cq *cq)
{
	__atomic_fetch_add(&cq->looks, 1, __ATOMIC_RELAXED);
}

void rl_cq_wake_at(struct rl_cq *cq, u64 ms)
{
	u64 now = READ_ONCE(cq->watch.deadline);

	if (!now || now > ms)
		rl_watch_set_deadline(&cq->watch, ms);
}

void rl_cq_rearm_thread(struct rl_cq *cq)
{
	rl_thread_modify(&cq->watch, cq->epfd, EPOLLIN | EPOLLET);
}

/* ---- connections ---- */

static int cq_epoll_ctl(struct rl_cq *cq, int op, struct rl_conn *c, u32 events)
{
	struct epoll_event ev = { .events = events, .data.u32 = c->watch.key };

	return rl_raw(SYS_epoll_ctl, cq->epfd, op, c->fd, &ev);
}

/* CQ's lock, before the connection counts. */
static void note_other(struct rl_cq *cq, struct rl_cq *other)
{
	cq->mixed = cq->nconns && (cq->mixed || cq->other != other);
	cq->other = cq->mixed ? NULL : other;
}

#define USUAL_EVENTS (EPOLLIN | EPOLLRDHUP)

void rl_cq_park(struct rl_cq *cq)
{
	if (cq->parked || cq->nconns != 1 || cq->nsources || !cq->last ||
	    cq->events != USUAL_EVENTS)
		return;
	cq->parked = !cq_epoll_ctl(cq, EPOLL_CTL_MOD, cq->last, 0);
}

/* To change events takes no memory. */
void rl_cq_unpark(struct rl_cq *cq)
{
	if (cq->parked)
		cq_epoll_ctl(cq, EPOLL_CTL_MOD, cq->last, cq->events);
	cq->parked = false;
}

int rl_cq_add_conn(struct rl_cq *cq, struct rl_cq *other, struct rl_conn *c, u32 events)
{
	int rv = cq_epoll_ctl(cq, EPOLL_CTL_ADD, c, events);
	struct rl_conn *old;

	if (rv)
		return rv;
	rl_watch_get(&c->watch);
	rl_lock(&cq->lock);
	rl_cq_unpark(cq);
	cq->events = events;
	note_other(cq, other);
	WRITE_ONCE(cq->nconns, cq->nconns + 1);
	old = cq->last;
	WRITE_ONCE(cq->last, c);
	rl_unlock(&cq->lock);
	if (old)
		rl_watch_put(&old->watch);
	return 0;
}

/*
 * Linux does not report TCP's room if an earlier event of the socket was not fetched by
 * epoll_wait(), which a poller of the only connection never calls: so the thread looks again.
 */
void rl_cq_modify_conn(struct rl_cq *cq, struct rl_conn *c, u32 events)
{
	rl_lock(&cq->lock);
	if (cq->last == c)
		cq->events = events;
	if (!cq->parked || events != USUAL_EVENTS) {
		cq_epoll_ctl(cq, EPOLL_CTL_MOD, c, events);
		cq->parked = false;
	}
	rl_unlock(&cq->lock);
	if (events & EPOLLOUT && !READ_ONCE(cq->leased))
		rl_cq_rearm_thread(cq);
}

void rl_cq_remove_conn(struct rl_cq *cq, struct rl_conn *c)
{
	bool was_last;

	rl_lock(&cq->lock);
	cq_epoll_ctl(cq, EPOLL_CTL_DEL, c, 0);
	cq->parked = false;
	WRITE_ONCE(cq->nconns, cq->nconns - 1);
	if (!cq->nconns)
		cq->other = NULL;
	was_last = cq->last == c;
	if (was_last)
		WRITE_ONCE(cq->last, NULL);
	rl_unlock(&cq->lock);
	/* Its caller has a reference of its own. */
	if (was_last)
		rl_watch_put(&c->watch);
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
	rl_lock(&cq->lock);
	rl_cq_unpark(cq);
	WRITE_ONCE(cq->nsources, cq->nsources + 1);
	old = cq->source;
	WRITE_ONCE(cq->source, w);
	rl_unlock(&cq->lock);
	if (old)
		rl_watch_put(old);
	return 0;
}

void rl_cq_remove_source(struct rl_cq *cq, struct rl_watch *w, int fd)
{
	struct epoll_event ev = { 0 };
	bool was_last;

	rl_raw(SYS_epoll_ctl, cq->epfd, EPOLL_CTL_DEL, fd, &ev);
	rl_lock(&cq->lock);
	WRITE_ONCE(cq->nsources, cq->nsources - 1);
	was_last = cq->source == w;
	if (was_last)
		WRITE_ONCE(cq->source, NULL);
	rl_unlock(&cq->lock);
	if (was_last)
		rl_watch_put(w);
}
