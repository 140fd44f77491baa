/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A connection in Full Operation, and its end. Lock, @now: as in link.h. */
#ifndef WEFT_CORE_END_H
#define WEFT_CORE_END_H

#include "link_types.h"

u32 weft_link_step_open(struct weft_link *l, const struct weft_tcp_view *tcp, bool timeout,
			u64 now);
u32 weft_link_step_held(struct weft_link *l, const struct weft_tcp_view *tcp, bool timeout,
			u64 now);
/* As if TCP's questions had remained unanswered for too long. */
u32 weft_link_lose_peer(struct weft_link *l);
/*
 * The QP is being destroyed, and neither end has begun to close: the connection is held.
 * 0: it is not one to be held (cfg.hold_ms).
 */
u32 weft_link_hold_without_qp(struct weft_link *l, u64 now);
u32 weft_link_step_closing(struct weft_link *l, const struct weft_tcp_view *tcp, bool timeout,
			   u64 now);
/* Without a QP: its first time did not do. */
bool weft_link_is_late(const struct weft_link *l);
/* FIN, once all is said; then the peer's is awaited. */
u32 weft_link_start_closing(struct weft_link *l, const struct weft_tcp_view *tcp, u64 now);
/* FIN, unless it is out, or octets wait that TCP has not taken. */
u32 weft_link_shut(struct weft_link *l);
u32 weft_link_die(struct weft_link *l);

#endif
