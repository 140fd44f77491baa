// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <stdlib.h>

#include "late.h"
#include "process/clock.h"

/* A poke of the CQ by another thread may be overwritten: it is not missed for longer than this. */
#define LOOK_MS 1000
/*
 * The latest moment: the program has polled so often in vain, or has waited so long. Its polls are
 * counted each millisecond.
 */
#define LATEST_POLLS 1000
#define LATEST_MS 1000
#define LATEST_LOOK_MS 1

struct late {
	struct list_head node;
	u64 at;				/* ms; 0: once those before it have arrived */
	bool passable;			/* those of other queues do not wait for it */
	bool latest;			/* polls may be due before @at */
	bool recv;
	u32 polls;			/* cq->polls then */
	struct weft_cqe cqe;
};

/* ---- order ---- */

static bool is_of_queue(const struct late *l, u32 qpn, bool recv)
{
	return l->cqe.qp_num == qpn && l->recv == recv;
}

/* CQ's lock. What a new completion finds before it. */
struct before {
	bool holds;			/* it has to wait, too */
	bool holds_all;			/* and so does whatever comes later */
	u32 of_queue;
};

static struct before look_before(struct rl_cq *cq, u32 qpn, bool recv)
{
	struct before b = { 0 };
	struct late *l;

	list_for_each_entry(l, &cq->late, node) {
		b.of_queue += is_of_queue(l, qpn, recv);
		b.holds_all |= !l->passable;
	}
	b.holds = b.holds_all || b.of_queue;
	return b;
}

/* CQ's lock. Is an earlier one of its queue still there? */
static bool is_behind_its_queue(struct rl_cq *cq, const struct late *late)
{
	struct late *l;

	list_for_each_entry(l, &cq->late, node) {
		if (l == late)
			break;
		if (is_of_queue(l, late->cqe.qp_num, late->recv))
			return true;
	}
	return false;
}

/* ---- the list; CQ's lock ---- */

static bool keep_late(struct rl_cq *cq, const struct weft_cqe *cqe, const struct rl_lateness *how,
		      const struct before *b)
{
	u32 ms = how->latest ? LATEST_MS : how->delay_ms;
	struct late *l = malloc(sizeof(*l));

	if (!l)
		return false;
	*l = (struct late){
		.at = ms ? rl_now_ms() + ms : 0,
		.passable = how->latest || how->scattered || (!ms && !b->holds_all),
		.latest = how->latest, .recv = how->recv,
		.polls = __atomic_load_n(&cq->polls, __ATOMIC_RELAXED), .cqe = *cqe,
	};
	list_add_tail(&l->node, &cq->late);
	WRITE_ONCE(cq->n_late, cq->n_late + 1);
	return true;
}

static bool late_is_due(struct rl_cq *cq, const struct late *l)
{
	u32 polls = __atomic_load_n(&cq->polls, __ATOMIC_RELAXED) - l->polls;

	return (l->at <= rl_now_ms() || (l->latest && polls >= LATEST_POLLS)) &&
	       !is_behind_its_queue(cq, l);
}

/* The first that may arrive; not @due: the first of all. */
static struct late *take_late(struct rl_cq *cq, bool due)
{
	struct late *l;

	list_for_each_entry(l, &cq->late, node) {
		if (!due || late_is_due(cq, l)) {
			list_del(&l->node);
			WRITE_ONCE(cq->n_late, cq->n_late - 1);
			return l;
		}
		if (!l->passable)
			break;
	}
	return NULL;
}

static void wake_for_next(struct rl_cq *cq)
{
	u64 now = rl_now_ms(), at = now + LOOK_MS;
	struct late *l;

	if (list_empty(&cq->late))
		return;
	list_for_each_entry(l, &cq->late, node) {
		if (l->latest)
			at = now + LATEST_LOOK_MS;
		else if (l->at)
			at = min_t(u64, at, max_t(u64, l->at, now));
		if (!l->passable || l->latest)
			break;
	}
	rl_cq_wake_at(cq, at);
}

/* ---- arriving ---- */

/* The order of completions is that of the lock. */
static void release_late(struct rl_cq *cq, bool due)
{
	enum weft_cq_push pushed;
	struct late *l;

	for (;;) {
		rl_lock(&cq->lock);
		l = take_late(cq, due);
		if (!l)
			break;
		pushed = rl_cq_push(cq, &l->cqe);
		rl_unlock(&cq->lock);
		rl_cq_pushed(cq, pushed);
		free(l);
	}
	wake_for_next(cq);
	rl_unlock(&cq->lock);
}

void rl_late_release_due(struct rl_cq *cq)
{
	if (READ_ONCE(cq->n_late))
		release_late(cq, true);
}

void rl_late_drop(struct rl_cq *cq)
{
	struct late *l;

	while ((l = take_late(cq, false)))
		free(l);
}

/* One that is as deep as one completion would never be late. */
static bool fills_queue(const struct before *b, const struct rl_lateness *how)
{
	return how->queue_wr > 1 && b->of_queue + 1 >= how->queue_wr;
}

/*
 * Completions are held until there are as many as the CQ has entries, or, of the latest, as their
 * queue has. Then, or without memory, all of them arrive.
 */
void rl_late_complete(struct rl_cq *cq, const struct weft_cqe *cqe, const struct rl_lateness *how)
{
	enum weft_cq_push pushed = WEFT_CQ_QUIET;
	bool kept = false, waits;
	struct before b;

	rl_lock(&cq->lock);
	b = look_before(cq, cqe->qp_num, how->recv);
	waits = how->delay_ms || how->latest || b.holds;
	if (waits && cq->n_late < cq->core.q.slots &&
	    !(how->latest && fills_queue(&b, how)))
		kept = keep_late(cq, cqe, how, &b);
	if (kept)
		wake_for_next(cq);
	if (!waits)
		pushed = rl_cq_push(cq, cqe);
	rl_unlock(&cq->lock);
	if (!waits) {
		rl_cq_pushed(cq, pushed);
	} else if (!kept) {
		release_late(cq, false);
		rl_cq_complete(cq, cqe);
	}
}

void rl_late_forget(struct rl_cq *cq, u32 qpn)
{
	struct late *l, *next;

	rl_lock(&cq->lock);
	list_for_each_entry_safe(l, next, &cq->late, node)
		if (l->cqe.qp_num == qpn) {
			list_del(&l->node);
			WRITE_ONCE(cq->n_late, cq->n_late - 1);
			free(l);
		}
	rl_unlock(&cq->lock);
}
