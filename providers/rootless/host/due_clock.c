// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <pthread.h>
#include <stdlib.h>
#include <sys/timerfd.h>

#include "due_clock.h"
#include "process/gate.h"
#include "process/lock.h"
#include "process/raw.h"

struct due_clock {
	struct rl_watch watch;		/* first: the references */
	int fd;				/* hidden */
};

static struct {
	struct rl_lock lock;		/* a leaf but for the progress thread's */
	struct due_clock *clock;	/* NULL: none yet */
	struct list_head waiting;
	u64 armed_ns;			/* the timerfd is set for; 0: not set */
} due = { .waiting = LIST_HEAD_INIT(due.waiting) };

/* ---- the timerfd ---- */

static int open_due_fd(void)
{
	int fd = (int)rl_raw(SYS_timerfd_create, CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);

	return fd < 0 ? fd : rl_fd_hide(fd);
}

/* The lock. */
static void arm_due_clock(u64 ns)
{
	const struct itimerspec at = { .it_value = {
		.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000) } };

	due.armed_ns = ns;
	rl_raw(SYS_timerfd_settime, due.clock->fd, TFD_TIMER_ABSTIME, &at, NULL);
}

/* The lock. The first that is due; NULL, and *@next is when one will be: 0 is never. */
static struct rl_due *first_due(u64 now, u64 *next)
{
	struct rl_due *d;

	*next = 0;
	list_for_each_entry(d, &due.waiting, node) {
		if (d->at_ns <= now)
			return d;
		if (!*next || d->at_ns < *next)
			*next = d->at_ns;
	}
	return NULL;
}

static void stop_due(struct rl_due *d)
{
	if (!d->at_ns)
		return;
	list_del(&d->node);
	d->at_ns = 0;
}

/* A watch that timed out, referenced; NULL: none, and the clock is set for the next. */
static struct rl_watch *take_due(void)
{
	struct rl_watch *w = NULL;
	struct rl_due *d;
	u64 next;

	rl_lock(&due.lock);
	d = first_due(rl_now_ns(), &next);
	if (d) {
		w = d->watch;
		rl_watch_get(w);
		stop_due(d);
	} else if (next) {
		arm_due_clock(next);
	} else {
		due.armed_ns = 0;
	}
	rl_unlock(&due.lock);
	return w;
}

static struct due_clock *due_clock_of(struct rl_watch *w)
{
	return container_of(w, struct due_clock, watch);
}

static void due_clock_ready(struct rl_watch *w, u32 events)
{
	struct rl_watch *expired;
	u64 count;

	rl_raw(SYS_read, due_clock_of(w)->fd, &count, sizeof(count));
	while ((expired = take_due())) {
		expired->ops->timeout(expired);
		rl_watch_put(expired);
	}
}

static void due_clock_timeout(struct rl_watch *w)
{
}

/* In a child: its parent's, which end_due_clock_in_child() has left. */
static void due_clock_revive(struct rl_watch *w)
{
	if (READ_ONCE(due.clock) == due_clock_of(w))
		return;
	rl_watch_end(w);
	rl_watch_put(w);
}

static void due_clock_release(struct rl_watch *w)
{
	free(due_clock_of(w));
}

static const struct rl_watch_ops due_clock_ops = {
	.ready = due_clock_ready,
	.timeout = due_clock_timeout,
	.revive = due_clock_revive,
	.release = due_clock_release,
};

/* The timerfd is the parent's, too. Who takes over what waits sets its time again. */
static void end_due_clock_in_child(void)
{
	struct rl_due *d, *next;

	list_for_each_entry_safe(d, next, &due.waiting, node)
		stop_due(d);
	if (due.clock)
		rl_fd_close_inherited(due.clock->fd);
	due.clock = NULL;
	due.armed_ns = 0;
}

static void due_clock_handle_forks(void)
{
	pthread_atfork(NULL, NULL, end_due_clock_in_child);
}

static struct due_clock *due_clock_new(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct due_clock *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	rl_gate_once(&once, due_clock_handle_forks);
	rl_watch_init(&c->watch, &due_clock_ops);
	c->fd = open_due_fd();
	if (c->fd >= 0 && !rl_thread_watch(&c->watch, c->fd, EPOLLIN))
		return c;
	if (c->fd >= 0)
		rl_fd_close_hidden(c->fd);
	rl_watch_put(&c->watch);
	return NULL;
}

bool rl_due_set(struct rl_due *d, struct rl_watch *w, u64 ns)
{
	bool ok = true;

	rl_lock(&due.lock);
	stop_due(d);
	if (ns && !due.clock)
		due.clock = due_clock_new();
	if (ns)
		ok = due.clock;
	if (ns && ok) {
		d->watch = w;
		d->at_ns = ns;
		list_add_tail(&d->node, &due.waiting);
		if (!due.armed_ns || ns < due.armed_ns)
			arm_due_clock(ns);
	}
	rl_unlock(&due.lock);
	return ok;
}
