// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Lingering (core/linger.h) in the driver: the timer, and what the CQ reports to its program. Only
 * one QP of a CQ lingers at a time, and never a kernel consumer's.
 */
#include "compat/hrtimer.h"
#include "conn.h"
#include "verbs.h"

static enum hrtimer_restart time_is_up(struct hrtimer *timer)
{
	struct weft_conn *conn = container_of(timer, struct weft_conn, linger_timer);

	set_bit(WEFT_CF_LINGER_OVER, &conn->flags);
	weft_conn_pend(conn);
	return HRTIMER_NORESTART;
}

void weft_conn_linger_init(struct weft_conn *conn)
{
	hrtimer_setup(&conn->linger_timer, time_is_up, CLOCK_MONOTONIC, HRTIMER_MODE_REL_SOFT);
}

void weft_conn_linger_exit(struct weft_conn *conn)
{
	hrtimer_cancel(&conn->linger_timer);
}

static void start_timer(struct weft_conn *conn)
{
	hrtimer_start(&conn->linger_timer, ns_to_ktime(WEFT_LINGER_NS), HRTIMER_MODE_REL_SOFT);
}

void weft_conn_linger_doorbell_begins(struct weft_conn *conn)
{
	struct weft_linger *l = &conn->link.linger;
	struct weft_qp *qp = weft_conn_qp(conn);

	if (!weft_linger_doorbell_begins(l, &qp->core, ktime_get_ns()) ||
	    !weft_cq_linger(qp->scq, qp))
		return;
	weft_linger_start(l, &qp->core);
	start_timer(conn);
}

void weft_conn_linger_doorbell_ends(struct weft_conn *conn)
{
	weft_linger_doorbell_ends(&conn->link.linger, ktime_get_ns());
}

void weft_conn_linger_stop(struct weft_conn *conn)
{
	struct weft_qp *qp = weft_conn_qp(conn);

	if (!qp || !qp->core.linger)
		return;
	qp->core.linger = false;
	weft_cq_linger_over(qp->scq, qp);
}

void weft_conn_linger_judge(struct weft_conn *conn)
{
	struct weft_qp *qp = weft_conn_qp(conn);

	if (!test_and_clear_bit(WEFT_CF_LINGER_OVER, &conn->flags) || !qp || !qp->core.linger)
		return;
	if (weft_linger_is_worth_it(&conn->link.linger, &qp->core))
		start_timer(conn);
	else
		weft_cq_linger_over(qp->scq, qp);
}
