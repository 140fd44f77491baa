// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Hooks of calls that set SIGSEGV's and SIGBUS's handlers, which the guard calls in its turn. libc
 * has signal() by many names, and none of them comes by sigaction(). What sets a thread's mask is
 * only told to the guard. A mask that a thread begins with (pthread_attr_setsigmask_np()) is not:
 * the guard unblocks faults before a thread's first access, whatever the mask.
 */
#include <signal.h>

#include "process/guard.h"
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

	if (rl_guard_action(sig, new, old))
		return 0;
	if (new) {
		copy = *new;
		sigdelset(&copy.sa_mask, SIGSEGV);
		sigdelset(&copy.sa_mask, SIGBUS);
	}
	return RL_PASS(sigaction, sig, new ? &copy : NULL, old);
}

RL_HOOK int __sigaction(int sig, const struct sigaction *new, struct sigaction *old)
{
	return sigaction(sig, new, old);
}

/* ---- signal, by its names ---- */

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
	       RL_PASS_OR(SIG_ERR, signal, sig, handler);
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
		old : RL_PASS_OR(SIG_ERR, __sysv_signal, sig, handler);
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
		return RL_PASS_OR(SIG_ERR, sigset, sig, handler);
	return sigrelse(sig) ? SIG_ERR : old;
}

RL_HOOK int sigignore(int sig)
{
	sighandler_t old;

	return set_handler(sig, SIG_IGN, 0, &old) ? 0 : RL_PASS(sigignore, sig);
}

RL_HOOK int siginterrupt(int sig, int interrupt)
{
	struct sigaction a;

	if (!rl_guard_action(sig, NULL, &a))
		return RL_PASS(siginterrupt, sig, interrupt);
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
