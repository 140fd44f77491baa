/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Event channels as the program's descriptors. */
#ifndef RL_CHANNEL_H
#define RL_CHANNEL_H

#include "host/chan.h"

/* Makes the eventfd @fd of @c the program's descriptor: @fd; or -errno, and it is closed. */
int rl_chan_open(struct rl_chan *c, int fd);
/* The completion channel that @fd names, referenced, or NULL. */
struct rl_chan *rl_chan_of_fd(int fd);

#endif
