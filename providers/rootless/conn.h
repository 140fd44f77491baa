/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * One TCP connection: a host of core/link.h, as kernel/conn.h is. The lock of the connection
 * guards the link and with it the attached QP's core. Whoever lets the lock go does first what
 * became due meanwhile: sends, and steps of the link.
 *
 * Files: conn.c (life, lock, steps), conn_io.c (the socket), host.c (what core/host.h asks).
 *
 * Order of locks: rdma_cm's (cm.c), the connection's, an SRQ's, a CQ's, a channel's.
 */
#ifndef RL_CONN_H
#define RL_CONN_H

#include <pthread.h>

#include "../../kernel/core/link.h"
#include "device.h"
#include "thread.h"

struct rl_cmid;
struct rl_qp;
struct rl_cq;

struct rl_conn {
	struct rl_watch watch;		/* first: the references */
	pthread_mutex_t lock;

	/* lock */
	struct weft_link link;
	const struct rl_device *dev;
	struct rl_cmid *id;		/* who is told (cm.h); NULL: nobody */
	struct rl_qp *qp;		/* whose core link.qp is; referenced */
	int fd;				/* hidden; -1: released */
	int error;			/* why TCP ended or did not connect: 0 - errno, or 0 */
	bool connecting;		/* connect() is under way */
	bool fin;			/* the peer's has been read */
	bool reset;			/* TCP is over */
	bool tx_due, step_due;		/* before the lock is let go */
	bool full;			/* TCP takes nothing now */
	u32 mss;			/* 0: to be asked for */
	bool mine;			/* epoll: the progress thread's own; else its CQs' */
};

/*
 * A new connection with the non-blocking TCP socket @fd, which it hides and owns from now on;
 * locked, with one reference. NULL: no memory, and @fd is closed.
 */
struct rl_conn *rl_conn_new(const struct rl_device *dev, bool initiator, int fd);
void rl_conn_get(struct rl_conn *c);
void rl_conn_put(struct rl_conn *c);

void rl_conn_lock(struct rl_conn *c);
/* Does what is due, then lets go. Events may be told to c->id meanwhile. */
void rl_conn_unlock(struct rl_conn *c);

/* ---- all with the lock ---- */

/* The progress thread looks after the socket: before this nobody does. */
void rl_conn_watch(struct rl_conn *c);

/* What the options ask for, into link.cfg. */
void rl_conn_configure(struct rl_conn *c);
/* What the options ask for, as weft_offer_init() wants it. */
void rl_conn_base_cfg(struct weft_mpa_cfg *cfg);

/* What TCP looks like. */
void rl_conn_view(struct rl_conn *c, struct weft_tcp_view *v);
/* Reads all that TCP has, into the link. */
void rl_conn_receive(struct rl_conn *c);
/* Does what the link asked for. */
void rl_conn_act(struct rl_conn *c, u32 acts);

/* Binds @qp, which is referenced: 0, or -EBUSY if it has a connection or is not in IDLE. */
int rl_conn_attach(struct rl_conn *c, struct rl_qp *qp);
/* Lets the QP go, if there is one. */
void rl_conn_release_qp(struct rl_conn *c);

/*
 * Nobody is told anything any more. A connection without a QP, or before Full Operation, dies;
 * another goes on to its end.
 */
void rl_conn_abandon(struct rl_conn *c);

/* Own and peer's address; IPv4 in IPv6 as plain IPv4. */
void rl_conn_names(struct rl_conn *c, struct sockaddr_storage *own, struct sockaddr_storage *peer);

#endif
