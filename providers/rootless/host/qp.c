// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* QPs: life and states. */
#include <stdlib.h>

#include "conn.h"
#include "kernel/core/end.h"
#include "qp.h"

/* ---- states ---- */

void rl_qp_end_connection(struct rl_qp *qp)
{
	struct rl_conn *c;

	while ((c = rl_conn_of_qp(qp))) {
		struct weft_tcp_view v;

		rl_conn_view(c, &v);
		rl_conn_act(c, weft_link_forget(&c->link, &v, rl_now_ms()));
		c->step_due = true;
		rl_conn_unlock(c);
		rl_conn_put(c);
	}
}

void rl_qp_reset(struct rl_qp *qp)
{
	if (qp->transport->stop)
		qp->transport->stop(qp);
	rl_qp_end_connection(qp);
	memset(qp->sq.mem, 0, qp->sq.size);
	if (qp->rq.mem)
		memset(qp->rq.mem, 0, qp->rq.size);
	rl_lock(&qp->lock);
	weft_qpc_reset(&qp->core);
	rl_unlock(&qp->lock);
	if (qp->consumer->forget)
		qp->consumer->forget(qp);
	memset(&qp->given, 0, sizeof(qp->given));
}

int rl_qp_move(struct rl_qp *qp, u32 to)
{
	struct rl_conn *c = rl_qp_lock_core(qp);
	/* The caller may have found it before it was destroyed: its rings may be gone. */
	enum weft_qp_move move = !c && qp->gone ? WEFT_QP_REFUSED : weft_qpc_move(&qp->core, to);

	if (move == WEFT_QP_CLOSE)
		weft_qpc_close(&qp->core);
	else if (move == WEFT_QP_FAIL)
		weft_qpc_error(&qp->core);
	if (move == WEFT_QP_FAIL && !c)
		rl_qp_flush(qp);
	if (c && move != WEFT_QP_REFUSED)
		c->tx_due = c->step_due = true;
	rl_qp_unlock_core(qp, c);
	if (move == WEFT_QP_RESET)
		rl_qp_reset(qp);
	return move == WEFT_QP_REFUSED ? -EINVAL : 0;
}

/* By hand and of datagrams, a QP is in RTS without a connection, too. */
bool rl_qp_may_fail(const struct rl_qp *qp)
{
	enum weft_verbs_state state = weft_qpc_verbs_state(&qp->core);

	return state == WEFT_VS_RTS || state == WEFT_VS_SQD ||
	       READ_ONCE(qp->core.state) == WEFT_QPS_RTS;
}

/* The peer has done nothing, or is silent: the QP gives up. Else it has found a fault. */
static bool is_silence(u8 status)
{
	return status == WEFT_WC_RETRY_EXC_ERR || status == WEFT_WC_RNR_RETRY_EXC_ERR;
}

/* @status: of a request; SUCCESS: none is to blame. */
static void qp_break(struct rl_qp *qp, u8 status)
{
	struct rl_conn *c;

	if (!rl_qp_may_fail(qp))
		return;
	if (qp->transport->stop)
		qp->transport->stop(qp);
	c = rl_qp_lock_core(qp);
	if ((c || !qp->gone) && rl_qp_may_fail(qp)) {
		if (status == WEFT_WC_SUCCESS)
			weft_qpc_break(&qp->core);
		else if (is_silence(status))
			weft_qpc_give_up(&qp->core, status);
		else
			weft_qpc_break_request(&qp->core, status);
		if (c)
			c->tx_due = c->step_due = true;
		else
			rl_qp_flush(qp);
	}
	rl_qp_unlock_core(qp, c);
}

void rl_qp_fail(struct rl_qp *qp)
{
	qp_break(qp, WEFT_WC_SUCCESS);
}

void rl_qp_give_up(struct rl_qp *qp, u8 status)
{
	qp_break(qp, status);
}

void rl_qp_lose_peer(struct rl_qp *qp)
{
	struct rl_conn *c = rl_conn_of_qp(qp);
	u32 acts = c ? weft_link_lose_peer(&c->link) : 0;

	if (c) {
		rl_conn_act(c, acts);
		rl_conn_unlock(c);
		rl_conn_put(c);
	}
	/* There is no connection that could end. */
	if (!acts)
		rl_qp_give_up(qp, WEFT_WC_RETRY_EXC_ERR);
}

void rl_qp_hold_sends(struct rl_qp *qp)
{
	struct rl_conn *c = rl_qp_lock_core(qp);

	weft_qpc_hold(&qp->core, true);
	rl_qp_unlock_core(qp, c);
}

static bool fail_user(struct rl_qp *qp)
{
	if (pthread_mutex_trylock(&qp->ctx->lock))
		return false;
	if (qp->transport->stop)
		qp->transport->stop(qp);
	rl_qp_move(qp, WEFT_VS_ERR);
	pthread_mutex_unlock(&qp->ctx->lock);
	return true;
}

bool rl_qp_fail_users(const struct rl_cq *cq)
{
	bool done = true;
	struct rl_qp *qp;
	u32 at = 0;

	while (done && (qp = rl_qp_next_user(cq, &at))) {
		done = fail_user(qp);
		rl_qp_put_own(qp);
	}
	return done;
}

/* ---- completions and faults ---- */

static void complete(struct rl_qp *qp, bool recv, const struct weft_cqe *cqe)
{
	rl_cq_complete(recv ? qp->rcq : qp->scq, cqe);
}

static void report_fault(struct rl_qp *qp, u32 type)
{
	rl_context_report(qp->ctx, &qp->o, type, &qp->async_reported);
}

static const struct rl_consumer verbs_consumer = {
	.pop = rl_srq_pop,
	.complete = complete,
	.fault = report_fault,
};

