/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Octets that the program has sent before the stream may send: they wait here as TCP's do for a
 * peer whose program has not accepted yet. Locking: its owner's.
 */
#ifndef RL_EARLY_H
#define RL_EARLY_H

#include "process/port.h"

/* Kept whatever SO_SNDBUF says, and at most. Between them it decides. */
#define RL_EARLY_MIN	(16 * 1024)
#define RL_EARLY_MAX	(1024 * 1024)

struct rl_early {
	u8 *mem;
	u32 size;			/* of mem */
	u32 from, len;			/* what waits; TCP may be sending what precedes it */
	u32 limit;			/* 0: SO_SNDBUF was not asked for yet */
};

/* Up to @max more octets may be added, to the queue of a socket @fd. No system call below MIN. */
u32 rl_early_room(struct rl_early *y, int fd, size_t max);
/* Where @n <= rl_early_room() octets go; NULL: no memory. They are added with y->len. */
u8 *rl_early_place(struct rl_early *y, u32 n);
/* All of it was sent, or never will be. */
void rl_early_free(struct rl_early *y);

#endif
