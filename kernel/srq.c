// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Shared receive queues. An entry belongs to no QP until one takes it, which then
 * completes or flushes it.
 */
#include "verbs.h"

static void srq_event(struct weft_srq *srq, enum ib_event_type type)
{
	struct ib_event ev = {
		.device = srq->ibsrq.device,
		.element.srq = &srq->ibsrq,
		.event = type,
	};

	if (srq->ibsrq.event_handler)
		srq->ibsrq.event_handler(&ev, srq->ibsrq.srq_context);
}

static struct weft_qp *hold(struct weft_qpc *core)
{
	struct weft_qp *qp = core ? container_of(core, struct weft_qp, core) : NULL;

	if (qp)
		weft_qp_hold(qp);
	return qp;
}

/* It waits, so it has a connection, which reads on. Consumes the hold. */
static void give_turn(struct weft_qp *qp)
{
	if (!qp)
		return;
	weft_conn_kick_any(qp);
	weft_qp_drop(qp);
}

int weft_srq_pop(struct weft_qp *qp, bool wait, struct weft_recv *recv)
{
	struct weft_srq *srq = qp->srq;
	struct weft_srq_news news;
	struct weft_qp *turn;
	unsigned long flags;
	int got;

	spin_lock_irqsave(&srq->lock, flags);
	got = weft_srqc_take(&srq->core, &qp->core, wait, recv, &news);
	turn = hold(news.turn);
	spin_unlock_irqrestore(&srq->lock, flags);
	give_turn(turn);
	if (news.low)
		srq_event(srq, IB_EVENT_SRQ_LIMIT_REACHED);
	return got;
}

void weft_srq_leave(struct weft_qp *qp)
{
	struct weft_srq *srq = qp->srq;
	struct weft_srq_news news;
	struct weft_qp *turn;
	unsigned long flags;

	spin_lock_irqsave(&srq->lock, flags);
	weft_srqc_leave(&srq->core, &qp->core, &news);
	turn = hold(news.turn);
	spin_unlock_irqrestore(&srq->lock, flags);
	give_turn(turn);
}

void weft_srq_kick(struct weft_srq *srq)
{
	struct weft_qp *turn;
	unsigned long flags;

	spin_lock_irqsave(&srq->lock, flags);
	turn = hold(weft_srqc_turn(&srq->core));
	spin_unlock_irqrestore(&srq->lock, flags);
	give_turn(turn);
}

static int srq_respond(const struct weft_srq *srq, struct ib_udata *udata)
{
	struct weft_create_srq_resp resp = { .srq_id = srq->id };

	if (udata->outlen < sizeof(resp))
		return -EINVAL;
	weft_ring_mem_describe(srq->ring, srq->core.rq.q.slots, srq->core.rq.stride, &resp.srq);
	return ib_copy_to_udata(udata, &resp, sizeof(resp));
}

static int srq_set_up(struct weft_srq *srq, u32 slots, u32 max_sge, struct ib_udata *udata)
{
	int rv;

	srq->user = udata;
	srq->ring = weft_ring_mem_alloc(udata, slots);
	if (!srq->ring)
		return -ENOMEM;
	weft_srqc_init(&srq->core, srq->ring->mem, slots, max_sge);
	rv = udata ? srq_respond(srq, udata) : 0;
	if (rv)
		weft_ring_mem_free(srq->ring);
	return rv;
}

int weft_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init, struct ib_udata *udata)
{
	struct weft_device *dev = to_weft_dev(ibsrq->device);
	struct weft_srq *srq = to_weft_srq(ibsrq);
	struct weft_rq_caps caps = { init->attr.max_wr, init->attr.max_sge };
	struct weft_rq_shape shape;
	int rv;

	if (init->srq_type != IB_SRQT_BASIC)
		return -EOPNOTSUPP;
	/* The limit is armed by modify_srq alone. */
	rv = weft_shape_srq(&caps, &shape) ?: weft_udata_check_unknown(udata);
	if (rv)
		return rv;
	rv = ida_alloc_range(&dev->srq_ids, 1, WEFT_MAX_SRQ, GFP_KERNEL);
	if (rv < 0)
		return -ENOMEM;
	srq->id = rv;
	spin_lock_init(&srq->lock);
	spin_lock_init(&srq->post_lock);
	mutex_init(&srq->resize);
	rv = srq_set_up(srq, shape.slots, caps.sge, udata);
	if (rv) {
		ida_free(&dev->srq_ids, srq->id);
		return rv;
	}
	init->attr.max_wr = caps.wr;
	init->attr.max_sge = caps.sge;
	atomic_inc(&dev->num_srq);
	return 0;
}

