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

void weft_rq_complete(struct weft_qpc *qp, u8 status, u16 flags, u32 inv_stag, u64 imm)
{
	struct weft_cqe cqe = {
		.wr_id = qp->recv.wr_id,
		.qp_num = qp->id,
		.status = status,
		.opcode = WEFT_WCO_RECV,
		.flags = flags,
		.byte_len = status == WEFT_WC_SUCCESS ? qp->recv_got : 0,
		.inv_stag = inv_stag,
		.imm = imm,
	};

	qp->recv_active = false;
	weft_host_complete(qp, true, &cqe);
}

bool weft_rq_flush(struct weft_qpc *qp, u32 most)
{
	u32 n;

	if (qp->recv_active)
		weft_rq_complete(qp, WEFT_WC_FLUSH_ERR, 0, 0, 0);
	/* What waits in an SRQ belongs to nobody yet and stays there. */
	if (qp->srq || !qp->rq.q.slots)
		return false;
	for (n = 0; n < most && weft_rqq_pop(&qp->rq, &qp->recv) > 0; n++)
		weft_rq_complete(qp, WEFT_WC_FLUSH_ERR, 0, 0, 0);
	return n == most;
}
