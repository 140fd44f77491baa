// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Hooks of calls that set SIGSEGV's and SIGBUS's handlers, which the guard calls in its turn. libc
 * has signal() by many names, and none of them comes by sigaction(). What sets a thread's mask is
 * only told to the guard. A mask that a thread begins with (pthread_attr_setsigmask_np()) is not:
 * the guard unblocks faults before a thread's first access, whatever the mask. Calls that wait want
 * to know which handlers restart them (process/handlers.h).
 */
#include <signal.h>

#include "process/guard.h"
#include "process/handlers.h"
#include "process/hook.h"

/* Not all are declared, and some are deprecated. */
int __sigaction(int sig, const struct sigaction *new, struct sigaction *old);
sighandler_t bsd_signal(int sig, sighandler_t handler);
sighandler_t __sysv_signal(int sig, sighandler_t handler);
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

/* ---- sigaction ---- */

/*
 * A handler of another signal may use verbs, and none of its calls would tell of the mask that it
 * runs with: so the mask never blocks faults.
 */
RL_HOOK int sigaction(int sig, const struct sigaction *new, struct sigaction *old)
{
	struct sigaction copy;
	int rv;

	if (rl_guard_action(sig, new, old))
		return 0;
	if (new) {
		copy = *new;
		sigdelset(&copy.sa_mask, SIGSEGV);
		sigdelset(&copy.sa_mask, SIGBUS);
	}
	rv = RL_PASS(sigaction, sig, new ? &copy : NULL, old);
	if (new)
		rl_handlers_changed();
	return rv;
}

RL_HOOK int __sigaction(int sig, const struct sigaction *new, struct sigaction *old)
{
	return sigaction(sig, new, old);
}

/* ---- signal, by its names ---- */

/* What the next @f returns. */
#define SET_BY(f, sig, ...) ({								\
	__auto_type rv_ =								\
		RL_PASS_OR((__typeof__(f(sig, ##__VA_ARGS__)))-1, f, sig, ##__VA_ARGS__); \
											\
	rl_handlers_changed();								\
	rv_; })

/* False: it is libc's to do. */
static bool set_handler(int sig, sighandler_t handler, int flags, sighandler_t *old)
{
	struct sigaction new = { .sa_handler = handler, .sa_flags = flags }, was;

	sigemptyset(&new.sa_mask);
	if (handler == SIG_ERR || !rl_guard_action(sig, &new, &was))
		return false;
	*old = was.sa_handler;
	return true;
}

RL_HOOK sighandler_t signal(int sig, sighandler_t handler)
{
	sighandler_t old;

	return set_handler(sig, handler, SA_RESTART, &old) ? old :
	       SET_BY(signal, sig, handler);
}

RL_HOOK sighandler_t bsd_signal(int sig, sighandler_t handler)
{
	return signal(sig, handler);
}

RL_HOOK sighandler_t ssignal(int sig, sighandler_t handler)
{
	return signal(sig, handler);
}

/* signal() of a program compiled for POSIX alone, as with -std=c99. */
RL_HOOK sighandler_t __sysv_signal(int sig, sighandler_t handler)
{
	sighandler_t old;

	return set_handler(sig, handler, SA_RESETHAND | SA_NODEFER, &old) ?
		old : SET_BY(__sysv_signal, sig, handler);
}

RL_HOOK sighandler_t sysv_signal(int sig, sighandler_t handler)
{
	return __sysv_signal(sig, handler);
}

/* It unblocks the signal, too, or with SIG_HOLD does nothing but block it. */
RL_HOOK sighandler_t sigset(int sig, sighandler_t handler)
{
	sighandler_t old;

	rl_guard_mask_changed();
	if (handler == SIG_HOLD || !set_handler(sig, handler, 0, &old))
		return SET_BY(sigset, sig, handler);
	return sigrelse(sig) ? SIG_ERR : old;
}

RL_HOOK int sigignore(int sig)
{
	sighandler_t old;

	return set_handler(sig, SIG_IGN, 0, &old) ? 0 : SET_BY(sigignore, sig);
}

RL_HOOK int siginterrupt(int sig, int interrupt)
{
	struct sigaction a;

	if (!rl_guard_action(sig, NULL, &a))
		return SET_BY(siginterrupt, sig, interrupt);
	a.sa_flags = interrupt ? a.sa_flags & ~SA_RESTART : a.sa_flags | SA_RESTART;
	return sigaction(sig, &a, NULL);
}

/* ---- masks ---- */

RL_HOOK int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
	rl_guard_mask_changed();
	return RL_PASS(sigprocmask, how, set, old);
}

RL_HOOK int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	__typeof__(&pthread_sigmask) real = RL_REAL(pthread_sigmask);

	rl_guard_mask_changed();
	return real ? real(how, set, old) : ENOSYS;
}
