// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Completion queues at run time. A user's is a ring that it polls and arms without us. A kernel
 * consumer's is the same ring in private memory, with the QP of each entry in the entry's reserved
 * words.
 */
#include "verbs.h"

/* ---- the QP of an entry, in private rings only ---- */

/* Eight-byte aligned in the CQE: words 0 and 1 of reserved[]. */
#define CQE_QP_WORD 0
static_assert(offsetof(struct weft_cqe, reserved[CQE_QP_WORD]) % sizeof(void *) == 0);
static_assert(sizeof(struct weft_cqe) - offsetof(struct weft_cqe, reserved[CQE_QP_WORD]) >=
	      sizeof(void *));

static void cqe_set_qp(struct weft_cqe *e, struct weft_qp *qp)
{
	memcpy(&e->reserved[CQE_QP_WORD], &qp, sizeof(qp));
}

static struct weft_qp *cqe_qp(const struct weft_cqe *e)
{
	struct weft_qp *qp;

	memcpy(&qp, &e->reserved[CQE_QP_WORD], sizeof(qp));
	return qp;
}

/* ---- the lock ---- */

/*
 * A kernel consumer may poll and arm in any context, also with interrupts off. A user's CQ is used
 * only by tasks and softirq.
 */
static unsigned long cq_lock(struct weft_cq *cq) __acquires(&cq->lock)
{
	unsigned long flags = 0;

	if (cq->user)
		spin_lock_bh(&cq->lock);
	else
		spin_lock_irqsave(&cq->lock, flags);
	return flags;
}

static void cq_unlock(struct weft_cq *cq, unsigned long flags) __releases(&cq->lock)
{
	if (cq->user)
		spin_unlock_bh(&cq->lock);
	else
		spin_unlock_irqrestore(&cq->lock, flags);
}

/* A lock class for each kind: lockdep does not know of cq->user. */
static void cq_lock_init(struct weft_cq *cq)
{
	if (cq->user)
		spin_lock_init(&cq->lock);
	else
		spin_lock_init(&cq->lock);
}

/* ---- completing ---- */

/* Calls of a handler in a hard interrupt, or wherever its completion occurred. */
#define CALLS	8

/*
 * comp_handler runs without our lock, and never twice at once for a CQ: if a call is running, it
 * is made to repeat. (It may poll, arm and post, and so re-enter this function.) While another CPU
 * goes on completing, this could take for ever: softirq on this CPU continues.
 */
static void cq_call(void *arg)
{
	struct weft_cq *cq = arg;
	int due, i;

	for (i = 0; i < CALLS; i++) {
		due = atomic_read(&cq->wakes);
		cq->ibcq.comp_handler(&cq->ibcq, cq->ibcq.cq_context);
		if (!atomic_sub_return(due, &cq->wakes))
			return;
	}
	weft_bh_work_queue(&cq->more_calls);
}

static void cq_call_on(struct weft_bh_work *work)
{
	struct weft_cq *cq = weft_bh_work_owner(cq, work, more_calls);

	cq_call(cq);
}

/*
 * A kernel consumer works on the CPU where its handler is called, and chose the vector for that. A
 * user's handler wakes a thread, which may run anywhere. On PREEMPT_RT a handler may sleep for its
 * locks, so do not call it in hard interrupts.
 */
static bool is_called_here(const struct weft_cq *cq)
{
	return cq->user || IS_ENABLED(CONFIG_PREEMPT_RT) || cq->cpu == raw_smp_processor_id();
}

static void cq_wake(struct weft_cq *cq)
{
	if (atomic_fetch_inc(&cq->wakes))
		return;
	if (is_called_here(cq) || smp_call_function_single_async(cq->cpu, &cq->csd))
		cq_call(cq);
}

static void cq_overflowed(struct weft_cq *cq)
{
	struct ib_event ev = {
		.device = cq->ibcq.device,
		.element.cq = &cq->ibcq,
		.event = IB_EVENT_CQ_ERR,
	};

	if (cq->ibcq.event_handler)
		cq->ibcq.event_handler(&ev, cq->ibcq.cq_context);
	/*
	 * The QPs' locks cannot be taken here: one of them is held. And the scan of all QPs must
	 * not delay connecting or reclaim.
	 */
	queue_work(weft_scan_wq, &cq->overflow);
}

