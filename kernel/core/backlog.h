/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A listener's backlog, and caps on the connections that no program has taken. Pure decisions.
 * Lock: the host's; functions of a const object also run without it.
 */
#ifndef WEFT_CORE_BACKLOG_H
#define WEFT_CORE_BACKLOG_H

#include "../proto/port.h"

/* A listener's requests. */
struct weft_backlog {
	u32 size;			/* requests that the ULP takes before it answers one */
	u32 unanswered;			/* requests that it has */
	u32 retry_ms;			/* 0: it never gets more than size. Else it does not say
					 * when it has room: beyond size it gets one every
					 * retry_ms */
	u64 retry_at;			/* with retry_ms: no report before */
	u64 places;			/* given to those that wait */
};

void weft_backlog_init(struct weft_backlog *b, u32 size, u32 retry_ms);

/* May the first of those that wait be reported to the ULP? @now in milliseconds. */
bool weft_backlog_may_report(const struct weft_backlog *b, u64 now);

/* A request is being reported. True: it is beyond the ULP's size. */
bool weft_backlog_report(struct weft_backlog *b);

/* The ULP had no room, or was given one beyond its size: no report for retry_ms. */
void weft_backlog_pause(struct weft_backlog *b, u64 now);

/* A request that was reported is answered, or has gone. */
void weft_backlog_answered(struct weft_backlog *b);

/* The place of a request that begins to wait, never 0. The lowest place is first. */
u64 weft_backlog_place(struct weft_backlog *b);

/* Connections of one kind, which a host caps. */
struct weft_cap {
	u32 n;				/* that are there */
	u32 most;
	u32 leaving;			/* so many more may be on their way out */
};

/* Must one leave before another enters? weft_link_evict() decides whether it does. */
bool weft_cap_is_reached(const struct weft_cap *c);
/* Is the cap used up, and all that may be leaving, so that no other may enter? */
bool weft_cap_is_full(const struct weft_cap *c);
/* Are there twice as many as the cap: @pressed of weft_link_evict()? */
bool weft_cap_is_doubled(const struct weft_cap *c);

/*
 * A part of a cap: all of it, a user's part of that, a listener's part of the user's. The
 * host embeds them, zeroed but for above. A part that has nothing is linked nowhere.
 */
struct weft_share {
	struct weft_share *above;	/* NULL: it is all */
	struct weft_share *parts;	/* those that have something: a heap, the largest first */
	struct weft_share *over, *left, *right; /* its place in the heap of the share above */
	u32 rank;			/* steps to the right from here to a free place */
	u32 n;
};

/* One more, or one less, of @s and of all above it: log2 of their parts steps. */
void weft_share_add(struct weft_share *s);
void weft_share_remove(struct weft_share *s);

/*
 * The one to give way: the largest part of the largest part, so that none loses to a larger one.
 * NULL: @all has nothing. No search: a peer causes this call.
 */
struct weft_share *weft_share_largest(struct weft_share *all);

#endif
