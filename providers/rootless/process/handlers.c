// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <time.h>

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
/* The guard, a debugger, a sandbox and libc need them during the work. */
#define NEVER_LATE	(BIT(SIGSEGV) | BIT(SIGBUS) | BIT(SIGTRAP) | BIT(SIGSYS) | LIBCS)
/* A thread that waits leaves as soon as it gets a CPU; but its setter may hold what it wants. */
#define PATIENCE_MS	2000
#define YIELDS		50

static bool deferred;			/* signals are, by a library above */

/* All atomic, and in one order. */
static u32 changing;			/* threads that set a handler */
static u32 changes;			/* handlers set so far */
static u32 removals;
/*
 * Threads between begin and end, below an epoch. Setting a handler that cannot await them begins a
 * new epoch, and they are late.
 */
static u64 waiting;
static u32 late;			/* threads of earlier epochs; for a moment below 0 */
static int kick = -1;			/* hidden; readable while threads are to leave; -1: none */

/* Of a program of one thread. */
static int arrived = -1;		/* hidden: a signalfd; -1: none */
static u64 arrived_of;			/* the signals that it reports */

/* Of this thread. */
static __thread bool is_waiting;	/* counted in waiting, or late */
static __thread u32 own_epoch;		/* then */
static __thread u32 own_changing;	/* its part of changing */
static __thread struct {
	bool known;
	u32 changes, removals;		/* what they were then */
	u64 handled;			/* signals that have a handler */
} seen;

/* ---- which handlers there are ---- */

enum kind { NO_HANDLER, RESTARTS, ENDS };

static enum kind kind_by_flags(unsigned long flags)
{
	return flags & SA_RESTART ? RESTARTS : ENDS;
}

static enum kind kind_by_kernel(int sig)
{
	struct {
		void (*handler)(int sig);
		unsigned long flags;
		void *restorer;
		u64 mask;
	} a = { 0 };

	if (rl_raw(SYS_rt_sigaction, sig, NULL, &a, MASK_SIZE) || a.handler == SIG_DFL ||
	    a.handler == SIG_IGN)
		return NO_HANDLER;
	return kind_by_flags(a.flags);
}

/* The action of a fault that the guard intercepts is the one that the program asked for. */
static enum kind handler_kind(int sig)
{
	struct sigaction a;

	if (!rl_guard_action(sig, NULL, &a))
		return kind_by_kernel(sig);
	if (!(a.sa_flags & SA_SIGINFO) && (a.sa_handler == SIG_DFL || a.sa_handler == SIG_IGN))
		return NO_HANDLER;
	return kind_by_flags((unsigned long)a.sa_flags);
}

/* Those of @set. */
static u64 signals_that(enum kind least, u64 set)
{
	u64 found = 0;
	int sig;

	for (sig = 1; sig <= 64; sig++)
		if (BIT(sig) & set & ~LIBCS && handler_kind(sig) >= least)
			found |= BIT(sig);
	return found;
}

static void look(void)
{
	u32 now = __atomic_load_n(&changes, __ATOMIC_SEQ_CST);
	u32 removed = __atomic_load_n(&removals, __ATOMIC_SEQ_CST);

	if (likely(seen.known && seen.changes == now && seen.removals == removed))
		return;
	seen.handled = signals_that(RESTARTS, ~0ull);
	seen.changes = now;
	seen.removals = removed;
	seen.known = true;
}

/* ---- waits without handlers ---- */

static u32 load(const u32 *n)
{
	return __atomic_load_n(n, __ATOMIC_SEQ_CST);
}

static u64 load_waiting(void)
{
	return __atomic_load_n(&waiting, __ATOMIC_SEQ_CST);
}

static u32 epoch_of(u64 n)
{
	return n >> 32;
}

static void close_inherited(int *fd)
{
	if (*fd >= 0)
		rl_fd_close_inherited(*fd);
	*fd = -1;
}

/* The descriptors are its parent's, too. */
static void child_begins(void)
{
	waiting = (u64)own_epoch << 32 | is_waiting;
	late = 0;
	changing = own_changing;
	close_inherited(&kick);
	close_inherited(&arrived);
	arrived_of = 0;
}

static void handle_forks(void)
{
	pthread_atfork(NULL, NULL, child_begins);
}

/* *@at is @fd, if that is one, unless another thread was faster. */
static bool have_fd(int *at, int fd)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int none = -1;

	pthread_once(&once, handle_forks);
	fd = fd < 0 ? fd : rl_fd_hide(fd);
	if (fd >= 0 && !__atomic_compare_exchange_n(at, &none, fd, false, __ATOMIC_SEQ_CST,
						    __ATOMIC_SEQ_CST))
		rl_fd_close_hidden(fd);
	return __atomic_load_n(at, __ATOMIC_SEQ_CST) >= 0;
}

static int kick_fd(void)
{
	return __atomic_load_n(&kick, __ATOMIC_SEQ_CST);
}

static bool has_kick(void)
{
	return likely(kick_fd() >= 0) ||
	       have_fd(&kick, rl_raw(SYS_eventfd2, 0, EFD_CLOEXEC | EFD_NONBLOCK));
}

static void set_kick(void)
{
	const u64 one = 1;

	rl_raw(SYS_write, kick_fd(), &one, sizeof(one));
}

static void clear_kick(void)
{
	u64 n;

	rl_raw(SYS_read, kick_fd(), &n, sizeof(n));
}

static void count_late(u32 n)
{
	if (!__atomic_add_fetch(&late, n, __ATOMIC_SEQ_CST))
		clear_kick();
}

