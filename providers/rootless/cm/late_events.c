// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <stdlib.h>

#include "judge/adverse.h"
#include "late_events.h"
#include "process/lock.h"
#include "process/thread.h"

struct held {
	struct list_head node;
	struct rl_chan *chan;		/* referenced */
	struct rl_event *event;
	u64 at;				/* ms */
};

static void late_timeout(struct rl_watch *w);
static void late_revive(struct rl_watch *w);
static void late_release(struct rl_watch *w);

static const struct rl_watch_ops late_watch_ops = {
	.timeout = late_timeout,
	.revive = late_revive,
	.release = late_release,
};

static struct {
	struct rl_lock lock;
	struct list_head held;		/* lock; as they arose */
	struct rl_watch watch;
	bool is_watched;		/* lock */
} late = { .held = LIST_HEAD_INIT(late.held) };

/* ---- lock ---- */

/* @c: NULL, those of all channels; @until: those that are due by then. */
static void release_held(const struct rl_chan *c, u64 until)
{
	struct held *h, *after;

	list_for_each_entry_safe(h, after, &late.held, node) {
		if ((c && h->chan != c) || h->at > until)
			continue;
		list_del(&h->node);
		rl_chan_push(h->chan, h->event);
		rl_chan_put(h->chan);
		free(h);
	}
}

static void set_late_deadline(void)
{
	struct held *h;
	u64 at = 0;

	list_for_each_entry(h, &late.held, node)
		at = at && at < h->at ? at : h->at;
	rl_watch_set_deadline(&late.watch, at);
}

static bool is_holding(const struct rl_chan *c)
{
	struct held *h;

	list_for_each_entry(h, &late.held, node)
		if (h->chan == c)
			return true;
	return false;
}

static bool hold_event(struct rl_chan *c, struct rl_event *e, u32 ms)
{
	struct held *h = ms ? malloc(sizeof(*h)) : NULL;

	if (h && !late.is_watched) {
		rl_watch_init(&late.watch, &late_watch_ops);
		late.is_watched = !rl_watch_begin(&late.watch);
	}
	if (!h || !late.is_watched) {
		free(h);
		return false;
	}
	rl_chan_get(c);
	*h = (struct held){ .chan = c, .event = e, .at = rl_now_ms() + ms };
	list_add_tail(&h->node, &late.held);
	set_late_deadline();
	return true;
}

/* ---- the progress thread ---- */

static void late_timeout(struct rl_watch *w)
{
	rl_lock(&late.lock);
	release_held(NULL, rl_now_ms());
	set_late_deadline();
	rl_unlock(&late.lock);
}

static void late_revive(struct rl_watch *w)
{
	late_timeout(w);
}

static void late_release(struct rl_watch *w)
{
}

/* ---- channels ---- */

void rl_late_event_push(struct rl_chan *c, struct rl_event *e)
{
	bool is_held;

	if (likely(!rl_is_adverse)) {
		rl_chan_push(c, e);
		return;
	}
	rl_lock(&late.lock);
	if (is_holding(c)) {
		release_held(c, ~0ull);
		is_held = false;
	} else {
		is_held = hold_event(c, e, rl_adverse_event_ms());
	}
	if (!is_held)
		rl_chan_push(c, e);
	rl_unlock(&late.lock);
}

void rl_late_event_drop(struct rl_chan *c, const void *owner)
{
	struct held *h, *after;

	rl_lock(&late.lock);
	list_for_each_entry_safe(h, after, &late.held, node) {
		if (h->chan != c || h->event->owner != owner)
			continue;
		list_del(&h->node);
		rl_chan_put(h->chan);
		free(h->event);
		free(h);
	}
	rl_unlock(&late.lock);
	rl_chan_drop(c, owner);
}

void rl_late_event_move(struct rl_chan *c, struct rl_chan *to, const void *owner)
{
	rl_lock(&late.lock);
	release_held(c, ~0ull);
	rl_unlock(&late.lock);
	rl_chan_move(c, to, owner);
}
