// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Hooks of other calls on descriptors. dup() is weft-run's own, which asks the table of
 * descriptors; and so does its close(), which this one calls.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "own.h"
#include "process/hook.h"
#include "sockets/overlay/flags.h"
#include "sockets/overlay/io.h"
#include "sockets/overlay/options.h"
#include "sockets/overlay/sock.h"
#include "sockets/stream/option.h"

/* ---- close ---- */

RL_HOOK int close(int fd)
{
	u64 until;
	struct rl_stream *s = rl_sock_is_candidate(fd) ? rl_sock_begin_linger(fd, &until) : NULL;
	int rv = RL_CALL(close, fd);

	if (unlikely(s))
		rl_sock_linger(s, until);
	return rv;
}

/* ---- ioctl and fcntl ---- */

/* Of the descriptor, and not of what it names. */
static bool is_of_number(unsigned long request)
{
	return request == FIOCLEX || request == FIONCLEX;
}

RL_HOOK int ioctl(int fd, unsigned long request, ...)
{
	va_list args;
	void *arg;
	int rv, n;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	if (rl_sock_is_candidate(fd) && request == FIONREAD && arg && rl_sock_inq(fd, &n))
		return (int)rl_hook_result(rl_option_copy(arg, &n, sizeof(n)) ? 0 : -EFAULT);
	/* As F_SETFD. */
	if (request == FIONCLEX && rl_sock_is_bound(fd))
		return 0;
	rv = is_of_number(request) ? RL_CALL(ioctl, fd, request, arg) :
		RL_CALL_OWN(ioctl, fd, request, arg);
	if (request == FIONBIO)
		rl_sock_flags_changed(fd);
	return rv;
}

/* Of the socket, and not of its number. None of them waits. */
static bool is_of_file(int command)
{
	switch (command) {
	case F_GETFL:
	case F_SETFL:
	case F_GETOWN:
	case F_SETOWN:
	case F_GETOWN_EX:
	case F_SETOWN_EX:
	case F_GETSIG:
	case F_SETSIG:
		return true;
	}
	return false;
}

RL_HOOK int fcntl(int fd, int command, ...)
{
	va_list args;
	void *arg;
	int rv;

	va_start(args, command);
	arg = va_arg(args, void *);
	va_end(args);
	if (command == F_SETFD && rl_sock_is_bound(fd))
		arg = (void *)((uintptr_t)arg | FD_CLOEXEC);
	rv = is_of_file(command) ? RL_CALL_OWN(fcntl, fd, command, arg) :
		RL_CALL(fcntl, fd, command, arg);
	if (command == F_SETFL)
		rl_sock_flags_changed(fd);
	return rv;
}

RL_HOOK int fcntl64(int fd, int command, ...)
{
	va_list args;
	void *arg;

	va_start(args, command);
	arg = va_arg(args, void *);
	va_end(args);
	return fcntl(fd, command, arg);
}

/* ---- stat: a socket has one inode number for its life ---- */

RL_HOOK int fstat(int fd, struct stat *st)
{
	return RL_CALL_OWN(fstat, fd, st);
}

/* On 64-bit machines struct stat64 is the same. */
RL_HOOK int fstat64(int fd, struct stat64 *st)
{
	return fstat(fd, (struct stat *)st);
}

/* What programs call that were linked with glibc before 2.33. */
int __fxstat(int version, int fd, struct stat *st);
int __fxstat64(int version, int fd, struct stat64 *st);

RL_HOOK int __fxstat(int version, int fd, struct stat *st)
{
	long rv;

	return RL_OWN(&rv, fstat, fd, st, 0, 0, 0, 0) ? (int)rl_hook_result(rv) :
		RL_PASS(__fxstat, version, fd, st);
}

RL_HOOK int __fxstat64(int version, int fd, struct stat64 *st)
{
	return __fxstat(version, fd, (struct stat *)st);
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

	if (!rl_sock_is_candidate(fd))
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
	return rl_sock_is_candidate(fd) ? print_to(fd, fmt, args) :
		RL_PASS(vdprintf, fd, fmt, args);
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
	return rl_sock_is_candidate(fd) ? print_to(fd, fmt, args) :
		RL_PASS(__vdprintf_chk, fd, flag, fmt, args);
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
	return rl_sock_is_bound(fd) ? EBADF : RL_PASS(posix_spawn_file_actions_adddup2, a, fd, to);
}
