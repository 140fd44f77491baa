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
