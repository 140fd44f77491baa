// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>

#include "api.h"
#include "raw.h"

/* Octets of sigset_t that the kernel knows. */
#define MASK_SIZE	8
#define BIT(sig)	(1ull << ((sig) - 1))
/* If one is blocked when an instruction causes it, the process ends. */
#define FAULTS		(BIT(SIGSEGV) | BIT(SIGBUS) | BIT(SIGILL) | BIT(SIGFPE) |	\
			 BIT(SIGTRAP) | BIT(SIGSYS))
/* libc's own: to cancel a thread, to set a thread's ids. They restart. */
#define LIBCS		(BIT(32) | BIT(33))
#define BLOCKED		(~(FAULTS | LIBCS))
/* A thread that waits is slow to leave only if it does not get a CPU. */
#define PATIENCE_MS	20

static bool deferred;			/* by a library above: handlers do not run in ppoll() */

/* All atomic, and in one order. */
static u32 changing;			/* threads that set a handler */
static u32 changes;			/* handlers set so far */
static u32 removals;
/*
 * Threads between begin and end, below an epoch. A thread that has left its wait by siglongjmp() is
 * counted still: whoever loses patience with it begins a new epoch, and it is counted no more.
 */
static u64 waiting;
static int kick = -1;			/* hidden; readable while threads are to leave; -1: none */

/* Of this thread. */
static __thread bool is_waiting;	/* counted in waiting */
static __thread u32 own_epoch;		/* then */
static __thread u32 own_changing;	/* its part of changing */
static __thread u32 own_changes;	/* its part of changes */
static __thread struct {
	bool known;
	u32 changes, removals;		/* what they were then */
	u64 restart, end;		/* signals with handlers of either kind */
} seen;

/* ---- which handlers there are ---- */

/* The action of a fault that the guard intercepts is the one that the program asked for. */
static bool ask_guard(int sig, u64 *restart, u64 *end)
{
	struct sigaction a;

	if (!rl_guard_action(sig, NULL, &a))
		return false;
	if (a.sa_flags & SA_SIGINFO || (a.sa_handler != SIG_DFL && a.sa_handler != SIG_IGN))
		*(a.sa_flags & SA_RESTART ? restart : end) |= BIT(sig);
	return true;
}

static void ask_kernel(int sig, u64 *restart, u64 *end)
{
	struct {
		void (*handler)(int sig);
		unsigned long flags;
		void *restorer;
		u64 mask;
	} a = { 0 };

	if (!rl_raw(SYS_rt_sigaction, sig, NULL, &a, MASK_SIZE) && a.handler != SIG_DFL &&
	    a.handler != SIG_IGN)
		*(a.flags & SA_RESTART ? restart : end) |= BIT(sig);
}

static void look_again(u32 now, u32 removed)
{
	u64 restart = 0, end = 0;
	int sig;

	for (sig = 1; sig <= 64; sig++)
		if (!(BIT(sig) & LIBCS) && !ask_guard(sig, &restart, &end))
			ask_kernel(sig, &restart, &end);
	seen.restart = restart;
	seen.end = end;
	seen.changes = now;
	seen.removals = removed;
	seen.known = true;
}

static void look(void)
{
	u32 now = __atomic_load_n(&changes, __ATOMIC_SEQ_CST);
	u32 removed = __atomic_load_n(&removals, __ATOMIC_SEQ_CST);

	if (unlikely(!seen.known || seen.changes != now || seen.removals != removed))
		look_again(now, removed);
}

/* ---- waits ---- */

static u32 load(const u32 *n)
{
	return __atomic_load_n(n, __ATOMIC_SEQ_CST);
}

static u32 waits_counted(void)
{
	return (u32)__atomic_load_n(&waiting, __ATOMIC_SEQ_CST);
}

/* By other threads. A handler that has interrupted a wait may set handlers, too. */
static u32 others_changes(void)
{
	return load(&changes) - own_changes;
}

/* The descriptor is its parent's, too. */
static void child_begins(void)
{
	waiting = (u64)own_epoch << 32 | is_waiting;
	changing = own_changing;
	kick = -1;
}

static void handle_forks(void)
{
	pthread_atfork(NULL, NULL, child_begins);
}

static bool has_kick(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int fd, none = -1;

	if (likely(rl_wait_fd() >= 0))
		return true;
	pthread_once(&once, handle_forks);
	fd = rl_raw(SYS_eventfd2, 0, EFD_CLOEXEC | EFD_NONBLOCK);
	fd = fd < 0 ? fd : rl_fd_hide(fd);
	if (fd >= 0 && !__atomic_compare_exchange_n(&kick, &none, fd, false, __ATOMIC_SEQ_CST,
						    __ATOMIC_SEQ_CST))
		rl_fd_close_hidden(fd);
	return rl_wait_fd() >= 0;
}

static void count_in(void)
{
	u64 now = __atomic_load_n(&waiting, __ATOMIC_SEQ_CST);

	if (is_waiting && own_epoch == now >> 32)
		return;
	is_waiting = true;
	own_epoch = __atomic_add_fetch(&waiting, 1, __ATOMIC_SEQ_CST) >> 32;
}

