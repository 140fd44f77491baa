/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef RL_CLOCK_H
#define RL_CLOCK_H

#include "port.h"

/* CLOCK_MONOTONIC. */
u64 rl_now_ms(void);
u64 rl_now_ns(void);

#endif
