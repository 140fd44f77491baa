// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* From a number to the object, held: QPs by number, regions by STag; and a region's memory. */
#include "verbs.h"

/* ---- QPs ---- */

/*
 * The table's lock, and not RCU, guards the way from a number to a reference: then
 * destroy_qp need not wait for a grace period. A QP in the table has a reference.
 */
struct weft_qp *weft_qp_find(struct weft_device *dev, u32 qpn)
{
	struct weft_qp *qp;
	unsigned long flags;

	xa_lock_irqsave(&dev->qps, flags);
	qp = xa_load(&dev->qps, qpn);
	if (qp)
		weft_qp_hold(qp);
	xa_unlock_irqrestore(&dev->qps, flags);
	return qp;
}

struct weft_qp *weft_qp_after(struct weft_device *dev, unsigned long *qpn)
{
	struct weft_qp *qp;

	xa_lock_irq(&dev->qps);
	qp = xa_find_after(&dev->qps, qpn, ULONG_MAX, XA_PRESENT);
	if (qp)
		weft_qp_hold(qp);
	xa_unlock_irq(&dev->qps);
	return qp;
}

void weft_qp_hold(struct weft_qp *qp)
{
	refcount_inc(&qp->refs);
}

void weft_qp_drop(struct weft_qp *qp)
{
	if (refcount_dec_and_test(&qp->refs))
		complete(&qp->freed);
}

/* ---- regions ---- */

struct weft_mr *weft_mr_find(struct weft_device *dev, u32 stag)
{
	struct weft_mr *mr;

	rcu_read_lock();
	mr = xa_load(&dev->mrs, stag >> WEFT_STAG_KEY_BITS);
	if (mr && !refcount_inc_not_zero(&mr->holders))
		mr = NULL;
	/* Held, then looked at: core/host.h. */
	smp_mb__after_atomic();
	rcu_read_unlock();
	return mr;
}

void weft_mr_drop(struct weft_mr *mr)
{
	if (refcount_dec_and_test(&mr->holders))
		complete(&mr->released);
}

void *weft_mr_piece(struct weft_region *r, u64 addr, u32 len, u32 *got)
{
	const struct weft_pages *pages = &container_of(r, struct weft_mr, region)->pages;
	size_t block;
	u64 off;

	/* By the kernel's address: the region of a PD (no weft_mr, STag 0), or of get_dma_mr. */
	if (!r->stag || (!pages->blocks && r->kind == WEFT_REGION_USER)) {
		*got = len;
		return ib_virt_dma_to_ptr(addr);
	}
	off = addr - r->base + pages->first_off;
	block = (size_t)1 << pages->shift;
	*got = min_t(u64, len, block - (off & (block - 1)));
	return pages->blocks[off >> pages->shift] + (off & (block - 1));
}
