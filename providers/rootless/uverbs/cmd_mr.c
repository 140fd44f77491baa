// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Memory regions and windows. */
#include "request.h"

/*
 * Clears the flag in the driver's part: the rest of that has to be zero. (It is padded with zeros.)
 */
static bool wants_null_mr(const struct rl_context *ctx, struct rl_command *c)
{
	struct weft_reg_mr_req *req = (void *)c->uhw_in.p;

	if (req->flags != WEFT_REG_MR_NULL || !(ctx->features & WEFT_FEATURE_NULL_MR))
		return false;
	req->flags = 0;
	return true;
}

/* For every way to make a region, or another one of it. */
static int mr_is_within(const struct rl_profile *p, u64 len, u32 access)
{
	if (len > p->max_mr_size)
		return -EINVAL;
	return access & IBV_ACCESS_ON_DEMAND && !p->odp ? -EOPNOTSUPP : 0;
}

int rl_cmd_reg_mr(struct rl_context *ctx, struct rl_command *c)
{
	const struct ib_uverbs_reg_mr *in = c->in;
	struct ib_uverbs_reg_mr_resp *resp = c->out;
	struct rl_pd *pd = rl_find_pd(ctx, in->pd_handle);
	bool null = wants_null_mr(ctx, c);
	struct rl_mr *mr;
	int rv;

	/* Both addresses must have the same offset in their page. */
	if (!pd || !rl_cmd_is_zero(c) || (in->start ^ in->hca_va) & 4095)
		return -EINVAL;
	rv = mr_is_within(ctx->dev->about, in->length, in->access_flags);
	if (rv)
		return rv;
	rv = null ? rl_mr_new_null(pd, &mr) :
		    rl_mr_new(pd, in->start, in->length, in->hca_va, in->access_flags, &mr);
	if (rv)
		return rv;
	rv = rl_object_add(ctx, &mr->o);
	if (rv) {
		rl_mr_destroy(mr);
		return rv;
	}
	resp->mr_handle = mr->o.handle;
	resp->lkey = resp->rkey = mr->region.stag;
	return 0;
}

/* A new region replaces the old one; if its memory is other memory, it gets a new STag. */
int rl_cmd_rereg_mr(struct rl_context *ctx, struct rl_command *c)
{
	const struct ib_uverbs_rereg_mr *in = c->in;
	struct ib_uverbs_rereg_mr_resp *resp = c->out;
	struct rl_mr *old = rl_find_mr(ctx, in->mr_handle), *mr;
	bool moves = in->flags & IBV_REREG_MR_CHANGE_TRANSLATION;
	struct rl_pd *pd = in->flags & IBV_REREG_MR_CHANGE_PD ? rl_find_pd(ctx, in->pd_handle) :
			   old ? old->pd : NULL;
	u32 access;
	int rv;

	if (!old || old->region.kind != WEFT_REGION_USER || old->dmabuf.at || !pd || !in->flags ||
	    in->flags & ~7u || (moves && (in->start ^ in->hca_va) & 4095))
		return -EINVAL;
	access = in->flags & IBV_REREG_MR_CHANGE_ACCESS ? in->access_flags : old->access;
	rv = mr_is_within(ctx->dev->about, moves ? in->length : old->region.len, access);
	if (rv)
		return rv;
	if (!rl_mr_close(old))
		return -EBUSY;
	if (moves)
		rv = rl_mr_new(pd, in->start, in->length, in->hca_va, access, &mr);
	else
		rv = rl_mr_change(old, pd, access, &mr);
	if (rv) {
		rl_mr_open_again(old);
		return rv;
	}
	rl_object_replace(ctx, in->mr_handle, &mr->o);
	rl_mr_destroy(old);
	resp->lkey = resp->rkey = mr->region.stag;
	return 0;
}

