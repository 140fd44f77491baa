/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * /dev/infiniband/uverbsN.
 *
 * Files: file.c (the file), write.c (decodes commands), ioctl.c and request.c (decode ioctls),
 * shared.c, channel.c, fault.c, judged.c, and cmd_*.c: what each command and each method does, by
 * object.
 */
#ifndef RL_UVERBS_H
#define RL_UVERBS_H

#include "host/context.h"

/* @flags as of open(): an installed descriptor (process/file.h), or -errno. */
int rl_uverbs_open(const struct rl_device *d, int flags);

/* Its operations. */
ssize_t rl_uverbs_write(struct rl_file *f, int fd, const void *buf, size_t len);
int rl_uverbs_ioctl(struct rl_file *f, int fd, unsigned long number, void *arg);
int rl_uverbs_kick(struct rl_file *f, u16 object, u32 handle);
int rl_uverbs_fault(struct rl_file *f, const struct weft_run_request *r);
int rl_uverbs_judge(struct rl_file *f, u32 deed, const void *what);

static inline struct rl_context *rl_context_of(struct rl_file *f)
{
	return container_of(f, struct rl_context, file);
}

#endif
