/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Timers, the earliest first: a binary heap. The caller has a lock. */
#ifndef RL_TIMERS_H
#define RL_TIMERS_H

#include "port.h"

/* Embedded in what has a deadline. */
struct rl_timer {
	u64 due;
	u32 place;			/* in the heap; 0: it does not run */
};

struct rl_timers {
	struct rl_timer **at;		/* from 1 on; none is due before that at half its place */
	u32 n;
};

/* So many timers may run. Only this can fail. */
bool rl_timers_reserve(struct rl_timers *h, u32 most);

/* @t, which does not run, is due at @due. O(log n). */
void rl_timers_start(struct rl_timers *h, struct rl_timer *t, u64 due);
/* @t does not run any more, if it did. O(log n). */
void rl_timers_stop(struct rl_timers *h, struct rl_timer *t);

/* NULL: none runs. */
static inline struct rl_timer *rl_timers_first(const struct rl_timers *h)
{
	return h->n ? h->at[1] : NULL;
}

#endif
