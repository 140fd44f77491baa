/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A mutex that is taken and dropped by an instruction each, inline, if no other thread wants it: a
 * message takes half a dozen, and libc's takes 57 instructions each time. Its spin locks take few,
 * but a lock may be held during a call of TCP. Not recursive. Zeroed, it is free. There is nothing
 * to destroy: its memory may be freed once it is taken or known to be free.
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
