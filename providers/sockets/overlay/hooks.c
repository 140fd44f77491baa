// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Hooks of calls that sockets alone have, for those that go over iWARP (sock.h). Without --sockets, and
 * for all other sockets, they are libc's.
 */
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>

#include "hooks/alias.h"
#include "process/hook.h"
#include "hooks/hooks.h"
#include "process/raw.h"
#include "sock.h"
#include "sockets/stream/option.h"

#define PASS(f, ...) ({ \
	__typeof__(&f) real_ = RL_REAL(f); \
	real_ ? real_(__VA_ARGS__) : no_function(); })

void __chk_fail(void) __attribute__((noreturn));

static int no_function(void)
{
	errno = ENOSYS;
	return -1;
}

/* ---- connections ---- */

/* The rule is looked for before: the program may free the address. */
RL_HOOK int connect(int fd, const struct sockaddr *a, socklen_t len)
{
	const struct rl_rule *rule;

	if (!rl_sock_may(fd))
		return RL_CALL(connect, fd, a, len);
	rule = rl_sock_rule_to(fd, a, len);
	return rl_sock_connected(fd, rule, RL_CALL(connect, fd, a, len));
}

RL_HOOK int listen(int fd, int backlog)
{
	if (rl_sock_may(fd))
		rl_sock_listens(fd);
	return RL_CALL(listen, fd, backlog);
}

/* Who is at the other end tells the kernel, whatever room the program has for it. */
static int accepted(int fd)
{
	struct sockaddr_storage peer = { 0 };
	socklen_t len = sizeof(peer);

	if (fd >= 0 && !rl_raw(SYS_getpeername, fd, &peer, &len) &&
	    (peer.ss_family == AF_INET || peer.ss_family == AF_INET6))
		rl_sock_accepted(fd, &peer);
	return fd;
}

RL_HOOK int accept(int fd, struct sockaddr *a, socklen_t *len)
{
	int rv = RL_CALL(accept, fd, a, len);

	return unlikely(rl_sockets_on) ? accepted(rv) : rv;
}

RL_HOOK int accept4(int fd, struct sockaddr *a, socklen_t *len, int flags)
{
	int rv = RL_CALL(accept4, fd, a, len, flags);

	return unlikely(rl_sockets_on) ? accepted(rv) : rv;
}

RL_HOOK int shutdown(int fd, int how)
{
	bool is_known = how == SHUT_RD || how == SHUT_WR || how == SHUT_RDWR;
	int rv;

	/* What is no way to shut it the kernel refuses. */
	if (rl_sock_may(fd) && is_known && rl_sock_shutdown(fd, how, &rv))
		return rv;
	return RL_CALL(shutdown, fd, how);
}

/* Is there room for an int? What is not there the kernel refuses. */
static bool has_room(const socklen_t *len)
{
	socklen_t room;

	return rl_option_copy(&room, len, sizeof(room)) && room >= sizeof(int) && room <= INT_MAX;
}

static int tell_error(int error, void *value, socklen_t *len)
{
	const socklen_t size = sizeof(error);

	return (int)rl_hook_result(rl_option_copy(value, &error, sizeof(error)) &&
				   rl_option_copy(len, &size, sizeof(size)) ? 0 : -EFAULT);
}

RL_HOOK int getsockopt(int fd, int level, int option, void *value, socklen_t *len)
{
	int error;

	if (unlikely(level == SOL_WEFT))
		return (int)rl_hook_result(rl_sock_get_mode(fd, option, value, len));
	if (rl_sock_may(fd) && level == SOL_SOCKET && option == SO_ERROR && has_room(len) &&
	    rl_sock_error(fd, &error))
		return tell_error(error, value, len);
	return RL_CALL(getsockopt, fd, level, option, value, len);
}

/* ---- receive and send ---- */

RL_HOOK ssize_t recv(int fd, void *buf, size_t len, int flags)
{
	__typeof__(&recv) real;
	ssize_t rv;

	if (rl_sock_may(fd) && rl_sock_recv_one(fd, buf, len, flags, &rv))
		return rv;
	real = RL_REAL(recv);
	return real ? real(fd, buf, len, flags)
		    : syscall(SYS_recvfrom, fd, buf, len, flags, NULL, NULL);
}