void weft_cq_complete(struct weft_cq *cq, struct weft_qp *qp, const struct weft_cqe *cqe)
{
	struct weft_cqe e = *cqe;
	enum weft_cq_push pushed;
	unsigned long flags;

	if (!cq->user)
		cqe_set_qp(&e, qp);
	flags = cq_lock(cq);
	/* Under the lock, so that completions are in the order of time. */
	if (cq->stamps) {
		e.timestamp = ktime_get_ns();
		e.flags |= WEFT_CQE_TIMESTAMP;
	}
	pushed = weft_cqc_push(&cq->core, &e);
	cq_unlock(cq, flags);
	if (pushed == WEFT_CQ_WAKE)
		cq_wake(cq);
	else if (pushed == WEFT_CQ_OVERFLOW)
		cq_overflowed(cq);
}

/* ---- lingering ---- */

static void cq_set_lingerer(struct weft_cq *cq, struct weft_qp *qp)
{
	cq->lingerer = qp;
	weft_cqc_say_poll(&cq->core, qp);
}

bool weft_cq_linger(struct weft_cq *cq, struct weft_qp *qp)
{
	unsigned long flags;
	bool ok;

	flags = cq_lock(cq);
	ok = qp->may_linger && !cq->lingerer &&
	     READ_ONCE(cq->core.q.ring->arm) == WEFT_ARM_NONE;
	if (ok)
		cq_set_lingerer(cq, qp);
	cq_unlock(cq, flags);
	return ok;
}

void weft_cq_linger_over(struct weft_cq *cq, struct weft_qp *qp)
{
	unsigned long flags;

	flags = cq_lock(cq);
	if (cq->lingerer == qp)
		cq_set_lingerer(cq, NULL);
	cq_unlock(cq, flags);
}

struct weft_qp *weft_cq_lingerer(struct weft_cq *cq)
{
	unsigned long flags = cq_lock(cq);
	struct weft_qp *qp = cq->lingerer;

	/* Its connection holds it. */
	if (qp)
		weft_qp_hold(qp);
	cq_unlock(cq, flags);
	return qp;
}

/* ---- kernel consumers ---- */

static const enum ib_wc_status wc_status[] = {
	[WEFT_WC_SUCCESS]		= IB_WC_SUCCESS,
	[WEFT_WC_LOC_LEN_ERR]		= IB_WC_LOC_LEN_ERR,
	[WEFT_WC_LOC_QP_OP_ERR]		= IB_WC_LOC_QP_OP_ERR,
	[WEFT_WC_LOC_PROT_ERR]		= IB_WC_LOC_PROT_ERR,
	[WEFT_WC_FLUSH_ERR]		= IB_WC_WR_FLUSH_ERR,
	[WEFT_WC_MW_BIND_ERR]		= IB_WC_MW_BIND_ERR,
	[WEFT_WC_GENERAL_ERR]		= IB_WC_GENERAL_ERR,
	[WEFT_WC_REM_INV_REQ_ERR]	= IB_WC_REM_INV_REQ_ERR,
	[WEFT_WC_REM_ACCESS_ERR]	= IB_WC_REM_ACCESS_ERR,
	[WEFT_WC_REM_OP_ERR]		= IB_WC_REM_OP_ERR,
	[WEFT_WC_RETRY_EXC_ERR]		= IB_WC_RETRY_EXC_ERR,
	[WEFT_WC_RNR_RETRY_EXC_ERR]	= IB_WC_RNR_RETRY_EXC_ERR,
	[WEFT_WC_BAD_RESP_ERR]		= IB_WC_BAD_RESP_ERR,
	[WEFT_WC_FATAL_ERR]		= IB_WC_FATAL_ERR,
};
static_assert(ARRAY_SIZE(wc_status) == WEFT_WC_NR);

