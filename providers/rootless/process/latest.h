/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Tells which element of an array is the latest value. An element is not changed in place: a reader
 * may be copying it, in a signal handler or in another thread. No lock: any thread, any handler.
 *
 * A reader that is interrupted while as many values are set as the array has may read a mixture.
 */
#ifndef RL_LATEST_H
#define RL_LATEST_H

#include "port.h"

struct rl_latest {
	u32 given;			/* atomic: elements used so far */
	u32 now;			/* atomic: index of the latest */
};

/* The index at which to write the next value, of @places. */
static inline u32 rl_latest_place(struct rl_latest *l, u32 places)
{
	return __atomic_add_fetch(&l->given, 1, __ATOMIC_RELAXED) % places;
}

/* The value at @place is the latest from now on: the index of the previous one. */
static inline u32 rl_latest_publish(struct rl_latest *l, u32 place)
{
	return __atomic_exchange_n(&l->now, place, __ATOMIC_ACQ_REL);
}

static inline u32 rl_latest_now(const struct rl_latest *l)
{
	return __atomic_load_n(&l->now, __ATOMIC_ACQUIRE);
}

#endif
