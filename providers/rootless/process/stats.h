/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Counters of this process, with the driver's names. No lock. */
#ifndef RL_STATS_H
#define RL_STATS_H

#include "kernel/proto/stream.h"
#include "own.h"

enum rl_stat {
	RL_RX_FPDUS, RL_RX_CALLS, RL_TX_FPDUS, RL_TX_CALLS, RL_DOORBELLS, RL_POLLS, RL_WAKES,
	RL_TERM_IN, RL_TERM_OUT,
	RL_RX_DATAGRAMS, RL_TX_DATAGRAMS,
	RL_DROP_DATAGRAMS,		/* no such QP, wrong qkey, or no receive */
	RL_STRANGE_DATAGRAMS,		/* not in the format of QPs' datagrams */
	RL_EVICTED,			/* silent connections that gave way to others */
	RL_STATS
};

static_assert(RL_STATS <= RL_OWN_COUNTS, "a thread's part has all");

extern u64 rl_stats[RL_STATS];		/* atomic: of threads that have no place of their own */

static inline void rl_count(enum rl_stat s, u64 n)
{
	struct rl_own *own = rl_own_get();

	if (likely(own))
		__atomic_store_n(&own->counts[s],
				 __atomic_load_n(&own->counts[s], __ATOMIC_RELAXED) + n,
				 __ATOMIC_RELAXED);
	else
		__atomic_fetch_add(&rl_stats[s], n, __ATOMIC_RELAXED);
}

extern const char *const rl_stat_names[];
extern const u32 rl_stat_count;

/* The first @n of the values, in the order of the names. */
void rl_stat_get(u64 *values, u32 n);

/* @s: RL_TERM_IN or RL_TERM_OUT. Also writes to the trace. */
void rl_stats_count_term(enum rl_stat s, const struct weft_term *t);

#endif
