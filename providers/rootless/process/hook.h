/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Hooks: functions with libc's names that the program finds first. A hook checks whether the call
 * is for this library, and otherwise calls the next function of that name: libc's, or another
 * preloaded library's.
 */
#ifndef RL_HOOK_H
#define RL_HOOK_H

#include <errno.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "file.h"

/* The program sees it: both libraries are compiled with -fvisibility=hidden. */
#define RL_HOOK __attribute__((visibility("default")))

/*
 * The next function of a name, found when the library is loaded, or on first use. Each library has
 * its own.
 */
struct rl_next {
	void *f;
	const char *name;
};

/*
 * The function of @n. NULL: there is none, or this thread is looking one up: then make the system
 * call.
 */
void *rl_real_find(struct rl_next *n);

static inline void *rl_real(struct rl_next *n)
{
	void *f = __atomic_load_n(&n->f, __ATOMIC_ACQUIRE);

	return likely(f) ? f : rl_real_find(n);
}

#define RL_REAL(f) ({ \
	static struct rl_next next_ __attribute__((section("rl_nexts"), used)) = { NULL, #f }; \
	(__typeof__(&f))rl_real(&next_); })

/*
 * The next function's result; or ENOSYS and @instead, which only an allocator that dlsym() calls
 * gets to see.
 */
#define RL_PASS_OR(instead, f, ...) ({						\
	__typeof__(&f) real_ = RL_REAL(f);					\
	real_ ? real_(__VA_ARGS__) : (errno = ENOSYS, (instead)); })
#define RL_PASS(f, ...) RL_PASS_OR(-1, f, __VA_ARGS__)

/* The next function's result, or the system call's where there is no function. */
#define RL_CALL(f, ...) ({							\
	__typeof__(&f) real_ = RL_REAL(f);					\
	real_ ? real_(__VA_ARGS__)						\
	      : (__typeof__(f(__VA_ARGS__)))syscall(SYS_##f, __VA_ARGS__); })

/* A hook's return value for our result @rv, which may be -errno. */
static inline ssize_t rl_hook_result(ssize_t rv)
{
	if (rv >= 0)
		return rv;
	errno = (int)-rv;
	return -1;
}

#endif
