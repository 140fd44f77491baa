/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Waits for netdevs to go down and up, by the progress thread and a route netlink socket, while
 * asked to. Without that socket (a sandbox may forbid it) nothing is reported.
 */
#ifndef RL_PORT_WATCH_H
#define RL_PORT_WATCH_H

#include "device.h"

struct rl_port_watch;

/* A port of @d has changed. By the progress thread; it may not end the watch. */
typedef void rl_port_changed(const struct rl_device *d, bool up);

/* NULL: it cannot be had. */
struct rl_port_watch *rl_port_watch_begin(rl_port_changed *changed);
void rl_port_watch_end(struct rl_port_watch *w);
/* Was it begun before a fork() that made this process? Then it may belong to the parent. */
bool rl_port_watch_is_inherited(const struct rl_port_watch *w);

#endif
