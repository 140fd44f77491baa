/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Queue pairs. qp_table.c: their numbers and references; qp.c: life and states; qp_modify.c:
 * modify_qp and query_qp; doorbell.c and drain.c: when the caller moves octets.
 *
 * Locks. The context's lock guards what commands change, unless a comment names another. The
 * connection's lock (conn.h) guards a QP's core; without a connection, the QP's own lock does.
 * Order: context, CQ's progress, connection, QP, SRQ, CQ, channel.
 */
#ifndef RL_QP_H
#define RL_QP_H

#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>

#include "kernel/core/qp.h"
#include "kernel/core/shape.h"
#include "cq.h"
#include "mr.h"
#include "record/deeds.h"
#include "ring.h"
#include "srq.h"

struct rl_conn;
struct rl_byhand_qp;
struct rl_cable_cfg;
struct rl_qp;
struct rl_ud;

/* How a QP reaches its peer. Context's lock, except for kick() and stop(). */
struct rl_transport {
	/* A new QP, before others can find it; may set core.id: 0 or -errno. May be NULL. */
	int (*begin)(struct rl_qp *qp);
	/* RESET, ERR, destruction: make no new connection. The present one goes on. May be NULL. */
	void (*stop)(struct rl_qp *qp);
	/* Destruction, after its connection. Nothing arrives once this returns. May be NULL. */
	void (*end)(struct rl_qp *qp);
	/* modify_qp: 0 or -errno. */
	int (*modify)(struct rl_qp *qp, const struct ib_uverbs_modify_qp *in);
	/* The doorbell. No lock. */
	void (*kick)(struct rl_qp *qp);
};

/* rdma_cm connects the QP, and the connection changes its states. */
extern const struct rl_transport rl_rnic_transport;

