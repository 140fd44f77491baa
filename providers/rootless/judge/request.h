/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A request under way: from its post until the program has polled its completion, or a later one of
 * the same send queue. All of this with the judge's lock. request.c describes one, requests.c
 * keeps the queues, memory.c and strict.c watch their memory, post_rules.c judges one when it is
 * posted.
 */
#ifndef RL_JUDGE_REQUEST_H
#define RL_JUDGE_REQUEST_H

#include "objects.h"

struct rl_piece {
	u64 addr;			/* as the request has it */
	u64 at;				/* the program's memory; 0: none, or unknown */
	u32 length, lkey;
};

struct rl_request {
	struct list_head node;
	struct weft_run_posted posted;	/* but for its list */
	struct rl_judged *of;		/* the QP, or the SRQ */
	bool is_summed;			/* sum is that of its octets when it was posted */
	bool is_excused;		/* its octets may have changed rightfully since */
	u64 sum;
	u32 n;
	struct rl_piece pieces[];
};

/* The QPs and SRQs with requests, by rl_judged's node busy. */
extern struct list_head rl_busy;

static inline bool rl_request_receives(const struct rl_request *r)
{
	return r->posted.post != WEFT_RUN_POST_SEND;
}

/* "Send", "receive", ... */
const char *rl_request_name(const struct rl_request *r);
/* Adds the line that posted it, and the birth of its queue. */
void rl_request_add(struct rl_report *report, const struct rl_request *r);
struct rl_stack rl_request_stack(const struct rl_request *r);
/* Does @p begin before its region, or end after it? */
bool rl_piece_is_outside(const struct rl_piece *p, const struct weft_run_object *region);
/* The region of @p's key; NULL: none is known. */
struct rl_judged *rl_piece_region(const struct rl_judged *of, const struct rl_piece *p);

/* ---- memory.c ---- */

/* Finds its pieces, and sums its octets if it sends them from memory. */
void rl_memory_begin(struct rl_request *r);
/* It is over with @status. False: nothing is wrong with its memory. */
bool rl_memory_end(const struct rl_request *r, u8 status, struct rl_report *report);
/*
 * An answer is about to be polled: the datagrams that are under way may have left, and their memory
 * may be used again. The last moment to see that it was used before. How many reports.
 */
u32 rl_memory_answered(struct rl_report *reports, u32 max);
/* ---- post_rules.c ---- */

/* @cq: that it completes to; NULL: unknown. How many of @reports were made. */
u32 rl_judge_post(const struct rl_request *r, const struct rl_judged *cq,
		  struct rl_report *reports);

#endif
