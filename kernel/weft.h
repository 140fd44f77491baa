/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The driver's objects, and the functions that its files call in each other.
 *
 * Files: main.c (module, rdma link), device.c (ib_device, port, GID, PDs, counters), options.c
 * (sysfs), restrack.c, ucontext.c (contexts, mmap of rings, the kick methods), cq.c, qp.c, srq.c,
 * cq_verbs.c (verbs), tables.c (lookups), access.c (access control), ring_mem.c (rings), post.c
 * (kernel consumers' posts), mr.c (STag table, pages), host.c (implements core/host.h), conn*.c,
 * linger.c, softirq.c and sock.c (one connection: conn.h), conn_limits.c (half-open connections),
 * startup_queue.c and startup_turns.c (start-up in order), tcp.c (calls into TCP's internals),
 * cm*.c (iw_cm: connect, listen, accept, reject, close), trace.h (tracepoints). verbs.h lists the
 * operations.
 *
 * Locks, outer to inner (docs/locking.md): conn socket lock, SRQ lock, CQ lock. qp->post_lock is a
 * leaf for kernel consumers' posts.
 */
#ifndef WEFT_H
#define WEFT_H

#include <linux/completion.h>
#include <linux/hashtable.h>
#include <linux/idr.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/percpu.h>
#include <linux/sched/mm.h>
#include <linux/skbuff.h>
#include <linux/smp.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <net/sock.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>
#include <rdma/iw_cm.h>

#include "compat/bh.h"
#include "core/backlog.h"
#include "core/qp.h"
#include "dmabuf.h"
#include "core/shape.h"

#define WEFT_MAX_QP		(64 * 1024)
#define WEFT_MAX_CQ		(64 * 1024)
#define WEFT_MAX_MR		(1024 * 1024)
#define WEFT_MAX_PD		(64 * 1024)
#define WEFT_MAX_SRQ		(64 * 1024)
#define WEFT_MAX_IRD		128
#define WEFT_MAX_ORD		128

struct weft_conn;

/*
 * The counters of `rdma statistic`; device.c has their names. They are per CPU, so the hot path
 * shares no cache line and needs no atomics, and readers do not touch connections.
 */
enum weft_counter {
	WEFT_CNT_RX_FPDUS, WEFT_CNT_RX_DROPPED,
	WEFT_CNT_TX_FPDUS, WEFT_CNT_TX_CALLS, WEFT_CNT_TX_SEGS_ALIGNED, WEFT_CNT_TX_SEGS,
	WEFT_CNT_REQUESTS, WEFT_CNT_DOORBELLS,
	WEFT_CNT_CRC_ERRORS, WEFT_CNT_RX_NO_MEMORY, WEFT_CNT_EVICTED, WEFT_CNT_REGION_WAITS,
	WEFT_CNT_CONN_NR,		/* number of the counters above */

	/*
	 * Terminates are rare, so these are counted per device. One counter for each error from
	 * WEFT_E_MPA_CRC on, after one for all other errors.
	 */
	WEFT_TERMS = WEFT_E_NR - WEFT_E_MPA_CRC + 1,
	WEFT_CNT_TERM_IN = WEFT_CNT_CONN_NR,
	WEFT_CNT_TERM_OUT = WEFT_CNT_TERM_IN + WEFT_TERMS,
	WEFT_CNT_NR = WEFT_CNT_TERM_OUT + WEFT_TERMS
};

struct weft_counts {
	u64 n[WEFT_CNT_CONN_NR];
};

/* Kinds of connections that no program holds. The device caps each kind (conn_limits.c). */
enum weft_limit_kind {
	WEFT_LIMIT_NONE,
	WEFT_LIMIT_HALF_OPEN,		/* accepted by TCP, waiting for the MPA Request */
	WEFT_LIMIT_WAITING,		/* Request received, the ULP's backlog is full */
	WEFT_LIMIT_REFUSED,		/* rejected by the Reply, waiting for the peer's FIN */
	WEFT_LIMIT_ENDED,		/* the QP was released, waiting for the peer's FIN */
	WEFT_LIMIT_NR
};

struct weft_conn_limit {
	struct weft_cap cap;
	struct weft_share share;	/* of those that may be evicted */
};

struct weft_device {
	struct ib_device ibdev;
	/* Until it is unregistered or moved; then NULL. weft_dev_netdev() takes a reference. */
	struct net_device __rcu *netdev;
	struct net *net;		/* of the sockets; as long as there is a connection, or
					 * netdev is set: netns.c */
	netdevice_tracker netdev_tracker;
	int ifindex;
	u8 mac[ETH_ALEN];		/* GID and node_guid come from it */
	bool port_active;		/* last state reported to ib_core (rtnl) */
	u32 vendor_part_id;

	struct xarray qps;		/* by number; its own lock */
	struct xarray mrs;		/* STag >> 8 -> weft_mr; lookups under RCU */
	struct ida pd_ids, cq_ids, srq_ids;
	atomic_t num_qp, num_cq, num_srq, num_pd, num_mr, num_ctx, num_cep;

	spinlock_t conns_lock;
	struct list_head conns;		/* every live weft_conn, listeners too */
	bool dying;			/* no new ones: set before weft_conn_kill_all() */
	bool registered;		/* all clients know it */
	struct weft_counts __percpu *counts;
	atomic64_t terms[2 * WEFT_TERMS]; /* from WEFT_CNT_TERM_IN on */
	struct weft_conn_limit conn_limits[WEFT_LIMIT_NR]; /* conns_lock */
	DECLARE_HASHTABLE(users, 6);	/* weft_holder, by user id; conns_lock */
	struct list_head startup_queue;	/* initiators; conns_lock */
	struct work_struct startup_work;	/* serves them */

	/* options, set at run time */
	bool crc, markers;
	bool extensions;		/* RFC 7306 */
	bool large_fpdus;		/* larger than a segment */
	bool bind_netdev;		/* sockets use this netdev alone */
	u8 mpa_rev;
	u8 rtr;				/* WEFT_RTR_ bits */
	unsigned int startup_timeout_ms, accept_timeout_ms, close_timeout_ms, rnr_timeout_ms;
	unsigned int dead_peer_timeout_ms;
};

/* Any context. */
static inline void weft_dev_count(const struct weft_device *dev, enum weft_counter c, u64 n)
{
	this_cpu_add(dev->counts->n[c], n);
}

struct weft_ucontext {
	struct ib_ucontext ibuc;
	u64 features;			/* WEFT_FEATURE_ in force */
	struct mutex users_lock;	/* guards changes of: */
	struct xarray users;		/* struct mm_struct, held, of processes that have used the
					 * file, but not all that have created objects by it */
};

struct weft_pd {
	struct ib_pd ibpd;
	u32 id;				/* never 0, unique among live PDs */
	spinlock_t windows_lock;	/* guards its QPs' lists of bound windows */
	struct weft_region dma;		/* all memory, for kernel consumers: the local DMA lkey,
					 * STag 0; not in the table, not counted
					 */
};

/* A ring shared with user space (or private to a kernel consumer). */
struct weft_ring_mem {
	struct rdma_user_mmap_entry entry; /* only for user rings */
	void *mem;			/* vmalloc, zeroed */
	size_t size;			/* whole pages */
	bool user;
};

struct weft_cq {
	struct ib_cq ibcq;
	struct weft_cqc core;		/* lock */
	struct weft_ring_mem *ring;	/* lock: resizing replaces it */
	spinlock_t lock;		/* kernel consumers poll from anywhere: irqsave; else bh */
	struct mutex resize;		/* the old ring is kept while it is copied; taken outside of
					 * lock */
	bool user;			/* whose it is */
	bool stamps;			/* completions have a timestamp */
	u32 id;
	atomic_t wakes;			/* pending calls of comp_handler, made one at a time */
	unsigned int cpu;		/* kernel consumers: the CPU that makes these calls */
	struct __call_single_data csd;	/* while wakes is not 0, */
	struct weft_bh_work more_calls;	/* or this, after many calls in a row */
	struct weft_qp *lingerer;	/* lock; the QP to kick when a poll finds the CQ empty */
	struct work_struct overflow;	/* moves the CQ's QPs to error */
};

struct weft_srq {
	struct ib_srq ibsrq;
	struct weft_srqc core;		/* lock */
	struct weft_ring_mem *ring;	/* lock; for kernel consumers post_lock, too */
	spinlock_t lock;		/* irqsave: QPs take entries in softirq */
	struct mutex resize;		/* taken outside of the locks */
	bool user;			/* whose it is */
	u32 id;
	spinlock_t post_lock;		/* kernel consumers: the producer; outside lock */
	u32 posted;			/* theirs: slots filled so far */
};

struct weft_qp {
	struct ib_qp ibqp;
	struct weft_qpc core;		/* conn's socket lock; before a conn: state_lock */
	struct weft_device *dev;
	struct weft_cq *scq, *rcq;
	struct weft_srq *srq;		/* NULL: the QP has its own RQ */
	struct weft_ring_mem *sq_ring, *rq_ring;
	bool may_linger;		/* its user polls as WEFT_FEATURE_LINGER demands */
	struct mutex state_lock;	/* modify, connect, accept, destroy */
	struct weft_conn __rcu *conn;	/* NULL while not connected; set under the conn's socket
					 * lock */
	bool gone;			/* state_lock: it is being destroyed and gets no
					 * connection */
	struct mm_struct *owner;	/* the creating process's; NULL: a kernel thread */
	struct weft_ucontext *uc;	/* of a program's QP: the file through which it was made */
	struct work_struct flush;	/* flushes requests posted in ERROR without a conn */
	atomic_t flush_left;		/* how often it may still requeue itself */
	struct work_struct fail;	/* moves the QP to ERROR */
	unsigned long events_due;	/* atomic; bits of qp_events.c */
	struct work_struct events;	/* calls the handler for them */
	struct ib_qp_attr attr;		/* as last set */
	struct ib_qp_cap cap;
	refcount_t refs;		/* iw_cm's and conn's; destroy waits for the last */
	struct completion freed;
	spinlock_t post_lock;		/* kernel consumers: SQ and RQ producers */
	u32 sq_posted, rq_posted;	/* theirs: slots filled so far */
};

/*
 * A region's memory: kernel addresses of blocks of 1 << shift octets; the first octet is at
 * blocks[0] + first_off. Without blocks an address of the region is a kernel address (DMA
 * regions).
 */
struct weft_pages {
	void **blocks;
	u32 nblocks, max_blocks;
	u32 first_off;
	u8 shift;
};

/*
 * A region counts its holders. Deregistration waits for the last of them: a run of a QP, which
 * ends soon.
 *
 * A consumer may map a fast region's next memory while the peer can still reach the region under
 * its old STag: core/rw.c does, and then posts LOCAL_INV and REG_MR. So map_mr_sg() fills separate
 * pages, which REG_MR puts in force once no other QP holds the region.
 */
struct weft_mr {
	struct ib_mr ibmr;
	struct weft_region region;
	struct ib_umem *umem;		/* user regions, */
	struct weft_dmabuf dmabuf;	/* or this */
	int access;			/* of user regions: the IB_ACCESS_ flags requested */
	struct weft_pages pages;	/* in force */
	struct weft_pages mapped;	/* fast regions: the next; nblocks 0: none */
	atomic_t windows;		/* bound to it, or WEFT_MR_CLOSED */
	refcount_t holders;
	struct completion released;
	struct rcu_head rcu;
};

/* Deregistration has begun, and no window can be bound to the region any more. */
#define WEFT_MR_CLOSED	INT_MIN

struct weft_mw {
	struct ib_mw ibmw;
	struct weft_mr *mr;		/* in the table, under the window's STag */
};

static inline struct weft_device *to_weft_dev(struct ib_device *d)
{
	return container_of(d, struct weft_device, ibdev);
}

static inline struct weft_qp *to_weft_qp(struct ib_qp *q)
{
	return container_of(q, struct weft_qp, ibqp);
}

static inline struct weft_cq *to_weft_cq(struct ib_cq *q)
{
	return container_of(q, struct weft_cq, ibcq);
}

static inline struct weft_srq *to_weft_srq(struct ib_srq *s)
{
	return container_of(s, struct weft_srq, ibsrq);
}

static inline struct weft_pd *to_weft_pd(struct ib_pd *p)
{
	return container_of(p, struct weft_pd, ibpd);
}

static inline struct weft_mr *to_weft_mr(struct ib_mr *m)
{
	return container_of(m, struct weft_mr, ibmr);
}

/* The netdev of @dev, held, or NULL when it is going away. dev_put() it. */
static inline struct net_device *weft_dev_netdev(struct weft_device *dev)
{
	struct net_device *nd;

	rcu_read_lock();
	nd = rcu_dereference(dev->netdev);
	if (nd)
		dev_hold(nd);
	rcu_read_unlock();
	return nd;
}

/* ---- conn.c, conn_tx.c, cm.c: called by the verbs side ---- */

/*
 * The doorbell: runs the send side of @qp in the caller's context (process context, takes the
 * socket lock), or flushes new posts if the QP is in error. May be called without a connection.
 */
void weft_conn_kick(struct weft_qp *qp);

/*
 * The same from any context (kernel consumers; softirq, IRQs off). Runs at once if softirqs are
 * enabled and the socket is not owned, else sets a pending bit for the bottom half or the socket's
 * owner.
 */
void weft_conn_kick_any(struct weft_qp *qp);

/*
 * modify_qp: RTS -> SQD or CLOSING (graceful: sends what is posted, then FIN) and anything ->
 * ERROR (flushes now, closes). The caller holds qp->state_lock. Also returns 0 if there is no
 * connection any more.
 */
int weft_conn_close_graceful(struct weft_qp *qp);
int weft_conn_error(struct weft_qp *qp);
/* weft_conn_error() in a worker of @qp. Any context; the caller holds @qp. */
void weft_conn_error_later(struct weft_qp *qp);

/* create_qp: initializes the flush and fail works. */
void weft_conn_qp_init(struct weft_qp *qp);
/* Cancels these works, and waits for running ones. */
void weft_conn_qp_exit(struct weft_qp *qp);

/* Schedules a flush of @qp, which has no connection or is losing it. Any context. */
void weft_conn_flush_later(struct weft_qp *qp);

/*
 * destroy_qp: closes the connection, detaches it from @qp, and waits for its last user of the QP.
 * Bounded; process context, with or without state_lock. The core is then in ERROR, or IDLE if it
 * never ran. After the last reference is dropped, destroy_qp calls weft_conn_qp_exit() without
 * state_lock.
 */
void weft_cm_detach_qp(struct weft_qp *qp);

/* Initialize a new device. */
void weft_limits_init(struct weft_device *dev);
void weft_startup_init(struct weft_device *dev);

/*
 * The device is going away (notifier, dellink): asks every connection and listener of @dev to end.
 * Does not wait.
 */
void weft_conn_kill_all(struct weft_device *dev);
/* Waits until they are. No rtnl. */
void weft_conn_await_all(struct weft_device *dev);

int weft_cm_connect(struct iw_cm_id *id, struct iw_cm_conn_param *p);
int weft_cm_accept(struct iw_cm_id *id, struct iw_cm_conn_param *p);
int weft_cm_reject(struct iw_cm_id *id, const void *pdata, u8 len);
int weft_cm_create_listen(struct iw_cm_id *id, int backlog);
int weft_cm_destroy_listen(struct iw_cm_id *id);
int weft_conn_init(void);		/* module init */
void weft_conn_exit(void);		/* module exit, once weft_wq is destroyed */

/* ---- called in the verbs side by conn and cm ---- */

/* Looks a QP up by number and holds it: NULL if there is none. */
struct weft_qp *weft_qp_find(struct weft_device *dev, u32 qpn);
/*
 * The same for a QP that the caller is to connect: NULL also if the caller neither created it nor
 * has used the file through which it was created.
 */
struct weft_qp *weft_qp_find_callers(struct weft_device *dev, u32 qpn);
/* The same: ERR_PTR(-ENODEV) if the caller is in another network namespace than @dev. */
struct weft_qp *weft_access_qp(struct weft_device *dev, u32 qpn);
void weft_qp_hold(struct weft_qp *qp);
void weft_qp_drop(struct weft_qp *qp);	/* any context; never frees */

/* Makes the calling process the owner of a new QP, until weft_qp_disown(). */
void weft_qp_own(struct weft_qp *qp);
void weft_qp_disown(struct weft_qp *qp);

/*
 * The processes that may connect all QPs of a file: the calling one has used it. Nothing for NULL.
 */
void weft_users_init(struct weft_ucontext *uc);
void weft_users_exit(struct weft_ucontext *uc);
void weft_users_record(struct weft_ucontext *uc);

/* Is the caller a process, for its program or a kernel consumer? Else it is a kernel thread. */
bool weft_access_is_user(void);
/* May the caller listen in the namespace of @dev? */
bool weft_access_may_listen(struct weft_device *dev);

/*
 * Holders of a QP's state_lock, a connection's mutex, or a socket's lock must not reclaim memory
 * by I/O: that I/O may wait for the worker, even over this very connection, and the worker waits
 * for these locks.
 */
static inline unsigned int weft_lock_noio(struct mutex *m)
{
	unsigned int noio = memalloc_noio_save();

	mutex_lock(m);
	return noio;
}

static inline void weft_unlock_noio(struct mutex *m, unsigned int noio)
{
	mutex_unlock(m);
	memalloc_noio_restore(noio);
}

/*
 * The memory at @addr of a held region: returns its kernel address, and in *@got how many octets
 * are contiguous there, at most @len. The range has been checked: never NULL.
 */
void *weft_mr_piece(struct weft_region *r, u64 addr, u32 len, u32 *got);

/*
 * Slow work of connections and QPs. Works run in parallel on all CPUs; startup_queue.c has a queue
 * for work whose order matters.
 */
extern struct workqueue_struct *weft_wq, *weft_startup_wq;

/* For scans of all QPs of a device: one CQ's overflow at a time. */
extern struct workqueue_struct *weft_scan_wq;

#endif
