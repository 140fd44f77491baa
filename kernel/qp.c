// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Queue pairs: life, states, attributes. What flows through them is core/'s. */
#include <linux/random.h>
#include <linux/vmalloc.h>

#include "inject.h"
#include "verbs.h"

#define QPN_MAX 0xffffff
/* A random number is then seldom taken. */
static_assert(WEFT_MAX_QP * 8 <= QPN_MAX);

/*
 * iw_cm calls iw_add_ref() for each QP that it gets here, but not at once: so the
 * reference is taken here, and there is nothing to add. Runs in the context of the
 * call that connects or accepts, with interrupts off.
 */
struct ib_qp *weft_iw_get_qp(struct ib_device *ibdev, int qpn)
{
	struct weft_qp *qp = weft_qp_find_callers(to_weft_dev(ibdev), qpn);

	return qp ? &qp->ibqp : NULL;
}

void weft_iw_add_ref(struct ib_qp *ibqp)
{
}

void weft_iw_rem_ref(struct ib_qp *ibqp)
{
	weft_qp_drop(to_weft_qp(ibqp));
}

/* ---- size of the queues ---- */

struct qp_shape {
	struct weft_sq_shape sq;
	struct weft_rq_shape rq;
};

/* Rounds @cap up to what the rings hold. */
static int shape_queues(struct ib_qp_cap *cap, bool has_srq, struct qp_shape *s)
{
	struct weft_sq_caps sq = { cap->max_send_wr, cap->max_send_sge, cap->max_inline_data };
	struct weft_rq_caps rq = {};
	int rv;

	if (!has_srq)
		rq = (struct weft_rq_caps) { cap->max_recv_wr, cap->max_recv_sge };
	rv = weft_shape_sq(&sq, &s->sq) ?: weft_shape_rq(&rq, &s->rq);
	if (rv)
		return rv;
	cap->max_send_wr = sq.wr;
	cap->max_send_sge = sq.sge;
	cap->max_inline_data = sq.inline_data;
	cap->max_recv_wr = rq.wr;
	cap->max_recv_sge = rq.sge;
	return 0;
}

/* ---- memory ---- */

static void qp_free_queues(struct weft_qp *qp)
{
	weft_ring_mem_free(qp->sq_ring);
	weft_ring_mem_free(qp->rq_ring);
	kvfree(qp->core.sq.copy);
	kvfree(qp->core.sq.info);
}

static weft_injectable int qp_alloc_queues(struct weft_qp *qp, const struct qp_shape *s,
					   struct ib_udata *udata)
{
	const gfp_t gfp = GFP_KERNEL_ACCOUNT | __GFP_NOWARN;
	struct weft_sqq *sq = &qp->core.sq;

	qp->sq_ring = weft_ring_mem_alloc(udata, s->sq.slots);
	if (s->rq.slots)
		qp->rq_ring = weft_ring_mem_alloc(udata, s->rq.slots);
	sq->copy = kvzalloc(weft_sq_copy_size(s->sq.slots, s->sq.wqe_slots), gfp);
	sq->info = kvcalloc(s->sq.slots, sizeof(*sq->info), gfp);
	if (qp->sq_ring && (qp->rq_ring || !s->rq.slots) && sq->copy && sq->info)
		return 0;
	qp_free_queues(qp);
	return -ENOMEM;
}
ALLOW_ERROR_INJECTION(qp_alloc_queues, ERRNO);

static void qp_init_core(struct weft_qp *qp, const struct qp_shape *s, bool sig_all)
{
	struct weft_qpc *c = &qp->core;

	c->id = qp->ibqp.qp_num;
	c->pd = to_weft_pd(qp->ibqp.pd)->id;
	c->recv_pd = qp->srq ? to_weft_pd(qp->srq->ibsrq.pd)->id : c->pd;
	c->kernel = !qp->sq_ring->user;
	c->dma = c->kernel ? &to_weft_pd(qp->ibqp.pd)->dma : NULL;
	c->srq = qp->srq;
	c->sig_all = sig_all;
	c->scq = &qp->scq->core;
	c->rcq = &qp->rcq->core;
	weft_ringq_init(&c->sq.q, qp->sq_ring->mem, s->sq.slots);
	c->sq.max_slots = s->sq.wqe_slots;
	weft_rqq_init(&c->rq, qp->rq_ring ? qp->rq_ring->mem : NULL, s->rq.slots,
		      qp->cap.max_recv_sge);
	weft_qpc_init(c);
}

