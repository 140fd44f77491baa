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
	struct list_head busy;		/* among those that have any */
	u32 n_sends, n_receives;
	u64 sends_from, sends_to;	/* where the memory of its sends lies; 0: nowhere */
	bool failed;			/* of a QP: it was moved to ERR, or an error was polled */
	/* Of a CQ: completions that are not polled yet; of an id: events that are not
	 * acknowledged yet; of contexts: how many are open
	 */
	u32 due;
};

extern struct rl_lock rl_judge_lock;

/* With the lock. NULL: unknown. */
struct rl_judged *rl_judged_find(const void *owner, enum weft_run_kind kind, u32 handle);
struct rl_judged *rl_judged_by_number(const void *owner, enum weft_run_kind kind, u32 number);
/* The next after @o, or the first (NULL), of any owner. */
struct rl_judged *rl_judged_next(const struct rl_judged *o);

/* "the queue pair 0x12 ", in a static buffer of the thread. */
const char *rl_judged_name(const struct rl_judged *o);

/* The lock, in the process that has the objects: a child of fork() begins with none. */
void rl_judge_enter(void);
void rl_judge_leave(void);

/* ---- objects.c's deeds, and all below: with the lock ---- */

void rl_judge_made(const void *owner, const struct weft_run_object *about);
/* A region was registered again. */
void rl_judge_changed(const void *owner, const struct weft_run_object *about);
void rl_judge_ends(const void *owner, const struct weft_run_object *about);
void rl_judge_refused(const void *owner, const struct weft_run_object *about);
void rl_judge_gone(const void *owner, const struct weft_run_object *about);
/* Each: false, or the report is to be made. Of @rule about it, from here. */
bool rl_judge_object(enum rl_judge_rule rule, const void *owner,
		     const struct weft_run_object *about, const char *what,
		     struct rl_report *report);
/* It was destroyed before. @what: "destroyed" */
bool rl_judge_twice(const void *owner, const struct weft_run_object *about,
		    struct rl_report *report);
void rl_judged_forget(struct rl_judged *o);
/* What drops the requests of an object that is forgotten. */
typedef void rl_judged_drop_fn(struct rl_judged *o);
void rl_judged_drop_by(rl_judged_drop_fn *drop);

/* ---- left.c, without the lock ---- */

void rl_judge_closes(const void *owner);

/* ---- requests.c ---- */

#define RL_AT_A_POST	5
#define RL_AT_A_POLL	5

/* How many of @reports were made. */
u32 rl_judge_posted(const void *owner, const struct weft_run_posted *p,
		    struct rl_report *reports);
u32 rl_judge_polled(const void *owner, const struct weft_run_polled *p,
		    struct rl_report *reports);
bool rl_judge_read_field(const void *owner, const struct weft_run_polled *p,
			 struct rl_report *report);
/* A region is about to be deregistered: the @nth QP that uses it. False: there are fewer. */
bool rl_judge_dereg(const void *owner, u32 handle, u32 nth, u32 *qp_handle,
		    struct rl_report *report);
/* How many there are, of all queues. */
extern u32 rl_requests;
/* Drops all requests of @o. */
void rl_judged_drop_requests(struct rl_judged *o);
void rl_judge_reset(const void *owner, u32 handle);

#endif
