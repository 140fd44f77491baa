// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory regions: the table of STags, and the memory behind them.
 *
 * A region is published when it is complete; dereg takes it out of use and of
 * the table first, then waits for its holders, then frees.
 */
#include <linux/random.h>
#include <linux/scatterlist.h>

#include "inject.h"
#include "verbs.h"

/* Large enough that a random STag is seldom taken: WEFT_STAG_TRIES. */
static_assert(WEFT_MAX_MR * 8 <= WEFT_STAG_INDEX_MAX);

static_assert((u32)WEFT_ACCESS_LOCAL_WRITE == IB_ACCESS_LOCAL_WRITE);
static_assert((u32)WEFT_ACCESS_REMOTE_WRITE == IB_ACCESS_REMOTE_WRITE);
static_assert((u32)WEFT_ACCESS_REMOTE_READ == IB_ACCESS_REMOTE_READ);
static_assert((u32)WEFT_ACCESS_REMOTE_ATOMIC == IB_ACCESS_REMOTE_ATOMIC);
static_assert((u32)WEFT_ACCESS_MW_BIND == IB_ACCESS_MW_BIND);
static_assert((u32)WEFT_ACCESS_ZERO_BASED == IB_ZERO_BASED);
static_assert((u32)WEFT_ACCESS_OPTIONAL == IB_ACCESS_OPTIONAL);

/* Any power of two from a page to 1 GB: offsets in a block fit 32 bits. */
#define BLOCK_SIZES (PAGE_MASK & (SZ_1G | (SZ_1G - 1)))

/* ---- the table ---- */

/* Gives @mr, complete but for this, its STag and lets others find it. */
static int mr_publish(struct weft_device *dev, struct weft_mr *mr)
{
	int try, rv = -ENOSPC;

	for (try = 0; try < WEFT_STAG_TRIES; try++) {
		u32 stag = weft_region_new_stag(mr->region.kind, get_random_u32());

		if (!stag)
			continue;
		mr->region.stag = mr->ibmr.lkey = mr->ibmr.rkey = stag;
		rv = xa_insert(&dev->mrs, stag >> WEFT_STAG_KEY_BITS, mr, GFP_KERNEL);
		if (rv != -EBUSY)
			break;
	}
	return rv;
}

static struct weft_mr *mr_new(struct ib_pd *ibpd, u8 kind, u32 access)
{
	struct weft_device *dev = to_weft_dev(ibpd->device);
	struct weft_mr *mr;

	if (weft_account(&dev->num_mr, WEFT_MAX_MR))
		return ERR_PTR(-ENOMEM);
	mr = kzalloc(sizeof(*mr), GFP_KERNEL_ACCOUNT);
	if (!mr) {
		atomic_dec(&dev->num_mr);
		return ERR_PTR(-ENOMEM);
	}
	mr->ibmr.device = ibpd->device;
	mr->region.pd = to_weft_pd(ibpd)->id;
	mr->region.kind = kind;
	mr->region.access = access & (WEFT_ACCESS_LOCAL_WRITE | WEFT_ACCESS_REMOTE |
				      WEFT_ACCESS_MW_BIND);
	refcount_set(&mr->holders, 1);
	init_completion(&mr->released);
	return mr;
}

/* @mr is not held, and no lookup finds it. */
static void mr_free(struct weft_mr *mr)
{
	atomic_dec(&to_weft_dev(mr->ibmr.device)->num_mr);
	kvfree(mr->pages.blocks);
	kvfree(mr->mapped.blocks);
	if (mr->umem)
		ib_umem_release(mr->umem);
	weft_dmabuf_put(&mr->dmabuf);
	/* A lookup may still be reading its reference count. */
	kfree_rcu(mr, rcu);
}

/* Publishes @mr or frees it. */
static struct ib_mr *mr_finish(struct weft_mr *mr)
{
	int rv = mr_publish(to_weft_dev(mr->ibmr.device), mr);

	if (!rv)
		return &mr->ibmr;
	mr_free(mr);
	return ERR_PTR(rv);
}

/* Takes @mr out of use and waits for its last holder. */
static void mr_withdraw(struct weft_mr *mr)
{
	struct weft_device *dev = to_weft_dev(mr->ibmr.device);

	/* From here on remaining holders refuse it: its STag may be given to another region. */
	weft_region_withdraw(&mr->region);
	xa_erase(&dev->mrs, mr->ibmr.lkey >> WEFT_STAG_KEY_BITS);
	weft_mr_drop(mr);
	if (try_wait_for_completion(&mr->released))
		return;
	weft_dev_count(dev, WEFT_CNT_REGION_WAITS, 1);
	wait_for_completion(&mr->released);
}

