/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * One TCP connection: a host of core/link.h, as kernel/conn.h is. The lock of the connection
 * guards the link and with it the attached QP's core. Before the lock is dropped, due work is
 * done: sends, and steps of the link.
 *
 * Files: conn.c (life, lock, steps), conn_io.c (the socket), conn_tx.c (sending), conn_qp.c (its
 * QP), doorbell.c and drain.c (waiting for the peer), cable.c (what weft-ctl does to its octets),
 * recorded.c (what the record has of them), names.c (addresses), accept.c (listeners), budget.c
 * (connections that no program has), host.c (core/host.h).
 *
 * Order of locks: rdma_cm's (cm/id.c), a context's, the connection's, a QP's, an SRQ's, a CQ's, a
 * channel's.
 */
#ifndef RL_CONN_H
#define RL_CONN_H

#include <sys/socket.h>

#include "kernel/core/link.h"
#include "devices/device.h"
#include "process/list.h"
#include "process/lock.h"
#include "process/thread.h"

struct rl_qp;
struct rl_cq;
struct rl_cable;
struct rl_recorded;

struct rl_acceptor;
struct rl_conn;

/* What weft-ctl does to a connection's octets. Its lock; all but update() ask for c->cable. */
struct rl_cable_ops {
	/* Its device or its QP is another one now. */
	void (*update)(struct rl_conn *c);
	/* The connection closes: drops what is still on its way. */
	void (*end)(struct rl_conn *c);
	/* rl_conn_send() of a connection without send_fd. */
	s32 (*send)(struct rl_conn *c, const struct weft_iov *iov, u32 niov, u32 flags);
	/* TCP connected before the connection was held: that comes to light once it is let go. */
	bool (*keeps_connecting)(struct rl_conn *c);
	/* FIN is due. True: it is sent once all octets are. */
	bool (*shut)(struct rl_conn *c);
	/* At the process's end: sends what is due. True: there is more, which is due later. */
	bool (*is_under_way)(struct rl_conn *c);
};

/* cable.c's, once weft-ctl has asked for anything; before, NULL. */
extern const struct rl_cable_ops *rl_cables;

/*
 * The connection's ULP: rdma_cm's id, a QP connected by hand, or a socket's stream. All calls hold
 * the connection's lock and must not drop it.
 */
struct rl_conn_ulp {
	bool by_hand;			/* its QPs are connected by hand */
	/* Only the thread that made it moves its octets after a fork(). */
	bool stays_with_thread;
	bool one_call;			/* messages go to TCP whole, whatever its segments */
	u32 retry_ms;			/* TCP is full: retry after this. 0: wait for the socket */
	/* Changes what the options ask for. May be NULL. */
	void (*configure)(const struct rl_conn *c, struct weft_link_cfg *cfg);
	/* The initiator's start-up has failed, for link.status. The QP is released. */
	void (*failed)(struct rl_conn *c);
	/* It is in Full Operation: link.offer has the peer's private data; free it. */
	void (*connected)(struct rl_conn *c);
	/*
	 * Start-up begins anew: a new connection takes c's place, by weft_link_succeed(). NULL:
	 * there is no other, and it has failed.
	 */
	void (*reconnect)(struct rl_conn *c);
	/* A Request has arrived, on an accepted connection. */
	void (*request)(struct rl_conn *c);
	/* The connection has ended. Once. The QP is released. */
	void (*ended)(struct rl_conn *c);
	/* Nothing more is sent or received. */
	void (*dead)(struct rl_conn *c);
	/* All that was due is done, and the lock is about to be dropped. May be NULL. */
	void (*settled)(struct rl_conn *c);
	/* The socket has news, which are not read yet. May be NULL. */
	void (*readable)(struct rl_conn *c);
	/* The connection's timer has fired. May be NULL. */
	void (*tick)(struct rl_conn *c);
};

/* Whose it is: budget.h. */
enum rl_claim {
	RL_CLAIM_NONE,			/* a program's, or dead */
	RL_CLAIM_SILENT, RL_CLAIM_UNREAD,
};

/* Why a connection is not read as others are. */
enum {
	RL_READ_PAUSED	= 1 << 0,	/* not at all: what TCP has is not for the link yet */
	RL_READ_RECORDED = 1 << 1,	/* and recorded */
	RL_READ_ADVERSE	= 1 << 2,	/* and placed late: place_late.h */
};

/* Where the socket's events are waited for. */
enum rl_conn_poller {
	RL_POLLER_NONE,			/* not yet, or no longer */
	RL_POLLER_THREAD,		/* the progress thread, for this connection alone */
	RL_POLLER_CQS,			/* its QP's CQs: their pollers, or the thread for them */
};

