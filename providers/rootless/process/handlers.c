// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>

#include "api.h"
#include "handlers.h"
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

/* All atomic, and in one order. */
static u32 changing;			/* threads that set a handler */
static u32 changes;			/* handlers set so far */
static u32 removals;
static u32 waiting;			/* threads between begin and end */
static int kick = -1;			/* hidden; readable while threads are to leave; -1: none */

/* Of this thread. */
static __thread bool is_waiting;	/* counted in waiting */
static __thread u32 own_changing;	/* its part of changing */
static __thread struct {
	bool known;
	u32 changes, removals;		/* what they were then */
	bool any;			/* a signal has a handler */
} seen;

/* ---- which handlers there are ---- */

/* The action of a fault that the guard intercepts is the one that the program asked for. */
static bool ask_guard(int sig, bool *any)
{
	struct sigaction a;

	if (!rl_guard_action(sig, NULL, &a))
		return false;
	if (a.sa_flags & SA_SIGINFO || (a.sa_handler != SIG_DFL && a.sa_handler != SIG_IGN))
		*any = true;
	return true;
}

static void ask_kernel(int sig, bool *any)
{
	struct {
		void (*handler)(int sig);
		unsigned long flags;
		void *restorer;
		u64 mask;
	} a = { 0 };

	if (!rl_raw(SYS_rt_sigaction, sig, NULL, &a, MASK_SIZE) && a.handler != SIG_DFL &&
	    a.handler != SIG_IGN)
		*any = true;
}

static void look_again(u32 now, u32 removed)
{
	bool any = false;
	int sig;

	for (sig = 1; sig <= 64 && !any; sig++)
		if (!(BIT(sig) & LIBCS) && !ask_guard(sig, &any))
			ask_kernel(sig, &any);
	seen.any = any;
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

/* The descriptor is its parent's, too. */
static void child_begins(void)
{
	waiting = is_waiting;
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
	if (is_waiting)
		return;
	is_waiting = true;
	__atomic_fetch_add(&waiting, 1, __ATOMIC_SEQ_CST);
}

static void count_out(void)
{
	if (!is_waiting)
		return;
	is_waiting = false;
	__atomic_fetch_sub(&waiting, 1, __ATOMIC_SEQ_CST);
}

bool rl_wait_begin(struct rl_wait_signals *w)
{
	if (w->begun && !load(&changing) && load(&changes) == w->changes)
		return true;
	rl_wait_end(w);
	if (!has_kick())
		return false;
	w->begun = true;
	count_in();
	if (load(&changing)) {
		rl_wait_end(w);
		return false;
	}
	look();
	w->changes = load(&changes);
	if (seen.any)
		rl_wait_end(w);
	return w->begun;
}

void rl_wait_end(struct rl_wait_signals *w)
{
	if (!w->begun)
		return;
	w->begun = false;
	count_out();
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
	return load(&changes) != w->changes ? -EINTR : 0;
}

/* ---- changes ---- */

/* A handler that has interrupted a wait cannot wait for others: they may be such, too. */
static void evict_waits(void)
{
	const u64 one = 1, until = rl_now_ms() + PATIENCE_MS;

	rl_raw(SYS_write, rl_wait_fd(), &one, sizeof(one));
	if (is_waiting)
		return;
	while (load(&waiting) && rl_now_ms() < until)
		sched_yield();
	if (!load(&waiting))
		clear_kick();
}

void rl_handlers_begin_change(u64 *mask)
{
	const u64 all = BLOCKED;

	if (mask)
		rl_raw(SYS_rt_sigprocmask, SIG_BLOCK, &all, mask, MASK_SIZE);
	own_changing++;
	__atomic_fetch_add(&changing, 1, __ATOMIC_SEQ_CST);
	if (load(&waiting) > is_waiting)
		evict_waits();
}

void rl_handlers_end_change(const u64 *mask)
{
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
