/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Call stacks, and the program's lines that they name. */
#ifndef RL_JUDGE_STACK_H
#define RL_JUDGE_STACK_H

#include "process/port.h"

#define RL_STACK_DEPTH	16

struct rl_stack {
	u32 n;
	const void *pc[RL_STACK_DEPTH];
};

struct rl_frame {
	const char *module;		/* "": unknown; the loader's string */
	u64 offset;			/* of the call in the module, as addr2line takes it */
	char function[96];		/* "": unknown */
	char file[160];			/* "": unknown */
	u32 line;
	bool is_known;			/* the tool was asked before */
};

/* The caller's, from the first function outside of this library on. */
void rl_stack_take(struct rl_stack *s);
/* Of @s the first outside of weft's libraries, libibverbs and librdmacm; NULL: none. */
const void *rl_stack_program(const struct rl_stack *s);
/*
 * The frames of @s from the first outside of weft's libraries to main(), at most RL_STACK_DEPTH:
 * how many. Files and lines by addr2line, if it is installed: that is slow. One thread at a time.
 */
u32 rl_stack_resolve(const struct rl_stack *s, struct rl_frame *frames);

#endif
