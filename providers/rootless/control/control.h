/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * --control: a process with a context serves requests of weft-ctl, by the progress thread and a
 * datagram socket of this user's folder (place.h).
 */
#ifndef RL_CONTROL_H
#define RL_CONTROL_H

/* The process opened a context. Does nothing without --control. Any lock but the engine's. */
void rl_control_begin(void);

#endif
