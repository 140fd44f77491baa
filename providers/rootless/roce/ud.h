/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * UD QPs: datagrams over the UDP sockets of the QPs' numbers (roce/port_group.h). Posting sends in the
 * caller's context; who polls a CQ, or the progress thread, reads the sockets of the QPs that receive
 * there. What is sent may be lost, and nobody says so.
 *
 * Files: ud.c (QPs, sending), roce/ud_socket.c (sockets, receiving), roce/ud_group.c (multicast), roce/datagram.c (the
 * wire).
 *
 * Locks. The QP's own guards its core. A socket's is held while it is read, outside the QPs'. Order:
 * context, CQ's progress, a socket's, QP, SRQ, CQ, channel; the tables' of roce/ud_socket.c and roce/ud_group.c are
 * leaves but for a CQ's.
 */
#ifndef RL_UD_H
#define RL_UD_H

#include "devices/device.h"
#include "host/qp.h"
#include "process/list.h"

/* A UDP socket, and who receives by it. */
struct rl_ud_socket;

/* A UD QP's. Constant but for what says otherwise. */
struct rl_ud {
	struct rl_ud_socket *socket;
	struct list_head node;		/* of the socket's; the table's lock */
	struct rl_qp *qp;
	struct list_head groups;	/* that it is in; the context's lock */
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
struct rl_datagram;
struct weft_ud_in;
void rl_ud_deliver(struct rl_qp *qp, u32 qkey, const struct weft_ud_in *in);
/* UDP may have room again. */
void rl_ud_resume(struct rl_qp *qp);

/* ---- roce/ud_group.c ---- */

/*
 * The QP of a multicast group, and so the UDP port of all groups: who sends to a group knows no more of
 * it than its GID. No QP has a number of that port.
 */
#define RL_GROUP_QPN	0xffffff
/* QPs of one process in one group on one netdev. */
#define RL_GROUP_MEMBERS 256

/* Is it a group's: an IP multicast address, IPv4's as mapped into IPv6? */
bool rl_gid_is_group(const u8 gid[RL_GID_LEN]);
/*
 * attach_mcast and detach_mcast: @qp, which is a UD QP, receives what is sent to the group on its device's
 * netdev, if it has the QP's qkey; its own datagrams, too. 0 or -errno. Context's lock.
 */
int rl_ud_attach(struct rl_qp *qp, const u8 gid[RL_GID_LEN]);
int rl_ud_detach(struct rl_qp *qp, const u8 gid[RL_GID_LEN]);
/* From all groups. */
void rl_ud_detach_all(struct rl_qp *qp);

/* ---- roce/ud_socket.c ---- */

/* What has come in at a socket. The socket's lock. */
typedef void rl_ud_deliver_fn(struct rl_ud_socket *s, const struct rl_datagram *d,
			      const struct weft_ud_in *in);

/* One that reads @fd, which is bound to @port and stays its caller's; @group's, or NULL. NULL: no memory. */
struct rl_ud_socket *rl_ud_socket_new(int fd, bool six, u16 port, rl_ud_deliver_fn *deliver,
				      void *group);
/* Nobody reads it any more when this returns. */
void rl_ud_socket_end(struct rl_ud_socket *s);
void *rl_ud_socket_group(const struct rl_ud_socket *s);

/* The socket of @ud's QP, which receives by it from now on: 0 or -errno. */
int rl_ud_join_socket(struct rl_ud *ud);
/* And no more. */
void rl_ud_leave_socket(struct rl_ud *ud);

int rl_ud_socket_fd(const struct rl_ud_socket *s);
/* Is it IPv6's, that takes IPv4 as mapped into IPv6? */
bool rl_ud_socket_is_six(const struct rl_ud_socket *s);
/* Calls rl_ud_resume() for who waits, soon. */
void rl_ud_socket_retry(struct rl_ud_socket *s);

/* The watch by which a CQ reads it. */
struct rl_watch *rl_ud_socket_watch(struct rl_ud_socket *s);

#endif
