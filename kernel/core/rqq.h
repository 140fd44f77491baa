/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Rings of receive entries: of a QP, or of an SRQ. */
#ifndef WEFT_CORE_RQQ_H
#define WEFT_CORE_RQQ_H

#include "ring.h"

struct weft_rqq {
	struct weft_ringq q;
	u32 stride;			/* slots an entry */
	u32 max_sge;
	u32 used;			/* of them, what an entry can fill */
};

/* @mem: a ring of @slots slots, a power of two. An entry takes weft_rq_stride(@max_sge) of them. */
void weft_rqq_init(struct weft_rqq *rq, void *mem, u32 slots, u32 max_sge);

/* Slots that a receive entry of @max_sge SGEs takes: a power of two. */
u32 weft_rq_stride(u32 max_sge);

/* The private copy of a receive entry: struct weft_rq_wqe with all its SGEs. */
struct weft_recv {
	u64 wr_id;
	u32 num_sge;			/* ~0: more than the queue allows */
	u32 reserved;
	struct weft_sge sge[(WEFT_SQ_MAX_SLOTS * WEFT_SLOT_SIZE - 16) / sizeof(struct weft_sge)];
};
static_assert(offsetof(struct weft_recv, sge) == offsetof(struct weft_rq_wqe, data),
	      "a receive entry is copied as it stands in the ring");

/*
 * Takes the oldest entry. Returns 1, 0 when empty, -1 when the user's index is
 * broken. Lock: the QP's, or the SRQ's.
 */
int weft_rqq_pop(struct weft_rqq *rq, struct weft_recv *recv);

/* As weft_ringq_move(). */
int weft_rqq_move(struct weft_rqq *rq, struct weft_ring_move *m);

#endif
