/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The program's signal handlers, as a call that waits sees them.
 *
 * A call of the kernel that waits is restarted after a handler with SA_RESTART, and ends with EINTR
 * after any other; and any handler may leave it for ever, by siglongjmp(). A thread that waits by
 * ppoll() in place of read() can do the same in two cases:
 *
 * - There is no handler. A new one takes effect only when all threads have left such waits:
 *   hooks/signal.c waits for them, PATIENCE_MS at the most. Those that are late leave with their
 *   next wake-up, and until then no other thread begins.
 * - The program has one thread, and no handler of a fault. Signals that have a handler are blocked
 *   during the wait, and end it by rl_wait_fd(). They are delivered after it, when nothing is left
 *   open. With more threads the kernel would choose another one for a signal of the process.
 *
 * Handlers that are set by a bare system call are not seen before the next change.
 */
#ifndef RL_HANDLERS_H
#define RL_HANDLERS_H

#include <signal.h>

#include "port.h"

/* On the stack of the call that waits. */
struct rl_wait_signals {
	u32 changes;			/* handlers that were set before it began */
	bool begun;
	bool alone;			/* the program has one thread, and handlers */
	u64 blocked;			/* signals that were not blocked before */
};

/*
 * @w: zeroed, or begun: then it goes on. False: the caller is to wait in read(), and nothing has
 * begun. Inside the gate.
 */
bool rl_wait_begin(struct rl_wait_signals *w);
/*
 * Does nothing twice. If signals are blocked, outside the gate: they are delivered, and their
 * handlers may not return.
 */
void rl_wait_end(struct rl_wait_signals *w);
/* A descriptor that is readable if the caller is to end the wait; -1: it never is. */
int rl_wait_fd(const struct rl_wait_signals *w);
/*
 * It is readable. 0: a signal has arrived that restarts the call, or none: the caller ends the
 * wait, and may begin another; -EINTR: it ends the call; -EAGAIN: the caller is to wait in read().
 */
int rl_wait_fd_seen(const struct rl_wait_signals *w);
/* Before a wait in read(): 0, or -EINTR: a signal has arrived that ends the call. */
int rl_wait_left(const struct rl_wait_signals *w);
/* ppoll() has returned EINTR: as rl_wait_fd_seen(). */
int rl_wait_interrupted(const struct rl_wait_signals *w);
/* A handler was set: the caller is to wait in read() from now on. */
bool rl_wait_is_stale(const struct rl_wait_signals *w);

/*
 * Before a handler is set, and after that has succeeded or failed. Any context. Meanwhile signals
 * are blocked: @mask is for the thread's own mask; NULL: the call in between changes that.
 */
void rl_handlers_begin_change(u64 *mask);
void rl_handlers_end_change(const u64 *mask);
/* One was removed. */
void rl_handlers_removed(void);
/* A library above delivers signals later: threads with handlers wait in read(). */
void rl_handlers_deferred(void);

#endif
