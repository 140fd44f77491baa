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

struct weft_region *weft_host_region_find(struct weft_qpc *core, u32 stag)
{
	struct weft_mr *mr = weft_mr_find(qp_of(core)->dev, stag);

	return mr ? &mr->region : NULL;
}

static struct weft_mr *mr_of(struct weft_region *r)
{
	return container_of(r, struct weft_mr, region);
}

void weft_host_region_hold(struct weft_region *r, u32 n)
{
	refcount_add(n, &mr_of(r)->holders);
}

void weft_host_region_drop(struct weft_region *r)
{
	weft_mr_drop(mr_of(r));
}

bool weft_host_region_map(struct weft_region *r)
{
	struct weft_mr *mr = mr_of(r);

	/* Not mapped anew: the memory that it had. */
	if (mr->mapped.nblocks) {
		swap(mr->pages, mr->mapped);
		mr->mapped.nblocks = 0;
	}
	if (!mr->pages.nblocks)
		return false;
	r->base = mr->ibmr.iova;
	r->len = mr->ibmr.length;
	return true;
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
