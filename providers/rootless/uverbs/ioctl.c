// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Most ioctls but INVOKE_WRITE are answered as by a kernel that has only the commands: libibverbs
 * then uses these.
 */
#include "process/thread.h"
#include "record/deeds.h"
#include "record/log.h"
#include "request.h"
#include "uverbs.h"

static const struct method {
	u16 object, method;
	rl_ioctl_fn *run;
} methods[] = {
	{ UVERBS_OBJECT_QP, WEFT_METHOD_QP_KICK, rl_ioctl_kick_qp },
	{ UVERBS_OBJECT_CQ, WEFT_METHOD_CQ_KICK, rl_ioctl_kick_cq },
	{ UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE, rl_ioctl_invoke_write },
	{ UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_CONTEXT, rl_ioctl_query_context },
	{ UVERBS_OBJECT_ASYNC_EVENT, UVERBS_METHOD_ASYNC_EVENT_ALLOC, rl_ioctl_alloc_async },
	{ UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE, rl_ioctl_create_cq },
	{ UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE, rl_ioctl_create_qp },
	{ UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE, rl_ioctl_create_srq },
	{ UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_TABLE, rl_ioctl_query_gid_table },
	{ UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_ENTRY, rl_ioctl_query_gid_entry },
	{ UVERBS_OBJECT_MR, UVERBS_METHOD_QUERY_MR, rl_ioctl_query_mr },
	{ UVERBS_OBJECT_MR, UVERBS_METHOD_ADVISE_MR, rl_ioctl_advise_mr },
	{ UVERBS_OBJECT_MR, UVERBS_METHOD_REG_DMABUF_MR, rl_ioctl_reg_dmabuf_mr },
	{ UVERBS_OBJECT_SRQ, WEFT_METHOD_SRQ_RESIZE, rl_ioctl_resize_srq },
	{ UVERBS_OBJECT_SRQ, WEFT_METHOD_SRQ_KICK, rl_ioctl_kick_srq },
};

static int read_request(struct rl_request *r, void *arg)
{
	size_t attrs;

	r->at = (void *)((u8 *)arg + sizeof(r->hdr));

	if (!rl_guard_copy(&r->hdr, arg, sizeof(r->hdr)))
		return -EFAULT;
	attrs = r->hdr.num_attrs * sizeof(r->attr[0]);
	if (r->hdr.length != sizeof(r->hdr) + attrs || r->hdr.reserved1 || r->hdr.reserved2)
		return -EINVAL;
	if (r->hdr.num_attrs > RL_MAX_ATTRS)
		return -EPROTONOSUPPORT;
	return !attrs || rl_guard_copy(r->attr, r->at, attrs) ? 0 : -EFAULT;
}

/* INVOKE_WRITE is recorded as a command is, and doorbells are not. */
static bool is_method_recorded(const struct method *m)
{
	return rl_record_is_on() && m->run != rl_ioctl_invoke_write &&
	       m->run != rl_ioctl_kick_qp && m->run != rl_ioctl_kick_cq &&
	       m->run != rl_ioctl_kick_srq;
}

static int run_method(const struct method *m, struct rl_context *ctx, struct rl_request *r)
{
	u64 now = is_method_recorded(m) ? rl_ticks() : 0;
	int rv = m->run(ctx, r);

	if (now)
		rl_record_call(WEFT_RECORD_METHOD, (u32)m->object << 16 | m->method, ctx, 0, rv,
			       now);
	return rv;
}

int rl_uverbs_ioctl(struct rl_file *f, int fd, unsigned long number, void *arg)
{
	struct rl_request r;
	const struct method *m;
	int rv;

	/* isatty() does not use the device. */
	if (number != RDMA_VERBS_IOCTL)
		return -ENOTTY;
	rl_thread_revive(f);
	rv = read_request(&r, arg);
	if (rv)
		return rv;
	if (r.hdr.driver_id != WEFT_DRIVER_ID)
		return -EINVAL;
	for (m = methods; m < methods + ARRAY_SIZE(methods); m++)
		if (m->object == r.hdr.object_id && m->method == r.hdr.method_id)
			return run_method(m, rl_context_of(f), &r);
	return -EPROTONOSUPPORT;
}

int rl_uverbs_kick(struct rl_file *f, u16 object, u32 handle)
{
	rl_thread_revive(f);
	if (object == UVERBS_OBJECT_QP)
		return rl_kick_qp(rl_context_of(f), handle);
	return object == UVERBS_OBJECT_CQ ? rl_kick_cq(rl_context_of(f), handle) : -ENOTTY;
}
