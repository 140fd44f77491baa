// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "cq.h"

void weft_cqc_init(struct weft_cqc *cq, void *mem, u32 entries)
{
	weft_ringq_init(&cq->q, mem, entries);
	cq->overflow = false;
	cq->poll = false;
}

static void write_flags(struct weft_cqc *cq)
{
	u32 flags = cq->overflow ? WEFT_RING_OVERFLOW : 0;

	WRITE_ONCE(cq->q.ring->flags, cq->poll ? flags | WEFT_RING_POLL : flags);
}

void weft_cqc_say_poll(struct weft_cqc *cq, bool poll)
{
	cq->poll = poll;
	write_flags(cq);
}

/* Must @e wake the armed consumer? Clears the arm word if so. */
static bool cq_fires(struct weft_cqc *cq, const struct weft_cqe *e)
{
	u32 arm = READ_ONCE(cq->q.ring->arm);
	bool solicited = e->flags & WEFT_CQE_SOLICITED || e->status != WEFT_WC_SUCCESS;

	if (arm == WEFT_ARM_NONE || (arm == WEFT_ARM_SOLICITED && !solicited))
		return false;
	/* The exchange decides: a consumer that has armed again meanwhile is woken, too. */
	return xchg(&cq->q.ring->arm, WEFT_ARM_NONE) != WEFT_ARM_NONE;
}

enum weft_cq_push weft_cqc_overflow(struct weft_cqc *cq)
{
	if (cq->overflow)
		return WEFT_CQ_DEAD;
	cq->overflow = true;
	cq->poll = false;
	write_flags(cq);
	return WEFT_CQ_OVERFLOW;
}

enum weft_cq_push weft_cqc_push(struct weft_cqc *cq, const struct weft_cqe *e)
{
	struct weft_ringq *q = &cq->q;

	if (cq->overflow)
		return WEFT_CQ_DEAD;
	/*
	 * A consumer index that claims more than was published, or less than a
	 * ring's worth behind, counts as "no room": it can only hurt its owner.
	 * Acquire: the consumer has read the slot before it passed it.
	 */
	if (q->idx - smp_load_acquire(&q->ring->user_idx) >= q->slots)
		return weft_cqc_overflow(cq);
	memcpy(weft_ringq_slot(q, q->idx), e, sizeof(*e));
	q->idx++;
	/* Pairs with the consumer's acquire of kern_idx. */
	smp_store_release(&q->ring->kern_idx, q->idx);
	/* Pairs with the consumer's barrier between arming and polling again. */
	smp_mb();
	return cq_fires(cq, e) ? WEFT_CQ_WAKE : WEFT_CQ_QUIET;
}

int weft_cqc_move(struct weft_cqc *cq, struct weft_ring_move *m)
{
	struct weft_ringq *q = &cq->q;
	/* Pairs with the consumer's release of user_idx. */
	u32 from = smp_load_acquire(&q->ring->user_idx);
	int rv = cq->overflow ? -EINVAL : weft_ringq_move(q, m, from, q->idx - from, from);

	if (!rv)
		write_flags(cq);
	return rv;
}

bool weft_cqc_poll(struct weft_cqc *cq, struct weft_cqe *e)
{
	struct weft_ring *r = cq->q.ring;

	if (r->user_idx == cq->q.idx)
		return false;
	memcpy(e, weft_ringq_slot(&cq->q, r->user_idx), sizeof(*e));
	WRITE_ONCE(r->user_idx, r->user_idx + 1);
	return true;
}

bool weft_cqc_arm(struct weft_cqc *cq, u32 how)
{
	struct weft_ring *r = cq->q.ring;

	/* "next" includes "solicited": never weaken what is armed. */
	if (how > READ_ONCE(r->arm))
		WRITE_ONCE(r->arm, how);
	return r->user_idx != cq->q.idx;
}

void weft_cqc_purge(struct weft_cqc *cq, bool (*gone)(const struct weft_cqe *e, const void *arg),
		    const void *arg)
{
	struct weft_ring *r = cq->q.ring;
	u32 from, to;

	/* What stays moves to the producer's end, then the consumer past the gap. */
	for (from = to = cq->q.idx; from != r->user_idx; from--) {
		const struct weft_cqe *e = weft_ringq_slot(&cq->q, from - 1);

		if (!gone(e, arg))
			memmove(weft_ringq_slot(&cq->q, --to), e, sizeof(*e));
	}
	r->user_idx = to;
}
