/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Is there still a peer? Asked in Full Operation, and while a connection is held. */
#ifndef WEFT_CORE_ALIVE_H
#define WEFT_CORE_ALIVE_H

#include "link_types.h"

/*
 * Default, and the least that makes sense: keepalives have seconds. RNICs give up after 8 to 12
 * retransmissions, which takes about a minute.
 */
#define WEFT_DEAD_MS		60000
#define WEFT_DEAD_MS_MIN	3000

/*
 * Settings of TCP's keepalives for @dead_ms (0: none are needed, and are rare): two go unanswered
 * before it has passed, and TCP itself gives up only after 1.5 times the longer of both, as far as
 * 127 keepalives reach.
 */
struct weft_keepalive {
	u16 idle_s, interval_s;
	u8 count;
};

struct weft_keepalive weft_alive_keepalive(u32 dead_ms, u32 idle_dead_ms);

/* Full Operation begins: the first look at the peer's signs is due in cfg.dead_ms. */
void weft_alive_begin(struct weft_link *l, u64 now);

/*
 * Is the peer dead? No segment of any kind came for cfg.dead_ms, and TCP has asked for one twice
 * since: by retransmissions, window probes or keepalives. A stopped program is not dead: its TCP
 * answers. Sets when to look next. The host sets keepalives so that TCP asks twice in that time.
 * TCP's own time-out, should it come first, says the same.
 */
bool weft_alive_is_dead(struct weft_link *l, const struct weft_tcp_view *tcp, u64 now);

/* There is no QP any more. */
static inline void weft_alive_end(struct weft_link *l)
{
	WRITE_ONCE(l->alive_check, 0);
}

#endif
