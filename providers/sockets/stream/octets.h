/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A queue of octets in a ring of memory: what a stream has received and its program has not.
 * Locking: its owner's.
 */
#ifndef RL_OCTETS_H
#define RL_OCTETS_H

#include <stddef.h>
#include <sys/uio.h>

#include "process/port.h"

/* Of an idle queue's memory, what stays. */
#define RL_OCTETS_KEPT	4096

struct rl_octets {
	u8 *mem;
	u32 size;
	u32 from, len;			/* the first octet's place; how many there are */
	u32 added;			/* in all, modulo 2^32 */
};

/* Pages that were never filled cost nothing. False: no memory. */
bool rl_octets_init(struct rl_octets *o, u32 size);
void rl_octets_fini(struct rl_octets *o);

static inline u32 rl_octets_room(const struct rl_octets *o)
{
	return o->size - o->len;
}

/* Where the next @len <= rl_octets_room() octets go: one or two places, how many is returned. */
int rl_octets_places(const struct rl_octets *o, u32 len, struct iovec iov[2]);
/* @len octets have been put there. */
void rl_octets_add(struct rl_octets *o, u32 len);

/*
 * Copies up to @max octets to @to under guard: how many, or -EFAULT. They stay in the queue.
 */
ssize_t rl_octets_copy(const struct rl_octets *o, const struct iovec *to, int n, size_t max);
/* Drops the first @len octets. */
void rl_octets_drop(struct rl_octets *o, u32 len);

/* Does it have more pages than it may keep while nothing happens? */
static inline bool rl_octets_is_fat(const struct rl_octets *o)
{
	return o->from + o->len > RL_OCTETS_KEPT;
}
/* Pages without octets of the queue are the kernel's again. */
void rl_octets_trim(struct rl_octets *o);

#endif
