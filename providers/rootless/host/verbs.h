/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Verbs objects, as the kernel has them, and what the files of this host ask of each other.
 *
 * Files: context.c (handles, events), mr.c, cq.c, srq.c, qp.c, host/qp_modify.c, ring.c.
 *
 * Locks. An object's fields that a command changes are guarded by its context's lock, unless a
 * comment says otherwise. A QP's core is its connection's (conn.h); without one, the QP's own
 * lock guards it. Order: context, CQ's progress, connection, QP, SRQ, CQ, channel.
 */
#ifndef RL_VERBS_H
#define RL_VERBS_H

#include <pthread.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>

#include "kernel/core/qp.h"
#include "kernel/core/shape.h"
#include "chan.h"
#include "conn.h"
#include "context.h"
#include "dmabuf.h"

#define RL_MAX_QP	(64 * 1024)
#define RL_MAX_CQ	(64 * 1024)
#define RL_MAX_MR	(1024 * 1024)
#define RL_MAX_PD	(64 * 1024)
#define RL_MAX_SRQ	(64 * 1024)
#define RL_MAX_IRD	128
#define RL_MAX_ORD	128
#define RL_FEATURES	(WEFT_FEATURE_RESIZE | WEFT_FEATURE_TIMESTAMP | WEFT_FEATURE_POLL_KICK | \
			 WEFT_FEATURE_LINGER | WEFT_FEATURE_MW | WEFT_FEATURE_NULL_MR | \
			 WEFT_FEATURE_SRQ_KICK | WEFT_FEATURE_ROCE_TYPES | WEFT_EXT_FEATURES)

/* ---- rings (ring.c) ---- */

/* A ring that the program maps by the command file's descriptor. */
struct rl_ring {
	void *mem;			/* our mapping of it, zeroed */
	u64 offset, size;		/* in the command file; whole pages */
};

struct rl_context;

/* @slots slots: 0 or -ENOMEM. Context's lock. */
int rl_ring_alloc(struct rl_context *ctx, struct rl_ring *r, u32 slots);
/* The program may have it mapped still. Context's lock. */
void rl_ring_free(struct rl_context *ctx, struct rl_ring *r);
void rl_ring_describe(const struct rl_ring *r, u32 slots, u32 stride, struct weft_ring_map *map);

/* ---- protection domains ---- */

struct rl_pd {
	struct rl_object o;
	u32 id;				/* never 0; unique in the process */
};

/* ---- memory (mr.c) ---- */

struct rl_mr {
	struct rl_object o;
	struct rl_pd *pd;
	struct weft_region region;
	u64 start;			/* where region.base lies */
	struct rl_dmabuf dmabuf;	/* whose memory that is, if it is one's */
	u32 access;			/* IB_ACCESS_ as asked for */
	u32 holders;			/* atomic; the table's is one */
	bool released;			/* the last has let go */
	bool replaced;			/* by rl_mr_change() */
	s32 windows;			/* atomic; bound to it; negative: it is going */
	struct rl_mr *next;		/* in the table */
};

/* Makes and publishes a region: 0, or -errno. */
int rl_mr_new(struct rl_pd *pd, u64 start, u64 len, u64 iova, u32 access, struct rl_mr **mr);
/*
 * One of the same memory, of @pd, with @access, takes the place of @old, its STag included: peers were
 * told that. @old is to be destroyed. 0, or -errno and nothing has changed.
 */
int rl_mr_change(struct rl_mr *old, struct rl_pd *pd, u32 access, struct rl_mr **mr);
/* One of @len octets from @offset of a dmabuf, which is the program's descriptor @fd. */
int rl_mr_new_dmabuf(struct rl_pd *pd, int fd, u64 offset, u64 len, u64 iova, u32 access,
		     struct rl_mr **mr);
