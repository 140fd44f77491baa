// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Completions for the record: a QP has this consumer from the start if there is one. */
#include "command.h"
#include "record/log.h"

static const struct rl_consumer *unrecorded_consumer;	/* set before a QP has this one */

static void recorded_complete(struct rl_qp *qp, bool recv, const struct weft_cqe *cqe)
{
	rl_record_completed(qp->ctx, (recv ? qp->rcq : qp->scq)->o.handle, recv, cqe);
	unrecorded_consumer->complete(qp, recv, cqe);
}

static int recorded_pop(struct rl_qp *qp, bool wait, struct weft_recv *recv)
{
	return unrecorded_consumer->pop(qp, wait, recv);
}

static void recorded_fault(struct rl_qp *qp, u32 type)
{
	unrecorded_consumer->fault(qp, type);
}

static void recorded_forget(struct rl_qp *qp)
{
	if (unrecorded_consumer->forget)
		unrecorded_consumer->forget(qp);
}

static const struct rl_consumer recorded_consumer = {
	.pop = recorded_pop,
	.complete = recorded_complete,
	.fault = recorded_fault,
	.forget = recorded_forget,
};

void rl_qp_may_be_recorded(struct rl_qp *qp)
{
	if (!rl_record_is_on())
		return;
	unrecorded_consumer = qp->consumer;
	qp->consumer = &recorded_consumer;
}
