// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "alive.h"
#include "qp.h"

/* One segment may be lost. */
#define UNANSWERED_MIN	2
/* A dead peer is noticed so much of dead_ms later, at most. */
#define LATE_DIVISOR	4

/* What TCP allows. */
#define KEEPALIVE_S_MAX	32767
#define KEEPALIVE_COUNT_MAX	127

static u32 clamp_seconds(u32 s)
{
	return min_t(u32, max_t(u32, s, 1), KEEPALIVE_S_MAX);
}

struct weft_keepalive weft_alive_keepalive(u32 dead_ms, u32 idle_dead_ms)
{
	u32 dead_s = dead_ms / 1000, longest_s = max_t(u32, dead_ms, idle_dead_ms) / 1000 + 1;
	u32 idle = dead_ms ? clamp_seconds(dead_s / 2) : KEEPALIVE_S_MAX;
	u32 interval = dead_ms ? clamp_seconds(DIV_ROUND_UP(dead_s, 6)) : KEEPALIVE_S_MAX;
	/* 1.5 times as long: a look may be late. */
	u32 count = DIV_ROUND_UP(longest_s + longest_s / 2, interval);

	return (struct weft_keepalive){
		.idle_s = (u16)idle,
		.interval_s = (u16)interval,
		.count = (u8)min_t(u32, count, KEEPALIVE_COUNT_MAX),
	};
}

static void look_in(struct weft_link *l, u64 now, u32 ms)
{
	WRITE_ONCE(l->alive_check, now + max_t(u32, ms, 1));
}

void weft_alive_begin(struct weft_link *l, u64 now)
{
	if (l->cfg.dead_ms)
		look_in(l, now, l->cfg.dead_ms);
}

/* An InfiniBand QP learns of its peer's death by its requests alone. */
static u32 limit_of(const struct weft_link *l)
{
	return l->qp && l->qp->by_hand && !weft_qpc_has_sends(l->qp) ?
		max_t(u32, l->cfg.dead_ms, l->cfg.idle_dead_ms) : l->cfg.dead_ms;
}

bool weft_alive_is_dead(struct weft_link *l, const struct weft_tcp_view *tcp, u64 now)
{
	const u32 dead = l->cfg.dead_ms, limit = limit_of(l);
	const u32 silent = min_t(u32, tcp->idle_ms, limit);

	if (tcp->closed && tcp->error == -ETIMEDOUT)
		return true;
	if (!dead) {
		weft_alive_end(l);
		return false;
	}
	/* dead_ms may have become less. */
	if (!l->alive_check || l->alive_check > now + dead) {
		weft_alive_begin(l, now);
		return false;
	}
	if (now < l->alive_check)
		return false;
	if (silent == limit && tcp->unanswered >= UNANSWERED_MIN)
		return true;
	/* Requests may be posted meanwhile: then dead_ms counts. */
	look_in(l, now, silent < dead ? dead - silent : max_t(u32, dead / LATE_DIVISOR, 1));
	return false;
}
