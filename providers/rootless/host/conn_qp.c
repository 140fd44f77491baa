// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A connection and its QP: binding and release. */
#include "conn.h"
#include "qp.h"

int rl_conn_attach(struct rl_conn *c, struct rl_qp *qp)
{
	int rv = -EBUSY;

	rl_lock(&qp->lock);
	if (!qp->gone && !qp->conn && qp->core.state == WEFT_QPS_IDLE &&
	    qp->core.by_hand == c->ulp->by_hand) {
		rl_watch_get(&c->watch);
		rl_qp_get(qp);
		qp->conn = c;
		c->qp = qp;
		c->link.qp = &qp->core;
		rv = 0;
	}
	rl_unlock(&qp->lock);
	if (!rv)
		rl_conn_update_cable(c);
	return rv;
}

void rl_conn_hand_over(struct rl_conn *c, struct rl_conn *heir)
{
	struct rl_qp *qp = c->qp;

	weft_link_succeed(&c->link, &heir->link, rl_now_ms());
	rl_watch_get(&heir->watch);
	rl_lock(&qp->lock);
	qp->conn = heir;
	rl_unlock(&qp->lock);
	heir->qp = qp;
	c->qp = NULL;
	rl_watch_put(&c->watch);
	rl_conn_update_cable(heir);
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
	rl_qp_flush(qp);
	weft_region_end_run(&qp->core);
	rl_conn_leave_poller(c);
	c->qp = NULL;
	rl_lock(&qp->lock);
	qp->conn = NULL;
	rl_unlock(&qp->lock);
	/* A frozen QP's end is not held up. */
	rl_conn_update_cable(c);
	rl_qp_put(qp);
	rl_watch_put(&c->watch);
}
