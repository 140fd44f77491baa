// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "srq.h"

void weft_srqc_init(struct weft_srqc *srq, void *mem, u32 slots, u32 max_sge)
{
	weft_rqq_init(&srq->rq, mem, slots, max_sge);
	srq->limit = 0;
	srq->first = NULL;
	srq->last = &srq->first;
}

/* Disarms the limit and returns true if fewer entries wait. */
static bool limit_reached(struct weft_srqc *srq)
{
	s32 filled = weft_ringq_filled(&srq->rq.q, srq->rq.q.idx);
	u32 waiting = filled > 0 ? (u32)filled / srq->rq.stride : 0;

	if (waiting >= srq->limit)
		return false;
	srq->limit = 0;
	return true;
}

int weft_srqc_pop(struct weft_srqc *srq, struct weft_recv *recv, bool *low)
{
	int got = weft_rqq_pop(&srq->rq, recv);

	*low = got > 0 && limit_reached(srq);
	return got;
}

/* ---- QPs that wait ---- */

static void list(struct weft_srqc *srq, struct weft_qpc *qp)
{
	if (qp->srq_prev)
		return;
	qp->srq_next = NULL;
	qp->srq_prev = srq->last;
	*srq->last = qp;
	srq->last = &qp->srq_next;
}

static void unlist(struct weft_srqc *srq, struct weft_qpc *qp)
{
	if (!qp->srq_prev)
		return;
	*qp->srq_prev = qp->srq_next;
	if (qp->srq_next)
		qp->srq_next->srq_prev = qp->srq_prev;
	else
		srq->last = qp->srq_prev;
	qp->srq_prev = NULL;
	/* No QP waits: a post need not kick any more. */
	if (!srq->first)
		weft_ringq_wake(&srq->rq.q);
}

struct weft_qpc *weft_srqc_turn(const struct weft_srqc *srq)
{
	s32 filled;

	if (!srq->first)
		return NULL;
	filled = weft_ringq_filled(&srq->rq.q, srq->rq.q.idx);
	/* The first must learn that the ring is broken. */
	return filled < 0 || (u32)filled >= srq->rq.stride ? srq->first : NULL;
}

int weft_srqc_take(struct weft_srqc *srq, struct weft_qpc *qp, bool wait, struct weft_recv *recv,
		   struct weft_srq_news *news)
{
	bool turn = !wait || !srq->first || srq->first == qp;
	int got = 0;

	*news = (struct weft_srq_news) { 0 };
	if (turn)
		got = weft_srqc_pop(srq, recv, &news->low);
	if (!got && wait) {
		list(srq, qp);
		weft_ringq_sleep(&srq->rq.q);
		/* An entry posted before the poster saw KICK. */
		if (turn)
			got = weft_srqc_pop(srq, recv, &news->low);
	}
	if (got) {
		unlist(srq, qp);
		news->turn = weft_srqc_turn(srq);
	}
	return got;
}

void weft_srqc_leave(struct weft_srqc *srq, struct weft_qpc *qp, struct weft_srq_news *news)
{
	unlist(srq, qp);
	*news = (struct weft_srq_news) { .turn = weft_srqc_turn(srq) };
}

/* ---- limit, size ---- */

bool weft_srqc_arm(struct weft_srqc *srq, u32 limit, bool *low)
{
	*low = false;
	if (limit > weft_srqc_size(srq))
		return false;
	srq->limit = limit;
	*low = limit_reached(srq);
	return true;
}

int weft_srqc_move(struct weft_srqc *srq, struct weft_ring_move *m)
{
	return srq->limit > m->slots / srq->rq.stride ? -EINVAL : weft_rqq_move(&srq->rq, m);
}
