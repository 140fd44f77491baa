// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The context itself. */
#include <fcntl.h>

#include "channel.h"
#include "control/control.h"
#include "host/port_events.h"
#include "process/raw.h"
#include "request.h"

static int open_async(struct rl_context *ctx, u32 *fd)
{
	int efd, rv;

	ctx->async = rl_chan_new(O_CLOEXEC, &efd);
	if (!ctx->async)
		return -ENOMEM;
	rv = rl_chan_open(ctx->async, efd);
	if (rv < 0) {
		rl_chan_put(ctx->async);
		ctx->async = NULL;
		return rv;
	}
	*fd = rv;
	return 0;
}

static void describe_driver(const struct rl_context *ctx, struct weft_alloc_ucontext_resp *resp)
{
	*resp = (struct weft_alloc_ucontext_resp){
		.features = ctx->features,
		.abi_version = WEFT_ABI_VERSION,
		.max_inline = ctx->dev->about->max_inline_data,
	};
}

int rl_cmd_get_context(struct rl_context *ctx, struct rl_command *c)
{
	const struct weft_alloc_ucontext_req *req = c->uhw_in.p;
	struct ib_uverbs_get_context_resp *resp = c->out;
	const struct rl_profile *p = ctx->dev->about;
	struct weft_alloc_ucontext_resp driver;
	int rv;

	if (ctx->ready)
		return -EINVAL;
	if (!rl_cmd_is_zero_from(c, sizeof(*req)))
		return -EOPNOTSUPP;
	ctx->features = req->features & RL_FEATURES;
	if (p->atomic_cap == IBV_ATOMIC_NONE)
		ctx->features &= ~(u64)WEFT_FEATURE_ATOMICS;
	if (!p->immediate)
		ctx->features &= ~(u64)WEFT_FEATURE_IMM;
	if (p->iwarp)
		ctx->features &= ~(u64)WEFT_FEATURE_ROCE_TYPES;
	describe_driver(ctx, &driver);
	c->uhw_out.len = min_t(size_t, c->uhw_out.len, sizeof(driver));
	memcpy(c->uhw_out.p, &driver, c->uhw_out.len);
	rv = open_async(ctx, &resp->async_fd);
	if (rv)
		return rv;
	resp->num_comp_vectors = 1;
	ctx->ready = true;
	rl_port_events_add(ctx);
	rl_control_begin();
	return 0;
}

/* ---- of a context that is shared: another was given its command file ---- */

int rl_ioctl_query_context(struct rl_context *ctx, struct rl_request *r)
{
	const u64 core_support = IB_UVERBS_CORE_SUPPORT_OPTIONAL_MR_ACCESS;
	struct weft_alloc_ucontext_resp driver;
	const u32 vectors = 1;

	if (!READ_ONCE(ctx->ready))
		return -EINVAL;
	describe_driver(ctx, &driver);
	return rl_attr_answer(r, UVERBS_ATTR_QUERY_CONTEXT_NUM_COMP_VECTORS, &vectors,
			      sizeof(vectors)) ?:
	       rl_attr_answer(r, UVERBS_ATTR_QUERY_CONTEXT_CORE_SUPPORT, &core_support,
			      sizeof(core_support)) ?:
	       rl_attr_answer(r, WEFT_ATTR_QUERY_CONTEXT_RESP, &driver, sizeof(driver));
}

/* For events of objects made by rl_ioctl_create(). */
int rl_ioctl_alloc_async(struct rl_context *ctx, struct rl_request *r)
{
	struct rl_chan *chan;
	int efd, fd, rv;

	chan = rl_chan_new(O_CLOEXEC, &efd);
	if (!chan)
		return -ENOMEM;
	fd = rl_chan_open(chan, efd);
	rl_chan_put(chan);
	if (fd < 0)
		return fd;
	rv = rl_attr_answer_number(r, UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE, fd);
	if (rv) {
		rl_fd_forget(fd);
		rl_raw(SYS_close, fd);
	}
	return rv;
}
