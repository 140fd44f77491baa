/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The receives of a QP, wherever they come from. Lock: as in qp.h. */
#ifndef WEFT_CORE_RQ_H
#define WEFT_CORE_RQ_H

#include "qp_types.h"

/* Takes the next receive into qp->recv: 1, 0 none, -1 broken. */
int weft_rq_take(struct weft_qpc *qp);
/* May a Send wait for a receive? Somebody has to be able to post one. */
bool weft_rq_may_wait(const struct weft_qpc *qp);
/* The same, but if there is none, sets rx_waits, and the next post kicks. May be repeated. */
int weft_rq_await(struct weft_qpc *qp);
/* No receive is wanted any more. */
void weft_rq_wait_over(struct weft_qpc *qp);
/* Judges the receive taken last, and sets recv_cap; false if its poster made it unusable. */
bool weft_rq_judge(struct weft_qpc *qp);
/* Where its octet @at belongs, and how many follow there; @at < recv_cap. */
struct weft_sge weft_rq_at(const struct weft_qpc *qp, u32 at);
/* Copies @len octets into it, from its octet @at on; recv_cap has room for them. */
bool weft_rq_place(struct weft_qpc *qp, u32 at, struct weft_cur *from, u32 len);
/*
 * For the host of a QP that is in_order: a Send is being received, and its first recv_got octets
 * are placed. The rest goes to @sge, @n <= WEFT_MAX_SGE - 1 of them, and the receive's own memory
 * is not written any more.
 */
void weft_rq_divert(struct weft_qpc *qp, const struct weft_sge *sge, u32 n);
/* Completes up to @most with FLUSH_ERR. True: so many. */
bool weft_rq_flush(struct weft_qpc *qp, u32 most);
/* Completes the receive taken last, of qp->recv_got octets. @e has status, opcode, flags
 * and what these announce; the rest is filled in.
 */
void weft_rq_complete(struct weft_qpc *qp, struct weft_cqe *e);
/* The same, with an error and nothing else. */
void weft_rq_fail(struct weft_qpc *qp, u8 status);

#endif
