/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* CLOCK_MONOTONIC. */
#ifndef RL_CLOCK_H
#define RL_CLOCK_H

#include <time.h>

#include "port.h"

static inline u64 rl_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (u64)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static inline u64 rl_now_ms(void)
{
	return rl_now_ns() / 1000000;
}

/*
 * Of no unit, for comparing short spans on the data path: clock_gettime() waits for all earlier
 * instructions, which costs more than a lock. May go back by a little between CPUs.
 */
static inline u64 rl_ticks(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	u64 ticks;

	asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
	return ticks;
#else
	return rl_now_ns();
#endif
}

#endif