int rl_cmd_dereg_mr(struct rl_context *ctx, struct rl_command *c)
{
	const struct ib_uverbs_dereg_mr *in = c->in;
	struct rl_mr *mr = rl_find_mr(ctx, in->mr_handle);

	if (!mr || !rl_mr_close(mr))
		return mr ? -EBUSY : -ENOENT;
	rl_object_replace(ctx, in->mr_handle, NULL);
	rl_mr_destroy(mr);
	return 0;
}

/* ---- windows ---- */

int rl_cmd_alloc_mw(struct rl_context *ctx, struct rl_command *c)
{
	const struct ib_uverbs_alloc_mw *in = c->in;
	struct ib_uverbs_alloc_mw_resp *resp = c->out;
	struct rl_pd *pd = rl_find_pd(ctx, in->pd_handle);
	struct rl_mr *mw;
	int rv;

	if (!ctx->dev->about->max_mw)
		return -EOPNOTSUPP;
	if (!pd || !rl_cmd_is_zero(c))
		return -EINVAL;
	rv = rl_mw_new(pd, in->mw_type, &mw);
	if (rv)
		return rv;
	rv = rl_object_add(ctx, &mw->o);
	if (rv) {
		rl_mr_destroy(mw);
		return rv;
	}
	resp->mw_handle = mw->o.handle;
	resp->rkey = mw->region.stag;
	return 0;
}

int rl_cmd_dealloc_mw(struct rl_context *ctx, struct rl_command *c)
{
	const struct ib_uverbs_dealloc_mw *in = c->in;
	struct rl_mr *mw = RL_FIND(ctx, struct rl_mr, RL_MW, in->mw_handle);

	if (!mw)
		return -ENOENT;
	rl_object_replace(ctx, in->mw_handle, NULL);
	rl_mr_destroy(mw);
	return 0;
}

/* ---- queries ---- */

int rl_ioctl_query_mr(struct rl_context *ctx, struct rl_request *r)
{
	const struct ib_uverbs_attr *a = rl_attr_find(r, UVERBS_ATTR_QUERY_MR_HANDLE);
	u64 len = 0, iova = 0;
	struct rl_object *o;
	u32 stag = 0;

	pthread_mutex_lock(&ctx->lock);
	o = a ? rl_object_find(ctx, RL_MR, a->data) : NULL;
	if (o) {
		const struct weft_region *region = &container_of(o, struct rl_mr, o)->region;

		stag = region->stag;
		len = region->len;
		iova = region->base;
	}
	pthread_mutex_unlock(&ctx->lock);
	if (!o)
		return a ? -ENOENT : -EINVAL;
	return rl_attr_answer(r, UVERBS_ATTR_QUERY_MR_RESP_LKEY, &stag, sizeof(stag)) ?:
	       rl_attr_answer(r, UVERBS_ATTR_QUERY_MR_RESP_RKEY, &stag, sizeof(stag)) ?:
	       rl_attr_answer(r, UVERBS_ATTR_QUERY_MR_RESP_LENGTH, &len, sizeof(len)) ?:
	       rl_attr_answer(r, UVERBS_ATTR_QUERY_MR_RESP_IOVA, &iova, sizeof(iova));
}

/* ---- regions of dmabufs ---- */

/* The access that ib_core allows for such a region. */
#define DMABUF_ACCESS	(IB_UVERBS_ACCESS_LOCAL_WRITE | IB_UVERBS_ACCESS_REMOTE_WRITE | \
			 IB_UVERBS_ACCESS_REMOTE_READ | IB_UVERBS_ACCESS_REMOTE_ATOMIC | \
			 IB_UVERBS_ACCESS_RELAXED_ORDERING)

