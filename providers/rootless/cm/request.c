// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "process/thread.h"
#include "request.h"

/* Beyond those the peer is refused. */
#define WAITING_MAX	256

void rl_requests_init(struct rl_requests *q, struct rl_watch *watch, u32 backlog)
{
	INIT_LIST_HEAD(&q->ids);
	q->watch = watch;
	q->room = backlog;
}

void rl_request_enter(struct rl_requests *q, struct rl_cmid *child)
{
	rl_watch_get(q->watch);
	child->parent = q;
	child->request_state = RL_REQUEST_STARTING;
	list_add(&child->sibling, &q->ids);
}

/* There is room for one more, and perhaps one that waits for it. */
static void make_room(struct rl_requests *q)
{
	q->room++;
	if (q->waiting)
		rl_watch_poke(q->watch);
}

/* @child is counted no more as what it was. */
static void stop_counting(struct rl_requests *q, const struct rl_cmid *child)
{
	if (child->request_state == RL_REQUEST_WAITING)
		q->waiting--;
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
}

bool rl_request_has_room(const struct rl_requests *q, const struct rl_cmid *child)
{
	return q->room && (!q->waiting || child->request_state == RL_REQUEST_WAITING);
}

void rl_request_queued(struct rl_requests *q, struct rl_cmid *child)
{
	stop_counting(q, child);
	child->request_state = RL_REQUEST_QUEUED;
	q->room--;
}

bool rl_request_wait(struct rl_requests *q, struct rl_cmid *child)
{
	if (child->request_state == RL_REQUEST_WAITING)
		return true;
	if (q->waiting >= WAITING_MAX)
		return false;
	stop_counting(q, child);
	child->request_state = RL_REQUEST_WAITING;
	child->turn = ++q->turns;
	q->waiting++;
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
