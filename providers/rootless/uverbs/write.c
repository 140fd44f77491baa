// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Commands arrive by write(), or by an ioctl (INVOKE_WRITE) from newer libraries. Their pointers
 * may point anywhere: all of the program's memory is copied under guard.
 */
#include "process/thread.h"
#include "record/deeds.h"
#include "record/log.h"
#include "request.h"
#include "uverbs.h"

/* ---- the table ---- */

#define PLAIN(name, req, resp, fn) { IB_USER_VERBS_CMD_##name, sizeof(struct req), resp, fn }
#define EX(cmd) (IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_##cmd)
#define EXT(name, req, resp, fn) { EX(name), sizeof(struct req), resp, fn }
#define R(s) sizeof(struct s)

static const struct command {
	u32 number;
	size_t in, out;			/* sizes of the core's parts, at least */
	rl_cmd_fn *run;
} commands[] = {
	PLAIN(GET_CONTEXT, ib_uverbs_get_context, R(ib_uverbs_get_context_resp),
	      rl_cmd_get_context),
	PLAIN(QUERY_DEVICE, ib_uverbs_query_device, R(ib_uverbs_query_device_resp),
	      rl_cmd_query_device),
	EXT(QUERY_DEVICE, ib_uverbs_ex_query_device,
	    offsetof(struct ib_uverbs_ex_query_device_resp, odp_caps), rl_cmd_query_device_ex),
	PLAIN(QUERY_PORT, ib_uverbs_query_port, R(ib_uverbs_query_port_resp), rl_cmd_query_port),
	PLAIN(ALLOC_PD, ib_uverbs_alloc_pd, R(ib_uverbs_alloc_pd_resp), rl_cmd_alloc_pd),
	PLAIN(DEALLOC_PD, ib_uverbs_dealloc_pd, 0, rl_cmd_dealloc_pd),
	PLAIN(REG_MR, ib_uverbs_reg_mr, R(ib_uverbs_reg_mr_resp), rl_cmd_reg_mr),
	PLAIN(REREG_MR, ib_uverbs_rereg_mr, R(ib_uverbs_rereg_mr_resp), rl_cmd_rereg_mr),
	PLAIN(DEREG_MR, ib_uverbs_dereg_mr, 0, rl_cmd_dereg_mr),
	PLAIN(ALLOC_MW, ib_uverbs_alloc_mw, R(ib_uverbs_alloc_mw_resp), rl_cmd_alloc_mw),
	PLAIN(DEALLOC_MW, ib_uverbs_dealloc_mw, 0, rl_cmd_dealloc_mw),
	PLAIN(CREATE_COMP_CHANNEL, ib_uverbs_create_comp_channel,
	      R(ib_uverbs_create_comp_channel_resp), rl_cmd_create_comp_channel),
	PLAIN(CREATE_CQ, ib_uverbs_create_cq, R(ib_uverbs_create_cq_resp), rl_cmd_create_cq),
	EXT(CREATE_CQ, ib_uverbs_ex_create_cq, R(ib_uverbs_ex_create_cq_resp), rl_cmd_create_cq_ex),
	PLAIN(RESIZE_CQ, ib_uverbs_resize_cq, R(ib_uverbs_resize_cq_resp), rl_cmd_resize_cq),
	PLAIN(DESTROY_CQ, ib_uverbs_destroy_cq, R(ib_uverbs_destroy_cq_resp), rl_cmd_destroy_cq),
	PLAIN(CREATE_QP, ib_uverbs_create_qp, R(ib_uverbs_create_qp_resp), rl_cmd_create_qp),
	EXT(CREATE_QP, ib_uverbs_ex_create_qp, R(ib_uverbs_ex_create_qp_resp), rl_cmd_create_qp_ex),
	PLAIN(QUERY_QP, ib_uverbs_query_qp, R(ib_uverbs_query_qp_resp), rl_cmd_query_qp),
	PLAIN(MODIFY_QP, ib_uverbs_modify_qp, 0, rl_cmd_modify_qp),
	EXT(MODIFY_QP, ib_uverbs_modify_qp, 0, rl_cmd_modify_qp_ex),
	PLAIN(DESTROY_QP, ib_uverbs_destroy_qp, R(ib_uverbs_destroy_qp_resp), rl_cmd_destroy_qp),
	PLAIN(ATTACH_MCAST, ib_uverbs_attach_mcast, 0, rl_cmd_attach_mcast),
	PLAIN(DETACH_MCAST, ib_uverbs_detach_mcast, 0, rl_cmd_detach_mcast),
	PLAIN(CREATE_SRQ, ib_uverbs_create_srq, R(ib_uverbs_create_srq_resp), rl_cmd_create_srq),
	PLAIN(MODIFY_SRQ, ib_uverbs_modify_srq, 0, rl_cmd_modify_srq),
	PLAIN(QUERY_SRQ, ib_uverbs_query_srq, R(ib_uverbs_query_srq_resp), rl_cmd_query_srq),
	PLAIN(DESTROY_SRQ, ib_uverbs_destroy_srq, R(ib_uverbs_destroy_srq_resp),
	      rl_cmd_destroy_srq),
};

