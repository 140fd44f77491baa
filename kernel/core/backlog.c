// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "backlog.h"

void weft_backlog_init(struct weft_backlog *b, u32 size, u32 retry_ms)
{
	*b = (struct weft_backlog) { .size = size, .retry_ms = retry_ms };
}

bool weft_backlog_may_report(const struct weft_backlog *b, u64 now)
{
	return b->retry_ms ? now >= READ_ONCE(b->retry_at) : b->unanswered < b->size;
}

bool weft_backlog_report(struct weft_backlog *b)
{
	return ++b->unanswered > b->size;
}

void weft_backlog_pause(struct weft_backlog *b, u64 now)
{
	WRITE_ONCE(b->retry_at, now + b->retry_ms);
}

void weft_backlog_answered(struct weft_backlog *b)
{
	if (--b->unanswered < b->size)
		WRITE_ONCE(b->retry_at, 0);
}

u64 weft_backlog_place(struct weft_backlog *b)
{
	return ++b->places;
}

bool weft_cap_is_reached(const struct weft_cap *c)
{
	return READ_ONCE(c->n) >= c->most;
}

bool weft_cap_is_full(const struct weft_cap *c)
{
	return READ_ONCE(c->n) >= c->most + c->leaving;
}

bool weft_cap_is_doubled(const struct weft_cap *c)
{
	return READ_ONCE(c->n) > 2 * c->most;
}

/* ---- shares ---- */

static void link_share(struct weft_share *s)
{
	s->next = s->above->parts;
	s->prev = &s->above->parts;
	if (s->next)
		s->next->prev = &s->next;
	s->above->parts = s;
}

static void unlink_share(struct weft_share *s)
{
	*s->prev = s->next;
	if (s->next)
		s->next->prev = s->prev;
}

void weft_share_add(struct weft_share *s)
{
	for (; s; s = s->above)
		if (!s->n++ && s->above)
			link_share(s);
}

void weft_share_remove(struct weft_share *s)
{
	for (; s; s = s->above)
		if (!--s->n && s->above)
			unlink_share(s);
}

/* The oldest of equals. */
static struct weft_share *largest_part(const struct weft_share *s)
{
	struct weft_share *part, *largest = s->parts;

	for (part = s->parts; part; part = part->next)
		if (part->n >= largest->n)
			largest = part;
	return largest;
}

struct weft_share *weft_share_largest(struct weft_share *all)
{
	struct weft_share *s = largest_part(all), *largest = NULL;

	for (; s; s = largest_part(s))
		largest = s;
	return largest;
}
