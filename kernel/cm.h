/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What cm.c, cm_active.c and cm_passive.c share. All of it holds the
 * connection's mutex.
 */
#ifndef WEFT_CM_H
#define WEFT_CM_H

#include "conn.h"

/* iw_cm_event counts private data in a u8. */
#define WEFT_CM_PD_MAX	255

/* ---- cm.c ---- */

/* The worker runs again in @ms milliseconds at the latest. */
void weft_cm_set_deadline(struct weft_conn *conn, unsigned int ms);

/* An event for @id; 0, or -ENOMEM: iw_cm did not take it. */
int weft_cm_tell(struct weft_conn *conn, struct iw_cm_id *id, enum iw_cm_event_type type,
		 int status, const u8 *pd, u32 pd_len);
/* The connection's id is told nothing more. */
void weft_cm_put_id(struct weft_conn *conn);

/* The first step of death (conn.c). The QP has been let go. */
void weft_cm_die(struct weft_conn *conn);
/* A new connection is set up, or DEAD: the worker takes over. Unlocks. */
void weft_cm_settle(struct weft_conn *conn);
/* To the state CLOSING: FIN, then the peer's is awaited. */
void weft_cm_start_closing(struct weft_conn *conn);
/* Lets the QP go, if there is one. */
void weft_cm_drop_qp(struct weft_conn *conn);
/* The end of an initiator's start-up. @pd: of a Reply with R=1. The state stays. */
void weft_cm_connect_failed(struct weft_conn *conn, int status, const u8 *pd, u32 pd_len);

/* RFC 6581 §9.1: room for as many Reads as agreed, and for one RTR Read. */
int weft_cm_alloc_depths(struct weft_conn *conn, const struct weft_mpa_agreed *a);
/* The attached QP enters Full Operation. Socket lock. */
void weft_cm_start_qp(struct weft_conn *conn, const struct weft_mpa_agreed *a);

/* What the device's options and a ULP's depths ask for. */
void weft_cm_base_cfg(const struct weft_device *dev, struct weft_mpa_cfg *cfg, u32 ird, u32 ord);

/* ULP private data that an MPA frame of revision @rev carries at most. */
static inline u32 weft_cm_pd_max(u8 rev)
{
	return rev >= 2 ? WEFT_MPA_PD_MAX - WEFT_MPA_ENH_LEN : WEFT_MPA_PD_MAX;
}

static inline bool weft_cm_family_ok(const struct iw_cm_id *id)
{
	return id->local_addr.ss_family == AF_INET || id->local_addr.ss_family == AF_INET6;
}

/* ---- cm_active.c and cm_passive.c: the worker's steps, by state ---- */

void weft_cm_connecting(struct weft_conn *conn, bool timeout);
void weft_cm_await_reply(struct weft_conn *conn, bool timeout);
void weft_cm_listening(struct weft_conn *conn);
void weft_cm_await_request(struct weft_conn *conn, bool timeout);
void weft_cm_await_ulp(struct weft_conn *conn, bool timeout);
void weft_cm_orphaned(struct weft_conn *conn);

/* The ULP can answer no more, if it has not yet. */
void weft_cm_withdraw_request(struct weft_conn *conn);

/* A responder's child is handed to the ULP, or ends: its listener has room again. */
void weft_cm_leave_listener(struct weft_conn *conn);

#endif
