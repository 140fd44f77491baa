/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The ioctls of the command file: their attributes, and their methods (cmd_*.c, by object). */
#ifndef RL_REQUEST_H
#define RL_REQUEST_H

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#include "command.h"

#define RL_MAX_ATTRS	20

struct rl_request {
	struct ib_uverbs_ioctl_hdr hdr;
	struct ib_uverbs_attr attr[RL_MAX_ATTRS];
	struct ib_uverbs_attr *at;	/* the program's, of which attr is a copy */
};

/* NULL: no such attribute. */
struct ib_uverbs_attr *rl_attr_find(struct rl_request *r, u16 id);
/* 0 if there is no such attribute. */
u32 rl_attr_word(struct rl_request *r, u16 id);
u64 rl_attr_number(struct rl_request *r, u16 id);
/* Short input is in the attribute itself. */
const void *rl_attr_input(const struct ib_uverbs_attr *a, size_t *len);
void *rl_attr_output(const struct ib_uverbs_attr *a, size_t *len);
/* Copies *@from to the attribute's memory, if there is such an attribute. */
int rl_attr_answer(struct rl_request *r, u16 id, const void *from, size_t len);
/* A new descriptor's number, or a handle, goes into the attribute itself. */
int rl_attr_answer_number(struct rl_request *r, u16 id, s64 number);

/*
 * Runs command @c by @run. Its answer begins with the new object's handle, and its request came as
 * attributes: events of the object go to the channel of attribute @events. Libraries ask this way
 * if another process opened the command file; otherwise the error makes them use the command.
 */
int rl_ioctl_create(struct rl_context *ctx, struct rl_request *r, rl_cmd_fn *run,
		    struct rl_command *c, enum rl_kind kind, u16 events);

/* The doorbell; an empty CQ's poll: 0 or -ENOENT. No lock. */
int rl_kick_qp(struct rl_context *ctx, u32 handle);
int rl_kick_cq(struct rl_context *ctx, u32 handle);

/* Each takes the context's lock if it needs it: 0 or -errno. */
typedef int rl_ioctl_fn(struct rl_context *ctx, struct rl_request *r);

rl_ioctl_fn rl_ioctl_invoke_write;
rl_ioctl_fn rl_ioctl_query_context, rl_ioctl_alloc_async;
rl_ioctl_fn rl_ioctl_query_gid_table, rl_ioctl_query_gid_entry;
rl_ioctl_fn rl_ioctl_query_mr, rl_ioctl_advise_mr, rl_ioctl_reg_dmabuf_mr;
rl_ioctl_fn rl_ioctl_create_cq, rl_ioctl_kick_cq;
rl_ioctl_fn rl_ioctl_create_qp, rl_ioctl_kick_qp;
rl_ioctl_fn rl_ioctl_create_srq, rl_ioctl_resize_srq, rl_ioctl_kick_srq;

#endif
