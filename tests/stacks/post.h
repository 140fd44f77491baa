/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The user's side of a QP: work requests are written to the rings as a provider writes them, and
 * the doorbell is rung when the ring asks for it.
 */
#ifndef STACKS_POST_H
#define STACKS_POST_H

#include "host.h"

/* One more SGE than is allowed, so that tests can request too many. */
#define HOST_WR_SGES (WEFT_MAX_SGE + 1)

struct host_wr {
	u64 wr_id;
	u8 opcode;			/* WEFT_WR_ */
	u8 flags;			/* WEFT_WR_; INLINE follows from inline_len */
	u8 num_sge;
	u32 rkey;
	u64 remote_addr;
	u32 inv_stag;
	u64 imm;			/* *_IMM */
	struct weft_wr_atomic atomic;	/* CMP_SWAP, FETCH_ADD */
	bool masked;			/* the masked form */
	const void *inline_data;	/* not NULL: inline_len bytes instead of SGEs */
	u32 inline_len;
	struct weft_wr_reg reg;		/* REG_MR */
	struct weft_wr_bind bind;	/* BIND_MW */
	struct weft_sge sge[HOST_WR_SGES];
};

/* Output of host_wr_encode(): the longest entry, and one slot more for bad ones. */
struct host_wqe {
	struct weft_sq_wqe first;
	u8 more[WEFT_SQ_MAX_SLOTS * WEFT_SLOT_SIZE];
};

/* Encodes @wr; returns its slots. */
u32 host_wr_encode(const struct host_wr *wr, struct host_wqe *w);

/* An SGE over @len bytes from @off of @mr. */
struct weft_sge host_sge(const struct host_mr *mr, u64 off, u32 len);

/* False when the ring has no room. */
bool host_post_send(struct host_qp *qp, const struct host_wr *wr);
/* Posts the slots as they are, whatever they contain. */
bool host_post_raw(struct host_qp *qp, const void *slots, u32 n);
bool host_post_recv(struct host_qp *qp, u64 wr_id, const struct weft_sge *sge, u32 num_sge);
bool host_post_srq(struct host_srq *srq, u64 wr_id, const struct weft_sge *sge, u32 num_sge);

/* A misbehaving user: sets its index of the send or receive ring, and rings. */
void host_scribble_index(struct host_qp *qp, bool recv, u32 user_idx);

#endif
