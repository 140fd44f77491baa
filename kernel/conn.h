/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * One TCP connection of a device, or one listener: a host of core/link.h.
 *
 * Files, lowest layer first: conn.c (references, scheduling), conn_rx.c (receiving from TCP),
 * conn_tx.c (sending to TCP), linger.c (the lingering timer), softirq.c (bottom halves and their
 * time budget), conn_run.c (the lock, TCP's callbacks, the bottom half), conn_qp.c (the
 * connection's QP, doorbells), sock.c (TCP sockets), conn_limits.c (caps on half-open
 * connections), conn_life.c (creation and teardown). cm.c and its parts are built on all of these.
 *
 * Locks. The socket's lock is the connection's: it guards the link and the core of the attached
 * QP. Process context takes it with weft_conn_lock(). TCP's callbacks run with it held. The bottom
 * half, and a kernel consumer that posts, take it with bh_lock_sock() unless a process owns the
 * socket. Whoever has work for the send side without the lock sets WEFT_CF_PENDING, or
 * WEFT_CF_WINDOW if the peer must be sent a window update; the work is done by the next owner of
 * the lock, or by the current owner as it drops the lock.
 *
 * Steps of the link are also serialized by conn->mutex, held by the worker or by a call from
 * iw_cm. The mutex guards the link's state and deadline; softirq looks only at the link's mode and
 * QP. Order: qp->state_lock, conn->mutex, socket, sk_callback_lock, conn->lock.
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

/* Bits of weft_conn.events: why the worker has to run. */
enum {
	WEFT_CEV_WAKE,			/* data arrived, TCP's state changed, or a timer fired */
	WEFT_CEV_KILL,			/* the device is being removed */
	WEFT_CEV_RETRY,			/* weft_conn_try_again() */
	WEFT_CEV_RECONNECT,		/* retry start-up on a new TCP connection */
	WEFT_CEV_ORPHAN,		/* its listener has been destroyed */
	WEFT_CEV_EVICT,			/* conn_limits.c: its kind has reached its cap */
};

/* Bits of weft_conn.flags. */
enum {
	WEFT_CF_PENDING,		/* the send side has work */
	WEFT_CF_WINDOW,			/* the window last advertised is too small */
	WEFT_CF_LINGER_OVER,		/* the linger timer has fired */
};

/* Spare sockets for two retries: revision 2 after a RST, then revision 1. */
#define WEFT_SPARES	2

struct weft_sk_callbacks {
	void (*state_change)(struct sock *sk);
	void (*data_ready)(struct sock *sk);
	void (*write_space)(struct sock *sk);
	void (*error_report)(struct sock *sk);
};

/* Counters of other layers, as of their last reading. */
struct weft_conn_seen {
	u32 requests;			/* the send queue's */
	u32 fpdus, segs;		/* the batch's */
	u32 segs_out;			/* TCP's */
};

/*
 * An idle connection should stay within 2 KB: keep state that only a run needs on the stack or in
 * the batch's memory.
 */
struct weft_conn {
	struct kref ref;		/* keeps the memory: held by the connection itself, and by
					 * whoever can name it (a request, a listener) */
	struct rcu_head rcu;		/* qp->conn is read under RCU */
	atomic_t holders;		/* callers in weft_conn_lock() or entering it */
	refcount_t users;		/* users of the socket: the connection until it dies,
					 * callers between weft_conn_enter() and _leave(), a
					 * scheduled bottom half, a callback that sends */
	struct completion idle;		/* the last user left */
	struct weft_device *dev;
	struct list_head node;		/* dev->conns; dev->conns_lock */
	struct list_head startup_node;	/* dev->conns_lock */
	bool unsettled;			/* dev->conns_lock: an initiator, not to be queued yet */
	struct weft_holder *holder;	/* whom it counts for; dev->conns_lock */
	struct list_head limit_node;	/* its oldest_first; dev->conns_lock */
	enum weft_limit_kind limit_kind;	/* dev->conns_lock */
	bool gone;			/* unlinked, socket released; weft_conns_gone was woken */
	struct mem_cgroup *payer;	/* charged for all its memory; held, or NULL */

	struct socket *sock;		/* set when opened, constant from then on */
	struct sock *sk;
	bool user;			/* a program's: LSM and cgroup hooks apply to its sockets */
	struct weft_sk_callbacks saved;
	unsigned long flags;		/* WEFT_CF_ */
	unsigned long events;		/* WEFT_CEV_ */

