// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Shared receive queues. */
#include "request.h"

/* The ring has more room than was asked for, but the device promises no more than its limits. */
static void srq_promise(const struct rl_profile *p, const struct rl_srq *srq, u32 *wr, u32 *sge)
{
	*wr = min_t(u32, weft_srqc_size(&srq->core), p->max_srq_wr);
	*sge = min_t(u32, srq->core.rq.max_sge, p->max_srq_sge);
}

int rl_cmd_create_srq(struct rl_context *ctx, struct rl_command *c)
{
	const struct ib_uverbs_create_srq *in = c->in;
	struct ib_uverbs_create_srq_resp *resp = c->out;
	const struct rl_profile *p = ctx->dev->about;
	struct weft_rq_caps caps = { in->max_wr, in->max_sge };
	struct rl_pd *pd = rl_find_pd(ctx, in->pd_handle);
	struct weft_create_srq_resp driver = {};
	struct rl_srq *srq;
	int rv;

	if (!p->max_srq)
		return -EOPNOTSUPP;
	if (!pd || c->uhw_out.len < sizeof(driver) || !rl_cmd_is_zero(c) ||
	    caps.wr > p->max_srq_wr || caps.sge > p->max_srq_sge)
		return -EINVAL;
	rv = rl_srq_new(pd, ctx, &caps, &srq);
	if (rv)
		return rv;
	srq->o.user_handle = in->user_handle;
	rv = rl_object_add(ctx, &srq->o);
	if (rv) {
		rl_srq_destroy(srq);
		return rv;
	}
	rl_ring_describe(&srq->ring, srq->core.rq.q.slots, srq->core.rq.stride, &driver.srq);
	driver.srq_id = resp->srqn = srq->o.handle + 1;
	resp->srq_handle = srq->o.handle;
	srq_promise(p, srq, &resp->max_wr, &resp->max_sge);
	return rl_cmd_answer_driver(c, &driver, sizeof(driver));
}

/* WEFT_METHOD_SRQ_RESIZE changes the size. */
int rl_cmd_modify_srq(struct rl_context *ctx, struct rl_command *c)
{
	const struct ib_uverbs_modify_srq *in = c->in;
	struct rl_srq *srq = rl_find_srq(ctx, in->srq_handle);

	if (!srq)
		return -EINVAL;
	if (in->attr_mask & IBV_SRQ_MAX_WR)
		return -EOPNOTSUPP;
	return in->attr_mask & IBV_SRQ_LIMIT ? rl_srq_arm(srq, in->srq_limit) : 0;
}

int rl_cmd_query_srq(struct rl_context *ctx, struct rl_command *c)
{
	const struct ib_uverbs_query_srq *in = c->in;
	struct ib_uverbs_query_srq_resp *resp = c->out;
	struct rl_srq *srq = rl_find_srq(ctx, in->srq_handle);

	if (!srq)
		return -EINVAL;
	srq_promise(ctx->dev->about, srq, &resp->max_wr, &resp->max_sge);
	resp->srq_limit = READ_ONCE(srq->core.limit);
	return 0;
}

int rl_cmd_destroy_srq(struct rl_context *ctx, struct rl_command *c)
{
	const struct ib_uverbs_destroy_srq *in = c->in;
	struct ib_uverbs_destroy_srq_resp *resp = c->out;
	struct rl_srq *srq = rl_find_srq(ctx, in->srq_handle);

	if (!srq || srq->o.users)
		return srq ? -EBUSY : -ENOENT;
	rl_object_replace(ctx, in->srq_handle, NULL);
	rl_context_forget(ctx, &srq->o);
	resp->events_reported = srq->async_reported;
	rl_srq_destroy(srq);
	return 0;
}

/* ---- ioctls ---- */

/* The context's lock keeps the SRQ from being destroyed. */
int rl_ioctl_kick_srq(struct rl_context *ctx, struct rl_request *r)
{
	const struct ib_uverbs_attr *a = rl_attr_find(r, WEFT_ATTR_SRQ_KICK_HANDLE);
	struct rl_object *o;

	if (!a)
		return -EINVAL;
	pthread_mutex_lock(&ctx->lock);
	o = rl_object_find(ctx, RL_SRQ, a->data);
	if (o)
		rl_srq_kick(container_of(o, struct rl_srq, o));
	pthread_mutex_unlock(&ctx->lock);
	return o ? 0 : -ENOENT;
}

int rl_ioctl_resize_srq(struct rl_context *ctx, struct rl_request *r)
{
	const struct ib_uverbs_attr *handle = rl_attr_find(r, WEFT_ATTR_SRQ_RESIZE_HANDLE);
	const struct ib_uverbs_attr *max_wr = rl_attr_find(r, WEFT_ATTR_SRQ_RESIZE_MAX_WR);
	const struct ib_uverbs_attr *out = rl_attr_find(r, WEFT_ATTR_SRQ_RESIZE_RESP);
	struct weft_modify_srq_resp resp;
	struct rl_object *o;
	int rv = -ENOENT;

	if (!handle || !max_wr || max_wr->len != sizeof(u32) || !out || out->len < sizeof(resp))
		return -EINVAL;
	if (!(ctx->features & WEFT_FEATURE_RESIZE))
		return -EOPNOTSUPP;
	if ((u32)max_wr->data > ctx->dev->about->max_srq_wr)
		return -EINVAL;
	pthread_mutex_lock(&ctx->lock);
	o = rl_object_find(ctx, RL_SRQ, handle->data);
	if (o)
		rv = rl_srq_resize(container_of(o, struct rl_srq, o), max_wr->data, &resp);
	pthread_mutex_unlock(&ctx->lock);
	return rv ?: rl_copy_out((void *)(uintptr_t)out->data, &resp, sizeof(resp));
}

int rl_ioctl_create_srq(struct rl_context *ctx, struct rl_request *r)
{
	const struct ib_uverbs_attr *user = rl_attr_find(r, UVERBS_ATTR_CREATE_SRQ_USER_HANDLE);
	struct ib_uverbs_create_srq_resp out = {};
	const struct ib_uverbs_create_srq in = {
		.user_handle = user ? user->data : 0,
		.pd_handle = rl_attr_word(r, UVERBS_ATTR_CREATE_SRQ_PD_HANDLE),
		.max_wr = rl_attr_word(r, UVERBS_ATTR_CREATE_SRQ_MAX_WR),
		.max_sge = rl_attr_word(r, UVERBS_ATTR_CREATE_SRQ_MAX_SGE),
		.srq_limit = rl_attr_word(r, UVERBS_ATTR_CREATE_SRQ_LIMIT),
	};
	struct rl_command c = {
		.number = IB_USER_VERBS_CMD_CREATE_SRQ,
		.in = &in, .out = &out, .out_len = sizeof(out),
	};

	if (rl_attr_word(r, UVERBS_ATTR_CREATE_SRQ_TYPE) != IB_UVERBS_SRQT_BASIC)
		return -EOPNOTSUPP;
	return rl_ioctl_create(ctx, r, rl_cmd_create_srq, &c, RL_SRQ,
			       UVERBS_ATTR_CREATE_SRQ_EVENT_FD) ?:
	       rl_attr_answer(r, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR, &out.max_wr,
			      sizeof(out.max_wr)) ?:
	       rl_attr_answer(r, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE, &out.max_sge,
			      sizeof(out.max_sge)) ?:
	       rl_attr_answer_number(r, UVERBS_ATTR_CREATE_SRQ_HANDLE, out.srq_handle);
}