/* Takes a QP's completions, and lends it an SRQ's receives. The core's lock. */
struct rl_consumer {
	/* As weft_host_srq_pop(), for a QP whose core has an SRQ. */
	int (*pop)(struct rl_qp *qp, bool wait, struct weft_recv *recv);
	void (*complete)(struct rl_qp *qp, bool recv, const struct weft_cqe *cqe);
	/* The core has found a fault: IB_EVENT_ number @type. */
	void (*fault)(struct rl_qp *qp, u32 type);
	/* The QP was reset, or is destroyed: nothing of it completes any more. May be NULL. */
	void (*forget)(struct rl_qp *qp);
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
	struct rl_ud *ud;		/* a UD QP's; else NULL; constant; freed with the QP */
	struct rl_byhand_qp *byhand;	/* lock; NULL: not connected by hand yet; referenced */
	struct hlist_node node;		/* in the table of numbers */
	u32 refs;			/* atomic */
	struct rl_lock lock;		/* conn, and without one the core */
	struct rl_conn *conn;		/* referenced */
	struct rl_cable_cfg *cable;	/* lock; cable.h; NULL: nothing was asked; the QP frees */
	bool gone;			/* lock: it is being destroyed */
	struct weft_qpc core;
	struct rl_ring sq, rq;
	struct weft_sq_caps sq_caps;	/* as promised: the profile's limits at most */
	struct weft_rq_caps rq_caps;
	struct ib_uverbs_modify_qp given; /* modify_qp's attributes so far */
	bool by_cm;			/* modify_qp has left the connection to rdma_cm */
	bool report_drained;		/* the core's lock: SQ_DRAINED is due */
	u32 async_reported;		/* the channel's lock */
	u32 nth, completed[2];		/* the core's lock: uverbs/adverse.c's */
	struct rl_recorded_posts posts;	/* the provider's lock of the send queue */
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

static inline struct rl_qp *rl_qp_of(struct weft_qpc *core)
{
	return container_of(core, struct rl_qp, core);
}

/* ---- qp_table.c. Any thread; leaf locks only ---- */

/* A QP by its number, in this process; referenced, or NULL. */
struct rl_qp *rl_qp_find(u32 qpn);
void rl_qp_get(struct rl_qp *qp);
void rl_qp_put(struct rl_qp *qp);
/* Adds it to the table, with a new number if it has none: 0 or -ENOMEM. */
int rl_qp_enlist(struct rl_qp *qp);
void rl_qp_delist(struct rl_qp *qp);
/* A QP, for a list. */
struct rl_qp_brief {
	u32 qpn;
	const struct rl_device *dev;
	u8 type;			/* IBV_QPT_ */
};
/*
 * For threads that have no context. Each of these returns a QP and a reference to it and to its
 * context, whose lock the caller may take; rl_qp_put_own() drops both. What a child has inherited
 * and not used is its parent's, and is not found.
 */
struct rl_qp *rl_qp_find_own(u32 qpn);
/*
 * The next QP after number @after (0: the first), in an order of the table's own; *@b describes it.
 * NULL after the last.
 */
struct rl_qp *rl_qp_next(u32 after, struct rl_qp_brief *b);
/* From bucket *@at on: the first QP that uses @cq and is not in error, or NULL. */
struct rl_qp *rl_qp_next_user(const struct rl_cq *cq, u32 *at);
/* May end the context: without its lock. */
void rl_qp_put_own(struct rl_qp *qp);

/* ---- qp.c ---- */

/* *@a's caps become what is granted: 0 or -errno. */
int rl_qp_new(struct rl_context *ctx, struct rl_qp_attr *a, struct weft_create_qp_resp *resp,
	      struct rl_qp **qp);
/*
 * The first half of destroying it: no number leads to it any more, and its acknowledgements are
 * drained (rl_qp_drain_acks()). No lock.
 */
void rl_qp_leave(struct rl_qp *qp);
/* After that: ends its connection. When this returns the QP is unused. */
void rl_qp_destroy(struct rl_qp *qp);
/* modify_qp's state, of a QP that is not connected by hand: 0 or -EINVAL. Context's lock. */
int rl_qp_move(struct rl_qp *qp, u32 to);
/* To RESET, from any state. A QP connected by hand completes nothing more. */
void rl_qp_reset(struct rl_qp *qp);
/* Its connection releases it, and ends. */
void rl_qp_end_connection(struct rl_qp *qp);
/* Is it connected, or ready to be, and not in error? Any context. */
bool rl_qp_may_fail(const struct rl_qp *qp);
/*
 * As an adapter that has found a fault in itself: Terminate, flushes, QP_FATAL. Nothing happens
 * to a QP that may not fail. Context's lock.
 */
void rl_qp_fail(struct rl_qp *qp);
/*
 * What the peer has done, or has not: the oldest request that it has not acknowledged completes
 * with @status, one of those about a peer. The others are flushed. Context's lock.
 */
void rl_qp_give_up(struct rl_qp *qp, u8 status);
/* The peer's host is gone: the connection has timed out. Context's lock. */
void rl_qp_lose_peer(struct rl_qp *qp);
/* No request begins from now on, until the QP is in error. Context's lock. */
void rl_qp_hold_sends(struct rl_qp *qp);
/*
 * Moves the QPs that use @cq to error: one of its entries was lost. False: a context's lock was not
 * to be had, and some are left. No lock.
 */
bool rl_qp_fail_users(const struct rl_cq *cq);

/* ---- qp_modify.c. Context's lock ---- */

/* 0 or -errno. */
int rl_qp_modify(struct rl_qp *qp, const struct ib_uverbs_modify_qp *in);
/* Its device has failed: to ERR, without a word to its peer. Context's lock. */
void rl_qp_silence(struct rl_qp *qp);
/* The same for a QP that rdma_cm connects. */
int rl_qp_modify_rnic(struct rl_qp *qp, const struct ib_uverbs_modify_qp *in);
/* query_qp reports the attributes of @in from now on. */
void rl_qp_keep_attributes(struct rl_qp *qp, const struct ib_uverbs_modify_qp *in);
void rl_qp_query(struct rl_qp *qp, struct ib_uverbs_query_qp_resp *r);

/* ---- qp_lock.c ---- */

/* Takes the core's lock: the connection, referenced, or NULL. rl_qp_unlock_core() drops both. */
struct rl_conn *rl_qp_lock_core(struct rl_qp *qp);
void rl_qp_unlock_core(struct rl_qp *qp, struct rl_conn *c);
/* A receive that it waited for was posted: its connection retries soon. Any lock may be held. */
void rl_qp_poke(struct rl_qp *qp);

/* ---- conn_tx.c ---- */

/* Flushes all that was posted to a QP in error. The core's lock. */
void rl_qp_flush(struct rl_qp *qp);
/* Reports SQ_DRAINED if it is due and nothing is being sent any more. The core's lock. */
void rl_qp_report_drained(struct rl_qp *qp);

/* ---- doorbell.c ---- */

/* The doorbell of a QP that uses connections. No lock. */
void rl_qp_ring_doorbell(struct rl_qp *qp);
/* The doorbell of any QP. */
static inline void rl_qp_kick(struct rl_qp *qp)
{
	qp->transport->kick(qp);
}

/* ---- drain.c ---- */

/*
 * Before the QP is destroyed or enters ERR: reads what has arrived, and waits, for 200 ms in any
 * second, until the peer's acknowledgement Reads about that were answered. No lock.
 */
void rl_qp_drain_acks(struct rl_qp *qp);

#endif
