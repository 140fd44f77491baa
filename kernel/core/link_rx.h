/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Octets that a connection receives. Lock: as in link.h. */
#ifndef WEFT_CORE_LINK_RX_H
#define WEFT_CORE_LINK_RX_H

#include "link_types.h"

/*
 * Octets from the peer, in Full Operation in any context. Octets left in @in follow
 * a Reply and are to be offered again after weft_link_step(); or weft_host_chunk() had no
 * memory for them; or they wait for a receive, see weft_link_rx_resume().
 */
void weft_link_rx(struct weft_link *l, struct weft_cur *in);

/* As weft_qpc_rx_aim(): aim->len; 0, and *@aim is empty, if fewer than @least have a place. */
u32 weft_link_rx_aim(struct weft_link *l, struct weft_aim *aim, u32 least);
/* As weft_qpc_rx_landed(). */
void weft_link_rx_landed(struct weft_link *l, const struct weft_aim *aim, u32 n);

/* The host has octets that it cannot read: they are not missed silently. */
void weft_link_rx_unreadable(struct weft_link *l);

/*
 * A Send that waits for a receive may go on, after a doorbell: true if it does. What waits
 * behind it is to be read then.
 */
bool weft_link_rx_resume(struct weft_link *l);

#endif
