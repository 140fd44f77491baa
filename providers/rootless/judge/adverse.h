/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The worst legal order (weft-run --adverse): what specifications leave open is decided against the
 * program, by the seed alone: the same events in the same order get the same answers.
 */
#ifndef RL_JUDGE_ADVERSE_H
#define RL_JUDGE_ADVERSE_H

#include "process/port.h"

enum rl_adverse_choice {
	RL_ADVERSE_COMPLETION, RL_ADVERSE_EVENT, RL_ADVERSE_LINK, RL_ADVERSE_PLACEMENT,
	RL_ADVERSE_CM_EVENT, RL_ADVERSE_RUN, RL_ADVERSE_RESOLVE,
	RL_ADVERSE_CHOICES
};

/* Constant after start. */
extern bool rl_is_adverse;

/* A number below @range: for the @nth choice of the kind about object @about. */
u32 rl_adverse_choose(enum rl_adverse_choice kind, u32 about, u32 nth, u32 range);
/* The same, for the next choice of a kind that is about no object. */
u32 rl_adverse_next(enum rl_adverse_choice kind, u32 range);

/*
 * Copies @n octets to the program's memory, the last ones first, and lets others see that: false if
 * they are not mapped. The caller may have locks.
 */
bool rl_adverse_place(u8 *to, const u8 *from, size_t n);
/* Long enough for a thread that polls to see memory as it is now. */
void rl_adverse_pause(void);

/* How long, in ms, the program gets an event of rdma_cm late; 0: it does not. */
u32 rl_adverse_event_ms(void);
/*
 * How long a Send waits for a receive, in ms: by the program's own rnr_retry_count, and @usual
 * without --adverse.
 */
u32 rl_adverse_rnr_ms(u8 rnr_retry_count, u32 usual);
/* Does resolving take longer than the program's @timeout_ms? Then it fails with ETIMEDOUT. */
bool rl_adverse_times_out(u32 timeout_ms);

#endif