/* A memory window is one, too, whose memory is another's: 0, or -errno. */
int rl_mw_new(struct rl_pd *pd, u8 type, struct rl_mr **mw);
/* Before rl_mr_destroy(): false, and it goes on, if a window is bound to it. */
bool rl_mr_close(struct rl_mr *mr);
/* It goes on after all. */
void rl_mr_open_again(struct rl_mr *mr);
/* One of no memory. */
int rl_mr_new_null(struct rl_pd *pd, struct rl_mr **mr);
/* Takes it out of use, waits for its holders, frees it. Not with a connection's lock. */
void rl_mr_destroy(struct rl_mr *mr);
/* The QP of @core goes: windows that are bound over it are bound no more. */
void rl_mr_unbind_windows(struct weft_qpc *core);
/* 0 or -errno: @sge is not in a region of @pd's, or not to be written. */
int rl_mr_advise(u32 pd, const struct weft_sge *sge, bool write);
/* What core/host.h asks. */
struct weft_region *rl_mr_find(u32 stag);
void rl_mr_hold(struct weft_region *r, u32 n);
void rl_mr_drop(struct weft_region *r);
bool rl_mr_hold_for_window(struct weft_region *r);
void rl_mr_drop_for_window(struct weft_region *r);
void *rl_mr_address(const struct weft_region *r, u64 addr);

/* ---- completion queues (cq.c) ---- */

struct rl_cq {
	struct rl_object o;
	struct rl_context *ctx;
	struct rl_chan *chan;		/* its completion channel; NULL: none; referenced */
	bool stamps;			/* completions tell their time; constant */
	pthread_mutex_t lock;
	struct weft_cqc core;		/* lock */
	struct rl_ring ring;		/* lock */
	struct rl_qp *lingerer;		/* lock; the QP whose send ring a poll looks at */
	u32 async_reported;		/* the channel's lock: events that the program has read */
	u32 comp_reported;

	/* progress: the connections whose QPs complete here */
	struct rl_cq *next, **prev;	/* all CQs of the process: cq.c's lock */
	struct rl_watch watch;
	int epfd;			/* hidden: waits for their sockets */
	pthread_mutex_t progress;	/* one at a time moves octets for the CQ */
	u32 nconns;			/* lock */
	u32 nsources;			/* lock: descriptors that several QPs receive by */
	struct rl_watch *source;	/* lock: the last that was added, if it is there; referenced */
	struct rl_conn *last;		/* lock; the connection that came last, if it is there; referenced */
	u32 polls;			/* atomic: kicks so far */
	u32 seen;			/* lock: polls when the progress thread last looked, */
	u64 seen_at;			/* ns, and when that was */
	u32 looks;			/* atomic: by doorbells and polls of others, since then */
	bool polled, busy;		/* lock: and what it then thought of that, without and with looks */
	bool leased;			/* lock: to those who poll; the progress thread looks away */
};

int rl_cq_new(struct rl_context *ctx, u32 entries, struct rl_chan *chan, struct rl_cq **cq);
/* No QP uses it: no more events of it wait, or come. */
void rl_cq_stop(struct rl_cq *cq);
/* Once it has been stopped. */
void rl_cq_destroy(struct rl_cq *cq);
int rl_cq_resize(struct rl_cq *cq, u32 entries, struct weft_resize_cq_resp *resp);
void rl_cq_complete(struct rl_cq *cq, const struct weft_cqe *e);
/* poll_cq found nothing: moves octets in the caller's context. */
void rl_cq_kick(struct rl_cq *cq);
/* Somebody who does not poll the CQ has looked for what comes in. */
void rl_cq_looked(struct rl_cq *cq);
/* Has it one connection, and a program that neither polls it busily nor waits for an event? */
bool rl_cq_is_left_alone(struct rl_cq *cq);
/* May @qp linger? Then the CQ's program kicks the CQ for it. Connection's lock. */
bool rl_cq_linger(struct rl_cq *cq, struct rl_qp *qp);
void rl_cq_linger_over(struct rl_cq *cq, struct rl_qp *qp);
/* A connection of a QP of this CQ's comes, and goes. Connection's lock. */
int rl_cq_add_conn(struct rl_cq *cq, struct rl_conn *c, u32 events);
void rl_cq_modify_conn(struct rl_cq *cq, struct rl_conn *c, u32 events);
void rl_cq_remove_conn(struct rl_cq *cq, struct rl_conn *c);
/* Whoever polls @cq reads @w's descriptor @fd, by which some of its QPs receive: 0 or -errno. */
int rl_cq_add_source(struct rl_cq *cq, struct rl_watch *w, int fd);
/* No more. The caller has a reference. */
void rl_cq_remove_source(struct rl_cq *cq, struct rl_watch *w, int fd);

