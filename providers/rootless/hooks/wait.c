// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Hooks of calls that wait for descriptors. They are the kernel's, but a child of fork() that
 * waits for an inherited channel, as a daemon does that listened before, would wait for ever: what
 * it waits for comes from the progress thread, which it does not have.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>

#include "process/hook.h"
#include "process/raw.h"
#include "process/thread.h"
#include "process/waitlist.h"

static void revive_for(int fd)
{
	struct rl_file *f = rl_call_begin(fd);

	if (!f)
		return;
	rl_thread_revive(f);
	rl_call_end(f);
}

/* ---- what is waited for ---- */

static void look_at_list(const struct pollfd *p, nfds_t n)
{
	nfds_t i;

	if (!rl_fd_have_inherited() || !rl_list_may_be_read(p, n))
		return;
	for (i = 0; i < n; i++)
		revive_for(p[i].fd);
}

static void look_at_set(int n, const fd_set *set)
{
	int fd;

	n = n < FD_SETSIZE ? n : FD_SETSIZE;
	if (!set || n <= 0 || !rl_fd_have_inherited() || !rl_set_may_be_read(set, n))
		return;
	for (fd = 0; fd < n; fd++)
		if (FD_ISSET(fd, set))
			revive_for(fd);
}

/* The kernel tells the descriptors of an epoll as lines "tfd: NUMBER ...". */
static void look_at_text(const char *text)
{
	int fd;

	while ((text = strstr(text, "tfd:"))) {
		text += 4;
		if (sscanf(text, "%d", &fd) == 1)
			revive_for(fd);
	}
}

static void look_at_epoll(int epfd)
{
	char buf[4096 + 1];
	long n, fd;
	size_t keep = 0;

	if (!rl_fd_have_inherited())
		return;
	snprintf(buf, sizeof(buf), "/proc/self/fdinfo/%d", epfd);
	fd = rl_raw(SYS_openat, AT_FDCWD, buf, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && (n = rl_raw(SYS_read, fd, buf + keep, sizeof(buf) - 1 - keep)) > 0) {
		char *end;

		buf[keep + n] = '\0';
		end = strrchr(buf, '\n');
		if (!end)
			break;
		*end = '\0';
		look_at_text(buf);
		keep = strlen(end + 1);
		memmove(buf, end + 1, keep);
	}
	rl_raw(SYS_close, fd);
}

/* ---- hooks ---- */

/* libc says of poll() that it only writes what it reads, too. */
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

/* What programs compiled with _FORTIFY_SOURCE call. */
int __poll_chk(struct pollfd *p, nfds_t n, int ms, size_t room);
int __ppoll_chk(struct pollfd *p, nfds_t n, const struct timespec *t, const sigset_t *mask,
		size_t room);

RL_HOOK int poll(struct pollfd *p, nfds_t n, int ms)
{
	look_at_list(p, n);
	return RL_PASS(poll, p, n, ms);
}

RL_HOOK int __poll_chk(struct pollfd *p, nfds_t n, int ms, size_t room)
{
	look_at_list(p, room / sizeof(*p) < n ? 0 : n);
	return RL_PASS(__poll_chk, p, n, ms, room);
}

RL_HOOK int ppoll(struct pollfd *p, nfds_t n, const struct timespec *t, const sigset_t *mask)
{
	look_at_list(p, n);
	return RL_PASS(ppoll, p, n, t, mask);
}

RL_HOOK int __ppoll_chk(struct pollfd *p, nfds_t n, const struct timespec *t,
			const sigset_t *mask, size_t room)
{
	look_at_list(p, room / sizeof(*p) < n ? 0 : n);
	return RL_PASS(__ppoll_chk, p, n, t, mask, room);
}

RL_HOOK int select(int n, fd_set *in, fd_set *out, fd_set *except, struct timeval *t)
{
	look_at_set(n, in);
	return RL_PASS(select, n, in, out, except, t);
}

RL_HOOK int pselect(int n, fd_set *in, fd_set *out, fd_set *except, const struct timespec *t,
		    const sigset_t *mask)
{
	look_at_set(n, in);
	return RL_PASS(pselect, n, in, out, except, t, mask);
}

RL_HOOK int epoll_wait(int fd, struct epoll_event *ev, int n, int ms)
{
	look_at_epoll(fd);
	return RL_PASS(epoll_wait, fd, ev, n, ms);
}

RL_HOOK int epoll_pwait(int fd, struct epoll_event *ev, int n, int ms, const sigset_t *mask)
{
	look_at_epoll(fd);
	return RL_PASS(epoll_pwait, fd, ev, n, ms, mask);
}

/* Not in glibc before 2.35. */
RL_HOOK int epoll_pwait2(int fd, struct epoll_event *ev, int n, const struct timespec *t,
			 const sigset_t *mask)
{
	look_at_epoll(fd);
	return RL_PASS(epoll_pwait2, fd, ev, n, t, mask);
}
