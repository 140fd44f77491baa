/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * One TCP connection: a host of core/link.h, as kernel/conn.h is. The lock of the connection
 * guards the link and with it the attached QP's core. Whoever lets the lock go does first what
 * became due meanwhile: sends, and steps of the link.
 *
 * Files: conn.c (life, lock, steps), conn_io.c (the socket), conn_tx.c (sending), conn_qp.c (its QP),
 * doorbell.c and drain.c (who waits for what), accept.c (listeners), host.c (what core/host.h asks).
 *
 * Order of locks: rdma_cm's (cm/id.c), a context's, the connection's, a QP's, an SRQ's, a CQ's, a
 * channel's.
 */
#ifndef RL_CONN_H
#define RL_CONN_H

#include <pthread.h>
#include <sys/socket.h>

#include "kernel/core/link.h"
#include "devices/device.h"
#include "process/list.h"
#include "process/thread.h"

struct rl_qp;
struct rl_cq;

struct rl_acceptor;
struct rl_conn;

/*
 * Who uses the connection: rdma_cm's id, a QP connected by hand, or a socket's stream. All calls hold
 * the connection's lock and must not drop it.
 */
struct rl_conn_ulp {
	bool by_hand;			/* its QPs are connected by hand */
	/* Only the thread that made it moves its octets after a fork(). */
	bool stays_with_thread;
	bool one_call;			/* messages go to TCP whole, whatever its segments */
	u32 retry_ms;			/* when TCP has no room: retry then. 0: wait for the socket */
	/* What it wants otherwise than the options say; NULL: nothing. */
	void (*configure)(const struct rl_conn *c, struct weft_link_cfg *cfg);
	/* The initiator's start-up has failed: link.status says why. The QP has gone. */
	void (*failed)(struct rl_conn *c);
	/* It is in Full Operation: link.offer has the peer's private data, and is to be freed. */
	void (*connected)(struct rl_conn *c);
	/* It is to begin anew: a new connection takes c's place, by weft_link_succeed(). NULL: there is no other, and it has failed. */
	void (*reconnect)(struct rl_conn *c);
	/* A Request has come, on a connection that was accepted. */
	void (*request)(struct rl_conn *c);
	/* The connection is over. Once. The QP has gone. */
	void (*ended)(struct rl_conn *c);
	/* Nothing more is said or awaited. */
	void (*dead)(struct rl_conn *c);
	/* All that was due is done, and the lock is about to be dropped. NULL. */
	void (*settled)(struct rl_conn *c);
	/* The connection's timer has fired. NULL. */
	void (*tick)(struct rl_conn *c);
};

/* Who waits for the socket's events. */
enum rl_conn_poller {
	RL_POLLER_NONE,			/* nobody yet, or nobody any more */
	RL_POLLER_THREAD,		/* the progress thread, for this connection alone */
	RL_POLLER_CQS,			/* its QP's CQs: those who poll them, or the thread for them */
};

struct rl_conn {
	struct rl_watch watch;		/* first: the references */
	pthread_mutex_t lock;

	/* lock */
	struct weft_link link;
	const struct rl_device *dev;
	const struct rl_conn_ulp *ulp;
	void *user;			/* the ULP's: its id, QP or stream; NULL: the ULP has let go */
	bool kept_off;			/* what TCP has is not the link's yet: nothing is read */
	u32 rnr_ms;			/* by hand: in the option's place */
	struct rl_acceptor *acceptor;	/* it is a stranger of; NULL: of none. Referenced */
	struct list_head half_open_node;	/* the acceptor's door */
	struct rl_qp *qp;		/* whose core link.qp is; referenced */
	int fd;				/* hidden; -1: released */
	int error;			/* why TCP ended or did not connect: 0 - errno, or 0 */
	bool connecting;		/* connect() is under way */
	bool fin;			/* the peer's has been read */
	bool reset;			/* TCP is over */
	bool tx_due, step_due;		/* before the lock is let go */
	bool full;			/* TCP takes nothing now */
	bool vanished;			/* memory that TCP was to read from */
	bool unread;			/* TCP has more: others were to have the lock */
	void *rest;			/* a block of the pool with octets that the link had no
					 * memory for; NULL: none */
	u32 rest_off, rest_len;
	bool poked;			/* atomic, without the lock: by rl_conn_poke() */
	bool watching;			/* rl_conn_watch() was called */
	enum rl_conn_poller poller;	/* where the socket is waited for, and for what */
	u32 events;
	u64 linger_until;		/* ms: the send ring is to be looked at; 0: no lingering */
	u32 mss, mss_uses;		/* as last asked for, and how often used since */
	bool answer_due;		/* the peer asks, and hears with the next doorbell, or: */
	u64 answer_by;			/* ms: by then; 0: nobody has set the time. It may pass idly */
	s32 owner;			/* the process whose it is: a child may have the socket, too */
	u32 doorbells;
	u32 rx_seen;			/* what the peer has said when the doorbell rang last */
	s32 answered;			/* doorbells in turn with something heard, for the doorbell that waits */
	u32 dialogue;			/* and however that went */
};

/*
 * A new connection with the non-blocking TCP socket @fd, which it hides and owns from now on;
 * locked, with one reference. NULL: no memory, and @fd is closed.
 */
struct rl_conn *rl_conn_new(const struct rl_device *dev, bool initiator, int fd,
			    const struct rl_conn_ulp *ulp);
