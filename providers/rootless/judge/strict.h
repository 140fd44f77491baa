/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Rule touched-under-way: whole pages of buffers under way are protected, so that the instruction
 * which touches them faults. What is sent may be read; what receives may not. The library itself,
 * which places there, takes the protection away for that time.
 */
#ifndef RL_JUDGE_STRICT_H
#define RL_JUDGE_STRICT_H

#include "request.h"

/* With the judge's lock. */
void rl_strict_begin(const struct rl_request *r);
void rl_strict_end(const struct rl_request *r);
void rl_strict_placing(u64 addr, u64 len, bool begins);

#endif
