// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <ucontext.h>

#include "process/api.h"
#include "process/latest.h"
#include "process/raw.h"
#include "signals.h"
#include "sock.h"

/* What the kernel knows of sigset_t: a handler's context has room for no more. */
typedef u64 mask_t;
#define BIT_OF(sig) (1ull << ((sig) - 1))
/* libc uses 32 and 33, below SIGRTMIN, itself. */
#define NEVER_LATE (BIT_OF(SIGSEGV) | BIT_OF(SIGBUS) | BIT_OF(SIGFPE) | BIT_OF(SIGILL) | \
		    BIT_OF(SIGTRAP) | BIT_OF(SIGSYS) | BIT_OF(SIGABRT) | BIT_OF(32) | BIT_OF(33))
#define OTHERS (~NEVER_LATE)

/* The kernel's ABI of sigaction. */
struct kernel_action {
	void (*handler)(int sig);
	unsigned long flags;
	void (*restorer)(void);
	mask_t mask;
};

#define ACTIONS 16

struct signal_action {
	void (*handler)(int sig);
	int flags;
	mask_t mask;
};

static struct {
	struct signal_action at[ACTIONS];
	struct rl_latest latest;
} signal_actions[_NSIG];

static __thread bool is_late;		/* a signal is deferred: late */
static __thread siginfo_t late;
static __thread mask_t late_mask;	/* the mask of the interrupted code */
static __thread struct rl_signals seen;
static __thread struct {
	void (*end)(void *arg);
	void *arg;
} wait;

static struct signal_action signal_wanted(int sig)
{
	return signal_actions[sig].at[rl_latest_now(&signal_actions[sig].latest)];
}

static void signal_set_wanted(int sig, void (*handler)(int sig), int flags, mask_t mask)
{
	u32 at = rl_latest_place(&signal_actions[sig].latest, ACTIONS);

	signal_actions[sig].at[at] = (struct signal_action){
		.handler = handler, .flags = flags, .mask = mask,
	};
	rl_latest_publish(&signal_actions[sig].latest, at);
}

/* ---- signals come ---- */

static bool send_to_itself(const siginfo_t *info)
{
	return !rl_raw(SYS_rt_tgsigqueueinfo, rl_raw(SYS_getpid), rl_raw(SYS_gettid),
		       info->si_signo, info);
}

/*
 * No other signal is delivered until the thread is outside, neither now nor after the handler: so
 * one signal at a time is deferred, and later ones wait in the kernel.
 */
static void put_off(const siginfo_t *info, ucontext_t *c)
{
	mask_t mask;

	memcpy(&mask, &c->uc_sigmask, sizeof(mask));
	if (is_late) {
		/* A fault handler, in the middle of a call of ours, waited with another mask. */
		send_to_itself(info);
	} else {
		late = *info;
		late_mask = mask;
		is_late = true;
	}
	mask |= OTHERS;
	memcpy(&c->uc_sigmask, &mask, sizeof(mask));
}

/* The mask with which the program's own action would run the handler. */
static void set_mask(int sig, const struct signal_action *w, const ucontext_t *c)
{
	mask_t mask;

	memcpy(&mask, &c->uc_sigmask, sizeof(mask));
	mask |= w->mask | (w->flags & SA_NODEFER ? 0 : BIT_OF(sig));
	rl_raw(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, sizeof(mask));
}

/* The kernel does not know of SA_RESETHAND: a signal may arrive twice before its handler runs. */
static void reset(int sig)
{
	const struct kernel_action none = { .handler = SIG_DFL };

	rl_raw(SYS_rt_sigaction, sig, &none, NULL, sizeof(none.mask));
}

/* Once: the handler may not return, and then the wait does not exist any more. */
static void end_wait(void)
{
	void (*end)(void *arg) = wait.end;

	wait.end = NULL;
	if (end)
		end(wait.arg);
}

static void come_late(bool is_child);

/* Entered with all other signals blocked. */
static void on_signal(int sig, siginfo_t *info, void *ctx)
{
	struct signal_action w;

	if (rl_gate_call_late(come_late)) {
		put_off(info, ctx);
		return;
	}
	end_wait();
	w = signal_wanted(sig);
	if (w.flags & SA_RESETHAND)
		reset(sig);
	seen.all++;
	seen.ending += !(w.flags & SA_RESTART);
	set_mask(sig, &w, ctx);
	if (w.flags & SA_SIGINFO)
		((void (*)(int, siginfo_t *, void *))(void *)w.handler)(sig, info, ctx);
	else
		w.handler(sig);
}

#define OURS ((void (*)(int))(void *)on_signal)

/* For when the kernel's queue is full. */
static void call_handler(siginfo_t *info, mask_t mask)
{
	struct kernel_action a;
	ucontext_t here;

	if (rl_raw(SYS_rt_sigaction, info->si_signo, NULL, &a, sizeof(a.mask)) || a.handler != OURS)
		return;
	getcontext(&here);
	memcpy(&here.uc_sigmask, &mask, sizeof(mask));
	on_signal(info->si_signo, info, &here);
}

/*
 * Realtime signals keep their order: the kernel would put it after those of its number that have
 * arrived since. A stack of its own for the handler is more important.
 */
