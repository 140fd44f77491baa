/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The commands of the command file; cmd_*.c has their functions, by object. They check what
 * ib_uverbs and the driver check: a program sees no difference.
 */
#ifndef RL_COMMAND_H
#define RL_COMMAND_H

#include "devices/limits.h"
#include "host/qp.h"
#include "process/guard.h"

#define RL_CMD_MAX_IN	512		/* octets of a command's core part, and of a driver's */
#define RL_CMD_MAX_OUT	512

/* A command: its input, and where its answer goes. */
struct rl_command {
	u32 number;			/* IB_USER_VERBS_CMD_, extended ones with their flag */
	const void *in;			/* the core's part, copied, and padded with zeros */
	void *out;			/* zeroed, copied to the program afterwards */
	struct ib_udata_in { const void *p; size_t len; } uhw_in; /* the driver's part, copied */
	struct ib_udata_out { void *p; size_t len; } uhw_out;	/* to be copied back */
	size_t out_len;			/* octets of out to copy back at most */
};

/* Each runs with the context's lock: 0 or -errno. */
typedef int rl_cmd_fn(struct rl_context *ctx, struct rl_command *c);

rl_cmd_fn rl_cmd_get_context;
rl_cmd_fn rl_cmd_query_device, rl_cmd_query_device_ex, rl_cmd_query_port;
rl_cmd_fn rl_cmd_alloc_pd, rl_cmd_dealloc_pd;
rl_cmd_fn rl_cmd_reg_mr, rl_cmd_rereg_mr, rl_cmd_dereg_mr, rl_cmd_alloc_mw, rl_cmd_dealloc_mw;
rl_cmd_fn rl_cmd_create_comp_channel;
rl_cmd_fn rl_cmd_create_cq, rl_cmd_create_cq_ex, rl_cmd_resize_cq, rl_cmd_destroy_cq;
rl_cmd_fn rl_cmd_create_qp, rl_cmd_create_qp_ex, rl_cmd_destroy_qp;
rl_cmd_fn rl_cmd_query_qp, rl_cmd_modify_qp, rl_cmd_modify_qp_ex;
rl_cmd_fn rl_cmd_attach_mcast, rl_cmd_detach_mcast;
rl_cmd_fn rl_cmd_create_srq, rl_cmd_modify_srq, rl_cmd_query_srq, rl_cmd_destroy_srq;

/* ---- faults on demand; without a lock: 0, or -errno to return ---- */

int rl_cmd_fault(struct rl_context *ctx, const struct rl_command *c);
/* Of opening the command file, and of an ioctl. */
int rl_open_fault(const struct rl_device *d);
int rl_reg_dmabuf_fault(struct rl_context *ctx, u64 len);

/* A new QP, which has no connection yet: its completions and its SRQ may fail on demand. */
void rl_qp_may_be_faulty(struct rl_qp *qp);
/* adverse.c: the same, of all if the program is to meet the worst order. */
void rl_qp_may_be_adverse(struct rl_qp *qp);
/* After that: its completions are recorded, if any are. */
void rl_qp_may_be_recorded(struct rl_qp *qp);

/* ---- objects by handle ---- */

#define RL_FIND(ctx, type, kind, handle) ({					\
	struct rl_object *found_ = rl_object_find(ctx, kind, handle);		\
	found_ ? container_of(found_, type, o) : NULL; })

static inline struct rl_pd *rl_find_pd(struct rl_context *ctx, u32 handle)
{
	return RL_FIND(ctx, struct rl_pd, RL_PD, handle);
}

static inline struct rl_cq *rl_find_cq(struct rl_context *ctx, u32 handle)
{
	return RL_FIND(ctx, struct rl_cq, RL_CQ, handle);
}

static inline struct rl_qp *rl_find_qp(struct rl_context *ctx, u32 handle)
{
	return RL_FIND(ctx, struct rl_qp, RL_QP, handle);
}

static inline struct rl_srq *rl_find_srq(struct rl_context *ctx, u32 handle)
{
	return RL_FIND(ctx, struct rl_srq, RL_SRQ, handle);
}

static inline struct rl_mr *rl_find_mr(struct rl_context *ctx, u32 handle)
{
	return RL_FIND(ctx, struct rl_mr, RL_MR, handle);
}

/* ---- the driver's part ---- */

/* The driver's part must be zero beyond its @known octets. */
static inline bool rl_cmd_is_zero_from(const struct rl_command *c, size_t known)
{
	const u8 *p = c->uhw_in.p;
	size_t i;

	for (i = known; i < c->uhw_in.len; i++)
		if (p[i])
			return false;
	return true;
}

static inline bool rl_cmd_is_zero(const struct rl_command *c)
{
	return rl_cmd_is_zero_from(c, 0);
}

static inline int rl_cmd_answer_driver(struct rl_command *c, const void *resp, size_t len)
{
	if (c->uhw_out.len < len)
		return -EINVAL;
	memcpy(c->uhw_out.p, resp, len);
	c->uhw_out.len = len;
	return 0;
}

/* ---- the program's memory ---- */

/* Copies as many octets as fit; the rest is zero. */
static inline int rl_copy_in(void *to, size_t room, const void *from, size_t len)
{
	memset(to, 0, room);
	return rl_guard_copy(to, from, min_t(size_t, room, len)) ? 0 : -EFAULT;
}

static inline int rl_copy_out(void *to, const void *from, size_t len)
{
	return !len || rl_guard_copy(to, from, len) ? 0 : -EFAULT;
}

#endif