/* ---- shared receive queues (srq.c) ---- */

struct rl_qp;

struct rl_srq {
	struct rl_object o;
	struct rl_context *ctx;
	struct rl_pd *pd;
	pthread_mutex_t lock;
	struct weft_srqc core;		/* lock */
	struct rl_ring ring;		/* lock */
	u32 async_reported;		/* the channel's lock */
};

int rl_srq_new(struct rl_pd *pd, struct rl_context *ctx, struct weft_rq_caps *caps,
	       struct rl_srq **srq);
void rl_srq_destroy(struct rl_srq *srq);
int rl_srq_resize(struct rl_srq *srq, u32 max_wr, struct weft_modify_srq_resp *resp);
int rl_srq_arm(struct rl_srq *srq, u32 limit);
/* What core/host.h asks of @qp's SRQ. Connection's lock. */
int rl_srq_pop(struct rl_qp *qp, bool wait, struct weft_recv *recv);
void rl_srq_leave(struct rl_qp *qp);
/* The doorbell: the QP that waits first may go on. */
void rl_srq_kick(struct rl_srq *srq);

/* ---- queue pairs (qp.c) ---- */

/* How a QP reaches its peer. Context's lock, but for kick(). */
struct rl_transport {
	/* A new QP, before others can find it; may set core.id. 0 or -errno. NULL: nothing to do. */
	int (*begin)(struct rl_qp *qp);
	/* The QP has left error or its life: it connects no more. Its connection goes on. NULL. */
	void (*stop)(struct rl_qp *qp);
	/* It is destroyed; its connection has gone. Nothing arrives once this returns. NULL. */
	void (*end)(struct rl_qp *qp);
	/* modify_qp: 0 or -errno. */
	int (*modify)(struct rl_qp *qp, const struct ib_uverbs_modify_qp *in);
	/* The doorbell. No lock. */
	void (*kick)(struct rl_qp *qp);
};

/* rdma_cm connects the QP, and its connection moves its states. */
extern const struct rl_transport rl_rnic_transport;

/* Who takes what a QP receives and completes. The core's lock. */
struct rl_consumer {
	/* As weft_host_srq_pop(), for a QP whose core has an SRQ. */
	int (*pop)(struct rl_qp *qp, bool wait, struct weft_recv *recv);
	void (*complete)(struct rl_qp *qp, bool recv, const struct weft_cqe *cqe);
	/* The core found a fault: IB_EVENT_ number @type. */
	void (*fault)(struct rl_qp *qp, u32 type);
};

struct rl_qp {
	struct rl_object o;
	struct rl_context *ctx;
	struct rl_pd *pd;
	struct rl_cq *scq, *rcq;
	struct rl_srq *srq;		/* NULL: it has its own receives */
	u8 type;			/* IBV_QPT_ */
	const struct rl_transport *transport;
	const struct rl_consumer *consumer;
	struct rl_ud *ud;		/* a UD QP's transport; else NULL; constant; freed with the QP */
	struct rl_qp *next;		/* in the table of numbers */
	u32 refs;			/* atomic */
	pthread_mutex_t lock;		/* conn, and without one the core */
	struct rl_conn *conn;		/* referenced */
	struct rl_hand_qp *hand;	/* lock; NULL: it was not connected by hand yet; referenced */
	bool gone;			/* lock: it is being destroyed */
	struct weft_qpc core;
	struct rl_ring sq, rq;
	struct weft_sq_caps sq_caps;
	struct weft_rq_caps rq_caps;
	struct ib_uverbs_modify_qp given; /* what modify_qp was given so far */
	bool by_cm;			/* rdma_cm connects it, as modify_qp was told */
	bool tell_drained;		/* the core's lock: SQ_DRAINED is due */
	u32 async_reported;		/* the channel's lock */
};

