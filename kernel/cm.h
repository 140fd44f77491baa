/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Shared by cm.c, cm_active.c, cm_passive.c and cm_ask.c. The connection's mutex is held
 * throughout.
 */
#ifndef WEFT_CM_H
#define WEFT_CM_H

#include "conn.h"

/* While the ULP's backlog is full, report one more request this often. */
#define WEFT_CM_ASK_AGAIN_MS	10

/* iw_cm_event counts private data in a u8. */
#define WEFT_CM_PD_MAX	255

/* ---- cm.c ---- */

/* The input of a step of the link. */
struct weft_cm_view {
	struct weft_tcp_view tcp;
	u64 now;
	enum weft_link_state from;
};

/*
 * Bracket each call of @conn's link. The first takes the socket lock and fills *@v. The second
 * drops it, carries out the returned actions (WEFT_ACT_), and steps again for WEFT_ACT_AGAIN.
 */
void weft_cm_begin(struct weft_conn *conn, struct weft_cm_view *v) __acquires(&conn->link);
void weft_cm_end(struct weft_conn *conn, const struct weft_cm_view *v, u32 acts)
	__releases(&conn->link);

/* Between them: reads the octets that have arrived, and refreshes *@v. */
void weft_cm_read(struct weft_conn *conn, struct weft_cm_view *v);

/* One step. True: more is left to do. */
bool weft_cm_step_once(struct weft_conn *conn);
/* Steps until there is nothing more to do. */
void weft_cm_step(struct weft_conn *conn);
/* The first step of teardown (conn_life.c), in any state. */
void weft_cm_kill(struct weft_conn *conn);
/* The same for a connection that has no QP and gets no event. No socket lock. */
void weft_cm_give_up(struct weft_conn *conn);
/* Releases the QP, if there is one. */
void weft_cm_drop_qp(struct weft_conn *conn);
/*
 * A new connection is set up, or DEAD: unlocks, and leaves the rest to the worker, queued in
 * order.
 */
void weft_cm_settle(struct weft_conn *conn);
/* The worker of a connection and of a listener. */
void weft_cm_work(struct work_struct *work);

/* Reports an event to @id: 0, or -ENOMEM if iw_cm did not take it. */
int weft_cm_tell(struct weft_conn *conn, struct iw_cm_id *id, enum iw_cm_event_type type,
		 int status, const u8 *pd, u32 pd_len);
/* The connection's id gets no more events. */
void weft_cm_put_id(struct weft_conn *conn);

/* Fills @cfg from the device's options. */
void weft_cm_base_cfg(const struct weft_device *dev, struct weft_mpa_cfg *cfg);
/* Copies the device's current options to the link. */
void weft_cm_configure(struct weft_conn *conn);

static inline bool weft_cm_family_ok(const struct iw_cm_id *id)
{
	return id->local_addr.ss_family == AF_INET || id->local_addr.ss_family == AF_INET6;
}

/* ---- cm_active.c: what the link says to an initiator ---- */

void weft_cm_tell_failed(struct weft_conn *conn);
void weft_cm_tell_connected(struct weft_conn *conn);
void weft_cm_reconnect(struct weft_conn *conn);

/* ---- cm_passive.c: a listener's run ---- */

void weft_cm_listening(struct weft_conn *conn);

/* ---- cm_ask.c: what the link says to a responder, and requests before the ULP ---- */

/* Reports the request to the ULP, or queues it while the ULP's backlog is full. */
void weft_cm_ask_ulp(struct weft_conn *conn);
/* A listener's run: reports waiting requests while the ULP's backlog has room. */
void weft_cm_ask_waiting(struct weft_conn *listener);
/*
 * Was a reject with the private data @pd, which may be NULL, only a full backlog? Then the request
 * waits again.
 */
bool weft_cm_ask_again(struct weft_conn *conn, const void *pd);

/*
 * iw_cm has answered: returns the connection with the table's reference, or NULL if it is gone. No
 * mutex.
 */
struct weft_conn *weft_cm_take_request(const struct iw_cm_id *id);
/* From now on the ULP can no longer answer. */
void weft_cm_withdraw_request(struct weft_conn *conn);

/*
 * Binds a responder to its listener until the request is reported to the ULP. A bound responder
 * ends with its listener.
 */
void weft_cm_join_listener(struct weft_conn *conn, struct weft_conn *listener);
/* Ends that binding. */
void weft_cm_leave_listener(struct weft_conn *conn);

#endif