static int qp_respond(const struct weft_qp *qp, const struct qp_shape *s, struct ib_udata *udata)
{
	struct weft_create_qp_resp resp = { .qp_id = qp->ibqp.qp_num };

	if (udata->outlen < sizeof(resp))
		return -EINVAL;
	weft_ring_mem_describe(qp->sq_ring, s->sq.slots, s->sq.wqe_slots, &resp.sq);
	weft_ring_mem_describe(qp->rq_ring, s->rq.slots, s->rq.stride, &resp.rq);
	return ib_copy_to_udata(udata, &resp, sizeof(resp));
}

/* ---- create ---- */

static int check_init_attr(const struct ib_qp_init_attr *attr)
{
	if (attr->qp_type != IB_QPT_RC || attr->create_flags)
		return -EOPNOTSUPP;
	return attr->send_cq && attr->recv_cq ? 0 : -EINVAL;
}

static void qp_init(struct weft_qp *qp, struct weft_device *dev,
		    const struct ib_qp_init_attr *attr)
{
	qp->dev = dev;
	qp->scq = to_weft_cq(attr->send_cq);
	qp->rcq = to_weft_cq(attr->recv_cq);
	qp->srq = attr->srq ? to_weft_srq(attr->srq) : NULL;
	qp->cap = attr->cap;
	mutex_init(&qp->state_lock);
	spin_lock_init(&qp->post_lock);
	refcount_set(&qp->refs, 1);
	init_completion(&qp->freed);
	weft_conn_qp_init(qp);
	weft_qp_events_init(qp);
	weft_qp_own(qp);
}

/* Everything but the number: it is taken before and published behind this. */
static int qp_set_up(struct weft_qp *qp, const struct qp_shape *s, bool sig_all,
		     struct ib_udata *udata)
{
	int rv = qp_alloc_queues(qp, s, udata);

	if (rv)
		return rv;
	qp_init_core(qp, s, sig_all);
	qp->core.srq_tells = !udata || weft_udata_has(udata, WEFT_FEATURE_SRQ_KICK);
	qp->uc = rdma_udata_to_drv_context(udata, struct weft_ucontext, ibuc);
	qp->may_linger = weft_udata_has(udata, WEFT_FEATURE_LINGER);
	rv = udata ? qp_respond(qp, s, udata) : 0;
	if (rv)
		qp_free_queues(qp);
	return rv;
}

/* At random: who knows the number of one QP knows nothing of the next. */
static int qp_reserve_number(struct weft_qp *qp)
{
	int rv = -EBUSY;

	while (rv == -EBUSY) {
		qp->ibqp.qp_num = get_random_u32() & QPN_MAX;
		if (qp->ibqp.qp_num)
			rv = xa_insert_irq(&qp->dev->qps, qp->ibqp.qp_num, NULL, GFP_KERNEL);
	}
	return rv;
}

static int qp_number_and_set_up(struct weft_qp *qp, const struct qp_shape *s, bool sig_all,
				struct ib_udata *udata)
{
	struct weft_device *dev = qp->dev;
	int rv = qp_reserve_number(qp);

	if (rv)
		return rv;
	rv = qp_set_up(qp, s, sig_all, udata);
	if (rv) {
		xa_erase_irq(&dev->qps, qp->ibqp.qp_num);
		return rv;
	}
	/* The place is reserved: this needs no memory. */
	xa_store_irq(&dev->qps, qp->ibqp.qp_num, qp, GFP_KERNEL);
	return 0;
}

int weft_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *attr, struct ib_udata *udata)
{
	struct weft_device *dev = to_weft_dev(ibqp->device);
	struct qp_shape shape = {};
	int rv = check_init_attr(attr) ?: weft_udata_check_unknown(udata);

	rv = rv ?: shape_queues(&attr->cap, attr->srq, &shape);
	if (rv)
		return rv;
	rv = weft_account(&dev->num_qp, WEFT_MAX_QP);
	if (rv)
		return rv;
	qp_init(to_weft_qp(ibqp), dev, attr);
	rv = qp_number_and_set_up(to_weft_qp(ibqp), &shape,
				  attr->sq_sig_type == IB_SIGNAL_ALL_WR, udata);
	if (!rv)
		return 0;
	weft_qp_disown(to_weft_qp(ibqp));
	atomic_dec(&dev->num_qp);
	return rv;
}

/* ---- destroy ---- */

int weft_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct weft_qp *qp = to_weft_qp(ibqp);
	struct weft_device *dev = qp->dev;

	xa_erase_irq(&dev->qps, ibqp->qp_num);
	/* A connect or accept that found it before finds it taken. */
	mutex_lock(&qp->state_lock);
	qp->gone = true;
	mutex_unlock(&qp->state_lock);
	weft_cm_detach_qp(qp);
	weft_qp_drop(qp);
	wait_for_completion(&qp->freed);
	weft_conn_qp_exit(qp);
	weft_qp_events_exit(qp);
	weft_region_unbind_all(&qp->core);
	weft_cq_purge(qp->scq, qp);
	if (qp->rcq != qp->scq)
		weft_cq_purge(qp->rcq, qp);
	qp_free_queues(qp);
	weft_qp_disown(qp);
	/* Up to 6.12 `rdma res` may still come to query it: state_lock stays in order. */
	atomic_dec(&dev->num_qp);
	return 0;
}

