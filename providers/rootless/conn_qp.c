// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A QP and its connection: binding, letting go, lingering, doorbells. */
#include "conn.h"
#include "verbs.h"

/* ---- binding ---- */

int rl_conn_attach(struct rl_conn *c, struct rl_qp *qp)
{
	int rv = -EBUSY;

	pthread_mutex_lock(&qp->lock);
	if (!qp->gone && !qp->conn && qp->core.state == WEFT_QPS_IDLE) {
		rl_conn_get(c);
		rl_qp_get(qp);
		qp->conn = c;
		c->qp = qp;
		c->link.qp = &qp->core;
		rv = 0;
	}
	pthread_mutex_unlock(&qp->lock);
	return rv;
}

void rl_conn_hand_over(struct rl_conn *c, struct rl_conn *heir)
{
	struct rl_qp *qp = c->qp;

	weft_link_succeed(&c->link, &heir->link, rl_now_ms());
	rl_conn_get(heir);
	pthread_mutex_lock(&qp->lock);
	qp->conn = heir;
	pthread_mutex_unlock(&qp->lock);
	heir->qp = qp;
	c->qp = NULL;
	rl_conn_put(c);
}

static void stop_lingering(struct rl_conn *c)
{
	struct rl_cq *cq = c->qp->scq;

	c->linger_until = 0;
	if (!c->qp->core.linger)
		return;
	c->qp->core.linger = false;
	rl_cq_linger_over(cq, c->qp);
}

void rl_conn_release_qp(struct rl_conn *c)
{
	struct rl_qp *qp = c->qp;

	if (!qp)
		return;
	stop_lingering(c);
	weft_link_release_qp(&c->link);
	weft_region_end_run(&qp->core);
	rl_conn_leave_place(c);
	c->qp = NULL;
	pthread_mutex_lock(&qp->lock);
	qp->conn = NULL;
	pthread_mutex_unlock(&qp->lock);
	rl_qp_put(qp);
	rl_conn_put(c);
}

/* The QP may get another connection meanwhile, but not this one again. */
struct rl_conn *rl_conn_of_qp(struct rl_qp *qp)
{
	struct rl_conn *c;

	for (;;) {
		pthread_mutex_lock(&qp->lock);
		c = qp->conn;
		if (c)
			rl_conn_get(c);
		pthread_mutex_unlock(&qp->lock);
		if (!c)
			return NULL;
		rl_conn_lock(c);
		if (c->qp == qp)
			return c;
		rl_conn_unlock(c);
		rl_conn_put(c);
	}
}

/* ---- sending ---- */

/* The time is up: was lingering worth it? */
static void judge_lingering(struct rl_conn *c)
{
	if (!c->linger_until || rl_now_ms() < c->linger_until)
		return;
	c->linger_until = 0;
	if (!c->qp || !c->qp->core.linger)
		return;
	if (weft_linger_is_worth_it(&c->link.linger, &c->qp->core))
		c->linger_until = rl_now_ms() + 1;
	else
		rl_cq_linger_over(c->qp->scq, c->qp);
}

void rl_conn_tx(struct rl_conn *c)
{
	judge_lingering(c);
	weft_send_run(&c->link);
	if (c->link.qp)
		weft_region_end_run(c->link.qp);
}

static void ring_doorbell(struct rl_conn *c)
{
	struct weft_linger *l = &c->link.linger;
	struct rl_qp *qp = c->qp;

	if (weft_linger_doorbell_begins(l, &qp->core, rl_now_ns()) && rl_cq_linger(qp->scq, qp)) {
		weft_linger_start(l, &qp->core);
		c->linger_until = rl_now_ms() + 1;
	}
	rl_conn_tx(c);
	weft_linger_doorbell_ends(l, rl_now_ns());
}

void rl_qp_kick(struct rl_qp *qp)
{
	struct rl_conn *c = rl_conn_of_qp(qp);

	if (c) {
		ring_doorbell(c);
		rl_conn_unlock(c);
		rl_conn_put(c);
		return;
	}
	pthread_mutex_lock(&qp->lock);
	if (!qp->conn)
		weft_qpc_flush(&qp->core);
	pthread_mutex_unlock(&qp->lock);
}
