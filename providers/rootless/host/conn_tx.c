// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The send side of a connection, in the caller's context. */
#include "conn.h"
#include "process/guard.h"
#include "process/stats.h"
#include "ulp.h"

/*
 * It takes the program's own time: a long flush delays no one else. What is posted meanwhile rings
 * the doorbell, since the rings are marked as asleep.
 */
void rl_qp_flush(struct rl_qp *qp)
{
	u32 pieces = (qp->core.sq.q.slots + qp->core.rq.q.slots) / WEFT_FLUSH_PIECE + 2;

	while (pieces-- && weft_qpc_flush(&qp->core))
		;
}

/* At the deadline: was lingering worth it? */
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

static void run_conn_sends(void *arg)
{
	struct rl_conn *c = arg;

	weft_send_run(&c->link, WEFT_SLICE);
}

/* The memory vanished during the send: no Terminate can follow half an FPDU. */
void rl_conn_break_off(struct rl_conn *c)
{
	c->reset = true;
	c->error = -EFAULT;
	weft_send_break_off(&c->link);
}

void rl_conn_tx(struct rl_conn *c)
{
	u32 fpdus = c->link.batch.fpdus;

	c->answer_due = false;
	judge_lingering(c);
	if (!rl_guard_run(run_conn_sends, c) || c->vanished)
		rl_conn_break_off(c);
	if (c->link.batch.fpdus != fpdus)
		rl_count(RL_TX_FPDUS, c->link.batch.fpdus - fpdus);
	/* The doorbell may be about a receive. */
	if (unlikely(rl_conn_awaits_receive(c)) && weft_link_rx_resume(&c->link))
		rl_conn_receive(c);
	if (c->link.qp)
		weft_region_end_run(c->link.qp);
}

void rl_qp_report_drained(struct rl_qp *qp)
{
	if (likely(!qp->report_drained) || !weft_qpc_is_drained(&qp->core))
		return;
	qp->report_drained = false;
	rl_context_report(qp->ctx, &qp->o, IBV_EVENT_SQ_DRAINED, &qp->async_reported);
}