/* Context's lock. */
static int new_dmabuf_mr(struct rl_context *ctx, struct rl_request *r, struct rl_mr **mr)
{
	struct rl_pd *pd = rl_find_pd(ctx, rl_attr_word(r, UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE));
	u64 offset = rl_attr_number(r, UVERBS_ATTR_REG_DMABUF_MR_OFFSET);
	u64 iova = rl_attr_number(r, UVERBS_ATTR_REG_DMABUF_MR_IOVA);
	u64 len = rl_attr_number(r, UVERBS_ATTR_REG_DMABUF_MR_LENGTH);
	u32 access = rl_attr_word(r, UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS);
	int rv;

	if (!pd)
		return -ENOENT;
	/* Both addresses must have the same offset in their page. */
	if (access & ~DMABUF_ACCESS || (offset ^ iova) & 4095)
		return -EINVAL;
	rv = mr_is_within(ctx->dev->about, len, access) ?:
	     rl_mr_new_dmabuf(pd, (s32)rl_attr_word(r, UVERBS_ATTR_REG_DMABUF_MR_FD), offset, len,
			      iova, access, mr);
	if (rv)
		return rv;
	rv = rl_object_add(ctx, &(*mr)->o);
	if (rv)
		rl_mr_destroy(*mr);
	return rv;
}

int rl_ioctl_reg_dmabuf_mr(struct rl_context *ctx, struct rl_request *r)
{
	u32 handle = 0, stag = 0;
	struct rl_mr *mr;
	int rv;

	if (!rl_attr_find(r, UVERBS_ATTR_REG_DMABUF_MR_FD))
		return -EINVAL;
	rv = rl_reg_dmabuf_fault(ctx, rl_attr_number(r, UVERBS_ATTR_REG_DMABUF_MR_LENGTH));
	if (rv)
		return rv;
	pthread_mutex_lock(&ctx->lock);
	rv = new_dmabuf_mr(ctx, r, &mr);
	if (!rv) {
		handle = mr->o.handle;
		stag = mr->region.stag;
	}
	pthread_mutex_unlock(&ctx->lock);
	return rv ?: rl_attr_answer(r, UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY, &stag, sizeof(stag)) ?:
	       rl_attr_answer(r, UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY, &stag, sizeof(stag)) ?:
	       rl_attr_answer_number(r, UVERBS_ATTR_REG_DMABUF_MR_HANDLE, handle);
}

/* ---- regions on demand ---- */

static int advise(struct rl_context *ctx, u32 pd_handle, const struct weft_sge *sge, bool write)
{
	struct rl_object *o;
	u32 pd = 0;

	pthread_mutex_lock(&ctx->lock);
	o = rl_object_find(ctx, RL_PD, pd_handle);
	if (o)
		pd = container_of(o, struct rl_pd, o)->id;
	pthread_mutex_unlock(&ctx->lock);
	/* Without the lock: reading gigabytes in may take long. */
	return o ? rl_mr_advise(pd, sge, write) : -ENOENT;
}

/* NO_FAULT does nothing: a page is present or not. */
int rl_ioctl_advise_mr(struct rl_context *ctx, struct rl_request *r)
{
	const struct ib_uverbs_attr *pd = rl_attr_find(r, UVERBS_ATTR_ADVISE_MR_PD_HANDLE);
	const struct ib_uverbs_attr *advice = rl_attr_find(r, UVERBS_ATTR_ADVISE_MR_ADVICE);
	const struct ib_uverbs_attr *list = rl_attr_find(r, UVERBS_ATTR_ADVISE_MR_SGE_LIST);
	u64 how = advice ? advice->data : 0;
	struct weft_sge sge;
	size_t i;
	int rv;

	if (!pd || !advice || !list || list->len % sizeof(sge) || list->len < sizeof(sge))
		return -EINVAL;
	if (how > IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return -EOPNOTSUPP;
	for (i = 0; i < list->len / sizeof(sge); i++) {
		if (!rl_guard_copy(&sge, (const struct weft_sge *)(uintptr_t)list->data + i,
				   sizeof(sge)))
			return -EFAULT;
		if (how == IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
			continue;
		rv = advise(ctx, pd->data, &sge, how == IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE);
		if (rv)
			return rv;
	}
	return 0;
}
