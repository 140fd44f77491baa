// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <stdlib.h>

#include "timers.h"

bool rl_timers_reserve(struct rl_timers *h, u32 most)
{
	struct rl_timer **at = realloc(h->at, ((size_t)most + 1) * sizeof(*at));

	if (!at)
		return false;
	h->at = at;
	return true;
}

static void put_at(struct rl_timers *h, u32 place, struct rl_timer *t)
{
	h->at[place] = t;
	t->place = place;
}

/* The earlier of the two below @place; 0: there is none. */
static u32 earlier_below(const struct rl_timers *h, u32 place)
{
	u32 left = 2 * place, right = left + 1;

	if (left > h->n)
		return 0;
	return right <= h->n && h->at[right]->due < h->at[left]->due ? right : left;
}

/* @place is free; @t goes there, up or down from it. */
static void timer_settle(struct rl_timers *h, u32 place, struct rl_timer *t)
{
	u32 below;

	for (; place > 1 && t->due < h->at[place / 2]->due; place /= 2)
		put_at(h, place, h->at[place / 2]);
	for (; (below = earlier_below(h, place)) && h->at[below]->due < t->due; place = below)
		put_at(h, place, h->at[below]);
	put_at(h, place, t);
}

void rl_timers_start(struct rl_timers *h, struct rl_timer *t, u64 due)
{
	t->due = due;
	h->n++;
	timer_settle(h, h->n, t);
}

void rl_timers_stop(struct rl_timers *h, struct rl_timer *t)
{
	u32 place = t->place;
	struct rl_timer *last;

	if (!place)
		return;
	t->place = 0;
	last = h->at[h->n--];
	if (last != t)
		timer_settle(h, place, last);
}