static const struct command *find_command(u32 number)
{
	const struct command *c;

	for (c = commands; c < commands + ARRAY_SIZE(commands); c++)
		if (c->number == number)
			return c;
	return NULL;
}

/* Sizes of the core's parts of command @number; false: no such command. */
static bool command_sizes(u32 number, size_t *in, size_t *out)
{
	const struct command *c = find_command(number);

	if (!c)
		return false;
	*in = c->in;
	*out = c->out;
	return true;
}

static int run_command(struct rl_context *ctx, struct rl_command *c)
{
	if (!ctx->ready && c->number != IB_USER_VERBS_CMD_GET_CONTEXT)
		return -EINVAL;
	return find_command(c->number)->run(ctx, c);
}

/* ---- decoding ---- */

/* A command as it arrives: the program's pointers, and lengths. */
struct call {
	u32 number;
	const void *in, *uhw_in;
	void *out, *uhw_out;
	size_t in_len, uhw_in_len, out_len, uhw_out_len;
};

static int run_with_lock(struct rl_context *ctx, struct rl_command *c)
{
	int rv;

	pthread_mutex_lock(&ctx->lock);
	rv = run_command(ctx, c);
	pthread_mutex_unlock(&ctx->lock);
	return rv;
}

static int run_call(struct rl_context *ctx, const struct call *call)
{
	u64 in[RL_CMD_MAX_IN / 8], out[RL_CMD_MAX_OUT / 8] = { 0 };
	u64 uhw_in[RL_CMD_MAX_IN / 8], uhw_out[RL_CMD_MAX_OUT / 8] = { 0 };
	struct rl_command c = {
		.number = call->number, .in = in, .out = out, .out_len = call->out_len,
		.uhw_in = { uhw_in, call->uhw_in_len }, .uhw_out = { uhw_out, call->uhw_out_len },
	};
	size_t in_size, out_size;
	int rv;

	if (!command_sizes(call->number, &in_size, &out_size))
		return -EOPNOTSUPP;
	if (call->in_len < in_size || call->in_len > sizeof(in) ||
	    call->uhw_in_len > sizeof(uhw_in))
		return -EINVAL;
	if (call->out_len < out_size)
		return -ENOSPC;
	c.uhw_out.len = min_t(size_t, c.uhw_out.len, sizeof(uhw_out));
	rv = rl_copy_in(in, sizeof(in), call->in, call->in_len) ?:
	     rl_copy_in(uhw_in, sizeof(uhw_in), call->uhw_in, call->uhw_in_len) ?:
	     rl_cmd_fault(ctx, &c) ?:
	     run_with_lock(ctx, &c);
	if (rv)
		return rv;
	/* Newer structures may be longer: the program expects zeros at the end. */
	return rl_copy_out(call->out, out, min_t(size_t, call->out_len, sizeof(out))) ?:
	       rl_copy_out(call->uhw_out, uhw_out, c.uhw_out.len);
}

