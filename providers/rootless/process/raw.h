/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The kernel's system calls. The library makes its own calls this way, so that it never calls its
 * hooks. Each returns the kernel's result, or -errno; errno is preserved.
 */
#ifndef RL_RAW_H
#define RL_RAW_H

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * Inline instead of in libc: a short message takes a handful of calls, and each function on the way
 * would be cold in the cache.
 */
#ifdef __clang_analyzer__
/* It assumes that an asm statement leaves memory alone, in spite of "memory". */
long rl_raw_call(long nr, long a, long b, long c, long d, long e, long f);
#elif defined(__x86_64__)
static inline long rl_raw_call(long nr, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long rv;

	__asm__ volatile("syscall" : "=a"(rv)
			 : "0"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return rv;
}
#else
static inline long rl_raw_call(long nr, long a, long b, long c, long d, long e, long f)
{
	int saved = errno;
	long rv = syscall(nr, a, b, c, d, e, f);

	if (rv == -1) {
		rv = -errno;
		errno = saved;
	}
	return rv;
}
#endif

#define RL_RAW(nr, a, b, c, d, e, f, ...) \
	rl_raw_call(nr, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
#define rl_raw(...) RL_RAW(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)

#endif
