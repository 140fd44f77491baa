// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Completion channels and queues. */
#include <fcntl.h>

#include "channel.h"
#include "request.h"

int rl_cmd_create_comp_channel(struct rl_context *ctx, struct rl_command *c)
{
	struct ib_uverbs_create_comp_channel_resp *resp = c->out;
	struct rl_chan *chan;
	int efd, fd;

	chan = rl_chan_new(O_CLOEXEC, &efd);
	if (!chan)
		return -ENOMEM;
	fd = rl_chan_open(chan, efd);
	rl_chan_put(chan);
	if (fd < 0)
		return fd;
	resp->fd = fd;
	return 0;
}

/* The plain command and the extended one. */
static int make_cq(struct rl_context *ctx, struct rl_command *c, u64 user_handle, u32 cqe,
		   s32 channel, bool stamps, struct ib_uverbs_create_cq_resp *resp)
{
	struct weft_create_cq_resp driver = {};
	struct rl_chan *chan = NULL;
	struct rl_cq *cq = NULL;
	u32 entries;
	int rv = cqe > ctx->dev->about->max_cqe ? -EINVAL : weft_shape_cq(cqe, &entries);

	if (rv || !rl_cmd_is_zero(c) || c->uhw_out.len < sizeof(driver))
		return -EINVAL;
	if (channel >= 0 && !(chan = rl_chan_of_fd(channel)))
		return -EINVAL;
	rv = rl_cq_new(ctx, entries, chan, &cq);
	if (chan)
		rl_chan_put(chan);
	if (rv)
		return rv;
	cq->o.user_handle = user_handle;
	cq->stamps = stamps;
	rv = rl_object_add(ctx, &cq->o);
	if (rv) {
		rl_cq_stop(cq);
		rl_cq_destroy(cq);
		return rv;
	}
	rl_ring_describe(&cq->ring, entries, 1, &driver.cq);
	driver.cq_id = cq->o.handle + 1;
	resp->cq_handle = cq->o.handle;
	resp->cqe = min_t(u32, entries, ctx->dev->about->max_cqe);
	return rl_cmd_answer_driver(c, &driver, sizeof(driver));
}

int rl_cmd_create_cq(struct rl_context *ctx, struct rl_command *c)
{
	const struct ib_uverbs_create_cq *in = c->in;

	return in->comp_vector ? -EINVAL :
	       make_cq(ctx, c, in->user_handle, in->cqe, in->comp_channel, false, c->out);
}

int rl_cmd_create_cq_ex(struct rl_context *ctx, struct rl_command *c)
{
	const struct ib_uverbs_ex_create_cq *in = c->in;
	struct ib_uverbs_ex_create_cq_resp *resp = c->out;

	if (in->comp_mask || in->comp_vector)
		return -EINVAL;
	if (in->flags & ~IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION ||
	    (in->flags && !(ctx->features & WEFT_FEATURE_TIMESTAMP)))
		return -EOPNOTSUPP;
	resp->response_length = sizeof(*resp);
	return make_cq(ctx, c, in->user_handle, in->cqe, in->comp_channel, in->flags, &resp->base);
}

int rl_cmd_resize_cq(struct rl_context *ctx, struct rl_command *c)
{
	const struct ib_uverbs_resize_cq *in = c->in;
	struct ib_uverbs_resize_cq_resp *resp = c->out;
	struct rl_cq *cq = rl_find_cq(ctx, in->cq_handle);
	struct weft_resize_cq_resp driver = {};
	u32 entries;
	int rv;

	if (!cq || c->uhw_out.len < sizeof(driver) || !rl_cmd_is_zero(c))
		return -EINVAL;
	if (!(ctx->features & WEFT_FEATURE_RESIZE))
		return -EOPNOTSUPP;
	rv = in->cqe > ctx->dev->about->max_cqe ? -EINVAL :
	     weft_shape_cq(in->cqe, &entries) ?: rl_cq_resize(cq, entries, &driver);
	if (rv)
		return rv;
	resp->cqe = min_t(u32, entries, ctx->dev->about->max_cqe);
	return rl_cmd_answer_driver(c, &driver, sizeof(driver));
}

int rl_cmd_destroy_cq(struct rl_context *ctx, struct rl_command *c)
{
	const struct ib_uverbs_destroy_cq *in = c->in;
	struct ib_uverbs_destroy_cq_resp *resp = c->out;
	struct rl_cq *cq = rl_find_cq(ctx, in->cq_handle);

	if (!cq || cq->o.users)
		return cq ? -EBUSY : -ENOENT;
	rl_object_replace(ctx, in->cq_handle, NULL);
	rl_cq_stop(cq);
	resp->comp_events_reported = cq->comp_reported;
	resp->async_events_reported = cq->async_reported;
	rl_cq_destroy(cq);
	return 0;
}

/* ---- ioctls ---- */

int rl_kick_cq(struct rl_context *ctx, u32 handle)
{
	struct rl_object *o = rl_object_find(ctx, RL_CQ, handle);

	if (!o)
		return -ENOENT;
	rl_cq_kick(container_of(o, struct rl_cq, o));
	return 0;
}

int rl_ioctl_kick_cq(struct rl_context *ctx, struct rl_request *r)
{
	const struct ib_uverbs_attr *a = rl_attr_find(r, WEFT_ATTR_CQ_KICK_HANDLE);

	return a ? rl_kick_cq(ctx, a->data) : -EINVAL;
}

int rl_ioctl_create_cq(struct rl_context *ctx, struct rl_request *r)
{
	const struct ib_uverbs_attr *chan = rl_attr_find(r, UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL);
	const struct ib_uverbs_attr *user = rl_attr_find(r, UVERBS_ATTR_CREATE_CQ_USER_HANDLE);
	const struct ib_uverbs_ex_create_cq in = {
		.user_handle = user ? user->data : 0,
		.cqe = rl_attr_word(r, UVERBS_ATTR_CREATE_CQ_CQE),
		.comp_vector = rl_attr_word(r, UVERBS_ATTR_CREATE_CQ_COMP_VECTOR),
		.comp_channel = chan ? chan->data_s64 : -1,
		.flags = rl_attr_word(r, UVERBS_ATTR_CREATE_CQ_FLAGS),
	};
	struct ib_uverbs_ex_create_cq_resp out = {};
	struct rl_command c = {
		.number = IB_USER_VERBS_CMD_CREATE_CQ | IB_USER_VERBS_CMD_FLAG_EXTENDED,
		.in = &in, .out = &out, .out_len = sizeof(out),
	};

	return rl_ioctl_create(ctx, r, rl_cmd_create_cq_ex, &c, RL_CQ,
			       UVERBS_ATTR_CREATE_CQ_EVENT_FD) ?:
	       rl_attr_answer(r, UVERBS_ATTR_CREATE_CQ_RESP_CQE, &out.base.cqe,
			      sizeof(out.base.cqe)) ?:
	       rl_attr_answer_number(r, UVERBS_ATTR_CREATE_CQ_HANDLE, out.base.cq_handle);
}
