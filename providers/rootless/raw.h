/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * System calls as the kernel has them. The library's own calls go this way, so that its hooks
 * never meet themselves. Each returns what the kernel returned, or -errno; errno stays.
 */
#ifndef RL_RAW_H
#define RL_RAW_H

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline long rl_raw_result(long rv, int saved)
{
	if (rv == -1) {
		rv = -errno;
		errno = saved;
	}
	return rv;
}

#define rl_raw(nr, ...) ({ int rl_saved_ = errno; rl_raw_result(syscall(nr, ##__VA_ARGS__), rl_saved_); })

#endif
