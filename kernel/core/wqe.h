/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A send entry: its size, what it may hold, what it asks for. Pure functions. */
#ifndef WEFT_CORE_WQE_H
#define WEFT_CORE_WQE_H

#include "../proto/rdmap.h"
#include "../uapi/rdma/weft-abi.h"

/* Slots that a WQE with @num_sge SGEs, or @inline_len bytes if that is more, takes. */
u32 weft_sq_wqe_slots(u32 num_sge, u32 inline_len);
/* The same of a UD QP's, whose first slot says where it goes. */
u32 weft_sq_datagram_slots(u32 num_sge, u32 inline_len);

/* Judges a private copy that has @nslots slots. Fills *@len with the payload's
 * length. Returns WEFT_WC_SUCCESS, or the status of its completion.
 */
u8 weft_wqe_check(const struct weft_sq_wqe *w, u32 nslots, bool kernel, u32 *len);
/* The same of a UD QP's entry. */
u8 weft_wqe_check_datagram(const struct weft_sq_wqe *w, u32 nslots, u32 *len);

/* A zero-length tagged message names no buffer; some RNICs still dislike STag 0. */
#define WEFT_STAG_NONE 1

/* Is it one of RFC 7306's? */
bool weft_wqe_is_extension(const struct weft_sq_wqe *w);
static inline bool weft_wqe_is_atomic(const struct weft_sq_wqe *w)
{
	return w->opcode == WEFT_WR_CMP_SWAP || w->opcode == WEFT_WR_FETCH_ADD;
}
/* Where the answer to a judged Read or atomic goes; WEFT_STAG_NONE if it names no
 * place, for no octets.
 */
void weft_wqe_sink(const struct weft_sq_wqe *w, u32 *stag, u64 *to);
/* The Request of a judged atomic, but for its identifier. */
void weft_wqe_atomic(const struct weft_sq_wqe *w, struct weft_atomic_req *r);
/* The @i-th SGE of a judged entry; its inline bytes. */
const struct weft_sge *weft_wqe_sge(const struct weft_sq_wqe *w, u32 i);
const u8 *weft_wqe_inline(const struct weft_sq_wqe *w);
/* Of a UD QP's: the @i-th SGE, or that which counts its inline bytes, which follow it. */
const struct weft_sge *weft_wqe_datagram_sge(const struct weft_sq_wqe *w, u32 i);

#endif