	spinlock_t lock;		/* irqsave; below the others */
	bool dead;			/* no longer schedule the worker or the bottom half */
	bool hushed;			/* listener: report no more events to iw_cm */

	struct delayed_work work;	/* the worker */
	unsigned long due;		/* in jiffies, while it is pending; lock */
	struct weft_bh bh;		/* the send side, unless a process runs it */

	/* socket lock */
	struct weft_link link;		/* its QP is held */
	struct hrtimer linger_timer;
	bool sending;			/* TCP has the batch: nothing is received meanwhile */
	bool unread;			/* data arrived meanwhile */
	bool full;			/* TCP's send buffer is full: write_space resumes */
	struct weft_conn_seen seen;

	/* mutex */
	struct mutex mutex;
	bool listening;			/* a listener: link has state and deadline only */
	u32 keepalive_ms;		/* what TCP's keepalives are set for; 0: none yet. Worker */
	u64 retry_at;			/* weft_conn_try_again(): earliest retry, in ms; 0: none */
	bool in_turn;			/* others wait in the queue: send one run at most */
	u16 orq_room, irq_room;		/* entries lent to the link's arrays */
	struct socket *spare[WEFT_SPARES]; /* only for a program's initiator, during start-up */
	struct iw_cm_id *id;		/* held; gets one CLOSE (or a failed CONNECT_REPLY) */
	struct weft_conn *listener;	/* responder not reported to the ULP yet; referenced */
	struct weft_conn *parent;	/* the same, but until the memory is freed; referenced */
	u32 request;			/* responder: iw_cm's number for the request */
	bool beyond;			/* reported although the ULP's backlog was full */
	atomic_t children;		/* listener: connections with it as ->listener */
	struct list_head family;	/* dev->conns_lock: its children, or its entry there */
	u32 heads;			/* dev->conns_lock: number of children */

	/* listener and children: the queue of Requests for the ULP. cm_ask.c */
	struct list_head turn;		/* dev->conns_lock: a listener's queue, or its entry */
	u64 place;			/* dev->conns_lock: from weft_backlog_place(); 0: none */
	struct list_head startup_queue;	/* a listener's children; dev->conns_lock */
	struct weft_backlog backlog;	/* listener; dev->conns_lock */
};

extern wait_queue_head_t weft_conns_gone;

/* Number of connections to wake before dropping dev->conns_lock for others. */
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
 * The QP's connection, whose socket stays valid until weft_conn_leave(). NULL: there is none, and
 * the core is as the last connection left it. A connection with no users left has released its QP
 * already.
 */
struct weft_conn *weft_conn_enter(struct weft_qp *qp);
void weft_conn_leave(struct weft_conn *conn);

/* Schedules the worker for WEFT_CEV_ @event. Any context. */
void weft_conn_wake_worker(struct weft_conn *conn, unsigned int event);

/* Schedules a later read of octets that could not be read for lack of memory. Any context. */
void weft_conn_read_later(struct weft_conn *conn);
/*
 * Retries the connection's run shortly: memory was short, or others held a region. Socket lock.
 */
void weft_conn_try_again(struct weft_conn *conn);

/* Arms the worker's timer for the deadline or retry_at, whichever is first. Mutex. */
void weft_conn_arm(struct weft_conn *conn);

/* Schedules the bottom half. Any context. */
void weft_conn_schedule_bh(struct weft_conn *conn);

/*
 * Runs the send side: in the lock's owner, if there is one, else in the bottom half. Any context.
 */
void weft_conn_pend(struct weft_conn *conn);

/* The link's clock, in milliseconds. */
u64 weft_conn_now(void);

int weft_conn_cache_init(void);
/* All connections are gone, though RCU may not have freed their memory yet. */
void weft_conn_cache_exit(void);
/* Zeroed, with one reference; NULL if there is no memory. */
struct weft_conn *weft_conn_alloc(void);

/*
 * A connection's memory is charged to the task that requested it, or to its listener's.
 * Allocations with __GFP_ACCOUNT between these two calls are charged that way, in any context but
 * a softirq of PREEMPT_RT, where they are not charged.
 * Pass the first call's return value to the second. A new connection inherits the payer in force
 * when it is created.
 */
struct mem_cgroup *weft_conn_pays(struct weft_conn *conn);
void weft_conn_paid(struct mem_cgroup *old);

/* ---- conn_rx.c ---- */

/*
 * Passes octets from TCP's receive queue to the link, about @most at a time. If more are left,
 * schedules another run. Socket lock.
 */
void weft_conn_receive(struct weft_conn *conn, size_t most);

