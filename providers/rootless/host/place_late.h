/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Octets that a connection has read, and that are not placed yet (weft-run --adverse): those of a
 * run of reads reach the program's memory when it ends, the last ones first, and before a
 * completion that promises them. Of the thread that reads, with the connection's lock.
 */
#ifndef RL_PLACE_LATE_H
#define RL_PLACE_LATE_H

#include "kernel/core/host.h"

/* A run of reads begins: from now on rl_place_late() may keep octets. */
void rl_place_late_begin(void);
/* Keeps the @len octets for @to in @r: false if they are to be placed now. */
bool rl_place_late(struct weft_region *r, u8 *to, struct weft_cur *from, u32 len);
/* What is kept is placed now. */
void rl_place_late_flush(void);
void rl_place_late_end(void);

#endif
