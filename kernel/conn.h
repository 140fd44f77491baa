/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * One TCP connection of a device, or one listener: what conn.c, conn_tx.c,
 * sock.c and cm.c share. The scheme of locks and lives stands in conn.c.
 */
#ifndef WEFT_CONN_H
#define WEFT_CONN_H

#include <linux/completion.h>
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/kref.h>
#include <linux/mutex.h>

#include "weft.h"

/* Pieces of an skb listed at a time: linear part, 17 fragments, as much again. */
#define WEFT_CONN_SEGS		40

/* A batch of FPDUs, one call of TCP, is assembled in so many pages if they can be had. */
#define WEFT_TX_ORDER		5
/* Room kept behind a batch, so that a Terminate can always be appended. */
#define WEFT_TX_SPARE		128
/* Pieces of users' memory that a batch refers to at most; the rest is copied. */
#define WEFT_TX_REFS		160
/* What one run under the lock sends at most before others get it. */
#define WEFT_TX_SLICE		(256 * 1024)

/* What the connection is waiting for. Conn mutex. */
enum weft_conn_state {
	WEFT_CONN_LISTENING,
	WEFT_CONN_CONNECTING,		/* initiator: TCP's handshake */
	WEFT_CONN_AWAIT_REPLY,		/* initiator: the MPA Reply */
	WEFT_CONN_AWAIT_REQUEST,	/* responder: the MPA Request */
	WEFT_CONN_REQUESTED,		/* responder: the ULP's accept or reject */
	WEFT_CONN_OPEN,			/* Full Operation: a QP is attached */
	WEFT_CONN_CLOSING,		/* no QP any more: FIN out, the peer's FIN awaited */
	WEFT_CONN_DEAD,			/* the worker frees everything */
};

/* What is done with received bytes. Socket lock. */
enum weft_rx_mode {
	WEFT_MODE_STARTUP,		/* the worker reads them */
	WEFT_MODE_FULL,			/* data_ready gives them to the QP */
	WEFT_MODE_DISCARD,
};

/* Bits of weft_conn.events: why the worker is to run. */
enum {
	WEFT_CEV_WAKE,			/* data, state, time: look */
	WEFT_CEV_KILL,			/* the device goes away */
	WEFT_CEV_RETRY,			/* TCP had no memory: send again soon */
	WEFT_CEV_ORPHAN,		/* the listener that it came by has gone */
};

/* Bits of weft_conn.flags. */
enum {
	WEFT_CF_PENDING,		/* the send side has work */
	WEFT_CF_WINDOW,			/* the peer may know of a smaller window than there is */
	WEFT_CF_LINGER_OVER,		/* linger's time is up */
};

/* Where the octets of a batch lie that is not all in its buffer, in order. */
struct weft_tx_refs {
	struct kvec iov[2 * WEFT_TX_REFS + 1];
	struct weft_region *held[WEFT_TX_REFS];
};

/* The batch under construction, and what TCP did not take of the one before. */
struct weft_tx {
	u8 *buf;			/* NULL while there is nothing in hand */
	u32 size, order;
	struct weft_tx_refs *refs;	/* behind size; NULL: the buffer is too small */
	struct weft_txd *d;		/* behind them: the FPDU to be appended */
	u32 off, end;			/* of the batch's octets, [off..end) are still to go */
	u32 used;			/* of buf: less than end while users' memory is referred to */
	u32 span;			/* of buf: where what iov does not list yet begins */
	u32 niov, nheld;		/* of refs; 0: the batch is in buf */
	u32 mss;			/* segment size that this batch is cut for */
	u32 seg_off;			/* octets in the segment being filled */
	u32 fpdus, segs;		/* of this batch: begun here, for the counters */
	u32 run;			/* octets of the last run */
	u32 taken;			/* the send queue's count of requests, when last looked at */
	u32 segs_out;			/* TCP's own count, when last looked at */
	bool eor;			/* the batch ends a segment early */
	bool full;			/* TCP's send buffer is: write_space goes on */
	bool fin;			/* the QP has nothing more to say */
	bool broken;			/* TCP refuses for good */
	bool sending;			/* TCP has the batch: nothing is received meanwhile */
	bool unread;			/* something came meanwhile */
	bool told;			/* the worker knows that all is said */
};