int weft_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct weft_mr *mr = to_weft_mr(ibmr);

	if (atomic_cmpxchg(&mr->windows, 0, WEFT_MR_CLOSED))
		return -EBUSY;
	mr_withdraw(mr);
	mr_free(mr);
	return 0;
}

static int alloc_blocks(struct weft_pages *pages, size_t n, gfp_t gfp)
{
	pages->blocks = kvmalloc_array(n, sizeof(*pages->blocks), gfp);
	pages->max_blocks = n;
	return pages->blocks ? 0 : -ENOMEM;
}

/* ---- user regions ---- */

/*
 * The umem's pages as blocks. Without a DMA device "DMA addresses" are kernel
 * addresses, so the core's walk yields them, in blocks as large as the memory
 * is contiguous.
 */
static int mr_gather(struct weft_pages *pages, struct ib_umem *umem, u64 start)
{
	unsigned long size = ib_umem_find_best_pgsz(umem, BLOCK_SIZES, start);
	struct ib_block_iter it;
	size_t n;

	if (!size)
		return -EINVAL;
	n = ib_umem_num_dma_blocks(umem, size);
	if (alloc_blocks(pages, n, GFP_KERNEL_ACCOUNT | __GFP_NOWARN))
		return -ENOMEM;
	pages->shift = __ffs(size);
	pages->first_off = start & (size - 1);
	rdma_umem_for_each_dma_block(umem, &it, size) {
		if (pages->nblocks == pages->max_blocks)
			break;
		pages->blocks[pages->nblocks++] =
			ib_virt_dma_to_ptr(rdma_block_iter_dma_address(&it));
	}
	return pages->nblocks == pages->max_blocks ? 0 : -EINVAL;
}

static weft_injectable int mr_pin(struct weft_mr *mr, u64 start, u64 len, int access)
{
	struct ib_umem *umem = ib_umem_get_va(mr->ibmr.device, start, len, access);

	if (IS_ERR(umem))
		return PTR_ERR(umem);
	mr->umem = umem;
	return mr_gather(&mr->pages, umem, start);
}
ALLOW_ERROR_INJECTION(mr_pin, ERRNO);

static struct ib_mr *reg_null_mr(struct ib_pd *ibpd)
{
	struct weft_mr *mr = mr_new(ibpd, WEFT_REGION_NULL, WEFT_ACCESS_LOCAL_WRITE);

	if (IS_ERR(mr))
		return ERR_CAST(mr);
	mr->region = weft_region_null(mr->region.pd);
	return mr_finish(mr);
}

/* Our part of reg_mr's input: 0, or -EINVAL if it holds what we do not know. */
static int read_reg_mr(struct ib_udata *udata, bool *null)
{
	struct weft_reg_mr_req req = {};
	size_t n = udata ? min(udata->inlen, sizeof(req)) : 0;

	*null = false;
	if (!n)
		return 0;
	if (ib_copy_from_udata(&req, udata, n) ||
	    (udata->inlen > n && !ib_is_udata_cleared(udata, n, udata->inlen - n)))
		return -EINVAL;
	if (req.flags & ~(u64)WEFT_REG_MR_NULL || req.reserved)
		return -EINVAL;
	*null = req.flags;
	return !*null || weft_udata_has(udata, WEFT_FEATURE_NULL_MR) ? 0 : -EINVAL;
}

/* Sets the range and the rights of a program's region of @len octets. */
static void mr_describe(struct weft_mr *mr, u64 len, u64 iova, int access)
{
	mr->access = access;
	mr->region.base = access & IB_ZERO_BASED ? 0 : iova;
	mr->region.len = len;
	mr->region.valid = true;
	/* The core notes these for a new region, but not for one that takes another's place. */
	mr->ibmr.iova = mr->region.base;
	mr->ibmr.length = len;
}

static struct ib_mr *reg_pinned_mr(struct ib_pd *ibpd, u64 start, u64 len, u64 iova,
				   int access)
{
	struct weft_mr *mr;
	int rv = weft_region_check_request(start, len, iova, access);

	if (rv)
		return ERR_PTR(rv);
	mr = mr_new(ibpd, WEFT_REGION_USER, access);
	if (IS_ERR(mr))
		return ERR_CAST(mr);
	rv = mr_pin(mr, start, len, access);
	if (rv) {
		mr_free(mr);
		return ERR_PTR(rv);
	}
	mr_describe(mr, len, iova, access);
	return mr_finish(mr);
}

