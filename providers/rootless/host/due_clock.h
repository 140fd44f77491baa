/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Deadlines in nanoseconds, for the few that need them: octets that weft-ctl delays. The progress
 * thread's own have milliseconds. One timerfd for all, from the first on.
 */
#ifndef RL_DUE_CLOCK_H
#define RL_DUE_CLOCK_H

#include "process/list.h"
#include "process/thread.h"

/* Embedded in the object that @watch watches, and zeroed. */
struct rl_due {
	struct list_head node;
	u64 at_ns;			/* 0: none; the clock's lock */
	struct rl_watch *watch;
};

/*
 * At @ns the progress thread calls the timeout() of @w, to which @d belongs; 0: not any more.
 * False: there is no clock. The lock of @w's object may be held.
 */
bool rl_due_set(struct rl_due *d, struct rl_watch *w, u64 ns);

#endif