static void count_out(void)
{
	u64 old = load_waiting();

	if (!is_waiting)
		return;
	is_waiting = false;
	while (epoch_of(old) == own_epoch)
		if (__atomic_compare_exchange_n(&waiting, &old, old - 1, false, __ATOMIC_SEQ_CST,
						__ATOMIC_SEQ_CST))
			return;
	count_late(-1);
}

/* A wait that was left by siglongjmp() is counted still. */
static void count_in(void)
{
	count_out();
	is_waiting = true;
	own_epoch = epoch_of(__atomic_add_fetch(&waiting, 1, __ATOMIC_SEQ_CST));
}

/* ---- waits of a program of one thread ---- */

/* It makes no other meanwhile: none of its code runs. */
static bool begin_alone(struct rl_wait_signals *w)
{
	const u64 set = seen.handled;
	u64 none = 0, old;

	if (set & NEVER_LATE || __atomic_load_n(&deferred, __ATOMIC_RELAXED) ||
	    !rl_thread_is_only_one() ||
	    (arrived < 0 && !have_fd(&arrived, rl_raw(SYS_signalfd4, -1, &none, MASK_SIZE,
						      SFD_CLOEXEC | SFD_NONBLOCK))))
		return false;
	rl_raw(SYS_rt_sigprocmask, SIG_BLOCK, &set, &old, MASK_SIZE);
	w->blocked = set & ~old;
	w->alone = w->begun = true;
	if (w->blocked != arrived_of)
		rl_raw(SYS_signalfd4, arrived, &w->blocked, MASK_SIZE, 0);
	arrived_of = w->blocked;
	return true;
}

static u64 pending_of(const struct rl_wait_signals *w)
{
	u64 pending = 0;

	if (w->blocked)
		rl_raw(SYS_rt_sigpending, &pending, MASK_SIZE);
	return pending & w->blocked;
}

/* ---- both ---- */

bool rl_wait_begin(struct rl_wait_signals *w)
{
	if (w->begun && (w->alone || !rl_wait_is_stale(w)))
		return true;
	rl_wait_end(w);
	if (!has_kick())
		return false;
	count_in();
	if (load(&changing) || load(&late)) {
		count_out();
		return false;
	}
	look();
	w->changes = load(&changes);
	w->begun = !seen.handled;
	if (w->begun)
		return true;
	count_out();
	return begin_alone(w);
}

void rl_wait_end(struct rl_wait_signals *w)
{
	const u64 blocked = w->blocked;

	if (!w->begun)
		return;
	if (!w->alone)
		count_out();
	w->begun = w->alone = false;
	w->blocked = 0;
	if (blocked)
		rl_raw(SYS_rt_sigprocmask, SIG_UNBLOCK, &blocked, NULL, MASK_SIZE);
}

int rl_wait_fd(const struct rl_wait_signals *w)
{
	return !w->alone ? kick_fd() : w->blocked ? arrived : -1;
}

int rl_wait_left(const struct rl_wait_signals *w)
{
	return signals_that(ENDS, pending_of(w)) ? -EINTR : 0;
}

int rl_wait_fd_seen(const struct rl_wait_signals *w)
{
	if (w->alone)
		return rl_wait_left(w);
	/* Or it was set for a thread that has left since. */
	if (!load(&changing) && !load(&late))
		clear_kick();
	return -EAGAIN;
}

/* By a handler that was set by a bare system call, or too late. */
int rl_wait_interrupted(const struct rl_wait_signals *w)
{
	const u64 others = ~w->blocked;

	seen.known = false;
	if (signals_that(ENDS, others))
		return -EINTR;
	/* It has reset itself. */
	return load(&changes) != w->changes && !signals_that(RESTARTS, others) ? -EINTR : 0;
}

bool rl_wait_is_stale(const struct rl_wait_signals *w)
{
	return !w->alone && (load(&changing) || load(&changes) != w->changes);
}

/* ---- changes ---- */

static void lose_patience(void)
{
	u64 old = load_waiting();

	while ((u32)old)
		if (__atomic_compare_exchange_n(&waiting, &old, (u64)(epoch_of(old) + 1) << 32,
						false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
			count_late((u32)old);
			return;
		}
}

static void pause_once(u32 n)
{
	const struct timespec ms = { .tv_nsec = 1000000 };

	if (n < YIELDS)
		sched_yield();
	else
		rl_raw(SYS_ppoll, NULL, 0, &ms, NULL, MASK_SIZE);
}

/*
 * The kick is set anew each time: a thread that saw an older one may clear it just now. A handler
 * that has interrupted a wait cannot wait for others: they may be such, too.
 */
static void evict_waits(void)
{
	const u64 until = rl_now_ms() + PATIENCE_MS;
	u32 n;

	set_kick();
	if (is_waiting)
		return;
	for (n = 0; (u32)load_waiting() && rl_now_ms() < until; n++) {
		pause_once(n);
		set_kick();
	}
	lose_patience();
	if (!load(&late))
		clear_kick();
}

void rl_handlers_begin_change(u64 *mask)
{
	const u64 all = BLOCKED;

	if (mask)
		rl_raw(SYS_rt_sigprocmask, SIG_BLOCK, &all, mask, MASK_SIZE);
	own_changing++;
	__atomic_fetch_add(&changing, 1, __ATOMIC_SEQ_CST);
	if ((u32)load_waiting())
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

void rl_handlers_deferred(void)
{
	__atomic_store_n(&deferred, true, __ATOMIC_RELAXED);
}