static const enum ib_wc_opcode wc_opcode[] = {
	[WEFT_WCO_WRITE]	= IB_WC_RDMA_WRITE,
	[WEFT_WCO_SEND]		= IB_WC_SEND,
	[WEFT_WCO_READ]		= IB_WC_RDMA_READ,
	[WEFT_WCO_LOCAL_INV]	= IB_WC_LOCAL_INV,
	[WEFT_WCO_REG_MR]	= IB_WC_REG_MR,
	[WEFT_WCO_BIND_MW]	= IB_WC_REG_MR,	/* kernel consumers have no windows */
	[WEFT_WCO_CMP_SWAP]	= IB_WC_COMP_SWAP,
	[WEFT_WCO_FETCH_ADD]	= IB_WC_FETCH_ADD,
	[WEFT_WCO_RECV]		= IB_WC_RECV,
	[WEFT_WCO_RECV_IMM]	= IB_WC_RECV_RDMA_WITH_IMM,
};
static_assert(ARRAY_SIZE(wc_opcode) == WEFT_WCO_NR);

static void cqe_to_wc(const struct weft_cqe *e, struct ib_wc *wc)
{
	memset(wc, 0, sizeof(*wc));
	wc->wr_id = e->wr_id;
	wc->status = e->status < WEFT_WC_NR ? wc_status[e->status] : IB_WC_GENERAL_ERR;
	wc->opcode = e->opcode < WEFT_WCO_NR ? wc_opcode[e->opcode] : IB_WC_SEND;
	wc->byte_len = e->byte_len;
	wc->qp = &cqe_qp(e)->ibqp;
	wc->vendor_err = e->vendor_err;
	wc->port_num = WEFT_PORT;
	if (e->flags & WEFT_CQE_INV) {
		wc->wc_flags |= IB_WC_WITH_INVALIDATE;
		wc->ex.invalidate_rkey = e->inv_stag;
	} else if (e->flags & WEFT_CQE_IMM) {
		wc->wc_flags |= IB_WC_WITH_IMM;
		wc->ex.imm_data = cpu_to_be32((u32)e->imm);
	}
}

int weft_poll_cq(struct ib_cq *ibcq, int n, struct ib_wc *wc)
{
	struct weft_cq *cq = to_weft_cq(ibcq);
	struct weft_cqe e;
	unsigned long flags;
	int got;

	/* A user may write anything into its ring: follow no pointer there. */
	if (cq->user)
		return -EOPNOTSUPP;
	flags = cq_lock(cq);
	for (got = 0; got < n && weft_cqc_poll(&cq->core, &e); got++)
		cqe_to_wc(&e, &wc[got]);
	cq_unlock(cq, flags);
	return got;
}

int weft_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags)
{
	struct weft_cq *cq = to_weft_cq(ibcq);
	bool solicited = (flags & IB_CQ_SOLICITED_MASK) == IB_CQ_SOLICITED;
	unsigned long irq;
	bool missed;

	irq = cq_lock(cq);
	missed = weft_cqc_arm(&cq->core, solicited ? WEFT_ARM_SOLICITED : WEFT_ARM_NEXT);
	cq_unlock(cq, irq);
	return missed && flags & IB_CQ_REPORT_MISSED_EVENTS;
}

static bool cqe_is_of(const struct weft_cqe *e, const void *qp)
{
	return cqe_qp(e) == qp;
}

void weft_cq_purge(struct weft_cq *cq, struct weft_qp *qp)
{
	unsigned long flags;

	if (cq->user)
		return;
	flags = cq_lock(cq);
	weft_cqc_purge(&cq->core, cqe_is_of, qp);
	cq_unlock(cq, flags);
}

/* ---- for cq_verbs.c ---- */

void weft_cq_init(struct weft_cq *cq, u32 entries)
{
	cq_lock_init(cq);
	mutex_init(&cq->resize);
	INIT_CSD(&cq->csd, cq_call, cq);
	weft_bh_work_init(&cq->more_calls, cq_call_on);
	weft_cqc_init(&cq->core, cq->ring->mem, entries);
	cq->ibcq.cqe = entries;
}

int weft_cq_replace_ring(struct weft_cq *cq, struct weft_ring_mem **ring, u32 entries)
{
	struct weft_ring_move move = { .mem = (*ring)->mem, .slots = entries };
	unsigned long flags;
	int rv;

	mutex_lock(&cq->resize);
	do {
		weft_ring_move_copy(&move);
		cond_resched();
		flags = cq_lock(cq);
		rv = weft_cqc_move(&cq->core, &move);
		if (!rv) {
			swap(cq->ring, *ring);
			cq->ibcq.cqe = entries;
		}
		cq_unlock(cq, flags);
	} while (rv == -EAGAIN);
	mutex_unlock(&cq->resize);
	return rv;
}