/* When the doorbell rang, and whether it is to ring less: linger.c. Times in ns. */
struct weft_linger {
	struct hrtimer timer;
	u64 began, ended, took;		/* the doorbell's last run */
	u32 streak, needed;		/* doorbells too soon, and how many make us linger */
	u32 from, calls;		/* where the user was when the time began; since then */
};

/* An initiator's side of MPA start-up, until it is over. */
struct weft_offer {
	struct weft_mpa_cfg cfg;
	struct weft_mpa_frame req;
	u16 pd_len;
	u8 pd[WEFT_MPA_PD_MAX];
};

struct weft_sk_callbacks {
	void (*state_change)(struct sock *sk);
	void (*data_ready)(struct sock *sk);
	void (*write_space)(struct sock *sk);
	void (*error_report)(struct sock *sk);
};

/*
 * An idle one is to cost little: 2 KB, if what only a run needs stays out of it, and
 * is on the stack or behind the batch.
 */
struct weft_conn {
	struct kref ref;		/* the memory: its life; a request's or listener's name */
	struct rcu_head rcu;		/* qp->conn is read under RCU */
	atomic_t holders;		/* those in, or on their way into, weft_conn_lock() */
	refcount_t users;		/* those who may touch the socket: its life, and
					 * callers between weft_conn_enter() and _leave() */
	struct completion idle;		/* the last user left */
	struct weft_device *dev;
	struct list_head node;		/* dev->conns; dev->conns_lock */
	bool gone;			/* unlinked, socket released: weft_conns_gone is woken */

	struct socket *sock;		/* constant from its opening to the end */
	struct sock *sk;
	struct weft_sk_callbacks saved;
	unsigned long flags;		/* WEFT_CF_ */
	unsigned long events;		/* WEFT_CEV_ */

	spinlock_t lock;		/* a leaf, irqsave */
	bool dead;			/* no work and no tasklet is scheduled any more */
	bool hushed;			/* listener: iw_cm is told no more */

	struct delayed_work work;	/* the worker */
	struct tasklet_struct bh;	/* the send side when nobody's context offers itself */

	/* socket lock */
	struct weft_qp *qp;		/* held; NULL before and after */
	struct weft_stream st;
	enum weft_rx_mode rx_mode;
	enum weft_rx_event rx_event;	/* of start-up: MORE, STARTUP, ERROR */
	struct weft_tx tx;
	struct weft_linger linger;
	u64 counts[WEFT_CNT_CONN_NR];
	struct weft_orq_entry *orq;
	struct weft_irq_entry *irq;

	/* mutex */
	struct mutex mutex;
	enum weft_conn_state state;
	struct iw_cm_id *id;		/* held; told of a CLOSE (or a failed CONNECT_REPLY) once */
	unsigned long deadline;		/* jiffies; 0: none */
	bool rtr_due;			/* responder: the deadline is for the initiator's RTR */
	struct weft_offer *offer;	/* initiator, in start-up */
	bool peer_fin;			/* told to QP and iw_cm */
	u64 acked;			/* octets acknowledged when the deadline was set */
	bool shut;			/* weft_sock_shutdown() was called */
	u8 closing_times;		/* left to set the deadline anew */
	struct weft_conn *listener;	/* responder not yet handed to the ULP; referenced */
	const struct weft_conn *parent;	/* the same, to the end, but a name only */
	u32 request;			/* responder: what iw_cm calls it */
	u32 backlog;			/* listener: most children at a time */
	atomic_t children;		/* listener */
};

extern wait_queue_head_t weft_conns_gone;

/* Socket lock. A reader of the counters takes none. */
static inline void weft_count(struct weft_conn *conn, enum weft_counter c, u64 n)
{
	WRITE_ONCE(conn->counts[c], conn->counts[c] + n);
}

/* ---- conn.c ---- */

