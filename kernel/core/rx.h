/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What a QP receives. Lock: as in qp.h. */
#ifndef WEFT_CORE_RX_H
#define WEFT_CORE_RX_H

#include "qp_types.h"

/*
 * Takes all octets of @in in Full Operation. Exceptions: octets that weft_host_chunk() had no
 * memory for; a Send that waits for a receive, and all octets after it; octets after a message
 * that waits for a region's end. Afterwards the host runs the send side if weft_host_kick() was
 * called, and looks at qp->state.
 */
void weft_qpc_rx(struct weft_qpc *qp, struct weft_cur *in);

/*
 * Once weft_qpc_rx() has taken everything: adds to *@aim, which is empty, where the next octets
 * from the peer belong, as far as that is known. If it is not empty then, the host reads up to
 * aim->len octets to there, and what follows those elsewhere: weft_qpc_rx_landed() comes next, in
 * the same run, and then weft_qpc_rx() for what follows.
 */
void weft_qpc_rx_aim(struct weft_qpc *qp, struct weft_aim *aim);
/* The first @n octets are there; 0: none. */
void weft_qpc_rx_landed(struct weft_qpc *qp, const struct weft_aim *aim, u32 n);

/*
 * A Send waits for a receive, and there may be one now, or rx_overdue was set; or a region may
 * have ended: true if it goes on. The host then offers the octets that it has kept back.
 */
bool weft_qpc_rx_resume(struct weft_qpc *qp);

#endif
