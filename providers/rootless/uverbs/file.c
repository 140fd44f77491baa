// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The command file, /dev/infiniband/uverbsN: opening it, and freeing all that it has. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "command.h"
#include "devices/limits.h"
#include "host/port_events.h"
#include "host/qp.h"
#include "process/guard.h"
#include "process/raw.h"
#include "uverbs.h"

/* ---- the end ---- */

static void uverbs_destroy_object(struct rl_object *o)
{
	switch (o->kind) {
	case RL_QP:
		rl_qp_leave(container_of(o, struct rl_qp, o));
		rl_qp_destroy(container_of(o, struct rl_qp, o));
		break;
	case RL_SRQ:
		rl_srq_destroy(container_of(o, struct rl_srq, o));
		break;
	case RL_CQ:
		rl_cq_stop(container_of(o, struct rl_cq, o));
		rl_cq_destroy(container_of(o, struct rl_cq, o));
		break;
	case RL_MW:
	case RL_MR:
		rl_mr_destroy(container_of(o, struct rl_mr, o));
		break;
	case RL_PD:
		free(container_of(o, struct rl_pd, o));
		break;
	case RL_CONTEXT:
	case RL_KINDS:
		break;
	}
}

/* Objects are destroyed before those they are made of. Context's lock. */
static void destroy_all(struct rl_context *ctx)
{
	static const enum rl_kind order[] = { RL_QP, RL_SRQ, RL_CQ, RL_MW, RL_MR, RL_PD };
	struct rl_object *o;
	u32 i, h;

	for (i = 0; i < ARRAY_SIZE(order); i++)
		for (h = 0; h < RL_CHUNK * RL_CHUNKS; h++) {
			if (!ctx->chunks[h / RL_CHUNK]) {
				h |= RL_CHUNK - 1;
				continue;
			}
			o = rl_object_find(ctx, order[i], h);
			if (!o)
				continue;
			rl_object_replace(ctx, h, NULL);
			uverbs_destroy_object(o);
		}
}

static void uverbs_release(struct rl_file *f)
{
	struct rl_context *ctx = rl_context_of(f);
	u32 i;

	rl_port_events_remove(ctx);
	pthread_mutex_lock(&ctx->lock);
	destroy_all(ctx);
	pthread_mutex_unlock(&ctx->lock);
	rl_resource_add(ctx->dev, RL_CONTEXT, -1);
	if (ctx->async)
		rl_chan_put(ctx->async);
	rl_fd_close_hidden(ctx->memfd);
	for (i = 0; i < RL_CHUNKS; i++)
		free(ctx->chunks[i]);
	pthread_mutex_destroy(&ctx->lock);
	free(ctx);
}

static const struct rl_file_ops uverbs_ops = {
	.write = rl_uverbs_write,
	.ioctl = rl_uverbs_ioctl,
	.kick = rl_uverbs_kick,
	.fault = rl_uverbs_fault,
	.judge = rl_uverbs_judge,
	.release = uverbs_release,
	.mode = S_IFCHR | 0666,
};

/* ---- the beginning ---- */

/*
 * The rings' memory has two descriptors: the program's and ours. It has the name of the file that
 * the program believes it maps.
 */
static int open_memory(struct rl_context *ctx, int flags)
{
	int fd = rl_raw(SYS_memfd_create, "uverbs", flags & O_CLOEXEC ? MFD_CLOEXEC : 0), own;

	if (fd < 0)
		return fd;
	own = rl_raw(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 0);
	ctx->memfd = own < 0 ? own : rl_fd_hide(own);
	if (ctx->memfd >= 0)
		return fd;
	rl_raw(SYS_close, fd);
	return ctx->memfd;
}

int rl_uverbs_open(const struct rl_device *d, int flags)
{
	struct rl_context *ctx;
	int fd = rl_open_fault(d);

	if (fd)
		return fd;
	ctx = calloc(1, sizeof(*ctx));
	if (!ctx)
		return -ENOMEM;
	fd = open_memory(ctx, flags);
	if (fd < 0) {
		free(ctx);
		return fd;
	}
	rl_guard_begin();
	ctx->dev = d;
	rl_resource_add(ctx->dev, RL_CONTEXT, 1);
	INIT_LIST_HEAD(&ctx->ports);
	pthread_mutex_init(&ctx->lock, NULL);
	rl_file_init(&ctx->file, &uverbs_ops, rl_device_uverbs_rdev(d));
	return rl_fd_install(fd, &ctx->file);
}
