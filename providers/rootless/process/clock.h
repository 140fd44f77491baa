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

#endif
