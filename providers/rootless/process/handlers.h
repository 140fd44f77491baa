/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The program's signal handlers, as a call that waits sees them.
 *
 * A call of the kernel that waits is restarted after a handler with SA_RESTART, and ends with EINTR
 * after any other. ppoll() always ends. So a thread that waits by ppoll() in place of read() must
 * know which handler may have run. It knows if all that may run in it are of one kind. Otherwise it
 * must wait in read().
 *
 * A new handler takes effect only when all threads have left such waits: hooks/signal.c waits for
 * them, PATIENCE_MS at the most. Handlers that are set by a bare system call are not seen before
 * the next change.
 *
 * Between begin and end no handler runs in the thread, except in ppoll() with rl_wait_mask(): a
 * handler may never return, and must not leave what the thread does in the middle. Faults are not
 * blocked.
 */
#ifndef RL_HANDLERS_H
#define RL_HANDLERS_H

#include <signal.h>

#include "port.h"

/* On the stack of the call that waits. */
struct rl_wait_signals {
	u32 changes;			/* handlers that were set before it began */
	bool begun;
	bool blocked;			/* the thread's signals are; else there are no handlers */
	volatile bool out;		/* of the gate */
	u32 all_changes;		/* those of the thread, too */
	bool ends;			/* a handler ends the wait; else it goes on then */
	union {				/* what the thread's mask was, if it is blocked */
		u64 mask;
		sigset_t set;		/* libc's, which is longer */
	};
};

/*
 * @w: zeroed, or begun: then it goes on. False: the caller is to wait in read(), and nothing has
 * begun. Inside the gate.
 */
bool rl_wait_begin(struct rl_wait_signals *w);
/* The thread's mask is what it was: handlers may run, and never return. Does nothing twice. */
void rl_wait_end(struct rl_wait_signals *w);
/* For ppoll(); NULL: the thread's own. */
const sigset_t *rl_wait_mask(const struct rl_wait_signals *w);
/* A descriptor that is readable if the caller is to wait in read() from now on. */
int rl_wait_fd(void);
/* It is readable. */
void rl_wait_fd_seen(void);
/* ppoll() has returned EINTR: 0, the wait goes on; or -EINTR. */
int rl_wait_interrupted(const struct rl_wait_signals *w);
/* A handler that has run has set others: the caller is to wait in read() from now on. */
bool rl_wait_is_stale(const struct rl_wait_signals *w);
/* Signals are blocked, and the handler of one that has arrived will end the wait. */
bool rl_wait_is_ending(const struct rl_wait_signals *w);
/* The thread has left the call that began a wait. No rl_wait_end() will follow. */
void rl_wait_abandon(void);

/*
 * Before a handler is set, and after that has succeeded or failed. Any context. Meanwhile signals
 * are blocked: @mask is for the thread's own mask; NULL: the call in between changes that.
 */
void rl_handlers_begin_change(u64 *mask);
void rl_handlers_end_change(const u64 *mask);
/*
 * A library above calls the program's handlers later: threads that have a handler wait in
 * read().
 */
void rl_handlers_deferred(void);
/* One was removed. */
void rl_handlers_removed(void);

#endif
