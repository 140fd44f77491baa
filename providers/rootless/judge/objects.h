/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The objects that the judge knows. One lock guards them and their requests. */
#ifndef RL_JUDGE_OBJECTS_H
#define RL_JUDGE_OBJECTS_H

#include "judge.h"
#include "process/list.h"
#include "process/lock.h"

struct rl_judged {
	struct hlist_node node;		/* by owner, kind and handle */
	struct hlist_node by_number;	/* by owner and number: QPs and regions */
	const void *owner;
	struct weft_run_object about;
	struct rl_stack birth;
	struct rl_stack refused;	/* the latest call that failed with EBUSY, if any did */
	bool is_ending;			/* it is being destroyed */
	/* requests.c's */
	struct list_head sends, receives;	/* the oldest first */
	u32 n_sends, n_receives;
	u32 due;			/* of a CQ: completions that are not polled yet */
};

extern struct rl_lock rl_judge_lock;

/* With the lock. NULL: unknown. */
struct rl_judged *rl_judged_find(const void *owner, enum weft_run_kind kind, u32 handle);
struct rl_judged *rl_judged_by_number(const void *owner, enum weft_run_kind kind, u32 number);
/* The next after @o, or the first (NULL), of any owner. */
struct rl_judged *rl_judged_next(const struct rl_judged *o);

/* "the queue pair 0x12 ", in a static buffer of the thread. */
const char *rl_judged_name(const struct rl_judged *o);

/* ---- objects.c's deeds ---- */

void rl_judge_made(const void *owner, const struct weft_run_object *about);
void rl_judge_ends(const void *owner, const struct weft_run_object *about);
void rl_judge_refused(const void *owner, const struct weft_run_object *about);
void rl_judge_gone(const void *owner, const struct weft_run_object *about);
void rl_judge_closes(const void *owner);
/* A report of @rule about it, from here. */
void rl_judge_object(enum rl_judge_rule rule, const void *owner,
		     const struct weft_run_object *about, const char *what);

/* ---- requests.c ---- */

void rl_judge_posted(const void *owner, const struct weft_run_posted *p);
void rl_judge_polled(const void *owner, const struct weft_run_polled *p);
void rl_judge_read_field(const void *owner, const struct weft_run_polled *p);
/* A region is about to be deregistered. */
void rl_judge_dereg(const void *owner, u32 handle, rl_judge_is_live_fn *is_live);
/* Drops all requests of @o. The lock. */
void rl_judged_drop_requests(struct rl_judged *o);
void rl_judge_reset(const void *owner, u32 handle);

#endif