/* ---- conn_tx.c, all with the socket lock ---- */

/* For core/host.h: weft_host_send(), and memory for a batch and for its unsent rest. */
s32 weft_conn_send(struct weft_conn *conn, const struct weft_iov *iov, u32 niov, u32 len,
		   u32 flags);
void *weft_conn_lend_batch(struct weft_conn *conn, u32 *size);
void *weft_conn_lend_rest(struct weft_conn *conn, u32 *size);
void weft_conn_reclaim_batch(void *mem, u32 size);
/* Frees the pages that CPUs cache for batches. No connection is left. No lock. */
void weft_conn_tx_exit(void);

/* ---- conn_run.c ---- */

/* Socket lock. */
/* One run of the send side: a slice at most. */
void weft_conn_tx(struct weft_conn *conn);
/*
 * After a run of the core: updates counters, and reads octets that arrived while TCP had the
 * batch.
 */
void weft_conn_ran(struct weft_conn *conn);

/* The connection's lock, in process context. Unlocking does pending work first. */
void weft_conn_lock(struct weft_conn *conn);
void weft_conn_unlock(struct weft_conn *conn);

/*
 * Sends pending work at once, unless the socket is owned; the bottom half or the owner does the
 * rest. Process context with softirqs enabled; the caller is one of the connection's users, or
 * holds its mutex.
 */
void weft_conn_run_here(struct weft_conn *conn);

/* Initializes a new connection's bottom half. */
void weft_conn_run_init(struct weft_conn *conn);

/* TCP's callbacks of a connection or a listener. */
extern const struct weft_sk_callbacks weft_conn_callbacks;

/* ---- linger.c, with the socket lock unless said otherwise ---- */

/* Initializes a new connection's timer. No lock. */
void weft_conn_linger_init(struct weft_conn *conn);
/* Stops the timer for good. Process context, no lock. */
void weft_conn_linger_exit(struct weft_conn *conn);
/* Brackets a doorbell's run. Call the second without the lock. */
void weft_conn_linger_doorbell_begins(struct weft_conn *conn);
void weft_conn_linger_doorbell_ends(struct weft_conn *conn);
/*
 * Called in every run of the send side: ends lingering that timed out, and judges whether it paid
 * off.
 */
void weft_conn_linger_judge(struct weft_conn *conn);
/* The QP is being released. */
void weft_conn_linger_stop(struct weft_conn *conn);

/* ---- conn_qp.c ---- */

/* Binds @qp to @conn: -EBUSY if it has a connection. Socket lock, qp->state_lock. */
int weft_conn_attach(struct weft_conn *conn, struct weft_qp *qp);
/* Moves the QP to @heir, whose socket is not published yet. Both mutexes. */
void weft_conn_hand_over(struct weft_conn *conn, struct weft_conn *heir);
/* Flushes a QP in error completely. Process context, with the lock of the core. */
void weft_conn_flush_all(struct weft_qp *qp);
/*
 * Releases the QP (weft_link_release_qp()), completely flushed. Returns it, still held, or NULL.
 * Received octets are discarded from now on. Socket lock, process context.
 */
struct weft_qp *weft_conn_release_qp(struct weft_conn *conn);

/* ---- sock.c ---- */

/*
 * Creates conn's socket in the device's namespace, with its options set. For a program's
 * connection, call in that program's context.
 */
int weft_sock_open(struct weft_conn *conn, int family, const struct iw_cm_id *id);
/*
 * Creates the spare sockets, accounted to the same user: in its cgroups, with its security label.
 */
int weft_sock_make_spares(struct weft_conn *conn, int family, const struct iw_cm_id *id);
/* Takes over @old's spare sockets, and uses one as its own. */
int weft_sock_open_spare(struct weft_conn *conn, struct weft_conn *old);
void weft_sock_drop_spares(struct weft_conn *conn);
/* TCP asks an idle peer often enough for @dead_ms (weft_alive_keepalive()). The worker. */
void weft_sock_set_keepalive(struct weft_conn *conn, u32 dead_ms);
/*
 * The unpublished socket belongs to a kernel consumer that connects, and reclaim may write pages
 * over it. So it may use the memory reserve, and accepts packets that were received from the
 * reserve. Sockets of listening consumers serve other hosts and must not use it.
 */
