// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <stdio.h>

#include "options.h"
#include "stats.h"

u64 rl_stats[RL_STATS];

void rl_stat_get(u64 *values, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++)
		values[i] = rl_own_sum(i) + __atomic_load_n(&rl_stats[i], __ATOMIC_RELAXED);
}

void rl_stats_count_term(enum rl_stat s, const struct weft_term *t)
{
	rl_count(s, 1);
	rl_trace("Terminate %s: layer %u, etype %u, code %#x",
		 s == RL_TERM_IN ? "received" : "sent", t->layer, t->etype, t->code);
}

/* Silent in a process that has moved nothing. */
__attribute__((destructor)) static void stats_print(void)
{
	u64 values[RL_STATS];
	u32 i;

	rl_stat_get(values, RL_STATS);
	if (!(values[RL_TX_CALLS] + values[RL_RX_CALLS]) || !rl_options()->stats)
		return;
	for (i = 0; i < RL_STATS; i++)
		fprintf(stderr, "weft: %s %llu\n", rl_stat_names[i], (unsigned long long)values[i]);
}