ssize_t __recv_chk(int fd, void *buf, size_t len, size_t room, int flags);

RL_HOOK ssize_t __recv_chk(int fd, void *buf, size_t len, size_t room, int flags)
{
	if (len > room)
		__chk_fail();
	return recv(fd, buf, len, flags);
}

/* The kernel's own loop: an error behind the first message is the next call's. */
static int each_message(int fd, struct mmsghdr *m, unsigned int n, int flags, bool is_send)
{
	unsigned int i, len;
	ssize_t rv;

	for (i = 0; i < n && i < 1024; i++) {
		rv = is_send ? sendmsg(fd, &m[i].msg_hdr, flags) : recvmsg(fd, &m[i].msg_hdr, flags & ~MSG_WAITFORONE);
		len = (unsigned int)rv;
		if (rv >= 0 && !rl_option_copy(&m[i].msg_len, &len, sizeof(len)))
			rv = rl_hook_result(-EFAULT);
		if (rv < 0)
			return i ? (int)i : -1;
		if (!is_send && flags & MSG_WAITFORONE)
			flags |= MSG_DONTWAIT;
	}
	return (int)i;
}

static bool any_hands_over(const struct mmsghdr *m, unsigned int n)
{
	struct msghdr own;
	unsigned int i;

	for (i = 0; i < n && i < 1024 && rl_sock_read_message(&own, &m[i].msg_hdr); i++)
		if (rl_sock_hands_over(&own))
			return true;
	return false;
}

RL_HOOK int sendmmsg(int fd, struct mmsghdr *m, unsigned int n, int flags)
{
	return rl_sock_may(fd) || (unlikely(rl_sockets_on) && any_hands_over(m, n)) ?
		each_message(fd, m, n, flags, true) : RL_CALL(sendmmsg, fd, m, n, flags);
}

/* The time is looked at between messages only, as the kernel does. */
RL_HOOK int recvmmsg(int fd, struct mmsghdr *m, unsigned int n, int flags, struct timespec *t)
{
	return rl_sock_may(fd) ? each_message(fd, m, n, flags, false)
			       : RL_CALL(recvmmsg, fd, m, n, flags, t);
}

/*
 * At a place of -1 these are readv() and writev(), and at any other a socket has none. With flags, which the
 * kernel would look at, they are not for a stream.
 */
static bool has_no_flags(int fd)
{
	struct rl_sock *sk = rl_sock_begin(fd);

	if (sk)
		rl_sock_end(sk);
	return sk;
}

RL_HOOK ssize_t preadv2(int fd, const struct iovec *iov, int n, off_t at, int flags)
{
	if (at != -1 || !rl_sock_may(fd))
		return PASS(preadv2, fd, iov, n, at, flags);
	return !flags ? readv(fd, iov, n) : has_no_flags(fd) ? rl_hook_result(-EOPNOTSUPP)
							    : PASS(preadv2, fd, iov, n, at, flags);
}

RL_HOOK ssize_t pwritev2(int fd, const struct iovec *iov, int n, off_t at, int flags)
{
	if (at != -1 || !rl_sock_may(fd))
		return PASS(pwritev2, fd, iov, n, at, flags);
	return !flags ? writev(fd, iov, n) : has_no_flags(fd) ? rl_hook_result(-EOPNOTSUPP)
							     : PASS(pwritev2, fd, iov, n, at, flags);
}

RL_ALIAS(preadv2, preadv64v2);
RL_ALIAS(pwritev2, pwritev64v2);

/* Of a place that can be read the kernel, too, has sent before it finds that it cannot be written. */
static ssize_t tell_place(off_t *at, off_t own, ssize_t rv)
{
	return !at || rv < 0 || rl_option_copy(at, &own, sizeof(own)) ? rv : rl_hook_result(-EFAULT);
}

