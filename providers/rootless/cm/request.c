// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "host/budget.h"
#include "process/thread.h"
#include "request.h"

/* The peers of further requests are refused. */
#define WAITING_MAX	256

void rl_requests_init(struct rl_requests *q, struct rl_watch *watch, u32 backlog)
{
	INIT_LIST_HEAD(&q->ids);
	q->watch = watch;
	weft_backlog_init(&q->backlog, backlog, 0);
	q->waiting = (struct weft_cap) { .most = WAITING_MAX };
}

void rl_request_enter(struct rl_requests *q, struct rl_cmid *child)
{
	rl_watch_get(q->watch);
	child->parent = q;
	child->request_state = RL_REQUEST_STARTING;
	list_add(&child->sibling, &q->ids);
}

/* There is room for one more, perhaps for one that waits. */
static void make_room(struct rl_requests *q)
{
	weft_backlog_answered(&q->backlog);
	if (q->waiting.n)
		rl_watch_poke(q->watch);
}

/* Undoes the counting of @child in its state. */
static void stop_counting(struct rl_requests *q, const struct rl_cmid *child)
{
	if (child->request_state == RL_REQUEST_WAITING)
		q->waiting.n--;
	else if (child->request_state == RL_REQUEST_QUEUED)
		make_room(q);
}

void rl_request_leave(struct rl_cmid *child)
{
	struct rl_requests *q = child->parent;

	if (!q)
		return;
	child->parent = NULL;
	list_del(&child->sibling);
	stop_counting(q, child);
	child->request_state = RL_REQUEST_TAKEN;
	rl_watch_put(q->watch);
}

void rl_request_taken(struct rl_cmid *child)
{
	if (child->parent && child->request_state == RL_REQUEST_QUEUED)
		make_room(child->parent);
	child->request_state = RL_REQUEST_TAKEN;
	if (child->conn)
		rl_budget_leave(child->conn);
}

bool rl_request_has_room(const struct rl_requests *q, const struct rl_cmid *child)
{
	return weft_backlog_may_report(&q->backlog, 0) &&
	       (!q->waiting.n || child->request_state == RL_REQUEST_WAITING);
}

void rl_request_queued(struct rl_requests *q, struct rl_cmid *child)
{
	stop_counting(q, child);
	child->request_state = RL_REQUEST_QUEUED;
	weft_backlog_report(&q->backlog);
}

bool rl_request_wait(struct rl_requests *q, struct rl_cmid *child)
{
	if (child->request_state == RL_REQUEST_WAITING)
		return true;
	if (weft_cap_is_full(&q->waiting))
		return false;
	stop_counting(q, child);
	child->request_state = RL_REQUEST_WAITING;
	child->turn = weft_backlog_place(&q->backlog);
	q->waiting.n++;
	return true;
}

struct rl_cmid *rl_request_first_waiting(const struct rl_requests *q)
{
	struct rl_cmid *child, *first = NULL;

	list_for_each_entry(child, &q->ids, sibling)
		if (child->request_state == RL_REQUEST_WAITING &&
		    (!first || child->turn < first->turn))
			first = child;
	return first;
}
