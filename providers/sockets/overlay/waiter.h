/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Threads that wait for one socket. One of them may take from TCP what another waits for, so a
 * thread that sleeps polls an eventfd of its own, too, which becomes readable when the socket
 * changes. Inside the gate.
 */
#ifndef RL_WAITER_H
#define RL_WAITER_H

#include <time.h>

#include "process/port.h"

struct rl_sock;
struct rl_sleeper;

struct rl_waiter {
	u32 before;			/* the socket's changes, before the caller looked */
	struct rl_sleeper *sleeper;	/* NULL: awake */
};

/* Before the caller looks at the socket. */
void rl_waiter_begin(const struct rl_sock *sk, struct rl_waiter *w);

/*
 * The call with the stack frame @frame sleeps from now on, and holds a reference to @sk. Returns
 * the eventfd to poll beside the descriptor, or
 *  -1: there is no other thread;
 *  -EAGAIN: the socket has changed since rl_waiter_begin();
 *  -EMFILE: none is free, or another call of this thread uses it: the caller looks again soon.
 */
int rl_waiter_sleep(struct rl_sock *sk, struct rl_waiter *w, const void *frame);
/* After a sleep. */
void rl_waiter_wake(struct rl_waiter *w);
/* After all sleeps of a call: the eventfd is not readable any more. */
void rl_waiter_clear(int eventfd);

/* A call with the frame @frame begins: calls that siglongjmp() has left sleep no longer. */
void rl_waiter_reap(const void *frame);
/* Does another call of this thread sleep? A signal handler makes this one, or has left that one. */
bool rl_waiter_is_sleeping(const struct rl_sock *sk);
void rl_waiters_in_child(void);

/* The socket @sk has changed: POLL bits, as of rl_stream_tell(). Any lock but leaves. */
void rl_sock_changed(void *sk, unsigned int events);

/* The time until @until_ns or @deadline_ms, whichever comes first; NULL: both are 0, for ever. */
struct timespec *rl_time_left(u64 until_ns, u64 deadline_ms, struct timespec *t);
/* No wake-up can be had: @left, in @t, or a moment. */
struct timespec *rl_time_moment(struct timespec *left, struct timespec *t);

#endif