struct rl_conn {
	struct rl_watch watch;		/* first: the references */
	struct rl_lock lock;

	/* lock */
	struct weft_link link;
	const struct rl_device *dev;
	const struct rl_conn_ulp *ulp;
	void *user;			/* the ULP's id, QP or stream; NULL: released */
	u8 read_apart;			/* RL_READ_; 0: the usual case */
	struct rl_recorded *recorded;	/* record/fpdus.h; NULL: the usual case */
	u32 rnr_ms;			/* by hand, or adverse: overrides the option */
	bool large_fpdus;		/* the same */
	struct rl_acceptor *acceptor;	/* it is half-open there; else NULL. Referenced */
	struct list_head half_open_node;	/* acceptor's half_open_lock */
	struct list_head claim_node;	/* budget.c's lock */
	enum rl_claim claim;		/* the same */
	u32 claim_forks;		/* the same: in which process */
	bool charged;			/* the same: it counts with those below the soft limit */
	struct rl_qp *qp;		/* link.qp is its core; referenced */
	int fd;				/* hidden; -1: released */
	int send_fd;			/* the same; -1, too: sends go through cable or record */
	struct rl_cable *cable;		/* cable.h; NULL: the usual case */
	u32 retry_ms;			/* the ULP's, or the cable's */
	int kept_fd;			/* what fd was, open until the connection is freed; or -1 */
	bool keeps_fd;			/* the ULP's: rl_conn_close() does not close it */
	int error;			/* why TCP ended or did not connect: -errno, or 0 */
	bool connecting;		/* connect() is under way */
	bool fin;			/* the peer's has been read */
	bool reset;			/* TCP is over */
	bool tx_due, step_due;		/* before the lock is dropped */
	bool full;			/* TCP takes nothing now */
	bool vanished;			/* memory that TCP was to read was unmapped */
	bool unread;			/* TCP has more, which is read after others had the lock */
	u32 news;			/* octets that the link took, ends, errors: how often */
	void *rest;			/* a block of the pool with octets that the link had no
					 * memory for; NULL: none */
	u32 rest_off, rest_len;
	bool poked;			/* atomic, without the lock: rl_conn_poke() was called */
	bool watching;			/* rl_conn_watch() was called */
	u64 polled_until;		/* ms: the program looks for octets itself, and no thread
					 * waits for them; 0: one does
					 */
	enum rl_conn_poller poller;	/* where events are waited for */
	u32 events;
	u64 linger_until;		/* ms: look at the send ring then; 0: no lingering */
	u32 keepalive_ms, keepalive_idle_ms;	/* cfg.dead_ms and cfg.idle_dead_ms that TCP's
						 * keepalives are set for
						 */
	u32 mss, mss_uses;		/* as last queried, and uses since */
	bool answer_due;		/* send an acknowledgement with the next doorbell */
	u64 answer_by;			/* or at this time, ms; 0: none. It may pass idly */
	bool left;			/* the kernel ends it: no RST */
	u32 leave_ms;			/* the last wait for it */
	s32 owner;			/* its process; a child may hold the socket, too */
	u32 doorbells;
	u32 rx_seen;			/* the peer's FPDUs at the last doorbell */
	s32 answered;			/* doorbells in a row with new FPDUs; < 0: missed one */
	u32 dialogue;			/* the same, without that penalty */
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
	rl_lock(&c->lock);
}
/* Does what is due, then drops the lock. May call the ULP. */
void rl_conn_unlock(struct rl_conn *c);
/* Does what is due, and keeps the lock. */
void rl_conn_settle(struct rl_conn *c);
/* Drops the lock alone: the caller has changed nothing. */
static inline void rl_conn_release(struct rl_conn *c)
{
	rl_unlock(&c->lock);
}

/* The connection that @w watches, or NULL. No lock. */
struct rl_conn *rl_conn_of_watch(struct rl_watch *w);
/* The connection of an event's key, locked and referenced; NULL if it is gone. */
struct rl_conn *rl_conn_find(u32 key);

/* Without the lock: the progress thread runs the send side, and retries what awaited a receive. */
void rl_conn_poke(struct rl_conn *c);

/* ---- all with the lock ---- */

/* From now on the socket's events are waited for. */
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
/* rl_conn_accept() failed and the ULP has let go of @c: rejects a peer that still waits. */
void rl_conn_accept_failed(struct rl_conn *c);
/* In request(): a Reply with R=1. */
void rl_conn_reject(struct rl_conn *c, const void *pd, u32 pd_len);
/* The initiator does not take the connection that its peer has accepted: failed() with @err. */
void rl_conn_withdraw(struct rl_conn *c, int err);

