// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Hooks of calls that wait for descriptors: overlay/poll.c, overlay/epoll.c. */
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>

#include "process/hook.h"
#include "process/thread.h"
#include "sockets/overlay/epoll.h"
#include "sockets/overlay/waiter.h"
#include "sockets/overlay/poll.h"
#include "sockets/overlay/sock.h"
#include "sockets/stream/option.h"

/* libc says of poll() that it only writes what it reads, too. */
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

/* What programs compiled with _FORTIFY_SOURCE call. */
int __poll_chk(struct pollfd *p, nfds_t n, int ms, size_t room);
int __ppoll_chk(struct pollfd *p, nfds_t n, const struct timespec *t, const sigset_t *mask,
		size_t room);

static struct timespec *timespec_of_ms(int ms, struct timespec *t)
{
	*t = (struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000l };
	return ms < 0 ? NULL : t;
}

RL_HOOK int poll(struct pollfd *p, nfds_t n, int ms)
{
	struct timespec t;

	if (rl_sock_in_list(p, n))
		return rl_sock_wait_list(p, n, timespec_of_ms(ms, &t), NULL);
	return RL_PASS(poll, p, n, ms);
}

RL_HOOK int __poll_chk(struct pollfd *p, nfds_t n, int ms, size_t room)
{
	nfds_t looked_at = room / sizeof(*p) < n ? 0 : n;

	if (rl_sock_in_list(p, looked_at))
		return poll(p, n, ms);
	return RL_PASS(__poll_chk, p, n, ms, room);
}

RL_HOOK int ppoll(struct pollfd *p, nfds_t n, const struct timespec *t, const sigset_t *mask)
{
	if (rl_sock_in_list(p, n))
		return rl_sock_wait_list(p, n, t, mask);
	return RL_PASS(ppoll, p, n, t, mask);
}

RL_HOOK int __ppoll_chk(struct pollfd *p, nfds_t n, const struct timespec *t,
			const sigset_t *mask, size_t room)
{
	nfds_t looked_at = room / sizeof(*p) < n ? 0 : n;

	if (rl_sock_in_list(p, looked_at))
		return ppoll(p, n, t, mask);
	return RL_PASS(__ppoll_chk, p, n, t, mask, room);
}

/* As Linux does, it leaves in @t what is left of it. */
static int select_sockets(int n, fd_set *in, fd_set *out, fd_set *except, struct timeval *t)
{
	struct timespec s, left = { 0 };
	struct timeval v = { 0 };
	int rv, saved;

	if (t && !rl_option_copy(&v, t, sizeof(v)))
		return (int)rl_hook_result(-EFAULT);
	if (v.tv_sec < 0 || v.tv_usec < 0)
		return (int)rl_hook_result(-EINVAL);
	s = (struct timespec){ .tv_sec = v.tv_sec + v.tv_usec / 1000000,
			      .tv_nsec = v.tv_usec % 1000000 * 1000 };
	rv = rl_sock_wait_sets(n, in, out, except, t ? &s : NULL, NULL, &left);
	saved = errno;
	v = (struct timeval){ .tv_sec = left.tv_sec, .tv_usec = left.tv_nsec / 1000 };
	if (t)
		rl_option_copy(t, &v, sizeof(v));
	errno = saved;
	return rv;
}

RL_HOOK int select(int n, fd_set *in, fd_set *out, fd_set *except, struct timeval *t)
{
	if (rl_sock_in_sets(&n, in, out, except))
		return select_sockets(n, in, out, except, t);
	return RL_PASS(select, n, in, out, except, t);
}

RL_HOOK int pselect(int n, fd_set *in, fd_set *out, fd_set *except, const struct timespec *t,
		    const sigset_t *mask)
{
	if (rl_sock_in_sets(&n, in, out, except))
		return rl_sock_wait_sets(n, in, out, except, t, mask, NULL);
	return RL_PASS(pselect, n, in, out, except, t, mask);
}

RL_HOOK int epoll_ctl(int fd, int op, int of, struct epoll_event *ev)
{
	struct epoll_event own;
	int rv;

	/* What is not there the kernel refuses. */
	if (rl_sock_is_candidate(of) &&
	    rl_epoll_ctl(fd, op, of, rl_option_copy(&own, ev, sizeof(own)) ? &own : NULL, &rv))
		return rv;
	return RL_PASS(epoll_ctl, fd, op, of, ev);
}

static bool wait_epoll(int fd, struct epoll_event *ev, int n, const struct timespec *t,
		       const sigset_t *mask, int *rv)
{
	return rl_sock_is_candidate(fd) && rl_epoll_wait(fd, ev, n, t, mask, rv);
}

/* When a wait ends that is the kernel's, and may become ours. */
static u64 hook_end_of(const struct timespec *t)
{
	return rl_sockets_on && t ? rl_now_ns() + (u64)t->tv_sec * 1000000000 + (u64)t->tv_nsec : 0;
}

/* The kernel has told of @got. If it was of sockets of ours alone the wait goes on. */
static int hook_go_on(int fd, struct epoll_event *ev, int n, int got, u64 until,
		      const sigset_t *mask)
{
	struct timespec left;
	int rv;

	if (got <= 0 || !rl_sock_is_candidate(fd) || !rl_epoll_translate(fd, ev, got, &rv))
		return got;
	if (!rv)
		wait_epoll(fd, ev, n, rl_time_left(until, 0, &left), mask, &rv);
	return rv;
}

/* A wait of libc's @f, by @t at most; @... are its arguments. */
#define WAIT_EPOLL(f, t, mask, fd, ev, n, ...) ({				\
	const struct timespec *t_ = (t);					\
	u64 until_ = hook_end_of(t_);						\
	int rv_;								\
										\
	if (!wait_epoll(fd, ev, n, t_, mask, &rv_)) {				\
		rl_epoll_kernel_begin(fd);					\
		if (!wait_epoll(fd, ev, n, t_, mask, &rv_))			\
			rv_ = hook_go_on(fd, ev, n, RL_PASS(f, fd, ev, n, __VA_ARGS__),	\
					 until_, mask);				\
		rl_epoll_kernel_end(fd);					\
	}									\
	rv_; })

RL_HOOK int epoll_wait(int fd, struct epoll_event *ev, int n, int ms)
{
	struct timespec t;

	return WAIT_EPOLL(epoll_wait, timespec_of_ms(ms, &t), NULL, fd, ev, n, ms);
}

RL_HOOK int epoll_pwait(int fd, struct epoll_event *ev, int n, int ms, const sigset_t *mask)
{
	struct timespec t;

	return WAIT_EPOLL(epoll_pwait, timespec_of_ms(ms, &t), mask, fd, ev, n, ms, mask);
}

/* Not in glibc before 2.35. */
RL_HOOK int epoll_pwait2(int fd, struct epoll_event *ev, int n, const struct timespec *t,
			 const sigset_t *mask)
{
	struct timespec own;

	/* What is not there the kernel refuses. */
	if (unlikely(!rl_sockets_on) || (t && !rl_option_copy(&own, t, sizeof(own))))
		return RL_PASS(epoll_pwait2, fd, ev, n, t, mask);
	return WAIT_EPOLL(epoll_pwait2, t ? &own : NULL, mask, fd, ev, n, t, mask);
}
