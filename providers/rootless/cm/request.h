/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The unanswered requests of a listener. The backlog limits how many may be queued for the program;
 * requests beyond the backlog wait, in the order of their MPA Requests, until it has read one.
 *
 * All with the table's lock of cm/id.c.
 */
#ifndef RL_CM_REQUEST_H
#define RL_CM_REQUEST_H

#include "id.h"
#include "kernel/core/backlog.h"

struct rl_requests {
	struct rl_watch *watch;		/* the listener's: each request has a reference */
	struct list_head ids;		/* the latest first */
	struct weft_backlog backlog;	/* requests that the program has */
	struct weft_cap waiting;	/* requests beyond the backlog */
};

/* @watch is the listener's; @backlog requests may be queued. */
void rl_requests_init(struct rl_requests *q, struct rl_watch *watch, u32 backlog);

/* Adds @child, whose MPA Request has not arrived yet. */
void rl_request_enter(struct rl_requests *q, struct rl_cmid *child);
/* Removes a request. */
void rl_request_leave(struct rl_cmid *child);
/* The program has read the event of a request. */
void rl_request_taken(struct rl_cmid *child);
/* May the event of @child be queued now? Waiting requests come first. */
bool rl_request_has_room(const struct rl_requests *q, const struct rl_cmid *child);
/* The event of @child was queued. */
void rl_request_queued(struct rl_requests *q, struct rl_cmid *child);
/* @child waits for room. False: too many do. */
bool rl_request_wait(struct rl_requests *q, struct rl_cmid *child);
/* The first waiting request; NULL: none. */
struct rl_cmid *rl_request_first_waiting(const struct rl_requests *q);

#endif