struct ib_mr *weft_reg_user_mr_no_dmah(struct ib_pd *ibpd, u64 start, u64 len, u64 iova,
				       int access, struct ib_udata *udata)
{
	bool null;
	int rv = read_reg_mr(udata, &null);

	if (rv)
		return ERR_PTR(rv);
	return null ? reg_null_mr(ibpd) : reg_pinned_mr(ibpd, start, len, iova, access);
}

struct ib_mr *weft_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 len, u64 iova, int access,
			       struct ib_dmah *dmah, struct ib_udata *udata)
{
	if (dmah)
		return ERR_PTR(-EOPNOTSUPP);
	return weft_reg_user_mr_no_dmah(ibpd, start, len, iova, access, udata);
}

/* ---- regions of dmabufs ---- */

/* Lists @len contiguous octets at kernel address @at, in the largest blocks possible. */
static int mr_cut(struct weft_pages *pages, void *at, u64 len)
{
	int rv = alloc_blocks(pages, DIV_ROUND_UP_ULL(len, SZ_1G), GFP_KERNEL_ACCOUNT);

	if (rv)
		return rv;
	pages->shift = ilog2(SZ_1G);
	for (; pages->nblocks < pages->max_blocks; at += SZ_1G)
		pages->blocks[pages->nblocks++] = at;
	return 0;
}

/* The exporter's lock. No use of the region begins any more; its STag stays until it ends. */
static void mr_revoked(struct weft_dmabuf *d)
{
	struct weft_mr *mr = container_of(d, struct weft_mr, dmabuf);

	weft_region_withdraw(&mr->region);
	queue_delayed_work(weft_wq, &d->work, 0);
}

/* The runs that use it end soon. The table holds it, too; no window is bound to it. */
static void mr_release_revoked(struct work_struct *work)
{
	struct weft_dmabuf *d = container_of(work, struct weft_dmabuf, work.work);
	const struct weft_mr *mr = container_of(d, struct weft_mr, dmabuf);

	/* Pairs with that of weft_mr_find(): a later holder sees that it is withdrawn. */
	smp_mb();
	if (refcount_read(&mr->holders) > 1)
		queue_delayed_work(weft_wq, &d->work, 1);
	else
		weft_dmabuf_release(d);
}

static int mr_get_dmabuf(struct weft_mr *mr, u64 offset, u64 len, int fd, int access)
{
	struct ib_device *ibdev = mr->ibmr.device;
	void *at;
	int rv;

	rv = weft_dmabuf_get(&mr->dmabuf, &ibdev->dev, fd, offset, len,
			     ib_access_writable(access), &at);
	return rv ?: mr_cut(&mr->pages, at, len);
}

static struct ib_mr *reg_dmabuf(struct ib_pd *ibpd, u64 offset, u64 len, u64 iova, int fd,
				int access)
{
	int rv = weft_region_check_dmabuf(offset, len, iova, access);
	struct weft_mr *mr;

	if (rv)
		return ERR_PTR(rv);
	mr = mr_new(ibpd, WEFT_REGION_USER, access);
	if (IS_ERR(mr))
		return ERR_CAST(mr);
	rv = mr_get_dmabuf(mr, offset, len, fd, access);
	if (!rv) {
		mr_describe(mr, len, iova, access);
		rv = weft_dmabuf_watch(&mr->dmabuf, mr_revoked, mr_release_revoked);
	}
	if (rv) {
		mr_free(mr);
		return ERR_PTR(rv);
	}
	return mr_finish(mr);
}

struct ib_mr *weft_reg_dmabuf_mr(struct ib_pd *ibpd, u64 offset, u64 len, u64 iova, int fd,
				 int access, struct ib_dmah *dmah,
				 struct uverbs_attr_bundle *attrs)
{
	return dmah ? ERR_PTR(-EOPNOTSUPP) : reg_dmabuf(ibpd, offset, len, iova, fd, access);
}

struct ib_mr *weft_reg_dmabuf_mr_no_dmah(struct ib_pd *ibpd, u64 offset, u64 len, u64 iova, int fd,
					 int access, struct uverbs_attr_bundle *attrs)
{
	return reg_dmabuf(ibpd, offset, len, iova, fd, access);
}

struct ib_mr *weft_reg_dmabuf_mr_udata(struct ib_pd *ibpd, u64 offset, u64 len, u64 iova, int fd,
				       int access, struct ib_udata *udata)
{
	return reg_dmabuf(ibpd, offset, len, iova, fd, access);
}

