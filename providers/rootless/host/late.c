// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <stdlib.h>

#include "late.h"
#include "process/clock.h"

struct late {
	struct list_head node;
	u64 at;				/* ms; 0: once those before it have arrived */
	struct weft_cqe cqe;
};

static struct late *first_late(struct rl_cq *cq)
{
	return list_entry(cq->late.next, struct late, node);
}

/* CQ's lock. */
static bool keep_late(struct rl_cq *cq, const struct weft_cqe *cqe, u32 delay_ms)
{
	struct late *l = malloc(sizeof(*l));

	if (!l)
		return false;
	l->cqe = *cqe;
	l->at = delay_ms ? rl_now_ms() + delay_ms : 0;
	list_add_tail(&l->node, &cq->late);
	cq->n_late++;
	return true;
}

/* CQ's lock. The first if it is due, or in any case. */
static struct late *take_late(struct rl_cq *cq, bool due)
{
	struct late *l = list_empty(&cq->late) ? NULL : first_late(cq);

	if (!l || (due && l->at > rl_now_ms()))
		return NULL;
	list_del(&l->node);
	cq->n_late--;
	return l;
}

/* A poke of the CQ by another thread may be overwritten: it is not missed for longer than this. */
#define LOOK_MS 1000

/* CQ's lock. */
static void wake_for_first(struct rl_cq *cq)
{
	u64 now = rl_now_ms(), at;

	if (list_empty(&cq->late))
		return;
	at = first_late(cq)->at;
	rl_cq_wake_at(cq, min_t(u64, max_t(u64, at, now), now + LOOK_MS));
}

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
	wake_for_first(cq);
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

/* No more than the CQ has entries for: then, or without memory, they are late no longer. */
void rl_late_complete(struct rl_cq *cq, const struct weft_cqe *cqe, u32 delay_ms)
{
	enum weft_cq_push pushed = WEFT_CQ_QUIET;
	bool kept = false, waits;

	rl_lock(&cq->lock);
	waits = delay_ms || !list_empty(&cq->late);
	if (waits && cq->n_late < cq->core.q.slots)
		kept = keep_late(cq, cqe, delay_ms);
	if (kept)
		wake_for_first(cq);
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
			cq->n_late--;
			free(l);
		}
	rl_unlock(&cq->lock);
}
