/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Reports: on stderr, and in a file of JSON lines. One that was made before, by the same rule and
 * from the same first stack, is only counted.
 */
#ifndef RL_JUDGE_REPORT_H
#define RL_JUDGE_REPORT_H

#include "rules.h"
#include "stack.h"

#define RL_REPORT_STACKS	4

struct rl_report {
	enum rl_judge_rule rule;
	char what[400];			/* one sentence */
	u32 n;
	struct {
		char title[160];
		struct rl_stack stack;
	} stacks[RL_REPORT_STACKS];
};

#define RL_EXIT_REPORTED	99

/* Are objects and requests noted, for a judge or for --adverse? One load. */
extern bool rl_judge_is_on;
/* Is anything to be done where octets are placed, for the judge or --adverse? */
extern bool rl_place_apart;
/* Reads the options, once, before the program's threads. */
void rl_report_begin(void);
bool rl_judge_has(enum rl_judge_rule rule);

void rl_report_init(struct rl_report *r, enum rl_judge_rule rule, const char *what, ...)
	__attribute__((format(printf, 3, 4)));
/* The stack is NULL: the caller's. One too many is left out. */
void rl_report_add(struct rl_report *r, const struct rl_stack *s, const char *title, ...)
	__attribute__((format(printf, 3, 4)));
/* With --judge-fatal it ends the process. */
void rl_report_emit(const struct rl_report *r);

/* How many there were. */
u32 rl_report_count(void);
/* In a child: there were none. */
void rl_report_forked(void);

#endif
