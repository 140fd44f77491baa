// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The receives of a QP, wherever they come from. */
#include "qp.h"

int weft_rq_take(struct weft_qpc *qp)
{
	if (qp->srq)
		return weft_host_srq_pop(qp, &qp->recv);
	if (!qp->rq.q.slots)
		return 0;
	return weft_rqq_pop(&qp->rq, &qp->recv);
}

void weft_rq_complete(struct weft_qpc *qp, struct weft_cqe *e)
{
	e->wr_id = qp->recv.wr_id;
	e->qp_num = qp->id;
	if (e->status == WEFT_WC_SUCCESS)
		e->byte_len = qp->recv_got;
	else
		e->vendor_err = weft_qpc_vendor_err(qp);
	qp->recv_active = false;
	weft_host_complete(qp, true, e);
}

void weft_rq_fail(struct weft_qpc *qp, u8 status)
{
	struct weft_cqe e = { .status = status, .opcode = WEFT_WCO_RECV };

	weft_rq_complete(qp, &e);
}

bool weft_rq_flush(struct weft_qpc *qp, u32 most)
{
	u32 n;

	if (qp->recv_active)
		weft_rq_fail(qp, WEFT_WC_FLUSH_ERR);
	/* What waits in an SRQ belongs to nobody yet and stays there. */
	if (qp->srq || !qp->rq.q.slots)
		return false;
	for (n = 0; n < most && weft_rqq_pop(&qp->rq, &qp->recv) > 0; n++)
		weft_rq_fail(qp, WEFT_WC_FLUSH_ERR);
	return n == most;
}
