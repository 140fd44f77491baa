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

enum kind { NO_HANDLER, RESTARTS, ENDS };

static enum kind kind_of(const struct sigaction *a)
{
	if (!(a->sa_flags & SA_SIGINFO) && (a->sa_handler == SIG_DFL || a->sa_handler == SIG_IGN))
		return NO_HANDLER;
	return a->sa_flags & SA_RESTART ? RESTARTS : ENDS;
}

static enum kind kind_now(int sig)
{
	struct sigaction a;

	return rl_guard_action(sig, NULL, &a) || !RL_PASS(sigaction, sig, NULL, &a) ? kind_of(&a) :
		NO_HANDLER;
}

/*
 * A handler of another signal may use verbs, and none of its calls would tell of the mask that it
 * runs with: so the mask never blocks faults.
 */
static int set_action(int sig, const struct sigaction *new, struct sigaction *old)
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

RL_HOOK int sigaction(int sig, const struct sigaction *new, struct sigaction *old)
{
	enum kind kind = new ? kind_of(new) : NO_HANDLER;
	int rv, saved = errno;
	u64 mask;

	if (kind == NO_HANDLER || kind_now(sig) == kind) {
		rv = set_action(sig, new, old);
		if (new)
			rl_handlers_removed();
		return rv;
	}
	errno = saved;
	rl_handlers_begin_change(&mask);
	rv = set_action(sig, new, old);
	rl_handlers_end_change(&mask);
	return rv;
}

RL_HOOK int __sigaction(int sig, const struct sigaction *new, struct sigaction *old)
{
	return sigaction(sig, new, old);
}

/* ---- signal, by its names ---- */

/* What the call @set returns, which may set a handler. */
#define SETTING_WITH(mask, set) ({			\
	__typeof__(set) rv_;				\
							\
	rl_handlers_begin_change(mask);			\
	rv_ = (set);					\
	rl_handlers_end_change(mask);			\
	rv_; })
#define SETTING(set) ({ u64 mask_; SETTING_WITH(&mask_, set); })

/* The next @f's. */
#define SET_BY(f, sig, ...) \
	RL_PASS_OR((__typeof__(f(sig, ##__VA_ARGS__)))-1, f, sig, ##__VA_ARGS__)

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

	return SETTING(set_handler(sig, handler, SA_RESTART, &old) ? old :
		       SET_BY(signal, sig, handler));
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

	return SETTING(set_handler(sig, handler, SA_RESETHAND | SA_NODEFER, &old) ? old :
		       SET_BY(__sysv_signal, sig, handler));
}

RL_HOOK sighandler_t sysv_signal(int sig, sighandler_t handler)
{
	return __sysv_signal(sig, handler);
}

/* It unblocks the signal, too, or with SIG_HOLD does nothing but block it. */
static sighandler_t set_and_unblock(int sig, sighandler_t handler)
{
	sighandler_t old;

	if (handler == SIG_HOLD || !set_handler(sig, handler, 0, &old))
		return SET_BY(sigset, sig, handler);
	return sigrelse(sig) ? SIG_ERR : old;
}

RL_HOOK sighandler_t sigset(int sig, sighandler_t handler)
{
	rl_guard_mask_changed();
	return SETTING_WITH(NULL, set_and_unblock(sig, handler));
}

RL_HOOK int sigignore(int sig)
{
	sighandler_t old;
	int rv = set_handler(sig, SIG_IGN, 0, &old) ? 0 : SET_BY(sigignore, sig);

	rl_handlers_removed();
	return rv;
}

RL_HOOK int siginterrupt(int sig, int interrupt)
{
	struct sigaction a;

	if (!rl_guard_action(sig, NULL, &a))
		return SETTING(SET_BY(siginterrupt, sig, interrupt));
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
