/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The driver's objects and what its files ask of each other.
 *
 * Files: main.c (module, rdma link), device.c (ib_device, port, GID, PDs,
 * counters), options.c (sysfs), restrack.c, ucontext.c (contexts, rings and their mmap, the
 * kick methods), cq.c, qp.c, srq.c, cq_verbs.c (verbs), tables.c
 * (lookups), access.c (who asks), ring_mem.c (rings), post.c (kernel consumers' posts),
 * mr.c (STag table, pages), host.c (what core/host.h asks), conn*.c, linger.c, softirq.c
 * and sock.c (one connection: conn.h), conn_limits.c (half-open connections), startup_queue.c and startup_turns.c
 * (start-up in order), tcp.c (what is taken from inside TCP), cm*.c (iw_cm: connect,
 * listen, accept, reject, close), trace.h (tracepoints). verbs.h lists the operations.
 *
 * Locks, outer to inner (docs/locking.md): conn socket lock, SRQ lock, CQ lock.
 * qp->post_lock is a leaf for kernel consumers' posts.
 */
#ifndef WEFT_H
#define WEFT_H

#include <linux/completion.h>
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
 * The counters of `rdma statistic`: names in device.c. Each CPU has its own, so that nothing
 * on the hot path is shared, or atomic, and whoever reads them looks at no connection.
 */
enum weft_counter {
	WEFT_CNT_RX_FPDUS, WEFT_CNT_RX_DROPPED,
	WEFT_CNT_TX_FPDUS, WEFT_CNT_TX_CALLS, WEFT_CNT_TX_SEGS_ALIGNED, WEFT_CNT_TX_SEGS,
	WEFT_CNT_REQUESTS, WEFT_CNT_DOORBELLS,
	WEFT_CNT_CRC_ERRORS, WEFT_CNT_RX_NO_MEMORY, WEFT_CNT_EVICTED, WEFT_CNT_REGION_WAITS,
	WEFT_CNT_CONN_NR,		/* those above */

	/* Terminates are rare: the device's from the beginning. By error, from
	 * WEFT_E_MPA_CRC on, behind one place for those that say anything else.
	 */
	WEFT_TERMS = WEFT_E_NR - WEFT_E_MPA_CRC + 1,
	WEFT_CNT_TERM_IN = WEFT_CNT_CONN_NR,
	WEFT_CNT_TERM_OUT = WEFT_CNT_TERM_IN + WEFT_TERMS,
	WEFT_CNT_NR = WEFT_CNT_TERM_OUT + WEFT_TERMS
};

struct weft_counts {
	u64 n[WEFT_CNT_CONN_NR];
};

/*
 * Connections that no program of ours stands for: strangers can have as many as they like, and a
 * device puts up with so many (conn_limits.c).
 */
enum weft_limit_kind {
	WEFT_LIMIT_NONE,
	WEFT_LIMIT_HALF_OPEN,		/* accepted by TCP, the MPA Request is to come */
	WEFT_LIMIT_WAITING,		/* the Request is there, the ULP has no room for it yet */
	WEFT_LIMIT_REFUSED,		/* the Reply said no, the peer's FIN is to come */
	WEFT_LIMIT_ENDED,		/* the QP has gone, the peer's FIN is to come */
	WEFT_LIMIT_NR
};

struct weft_conn_limit {
	struct list_head oldest_first;	/* those that may be asked to go */
	struct weft_cap cap;		/* and those that have been asked, and are there yet */
};

struct weft_device {
	struct ib_device ibdev;
	/*
	 * Held, and with it the namespace that the sockets live in, until the last of
	 * them is dead; then NULL. weft_dev_netdev() holds it once more.
	 */
	struct net_device __rcu *netdev;
	netdevice_tracker netdev_tracker;
	int ifindex;
	u8 mac[ETH_ALEN];		/* GID and node_guid come from it */
	bool port_active;		/* last state told to the core (rtnl) */
	u32 vendor_part_id;

	struct xarray qps;		/* by number; its own lock */
	struct xarray mrs;		/* STag >> 8 -> weft_mr; lookups under RCU */
	struct ida pd_ids, cq_ids, srq_ids;
	atomic_t num_qp, num_cq, num_srq, num_pd, num_mr, num_ctx, num_cep;

	spinlock_t conns_lock;
	struct list_head conns;		/* every live weft_conn, listeners too */
	bool dying;			/* no new ones: set before weft_conn_kill_all() */
	struct weft_counts __percpu *counts;
	atomic64_t terms[2 * WEFT_TERMS]; /* from WEFT_CNT_TERM_IN on */
	struct weft_conn_limit conn_limits[WEFT_LIMIT_NR]; /* conns_lock */
	struct list_head startup_queue;	/* initiators; conns_lock */
	struct work_struct startup_work;	/* looks at them */

	/* options, set at run time */
	bool crc, markers;
	bool extensions;		/* RFC 7306 */
	u8 mpa_rev;
	u8 rtr;				/* WEFT_RTR_ bits */
	unsigned int startup_timeout_ms, accept_timeout_ms, close_timeout_ms, rnr_timeout_ms;
};

/* Any context. */
static inline void weft_dev_count(const struct weft_device *dev, enum weft_counter c, u64 n)
{
	this_cpu_add(dev->counts->n[c], n);
}

struct weft_ucontext {
	struct ib_ucontext ibuc;
	u64 features;			/* WEFT_FEATURE_ in force */
};

struct weft_pd {
	struct ib_pd ibpd;
	u32 id;				/* never 0, unique among live PDs */
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
	struct weft_ring_mem *ring;	/* lock: a user may have it replaced */
	spinlock_t lock;		/* kernel consumers poll from anywhere: irqsave; else bh */
	struct mutex resize;		/* the old ring stays while it is copied; outside lock */
	bool user;			/* whose it is */
	bool stamps;			/* completions tell their time */
	u32 id;
	atomic_t wakes;			/* calls of comp_handler due: one at a time */
	unsigned int cpu;		/* kernel consumers: where they are made */
	struct __call_single_data csd;	/* while wakes is not 0 */
	struct weft_qp *lingerer;	/* lock; the QP to be kicked when a poll finds nothing */
	struct work_struct overflow;	/* moves the CQ's QPs to error */
};

struct weft_srq {
	struct ib_srq ibsrq;
	struct weft_srqc core;		/* lock */
	struct weft_ring_mem *ring;	/* lock, and of kernel consumers post_lock */
	spinlock_t lock;		/* irqsave: QPs take entries in softirq */
	struct mutex resize;		/* the old ring stays while it is copied; outside the locks */
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
	struct weft_srq *srq;		/* NULL: it has its own RQ */
	struct weft_ring_mem *sq_ring, *rq_ring;
	bool may_linger;		/* its user polls as WEFT_FEATURE_LINGER demands */
	struct mutex state_lock;	/* modify, connect, accept, destroy */
	struct weft_conn __rcu *conn;	/* NULL before and after; set under the conn's socket lock */
	bool gone;			/* state_lock: it is being destroyed and gets no connection */
	struct mm_struct *owner;	/* of the process that made it; NULL: a kernel thread did */
	struct work_struct flush;	/* of what is posted in ERROR without a conn */
	atomic_t flush_left;		/* how often it may ask for itself yet */
	struct work_struct fail;	/* to ERROR */
	struct ib_qp_attr attr;		/* as last set */
	struct ib_qp_cap cap;
	refcount_t refs;		/* iw_cm's and conn's; destroy waits for the last */
	struct completion freed;
	spinlock_t post_lock;		/* kernel consumers: SQ and RQ producers */
	u32 sq_posted, rq_posted;	/* theirs: slots filled so far */
};

/*
 * A region's memory: kernel addresses of blocks of 1 << shift octets, the first
 * octet at blocks[0] + first_off. Without blocks an address is a kernel address
 * (DMA regions).
 */
struct weft_pages {
	void **blocks;
	u32 nblocks, max_blocks;
	u32 first_off;
	u8 shift;
};

/*
 * Holders are counted; dereg waits for the last: the run of a QP, which ends soon.
 *
 * A consumer may map a fast region's next memory while the peer can still reach
 * the region under its old STag: core/rw.c does, and posts LOCAL_INV and REG_MR
 * behind that. So map_mr_sg() fills pages of their own, which REG_MR puts in force,
 * once nobody else holds the region.
 */
struct weft_mr {
	struct ib_mr ibmr;
	struct weft_region region;
	struct ib_umem *umem;		/* user regions, */
	struct weft_dmabuf dmabuf;	/* or this */
	int access;			/* theirs, IB_ACCESS_ as asked for */
	struct weft_pages pages;	/* in force */
	struct weft_pages mapped;	/* fast regions: the next; nblocks 0: none */
	atomic_t windows;		/* bound to it, or WEFT_MR_CLOSED */
	refcount_t holders;
	struct completion released;
	struct rcu_head rcu;
};

/* Deregistration is under way, and nothing is bound to the region any more. */
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

/* ---- asked of conn.c, conn_tx.c, cm.c by the verbs side ---- */

/* The doorbell: runs the send side of @qp in the caller's context (process
 * context, takes the socket lock), or flushes new posts when the QP is in
 * error. Also right without a connection (does nothing, or flushes).
 */
void weft_conn_kick(struct weft_qp *qp);

/*
 * The same from any context (kernel consumers; softirq, IRQs off): at once where softirqs may run and
 * nobody has the socket, else by a pending bit in the bottom half or in the owner's release.
 */
void weft_conn_kick_any(struct weft_qp *qp);

/*
 * modify_qp: RTS -> SQD or CLOSING (graceful: what is posted goes out, FIN) and
 * anything -> ERROR (flush now, close). Caller holds qp->state_lock.
 * Returns 0 also when no connection exists any more.
 */
int weft_conn_close_graceful(struct weft_qp *qp);
int weft_conn_error(struct weft_qp *qp);
/* The latter soon, by a worker of @qp's own. Any context; the caller holds @qp. */
void weft_conn_error_later(struct weft_qp *qp);

/* create_qp: prepares flush and fail. */
void weft_conn_qp_init(struct weft_qp *qp);
/* Waits for those that run, and ends the others. */
void weft_conn_qp_exit(struct weft_qp *qp);

/* Flushes @qp soon, which has no connection or is losing it. Any context. */
void weft_conn_flush_later(struct weft_qp *qp);

/* destroy_qp: closes, detaches the connection from @qp and waits until nobody
 * uses the QP through it. Bounded; process context, with or without state_lock.
 * The core is then in ERROR, or IDLE if it never ran. Once the last reference
 * has gone, destroy_qp says weft_conn_qp_exit(), without state_lock.
 */
void weft_cm_detach_qp(struct weft_qp *qp);

/* A new device's. */
void weft_limits_init(struct weft_device *dev);
void weft_startup_init(struct weft_device *dev);

/* Device goes away (notifier, dellink): every connection and listener of @dev is
 * dead, its socket released, its timers stopped when this returns.
 */
void weft_conn_kill_all(struct weft_device *dev);

int weft_cm_connect(struct iw_cm_id *id, struct iw_cm_conn_param *p);
int weft_cm_accept(struct iw_cm_id *id, struct iw_cm_conn_param *p);
int weft_cm_reject(struct iw_cm_id *id, const void *pdata, u8 len);
int weft_cm_create_listen(struct iw_cm_id *id, int backlog);
int weft_cm_destroy_listen(struct iw_cm_id *id);
int weft_conn_init(void);		/* module init */
void weft_conn_exit(void);		/* after weft_wq has gone */

/* ---- asked of the verbs side by conn and cm ---- */

/* Looks a QP up by number and holds it: NULL if there is none. */
struct weft_qp *weft_qp_find(struct weft_device *dev, u32 qpn);
/* The same for the QP that whoever asks would connect: NULL also if it is another's. */
struct weft_qp *weft_qp_find_callers(struct weft_device *dev, u32 qpn);
void weft_qp_hold(struct weft_qp *qp);
void weft_qp_drop(struct weft_qp *qp);	/* any context; never frees */

/* A new QP is the caller's, until it is no more. */
void weft_qp_own(struct weft_qp *qp);
void weft_qp_disown(struct weft_qp *qp);

/* A process asks, for its program or for a kernel consumer; else a kernel thread. */
bool weft_access_is_user(void);
/* That process is in another network namespace than @dev. */
bool weft_access_is_outside(struct weft_device *dev);
/* Whoever asks may have a listener in the namespace of @dev. */
bool weft_access_may_listen(struct weft_device *dev);

/*
 * Who holds a QP's state_lock, a connection's mutex, or a socket's lock does not reclaim memory
 * by I/O meanwhile. The worker waits for these locks, and what would be written may wait for the
 * worker, be it over this very connection.
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
 * The memory behind @addr of a held region: returns its kernel address and in
 * *@got how many octets lie there in one piece, at most @len. The range was
 * checked: never NULL.
 */
void *weft_mr_piece(struct weft_region *r, u64 addr, u32 len, u32 *got);

/*
 * Slow work of connections and QPs, at the same time as far as there are CPUs: where the order counts
 * there is a queue for it (startup_queue.c).
 */
extern struct workqueue_struct *weft_wq, *weft_startup_wq;

/* For what looks at all QPs of a device, one CQ's overflow after the other. */
extern struct workqueue_struct *weft_scan_wq;

#endif