void rl_wait_abandon(void)
{
	u64 old = __atomic_load_n(&waiting, __ATOMIC_SEQ_CST);

	if (!is_waiting)
		return;
	is_waiting = false;
	while (old >> 32 == own_epoch &&
	       !__atomic_compare_exchange_n(&waiting, &old, old - 1, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_SEQ_CST))
		;
}

static void block_signals(struct rl_wait_signals *w)
{
	const u64 all = BLOCKED;

	rl_raw(SYS_rt_sigprocmask, SIG_BLOCK, &all, &w->mask, MASK_SIZE);
	/* The guard may unblock them meanwhile, for good. */
	w->mask &= ~(BIT(SIGSEGV) | BIT(SIGBUS));
	w->blocked = true;
}

/* Of one kind, or none: then it is known which EINTR ends a wait. */
static bool begin_kind(struct rl_wait_signals *w)
{
	look();
	w->changes = others_changes();
	w->all_changes = load(&changes);
	if (!(seen.restart | seen.end))
		return true;
	if ((seen.restart && seen.end) || __atomic_load_n(&deferred, __ATOMIC_RELAXED))
		return false;
	w->ends = seen.end;
	block_signals(w);
	return true;
}

bool rl_wait_begin(struct rl_wait_signals *w)
{
	if (w->begun && !load(&changing) && !rl_wait_is_stale(w))
		return true;
	rl_wait_end(w);
	w->ends = false;
	if (!has_kick())
		return false;
	w->begun = true;
	count_in();
	if (load(&changing) || !begin_kind(w))
		rl_wait_end(w);
	return w->begun;
}

void rl_wait_end(struct rl_wait_signals *w)
{
	if (!w->begun)
		return;
	w->begun = false;
	rl_wait_abandon();
	if (!w->blocked)
		return;
	w->blocked = false;
	/* Handlers that run now may not return. */
	rl_gate_step_out(&w->out);
	rl_raw(SYS_rt_sigprocmask, SIG_SETMASK, &w->mask, NULL, MASK_SIZE);
	if (w->out)
		rl_gate_enter();
	w->out = false;
}

const sigset_t *rl_wait_mask(const struct rl_wait_signals *w)
{
	return w->blocked ? &w->set : NULL;
}

int rl_wait_fd(void)
{
	return __atomic_load_n(&kick, __ATOMIC_SEQ_CST);
}

static void clear_kick(void)
{
	u64 n;

	rl_raw(SYS_read, rl_wait_fd(), &n, sizeof(n));
}

void rl_wait_fd_seen(void)
{
	/* It was written for a thread that has left before. */
	if (!load(&changing))
		clear_kick();
}

int rl_wait_interrupted(const struct rl_wait_signals *w)
{
	return w->ends || others_changes() != w->changes ? -EINTR : 0;
}

bool rl_wait_is_stale(const struct rl_wait_signals *w)
{
	return load(&changes) != w->all_changes;
}

bool rl_wait_is_ending(const struct rl_wait_signals *w)
{
	u64 pending = 0;

	look();
	rl_raw(SYS_rt_sigpending, &pending, MASK_SIZE);
	return pending & seen.end & ~w->mask;
}

/* ---- changes ---- */

void rl_handlers_deferred(void)
{
	__atomic_store_n(&deferred, true, __ATOMIC_RELAXED);
}

/* Those that are late will not be awaited again. */
static void lose_patience(void)
{
	u64 old = __atomic_load_n(&waiting, __ATOMIC_SEQ_CST);

	if ((u32)old)
		__atomic_compare_exchange_n(&waiting, &old, ((old >> 32) + 1) << 32, false,
					    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

/* A handler that has interrupted a wait cannot wait for others: they may be such, too. */
static void evict_waits(void)
{
	const u64 one = 1, until = rl_now_ms() + PATIENCE_MS;

	rl_raw(SYS_write, rl_wait_fd(), &one, sizeof(one));
	if (is_waiting)
		return;
	while (waits_counted() && rl_now_ms() < until)
		sched_yield();
	if (waits_counted())
		lose_patience();
	else
		clear_kick();
}

void rl_handlers_begin_change(u64 *mask)
{
	const u64 all = BLOCKED;

	if (mask)
		rl_raw(SYS_rt_sigprocmask, SIG_BLOCK, &all, mask, MASK_SIZE);
	own_changing++;
	__atomic_fetch_add(&changing, 1, __ATOMIC_SEQ_CST);
	if (waits_counted() > is_waiting)
		evict_waits();
}

void rl_handlers_end_change(const u64 *mask)
{
	own_changes++;
	__atomic_fetch_add(&changes, 1, __ATOMIC_SEQ_CST);
	own_changing--;
	__atomic_fetch_sub(&changing, 1, __ATOMIC_SEQ_CST);
	if (mask)
		rl_raw(SYS_rt_sigprocmask, SIG_SETMASK, mask, NULL, MASK_SIZE);
}

void rl_handlers_removed(void)
{
	__atomic_fetch_add(&removals, 1, __ATOMIC_SEQ_CST);
}
