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

/*
 * A leftist heap: no part is larger than the part over it, and the way down to the right is the
 * shortest to a free place, at most log2(n + 1) steps.
 */

static u32 rank_of(const struct weft_share *s)
{
	return s ? s->rank : 0;
}

/* True: something has changed. */
static bool lean_left(struct weft_share *s)
{
	struct weft_share *left = s->left;
	u32 rank = s->rank;

	if (rank_of(left) < rank_of(s->right)) {
		s->left = s->right;
		s->right = left;
	}
	s->rank = rank_of(s->right) + 1;
	return s->rank != rank;
}

/* Makes one heap of two, either of which may be NULL, and places it at *@to under @over. */
static void merge(struct weft_share *a, struct weft_share *b, struct weft_share **to,
		  struct weft_share *over)
{
	struct weft_share *const top = over, *less;

	while (a && b) {
		less = a->n < b->n ? a : b;
		a = less == a ? b : a;
		b = less;
		*to = a;
		a->over = over;
		over = a;
		to = &a->right;
		a = a->right;
	}
	*to = a ? a : b;
	if (*to)
		(*to)->over = over;
	for (; over != top; over = over->over)
		lean_left(over);
}

static void enter_heap(struct weft_share *s)
{
	s->left = NULL;
	s->right = NULL;
	s->rank = 1;
	merge(s->above->parts, s, &s->above->parts, NULL);
}

static void leave_heap(struct weft_share *s)
{
	struct weft_share *over = s->over, **at = &s->above->parts;

	if (over)
		at = over->left == s ? &over->left : &over->right;
	merge(s->left, s->right, at, over);
	while (over && lean_left(over))
		over = over->over;
}

static void change(struct weft_share *s, u32 n)
{
	if (s->above && s->n)
		leave_heap(s);
	s->n = n;
	if (s->above && s->n)
		enter_heap(s);
}

void weft_share_add(struct weft_share *s)
{
	for (; s; s = s->above)
		change(s, s->n + 1);
}

void weft_share_remove(struct weft_share *s)
{
	for (; s; s = s->above)
		change(s, s->n - 1);
}

struct weft_share *weft_share_largest(struct weft_share *all)
{
	struct weft_share *s = all->parts, *largest = NULL;

	for (; s; s = s->parts)
		largest = s;
	return largest;
}
