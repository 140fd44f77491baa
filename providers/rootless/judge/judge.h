/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The judge of what a program does with verbs (weft-run --judge): the provider reports each deed
 * (weft/direct.h), objects.c keeps the objects and where they were made, requests.c the requests
 * under way; rules.c, report.c and stack.c say what is wrong, and where.
 *
 * Any thread, with any lock of the provider or of a connection. @owner is the context.
 */
#ifndef RL_JUDGE_H
#define RL_JUDGE_H

#include "report.h"
#include "weft/direct.h"

/* Is a QP of @owner neither in error nor gone? Takes its context's lock. */
typedef bool rl_judge_is_live_fn(const void *owner, u32 handle);

/* The deed and what it is about, as in direct.h. Only if rl_judge_is_on. */
void rl_judge_deed(const void *owner, enum weft_run_deed deed, const void *what,
		   rl_judge_is_live_fn *is_live);

/* Has the QP room for @about->size more requests? A place is free once its completion is polled. */
bool rl_judge_has_room(const void *owner, const struct weft_run_object *about);
/* A peer, or a Read, begins or ends to place @len octets at @to. Only if rl_judge_is_on. */
void rl_judge_placing(const void *to, size_t len, bool begins);

/* The program frees @len octets at @addr by @how. Was it reported? */
bool rl_judge_freed(const void *addr, size_t len, const char *how);

/* A thread sleeps for an event of CQ @handle, which is armed and has @n completions. */
void rl_judge_sleeps(const void *owner, u32 handle, u32 n);

#endif
