/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Encodes work requests into ring entries, decodes ring entries into work completions. Needs only
 * the public verbs header, so that tests can drive it without a device.
 */
#ifndef WEFT_PROVIDER_WQE_H
#define WEFT_PROVIDER_WQE_H

#include <assert.h>

#include <infiniband/verbs.h>

#include "ring.h"

/* A send queue. The owner locks around every function. */
struct weft_sq {
	struct weft_uring ring;
	uint64_t features;	/* WEFT_FEATURE_ in force */
	uint32_t max_slots;	/* longest entry that the kernel takes */
	uint32_t max_sge;
	uint32_t max_inline;
	bool datagrams;		/* of a UD QP: entries begin with struct weft_wr_ud */
};

/* An address handle. */
struct weft_ah {
	struct ibv_ah ah;
	struct weft_wr_ud to;	/* but for the QP and its key */
};

/* A receive queue of a QP, or an SRQ. */
struct weft_rq {
	struct weft_uring ring;
	uint32_t stride;	/* slots an entry */
	uint32_t max_sge;
};

/* Bytes of @sgl in all; may exceed 32 bits. */
static inline uint64_t weft_sgl_length(const struct ibv_sge *sgl, uint32_t num_sge)
{
	uint64_t sum = 0;

	while (num_sge--)
		sum += sgl++->length;
	return sum;
}

/* The first half of a send entry: everything but data[]. */
struct weft_sq_head {
	uint64_t wr_id;
	uint64_t remote_addr;
	uint64_t imm;		/* of the opcodes with immediate data, */
	uint32_t inv_stag;	/* or of those that invalidate */
	uint32_t rkey;
	uint8_t opcode;		/* WEFT_WR_ */
	uint8_t flags;		/* WEFT_WR_ */
	struct weft_wr_ud ud;	/* of a UD QP: the destination */
};

/* A datagram's destination: QP @qpn at @ah. */
struct weft_wr_ud weft_ah_address(const struct ibv_ah *ah, uint32_t qpn, uint32_t qkey);

/*
 * Each appends one entry at sq->ring.idx and advances it, without publishing. Returns 0, ENOMEM if
 * the ring is full, EINVAL if the request cannot be encoded; on error idx is unchanged.
 */
int weft_sq_add_none(struct weft_sq *sq, const struct weft_sq_head *h);
int weft_sq_add_sges(struct weft_sq *sq, const struct weft_sq_head *h, const struct ibv_sge *sgl,
		     size_t num_sge);
int weft_sq_add_inline(struct weft_sq *sq, const struct weft_sq_head *h,
		       const struct ibv_data_buf *bufs, size_t num_buf);
/* The first @num_sge elements of the list at @at; of inline data, the one with its length. */
void weft_sq_copy_sges(const struct weft_sq *sq, uint32_t at, uint32_t num_sge,
		       struct weft_sge *list);
/* Octets of the entries from @at on, which are not published. */
uint64_t weft_sq_octets(const struct weft_sq *sq, uint32_t at);
/* Takes the operands of @op, not the masks. */
int weft_sq_add_atomic(struct weft_sq *sq, const struct weft_sq_head *h,
		       const struct weft_wr_atomic *op, const struct ibv_sge *sge);

/* The window becomes @rkey. */
int weft_sq_add_bind(struct weft_sq *sq, const struct weft_sq_head *h, uint32_t rkey,
		     const struct ibv_mw_bind_info *info);
/* For a type 2 window, else EINVAL: takes the low 8 bits of @rkey and updates @mw. */
int weft_sq_add_bind_2(struct weft_sq *sq, const struct weft_sq_head *h, struct ibv_mw *mw,
		       uint32_t rkey, const struct ibv_mw_bind_info *info);

/* verbs' @opcode as WEFT_WR_; -1: the queue refuses it. */
int weft_sq_opcode(const struct weft_sq *sq, unsigned int opcode);

/*
 * The errors that an entry of a connected QP can be made to complete with: bits by IBV_WC_.
 * @in_memory: it has buffers, and is not inline. Those that are the peer's fault or the device's do
 * not break it.
 */
uint32_t weft_sq_errors(uint8_t opcode, bool in_memory);
/* Makes the entry at @idx, which is not published yet, complete with @status, one of these. */
void weft_sq_break_entry(struct weft_sq *sq, uint32_t idx, enum ibv_wc_status status);

/* The same for a receive, which is changed before it is posted; @list: room for its elements. */
uint32_t weft_rq_errors(const struct ibv_recv_wr *wr);
void weft_rq_break_wr(struct ibv_recv_wr *wr, struct ibv_sge *list, enum ibv_wc_status status);

/* Sets the destination of the entry at @idx, which was appended before. */
void weft_sq_readdress(struct weft_sq *sq, uint32_t idx, const struct weft_wr_ud *to);

/* IBV_SEND_* as WEFT_WR_ flags. */
uint8_t weft_wr_flags(unsigned int send_flags);

/* Appends a work request of the plain verbs. */
int weft_sq_add_wr(struct weft_sq *sq, const struct ibv_send_wr *wr);
int weft_rq_add_wr(struct weft_rq *rq, const struct ibv_recv_wr *wr);

/* Decodes a completion; safe for any bytes. */
void weft_cqe_decode(const struct weft_cqe *cqe, struct ibv_wc *wc);

/*
 * Removes the completions of @qp_num that have not been polled yet; those of
 * others keep their order.
 */
void weft_cq_clean(struct weft_uring *cq, uint32_t qp_num);

#endif
