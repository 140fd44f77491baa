/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Hooks of names: functions that the program finds in place of libc's, and the way on to these.
 */
#ifndef RL_NEXT_H
#define RL_NEXT_H

#include <dlfcn.h>

#define RL_EXPORT __attribute__((visibility("default")))

static inline void *rl_next_find(void **cache, const char *name)
{
	void *f = __atomic_load_n(cache, __ATOMIC_ACQUIRE);

	if (!f) {
		f = dlsym(RTLD_NEXT, name);
		__atomic_store_n(cache, f, __ATOMIC_RELEASE);
	}
	return f;
}

/* The next function named @f behind this library: looked for once, at the first call. */
#define RL_NEXT(f) ({ static void *cache_; (__typeof__(&f))rl_next_find(&cache_, #f); })

#endif
