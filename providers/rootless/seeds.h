/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* weft-run --adverse=FIRST-LAST: the program once by each seed, one after the other. */
#ifndef RL_SEEDS_H
#define RL_SEEDS_H

#include <stdbool.h>
#include <stdint.h>

struct rl_seeds {
	uint32_t first, last;		/* 0: no range */
};

/* "FIRST-LAST". False: it is none, or begins with 0. */
bool rl_seeds_parse(const char *s, struct rl_seeds *seeds);

/*
 * Returns in a child for each seed, with WEFT_ADVERSE set: it becomes the program. This process
 * waits for each, reports those that fail, and ends: with 0, or the status of the first that
 * failed, which is 128 and the number for a signal.
 */
void rl_seeds_fork(const struct rl_seeds *seeds);

#endif
