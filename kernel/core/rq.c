// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "qp.h"

#define RQ_HEAD offsetof(struct weft_rq_wqe, data)

u32 weft_rq_stride(u32 max_sge)
{
	u32 need = DIV_ROUND_UP(RQ_HEAD + max_sge * sizeof(struct weft_sge), WEFT_SLOT_SIZE);
	u32 stride = 1;

	while (stride < need)
		stride *= 2;
	return stride;
}

void weft_rqq_init(struct weft_rqq *rq, void *mem, u32 slots, u32 max_sge)
{
	weft_ringq_init(&rq->q, mem, slots);
	rq->max_sge = max_sge;
	rq->stride = weft_rq_stride(max_sge);
}

int weft_rqq_pop(struct weft_rqq *rq, struct weft_recv *recv)
{
	u32 used = DIV_ROUND_UP(RQ_HEAD + rq->max_sge * sizeof(struct weft_sge), WEFT_SLOT_SIZE);
	s32 filled = weft_ringq_filled(&rq->q, rq->q.idx);

	if (filled < 0)
		return -1;
	if ((u32)filled < rq->stride)
		return 0;
	weft_ringq_copy(&rq->q, rq->q.idx, recv, used);
	if (recv->num_sge > rq->max_sge)
		recv->num_sge = ~0u;
	weft_ringq_free(&rq->q, rq->stride);
	return 1;
}

bool weft_rqq_move(struct weft_rqq *rq, void *mem, u32 slots)
{
	u32 idx = rq->q.idx;
	s32 filled = weft_ringq_filled(&rq->q, idx);

	return filled >= 0 && weft_ringq_move(&rq->q, mem, slots, idx, filled, idx + filled);
}

void weft_srqc_init(struct weft_srqc *srq, void *mem, u32 slots, u32 max_sge)
{
	weft_rqq_init(&srq->rq, mem, slots, max_sge);
	srq->limit = 0;
}

/* Disarms the limit and returns true if fewer entries wait. */
static bool limit_reached(struct weft_srqc *srq)
{
	s32 filled = weft_ringq_filled(&srq->rq.q, srq->rq.q.idx);
	u32 waiting = filled > 0 ? (u32)filled / srq->rq.stride : 0;

	if (waiting >= srq->limit)
		return false;
	srq->limit = 0;
	return true;
}

int weft_srqc_pop(struct weft_srqc *srq, struct weft_recv *recv, bool *low)
{
	int got = weft_rqq_pop(&srq->rq, recv);

	*low = got > 0 && limit_reached(srq);
	return got;
}

bool weft_srqc_arm(struct weft_srqc *srq, u32 limit, bool *low)
{
	*low = false;
	if (limit > weft_srqc_size(srq))
		return false;
	srq->limit = limit;
	*low = limit_reached(srq);
	return true;
}

bool weft_srqc_move(struct weft_srqc *srq, void *mem, u32 slots)
{
	return srq->limit <= slots / srq->rq.stride && weft_rqq_move(&srq->rq, mem, slots);
}

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

void weft_rq_flush(struct weft_qpc *qp)
{
	u32 n;

	if (qp->recv_active)
		weft_rq_complete(qp, WEFT_WC_FLUSH_ERR, 0, 0, 0);
	/* What waits in an SRQ belongs to nobody yet and stays there. */
	if (qp->srq || !qp->rq.q.slots)
		return;
	for (n = 0; n <= qp->rq.q.slots && weft_rqq_pop(&qp->rq, &qp->recv) > 0; n++)
		weft_rq_complete(qp, WEFT_WC_FLUSH_ERR, 0, 0, 0);
}
