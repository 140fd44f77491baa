/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Lists and sets of poll() and select(), which are the program's, and may not be there. */
#ifndef RL_USER_LISTS_H
#define RL_USER_LISTS_H

#include <poll.h>
#include <sys/resource.h>
#include <sys/select.h>

#include "guard.h"

#define RL_LONG_LIST	256

/*
 * Can it be read? If not, the kernel returns the error: it refuses more entries than there may be
 * descriptors.
 */
static inline bool rl_list_may_be_read(const struct pollfd *p, nfds_t n)
{
	struct rlimit most;

	if (!n || (n > RL_LONG_LIST && (getrlimit(RLIMIT_NOFILE, &most) || n > most.rlim_cur)))
		return false;
	rl_guard_begin();
	return rl_guard_readable(p, n * sizeof(*p));
}

#define RL_SET_WORD	(8 * (int)sizeof(unsigned long))

static inline size_t rl_set_size(int n)
{
	return ((size_t)n + RL_SET_WORD - 1) / RL_SET_WORD * sizeof(unsigned long);
}

static inline bool rl_set_may_be_read(const fd_set *set, int n)
{
	rl_guard_begin();
	return !set || rl_guard_readable(set, rl_set_size(n));
}

#endif