void weft_sock_serve_reclaim(struct weft_conn *conn);
bool weft_sock_serves_reclaim(const struct weft_conn *conn);
/* Takes over @sock, accepted on @listener's socket. False: somebody else owns it. */
bool weft_sock_adopt(struct weft_conn *conn, struct weft_conn *listener, struct socket *sock);
/* Restores the socket's own callbacks, and waits for running ones of ours. */
void weft_sock_unhook(struct weft_conn *conn);
bool weft_sock_is_wildcard(const struct sockaddr_storage *a);
int weft_sock_listen(struct weft_conn *conn, const struct iw_cm_id *id, int backlog);
/* Starts connecting without waiting: 0, or -errno. @any_port: ignore the id's port. */
int weft_sock_connect(struct weft_conn *conn, const struct iw_cm_id *id, bool any_port);
/* Own and peer's addresses; IPv4-mapped IPv6 as plain IPv4. */
void weft_sock_names(struct weft_conn *conn, struct sockaddr_storage *own,
		     struct sockaddr_storage *peer);
/* Sends FIN after the octets that TCP has taken. No socket lock. */
void weft_sock_shutdown(struct weft_conn *conn);
/* Closes the socket and stops its timers; sends RST unless both sides have sent FIN. */
void weft_sock_close(struct weft_conn *conn);

/* ---- netns.c ---- */

/* One more connection in @net, whose end waits for it; one less. @net is not used afterwards. */
void weft_netns_enter(const struct net *net);
void weft_netns_leave(const struct net *net);
int weft_netns_init(void);
/* No connection is left. */
void weft_netns_exit(void);

/* ---- startup_queue.c ---- */

/*
 * TCP's state changed or octets arrived: queues @conn in start-up, else wakes its worker. Any
 * context.
 */
void weft_startup_enqueue(struct weft_conn *conn);
/* Allows an initiator to be queued from now on. For others the same as weft_startup_enqueue(). */
void weft_startup_settled(struct weft_conn *conn);
/*
 * Removes the first of @turns (dev->startup_queue or a listener's) and returns it referenced; NULL
 * if empty.
 */
struct weft_conn *weft_startup_next(struct weft_device *dev, struct list_head *turns);
/* Stops the work. No connection is left. Process context. */
void weft_startup_stop(struct weft_device *dev);
/* Takes @conn off its queue; dev->conns_lock. */
void weft_startup_dequeue(struct weft_conn *conn);

/* ---- startup_turns.c ---- */

/* A listener's run: serves its queued children. Mutex. */
void weft_startup_serve(struct weft_conn *listener);

/* ---- conn_limits.c ---- */

/* The link's state may have changed: counts @conn under its current kind. Mutex. */
void weft_limit_update(struct weft_conn *conn);
/* Was @conn, which waits for a place in the backlog, chosen to be reset? Mutex. */
bool weft_limit_gives_way(const struct weft_conn *conn);
/* @conn was not evicted: puts it back on the list. Mutex. */
void weft_limit_stay(struct weft_conn *conn);
/*
 * @conn counts for the calling user, if that is known: a listener, with its children, by itself,
 * and what the user connects together. 0, or -ENOMEM.
 */
int weft_limit_hold(struct weft_conn *conn);
/* It counts as @of does, whose child or successor it is. */
void weft_limit_hold_as(struct weft_conn *conn, const struct weft_conn *of);
/* @conn is gone: stops counting it. dev->conns_lock. */
void weft_limit_leave(struct weft_conn *conn);
/* Are there too many half-open connections to accept another for now? */
bool weft_limit_is_full(struct weft_device *dev);
/* May @conn wait for a place in its listener's backlog? Another may have to give way. */
bool weft_limit_may_wait(struct weft_conn *conn);
bool weft_limit_is_doubled(const struct weft_conn *conn);

/* ---- conn_life.c ---- */

/* The role of a new connection. */
enum weft_conn_role { WEFT_CONN_LISTENER, WEFT_CONN_INITIATOR, WEFT_CONN_RESPONDER };

/*
 * Creates a connection, linked to its device, with its mutex held by the caller. @worker waits for
 * the mutex; its last call, with the link DEAD, ends in weft_conn_finish(). ERR_PTR(-ENODEV) once
 * the device is dying. To give up on the connection, call weft_link_die(), unlock, and call
 * weft_conn_wake_worker().
 */
struct weft_conn *weft_conn_new(struct weft_device *dev, enum weft_conn_role role,
				work_func_t worker);

/*
 * Makes @conn a child of @listener: references it until @conn's memory is freed, and is on its
 * list until unlinked.
 */
void weft_conn_join_parent(struct weft_conn *conn, struct weft_conn *listener);

/* The second step of teardown, in the worker, without locks. */
void weft_conn_finish(struct weft_conn *conn);

#endif