/* ---- registered anew ---- */

/*
 * A new region with a new STag, which the core uses instead of @ibmr before it
 * deregisters that: if this fails, nothing has changed.
 */
struct ib_mr *weft_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start, u64 len, u64 iova,
				 int access, struct ib_pd *pd, struct ib_udata *udata)
{
	const struct weft_mr *old = to_weft_mr(ibmr);

	if (atomic_read(&old->windows))
		return ERR_PTR(-EBUSY);
	/* A null region stays one, and a dmabuf's region keeps its dmabuf. */
	if (!old->umem)
		return ERR_PTR(-EINVAL);
	if (!(flags & IB_MR_REREG_TRANS)) {
		/* Pinned again, since the rights may differ: by address, of the same process. */
		if (old->umem->owning_mm != current->mm)
			return ERR_PTR(-EPERM);
		start = old->umem->address;
		len = old->region.len;
		iova = old->region.base;
	}
	if (!(flags & IB_MR_REREG_ACCESS))
		access = old->access;
	return reg_pinned_mr(pd, start, len, iova, access);
}

/* ---- kernel consumers' regions ---- */

/* All memory, by kernel address. */
struct ib_mr *weft_get_dma_mr(struct ib_pd *ibpd, int access)
{
	struct weft_mr *mr = mr_new(ibpd, WEFT_REGION_USER, access);

	if (IS_ERR(mr))
		return ERR_CAST(mr);
	mr->region.len = U64_MAX;
	mr->region.valid = true;
	return mr_finish(mr);
}

struct ib_mr *weft_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type, u32 max_sg)
{
	struct weft_mr *mr;

	if (type != IB_MR_TYPE_MEM_REG)
		return ERR_PTR(-EOPNOTSUPP);
	if (!max_sg || max_sg > WEFT_MAX_FAST_BLOCKS)
		return ERR_PTR(-EINVAL);
	mr = mr_new(ibpd, WEFT_REGION_FAST, 0);
	if (IS_ERR(mr))
		return ERR_CAST(mr);
	if (alloc_blocks(&mr->pages, max_sg, GFP_KERNEL) ||
	    alloc_blocks(&mr->mapped, max_sg, GFP_KERNEL)) {
		mr_free(mr);
		return ERR_PTR(-ENOMEM);
	}
	return mr_finish(mr);
}

static int mr_add_block(struct ib_mr *ibmr, u64 addr)
{
	struct weft_pages *next = &to_weft_mr(ibmr)->mapped;

	if (next->nblocks == next->max_blocks)
		return -ENOMEM;
	next->blocks[next->nblocks++] = ib_virt_dma_to_ptr(addr);
	return 0;
}

int weft_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int n, unsigned int *offset)
{
	struct weft_pages *next = &to_weft_mr(ibmr)->mapped;
	int mapped;

	next->nblocks = 0;
	next->shift = __ffs(ibmr->page_size);
	mapped = ib_sg_to_pages(ibmr, sg, n, offset, mr_add_block);
	next->first_off = ibmr->iova & (ibmr->page_size - 1);
	return mapped;
}

/* ---- memory windows: regions whose memory is another's ---- */

int weft_alloc_mw(struct ib_mw *ibmw, struct ib_udata *udata)
{
	struct weft_mr *mr;
	int rv = weft_udata_check_unknown(udata);

	if (!rv && ibmw->type != IB_MW_TYPE_1 && ibmw->type != IB_MW_TYPE_2)
		rv = -EINVAL;
	if (rv)
		return rv;
	mr = mr_new(ibmw->pd, ibmw->type == IB_MW_TYPE_1 ? WEFT_REGION_WINDOW_1 :
							   WEFT_REGION_WINDOW_2, 0);
	if (IS_ERR(mr))
		return PTR_ERR(mr);
	rv = mr_publish(to_weft_dev(ibmw->device), mr);
	if (rv) {
		mr_free(mr);
		return rv;
	}
	container_of(ibmw, struct weft_mw, ibmw)->mr = mr;
	ibmw->rkey = mr->region.stag;
	return 0;
}

int weft_dealloc_mw(struct ib_mw *ibmw)
{
	struct weft_mr *mr = container_of(ibmw, struct weft_mw, ibmw)->mr;
	struct weft_pd *pd = to_weft_pd(ibmw->pd);

	mr_withdraw(mr);
	spin_lock_bh(&pd->windows_lock);
	weft_region_unbind(&mr->region);
	spin_unlock_bh(&pd->windows_lock);
	mr_free(mr);
	return 0;
}
