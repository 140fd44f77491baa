// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Shared receive queues. A QP that has taken an entry completes or flushes it. The entries here
 * belong to no QP.
 */
#include <stdlib.h>

#include <infiniband/verbs.h>

#include "qp.h"

static void report_limit(struct rl_srq *srq)
{
	rl_context_report(srq->ctx, &srq->o, IBV_EVENT_SRQ_LIMIT_REACHED, &srq->async_reported);
}

static struct rl_qp *get_qp(struct weft_qpc *core)
{
	struct rl_qp *qp = core ? rl_qp_of(core) : NULL;

	if (qp)
		rl_qp_get(qp);
	return qp;
}

/* Its connection reads on, in the progress thread: the caller may hold another one's lock. */
static void resume_qp(struct rl_qp *qp)
{
	if (!qp)
		return;
	rl_qp_poke(qp);
	rl_qp_put(qp);
}

int rl_srq_pop(struct rl_qp *qp, bool wait, struct weft_recv *recv)
{
	struct rl_srq *srq = qp->srq;
	struct weft_srq_news news;
	struct rl_qp *turn;
	int got;

	pthread_mutex_lock(&srq->lock);
	got = weft_srqc_take(&srq->core, &qp->core, wait, recv, &news);
	turn = get_qp(news.turn);
	pthread_mutex_unlock(&srq->lock);
	resume_qp(turn);
	if (news.low)
		report_limit(srq);
	return got;
}

void rl_srq_leave(struct rl_qp *qp)
{
	struct rl_srq *srq = qp->srq;
	struct weft_srq_news news;
	struct rl_qp *turn;

	pthread_mutex_lock(&srq->lock);
	weft_srqc_leave(&srq->core, &qp->core, &news);
	turn = get_qp(news.turn);
	pthread_mutex_unlock(&srq->lock);
	resume_qp(turn);
}

void rl_srq_kick(struct rl_srq *srq)
{
	struct rl_qp *turn;

	pthread_mutex_lock(&srq->lock);
	turn = get_qp(weft_srqc_turn(&srq->core));
	pthread_mutex_unlock(&srq->lock);
	resume_qp(turn);
}

int rl_srq_arm(struct rl_srq *srq, u32 limit)
{
	bool armed, low;

	pthread_mutex_lock(&srq->lock);
	armed = weft_srqc_arm(&srq->core, limit, &low);
	pthread_mutex_unlock(&srq->lock);
	if (low)
		report_limit(srq);
	return armed ? 0 : -EINVAL;
}

bool rl_srq_is_armed(struct rl_srq *srq)
{
	bool is;

	pthread_mutex_lock(&srq->lock);
	is = srq->core.limit;
	pthread_mutex_unlock(&srq->lock);
	return is;
}

void rl_srq_reach_limit(struct rl_srq *srq)
{
	bool was, low;

	pthread_mutex_lock(&srq->lock);
	was = srq->core.limit;
	weft_srqc_arm(&srq->core, 0, &low);
	pthread_mutex_unlock(&srq->lock);
	if (was)
		report_limit(srq);
}

void rl_srq_fail(struct rl_srq *srq)
{
	if (!__atomic_exchange_n(&srq->failed, true, __ATOMIC_SEQ_CST))
		rl_context_report(srq->ctx, &srq->o, IBV_EVENT_SRQ_ERR, &srq->async_reported);
}

/* The response is filled in before the new ring takes effect. */
int rl_srq_resize(struct rl_srq *srq, u32 max_wr, struct weft_modify_srq_resp *resp)
{
	struct weft_rq_shape shape = { .stride = srq->core.rq.stride };
	int rv = weft_shape_srq_anew(max_wr, &shape);
	struct weft_ring_move move = {};
	struct rl_ring ring, old;

	rv = rv ?: rl_ring_alloc(srq->ctx, &ring, shape.slots);
	if (rv)
		return rv;
	old = ring;
	move.mem = ring.mem;
	move.slots = shape.slots;
	rl_ring_describe(&ring, shape.slots, shape.stride, &resp->srq);
	pthread_mutex_lock(&srq->lock);
	do {
		weft_ring_move_copy(&move);
		rv = weft_srqc_move(&srq->core, &move);
	} while (rv == -EAGAIN);
	if (!rv) {
		old = srq->ring;
		srq->ring = ring;
	}
	pthread_mutex_unlock(&srq->lock);
	rl_ring_free(srq->ctx, &old);
	return rv;
}

int rl_srq_new(struct rl_pd *pd, struct rl_context *ctx, struct weft_rq_caps *caps,
	       struct rl_srq **out)
{
	struct weft_rq_shape shape;
	int rv = weft_shape_srq(caps, &shape);
	struct rl_srq *srq;

	if (rv)
		return rv;
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return -ENOMEM;
	rv = rl_ring_alloc(ctx, &srq->ring, shape.slots);
	if (rv) {
		free(srq);
		return rv;
	}
	srq->o.kind = RL_SRQ;
	srq->ctx = ctx;
	srq->pd = pd;
	pd->o.users++;
	pthread_mutex_init(&srq->lock, NULL);
	weft_srqc_init(&srq->core, srq->ring.mem, shape.slots, caps->sge);
	*out = srq;
	return 0;
}

/* Its QPs are gone. */
void rl_srq_destroy(struct rl_srq *srq)
{
	rl_context_forget(srq->ctx, &srq->o);
	rl_ring_free(srq->ctx, &srq->ring);
	srq->pd->o.users--;
	pthread_mutex_destroy(&srq->lock);
	free(srq);
}
