/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Datagrams of a UD QP: which is sent next, and where a received one is placed. The QP is a
 * weft_qpc with datagrams set that never leaves IDLE but for ERROR; its states are the host's. Not
 * in the driver.
 *
 * Sequential, as qp.h.
 */
#ifndef WEFT_CORE_UD_H
#define WEFT_CORE_UD_H

#include "tx.h"

/* The receive buffer begins with InfiniBand's GRH, then the datagram. */
#define WEFT_GRH_LEN 40

/* A datagram to send. */
struct weft_ud_out {
	u32 pos;			/* of its entry */
	u8 status;			/* other than SUCCESS: it cannot be sent, and why */
	bool imm;
	bool solicited;
	u32 imm_data;
	u32 len;
	struct weft_wr_ud to;
	u32 npieces;
	struct weft_piece piece[WEFT_MAX_SGE];	/* held until weft_ud_done() */
};

/*
 * Puts the next datagram posted into *@o. False: there is none, and the next post kicks; or the
 * queue is full of pending ones; or its ring is broken (qp->sq.broken). None is longer than @mtu.
 */
bool weft_ud_next(struct weft_qpc *qp, u32 mtu, struct weft_ud_out *o);

/* @o, the oldest that is not done, completes with @status. */
void weft_ud_done(struct weft_qpc *qp, struct weft_ud_out *o, u8 status);

/* Neither @o nor any after it was sent: weft_ud_next() returns them again. */
void weft_ud_undo(struct weft_qpc *qp, struct weft_ud_out *o);

/* All that is posted completes as flushed: a piece of it. True: there may be more. */
bool weft_ud_flush_sends(struct weft_qpc *qp);
/* Sending continues after such a flush. */
void weft_ud_resume(struct weft_qpc *qp);

/* A datagram that has come in. */
struct weft_ud_in {
	u8 grh[WEFT_GRH_LEN];
	const u8 *payload;
	u32 len;
	u32 src_qpn;
	bool imm;
	bool solicited;
	u32 imm_data;
};

enum weft_ud_fate {
	WEFT_UD_DELIVERED,
	WEFT_UD_NO_RECEIVE,		/* dropped */
	WEFT_UD_BAD_RECEIVE,		/* completed in error: the QP is to fail */
};

enum weft_ud_fate weft_ud_receive(struct weft_qpc *qp, const struct weft_ud_in *in);

#endif
