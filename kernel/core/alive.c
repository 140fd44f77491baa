// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "alive.h"

/* One segment may be lost. */
#define UNANSWERED_MIN	2
/* A dead peer is noticed so much of dead_ms later, at most. */
#define LATE_DIVISOR	4

/* What TCP allows. */
#define KEEPALIVE_S_MAX	32767

struct weft_keepalive weft_alive_keepalive(u32 dead_ms)
{
	u32 idle = dead_ms / 2000, interval = DIV_ROUND_UP(dead_ms, 6000);

	if (!dead_ms)
		idle = interval = KEEPALIVE_S_MAX;
	return (struct weft_keepalive){
		.idle_s = (u16)min_t(u32, max_t(u32, idle, 1), KEEPALIVE_S_MAX),
		.interval_s = (u16)min_t(u32, max_t(u32, interval, 1), KEEPALIVE_S_MAX),
		.count = 4,
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

bool weft_alive_is_dead(struct weft_link *l, const struct weft_tcp_view *tcp, u64 now)
{
	const u32 dead = l->cfg.dead_ms, silent = min_t(u32, tcp->idle_ms, dead);

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
	if (silent == dead && tcp->unanswered >= UNANSWERED_MIN)
		return true;
	look_in(l, now, max_t(u32, dead - silent, dead / LATE_DIVISOR));
	return false;
}
