// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Apart: what reads profiles without the library needs them, too. */
#include "stats.h"

const char *const rl_stat_names[] = {
	[RL_RX_FPDUS] = "rx_fpdus", [RL_RX_CALLS] = "rx_calls", [RL_TX_FPDUS] = "tx_fpdus",
	[RL_TX_CALLS] = "tx_calls", [RL_DOORBELLS] = "doorbells", [RL_POLLS] = "polls",
	[RL_WAKES] = "wakes", [RL_TERM_IN] = "term_in", [RL_TERM_OUT] = "term_out",
	[RL_RX_DATAGRAMS] = "rx_datagrams", [RL_TX_DATAGRAMS] = "tx_datagrams",
	[RL_DROP_DATAGRAMS] = "dropped_datagrams", [RL_STRANGE_DATAGRAMS] = "strange_datagrams",
	[RL_EVICTED] = "evicted",
};

static_assert(ARRAY_SIZE(rl_stat_names) == RL_STATS, "a name for each");

const u32 rl_stat_count = RL_STATS;