/* ---- states ---- */

/* Back to the beginning, once the connection has gone: in error it may not have let go yet. */
static void qp_reset(struct weft_qp *qp)
{
	weft_cm_detach_qp(qp);
	memset(qp->sq_ring->mem, 0, qp->sq_ring->size);
	if (qp->rq_ring)
		memset(qp->rq_ring->mem, 0, qp->rq_ring->size);
	qp->sq_posted = qp->rq_posted = 0;
	weft_qpc_reset(&qp->core);
	weft_cq_purge(qp->scq, qp);
	weft_cq_purge(qp->rcq, qp);
}

static_assert((u32)WEFT_VS_RESET == IB_QPS_RESET);
static_assert((u32)WEFT_VS_INIT == IB_QPS_INIT);
static_assert((u32)WEFT_VS_RTR == IB_QPS_RTR);
static_assert((u32)WEFT_VS_RTS == IB_QPS_RTS);
static_assert((u32)WEFT_VS_SQD == IB_QPS_SQD);
static_assert((u32)WEFT_VS_ERR == IB_QPS_ERR);

static int qp_move(struct weft_qp *qp, enum ib_qp_state to)
{
	lockdep_assert_held(&qp->state_lock);
	switch (weft_qpc_move(&qp->core, to)) {
	case WEFT_QP_DONE:
		return 0;
	case WEFT_QP_RESET:
		qp_reset(qp);
		return 0;
	case WEFT_QP_CLOSE:
		return weft_conn_close_graceful(qp);
	case WEFT_QP_FAIL:
		return weft_conn_error(qp);
	case WEFT_QP_REFUSED:
		break;
	}
	return -EINVAL;
}

static void qp_note(struct weft_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	if (mask & IB_QP_ACCESS_FLAGS)
		qp->attr.qp_access_flags = attr->qp_access_flags;
	if (mask & IB_QP_MAX_QP_RD_ATOMIC)
		qp->attr.max_rd_atomic = min_t(u8, attr->max_rd_atomic, WEFT_MAX_ORD);
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC)
		qp->attr.max_dest_rd_atomic = min_t(u8, attr->max_dest_rd_atomic, WEFT_MAX_IRD);
}

int weft_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		   struct ib_udata *udata)
{
	struct weft_qp *qp = to_weft_qp(ibqp);
	unsigned int noio;
	int rv = 0;

	if (mask & ~IB_QP_ATTR_STANDARD_BITS)
		return -EOPNOTSUPP;
	/* Not iw_cm's. */
	if (udata)
		weft_users_record(qp->uc);
	noio = weft_lock_noio(&qp->state_lock);
	if (mask & IB_QP_STATE)
		rv = qp_move(qp, attr->qp_state);
	if (!rv)
		qp_note(qp, attr, mask);
	weft_unlock_noio(&qp->state_lock, noio);
	return rv;
}

int weft_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		  struct ib_qp_init_attr *init)
{
	struct weft_qp *qp = to_weft_qp(ibqp);
	struct net_device *nd = weft_dev_netdev(qp->dev);

	/* The core passes all of both on to the user, and has not cleared them. */
	memset(attr, 0, sizeof(*attr));
	memset(init, 0, sizeof(*init));
	mutex_lock(&qp->state_lock);
	attr->qp_state = attr->cur_qp_state =
		(enum ib_qp_state)weft_qpc_verbs_state(&qp->core);
	attr->qp_access_flags = qp->attr.qp_access_flags;
	attr->max_rd_atomic = qp->core.st ? qp->core.ord : qp->attr.max_rd_atomic;
	attr->max_dest_rd_atomic = qp->core.st ? qp->core.ird : qp->attr.max_dest_rd_atomic;
	mutex_unlock(&qp->state_lock);
	attr->path_mtu = nd ? ib_mtu_int_to_enum(READ_ONCE(nd->mtu)) : IB_MTU_256;
	dev_put(nd);
	attr->port_num = WEFT_PORT;
	attr->cap = qp->cap;
	init->qp_type = IB_QPT_RC;
	init->send_cq = ibqp->send_cq;
	init->recv_cq = ibqp->recv_cq;
	init->srq = ibqp->srq;
	init->sq_sig_type = qp->core.sig_all ? IB_SIGNAL_ALL_WR : IB_SIGNAL_REQ_WR;
	init->cap = qp->cap;
	return 0;
}
