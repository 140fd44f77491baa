// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Completion queues: creation, resizing, the end, and what an overflow costs. */
#include <linux/delay.h>

#include "core/shape.h"
#include "inject.h"
#include "verbs.h"

/*
 * An entry of the CQ was lost, so its QPs are unusable. Does not wait for any of their locks:
 * other CQs are waiting.
 */
static void move_qps_to_error(struct work_struct *work)
{
	struct weft_cq *cq = container_of(work, struct weft_cq, overflow);
	struct weft_device *dev = to_weft_dev(cq->ibcq.device);
	unsigned long qpn = 0;
	struct weft_qp *qp;

	while ((qp = weft_qp_after(dev, &qpn))) {
		if (weft_qpc_uses_cq(&qp->core, &cq->core))
			weft_conn_error_later(qp);
		weft_qp_drop(qp);
		cond_resched();
	}
}

/* One vector for each possible CPU. */
static unsigned int vector_cpu(u32 vector)
{
	unsigned int cpu;

	for_each_possible_cpu(cpu)
		if (!vector--)
			break;
	return cpu;
}

static int cq_respond(const struct weft_cq *cq, u32 entries, struct ib_udata *udata)
{
	struct weft_create_cq_resp resp = { .cq_id = cq->id };

	if (udata->outlen < sizeof(resp))
		return -EINVAL;
	weft_ring_mem_describe(cq->ring, entries, 1, &resp.cq);
	return ib_copy_to_udata(udata, &resp, sizeof(resp));
}

static int resize_respond(const struct weft_ring_mem *ring, u32 entries, struct ib_udata *udata)
{
	struct weft_resize_cq_resp resp = {};

	if (udata->outlen < sizeof(resp))
		return -EINVAL;
	weft_ring_mem_describe(ring, entries, 1, &resp.cq);
	return ib_copy_to_udata(udata, &resp, sizeof(resp));
}

/* Users' CQs; the response reaches the user before the new ring is in use. */
int weft_resize_cq(struct ib_cq *ibcq, unsigned int cqe, struct ib_udata *udata)
{
	struct weft_cq *cq = to_weft_cq(ibcq);
	struct weft_ring_mem *ring;
	u32 entries;
	int rv;

	if (!weft_udata_has(udata, WEFT_FEATURE_RESIZE))
		return -EOPNOTSUPP;
	rv = weft_shape_cq(cqe, &entries) ?: weft_udata_check_unknown(udata);
	if (rv)
		return rv;
	ring = weft_ring_mem_alloc(udata, entries);
	if (!ring)
		return -ENOMEM;
	rv = resize_respond(ring, entries, udata) ?: weft_cq_replace_ring(cq, &ring, entries);
	weft_ring_mem_free(ring);
	return rv;
}

int weft_resize_cq_int(struct ib_cq *ibcq, int cqe, struct ib_udata *udata)
{
	return weft_resize_cq(ibcq, cqe, udata);
}

/* Allocates the ring and, for a user, writes the response that describes it. */
static weft_injectable int cq_set_up(struct weft_cq *cq, u32 entries, struct ib_udata *udata)
{
	int rv;

	cq->ring = weft_ring_mem_alloc(udata, entries);
	if (!cq->ring)
		return -ENOMEM;
	cq->user = udata;
	INIT_WORK(&cq->overflow, move_qps_to_error);
	weft_cq_init(cq, entries);
	rv = udata ? cq_respond(cq, entries, udata) : 0;
	if (rv)
		weft_ring_mem_free(cq->ring);
	return rv;
}
ALLOW_ERROR_INJECTION(cq_set_up, ERRNO);

int weft_create_cq_udata(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
			 struct ib_udata *udata)
{
	struct weft_device *dev = to_weft_dev(ibcq->device);
	struct weft_cq *cq = to_weft_cq(ibcq);
	u32 entries;
	int rv;

	if (attr->flags & ~IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION ||
	    (attr->flags && !weft_udata_has(udata, WEFT_FEATURE_TIMESTAMP)))
		return -EOPNOTSUPP;
	if (weft_shape_cq(attr->cqe, &entries) || weft_udata_check_unknown(udata) ||
	    attr->comp_vector >= ibcq->device->num_comp_vectors)
		return -EINVAL;
	rv = ida_alloc_range(&dev->cq_ids, 1, WEFT_MAX_CQ, GFP_KERNEL);
	if (rv < 0)
		return -ENOMEM;
	cq->id = rv;
	cq->stamps = attr->flags & IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION;
	cq->cpu = vector_cpu(attr->comp_vector);
	rv = cq_set_up(cq, entries, udata);
	if (rv) {
		ida_free(&dev->cq_ids, cq->id);
		return rv;
	}
	atomic_inc(&dev->num_cq);
	return 0;
}

int weft_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		   struct uverbs_attr_bundle *attrs)
{
	return weft_create_cq_udata(ibcq, attr, attrs ? &attrs->driver_udata : NULL);
}

/* Its QPs are gone, and so are all calls of its handler, except one on another CPU. */
int weft_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	struct weft_device *dev = to_weft_dev(ibcq->device);
	struct weft_cq *cq = to_weft_cq(ibcq);

	/* We may have preempted it there. */
	while (atomic_read(&cq->wakes))
		usleep_range(20, 100);
	weft_bh_work_retire(&cq->more_calls);
	cancel_work_sync(&cq->overflow);
	weft_ring_mem_free(cq->ring);
	mutex_destroy(&cq->resize);
	ida_free(&dev->cq_ids, cq->id);
	atomic_dec(&dev->num_cq);
	return 0;
}
