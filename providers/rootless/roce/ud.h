/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * UD QPs: datagrams over the UDP sockets of the QPs' numbers (roce/port_group.h). Posting sends in
 * the caller's context. Sockets are read by the CQ's poller or by the progress thread. Loss is not
 * reported.
 *
 * Files: ud.c (QPs, sending), ud_socket.c (sockets, receiving), ud_group.c (multicast), datagram.c
 * (the wire).
 *
 * Locks. The QP's own guards its core. A socket's is held while it is read, outside the QPs'.
 * Order: context, CQ's progress, socket, QP, SRQ, CQ, channel. The table locks of ud_socket.c and
 * ud_group.c are leaves, except that a CQ's lock is taken inside.
 */
#ifndef RL_UD_H
#define RL_UD_H

#include "devices/device.h"
#include "host/qp.h"
#include "process/list.h"

/* A UDP socket and the QPs that receive by it. */
struct rl_ud_socket;

/* A UD QP's part. Constant unless a lock is named. */
struct rl_ud {
	struct rl_ud_socket *socket;
	struct list_head node;		/* of the socket's; the table's lock */
	struct rl_qp *qp;
	struct list_head groups;	/* its memberships; the context's lock */
	u32 qkey;			/* the QP's lock */
	u64 takes;			/* the QP's lock: datagrams of this qkey, or none */
	int send_fd;			/* the QP's lock: the socket's; -1: datagrams are lost */
	bool frozen;			/* the QP's lock: by weft-ctl */
	bool waits;			/* the QP's lock: UDP is full; a retry is due soon */
};

/* Makes @qp, new and with a number, a UD QP: 0 or -errno. */
int rl_ud_begin(struct rl_qp *qp);
/* It is being destroyed: nothing is delivered any more when this returns. */
void rl_ud_end(struct rl_qp *qp);

/* modify_qp, after its checks. Context's lock. */
void rl_ud_move(struct rl_qp *qp, u32 from, u32 to);
/* Frozen, or its port is down: until neither is true, what it sends and what arrives is lost. */
void rl_ud_freeze(struct rl_qp *qp, bool frozen);
/* Its port has gone down or up, by weft-ctl. */
void rl_ud_port_changed(struct rl_qp *qp);
/* The doorbell. */
void rl_ud_kick(struct rl_qp *qp);

/* A datagram for @qp has arrived. The socket's lock. */
struct rl_datagram;
struct weft_ud_in;
void rl_ud_deliver(struct rl_qp *qp, u32 qkey, const struct weft_ud_in *in);
/* Retries: UDP may have room again. */
void rl_ud_resume(struct rl_qp *qp);

/* ---- roce/ud_group.c ---- */

/*
 * The QP number of all multicast groups, and so their UDP port: a sender knows only a group's GID.
 * No QP has a number of that port.
 */
#define RL_GROUP_QPN	0xffffff

/* Is it a group's: an IP multicast address, IPv4's as mapped into IPv6? */
bool rl_gid_is_group(const u8 gid[RL_GID_LEN]);
/*
 * attach_mcast and detach_mcast: the UD QP @qp receives datagrams to the group that arrive on its
 * device's netdev and have its qkey, its own included. 0 or -errno. Context's lock.
 */
int rl_ud_attach(struct rl_qp *qp, const u8 gid[RL_GID_LEN]);
int rl_ud_detach(struct rl_qp *qp, const u8 gid[RL_GID_LEN]);
/* Detaches from all groups. */
void rl_ud_detach_all(struct rl_qp *qp);

/* ---- roce/ud_socket.c ---- */

/* Takes a datagram that has arrived at a socket. The socket's lock. */
typedef void rl_ud_deliver_fn(struct rl_ud_socket *s, const struct rl_datagram *d,
			      const struct weft_ud_in *in);

/*
 * Reads @fd, which is bound to @port and still owned by the caller; for @group, or NULL. Returns
 * NULL without memory.
 */
struct rl_ud_socket *rl_ud_socket_new(int fd, bool six, u16 port, rl_ud_deliver_fn *deliver,
				      void *group);
/* The socket is not read any more when this returns. */
void rl_ud_socket_end(struct rl_ud_socket *s);
void *rl_ud_socket_group(const struct rl_ud_socket *s);

/* @ud's QP receives by the socket of its number from now on: 0 or -errno. */
int rl_ud_join_socket(struct rl_ud *ud);
/* Undoes that. */
void rl_ud_leave_socket(struct rl_ud *ud);

int rl_ud_socket_fd(const struct rl_ud_socket *s);
/* An IPv6 socket, which carries IPv4 as mapped into IPv6. */
bool rl_ud_socket_is_six(const struct rl_ud_socket *s);
/* Soon calls rl_ud_resume() for the QPs that wait. */
void rl_ud_socket_retry(struct rl_ud_socket *s);

/* For rl_cq_add_source(). */
struct rl_watch *rl_ud_socket_watch(struct rl_ud_socket *s);

#endif
