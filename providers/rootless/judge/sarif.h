/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Reports as SARIF 2.1.0, which code hosts show beside the lines. */
#ifndef RL_JUDGE_SARIF_H
#define RL_JUDGE_SARIF_H

#include "report.h"

typedef struct rl_frame rl_frames[RL_STACK_DEPTH];

/*
 * Adds @r to file @name, which is a whole document after each report, whichever process makes it.
 * Stack i of it has @n[i] frames, @all[i]. @room is for text.
 */
void rl_sarif_add(const char *name, const struct rl_report *r, const rl_frames *all, const u32 *n,
		  char *room, size_t size);

#endif