static bool must_precede(int sig)
{
	return sig >= SIGRTMIN && !(signal_wanted(sig).flags & SA_ONSTACK);
}

/* The kernel calls the handler, with the mask and on the stack that the program asked for. */
static void let_come(void)
{
	siginfo_t info = late;
	mask_t mask = late_mask;
	int saved = errno;

	is_late = false;
	if (must_precede(info.si_signo) || !send_to_itself(&info))
		call_handler(&info, mask);
	/* The guard may have unblocked faults since. */
	rl_guard_mask_changed();
	rl_raw(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, sizeof(mask));
	errno = saved;
}

/* The parent's signal is delivered in the parent. */
static void drop(void)
{
	is_late = false;
	rl_guard_mask_changed();
	rl_raw(SYS_rt_sigprocmask, SIG_SETMASK, &late_mask, NULL, sizeof(late_mask));
}

static void come_late(bool is_child)
{
	if (is_child)
		drop();
	else
		let_come();
}

/* ---- what the program wants ---- */

static bool is_function(void (*handler)(int sig))
{
	return handler != SIG_DFL && handler != SIG_IGN;
}

bool rl_signal_is_ours(int sig)
{
	return rl_sockets_on && sig > 0 && sig < _NSIG && !(BIT_OF(sig) & NEVER_LATE);
}

/* A child of vfork() removes handlers in its parent's memory: removals are not noted. */
void rl_signal_wanted(int sig, struct sigaction *new)
{
	mask_t mask;

	if (!is_function(new->sa_handler))
		return;
	memcpy(&mask, &new->sa_mask, sizeof(mask));
	/* The program may have got it from a raw system call. */
	if (new->sa_sigaction != on_signal)
		signal_set_wanted(sig, new->sa_handler, new->sa_flags, mask);
	mask = OTHERS;
	memcpy(&new->sa_mask, &mask, sizeof(mask));
	new->sa_sigaction = on_signal;
	new->sa_flags = (new->sa_flags | SA_SIGINFO) & ~(int)SA_RESETHAND;
}

struct sigaction rl_signal_requested(int sig)
{
	struct signal_action w = signal_wanted(sig);
	struct sigaction a = { .sa_handler = w.handler, .sa_flags = w.flags };

	memcpy(&a.sa_mask, &w.mask, sizeof(w.mask));
	return a;
}

void rl_signal_translate(struct sigaction *old, const struct sigaction *requested)
{
	const int own = SA_SIGINFO | (int)SA_RESETHAND;

	if (old->sa_sigaction != on_signal)
		return;
	old->sa_handler = requested->sa_handler;
	old->sa_mask = requested->sa_mask;
	old->sa_flags = (old->sa_flags & ~own) | (requested->sa_flags & own);
}

void (*rl_signal_handler(void (*old)(int sig), const struct sigaction *requested))(int sig)
{
	return old == OURS ? requested->sa_handler : old;
}

void rl_signal_changed(int sig)
{
	struct kernel_action a;
	struct signal_action w = signal_wanted(sig);

	if (rl_raw(SYS_rt_sigaction, sig, NULL, &a, sizeof(a.mask)) || !is_function(a.handler))
		return;
	if (a.handler == OURS) {
		signal_set_wanted(sig, w.handler,
				  (w.flags & ~SA_RESTART) | (int)(a.flags & SA_RESTART), w.mask);
		return;
	}
	signal_set_wanted(sig, a.handler, (int)a.flags, a.mask);
	a.handler = OURS;
	a.mask = OTHERS;
	a.flags = (a.flags | SA_SIGINFO) & ~(unsigned long)SA_RESETHAND;
	rl_raw(SYS_rt_sigaction, sig, &a, NULL, sizeof(a.mask));
}

void rl_signals_begin(void)
{
	int sig;

	for (sig = 1; sig < _NSIG; sig++)
		if (rl_signal_is_ours(sig))
			rl_signal_changed(sig);
}

/* ---- what TCP's calls go on behind ---- */

struct rl_signals rl_signals_seen(void)
{
	return seen;
}

void rl_signal_ends(void (*end)(void *arg), void *arg)
{
	wait.end = NULL;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	wait.arg = arg;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	wait.end = end;
}

static void name_nothing(void *list)
{
	((struct pollfd *)list)->fd = INT_MAX;
}

void rl_signal_ends_poll(struct pollfd *list)
{
	rl_signal_ends(name_nothing, list);
}

/* Faults do not end waits. */
static bool ends_waits(int sig)
{
	struct kernel_action a;

	return !(BIT_OF(sig) & NEVER_LATE) &&
		!rl_raw(SYS_rt_sigaction, sig, NULL, &a, sizeof(a.mask)) &&
		is_function(a.handler) && !(a.flags & SA_RESTART);
}

/* A handler that was set by a raw system call was not seen: any of them may have run. */
bool rl_signals_restart(const struct rl_signals *before)
{
	int sig;

	if (seen.all != before->all)
		return seen.ending == before->ending;
	for (sig = 1; sig < _NSIG; sig++)
		if (ends_waits(sig))
			return false;
	return true;
}
