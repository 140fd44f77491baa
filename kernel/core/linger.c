// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "linger.h"

/* Doorbells sooner than the run before took, less those later: at first, and at most. */
#define STREAK_MIN	8
#define STREAK_MAX	1024
/* Slots filled for each time that the host had to be called: more than that is worth it. */
#define SLOTS_MIN	4

void weft_linger_init(struct weft_linger *l)
{
	memset(l, 0, sizeof(*l));
	l->needed = STREAK_MIN;
}

bool weft_linger_doorbell_begins(struct weft_linger *l, const struct weft_qpc *qp, u64 now)
{
	WRITE_ONCE(l->began, now);
	l->calls++;
	if (now - READ_ONCE(l->ended) >= READ_ONCE(l->took)) {
		if (l->streak)
			l->streak--;
		return false;
	}
	return ++l->streak >= l->needed && !qp->linger && qp->state == WEFT_QPS_RTS;
}

void weft_linger_doorbell_ends(struct weft_linger *l, u64 now)
{
	WRITE_ONCE(l->took, now - READ_ONCE(l->began));
	WRITE_ONCE(l->ended, now);
}

static u32 posted_to(const struct weft_qpc *qp)
{
	return READ_ONCE(qp->sq.q.ring->user_idx);
}

/* What waits already, for TCP perhaps, is no reason to look again. */
void weft_linger_start(struct weft_linger *l, struct weft_qpc *qp)
{
	qp->linger = true;
	l->from = posted_to(qp);
	l->calls = 1;
}

bool weft_linger_is_worth_it(struct weft_linger *l, struct weft_qpc *qp)
{
	/* A user that lies here lingers at its own expense. */
	if (posted_to(qp) - l->from > SLOTS_MIN * l->calls) {
		l->needed = STREAK_MIN;
		weft_linger_start(l, qp);
		return true;
	}
	qp->linger = false;
	l->streak = 0;
	l->needed = min_t(u32, 2 * l->needed, STREAK_MAX);
	return false;
}
