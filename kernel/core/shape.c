// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "rqq.h"
#include "shape.h"
#include "wqe.h"

u32 weft_shape_sq_wqes(u32 slots, u32 wqe_slots)
{
	return max_t(u32, min_t(u32, slots / wqe_slots, WEFT_MAX_QP_WR), 1);
}

int weft_shape_sq(struct weft_sq_caps *caps, struct weft_sq_shape *s)
{
	u32 data;

	if (caps->wr > WEFT_MAX_QP_WR || caps->sge > WEFT_MAX_SGE ||
	    caps->inline_data > WEFT_MAX_INLINE)
		return -EINVAL;
	s->wqe_slots = caps->datagrams ? weft_sq_datagram_slots(caps->sge, caps->inline_data) :
					 weft_sq_wqe_slots(caps->sge, caps->inline_data);
	if (s->wqe_slots > WEFT_SQ_MAX_SLOTS)
		return -EINVAL;
	s->slots = roundup_pow_of_two(max_t(u32, caps->wr, 1) * s->wqe_slots);
	data = (caps->datagrams ? 0 : WEFT_SQ_DATA) + (s->wqe_slots - 1) * WEFT_SLOT_SIZE;
	caps->wr = weft_shape_sq_wqes(s->slots, s->wqe_slots);
	caps->sge = min_t(u32, data / sizeof(struct weft_sge), WEFT_MAX_SGE);
	/* The length of inline data stands in an SGE before it. */
	data -= min_t(u32, data, sizeof(struct weft_sge));
	caps->inline_data = min_t(u32, data, WEFT_MAX_INLINE);
	return 0;
}

/* SGEs that a receive entry of @stride slots has room for. */
static u32 rq_max_sge(u32 stride)
{
	u32 data = stride * WEFT_SLOT_SIZE - offsetof(struct weft_rq_wqe, data);

	return min_t(u32, data / sizeof(struct weft_sge), WEFT_MAX_SGE);
}

int weft_shape_rq(struct weft_rq_caps *caps, struct weft_rq_shape *s)
{
	if (caps->wr > WEFT_MAX_QP_WR || caps->sge > WEFT_MAX_SGE)
		return -EINVAL;
	s->stride = weft_rq_stride(caps->sge);
	s->slots = 0;
	if (!caps->wr)
		return 0;
	s->slots = roundup_pow_of_two(caps->wr) * s->stride;
	caps->wr = s->slots / s->stride;
	caps->sge = rq_max_sge(s->stride);
	return 0;
}

int weft_shape_srq(struct weft_rq_caps *caps, struct weft_rq_shape *s)
{
	return caps->wr ? weft_shape_rq(caps, s) : -EINVAL;
}

int weft_shape_srq_anew(u32 wr, struct weft_rq_shape *s)
{
	if (!wr || wr > WEFT_MAX_QP_WR)
		return -EINVAL;
	s->slots = roundup_pow_of_two(wr) * s->stride;
	return 0;
}

int weft_shape_cq(u32 cqe, u32 *entries)
{
	if (!cqe || cqe > WEFT_MAX_CQE)
		return -EINVAL;
	*entries = roundup_pow_of_two(cqe);
	return 0;
}
