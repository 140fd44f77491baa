// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Hooks of signals. What the program does about SIGSEGV and SIGBUS is noted (guard.h), and no
 * thread blocks them: a fault that is blocked is the end of the process, and many programs block
 * all that there is before they begin a thread.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>

#include "guard.h"
#include "hook.h"

/* @set without the signals of faults, in *@room; NULL stays NULL. */
static const sigset_t *without_faults(const sigset_t *set, sigset_t *room)
{
	if (!set)
		return NULL;
	*room = *set;
	sigdelset(room, SIGSEGV);
	sigdelset(room, SIGBUS);
	return room;
}

RL_HOOK int sigaction(int sig, const struct sigaction *new, struct sigaction *old)
{
	struct sigaction copy;

	if (!new)
		return rl_guard_sigaction(sig, NULL, old);
	copy = *new;
	without_faults(&new->sa_mask, &copy.sa_mask);
	return rl_guard_sigaction(sig, &copy, old);
}

/* ---- signal(), by all its names ---- */

static bool is_fault(int sig)
{
	return sig == SIGSEGV || sig == SIGBUS;
}

static sighandler_t set_handler(int sig, sighandler_t handler, int flags)
{
	struct sigaction new = { .sa_handler = handler, .sa_flags = flags }, old;

	sigemptyset(&new.sa_mask);
	if (handler != SIG_ERR && !rl_guard_sigaction(sig, &new, &old))
		return old.sa_handler;
	errno = EINVAL;
	return SIG_ERR;
}

/* Libc has settings of its own for the others: siginterrupt(). */
#define SIGNAL_HOOK(name, flags)						\
	sighandler_t name(int sig, sighandler_t handler);			\
	RL_HOOK sighandler_t name(int sig, sighandler_t handler)		\
	{									\
		__typeof__(&signal) real = is_fault(sig) ? NULL : RL_REAL(name);	\
										\
		return real ? real(sig, handler) : set_handler(sig, handler, flags);	\
	}

SIGNAL_HOOK(signal, SA_RESTART)
SIGNAL_HOOK(bsd_signal, SA_RESTART)
SIGNAL_HOOK(ssignal, SA_RESTART)
SIGNAL_HOOK(sysv_signal, SA_RESETHAND | SA_NODEFER)
/* What signal() is in a program compiled for System V. */
SIGNAL_HOOK(__sysv_signal, SA_RESETHAND | SA_NODEFER)

/* ---- masks ---- */

RL_HOOK int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
	__typeof__(&sigprocmask) real = RL_REAL(sigprocmask);
	sigset_t room;

	if (real)
		return real(how, how == SIG_UNBLOCK ? set : without_faults(set, &room), old);
	errno = ENOSYS;
	return -1;
}

RL_HOOK int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	__typeof__(&pthread_sigmask) real = RL_REAL(pthread_sigmask);
	sigset_t room;

	if (!real)
		return ENOSYS;
	return real(how, how == SIG_UNBLOCK ? set : without_faults(set, &room), old);
}
