/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What a program does, for the record, if there is one. Any thread, with any lock. */
#ifndef RL_RECORD_DEEDS_H
#define RL_RECORD_DEEDS_H

#include "format.h"
#include "weft/direct.h"

struct weft_cqe;

/* A QP's messages so far, in the order of the classes. The queue's lock. */
struct rl_recorded_posts {
	u32 number[WEFT_RECORD_RESPONSES];
};

/* The context's number in a record, where a handle alone names several objects. */
u32 rl_record_context(const void *owner);

/* About a queue pair: @qpn and its @posts; else 0 and NULL. */
void rl_record_posted(const void *owner, u32 qpn, struct rl_recorded_posts *posts,
		      const struct weft_run_posted *p);
void rl_record_polled(const void *owner, const struct weft_run_polled *p);
void rl_record_completed(const void *owner, u32 cq, bool recv, const struct weft_cqe *cqe);
/* @user_handle: of a CQ. @caller: the program's instruction, or NULL. */
void rl_record_object(const void *owner, enum weft_run_deed deed, const struct weft_run_object *o,
		      u64 user_handle, const void *caller);

/* A call began at @ticks and has returned @result: 0 or -errno. */
void rl_record_call(enum weft_record_family family, u32 number, const void *owner, u32 subject,
		    int result, u64 ticks);
/* An event has arisen, or (@is_taken) was read by the program, which asked for it at @ticks. */
void rl_record_event(enum weft_record_source source, u32 number, u64 subject, int status,
		     bool is_taken, u64 ticks);

#endif
