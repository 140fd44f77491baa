// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * QPs under --adverse: each has this consumer from the start, and a connection that takes its time.
 * Completions of one queue stay in order, which verbs promise; those of others pass them.
 */
#include "command.h"
#include "host/cable.h"
#include "host/late.h"
#include "host/place_late.h"
#include "judge/adverse.h"

#define LATEST_MS	3		/* of a completion */
#define LINK_STEP_US	1000

static const struct rl_consumer *usual_consumer;	/* of verbs; set before a QP has this one */
static u32 qps;						/* atomic: so many were made */

/* The event for a completion that is not there yet: as if another thread had polled that one. */
static void wake_early(struct rl_cq *cq)
{
	bool woken;

	rl_lock(&cq->lock);
	woken = READ_ONCE(cq->core.q.ring->arm) == WEFT_ARM_NEXT &&
		xchg(&cq->core.q.ring->arm, WEFT_ARM_NONE) == WEFT_ARM_NEXT;
	rl_unlock(&cq->lock);
	if (woken)
		rl_cq_pushed(cq, WEFT_CQ_WAKE);
}

static void adverse_complete(struct rl_qp *qp, bool recv, const struct weft_cqe *cqe)
{
	struct rl_cq *cq = recv ? qp->rcq : qp->scq;
	u32 queue = 2 * qp->nth + recv, nth = qp->completed[recv]++;
	u32 delay = rl_adverse_choose(RL_ADVERSE_COMPLETION, queue, nth, 2 * LATEST_MS);

	/* It promises octets that may not be placed yet. */
	rl_place_late_flush();
	/* Half of them are not late. */
	delay = delay > LATEST_MS ? delay - LATEST_MS : 0;
	if (delay && !rl_adverse_choose(RL_ADVERSE_EVENT, queue, nth, 4))
		wake_early(cq);
	rl_late_complete(cq, cqe, &(struct rl_lateness){
		.delay_ms = delay, .recv = recv, .scattered = true,
	});
}

static int adverse_pop(struct rl_qp *qp, bool wait, struct weft_recv *recv)
{
	return usual_consumer->pop(qp, wait, recv);
}

static void adverse_fault(struct rl_qp *qp, u32 type)
{
	usual_consumer->fault(qp, type);
}

static void adverse_forget(struct rl_qp *qp)
{
	rl_late_forget(qp->scq, qp->core.id);
	rl_late_forget(qp->rcq, qp->core.id);
}

static const struct rl_consumer adverse_consumer = {
	.pop = adverse_pop,
	.complete = adverse_complete,
	.fault = adverse_fault,
	.forget = adverse_forget,
};

void rl_qp_may_be_adverse(struct rl_qp *qp)
{
	u32 us;

	if (!rl_is_adverse)
		return;
	qp->nth = __atomic_add_fetch(&qps, 1, __ATOMIC_RELAXED);
	usual_consumer = qp->consumer;
	qp->consumer = &adverse_consumer;
	us = rl_adverse_choose(RL_ADVERSE_LINK, qp->nth, 0, 4) * LINK_STEP_US;
	if (us && !qp->ud)
		rl_cable_set_qp(qp, RL_CABLE_DELAY, us);
}
