// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The contexts, and one watch of all ports while there is a context. Inside the lock those of a
 * channel and of the progress thread are taken.
 */
#include <rdma/ib_user_verbs.h>

#include <infiniband/verbs.h>

#include "chan.h"
#include "devices/port_watch.h"
#include "port_events.h"

/* Of a context whose program reads none; it asks for the state when it reads them. */
#define MOST_UNREAD 256

static struct {
	pthread_mutex_t lock;
	struct list_head contexts;
	struct rl_port_watch *watch;	/* NULL: none, or it cannot be had */
} events = { .lock = PTHREAD_MUTEX_INITIALIZER, .contexts = LIST_HEAD_INIT(events.contexts) };

static bool has_room(const struct rl_context *ctx)
{
	return ctx->ports_reported - READ_ONCE(ctx->ports_read) < MOST_UNREAD;
}

/* A context that a child inherited and closed stays in the list, for it is never released there. */
static bool is_open(const struct rl_context *ctx)
{
	return __atomic_load_n(&ctx->file.refs, __ATOMIC_RELAXED);
}

static bool has_open_context(void)
{
	const struct rl_context *ctx;

	list_for_each_entry(ctx, &events.contexts, ports)
		if (is_open(ctx))
			return true;
	return false;
}

/* A parent's eventfd is its own, until this process takes its context over. */
static bool is_concerned(const struct rl_context *ctx, const struct rl_device *d)
{
	return ctx->dev == d && is_open(ctx) && !rl_file_is_inherited(&ctx->file);
}

void rl_port_events_report_death(const struct rl_device *d)
{
	struct rl_context *ctx;

	pthread_mutex_lock(&events.lock);
	list_for_each_entry(ctx, &events.contexts, ports)
		if (is_concerned(ctx, d) && rl_context_die(ctx))
			rl_context_report_death(ctx);
	pthread_mutex_unlock(&events.lock);
}

void rl_port_events_report(const struct rl_device *d, u32 type)
{
	const struct ib_uverbs_async_event_desc desc = { .element = RL_PORT, .event_type = type };
	struct rl_context *ctx;

	pthread_mutex_lock(&events.lock);
	list_for_each_entry(ctx, &events.contexts, ports) {
		if (!is_concerned(ctx, d) || !has_room(ctx))
			continue;
		ctx->ports_reported++;
		rl_chan_report(ctx->async, ctx, &ctx->ports_read, &desc, sizeof(desc));
	}
	pthread_mutex_unlock(&events.lock);
}

static void port_changed(const struct rl_device *d, bool up)
{
	/* For its programs it stays down. */
	if (rl_device_is_pulled(d))
		return;
	rl_port_events_report(d, up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR);
}

void rl_port_events_add(struct rl_context *ctx)
{
	struct rl_port_watch *old = NULL;

	pthread_mutex_lock(&events.lock);
	if (events.watch && rl_port_watch_is_inherited(events.watch)) {
		old = events.watch;
		events.watch = NULL;
	}
	if (!events.watch)
		events.watch = rl_port_watch_begin(port_changed);
	list_add_tail(&ctx->ports, &events.contexts);
	pthread_mutex_unlock(&events.lock);
	if (old)
		rl_port_watch_end(old);
}

void rl_port_events_remove(struct rl_context *ctx)
{
	struct rl_port_watch *last = NULL;

	pthread_mutex_lock(&events.lock);
	list_del_init(&ctx->ports);
	if (!has_open_context()) {
		last = events.watch;
		events.watch = NULL;
	}
	pthread_mutex_unlock(&events.lock);
	/* Its channel may be open for longer. */
	if (ctx->async)
		rl_chan_drop(ctx->async, ctx);
	if (last)
		rl_port_watch_end(last);
}
