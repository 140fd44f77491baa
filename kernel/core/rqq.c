// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "rqq.h"

#define RQ_HEAD offsetof(struct weft_rq_wqe, data)

static u32 slots_used(u32 max_sge)
{
	return DIV_ROUND_UP(RQ_HEAD + max_sge * sizeof(struct weft_sge), WEFT_SLOT_SIZE);
}

u32 weft_rq_stride(u32 max_sge)
{
	u32 need = slots_used(max_sge);
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
	rq->used = slots_used(max_sge);
}

int weft_rqq_pop(struct weft_rqq *rq, struct weft_recv *recv)
{
	s32 filled = weft_ringq_filled(&rq->q, rq->q.idx);

	if (filled < 0)
		return -1;
	if ((u32)filled < rq->stride)
		return 0;
	weft_ringq_copy(&rq->q, rq->q.idx, recv, rq->used);
	if (recv->num_sge > rq->max_sge)
		recv->num_sge = ~0u;
	weft_ringq_free(&rq->q, rq->stride);
	return 1;
}

int weft_rqq_move(struct weft_rqq *rq, struct weft_ring_move *m)
{
	u32 idx = rq->q.idx;
	s32 filled = weft_ringq_filled(&rq->q, idx);

	return filled < 0 ? -EINVAL : weft_ringq_move(&rq->q, m, idx, filled, idx + filled);
}
