// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <linux/futex.h>

#include "api.h"
#include "raw.h"

/* A thread that has waited does not know of others: it marks the lock as waited for. */
void rl_lock_wait(struct rl_lock *l)
{
	while (__atomic_exchange_n(&l->state, 2, __ATOMIC_ACQUIRE))
		rl_raw(SYS_futex, &l->state, FUTEX_WAIT_PRIVATE, 2, NULL);
}

void rl_lock_wake(struct rl_lock *l)
{
	rl_raw(SYS_futex, &l->state, FUTEX_WAKE_PRIVATE, 1);
}
