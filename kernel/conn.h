/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * One TCP connection of a device, or one listener: a host of core/link.h.
 *
 * Files, each above those before it: conn.c (references, scheduling), conn_rx.c (what TCP
 * brings), conn_tx.c (what TCP takes), linger.c (lingering's timer), softirq.c (bottom halves, their time),
 * conn_run.c (the lock, TCP's callbacks, the bottom half: who runs what), conn_qp.c (the QP of a
 * connection, doorbells), sock.c (TCP sockets), conn_limits.c (how many strangers may have),
 * conn_life.c (birth, death). cm.c and its parts stand above all.
 *
 * Locks. The socket's lock is the connection's: it guards the link and with it the attached
 * QP's core. Process context takes it with weft_conn_lock(); softirq has it in TCP's
 * callbacks, and the bottom half takes it with bh_lock_sock() unless a process owns the socket; so does
 * a kernel consumer that posts.
 * Work for the send side that arises elsewhere sets WEFT_CF_PENDING, a window to be opened
 * WEFT_CF_WINDOW; whoever has the lock next, or lets it go, sees to it. Steps of the link
 * are serial under conn->mutex, too: the worker has it, or a call of iw_cm. State and
 * deadline are the mutex's; softirq looks at the link's mode and QP. Order: qp->state_lock,
 * conn->mutex, socket, sk_callback_lock, conn->lock.
 */
#ifndef WEFT_CONN_H
#define WEFT_CONN_H

#include <linux/completion.h>
#include <linux/hrtimer.h>
#include <linux/kref.h>
#include <linux/mutex.h>

#include "core/link.h"
#include "softirq.h"
#include "weft.h"

/* Bits of weft_conn.events: why the worker is to run. */
enum {
	WEFT_CEV_WAKE,			/* data, state, time: look */
	WEFT_CEV_KILL,			/* the device goes away */
	WEFT_CEV_RETRY,			/* weft_conn_try_again() */
	WEFT_CEV_RECONNECT,		/* the peer is to be asked in another way */
	WEFT_CEV_ORPHAN,		/* the listener that it came by has gone */
	WEFT_CEV_EVICT,			/* strangers have too many like it */
};

/* Bits of weft_conn.flags. */
enum {
	WEFT_CF_PENDING,		/* the send side has work */
	WEFT_CF_WINDOW,			/* the peer may know of a smaller window than there is */
	WEFT_CF_LINGER_OVER,		/* linger's time is up */
};

/* Sockets for what may be tried again: revision 2 after a RST, then revision 1. */
#define WEFT_SPARES	2

struct weft_sk_callbacks {
	void (*state_change)(struct sock *sk);
	void (*data_ready)(struct sock *sk);
	void (*write_space)(struct sock *sk);
	void (*error_report)(struct sock *sk);
};

/* What was counted of others' counts, when last looked at. */
struct weft_conn_seen {
	u32 requests;			/* the send queue's */
	u32 fpdus, segs;		/* the batch's */
	u32 segs_out;			/* TCP's */
};

/*
 * An idle one is to cost little: 2 KB, if what only a run needs stays out of it, and
 * is on the stack or behind the batch.
 */
struct weft_conn {
	struct kref ref;		/* the memory: its life; a request's or listener's name */
	struct rcu_head rcu;		/* qp->conn is read under RCU */
	atomic_t holders;		/* those in, or on their way into, weft_conn_lock() */
	refcount_t users;		/* those who may touch the socket: its life, callers between
					 * weft_conn_enter() and _leave(), a bottom half that is due */
	struct completion idle;		/* the last user left */
	struct weft_device *dev;
	struct list_head node;		/* dev->conns; dev->conns_lock */
	struct list_head startup_node;	/* dev->conns_lock */
	bool unsettled;			/* dev->conns_lock: an initiator that has no turn yet */
	struct list_head limit_node;	/* dev->conn_limits; dev->conns_lock */
	enum weft_limit_kind limit_kind;	/* dev->conns_lock */
	bool gone;			/* unlinked, socket released: weft_conns_gone is woken */
	struct mem_cgroup *payer;	/* of all its memory; held, or NULL */

	struct socket *sock;		/* constant from its opening to the end */
	struct sock *sk;
	bool user;			/* hooks are asked for its sockets: a program's */
	struct weft_sk_callbacks saved;
	unsigned long flags;		/* WEFT_CF_ */
	unsigned long events;		/* WEFT_CEV_ */

	spinlock_t lock;		/* irqsave; below the others */
	bool dead;			/* neither worker nor bottom half is asked for any more */
	bool hushed;			/* listener: iw_cm is told no more */

	struct delayed_work work;	/* the worker */
	struct weft_bh bh;		/* the send side when nobody's context offers itself */

	/* socket lock */
	struct weft_link link;		/* its QP is held */
	struct hrtimer linger_timer;
	bool sending;			/* TCP has the batch: nothing is received meanwhile */
	bool unread;			/* something came meanwhile */
	bool full;			/* TCP's send buffer is: write_space goes on */
	struct weft_conn_seen seen;

	/* mutex */
	struct mutex mutex;
	bool listening;			/* a listener: of the link only state and deadline count */
	u64 retry_at;			/* weft_conn_try_again(): not before, in ms; 0: no need */
	bool in_turn;			/* others wait: the owner sends one run at most */
	u16 orq_room, irq_room;		/* entries of the link's arrays that are lent */
	struct socket *spare[WEFT_SPARES]; /* a program's initiator in start-up */
	struct iw_cm_id *id;		/* held; told of a CLOSE (or a failed CONNECT_REPLY) once */
	struct weft_conn *listener;	/* responder that the ULP has not heard of; referenced */
	struct weft_conn *parent;	/* the same, to the end of the memory; referenced */
	u32 request;			/* responder: what iw_cm calls it */
	bool beyond;			/* iw_cm was told though the ULP had its backlog of them */
	atomic_t children;		/* listener: those whose listener it is */
	struct list_head family;	/* dev->conns_lock: whose parent it is, or a place there */
	u32 heads;			/* dev->conns_lock: how many they are */

	/* listener and children: whose Request the ULP is to hear of. cm_ask.c */
	struct list_head turn;		/* dev->conns_lock: a listener's queue, or a place in it */
	u64 place;			/* dev->conns_lock: of weft_backlog_place(), 0: none */
	struct list_head startup_queue;	/* a listener's children; dev->conns_lock */
	struct weft_backlog backlog;	/* listener; dev->conns_lock */
};

extern wait_queue_head_t weft_conns_gone;

/* Connections of a list that are woken before others get dev->conns_lock. */
#define WEFT_WAKE_AT_ONCE 256

/* Any context. */
static inline void weft_count(const struct weft_conn *conn, enum weft_counter c, u64 n)
{
	weft_dev_count(conn->dev, c, n);
}

static inline struct weft_conn *to_weft_conn(struct weft_link *l)
{
	return container_of(l, struct weft_conn, link);
}

/* The attached QP, or NULL. Socket lock. */
static inline struct weft_qp *weft_conn_qp(const struct weft_conn *conn)
{
	return conn->link.qp ? container_of(conn->link.qp, struct weft_qp, core) : NULL;
}

/* ---- conn.c ---- */

void weft_conn_get(struct weft_conn *conn);
void weft_conn_put(struct weft_conn *conn);	/* any context */

/*
 * The QP's connection, its socket safe until weft_conn_leave(); NULL if there is none: then
 * the core is as its connection left it. A connection that is past its last user has let
 * the QP go before.
 */
struct weft_conn *weft_conn_enter(struct weft_qp *qp);
void weft_conn_leave(struct weft_conn *conn);

/* Makes the worker run, for WEFT_CEV_ @event; any context. */
void weft_conn_wake_worker(struct weft_conn *conn, unsigned int event);

/* The worker reads again in a while what there was no memory for. Any context. */
void weft_conn_read_later(struct weft_conn *conn);
/*
 * Runs the connection in a moment: there was no memory, or others hold a region. The socket's
 * lock.
 */
void weft_conn_try_again(struct weft_conn *conn);

/* The deadline, or retry_at, makes the worker run again, unless something does before. Mutex. */
void weft_conn_arm(struct weft_conn *conn);

/* The bottom half is to run; any context. */
void weft_conn_schedule_bh(struct weft_conn *conn);

/* The send side has work: the lock's owner runs it, or the bottom half. Any context. */
void weft_conn_pend(struct weft_conn *conn);

/* Milliseconds, for the link. */
u64 weft_conn_now(void);

int weft_conn_cache_init(void);
/* No connection is left, and its memory is on its way. */
void weft_conn_cache_exit(void);
/* Zeroed, with one reference; NULL if there is no memory. */
struct weft_conn *weft_conn_alloc(void);

/*
 * Memory of a connection is charged to whoever asked for it, or for its listener: between
 * these two calls, in any context, what is allocated with __GFP_ACCOUNT is. The first returns
 * what the second wants. A new connection takes over the payer of its creation.
 */
struct mem_cgroup *weft_conn_pays(struct weft_conn *conn);
void weft_conn_paid(struct mem_cgroup *old);

/* ---- conn_rx.c ---- */

/*
 * Reads what TCP has into the link: about @most octets at a time. A run is asked for if there is
 * more. Socket lock.
 */
void weft_conn_receive(struct weft_conn *conn, size_t most);

/* ---- conn_tx.c, all with the socket lock ---- */

/* What core/host.h asks: weft_host_send(), and memory for a batch and for its rest. */
s32 weft_conn_send(struct weft_conn *conn, const struct weft_iov *iov, u32 niov, u32 len,
		   u32 flags);
void *weft_conn_lend_batch(struct weft_conn *conn, u32 *size);
void *weft_conn_lend_rest(struct weft_conn *conn, u32 *size);
void weft_conn_reclaim_batch(void *mem, u32 size);
/* Gives back the pages that idle CPUs keep for batches; no connection is left. No lock. */
void weft_conn_tx_exit(void);

/* ---- conn_run.c ---- */

/* Socket lock. */
/* One run of the send side: a slice at most. */
void weft_conn_tx(struct weft_conn *conn);
/* The core has run: counts, and reads what came while TCP had the batch. */
void weft_conn_ran(struct weft_conn *conn);

/* The connection's lock, in process context. Unlocking runs what became pending. */
void weft_conn_lock(struct weft_conn *conn);
void weft_conn_unlock(struct weft_conn *conn);

/*
 * What is pending is sent at once, unless somebody has the socket; the bottom half or that process does
 * what is left. Process, where softirqs may run: one of the connection's users, or with its mutex.
 */
void weft_conn_run_here(struct weft_conn *conn);

/* The bottom half of a new connection. */
void weft_conn_run_init(struct weft_conn *conn);

/* TCP's callbacks of a connection or a listener. */
extern const struct weft_sk_callbacks weft_conn_callbacks;

/* ---- linger.c, with the socket lock unless said otherwise ---- */

/* A new connection's. No lock. */
void weft_conn_linger_init(struct weft_conn *conn);
/* The timer is stopped; nobody starts it any more. Process context, no lock. */
void weft_conn_linger_exit(struct weft_conn *conn);
/* Around the doorbell's run; the end is without the lock. */
void weft_conn_linger_doorbell_begins(struct weft_conn *conn);
void weft_conn_linger_doorbell_ends(struct weft_conn *conn);
/* In every run of the send side: is the time up, and was it worth it? */
void weft_conn_linger_judge(struct weft_conn *conn);
/* The QP goes. */
void weft_conn_linger_stop(struct weft_conn *conn);

/* ---- conn_qp.c ---- */

/* Binds @qp to @conn: -EBUSY if it has a connection. Socket lock, qp->state_lock. */
int weft_conn_attach(struct weft_conn *conn, struct weft_qp *qp);
/* Passes the QP on to @heir, whose socket nobody else knows yet. Both mutexes. */
void weft_conn_hand_over(struct weft_conn *conn, struct weft_conn *heir);
/* Flushes what is posted to a QP in error, to its end. Process context; the core's lock. */
void weft_conn_flush_all(struct weft_qp *qp);
/*
 * Lets the QP go (weft_link_release_qp()), flushed to the end. Returns the QP, still held,
 * or NULL. Socket lock, process context; octets are discarded from now on.
 */
struct weft_qp *weft_conn_release_qp(struct weft_conn *conn);

/* ---- sock.c ---- */

/*
 * Creates conn's socket in the device's namespace, with the options of a new one. In the
 * caller's context if he is a user.
 */
int weft_sock_open(struct weft_conn *conn, int family, const struct iw_cm_id *id);
/* Others for later, which count for the same user: of his cgroups, with his label. */
int weft_sock_make_spares(struct weft_conn *conn, int family, const struct iw_cm_id *id);
/* Takes over what @old has to spare: one as its own. */
int weft_sock_open_spare(struct weft_conn *conn, struct weft_conn *old);
void weft_sock_drop_spares(struct weft_conn *conn);
/*
 * The socket, which nobody else knows yet, is a kernel consumer's that connects: memory may be
 * reclaimed by writing over it. It may use the reserve for that, and is not denied packets that
 * came into the reserve. A consumer that listens serves others, who are to have none of it.
 */
void weft_sock_serve_reclaim(struct weft_conn *conn);
bool weft_sock_serves_reclaim(const struct weft_conn *conn);
/* Takes over @sock, accepted on @listener's: false if somebody else has. */
bool weft_sock_adopt(struct weft_conn *conn, struct weft_conn *listener, struct socket *sock);
/* Gives the socket its own callbacks back, and waits for ours. */
void weft_sock_unhook(struct weft_conn *conn);
bool weft_sock_is_wildcard(const struct sockaddr_storage *a);
int weft_sock_listen(struct weft_conn *conn, const struct iw_cm_id *id, int backlog);
/* Starts to connect and does not wait: 0, or -errno. @any_port: not the id's own. */
int weft_sock_connect(struct weft_conn *conn, const struct iw_cm_id *id, bool any_port);
/* Own and peer's address; IPv4 in IPv6 as plain IPv4. */
void weft_sock_names(struct weft_conn *conn, struct sockaddr_storage *own,
		     struct sockaddr_storage *peer);
/* The sending side is closed behind what TCP has taken. No socket lock. */
void weft_sock_shutdown(struct weft_conn *conn);
/* Closes for good, no timer left; with RST unless both sides said FIN. */
void weft_sock_close(struct weft_conn *conn);

/* ---- startup_queue.c ---- */

/* TCP has news of @conn. In start-up it has its turn, else it is woken. Any context. */
void weft_startup_enqueue(struct weft_conn *conn);
/* An initiator's first news: from now on it has turns. Of others as weft_startup_enqueue(). */
void weft_startup_settled(struct weft_conn *conn);
/* The first of @turns, dev->startup_queue or a listener's: off it, with a reference; or NULL. */
struct weft_conn *weft_startup_next(struct weft_device *dev, struct list_head *turns);
/* No connection is left, and no news are looked at any more. Process context. */
void weft_startup_stop(struct weft_device *dev);
/* @conn has no turn any more; dev->conns_lock. */
void weft_startup_dequeue(struct weft_conn *conn);

/* ---- startup_turns.c ---- */

/* A listener's run: its children's turns. Mutex. */
void weft_startup_serve(struct weft_conn *listener);

/* ---- conn_limits.c ---- */

/* The link's state may have changed: @conn is counted where it belongs now. Mutex. */
void weft_limit_update(struct weft_conn *conn);
/* @conn was asked to go, and is alive. Mutex. */
void weft_limit_stay(struct weft_conn *conn);
/* @conn is no more; dev->conns_lock. */
void weft_limit_leave(struct weft_conn *conn);
/* So many wait to go that there should be no more for now. */
bool weft_limit_is_reached(struct weft_device *dev, enum weft_limit_kind kind);
bool weft_limit_is_doubled(const struct weft_conn *conn);

/* ---- conn_life.c ---- */

/* What a new connection is. */
enum weft_conn_role { WEFT_CONN_LISTENER, WEFT_CONN_INITIATOR, WEFT_CONN_RESPONDER };

/*
 * A new connection, linked to its device, its mutex held by the caller. @worker waits for
 * that; its last call, with the link DEAD, ends in weft_conn_finish(). ERR_PTR(-ENODEV)
 * once the device is dying. Given up by weft_link_die(), unlocking, and weft_conn_wake_worker().
 */
struct weft_conn *weft_conn_new(struct weft_device *dev, enum weft_conn_role role,
				work_func_t worker);

/* A child that @listener took: held to the end of @conn's memory, listed until it is unlinked. */
void weft_conn_join_parent(struct weft_conn *conn, struct weft_conn *listener);

/* The second step of death, by the worker, without locks. */
void weft_conn_finish(struct weft_conn *conn);

#endif