static int write_run(struct rl_context *ctx, const struct call *call)
{
	u64 now = rl_record_is_on() ? rl_ticks() : 0;
	int rv = run_call(ctx, call);

	if (now)
		rl_record_call(WEFT_RECORD_VERBS, call->number, ctx, 0, rv, now);
	return rv;
}

/* The request has the core's part, then the driver's; so has the answer. */
static int split_plain(struct call *call, const u8 *p, size_t len, size_t out_len)
{
	size_t in_size, out_size;
	u64 response = 0;

	if (!command_sizes(call->number, &in_size, &out_size))
		return -EOPNOTSUPP;
	if (len < in_size || out_len < out_size)
		return len < in_size ? -EINVAL : -ENOSPC;
	if (out_size && !rl_guard_copy(&response, p, sizeof(response)))
		return -EFAULT;
	call->in = p;
	call->in_len = in_size;
	call->uhw_in = p + in_size;
	call->uhw_in_len = len - in_size;
	call->out = (void *)(uintptr_t)response;
	call->out_len = out_size;
	call->uhw_out = (u8 *)call->out + out_size;
	call->uhw_out_len = out_len - out_size;
	return 0;
}

static int split_extended(struct call *call, const u8 *p, size_t len, size_t in_len, size_t out_len)
{
	struct ib_uverbs_ex_cmd_hdr ex;

	if (len < sizeof(ex))
		return -EINVAL;
	if (!rl_guard_copy(&ex, p, sizeof(ex)))
		return -EFAULT;
	if (ex.cmd_hdr_reserved || len - sizeof(ex) != in_len + ex.provider_in_words * 8u)
		return -EINVAL;
	call->in = p + sizeof(ex);
	call->in_len = in_len;
	call->uhw_in = p + sizeof(ex) + in_len;
	call->uhw_in_len = ex.provider_in_words * 8u;
	call->out = (void *)(uintptr_t)ex.response;
	call->out_len = out_len;
	call->uhw_out = (u8 *)call->out + out_len;
	call->uhw_out_len = ex.provider_out_words * 8u;
	return 0;
}

ssize_t rl_uverbs_write(struct rl_file *f, int fd, const void *buf, size_t len)
{
	struct ib_uverbs_cmd_hdr hdr;
	struct call call = {};
	const u8 *p = buf;
	int rv;

	rl_thread_revive(f);
	if (len < sizeof(hdr))
		return -EINVAL;
	if (!rl_guard_copy(&hdr, buf, sizeof(hdr)))
		return -EFAULT;
	call.number = hdr.command;
	if (hdr.command & IB_USER_VERBS_CMD_FLAG_EXTENDED)
		rv = split_extended(&call, p + sizeof(hdr), len - sizeof(hdr), hdr.in_words * 8u,
				    hdr.out_words * 8u);
	else
		rv = hdr.in_words * 4u != len ? -EINVAL :
		     split_plain(&call, p + sizeof(hdr), len - sizeof(hdr), hdr.out_words * 4u);
	rv = rv ?: write_run(rl_context_of(f), &call);
	return rv ?: (ssize_t)len;
}

int rl_ioctl_invoke_write(struct rl_context *ctx, struct rl_request *r)
{
	const struct ib_uverbs_attr *number = rl_attr_find(r, UVERBS_ATTR_WRITE_CMD);
	struct call call = {};

	if (!number)
		return -EINVAL;
	call.number = number->data;
	call.in = rl_attr_input(rl_attr_find(r, UVERBS_ATTR_CORE_IN), &call.in_len);
	call.uhw_in = rl_attr_input(rl_attr_find(r, UVERBS_ATTR_UHW_IN), &call.uhw_in_len);
	call.out = rl_attr_output(rl_attr_find(r, UVERBS_ATTR_CORE_OUT), &call.out_len);
	call.uhw_out = rl_attr_output(rl_attr_find(r, UVERBS_ATTR_UHW_OUT), &call.uhw_out_len);
	return write_run(ctx, &call);
}
