/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Queue logic of one QP: send queue, receive queue, outstanding Reads both
 * ways, the state that decides what is sent next, error and flush.
 *
 * Sequential: the caller holds the connection's lock (in the driver the
 * socket's; before a connection exists, the QP's state lock) around every
 * function, unless said otherwise. qp_types.h has the fields. Files, each with its header and each
 * calling only those before it: wqe.c (decode and judge a send entry), rqq.c (rings of receive
 * entries), srq.c (shared ones), verbs.c (what verbs see), sq.c (the send queue), rq.c (a QP's
 * receives), qp.c (states, flush), tx.c (what goes out next), rx.c (what came in).
 */
#ifndef WEFT_CORE_QP_H
#define WEFT_CORE_QP_H

#include "host.h"
#include "qp_types.h"
#include "region.h"
#include "rq.h"
#include "sq.h"
#include "srq.h"
#include "verbs.h"
#include "wqe.h"

/*
 * Prepares a zeroed *@qp whose id, pd, recv_pd, kernel, dma, srq, sig_all, scq, rcq, sq.q,
 * sq.copy, sq.info, sq.max_slots and rq are set.
 */
void weft_qpc_init(struct weft_qpc *qp);

/* The error that a refused remote access to a tagged buffer makes: by the peer's
 * Write or Read Response (DDP's codes), by its Read Request (RDMAP's).
 */
enum weft_err weft_denial_ddp(enum weft_denial d);
enum weft_err weft_denial_rdmap(enum weft_denial d);

/*
 * A connection is there: @st has been started. @orq has @ord entries (NULL if 0), some for
 * acknowledgement Reads, @irq has irq_slots >= ird, and at least 1. IDLE -> RTS. Peer-to-peer
 * initiators send the RTR first. The caller runs the send side afterwards.
 */
void weft_qpc_start(struct weft_qpc *qp, struct weft_stream *st, u32 ord,
		    struct weft_orq_entry *orq, u32 ird, struct weft_irq_entry *irq,
		    u32 irq_slots);

/* An overflow of @cq ends the QPs of which this is true: weft_qpc_error(). */
static inline bool weft_qpc_uses_cq(const struct weft_qpc *qp, const struct weft_cqc *cq)
{
	return qp->scq == cq || qp->rcq == cq;
}

/*
 * In ERROR for a reason of the user's: a Terminate for the peer is ready, ERROR -> TERM. Not if the
 * peer has said its own. TCP's sending side is open yet, whatever WEFT_TX_FIN has said.
 */
void weft_qpc_tell_peer_of_error(struct weft_qpc *qp);

/* Graceful close: RTS -> CLOSING. weft_tx_next() reports WEFT_TX_FIN when drained. */
void weft_qpc_close(struct weft_qpc *qp);

/*
 * Local error @e, found in @fpdu if not NULL: flushes, prepares the Terminate
 * (none for WEFT_E_MPA_STARTUP), stops the stream. The first error wins.
 */
void weft_qpc_fail(struct weft_qpc *qp, enum weft_err e, const struct weft_fpdu *fpdu);

/* The same for an offender known by its headers: see weft_term_make(). */
void weft_qpc_fail_raw(struct weft_qpc *qp, enum weft_err e, const u8 *hdr, u32 hdr_len,
		       u16 seg_len);

/*
 * A fault of this end's own. A QP that is connected by hand, or of datagrams, is usable before it
 * has a connection: then no peer learns of it, as of an adapter's. Not before RTR.
 */
void weft_qpc_break(struct weft_qpc *qp);

/* A Terminate came and stands in qp->term_in: flushes, answers nothing. */
void weft_qpc_terminated(struct weft_qpc *qp);

/* The connection is gone or the user asked for ERROR: flushes, no Terminate. */
void weft_qpc_error(struct weft_qpc *qp);

/* FIN received: inbound Reads are still answered (RFC 5041 §6.2.1), then FIN. */
void weft_qpc_peer_fin(struct weft_qpc *qp);

/*
 * A QP connected by hand has lost its connection, which does not matter before the next send:
 * RTS -> IDLE, and posted requests stay posted. A message that was being sent or received can only
 * be given up, or flushed. The next post kicks.
 */
void weft_qpc_unplug(struct weft_qpc *qp);

/* Is there a work request that has not completed? */
bool weft_qpc_has_sends(const struct weft_qpc *qp);

/*
 * The peer does not answer: the oldest work request that is not done completes with @status, the
 * others are flushed, as are the receives.
 */
void weft_qpc_give_up(struct weft_qpc *qp, u8 status);
/*
 * The same, and the fault is said to be this end's: weft_qpc_break(). BAD_RESP_ERR is that of the
 * oldest Read or atomic.
 */
void weft_qpc_break_request(struct weft_qpc *qp, u8 status);

/*
 * The peer, which confirms, too, has sent a Write or Send and will send an acknowledgement Read for
 * it. An adapter would have acknowledged it by now: before a QP is released, wait briefly for it.
 */
bool weft_qpc_is_ack_pending(const struct weft_qpc *qp);

/* No work request begins from here on; or they may again. */
void weft_qpc_hold(struct weft_qpc *qp, bool on);
/* Held, and all requests that had begun have completed. */
bool weft_qpc_is_drained(const struct weft_qpc *qp);

/* Back to IDLE with empty queues. The host has cleared the rings' memory. */
void weft_qpc_reset(struct weft_qpc *qp);

/*
 * In ERROR or TERM: completes some posted requests with FLUSH_ERR, in order. True: there may be
 * more, and the host calls again soon; weft_send_run() calls it, too.
 */
bool weft_qpc_flush(struct weft_qpc *qp);

#endif
