/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Start-up of a connection: the initiator's Request, the responder's Reply. Lock, @now: as in
 * link.h.
 */
#ifndef WEFT_CORE_START_H
#define WEFT_CORE_START_H

#include "link_types.h"

/*
 * Prepares *@o: what @cfg asks for, with the ULP's depths and private data.
 * -EINVAL: too much private data for a frame of cfg->rev.
 */
int weft_offer_init(struct weft_offer *o, const struct weft_mpa_cfg *cfg, u32 ird, u32 ord,
		    const void *pd, u32 pd_len);

/* TCP begins to connect. @l has a QP, in IDLE; @o is lent until FAILED, CONNECTED, or a
 * successor has it.
 */
void weft_link_connect(struct weft_link *l, struct weft_offer *o, u64 now);

/* WEFT_ACT_RETRY: @heir, new, with a TCP connection that begins, takes @l's place.
 * @l is dead. The lock is @l's: no other thread knows @heir.
 */
void weft_link_succeed(struct weft_link *l, struct weft_link *heir, u64 now);

/* The host could not go on with an initiator's start-up: @status is 0 - errno. */
u32 weft_link_connect_failed(struct weft_link *l, int status);

/* Connected, but the event could not be queued: the ULP gets a failure, @status, instead. */
u32 weft_link_withdraw(struct weft_link *l, int status, const struct weft_tcp_view *tcp, u64 now);

/* TCP has accepted a connection: the Request is to come. */
void weft_link_await_request(struct weft_link *l, u64 now);

/*
 * The ULP accepts a Request with its depths; @l has the QP already, in IDLE. Sends the
 * Reply and enters Full Operation. 0; -EINVAL: too much private data; -ECONNRESET: the
 * peer has gone; -ENOMEM, or what TCP said. After an error the host
 * releases the QP and calls weft_link_accept_failed().
 */
int weft_link_accept(struct weft_link *l, u32 ird, u32 ord, const void *pd, u32 pd_len,
		     const struct weft_tcp_view *tcp, u64 now);

/* The accept failed, or its event could not be queued: a peer that still waits is rejected. */
u32 weft_link_accept_failed(struct weft_link *l, const struct weft_tcp_view *tcp, u64 now);

/* The ULP rejects a Request, with at most 255 octets: a Reply with R=1. Nothing once the
 * link is dead.
 */
u32 weft_link_reject(struct weft_link *l, const void *pd, u32 pd_len,
		     const struct weft_tcp_view *tcp, u64 now);

/*
 * The ULP has no room for a Request (WEFT_ACT_ASK_ULP): the Request waits, and the host retries.
 * False once it has waited for startup_ms: then weft_link_reject().
 */
bool weft_link_ulp_is_full(struct weft_link *l, u64 now);

/* The ULP has the Request, and may take its time. */
void weft_link_ulp_was_asked(struct weft_link *l);

/* The listener is closed. The ULP may have forgotten the Request: it gets a deadline. */
void weft_link_orphan(struct weft_link *l, u64 now);

u32 weft_link_step_startup(struct weft_link *l, const struct weft_tcp_view *tcp, bool timeout,
			   u64 now);

#endif
