/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a ULP of another library asks of a connection and of its QP: libweft-sockets.so's streams
 * (sockets/stream). These functions are all of host/ that it can call. What the connection asks of
 * its ULP is in conn.h: struct rl_conn_ulp.
 *
 * All hold the connection's lock, unless said otherwise.
 */
#ifndef RL_ULP_H
#define RL_ULP_H

#include "process/api.h"
#include "conn.h"
#include "mr.h"
#include "qp.h"

RL_API(rl_conn_new);
RL_API(rl_conn_unlock);
RL_API(rl_conn_settle);
RL_API(rl_conn_receive);
RL_API(rl_conn_tx);
RL_API(rl_conn_break_off);
RL_API(rl_conn_view);
RL_API(rl_mr_new);
RL_API(rl_mr_destroy);

/* ---- start-up ---- */

/* Private data, and Reads that may be outstanding, each way. */
struct rl_ulp_terms {
	const void *pd;
	u32 pd_len;
	u32 reads;
};

/*
 * An initiator sends the Request of @t, with @o, which the connection frees; a responder awaits
 * one, for request(), and needs nothing else.
 */
void rl_ulp_start(struct rl_conn *c, struct rl_qp *qp, struct weft_offer *o,
		  const struct rl_ulp_terms *t);
RL_API(rl_ulp_start);
/* In request(): Full Operation begins: 0; or -errno, and rl_ulp_reject() is next. */
int rl_ulp_accept(struct rl_conn *c, struct rl_qp *qp, const struct rl_ulp_terms *t);
RL_API(rl_ulp_accept);
/* In request(): answers with R=1. @t NULL: there is no memory for an answer. */
void rl_ulp_reject(struct rl_conn *c, const struct rl_ulp_terms *t);
RL_API(rl_ulp_reject);
/*
 * Gives start-up up: an initiator sends FIN, and failed() is called with @err; a responder resets.
 */
void rl_ulp_withdraw(struct rl_conn *c, int err);
RL_API(rl_ulp_withdraw);

/* Undoes rl_conn_watch(). */
void rl_ulp_unwatch(struct rl_conn *c);
RL_API(rl_ulp_unwatch);

/* ---- the QP ---- */

/* Once its rings are there. Without a connection. */
void rl_ulp_init_qp(struct rl_qp *qp);
RL_API(rl_ulp_init_qp);
/* The rest of the message that is being received goes to these @n places. */
void rl_ulp_divert(struct rl_qp *qp, const struct weft_sge *sge, u32 n);
RL_API(rl_ulp_divert);
/*
 * What the oldest request still refers to is copied to @mem, of @room octets, and referred to
 * there. False: the memory is gone, or there is no room.
 */
bool rl_ulp_keep(struct rl_qp *qp, void *mem, u32 room);
RL_API(rl_ulp_keep);
/*
 * Once all that is posted is sent the peer gets FIN; not @well: it has broken the ULP's rules, and
 * gets a Terminate.
 */
void rl_ulp_end(struct rl_qp *qp, bool well);
RL_API(rl_ulp_end);
/*
 * The ULP has ended the QP well, and awaits nothing more. Once the peer's TCP has all that was
 * sent, FIN included, the socket is closed: the kernel awaits the peer's FIN, as after any close().
 * A timer looks. Called each time that the lock is about to be dropped.
 */
void rl_ulp_leave(struct rl_conn *c);
RL_API(rl_ulp_leave);
/* The same at once; @early: whatever the peer's TCP has. True: the socket is closed. */
bool rl_ulp_leave_now(struct rl_conn *c, bool early);
RL_API(rl_ulp_leave_now);
/* What is posted to a QP that will have no connection, or has had one, is completed in error. */
void rl_ulp_flush(struct rl_qp *qp);
RL_API(rl_ulp_flush);
/*
 * Lets go of the region that was used last: rl_mr_destroy() waits for that. rl_conn_tx() does the
 * same.
 */
void rl_ulp_end_run(struct rl_qp *qp);
RL_API(rl_ulp_end_run);
/* Nothing is received any more. What has waited for a receive is an error of the peer's. */
void rl_ulp_drop_receives(struct rl_conn *c);
RL_API(rl_ulp_drop_receives);

#endif
