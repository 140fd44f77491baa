/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A connection, from TCP's handshake to its end: start-up in both roles, Full
 * Operation, the ways out, deadlines. Events in, actions out.
 *
 * Sequential: the connection's lock is held around every function. No function reads a
 * clock: @now is in milliseconds, of any clock that does not go back. Octets come by
 * weft_link_rx() as they arrive. Everything that is decided about the connection as a
 * whole is decided by weft_link_step(), which the host calls where it may sleep: when
 * weft_host_wake() asked for it, when TCP's state has changed, when octets came in
 * start-up, when a graceful close or an error was asked for, and when the deadline has
 * passed. What the host is to do then comes back as WEFT_ACT_ bits.
 *
 * link_types.h has the fields. Files, each with its header and each calling only those before it:
 * send.c (the send run), link_rx.c (received octets), alive.c (is there still a peer?), end.c (Full
 * Operation and what follows it), start.c (start-up), link.c (life, what the host asks for).
 */
#ifndef WEFT_CORE_LINK_H
#define WEFT_CORE_LINK_H

#include "end.h"
#include "link_rx.h"
#include "qp.h"
#include "send.h"
#include "start.h"

/* A zeroed *@l: awaits a Request, or weft_link_connect(). */
void weft_link_init(struct weft_link *l, bool initiator);

/* When weft_link_step() is to be called, if nothing calls for it before; 0: never. */
u64 weft_link_next_step(const struct weft_link *l);

/* Acts on what has come, what is said, what TCP looks like, and on time. */
u32 weft_link_step(struct weft_link *l, const struct weft_tcp_view *tcp, u64 now);

/* The device is removed: nothing more is sent to the peer. */
u32 weft_link_kill(struct weft_link *l);

/*
 * The host has too many like this one. It dies if nothing is lost with it: the Request is not
 * whole yet; it was refused; or no QP is left, and the peer has all that was said. If they are
 * twice too many (@pressed), also if the peer is slow to take it. Else 0: it stays, and its
 * deadline bounds it.
 */
u32 weft_link_evict(struct weft_link *l, const struct weft_tcp_view *tcp, bool pressed);

/* The QP is being destroyed: the connection lets it go. */
u32 weft_link_forget(struct weft_link *l, const struct weft_tcp_view *tcp, u64 now);

/*
 * The user disconnects: the connection is not held (cfg.hold_ms) from now on, and ends if its QP
 * has failed. 0: weft_qpc_close() ends one whose QP is well.
 */
u32 weft_link_hang_up(struct weft_link *l, const struct weft_tcp_view *tcp, u64 now);

/*
 * Releases the QP: its Terminate is sent, octets are discarded from now on. It is flushed if it
 * ever ran, or weft_host_kick() has asked for the rest of the flush; a QP by hand that is not in
 * error is unplugged. The host ends its lingering.
 */
void weft_link_release_qp(struct weft_link *l);

#endif
