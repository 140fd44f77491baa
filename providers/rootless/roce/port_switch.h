/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A device's port goes down and up on request, of weft-ctl and of fault rules, as if its cable were
 * pulled: connections are held (host/cable.h), datagrams are lost, and the event is reported. The
 * netdev is not touched: if it is down, the port stays down. No lock.
 */
#ifndef RL_PORT_SWITCH_H
#define RL_PORT_SWITCH_H

#include "devices/device.h"

/* 0 or -ENOMEM: some connections go on. */
int rl_port_switch(const struct rl_device *d, bool up);

/* Down now, and up in @ms, or once an earlier request's time is over if that is later. */
void rl_port_flap(const struct rl_device *d, u32 ms);

#endif