/*
 * A new connection in @state, linked to its device, its mutex held by the
 * caller: the worker waits for that. ERR_PTR(-ENODEV) once the device is dying.
 * Given up by setting DEAD, unlocking, and weft_conn_post().
 */
struct weft_conn *weft_conn_new(struct weft_device *dev, enum weft_conn_state state);
void weft_conn_get(struct weft_conn *conn);
void weft_conn_put(struct weft_conn *conn);	/* any context */

/* Mutex. */
void weft_conn_set_state(struct weft_conn *conn, enum weft_conn_state state);

/* Makes the worker run, for WEFT_CEV_ @event; any context. */
void weft_conn_post(struct weft_conn *conn, unsigned int event);

/* The deadline makes the worker run again, unless something does before. Mutex. */
void weft_conn_arm(struct weft_conn *conn);

/* The connection's lock, in process context. Unlocking runs what became pending. */
void weft_conn_lock(struct weft_conn *conn);
void weft_conn_unlock(struct weft_conn *conn);

/* The send side has work: the lock's owner runs it, or the tasklet. Any context. */
void weft_conn_pend(struct weft_conn *conn);

/* Reads all that TCP has, as rx_mode says. Socket lock. */
void weft_conn_receive(struct weft_conn *conn);

/* Binds @qp to @conn: -EBUSY if it has a connection. Socket lock. */
int weft_conn_attach(struct weft_conn *conn, struct weft_qp *qp);
/* Passes the QP on to @to, whose socket nobody else knows yet. Both mutexes. */
void weft_conn_hand_over(struct weft_conn *conn, struct weft_conn *to);
/* Lets the QP go, its core flushed if it ever ran. Returns it, still held, or
 * NULL. Socket lock; discards from now on.
 */
struct weft_qp *weft_conn_release_qp(struct weft_conn *conn);

/* ---- conn_tx.c, all with the socket lock ---- */

/* One run of the send side: a slice at most. */
void weft_conn_tx(struct weft_conn *conn);
/* The QP goes: a Terminate still due is put behind what is in hand. */
void weft_conn_tx_last_words(struct weft_conn *conn);
/* Is there nothing left that TCP has not taken? */
bool weft_conn_tx_done(const struct weft_conn *conn);
/* Gives back the pages that idle CPUs keep for batches; no connection is left. No lock. */
void weft_conn_tx_exit(void);
/* Hands a start-up frame to TCP, all of it or none: 0 or -errno. */
int weft_conn_send_frame(struct weft_conn *conn, const u8 *p, u32 len);
void weft_conn_tx_free(struct weft_conn *conn);

/* ---- linger.c, all with the socket lock but init and exit ---- */

void weft_linger_init(struct weft_conn *conn);
/* The timer is stopped; nobody starts it any more. Process context. */
void weft_linger_exit(struct weft_conn *conn);
/* Around the doorbell's run; the end is without the lock. */
void weft_linger_begin(struct weft_conn *conn);
void weft_linger_end(struct weft_conn *conn);
/* In every run of the send side: is the time up, and was it worth it? */
void weft_linger_judge(struct weft_conn *conn);
/* The QP goes. */
void weft_linger_stop(struct weft_conn *conn);

/* ---- sock.c ---- */

/* Creates conn's socket in the device's namespace, with the options of a new one. */
int weft_sock_open(struct weft_conn *conn, int family, const struct iw_cm_id *id);
/* Takes over @sock, accepted on @listener's. */
void weft_sock_adopt(struct weft_conn *conn, struct weft_conn *listener, struct socket *sock);
/* Gives the socket its own callbacks back, and waits for ours. */
void weft_sock_unhook(struct weft_conn *conn);
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

/* The callbacks, conn.c. */
extern const struct weft_sk_callbacks weft_conn_callbacks;

/* ---- cm.c ---- */

/* What the worker does, mutex held. */
void weft_cm_run(struct weft_conn *conn, unsigned long events);
/* destroy_qp: ends what binds @conn to @qp, and tells iw_cm. */
void weft_cm_forget(struct weft_conn *conn, struct weft_qp *qp);

#endif