static inline void rl_conn_get(struct rl_conn *c)
{
	rl_watch_get(&c->watch);
}
static inline void rl_conn_put(struct rl_conn *c)
{
	rl_watch_put(&c->watch);
}

static inline void rl_conn_lock(struct rl_conn *c)
{
	pthread_mutex_lock(&c->lock);
}
/* Does what is due, then lets go. The ULP may be called meanwhile. */
void rl_conn_unlock(struct rl_conn *c);
/* Does what is due, and goes on with the lock. */
void rl_conn_settle(struct rl_conn *c);
/* Lets go of one at which the caller has only looked. */
static inline void rl_conn_release(struct rl_conn *c)
{
	pthread_mutex_unlock(&c->lock);
}

/* The connection that @w watches, or NULL. No lock. */
struct rl_conn *rl_conn_of_watch(struct rl_watch *w);
/* The connection that the key of an event names, locked and referenced; NULL if it is gone. */
struct rl_conn *rl_conn_find(u32 key);

/* Without the lock: the progress thread runs the send side, and what waits for a receive goes on. */
void rl_conn_poke(struct rl_conn *c);

/* ---- all with the lock ---- */

/* The progress thread looks after the socket: before this nobody does. */
static inline void rl_conn_watch(struct rl_conn *c)
{
	c->watching = true;
}

/* What the options ask for, into link.cfg. */
void rl_conn_configure(struct rl_conn *c);
/* What the options ask for, as weft_offer_init() wants it. */
void rl_conn_base_cfg(struct weft_mpa_cfg *cfg);

/* Does what the link asked for. */
void rl_conn_act(struct rl_conn *c, u32 acts);

/* In request(): binds @qp and begins Full Operation with @ird and @ord: 0 or -errno. */
int rl_conn_accept(struct rl_conn *c, struct rl_qp *qp, u32 ird, u32 ord, const void *pd,
		   u32 pd_len);
/* That failed, and the ULP has let go: the peer is notified if it still waits. */
void rl_conn_accept_failed(struct rl_conn *c);
/* In request(): a Reply with R=1. */
void rl_conn_reject(struct rl_conn *c, const void *pd, u32 pd_len);
/* The initiator does not take the connection that its peer has accepted: failed() with @err. */
void rl_conn_withdraw(struct rl_conn *c, int err);

/* The socket has something to say: EPOLL bits. */
void rl_conn_handle_events(struct rl_conn *c, u32 events);

/*
 * Nobody is told anything any more. A connection before Full Operation dies; another goes on to
 * its end.
 */
void rl_conn_abandon(struct rl_conn *c);

/* ---- conn_io.c ---- */

/* Options of a new socket. */
void rl_conn_set_up_socket(struct rl_conn *c);
/* What TCP looks like. */
void rl_conn_view(struct rl_conn *c, struct weft_tcp_view *v);
/* Reads all that TCP has, into the link. */
void rl_conn_receive(struct rl_conn *c);
/* A Send waits for a receive: until there is one nothing is read. */
bool rl_conn_awaits_receive(const struct rl_conn *c);
/* Forgets what the link had no memory for. */
void rl_conn_drop_rest(struct rl_conn *c);
/* connect() is over, well or not. */
void rl_conn_finish_connect(struct rl_conn *c);
/* What core/host.h asks. */
s32 rl_conn_send(struct rl_conn *c, const struct weft_iov *iov, u32 niov, u32 flags);
u32 rl_conn_mss(struct rl_conn *c);
/* Closes: with RST unless both sides have said FIN. */
void rl_conn_close(struct rl_conn *c);
/* Waits for what is to be waited for, where it is to be waited for. */
void rl_conn_update_poller(struct rl_conn *c);
/* Waits nowhere. */
void rl_conn_leave_poller(struct rl_conn *c);
/* Own and peer's address; IPv4 in IPv6 as plain IPv4. */
void rl_socket_names(int fd, struct sockaddr_storage *own, struct sockaddr_storage *peer);
void rl_conn_names(struct rl_conn *c, struct sockaddr_storage *own, struct sockaddr_storage *peer);

/* ---- conn_qp.c ---- */

/*
 * Binds @qp, which is referenced: 0, or -EBUSY if it has a connection, is not in IDLE, or is connected
 * by hand and @c is not, or the other way round.
 */
int rl_conn_attach(struct rl_conn *c, struct rl_qp *qp);
/* Passes the QP on to @heir, which nobody else knows yet. */
void rl_conn_hand_over(struct rl_conn *c, struct rl_conn *heir);
/* Lets the QP go, if there is one. */
void rl_conn_release_qp(struct rl_conn *c);

/* ---- conn_tx.c ---- */

/* Users' memory went away in the middle of sending from it: TCP is reset. */
void rl_conn_break_off(struct rl_conn *c);
/* One run of the send side. */
void rl_conn_tx(struct rl_conn *c);

/* ---- qp_lock.c. No lock of either ---- */

/* The connection of @qp, locked and referenced; NULL if there is none. */
struct rl_conn *rl_conn_of_qp(struct rl_qp *qp);

/* ---- doorbell.c ---- */

/* The peer asks: it is answered when the lock is dropped, or, if that is soon, with the next doorbell. */
void rl_conn_answer(struct rl_conn *c);
/* The process ends: what waits for a doorbell waits no longer. Without the lock. */
void rl_conn_answer_now(struct rl_conn *c);

/* ---- drain.c ---- */

/* The process ends: as rl_qp_drain_acks(). Without the lock; none is waited for longer than the peer. */
void rl_conn_drain_acks_now(struct rl_conn *c);

#endif