RL_HOOK ssize_t sendfile(int fd, int in, off_t *at, size_t len)
{
	off_t own = 0;
	ssize_t rv;

	/* What is not there the kernel refuses. */
	if (rl_sock_may(fd) && (!at || rl_option_copy(&own, at, sizeof(own))) &&
	    rl_sock_sendfile(fd, in, at ? &own : NULL, len, &rv))
		return tell_place(at, own, rv);
	if (rl_sock_is_bound(in))
		return rl_hook_result(-EINVAL);
	return PASS(sendfile, fd, in, at, len);
}

RL_ALIAS(sendfile, sendfile64);

/* What comes of it is no octets of TCP's, which the kernel would move: programs go on without. */
RL_HOOK ssize_t splice(int in, off64_t *in_at, int out, off64_t *out_at, size_t len, unsigned int flags)
{
	struct rl_sock *sk;
	int end = rl_sock_may(in) ? in : rl_sock_may(out) ? out : -1;

	sk = end < 0 ? NULL : rl_sock_begin(end);
	if (!sk)
		return RL_CALL(splice, in, in_at, out, out_at, len, flags);
	rl_sock_end(sk);
	return rl_hook_result(-EINVAL);
}

/* ---- what libc does for itself, out of a hook's reach ---- */

static ssize_t read_cookie(void *fd, char *buf, size_t len)
{
	return read((int)(intptr_t)fd, buf, len);
}

static ssize_t write_cookie(void *fd, const char *buf, size_t len)
{
	size_t done = 0;
	ssize_t n = 0;

	while (done < len && (n = write((int)(intptr_t)fd, buf + done, len - done)) > 0)
		done += (size_t)n;
	return n < 0 && !done ? 0 : (ssize_t)done;
}

static int close_cookie(void *fd)
{
	return close((int)(intptr_t)fd);
}

static const cookie_io_functions_t cookie_ops = {
	.read = read_cookie, .write = write_cookie, .close = close_cookie,
};

/* stdio reads and writes by functions of libc's own. A stream of such a socket's does by ours. */
RL_HOOK FILE *fdopen(int fd, const char *mode)
{
	FILE *f;

	if (!rl_sock_may(fd))
		return RL_REAL(fdopen)(fd, mode);
	f = fopencookie((void *)(intptr_t)fd, mode, cookie_ops);
	/* For fileno(). */
	if (f)
		f->_fileno = fd;
	return f;
}

static int print_to(int fd, const char *fmt, va_list args)
{
	char *text;
	int len = vasprintf(&text, fmt, args);

	if (len > 0 && write_cookie((void *)(intptr_t)fd, text, (size_t)len) != len)
		len = -1;
	if (len >= 0)
		free(text);
	return len;
}

int __vdprintf_chk(int fd, int flag, const char *fmt, va_list args);
int __dprintf_chk(int fd, int flag, const char *fmt, ...);

RL_HOOK int vdprintf(int fd, const char *fmt, va_list args)
{
	return rl_sock_may(fd) ? print_to(fd, fmt, args) : PASS(vdprintf, fd, fmt, args);
}

RL_HOOK int dprintf(int fd, const char *fmt, ...)
{
	va_list args;
	int rv;

	va_start(args, fmt);
	rv = vdprintf(fd, fmt, args);
	va_end(args);
	return rv;
}

RL_HOOK int __vdprintf_chk(int fd, int flag, const char *fmt, va_list args)
{
	return rl_sock_may(fd) ? print_to(fd, fmt, args) : PASS(__vdprintf_chk, fd, flag, fmt, args);
}

RL_HOOK int __dprintf_chk(int fd, int flag, const char *fmt, ...)
{
	va_list args;
	int rv;

	va_start(args, fmt);
	rv = __vdprintf_chk(fd, flag, fmt, args);
	va_end(args);
	return rv;
}

/* What is spawned gets a descriptor by libc's own dup2(). */
RL_HOOK int posix_spawn_file_actions_adddup2(posix_spawn_file_actions_t *a, int fd, int to)
{
	return rl_sock_is_bound(fd) ? EBADF : PASS(posix_spawn_file_actions_adddup2, a, fd, to);
}
