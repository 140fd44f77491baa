/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What an STag stands for, whether an access is allowed, how long a region is
 * held, and who may register and invalidate it. The table of STags, the
 * references and the pages are the host's; the judgement is here. region_types.h has the fields
 * and their locks.
 */
#ifndef WEFT_CORE_REGION_H
#define WEFT_CORE_REGION_H

#include "region_types.h"

struct weft_cur;
struct weft_qpc;
struct weft_wr_bind;
struct weft_wr_reg;

/* A null region as @pd's, but for its STag. */
struct weft_region weft_region_null(u32 pd);

/*
 * May QP @qp of @pd use @len bytes at @addr of @r (NULL: none found) as
 * @access asks (0: local read)? Checked in the order of the enum.
 */
enum weft_denial weft_region_check(const struct weft_region *r, u32 stag, u32 pd, u32 qp,
				   u64 addr, u64 len, u32 access);

/*
 * A user asks for a region of @len octets at @start, known as @iova, with IB_ACCESS_ bits
 * @access: 0; -EINVAL: no such range, or rights that contradict each other; -EOPNOTSUPP: a
 * right that is not known, and not one of those that may be ignored.
 */
int weft_region_check_request(u64 start, u64 len, u64 iova, u32 access);
/*
 * The same of a dmabuf. Its memory may be write-combining, where a CPU has no atomics: a window
 * might allow them, too.
 */
int weft_region_check_dmabuf(u64 offset, u64 len, u64 iova, u32 access);

/* ---- STag numbers ---- */

/* An STag is the region's index in the host's table, and below that a key. */
#define WEFT_STAG_KEY_BITS	8
#define WEFT_STAG_INDEX_MAX	(0xFFFFFFFFu >> WEFT_STAG_KEY_BITS)
/* A table a sixteenth full hits a free place in one try of 1.07. */
#define WEFT_STAG_TRIES		64

/*
 * An STag for a new region of @kind, made of 32 random bits, so that a peer can
 * count on nothing; 0: draw again. The key of a fast region is its consumer's, and
 * 0 at first. Index 0 is no region's: STag 0 is the local DMA lkey. A host whose
 * table has no free place after WEFT_STAG_TRIES draws gives up.
 */
u32 weft_region_new_stag(enum weft_region_kind kind, u32 random);

/*
 * The host's: @r is out of use for good, though some may hold it yet, and REG_MR be under way. The
 * host waits for them. Before it takes the region out of its table, and drops the table's hold; no
 * lock.
 */
void weft_region_withdraw(struct weft_region *r);

/* ---- in use. Lock: the connection's, as in qp.h ---- */

/*
 * The region that @stag names, to be put once used, or NULL. The key byte is not
 * compared: weft_region_check() does. A region may be kept from its check to the last
 * byte of one FPDU, or of the FPDUs that go out together; each run looks it up anew.
 * One that is not @pd's is kept from here to the put alone.
 */
struct weft_region *weft_region_get(struct weft_qpc *qp, u32 pd, u32 stag);
void weft_region_put(struct weft_qpc *qp, struct weft_region *r);

/* Checks as weft_region_check() does, then copies @len octets from the cursor. */
enum weft_denial weft_region_place(struct weft_qpc *qp, u32 pd, u32 stag, u64 to,
				   struct weft_cur *from, u32 len, u32 access);

/* Would weft_region_place() copy there? */
bool weft_region_allows(struct weft_qpc *qp, u32 pd, u32 stag, u64 to, u32 len, u32 access);

/*
 * A run of receiving or sending is over: nothing is held any more but what was got
 * and is not yet put.
 */
void weft_region_end_run(struct weft_qpc *qp);

/*
 * LOCAL_INV, READ_INV, and a Send with Invalidate from the peer (@peer): takes a region
 * out of use, a fast-registered one or a window of type 2B. A window, only over the QP
 * that bound it. A fast region, over any QP of its PD; but RFC 5040 §8.1.1 (7): the peer
 * only over the QP that registered it. Returns WEFT_GRANTED, or why not. If granted,
 * nothing new uses the region; *@ends, NULL before, is that which others may still use.
 */
enum weft_denial weft_region_invalidate(struct weft_qpc *qp, u32 stag, bool peer,
					struct weft_region **ends);

/* Has everybody let go of *@ends? Then it is NULL. False: weft_host_try_again() was called. */
bool weft_region_try_end(struct weft_qpc *qp, struct weft_region **ends);

/* The same, of one or none: its consumer may do with the memory what it likes. */
static inline bool weft_region_has_ended(struct weft_qpc *qp, struct weft_region **ends)
{
	return likely(!*ends) || weft_region_try_end(qp, ends);
}

/* The QP is in error: it does not wait for other QPs. weft_rq_wait_over() follows, for rx_waits. */
void weft_region_forget_ends(struct weft_qpc *qp);

/*
 * BIND_MW: from now on bind->mw_stag stands for a part of a region, over this QP alone: as
 * iWARP's verbs have it, for both types. Length 0 unbinds a window of type 1. The rights are
 * remote ones and ZERO_BASED.
 */
enum weft_denial weft_region_bind(struct weft_qpc *qp, const struct weft_wr_bind *bind);

/* For the host: unbinds a window that has left its table. Lock: weft_host_lock_windows(). */
void weft_region_unbind(struct weft_region *window);

/*
 * Unbinds all windows of @qp, which is reset or destroyed: its number may name another peer soon.
 * Lock: @qp's.
 */
void weft_region_unbind_all(struct weft_qpc *qp);

/* REG_MR of a kernel consumer: from now on reg->stag is valid, for all QPs of the PD. */
enum weft_denial weft_region_register(struct weft_qpc *qp, const struct weft_wr_reg *reg);

#endif
