// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Linked into each library of hooks, which has its own next functions. */
#include <dlfcn.h>

#include "hook.h"

/*
 * dlsym() may allocate, and the program's allocator may open and read a file: that call must not
 * look up a function in turn.
 */
static __thread bool is_looking __attribute__((tls_model("initial-exec")));

void *rl_real_find(struct rl_next *n)
{
	void *f = __atomic_load_n(&n->f, __ATOMIC_ACQUIRE);
	int saved = errno;

	if (likely(f) || is_looking)
		return f;
	is_looking = true;
	f = dlsym(RTLD_NEXT, n->name);
	is_looking = false;
	errno = saved;
	__atomic_store_n(&n->f, f, __ATOMIC_RELEASE);
	return f;
}

/*
 * A signal handler may call write() or close(), but must not call dlsym(), which takes the loader's
 * lock and may allocate.
 */
__attribute__((constructor)) static void find_all(void)
{
	extern struct rl_next __start_rl_nexts[] __attribute__((visibility("hidden")));
	extern struct rl_next __stop_rl_nexts[] __attribute__((visibility("hidden")));
	struct rl_next *n;

	for (n = __start_rl_nexts; n < __stop_rl_nexts; n++)
		rl_real_find(n);
}