/* Swaps *@ring and the SRQ's ring. */
static int srq_replace(struct weft_srq *srq, struct weft_ring_mem **ring, u32 slots)
{
	struct weft_ring_move move = { .mem = (*ring)->mem, .slots = slots };
	unsigned long flags;
	int rv;

	mutex_lock(&srq->resize);
	do {
		weft_ring_move_copy(&move);
		cond_resched();
		spin_lock_irqsave(&srq->post_lock, flags);
		spin_lock(&srq->lock);
		rv = weft_srqc_move(&srq->core, &move);
		if (!rv)
			swap(srq->ring, *ring);
		spin_unlock(&srq->lock);
		spin_unlock_irqrestore(&srq->post_lock, flags);
	} while (rv == -EAGAIN);
	mutex_unlock(&srq->resize);
	return rv;
}

/* The response in @attrs reaches the user before the new ring is in use. */
static int srq_resize(struct weft_srq *srq, u32 max_wr, struct uverbs_attr_bundle *attrs)
{
	struct weft_rq_shape shape = { .stride = srq->core.rq.stride };
	struct weft_modify_srq_resp resp = {};
	struct weft_ring_mem *ring;
	int rv = weft_shape_srq_anew(max_wr, &shape);

	if (rv)
		return rv;
	ring = weft_ring_mem_alloc(attrs ? &attrs->driver_udata : NULL, shape.slots);
	if (!ring)
		return -ENOMEM;
	if (attrs) {
		weft_ring_mem_describe(ring, shape.slots, shape.stride, &resp.srq);
		rv = uverbs_copy_to(attrs, WEFT_ATTR_SRQ_RESIZE_RESP, &resp, sizeof(resp));
	}
	rv = rv ?: srq_replace(srq, &ring, shape.slots);
	weft_ring_mem_free(ring);
	return rv;
}

int weft_resize_user_srq(struct ib_srq *ibsrq, u32 max_wr, struct uverbs_attr_bundle *attrs)
{
	if (!weft_udata_has(&attrs->driver_udata, WEFT_FEATURE_RESIZE))
		return -EOPNOTSUPP;
	return srq_resize(to_weft_srq(ibsrq), max_wr, attrs);
}

static int srq_arm(struct weft_srq *srq, u32 limit)
{
	bool armed, low;
	unsigned long flags;

	spin_lock_irqsave(&srq->lock, flags);
	armed = weft_srqc_arm(&srq->core, limit, &low);
	spin_unlock_irqrestore(&srq->lock, flags);
	if (low)
		srq_event(srq, IB_EVENT_SRQ_LIMIT_REACHED);
	return armed ? 0 : -EINVAL;
}

int weft_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask,
		    struct ib_udata *udata)
{
	struct weft_srq *srq = to_weft_srq(ibsrq);
	int rv = 0;

	/* A user's: WEFT_METHOD_SRQ_RESIZE. */
	if (mask & IB_SRQ_MAX_WR)
		rv = srq->user ? -EOPNOTSUPP : srq_resize(srq, attr->max_wr, NULL);
	if (!rv && mask & IB_SRQ_LIMIT)
		rv = srq_arm(srq, attr->srq_limit);
	return rv;
}

int weft_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr)
{
	struct weft_srq *srq = to_weft_srq(ibsrq);

	attr->max_wr = weft_srqc_size(&srq->core);
	attr->max_sge = srq->core.rq.max_sge;
	attr->srq_limit = READ_ONCE(srq->core.limit);
	return 0;
}

/* Its QPs are gone. */
int weft_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata)
{
	struct weft_device *dev = to_weft_dev(ibsrq->device);
	struct weft_srq *srq = to_weft_srq(ibsrq);

	weft_ring_mem_free(srq->ring);
	mutex_destroy(&srq->resize);
	ida_free(&dev->srq_ids, srq->id);
	atomic_dec(&dev->num_srq);
	return 0;
}
