/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The send queue of a QP. Lock: as in qp.h. */
#ifndef WEFT_CORE_SQ_H
#define WEFT_CORE_SQ_H

#include "qp_types.h"

static inline struct weft_sq_wqe *weft_sq_wqe_at(const struct weft_sqq *sq, u32 pos)
{
	return (struct weft_sq_wqe *)(sq->copy +
				      (size_t)(pos & (sq->q.slots - 1)) * WEFT_SLOT_SIZE);
}

static inline struct weft_wqe_info *weft_sq_info_at(const struct weft_sqq *sq, u32 pos)
{
	return &sq->info[pos & (sq->q.slots - 1)];
}

/* Copies and judges the next entry of the ring: 1, 0 (none, or full), -1 (broken). */
int weft_sq_pull(struct weft_qpc *qp);
/* Might weft_sq_pull() do anything? */
static inline bool weft_sq_is_behind(const struct weft_sqq *sq)
{
	return sq->broken || weft_ringq_filled(&sq->q, sq->pulled);
}
/*
 * For the host, after a send run: copies the rest of the last Send or Write, which has SGEs and is
 * being sent or is next, to @mem of @lkey. Its own memory is not read any more. Under guard. False:
 * @room is too small, or the connection is ending.
 */
bool weft_sq_keep(struct weft_qpc *qp, void *mem, u32 room, u32 lkey);
/* No entry is pulled before one completes. */
static inline bool weft_sq_is_full(const struct weft_sqq *sq)
{
	return sq->held == sq->max_wqes;
}
/* What the entry at @pos completes with in the flush that follows. */
void weft_sq_spoil(struct weft_qpc *qp, u32 pos, u8 status);
/* The peer has taken in what was sent of the entries before @pos. */
void weft_sq_confirm(struct weft_qpc *qp, u32 pos);
/* Completes, in order, entries that are done: a piece (WEFT_FLUSH_PIECE), and asks for a run. */
void weft_sq_reap(struct weft_qpc *qp);
/* Completes up to @most: those done as they are, others with FLUSH_ERR. True: so many. */
bool weft_sq_flush(struct weft_qpc *qp, u32 most);

#endif