/* The socket is ready: EPOLL bits. */
void rl_conn_handle_events(struct rl_conn *c, u32 events);

/*
 * Detaches the ULP, which gets no more calls about it. Before Full Operation the connection dies;
 * after that it goes on to its end.
 */
void rl_conn_abandon(struct rl_conn *c);

/* ---- conn_io.c ---- */

/* Options of a new socket. */
void rl_conn_set_up_socket(struct rl_conn *c);
/* TCP asks an idle peer as cfg.dead_ms wants; with 0, as it was. Connection's lock. */
void rl_conn_set_keepalive(struct rl_conn *c);
/* TCP's state. */
void rl_conn_view(struct rl_conn *c, struct weft_tcp_view *v);
/* Reads all that TCP has, into the link. */
void rl_conn_receive(struct rl_conn *c);
/* A Send waits for a receive: nothing is read until one is posted. */
bool rl_conn_awaits_receive(const struct rl_conn *c);
/* Frees the octets that the link had no memory for. */
void rl_conn_drop_rest(struct rl_conn *c);
/* connect() has succeeded or failed. */
void rl_conn_finish_connect(struct rl_conn *c);
/* Its device or its QP is another one now: weft-ctl may have asked for something. */
void rl_conn_update_cable(struct rl_conn *c);
/* For core/host.h. */
s32 rl_conn_send(struct rl_conn *c, const struct weft_iov *iov, u32 niov, u32 flags);
/* The same for the cable: to TCP. */
s32 rl_conn_send_now(struct rl_conn *c, const struct weft_iov *iov, u32 niov, u32 flags);
u32 rl_conn_mss(struct rl_conn *c);
/* Closes: with RST unless both sides have sent FIN. */
void rl_conn_close(struct rl_conn *c);
/* Registers the events that are wanted now, where they are wanted. */
void rl_conn_update_poller(struct rl_conn *c);
/* Unregisters. */
void rl_conn_leave_poller(struct rl_conn *c);

/* ---- names.c ---- */

/* Own and peer's address; IPv4 in IPv6 as plain IPv4. */
void rl_socket_names(int fd, struct sockaddr_storage *own, struct sockaddr_storage *peer);
void rl_conn_names(struct rl_conn *c, struct sockaddr_storage *own, struct sockaddr_storage *peer);

/* ---- recorded.c. Connection's lock ---- */

/* A new connection is recorded from now on, if any is. */
void rl_conn_begin_record(struct rl_conn *c);
void rl_conn_end_record(struct rl_conn *c);
/* TCP took @n octets in a call that began at @ticks; or gave them. */
void rl_conn_record_sent(struct rl_conn *c, const struct weft_iov *iov, u32 n, u64 ticks);
void rl_conn_record_received(struct rl_conn *c, const void *p, u32 n, bool is_startup);
/* Its descriptor for sends, once it has no cable. */
static inline void rl_conn_usual_send_fd(struct rl_conn *c)
{
	c->send_fd = c->recorded ? -1 : c->fd;
}

/* ---- conn_qp.c ---- */

/*
 * Binds @qp, which is referenced: 0, or -EBUSY if it has a connection, is not in IDLE, or is
 * connected by hand and @c is not, or the other way round.
 */
int rl_conn_attach(struct rl_conn *c, struct rl_qp *qp);
/* Passes the QP on to @heir, which no other thread knows yet. */
void rl_conn_hand_over(struct rl_conn *c, struct rl_conn *heir);
/* Releases the QP, if there is one. */
void rl_conn_release_qp(struct rl_conn *c);

/* ---- conn_tx.c ---- */

/* The program's memory vanished while it was sent: resets TCP. */
void rl_conn_break_off(struct rl_conn *c);
/* One run of the send side. */
void rl_conn_tx(struct rl_conn *c);

/* ---- qp_lock.c. No lock of either ---- */

/* The connection of @qp, locked and referenced; NULL if there is none. */
struct rl_conn *rl_conn_of_qp(struct rl_qp *qp);

/* ---- doorbell.c ---- */

/*
 * The peer wants an acknowledgement: it is sent when the lock is dropped or, in a dialogue, with
 * the next doorbell.
 */
void rl_conn_answer(struct rl_conn *c);
/* The process ends: sends what waits for a doorbell. Without the lock. */
void rl_conn_answer_now(struct rl_conn *c);

/* ---- drain.c ---- */

/* The process ends: as rl_qp_drain_acks(), but never blocks on the lock. Without the lock. */
void rl_conn_drain_acks_now(struct rl_conn *c);

#endif
