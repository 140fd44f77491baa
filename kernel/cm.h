/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What cm.c, cm_active.c, cm_passive.c and cm_ask.c share. All of it holds the
 * connection's mutex.
 */
#ifndef WEFT_CM_H
#define WEFT_CM_H

#include "conn.h"

/* A ULP that has its backlog of requests is told of another so often. */
#define WEFT_CM_ASK_AGAIN_MS	10

/* iw_cm_event counts private data in a u8. */
#define WEFT_CM_PD_MAX	255

/* ---- cm.c ---- */

/* What a step of the link looks at. */
struct weft_cm_view {
	struct weft_tcp_view tcp;
	u64 now;
	enum weft_link_state from;
};

/*
 * Around whatever is asked of @conn's link: takes the socket lock and fills *@v; then acts
 * on the answer (WEFT_ACT_), without the lock, and steps on if it says so.
 */
void weft_cm_begin(struct weft_conn *conn, struct weft_cm_view *v) __acquires(&conn->link);
void weft_cm_end(struct weft_conn *conn, const struct weft_cm_view *v, u32 acts)
	__releases(&conn->link);

/* Between them: reads what has come, and looks again. */
void weft_cm_read(struct weft_conn *conn, struct weft_cm_view *v);

/* True: there is more to do. */
bool weft_cm_step_once(struct weft_conn *conn);
/* Steps until there is nothing more to do. */
void weft_cm_step(struct weft_conn *conn);
/* The first step of death (conn_life.c), whatever the state. */
void weft_cm_kill(struct weft_conn *conn);
/* The same for a connection that has no QP and tells nobody. No socket lock. */
void weft_cm_give_up(struct weft_conn *conn);
/* Lets the QP go, if there is one. */
void weft_cm_drop_qp(struct weft_conn *conn);
/* A new connection is set up, or DEAD: the worker takes over, in its turn. Unlocks. */
void weft_cm_settle(struct weft_conn *conn);
/* The worker of a connection and of a listener. */
void weft_cm_work(struct work_struct *work);

/* An event for @id; 0, or -ENOMEM: iw_cm did not take it. */
int weft_cm_tell(struct weft_conn *conn, struct iw_cm_id *id, enum iw_cm_event_type type,
		 int status, const u8 *pd, u32 pd_len);
/* The connection's id is told nothing more. */
void weft_cm_put_id(struct weft_conn *conn);

/* What the device's options ask for. */
void weft_cm_base_cfg(const struct weft_device *dev, struct weft_mpa_cfg *cfg);
/* The link has the device's options as they are now. */
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

/* Asks the ULP, or waits until it has room. */
void weft_cm_ask_ulp(struct weft_conn *conn);
/* A listener's run: those that wait are asked for, as many as there is room for. */
void weft_cm_ask_waiting(struct weft_conn *listener);
/* A reject of @len octets says no more than that the ULP had no room: it waits again. */
bool weft_cm_ask_again(struct weft_conn *conn, u8 len);

/* iw_cm's answer is there: the connection, with the table's reference, if it lives. No mutex. */
struct weft_conn *weft_cm_take_request(const struct iw_cm_id *id);
/* The ULP can answer no more, if it has not yet. */
void weft_cm_withdraw_request(struct weft_conn *conn);

/* A responder of which the ULP has not heard belongs to its listener, */
void weft_cm_join_listener(struct weft_conn *conn, struct weft_conn *listener);
/* and then does no more. */
void weft_cm_leave_listener(struct weft_conn *conn);

#endif
