/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The driver's objects and what its files ask of each other.
 *
 * Files: main.c (module, rdma link), device.c (ib_device, port, GID, netdev
 * notifier), ucontext.c (contexts, mmap, the kick methods), pd/cq.c, qp.c
 * (verbs), mr.c (STag table, pages), host.c (what core/host.h asks), conn.c
 * (one connection's socket: lock, callbacks, receive run, life), conn_tx.c
 * (send run), cm.c (iw_cm: connect, listen, accept, reject, close).
 *
 * Locks, outer to inner (docs/locking.md): conn socket lock, SRQ lock, CQ lock.
 * qp->post_lock is a leaf for kernel consumers' posts.
 */
#ifndef WEFT_H
#define WEFT_H

#include <linux/netdevice.h>
#include <linux/percpu.h>
#include <linux/skbuff.h>
#include <linux/xarray.h>
#include <net/sock.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>
#include <rdma/iw_cm.h>

#include "core/qp.h"

#define WEFT_MAX_QP		(64 * 1024)
#define WEFT_MAX_QP_WR		(16 * 1024)
#define WEFT_MAX_CQ		(64 * 1024)
#define WEFT_MAX_CQE		(256 * 1024)
#define WEFT_MAX_MR		(1024 * 1024)
#define WEFT_MAX_PD		(64 * 1024)
#define WEFT_MAX_IRD		128
#define WEFT_MAX_ORD		128

struct weft_conn;

/* Per-device counters, one place: enum, and names in device.c. */
enum weft_counter {
	WEFT_CNT_RX_FPDUS, WEFT_CNT_TX_FPDUS, WEFT_CNT_TX_CALLS, WEFT_CNT_TX_SEGS_ALIGNED,
	WEFT_CNT_TX_SEGS, WEFT_CNT_KICKS, WEFT_CNT_CRC_ERRORS, WEFT_CNT_TERM_IN,
	WEFT_CNT_TERM_OUT, WEFT_CNT_RX_DROPS, WEFT_CNT_NR
};

struct weft_device {
	struct ib_device ibdev;
	struct net_device *netdev;	/* borrowed; NULL once unregistering (rtnl, RCU) */
	int ifindex;
	u8 mac[8];			/* GID and node_guid come from it */
	u32 vendor_part_id;

	struct xarray qps;		/* QP number -> weft_qp, irq-safe */
	struct xarray mrs;		/* STag >> 8 -> weft_mr; lookups under RCU */
	atomic_t num_qp, num_cq, num_pd, num_mr, num_ctx, num_cep;

	struct list_head conns;		/* every live weft_conn, listeners too */
	spinlock_t conns_lock;

	/* options, set at run time */
	bool crc, markers;
	u8 mpa_rev;
	u8 rtr;				/* WEFT_RTR_ bits */
	unsigned int startup_timeout_ms, close_timeout_ms;

	u64 __percpu *counters;		/* WEFT_CNT_NR each */
};

struct weft_ucontext {
	struct ib_ucontext ibuc;
	u64 features;			/* WEFT_FEATURE_ in force */
};

struct weft_pd {
	struct ib_pd ibpd;
	u32 id;				/* never 0, unique among live PDs */
};

/* A ring shared with user space (or private to a kernel consumer). */
struct weft_ring_mem {
	struct rdma_user_mmap_entry entry; /* only for user rings */
	void *mem;			/* vmalloc_user */
	size_t size;
	bool user;
};

struct weft_cq {
	struct ib_cq ibcq;
	struct weft_cqc core;		/* lock */
	struct weft_ring_mem *ring;
	spinlock_t lock;		/* irqsave: kernel consumers poll from anywhere */
	u32 id;
};

struct weft_qp {
	struct ib_qp ibqp;
	struct weft_qpc core;		/* conn's socket lock; before a conn: state_lock */
	struct weft_device *dev;
	struct weft_cq *scq, *rcq;
	struct weft_ring_mem *sq_ring, *rq_ring;
	struct mutex state_lock;	/* modify, connect, accept, destroy */
	spinlock_t conn_lock;		/* guards the pointer conn; a leaf */
	struct weft_conn *conn;		/* holds a reference on it; NULL before and after */
	struct ib_qp_attr attr;		/* as last set */
	enum ib_qp_state ib_state;
	refcount_t refs;		/* iw_cm's and conn's; destroy waits for the last */
	struct completion freed;
	spinlock_t post_lock;		/* kernel consumers: SQ and RQ producers */
};

struct weft_mr {
	struct ib_mr ibmr;
	struct weft_region region;
	struct ib_umem *umem;		/* user regions */
	struct page **pages;		/* page i holds octet i << page_shift of (first_off + offset) */
	u64 npages;
	u32 first_off;			/* offset of base in pages[0] */
	struct percpu_ref *holders;	/* or refcount: author's choice; dereg waits for holders */
	struct rcu_head rcu;
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

static inline struct weft_pd *to_weft_pd(struct ib_pd *p)
{
	return container_of(p, struct weft_pd, ibpd);
}

static inline struct weft_mr *to_weft_mr(struct ib_mr *m)
{
	return container_of(m, struct weft_mr, ibmr);
}

static inline void weft_count(struct weft_device *dev, enum weft_counter c, u64 n)
{
	this_cpu_add(dev->counters[c], n);
}

/* ---- asked of conn.c, conn_tx.c, cm.c by the verbs side ---- */

/* The doorbell: runs the send side of @qp in the caller's context (process
 * context, takes the socket lock), or flushes new posts when the QP is in
 * error. Also right without a connection (does nothing, or flushes).
 */
void weft_conn_kick(struct weft_qp *qp);

/* The same from any context (kernel consumers; softirq, IRQs off): sets a
 * pending bit that runs in BH or in the lock owner's release.
 */
void weft_conn_kick_any(struct weft_qp *qp);

/*
 * modify_qp: RTS -> SQD or CLOSING (graceful: what is posted goes out, FIN) and
 * anything -> ERROR (flush now, close). Caller holds qp->state_lock.
 * Returns 0 also when no connection exists any more.
 */
int weft_conn_close_graceful(struct weft_qp *qp);
int weft_conn_error(struct weft_qp *qp);

/* destroy_qp: closes, detaches the connection from @qp and waits until nobody
 * uses the QP through it. Bounded; process context.
 */
void weft_conn_detach(struct weft_qp *qp);

/* Device goes away (notifier, dellink): every connection and listener of @dev is
 * dead, its socket released, its timers stopped when this returns.
 */
void weft_conn_kill_all(struct weft_device *dev);

int weft_cm_connect(struct iw_cm_id *id, struct iw_cm_conn_param *p);
int weft_cm_accept(struct iw_cm_id *id, struct iw_cm_conn_param *p);
int weft_cm_reject(struct iw_cm_id *id, const void *pdata, u8 len);
int weft_cm_create_listen(struct iw_cm_id *id, int backlog);
int weft_cm_destroy_listen(struct iw_cm_id *id);
int weft_conn_init(void);		/* workqueue; module init */
void weft_conn_exit(void);

/* ---- asked of the verbs side by conn and cm ---- */

/* Looks a QP up by number and holds it: NULL if there is none. */
struct weft_qp *weft_qp_find(struct weft_device *dev, u32 qpn);
void weft_qp_hold(struct weft_qp *qp);
void weft_qp_drop(struct weft_qp *qp);	/* any context; never frees */
/* Makes the IB state follow the core's and raises the event; any context. */
void weft_qp_set_error(struct weft_qp *qp);

/*
 * Lists the pages behind [@addr, @addr + @len) of a held region as bio_vecs:
 * returns how many were written to @bv (at most @max), and in *@done how many
 * octets they cover. For copying, weft_mr_copy_out() does the whole.
 */
u32 weft_mr_bvecs(struct weft_region *r, u64 addr, u32 len, struct bio_vec *bv, u32 max,
		  u32 *done);

#endif
