/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What a QP receives. Lock: as in qp.h. */
#ifndef WEFT_CORE_RX_H
#define WEFT_CORE_RX_H

#include "qp_types.h"

/*
 * Takes all bytes of @in in Full Operation, but for those that weft_host_chunk() had no
 * memory for, and a Send that waits for a receive with all behind it, or what is behind one that
 * waits for a region's end. Afterwards the host runs the send side if weft_host_kick() was called,
 * and looks at qp->state.
 */
void weft_qpc_rx(struct weft_qpc *qp, struct weft_cur *in);

/*
 * A Send waits for a receive, and there may be one now, or rx_overdue was set; or a region may
 * have ended: true if it goes on. What the host has kept back since is to be offered then.
 */
bool weft_qpc_rx_resume(struct weft_qpc *qp);

#endif
