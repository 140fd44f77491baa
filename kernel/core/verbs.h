/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What verbs see of a QP: its state, the moves that modify_qp allows, the event of an error. */
#ifndef WEFT_CORE_VERBS_H
#define WEFT_CORE_VERBS_H

#include "qp_types.h"

/* The state that verbs show. Any context. */
enum weft_verbs_state weft_qpc_verbs_state(const struct weft_qpc *qp);

/* What a modify_qp asks of the host. */
enum weft_qp_move {
	WEFT_QP_REFUSED,		/* not from the state that the QP is in */
	WEFT_QP_DONE,			/* nothing is left to do */
	WEFT_QP_RESET,			/* let go of a connection that has ended, zero the rings,
					 * weft_qpc_reset() */
	WEFT_QP_CLOSE,			/* weft_qpc_close() */
	WEFT_QP_FAIL,			/* weft_qpc_error() */
};

/*
 * May the QP go to @to, any number, and what does that take? INIT and RTR are names,
 * which rdma_cm gives on the way: a connection makes a QP able to receive and to send
 * (RFC 5040 §5.1). Lock: the host's for modify_qp.
 */
enum weft_qp_move weft_qpc_move(struct weft_qpc *qp, u32 to);

/* Which asynchronous event tells of what ended the QP. */
enum weft_qp_fault {
	WEFT_FAULT_NONE,		/* no error: closed, or asked to */
	WEFT_FAULT_ACCESS,		/* remote protection (0/1) */
	WEFT_FAULT_REQUEST,		/* remote operation (0/2), DDP (1/x) */
	WEFT_FAULT_FATAL,		/* the others, and a CQ that has overflowed */
};

/*
 * Does @t say only that the peer's QP has failed (weft_qpc_tell_peer_of_error())? A Stream error of
 * a segment without octets. On InfiniBand the peer would say nothing, and not answer any more.
 */
bool weft_qpc_peer_has_failed(const struct weft_term *t);

/*
 * By a Terminate received, or else by our own error. For WEFT_EV_FLUSHED, which is raised once a
 * connection, after either of them.
 */
enum weft_qp_fault weft_qpc_fault(const struct weft_qpc *qp);

/* What vendor_err of a completion says of the Terminate that ended the QP; 0 if none did. */
u32 weft_qpc_vendor_err(const struct weft_qpc *qp);

#endif
