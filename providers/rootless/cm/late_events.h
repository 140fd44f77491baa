/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Events of rdma_cm that the program gets late (weft-run --adverse): one that is held reaches its
 * channel after some milliseconds, or together with the channel's next. Their order stays. Any
 * thread; the lock here is followed by the channel's.
 */
#ifndef RL_LATE_EVENTS_H
#define RL_LATE_EVENTS_H

#include "host/chan.h"

/* As rl_chan_push(), rl_chan_drop() and rl_chan_move(). */
void rl_late_event_push(struct rl_chan *c, struct rl_event *e);
void rl_late_event_drop(struct rl_chan *c, const void *owner);
void rl_late_event_move(struct rl_chan *c, struct rl_chan *to, const void *owner);

#endif
