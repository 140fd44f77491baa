/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The program's signal handlers, as a call that waits sees them.
 *
 * A call of the kernel that waits is restarted after a handler with SA_RESTART, and ends with EINTR
 * after any other; and any handler may leave it for ever, by siglongjmp(). A thread that waits by
 * ppoll() in place of read() could do neither as it should, so it does that only while there is no
 * handler.
 *
 * A new handler takes effect only when all threads have left such waits: hooks/signal.c waits for
 * them, PATIENCE_MS at the most. Handlers that are set by a bare system call are not seen before
 * the next change.
 */
#ifndef RL_HANDLERS_H
#define RL_HANDLERS_H

#include <signal.h>

#include "port.h"

/* On the stack of the call that waits. */
struct rl_wait_signals {
	u32 changes;			/* handlers that were set before it began */
	bool begun;
};

/*
 * @w: zeroed, or begun: then it goes on. False: the caller is to wait in read(), and nothing has
 * begun. Inside the gate.
 */
bool rl_wait_begin(struct rl_wait_signals *w);
/* Does nothing twice. */
void rl_wait_end(struct rl_wait_signals *w);
/* A descriptor that is readable if the caller is to wait in read() from now on. */
int rl_wait_fd(void);
/* It is readable. */
void rl_wait_fd_seen(void);
/* ppoll() has returned EINTR: 0, the wait goes on; or -EINTR. */
int rl_wait_interrupted(const struct rl_wait_signals *w);

/*
 * Before a handler is set, and after that has succeeded or failed. Any context. Meanwhile signals
 * are blocked: @mask is for the thread's own mask; NULL: the call in between changes that.
 */
void rl_handlers_begin_change(u64 *mask);
void rl_handlers_end_change(const u64 *mask);
/* One was removed. */
void rl_handlers_removed(void);

#endif
