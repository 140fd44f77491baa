/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A batch: FPDUs, many of them, that go to TCP in one call.
 *
 * The host lends memory while something is in hand. Headers, PADs and CRCs stand in it,
 * and payload that is summed (CRC), interspersed (Markers) or short. Longer payload is
 * listed where it lies, its region held, until TCP's call is over; what TCP did not take
 * is copied then, and users' memory is never read again. No more is assembled than TCP has
 * room for, as far as that is known, so this is rare. A rest that waits for a slow peer gets
 * memory of its own size.
 *
 * FPDUs do not cross TCP segments (RFC 5044 §5.1): a batch starts where TCP's queue ends,
 * FPDUs are cut to end on the segment's boundary, and where the rest of a segment is no
 * use the batch ends, with EOR. Nothing depends on it: SACK blocks, a new path MTU or a
 * small window break the alignment for a while.
 *
 * Locking: the connection's lock around every function.
 */
#ifndef WEFT_CORE_BATCH_H
#define WEFT_CORE_BATCH_H

#include "tx.h"

/* The smallest segments FPDUs are cut for: one of the 128-octet ULPDUs of RFC 5044 §4.5. */
#define WEFT_BATCH_SEG_MIN	144
/* The longest FPDU, WEFT_MPA_ULPDU_MAX octets of ULPDU. */
#define WEFT_LARGE_FPDU		64776
/* Pieces of users' memory that a batch refers to at most; the rest is copied. */
#define WEFT_BATCH_REFS		160
/* The least that a host lends; from WEFT_BATCH_REFER_FROM octets on payload is referred to. */
#define WEFT_BATCH_MEM_MIN	4096
#define WEFT_BATCH_REFER_FROM	(32 * 1024)

/* Octets in one place, as struct iovec and struct kvec list them. */
struct weft_iov {
	void *base;
	size_t len;
};

/* Where the octets of a batch lie that is not all in its memory, in order. */
struct weft_batch_refs {
	struct weft_iov iov[2 * WEFT_BATCH_REFS + 1];
	struct weft_region *held[WEFT_BATCH_REFS];
};

struct weft_batch {
	u8 *buf;			/* lent; NULL while there is nothing in hand */
	u32 lent;			/* octets at buf, in all */
	u32 asked;			/* of those, what was asked for: the host may lend more */
	u32 size;			/* of those, for the batch's octets */
	u32 limit;			/* of those, to be filled with FPDUs */
	struct weft_batch_refs *refs;	/* behind size; NULL: too little was lent */
	struct weft_txd *d;		/* behind them: the FPDU to be appended */

	u32 off, end;			/* of the batch's octets, [off..end) are still to go */
	u32 used;			/* of buf: less than end while users' memory is referred
					 * to */
	u32 span;			/* of buf: where what iov does not list yet begins */
	u32 niov, nheld;		/* of refs; 0: the batch is in buf */
	struct weft_iov whole;		/* the batch that is all in buf */
	u32 mss;			/* segment size that this batch is cut for; large FPDUs: of
					 * several */
	u32 seg_off;			/* octets in the segment being filled, or
					 * WEFT_SEG_UNKNOWN */
	bool fresh;			/* the batch begins a segment: TCP's last one is to end */
	bool eor;			/* the batch ends a segment early: MSG_EOR */

	u32 fpdus, segs;		/* begun so far, modulo 2^32: for the host's counters */
};

/* Has TCP taken all of it? */
static inline bool weft_batch_is_sent(const struct weft_batch *b)
{
	return b->off == b->end;
}

/* @mem: @size >= WEFT_BATCH_MEM_MIN octets, aligned for pointers. None is lent now. */
void weft_batch_lend(struct weft_batch *b, void *mem, u32 size);

/* Gives the memory back, or NULL while octets wait in it. @all: those are dropped. */
void *weft_batch_reclaim(struct weft_batch *b, bool all);

/* Begins an empty batch where TCP's queue ends: @seg_off octets into a segment of @mss,
 * or WEFT_SEG_UNKNOWN: then no segment ends a batch.
 */
void weft_batch_begin(struct weft_batch *b, u32 mss, u32 seg_off);

/* TCP takes about @octets now: the batch grows no longer than that. */
void weft_batch_limit(struct weft_batch *b, u32 octets);

/*
 * Appends FPDUs of @qp until the batch is full (WEFT_TX_FPDU), a segment ends in it
 * (WEFT_TX_NO_FIT), or there is nothing more to send now (WEFT_TX_IDLE) or at all
 * (WEFT_TX_FIN). Octets may stand in it in any case.
 */
enum weft_tx_result weft_batch_fill(struct weft_batch *b, struct weft_qpc *qp);

/*
 * The QP is about to go: appends its Terminate, if one is due, after the octets that wait. Room
 * was kept for it. False: there is none.
 */
bool weft_batch_append_terminate(struct weft_batch *b, struct weft_qpc *qp);

/* Lists what is still to go, b->end - b->off octets: *@niov entries. */
const struct weft_iov *weft_batch_list(struct weft_batch *b, u32 *niov);

/*
 * TCP has taken the first @taken octets of what weft_batch_list() listed. What is left is
 * copied to its place in the memory, and the regions are let go. @qp: as at the filling.
 */
void weft_batch_taken(struct weft_batch *b, struct weft_qpc *qp, u32 taken);

/*
 * The memory, in octets, that is enough for those that are still to go and a Terminate behind them;
 * 0: not much less than was asked for last.
 */
u32 weft_batch_rest_size(const struct weft_batch *b);

/*
 * The octets that are still to go move to @mem, @size octets of which weft_batch_rest_size() has
 * asked for @asked. Returns the memory that they had, b->lent octets.
 */
void *weft_batch_move(struct weft_batch *b, void *mem, u32 size, u32 asked);

/* Whatever was being done with the batch, nothing of it is said any more; regions are let go. */
void weft_batch_break_off(struct weft_batch *b, struct weft_qpc *qp);

#endif
