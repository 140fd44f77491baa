// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Completions and SRQs that fail on demand: a QP has this consumer from the start if a rule of the
 * fault file is about them, so that others have no test for it.
 */
#include "command.h"
#include "faults/faults.h"
#include "host/late.h"

static const struct rl_consumer *usual_consumer;	/* of verbs; set before a QP has this one */

static void overflow_cq(struct rl_cq *cq)
{
	enum weft_cq_push pushed;

	rl_lock(&cq->lock);
	pushed = weft_cqc_overflow(&cq->core);
	rl_unlock(&cq->lock);
	rl_cq_pushed(cq, pushed);
}

static void faulty_complete(struct rl_qp *qp, bool recv, const struct weft_cqe *cqe)
{
	const struct rl_fault_subject s = {
		.call = recv ? RL_FAULT_RECV_COMPLETION : RL_FAULT_SEND_COMPLETION,
		.device = qp->ctx->dev->name, .type = qp->type, .qpn = qp->core.id,
		.size = cqe->byte_len,
	};
	struct rl_cq *cq = recv ? qp->rcq : qp->scq;
	struct rl_lateness how = {
		.recv = recv, .queue_wr = recv ? qp->rq_caps.wr : qp->sq_caps.wr,
	};
	struct rl_fault fault;

	rl_faults_look(&s, &fault);
	how.delay_ms = fault.delay_ms;
	how.latest = fault.effect == RL_FAULT_LATEST;
	if (recv && qp->srq)
		how.queue_wr = ~0u;
	if (fault.effect == RL_FAULT_CQ)
		overflow_cq(cq);
	else
		rl_late_complete(cq, cqe, &how);
}

static int faulty_pop(struct rl_qp *qp, bool wait, struct weft_recv *recv)
{
	return READ_ONCE(qp->srq->failed) ? -1 : usual_consumer->pop(qp, wait, recv);
}

static void faulty_fault(struct rl_qp *qp, u32 type)
{
	usual_consumer->fault(qp, type);
}

static void faulty_forget(struct rl_qp *qp)
{
	rl_late_forget(qp->scq, qp->core.id);
	rl_late_forget(qp->rcq, qp->core.id);
}

static const struct rl_consumer faulty_consumer = {
	.pop = faulty_pop,
	.complete = faulty_complete,
	.fault = faulty_fault,
	.forget = faulty_forget,
};

void rl_qp_may_be_faulty(struct rl_qp *qp)
{
	if (!rl_faults_are_about(RL_FAULT_SEND_COMPLETION, RL_FAULT_RECV_COMPLETION) &&
	    !rl_faults_are_about(RL_FAULT_POST_SRQ_RECV, RL_FAULT_POST_SRQ_RECV))
		return;
	usual_consumer = qp->consumer;
	qp->consumer = &faulty_consumer;
}
