// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What the queue logic asks of its host (core/host.h), as far as it is memory
 * and completions; conn.c has what belongs to the connection. All are called
 * under the connection's socket lock.
 */
#include "verbs.h"

static struct weft_qp *qp_of(struct weft_qpc *core)
{
	return container_of(core, struct weft_qp, core);
}

/* ---- regions ---- */

static bool is_local_dma(const struct weft_region *r)
{
	/* STag 0 is given to no region of the table. */
	return !r->stag;
}

/*
 * Most FPDUs of a run use the same region: the QP holds the one it found last until
 * the run is over, and its further uses are counted here and not in the region. Once
 * dereg has begun the region is not valid, so nobody new finds it by way of the hold.
 */
static bool is_held(const struct weft_held *held, u32 stag)
{
	return held->mr && held->mr->region.stag == stag && READ_ONCE(held->mr->region.valid);
}

void weft_qp_unhold(struct weft_qp *qp)
{
	struct weft_held *held = &qp->held;

	if (!held->mr)
		return;
	/* Each user that is left puts a reference of its own. */
	if (held->uses)
		refcount_add(held->uses, &held->mr->holders);
	weft_mr_drop(held->mr);
	*held = (struct weft_held) {};
}

struct weft_region *weft_host_region_get(struct weft_qpc *core, u32 stag)
{
	struct weft_qp *qp = qp_of(core);
	struct weft_held *held = &qp->held;
	struct weft_mr *mr;

	if (core->kernel && stag == qp->dev->ibdev.local_dma_lkey)
		return &to_weft_pd(qp->ibqp.pd)->dma;
	if (!is_held(held, stag)) {
		mr = weft_mr_find(qp->dev, stag);
		if (!mr)
			return NULL;
		weft_qp_unhold(qp);
		held->mr = mr;
	}
	held->uses++;
	return &held->mr->region;
}

void weft_host_region_put(struct weft_qpc *core, struct weft_region *r)
{
	struct weft_held *held = &qp_of(core)->held;
	struct weft_mr *mr;

	if (is_local_dma(r))
		return;
	mr = container_of(r, struct weft_mr, region);
	if (mr == held->mr && held->uses)
		held->uses--;
	else
		weft_mr_drop(mr);
}

void weft_host_place(struct weft_region *r, u64 addr, struct weft_cur *from, u32 len)
{
	while (len) {
		u32 n;
		void *p = weft_mr_piece(r, addr, len, &n);

		weft_cur_copy(from, p, n);
		flush_dcache_page(is_vmalloc_addr(p) ? vmalloc_to_page(p) : virt_to_page(p));
		addr += n;
		len -= n;
	}
}

/* May @qp take @mr out of use under the name @stag? */
static enum weft_denial may_invalidate(const struct weft_qpc *qp, const struct weft_mr *mr,
				       u32 stag)
{
	const struct weft_region *r = &mr->region;

	if (!smp_load_acquire(&r->valid) || r->stag != stag)
		return WEFT_DENIED_STAG;
	if (r->pd != qp->pd || (r->qp && r->qp != qp->id))
		return WEFT_DENIED_ASSOC;
	/* A user's registration ends by dereg_mr alone. */
	return r->kind == WEFT_REGION_FAST ? WEFT_GRANTED : WEFT_DENIED_ACCESS;
}

/*
 * A fast-registered region belongs to the QP that registered it, so every use
 * of it runs under the lock that we are called with, and nothing is received while
 * TCP copies from it (tx.sending): none is under way.
 */
enum weft_denial weft_host_invalidate(struct weft_qpc *core, u32 stag, bool remote)
{
	struct weft_mr *mr = weft_mr_find(qp_of(core)->dev, stag);
	enum weft_denial d;

	if (!mr)
		return WEFT_DENIED_STAG;
	d = may_invalidate(core, mr, stag);
	if (d == WEFT_GRANTED)
		WRITE_ONCE(mr->region.valid, false);
	weft_mr_drop(mr);
	return d;
}

static enum weft_denial reg_mr_locked(struct weft_qpc *qp, struct weft_mr *mr,
				      const struct weft_wr_reg *reg)
{
	struct weft_region *r = &mr->region;

	if (r->kind != WEFT_REGION_FAST || r->valid)
		return WEFT_DENIED_STAG;
	if (r->pd != qp->pd)
		return WEFT_DENIED_ASSOC;
	/* Not mapped anew: the memory that it had. */
	if (mr->mapped.nblocks) {
		swap(mr->pages, mr->mapped);
		mr->mapped.nblocks = 0;
	}
	if (!mr->pages.nblocks)
		return WEFT_DENIED_BOUNDS;
	r->stag = reg->stag;
	r->qp = qp->id;
	r->access = reg->access;
	r->base = mr->ibmr.iova;
	r->len = mr->ibmr.length;
	/* Pairs with the acquire of a lookup by another QP, which is refused by r->qp. */
	smp_store_release(&r->valid, true);
	return WEFT_GRANTED;
}

enum weft_denial weft_host_reg_mr(struct weft_qpc *core, const struct weft_wr_reg *reg)
{
	struct weft_mr *mr = weft_mr_find(qp_of(core)->dev, reg->stag);
	enum weft_denial d;

	if (!mr)
		return WEFT_DENIED_STAG;
	d = reg_mr_locked(core, mr, reg);
	weft_mr_drop(mr);
	return d;
}

/* ---- receive entries and completions ---- */

bool weft_host_srq_pop(struct weft_qpc *core, struct weft_recv *recv)
{
	return weft_srq_pop(qp_of(core)->srq, recv);
}

void weft_host_complete(struct weft_qpc *core, bool recv, const struct weft_cqe *cqe)
{
	struct weft_qp *qp = qp_of(core);

	weft_cq_complete(recv ? qp->rcq : qp->scq, qp, cqe);
}
