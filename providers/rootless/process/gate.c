// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * An entering thread counts itself first and then checks whether the gate is shut; fork() shuts the
 * gate first and then reads the counts.
 */
#include <pthread.h>
#include <sched.h>

#include "api.h"
#include "own.h"

/* A signal handler may have left a call by siglongjmp(): that thread never leaves the gate. */
#define PATIENCE_MS 2000
/* An older fork handler of the program may wait for a thread that wants to enter. */
#define SHUT_MS 5000
/* Threads rarely share a cache line. */
#define SLOT_BITS 6
#define SLOTS (1 << SLOT_BITS)

static struct {
	struct {
		u32 n;				/* atomic */
	} __attribute__((aligned(64))) inside[SLOTS];
	bool shut;				/* atomic */
	pthread_mutex_t forking;		/* one at a time */
} g = { .forking = PTHREAD_MUTEX_INITIALIZER };

static bool heard;			/* atomic: our fork handlers are registered */

static __thread u32 depth;		/* entries of this thread */
static __thread int cancel_state, cancel_type;	/* of this thread, outside the gate */
static __thread u32 forks;		/* of this thread: a signal handler may fork in a fork */
static __thread void (*late)(bool is_child);	/* NULL: no signal is deferred */

static u32 *own_slot(void)
{
	u64 hash = ((uintptr_t)&depth >> 6) * 0x9e3779b97f4a7c15ull;

	return &g.inside[hash >> (64 - SLOT_BITS)].n;
}

static bool puts_off(void)
{
	return depth || forks;
}

/* It may not return. */
static void call_late(bool is_child)
{
	void (*f)(bool is_child) = late;

	late = NULL;
	f(is_child);
}

/* After the store that ends the deferral of signals. */
static void run_late(void)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (unlikely(late) && !puts_off())
		call_late(false);
}

/* ---- fork ---- */

static u32 count_inside(void)
{
	u32 i, n = 0;

	for (i = 0; i < SLOTS; i++)
		n += __atomic_load_n(&g.inside[i].n, __ATOMIC_SEQ_CST);
	return n;
}

static void gate_shut(void)
{
	u64 until;

	if (forks++)
		return;
	pthread_mutex_lock(&g.forking);
	__atomic_store_n(&g.shut, true, __ATOMIC_SEQ_CST);
	until = rl_now_ms() + PATIENCE_MS;
	while (count_inside() > !!depth && rl_now_ms() < until)
		sched_yield();
}

static void open_again(void)
{
	if (forks != 1) {
		forks -= !!forks;
		return;
	}
	/* First: a signal handler that finds the gate shut waits, except in the forking thread. */
	__atomic_store_n(&g.shut, false, __ATOMIC_SEQ_CST);
	pthread_mutex_unlock(&g.forking);
	forks = 0;
	run_late();
}

/* Other threads that tried to enter may be counted. */
static void count_only_own(void)
{
	u32 i;

	for (i = 0; i < SLOTS; i++)
		__atomic_store_n(&g.inside[i].n, 0, __ATOMIC_RELAXED);
	__atomic_store_n(own_slot(), !!depth, __ATOMIC_SEQ_CST);
	rl_own_forked();
}

static void open_in_child(void)
{
	count_only_own();
	if (late)
		call_late(true);
	open_again();
}

void rl_gate_forked(void)
{
	count_only_own();
	forks = 0;
	g.shut = false;
	g.forking = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

/*
 * Registered as late as possible: handlers run before fork() in reverse order, and a thread inside
 * may need a lock that an allocator's handler takes.
 */
static void gate_handle_forks(void)
{
	pthread_atfork(gate_shut, open_again, open_in_child);
	__atomic_store_n(&heard, true, __ATOMIC_RELEASE);
}

/* ---- in and out ---- */

static void gate_go_in(void)
{
	u32 *n = own_slot();
	u64 until = 0;

	for (;;) {
		__atomic_fetch_add(n, 1, __ATOMIC_SEQ_CST);
		/* The forking thread's other handlers may call us. */
		if (likely(!__atomic_load_n(&g.shut, __ATOMIC_SEQ_CST)) || forks)
			return;
		if (until && rl_now_ms() >= until)
			return;
		__atomic_fetch_sub(n, 1, __ATOMIC_SEQ_CST);
		until = until ?: rl_now_ms() + SHUT_MS;
		while (__atomic_load_n(&g.shut, __ATOMIC_ACQUIRE) && rl_now_ms() < until)
			sched_yield();
	}
}

static void gate_go_out(void)
{
	__atomic_fetch_sub(own_slot(), 1, __ATOMIC_SEQ_CST);
}

void rl_gate_enter(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int state, type;

	if (depth) {
		depth++;
		return;
	}
	/*
	 * First: a signal handler that ran after the next line might never return, and would leave
	 * the thread uncancellable.
	 */
	depth = 1;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	/* glibc checks only the type when it delivers a cancellation that was sent before this. */
	pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	cancel_state = state;
	cancel_type = type;
	if (unlikely(!__atomic_load_n(&heard, __ATOMIC_ACQUIRE)))
		pthread_once(&once, gate_handle_forks);
	gate_go_in();
}

void rl_gate_leave(void)
{
	int state = cancel_state, type = cancel_type;

	if (depth > 1) {
		depth--;
		return;
	}
	gate_go_out();
	pthread_setcancelstate(state, NULL);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	depth = 0;
	run_late();
	if (type == PTHREAD_CANCEL_DEFERRED)
		return;
	pthread_setcanceltype(type, NULL);
	/* glibc does not deliver a cancellation that the thread has missed. */
	pthread_testcancel();
}

void rl_gate_step_out(volatile bool *out)
{
	/* Before leaving, where the thread may be cancelled. */
	*out = depth == 1;
	if (*out)
		rl_gate_leave();
}

bool rl_gate_is_inside(void)
{
	return depth;
}

bool rl_gate_call_late(void (*f)(bool is_child))
{
	if (!puts_off())
		return false;
	late = f;
	return true;
}

bool rl_gate_is_shut(void)
{
	return __atomic_load_n(&g.shut, __ATOMIC_RELAXED);
}

void rl_gate_once(pthread_once_t *once, void (*init)(void))
{
	rl_gate_enter();
	pthread_once(once, init);
	rl_gate_leave();
}
