// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A library between the preloaded library and libc: the blocking calls of the former pass through
 * it. It raises the signal of signal_before_wait once, when such a call is about to block.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/epoll.h>

#include "signal-before-wait.h"

volatile int signal_before_wait;

static void send_it(void)
{
	int sig = signal_before_wait, saved = errno;

	if (!sig)
		return;
	signal_before_wait = 0;
	raise(sig);
	errno = saved;
}

static int own_ppoll(struct pollfd *p, nfds_t n, const struct timespec *t, const sigset_t *mask)
{
	__typeof__(&own_ppoll) next = (__typeof__(&own_ppoll))dlsym(RTLD_NEXT, "ppoll");

	send_it();
	return next(p, n, t, mask);
}

static int own_epoll_pwait(int fd, struct epoll_event *ev, int n, int ms, const sigset_t *mask)
{
	__typeof__(&own_epoll_pwait) next = (__typeof__(&own_epoll_pwait))dlsym(RTLD_NEXT, "epoll_pwait");

	send_it();
	return next(fd, ev, n, ms, mask);
}

int ppoll(struct pollfd *p, nfds_t n, const struct timespec *t, const sigset_t *mask)
	__attribute__((alias("own_ppoll")));
int epoll_pwait(int fd, struct epoll_event *ev, int n, int ms, const sigset_t *mask)
	__attribute__((alias("own_epoll_pwait")));

bool waits_are_hooked(void)
{
	return dlsym(RTLD_DEFAULT, "ppoll") != (void *)own_ppoll;
}
