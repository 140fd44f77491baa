/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a thread has to itself: its part of the counters, and a block of the pool. No other writes
 * there, so plain instructions do; a locked one takes as long as a dozen. A thread that ends leaves
 * its place, and what is counted there, to the next.
 */
#ifndef RL_OWN_H
#define RL_OWN_H

#include "port.h"

#define RL_OWN_COUNTS	14

struct rl_own {
	u64 counts[RL_OWN_COUNTS];	/* atomic: written by the thread alone */
	void *block;			/* NULL: none */
	u32 taken;			/* atomic: a thread has it */
	bool keeps_block;		/* constant: few threads do, since a block is large */
} __attribute__((aligned(64)));

extern __thread struct rl_own *rl_own_place;

/* Takes a place for the thread. NULL: none is free. */
struct rl_own *rl_own_take(void);
/* All threads' parts of the @at-th counter. */
u64 rl_own_sum(u32 at);
/* In a child, which has the forking thread alone. */
void rl_own_forked(void);

static inline struct rl_own *rl_own_get(void)
{
	struct rl_own *own = rl_own_place;

	return likely(own) ? own : rl_own_take();
}

#endif
