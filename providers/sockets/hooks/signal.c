// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Hooks of calls that set handlers: all but those of faults are called through ours
 * (overlay/signals.h).
 */
#include <signal.h>

#include "process/hook.h"
#include "sockets/overlay/signals.h"

/* Not all are declared, and some are deprecated. */
int __sigaction(int sig, const struct sigaction *new, struct sigaction *old);
sighandler_t bsd_signal(int sig, sighandler_t handler);
sighandler_t __sysv_signal(int sig, sighandler_t handler);
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

RL_HOOK int sigaction(int sig, const struct sigaction *new, struct sigaction *old)
{
	struct sigaction copy, requested;
	int rv;

	if (!rl_signal_is_ours(sig))
		return RL_PASS(sigaction, sig, new, old);
	requested = rl_signal_requested(sig);
	if (new) {
		copy = *new;
		rl_signal_wanted(sig, &copy);
	}
	rv = RL_PASS(sigaction, sig, new ? &copy : NULL, old);
	if (!rv && old)
		rl_signal_translate(old, &requested);
	return rv;
}

RL_HOOK int __sigaction(int sig, const struct sigaction *new, struct sigaction *old)
{
	return sigaction(sig, new, old);
}

/* The next @f sets @handler, and returns the one before. */
#define THROUGH(f, sig, handler) ({							\
	bool is_ours_ = rl_signal_is_ours(sig);						\
	struct sigaction requested_ = is_ours_ ? rl_signal_requested(sig)		\
					       : (struct sigaction){ 0 };		\
	sighandler_t rv_ = RL_PASS_OR(SIG_ERR, f, sig, handler);			\
											\
	is_ours_ ? rl_signal_changed(sig), rl_signal_handler(rv_, &requested_) : rv_; })

RL_HOOK sighandler_t signal(int sig, sighandler_t handler)
{
	return THROUGH(signal, sig, handler);
}

RL_HOOK sighandler_t bsd_signal(int sig, sighandler_t handler)
{
	return signal(sig, handler);
}

RL_HOOK sighandler_t ssignal(int sig, sighandler_t handler)
{
	return signal(sig, handler);
}

/*
 * What a program calls by the name of signal() that was compiled for POSIX alone, as by -std=c99.
 */
RL_HOOK sighandler_t __sysv_signal(int sig, sighandler_t handler)
{
	return THROUGH(__sysv_signal, sig, handler);
}

RL_HOOK sighandler_t sysv_signal(int sig, sighandler_t handler)
{
	return __sysv_signal(sig, handler);
}

RL_HOOK sighandler_t sigset(int sig, sighandler_t handler)
{
	return THROUGH(sigset, sig, handler);
}

RL_HOOK int siginterrupt(int sig, int interrupt)
{
	int rv = RL_PASS(siginterrupt, sig, interrupt);

	if (!rv && rl_signal_is_ours(sig))
		rl_signal_changed(sig);
	return rv;
}
