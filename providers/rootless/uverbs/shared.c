// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Objects made through a command file that another process opened. */
#include "channel.h"
#include "request.h"

/* The channel of attribute @id, referenced; NULL: none, or the context's own. */
static struct rl_chan *own_events(struct rl_context *ctx, struct rl_request *r, u16 id)
{
	const struct ib_uverbs_attr *a = rl_attr_find(r, id);
	struct rl_chan *chan = a ? rl_chan_of_fd(a->data_s64) : NULL;

	if (!chan || chan != ctx->async)
		return chan;
	rl_chan_put(chan);
	return NULL;
}

int rl_ioctl_create(struct rl_context *ctx, struct rl_request *r, rl_cmd_fn *run,
		    struct rl_command *c, enum rl_kind kind, u16 events)
{
	const struct ib_uverbs_attr *out = rl_attr_find(r, UVERBS_ATTR_UHW_OUT);
	struct rl_chan *chan = own_events(ctx, r, events);
	u64 uhw_in[RL_CMD_MAX_IN / 8], uhw_out[RL_CMD_MAX_OUT / 8] = { 0 };
	const void *in = rl_attr_input(rl_attr_find(r, UVERBS_ATTR_UHW_IN), &c->uhw_in.len);
	int rv;

	if (!chan)
		return -EPROTONOSUPPORT;
	/* A child that is forked while the call is late must not have this thread's reference. */
	rl_chan_put(chan);
	rv = rl_cmd_fault(ctx, c);
	chan = rv ? NULL : own_events(ctx, r, events);
	if (!chan)
		return rv ?: -EPROTONOSUPPORT;
	if (c->uhw_in.len > sizeof(uhw_in) ||
	    rl_copy_in(uhw_in, sizeof(uhw_in), in, c->uhw_in.len)) {
		rl_chan_put(chan);
		return -EINVAL;
	}
	c->uhw_in.p = uhw_in;
	c->uhw_out.p = uhw_out;
	c->uhw_out.len = out ? min_t(size_t, out->len, sizeof(uhw_out)) : 0;
	pthread_mutex_lock(&ctx->lock);
	rv = ctx->ready ? run(ctx, c) : -EINVAL;
	if (rv)
		rl_chan_put(chan);
	else
		rl_object_find(ctx, kind, *(const u32 *)c->out)->async = chan;
	pthread_mutex_unlock(&ctx->lock);
	if (rv || !out)
		return rv;
	return rl_copy_out((void *)(uintptr_t)out->data, uhw_out, c->uhw_out.len);
}