/* ---- life ---- */

static void free_queues(struct rl_qp *qp)
{
	rl_ring_free(qp->ctx, &qp->sq);
	rl_ring_free(qp->ctx, &qp->rq);
	free(qp->core.sq.copy);
	free(qp->core.sq.info);
}

static int alloc_queues(struct rl_qp *qp, const struct weft_sq_shape *sq,
			const struct weft_rq_shape *rq)
{
	struct weft_sqq *q = &qp->core.sq;
	int rv = rl_ring_alloc(qp->ctx, &qp->sq, sq->slots);

	if (!rv && rq->slots)
		rv = rl_ring_alloc(qp->ctx, &qp->rq, rq->slots);
	q->copy = calloc(1, weft_sq_copy_size(sq->slots, sq->wqe_slots));
	q->info = calloc(sq->slots, sizeof(*q->info));
	if (!rv && q->copy && q->info)
		return 0;
	free_queues(qp);
	return -ENOMEM;
}

static void init_core(struct rl_qp *qp, const struct rl_qp_attr *a, const struct weft_sq_shape *sq,
		      const struct weft_rq_shape *rq)
{
	struct weft_qpc *c = &qp->core;

	c->pd = a->pd->id;
	c->recv_pd = a->srq ? a->srq->pd->id : c->pd;
	c->srq = a->srq;
	c->srq_tells = qp->ctx->features & WEFT_FEATURE_SRQ_KICK;
	c->sig_all = a->sig_all;
	c->scq = &a->scq->core;
	c->rcq = &a->rcq->core;
	weft_ringq_init(&c->sq.q, qp->sq.mem, sq->slots);
	c->sq.max_slots = sq->wqe_slots;
	weft_rqq_init(&c->rq, qp->rq.mem, rq->slots, a->rq.sge);
	weft_qpc_init(c);
}

static void count_uses(struct rl_qp *qp, int n)
{
	qp->pd->o.users += n;
	qp->scq->o.users += n;
	qp->rcq->o.users += n;
	if (qp->srq)
		qp->srq->o.users += n;
}

static int begin_qp(struct rl_qp *qp)
{
	const struct rl_transport *t = qp->transport;
	int rv = t->begin ? t->begin(qp) : 0;

	if (rv)
		return rv;
	rv = rl_qp_enlist(qp);
	if (rv && t->end)
		t->end(qp);
	return rv;
}

/* Rings have more room than was asked for, but the device promises no more than its limits. */
static void promise_caps(struct rl_qp *qp, const struct rl_qp_attr *a)
{
	const struct rl_profile *p = qp->ctx->dev->about;

	qp->sq_caps = a->sq;
	qp->sq_caps.wr = min_t(u32, a->sq.wr, p->max_qp_wr);
	qp->sq_caps.sge = min_t(u32, a->sq.sge, p->max_sge);
	qp->sq_caps.inline_data = min_t(u32, a->sq.inline_data, p->max_inline_data);
	qp->rq_caps.wr = min_t(u32, a->rq.wr, p->max_qp_wr);
	qp->rq_caps.sge = min_t(u32, a->rq.sge, p->max_sge);
}

static struct rl_qp *alloc_qp(struct rl_context *ctx, const struct rl_qp_attr *a)
{
	struct rl_qp *qp = calloc(1, sizeof(*qp));

	if (!qp)
		return NULL;
	qp->o.kind = RL_QP;
	qp->ctx = ctx;
	qp->pd = a->pd;
	qp->scq = a->scq;
	qp->rcq = a->rcq;
	qp->srq = a->srq;
	qp->type = a->type;
	qp->transport = a->transport;
	qp->consumer = &verbs_consumer;
	promise_caps(qp, a);
	qp->refs = 1;
	return qp;
}

int rl_qp_new(struct rl_context *ctx, struct rl_qp_attr *a, struct weft_create_qp_resp *resp,
	      struct rl_qp **out)
{
	struct weft_sq_shape sq;
	struct weft_rq_shape rq;
	struct rl_qp *qp;
	int rv;

	if (a->srq)
		a->rq = (struct weft_rq_caps){};
	rv = weft_shape_sq(&a->sq, &sq) ?: weft_shape_rq(&a->rq, &rq);
	if (rv)
		return rv;
	qp = alloc_qp(ctx, a);
	if (!qp)
		return -ENOMEM;
	rv = alloc_queues(qp, &sq, &rq);
	if (!rv) {
		init_core(qp, a, &sq, &rq);
		rv = begin_qp(qp);
		if (rv)
			free_queues(qp);
	}
	if (rv) {
		free(qp);
		return rv;
	}
	count_uses(qp, 1);
	rl_ring_describe(&qp->sq, sq.slots, sq.wqe_slots, &resp->sq);
	rl_ring_describe(&qp->rq, rq.slots, rq.stride, &resp->rq);
	resp->qp_id = qp->core.id;
	*out = qp;
	return 0;
}

void rl_qp_leave(struct rl_qp *qp)
{
	rl_qp_delist(qp);
	rl_lock(&qp->lock);
	qp->gone = true;
	rl_unlock(&qp->lock);
	rl_qp_drain_acks(qp);
}

void rl_qp_destroy(struct rl_qp *qp)
{
	rl_qp_end_connection(qp);
	/* From here on the core is unused, with or without a connection. */
	if (qp->transport->end)
		qp->transport->end(qp);
	if (qp->consumer->forget)
		qp->consumer->forget(qp);
	weft_region_unbind_all(&qp->core);
	rl_context_forget(qp->ctx, &qp->o);
	free_queues(qp);
	count_uses(qp, -1);
	rl_qp_put(qp);
}
