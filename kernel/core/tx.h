/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What a QP sends next. Lock: as in qp.h. */
#ifndef WEFT_CORE_TX_H
#define WEFT_CORE_TX_H

#include "qp_types.h"

/* A run of an FPDU's payload: @len bytes at @addr of a held region, or at @p. */
struct weft_piece {
	struct weft_region *region;	/* NULL: the bytes are at @p */
	union {
		u64 addr;
		const void *p;
	};
	u32 len;
};

/* An FPDU to hand over: its head, then the pieces, then PAD and CRC. */
struct weft_txd {
	struct weft_tx_fpdu f;
	u32 npieces;
	struct weft_piece piece[WEFT_MAX_SGE + 1];
};

enum weft_tx_result {
	WEFT_TX_IDLE,			/* nothing to send now; KICK is set on the ring */
	WEFT_TX_FPDU,			/* *d is to be sent; weft_tx_put() when copied */
	WEFT_TX_NO_FIT,			/* @whole was asked for and the rest of the message is
					 * longer */
	WEFT_TX_FIN,			/* all is said: close the sending side. Reported once */
};

/*
 * Chooses the next FPDU: a Terminate first, the RTR, the message in progress,
 * then Responses and WQEs by turns, as gates allow (MPA-30, ORD, fence). Pulls
 * new WQEs from the ring. @max_ulpdu >= 128. @whole: only if all that is left
 * of the message fits into @max_ulpdu (which may then be smaller).
 */
enum weft_tx_result weft_tx_next(struct weft_qpc *qp, u32 max_ulpdu, bool whole,
				 struct weft_txd *d);

/* Lets go of the regions held by *@d. */
void weft_tx_put(struct weft_qpc *qp, struct weft_txd *d);

/*
 * Every FPDU handed out so far is TCP's: WQEs wholly sent complete now, in order
 * (RFC 5040 §5.5 rule 15), unless the QP confirms.
 */
void weft_tx_sent(struct weft_qpc *qp);

/* Is a message under way of which more FPDUs are to come? The caller's lock, as above. */
static inline bool weft_tx_amid(const struct weft_qpc *qp)
{
	return qp->tx_kind != WEFT_TXK_NONE;
}

/*
 * The usual end of a run, without weft_tx_next(): only the ring could bring a message, and that is
 * empty, and asks for a doorbell from now on. False: weft_tx_next() knows.
 */
bool weft_tx_rests(struct weft_qpc *qp);

/*
 * After WEFT_TX_IDLE: does the next message need a doorbell or the peer? Otherwise it may wait
 * until TCP has what was handed out.
 */
bool weft_tx_is_idle(const struct weft_qpc *qp);

/*
 * IDLE, by hand, UC: posted requests complete as if they had been sent, and are lost. A request
 * that could not have been sent fails, as do all after it. True: there may be more.
 */
bool weft_qpc_lose(struct weft_qpc *qp);

#endif
