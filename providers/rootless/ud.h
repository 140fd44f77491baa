/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * UD QPs: datagrams over the UDP sockets of the QPs' numbers (port_group.h). Posting sends in the
 * caller's context; who polls a CQ, or the progress thread, reads the sockets of the QPs that receive
 * there. What is sent may be lost, and nobody says so.
 *
 * Files: ud.c (QPs, sending), ud_socket.c (sockets, receiving), datagram.c (the wire).
 *
 * Locks. The QP's own guards its core. A socket's is held while it is read, outside the QPs'. Order:
 * context, CQ's progress, a socket's, QP, SRQ, CQ, channel; the table's of ud_socket.c is a leaf but for
 * a CQ's.
 */
#ifndef RL_UD_H
#define RL_UD_H

#include "verbs.h"

/* A UDP socket, and who receives by it. */
struct rl_ud_socket;

/* A UD QP's. Constant but for what says otherwise. */
struct rl_ud {
	struct rl_ud_socket *socket;
	struct rl_ud *next;		/* of the socket's; the table's lock */
	struct rl_qp *qp;
	u32 qkey;			/* the QP's lock */
	bool waits;			/* the QP's lock: UDP has no room, and is asked again soon */
};

/* @qp, new and with a number, is one: 0 or -errno. */
int rl_ud_begin(struct rl_qp *qp);
/* It is being destroyed: nothing comes any more when this returns. */
void rl_ud_end(struct rl_qp *qp);

/* modify_qp, once that was allowed. Context's lock. */
void rl_ud_move(struct rl_qp *qp, u32 from, u32 to);
/* The doorbell. */
void rl_ud_kick(struct rl_qp *qp);

/* What has come in for @qp. The socket's lock. */
struct weft_ud_in;
void rl_ud_deliver(struct rl_qp *qp, u32 qkey, const struct weft_ud_in *in);
/* UDP may have room again. */
void rl_ud_go_on(struct rl_qp *qp);

/* ---- ud_socket.c ---- */

/* The socket of @ud's QP, which receives by it from now on: 0 or -errno. */
int rl_ud_join_socket(struct rl_ud *ud);
/* And no more. */
void rl_ud_leave_socket(struct rl_ud *ud);

int rl_ud_socket_fd(const struct rl_ud_socket *s);
/* Is it IPv6's, that takes IPv4 as mapped into IPv6? */
bool rl_ud_socket_is_six(const struct rl_ud_socket *s);
/* Calls rl_ud_go_on() for who waits, soon. */
void rl_ud_socket_retry(struct rl_ud_socket *s);

/* Reads some of what has come: false: there may be more. Any thread. */
bool rl_ud_socket_read(struct rl_ud_socket *s);
/* The same of that which the key of an event names, if it does. */
void rl_ud_socket_read_key(u32 key);
struct rl_watch *rl_ud_socket_watch(struct rl_ud_socket *s);

#endif