struct rl_qp_attr {
	struct rl_pd *pd;
	struct rl_cq *scq, *rcq;
	struct rl_srq *srq;
	u8 type;
	const struct rl_transport *transport;
	struct weft_sq_caps sq;
	struct weft_rq_caps rq;
	bool sig_all;
};

/* *@a's caps become what is granted. */
int rl_qp_new(struct rl_context *ctx, struct rl_qp_attr *a, struct weft_create_qp_resp *resp,
	      struct rl_qp **qp);
/* Ends its connection; nobody uses it any more when this returns. */
void rl_qp_destroy(struct rl_qp *qp);
/* modify_qp's state, of a QP that is not connected by hand: 0 or -EINVAL. */
int rl_qp_move(struct rl_qp *qp, u32 to);
/* Back to the beginning, from any state. Of one by hand nothing completes. */
void rl_qp_reset(struct rl_qp *qp);
/* Has it been told so, and does it send nothing any more, the program hears of it. The core's lock. */
void rl_qp_tell_drained(struct rl_qp *qp);
/*
 * Before it goes, or goes to ERR: what TCP has brought is read, and the peer's questions about that are
 * awaited, for a fifth of a second in any second, and answered. No lock.
 */
void rl_qp_hear_out(struct rl_qp *qp);
/* Its connection lets it go, and ends. */
void rl_qp_end_connection(struct rl_qp *qp);
/* The core's lock, and the connection, referenced; NULL, and there is none. Then it is let go. */
struct rl_conn *rl_qp_lock_core(struct rl_qp *qp);
void rl_qp_unlock_core(struct rl_qp *qp, struct rl_conn *c);
/* modify_qp and query_qp: 0 or -errno. Context's lock. (host/qp_modify.c) */
int rl_qp_modify(struct rl_qp *qp, const struct ib_uverbs_modify_qp *in);
/* modify_qp of a QP that rdma_cm connects. */
int rl_qp_modify_rnic(struct rl_qp *qp, const struct ib_uverbs_modify_qp *in);
/* The attributes that @in has become those that query_qp reports. */
void rl_qp_keep_attributes(struct rl_qp *qp, const struct ib_uverbs_modify_qp *in);
void rl_qp_query(struct rl_qp *qp, struct ib_uverbs_query_qp_resp *r);
/* The doorbell. */
static inline void rl_qp_kick(struct rl_qp *qp)
{
	qp->transport->kick(qp);
}
/* The doorbell of a QP that has connections. No lock. */
void rl_conn_ring_doorbell(struct rl_qp *qp);
/* Flushes all that was posted to a QP in error. The core's lock. */
void rl_qp_flush(struct rl_qp *qp);
/* A receive that it waited for is there: its connection goes on soon. With any connection's lock. */
void rl_qp_poke(struct rl_qp *qp);
/* Moves the QPs that use @cq to error: one of its entries was lost. */
void rl_qp_fail_users(const struct rl_cq *cq);

/* A QP by its number, in this process; referenced, or NULL. Any thread, leaf locks only. */
struct rl_qp *rl_qp_find(u32 qpn);
void rl_qp_get(struct rl_qp *qp);
void rl_qp_put(struct rl_qp *qp);

static inline struct rl_qp *rl_qp_of(struct weft_qpc *core)
{
	return container_of(core, struct rl_qp, core);
}

#endif
