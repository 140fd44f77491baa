/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A mutex whose way without contention is one instruction to take it and one to drop it, inline: a
 * message takes half a dozen of them. Not recursive. Zeroed it is free; there is nothing to destroy,
 * and its memory may be freed by whoever takes it after the last other thread has dropped it.
 */
#ifndef RL_LOCK_H
#define RL_LOCK_H

#include "port.h"

struct rl_lock {
	u32 state;			/* atomic: 0 free, 1 held, 2 held and perhaps waited for */
};

void rl_lock_wait(struct rl_lock *l);
void rl_lock_wake(struct rl_lock *l);

static inline bool rl_lock_try(struct rl_lock *l)
{
	u32 free = 0;

	return __atomic_compare_exchange_n(&l->state, &free, 1, false, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED);
}

static inline void rl_lock(struct rl_lock *l)
{
	if (unlikely(!rl_lock_try(l)))
		rl_lock_wait(l);
}

static inline void rl_unlock(struct rl_lock *l)
{
	if (unlikely(__atomic_exchange_n(&l->state, 0, __ATOMIC_RELEASE) == 2))
		rl_lock_wake(l);
}

#endif
