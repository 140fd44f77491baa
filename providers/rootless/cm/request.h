/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The requests of a listener that were not answered. The backlog bounds how many may wait for the
 * program; those behind them wait, in the order of their MPA Requests, until it has taken one.
 *
 * All with the table's lock of cm/id.c.
 */
#ifndef RL_CM_REQUEST_H
#define RL_CM_REQUEST_H

#include "id.h"

struct rl_requests {
	struct rl_watch *watch;		/* the listener's: each request has a reference */
	struct list_head ids;		/* the latest first */
	u32 room;			/* requests that may yet wait for the program */
	u32 waiting;			/* requests for which there is no room */
	u64 turns;			/* that were given to them so far */
};

/* @watch is the listener's; @backlog may wait for the program. */
void rl_requests_init(struct rl_requests *q, struct rl_watch *watch, u32 backlog);

/* @child is one from now on, whose MPA Request is to come. */
void rl_request_enter(struct rl_requests *q, struct rl_cmid *child);
/* A request is one no more. */
void rl_request_leave(struct rl_cmid *child);
/* The program has the event of a request. */
void rl_request_taken(struct rl_cmid *child);
/* May the event of @child be queued now? Those that wait already come first. */
bool rl_request_has_room(const struct rl_requests *q, const struct rl_cmid *child);
/* The event of @child was queued. */
void rl_request_queued(struct rl_requests *q, struct rl_cmid *child);
/* @child waits for room: false: there are too many. */
bool rl_request_wait(struct rl_requests *q, struct rl_cmid *child);
/* The first of those that wait; NULL: none does. */
struct rl_cmid *rl_request_first_waiting(const struct rl_requests *q);

#endif
