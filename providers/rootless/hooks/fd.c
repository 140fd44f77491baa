// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Hooks of calls on descriptors: read, write, ioctl, stat, close, dup.
 *
 * The real functions are libc's, not system calls: they are points of cancellation, and other
 * preloaded libraries want to see the program's calls.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "devices/netlink.h"
#include "devices/tree.h"
#include "process/file.h"
#include "process/hook.h"
#include "weft/direct.h"
#include "hooks.h"
#include "process/raw.h"

/* ---- read and write ---- */

/* A call begins if @fd names a file that reads itself, or writes. Else the kernel does it. */
static struct rl_file *begin_if(int fd, bool (*does)(const struct rl_file_ops *ops))
{
	struct rl_file *f;

	pthread_testcancel();
	f = rl_call_begin(fd);
	if (!f || does(f->ops))
		return f;
	rl_call_end(f);
	return NULL;
}

static bool reads(const struct rl_file_ops *ops)
{
	return ops->read;
}

static bool writes(const struct rl_file_ops *ops)
{
	return ops->write;
}

static ssize_t read_vector(struct rl_file *f, int fd, const struct iovec *v)
{
	return f->ops->read(f, fd, v->iov_base, v->iov_len);
}

static ssize_t write_vector(struct rl_file *f, int fd, const struct iovec *v)
{
	return f->ops->write(f, fd, v->iov_base, v->iov_len);
}

typedef ssize_t vector_fn(struct rl_file *f, int fd, const struct iovec *v);

/* As the kernel does it for a file without vectors: one call for each, until one is short. */
static ssize_t each_vector(struct rl_file *f, int fd, const struct iovec *iov, int n, vector_fn *op)
{
	ssize_t done = 0, rv = 0;
	int i;

	if (n < 0 || n > IOV_MAX)
		return -EINVAL;
	for (i = 0; i < n; i++) {
		rv = op(f, fd, &iov[i]);
		if (rv < 0)
			break;
		done += rv;
		if ((size_t)rv < iov[i].iov_len)
			break;
	}
	return done ? done : rv;
}

struct call {
	struct rl_file *f;
	u32 forks;			/* rl_fd_forks() at its beginning */
};

/*
 * A signal handler may fork while the call waits. In the child only descriptors have references
 * then (process/file.c).
 */
static void end_call(void *arg)
{
	struct call *c = arg;

	if (unlikely(c->forks != rl_fd_forks()))
		rl_file_get(c->f);
	rl_call_end(c->f);
}

/* A thread that waits for an event may be cancelled. */
static ssize_t run(struct rl_file *f, int fd, const struct iovec *iov, int n, vector_fn *op)
{
	struct call c = { .f = f, .forks = rl_fd_forks() };
	ssize_t rv;

	pthread_cleanup_push(end_call, &c);
	rv = rl_hook_result(each_vector(f, fd, iov, n, op));
	pthread_cleanup_pop(1);
	return rv;
}

RL_HOOK ssize_t read(int fd, void *buf, size_t len)
{
	const struct iovec v = { .iov_base = buf, .iov_len = len };
	struct rl_file *f = begin_if(fd, reads);

	return f ? run(f, fd, &v, 1, read_vector) : RL_CALL(read, fd, buf, len);
}

RL_HOOK ssize_t write(int fd, const void *buf, size_t len)
{
	const struct iovec v = { .iov_base = (void *)buf, .iov_len = len };
	struct rl_file *f = begin_if(fd, writes);

	return f ? run(f, fd, &v, 1, write_vector) : RL_CALL(write, fd, buf, len);
}

/* What a program compiled with _FORTIFY_SOURCE calls. */
ssize_t __read_chk(int fd, void *buf, size_t len, size_t room);
void __chk_fail(void) __attribute__((noreturn));

RL_HOOK ssize_t __read_chk(int fd, void *buf, size_t len, size_t room)
{
	if (len > room)
		__chk_fail();
	return read(fd, buf, len);
}

RL_HOOK ssize_t readv(int fd, const struct iovec *iov, int n)
{
	struct rl_file *f = begin_if(fd, reads);

	return f ? run(f, fd, iov, n, read_vector) : RL_CALL(readv, fd, iov, n);
}

static ssize_t gather(struct rl_file *f, int fd, const struct iovec *iov, int n)
{
	ssize_t rv = rl_hook_result(rl_netlink_gather(f, fd, iov, n));

	rl_call_end(f);
	return rv;
}

RL_HOOK ssize_t writev(int fd, const struct iovec *iov, int n)
{
	struct rl_file *f = begin_if(fd, writes);

	if (f && f->ops->send)
		return gather(f, fd, iov, n);
	return f ? run(f, fd, iov, n, write_vector) : RL_CALL(writev, fd, iov, n);
}

/* ---- ioctl and stat ---- */

RL_HOOK int ioctl(int fd, unsigned long request, ...)
{
	struct rl_file *f;
	va_list args;
	void *arg;
	int rv;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	f = rl_call_begin(fd);
	rv = f && f->ops->ioctl ? (int)rl_hook_result(f->ops->ioctl(f, fd, request, arg))
				: RL_CALL(ioctl, fd, request, arg);
	if (f)
		rl_call_end(f);
	return rv;
}

RL_HOOK int weft_run_kick(int fd, u16 object, u32 handle)
{
	struct rl_file *f = rl_call_begin(fd);
	int rv = -ENOTTY;

	if (!f)
		return ENOTTY;
	if (f->ops->kick)
		rv = f->ops->kick(f, object, handle);
	rl_call_end(f);
	return -rv;
}

RL_HOOK int weft_run_fault(int fd, const struct weft_run_request *r)
{
	struct rl_file *f = rl_call_begin(fd);
	int rv = -ENOTTY;

	if (!f)
		return ENOTTY;
	if (f->ops->fault)
		rv = f->ops->fault(f, r);
	rl_call_end(f);
	return -rv;
}

RL_HOOK int weft_run_judge(int fd, enum weft_run_deed deed, const void *what)
{
	struct rl_file *f = rl_call_begin(fd);
	int rv = -ENOTTY;

	if (!f)
		return ENOTTY;
	if (f->ops->judge)
		rv = f->ops->judge(f, deed, what);
	rl_call_end(f);
	return -rv;
}

int rl_fd_stat_fix(int fd, mode_t *mode, dev_t *rdev)
{
	struct rl_file *f = rl_call_begin(fd);
	bool is_fixed;

	if (!f)
		return 0;
	is_fixed = f->ops->mode;
	if (is_fixed) {
		*mode = f->ops->mode;
		*rdev = f->rdev;
	}
	rl_call_end(f);
	return is_fixed;
}

/* On 64-bit machines struct stat64 is the same, and both are the kernel's. */
static_assert(sizeof(struct stat) == sizeof(struct stat64));

static int fix_stat(int rv, int fd, struct stat *st)
{
	const struct rl_node *n = rv ? NULL : rl_node_of_fd(fd);

	if (n)
		rl_node_stat(n, st);
	else if (!rv)
		rl_fd_stat_fix(fd, &st->st_mode, &st->st_rdev);
	return rv;
}

RL_HOOK int fstat(int fd, struct stat *st)
{
	return fix_stat(RL_CALL(fstat, fd, st), fd, st);
}

RL_HOOK int fstat64(int fd, struct stat64 *st)
{
	return fstat(fd, (struct stat *)st);
}

/* What programs call that were linked with glibc before 2.33. */
int __fxstat(int version, int fd, struct stat *st);
int __fxstat64(int version, int fd, struct stat64 *st);

RL_HOOK int __fxstat(int version, int fd, struct stat *st)
{
	__typeof__(&__fxstat) real = RL_REAL(__fxstat);

	return fix_stat(real ? real(version, fd, st) : (int)syscall(SYS_fstat, fd, st), fd, st);
}

RL_HOOK int __fxstat64(int version, int fd, struct stat64 *st)
{
	return __fxstat(version, fd, (struct stat *)st);
}

/* ---- close ---- */

static void forget(int fd)
{
	rl_fd_leave(fd);
	rl_fd_forget(fd);
}

RL_HOOK int close(int fd)
{
	int saved = errno;

	if (rl_fd_is_hidden(fd))
		return (int)rl_hook_result(-EBADF);
	forget(fd);
	errno = saved;
	return RL_CALL(close, fd);
}

/* The real one, which is not in glibc before 2.34. */
static int close_segment(unsigned int first, unsigned int last, int flags)
{
	return first > last ? 0 : RL_CALL(close_range, first, last, flags);
}

/* The program's descriptors go, the hidden ones between them stay. */
static int close_around_hidden(unsigned int first, unsigned int last, int flags)
{
	unsigned int from = first;
	int fd, rv;

	for (fd = rl_fd_next((int)from); fd >= 0 && (unsigned int)fd <= last;
	     fd = rl_fd_next(fd + 1)) {
		if (!rl_fd_is_hidden(fd)) {
			forget(fd);
			continue;
		}
		rv = fd ? close_segment(from, (unsigned int)fd - 1, flags) : 0;
		if (rv)
			return rv;
		from = (unsigned int)fd + 1;
	}
	return close_segment(from, last, flags);
}

RL_HOOK int close_range(unsigned int first, unsigned int last, int flags)
{
	if (first > last || first > INT_MAX || flags & ~CLOSE_RANGE_UNSHARE)
		return RL_CALL(close_range, first, last, flags);
	return close_around_hidden(first, last, flags);
}

RL_HOOK void closefrom(int first)
{
	unsigned int fd, from = first < 0 ? 0 : (unsigned int)first;
	int saved = errno;
	struct rlimit lim;

	if (close_range(from, ~0u, 0) && !getrlimit(RLIMIT_NOFILE, &lim))
		for (fd = from; fd < lim.rlim_cur && fd <= INT_MAX; fd++)
			close((int)fd);
	errno = saved;
}

/* ---- dup ---- */

static int copied(int from, int to)
{
	int saved = errno;

	if (to >= 0 && to != from)
		rl_fd_copy(from, to);
	errno = saved;
	return to;
}

RL_HOOK int dup(int fd)
{
	return copied(fd, RL_CALL(dup, fd));
}

/* Before what @to names goes, if it does. */
static void leaves_number(int from, int to, int flags)
{
	int saved = errno;

	if (from != to && rl_fd_is_used(to) && !(flags & ~O_CLOEXEC) &&
	    rl_raw(SYS_fcntl, from, F_GETFD) >= 0)
		rl_fd_leave(to);
	errno = saved;
}

static int real_dup2(int from, int to)
{
	__typeof__(&dup2) real = RL_REAL(dup2);

	if (real)
		return real(from, to);
	if (from != to)
		return (int)syscall(SYS_dup3, from, to, 0);
	return syscall(SYS_fcntl, from, F_GETFD) < 0 ? -1 : to;
}

/*
 * Onto a hidden number: EBUSY. Whoever owns the hidden descriptor knows it by its number, so it
 * cannot be moved away. Linux itself says EBUSY for a number that is about to be taken. The
 * numbers are high, and a program that chose one has not been given it by the kernel.
 */
RL_HOOK int dup2(int from, int to)
{
	if (rl_fd_is_hidden(to))
		return (int)rl_hook_result(-EBUSY);
	leaves_number(from, to, 0);
	return copied(from, real_dup2(from, to));
}

RL_HOOK int dup3(int from, int to, int flags)
{
	if (rl_fd_is_hidden(to))
		return (int)rl_hook_result(-EBUSY);
	leaves_number(from, to, flags);
	return copied(from, RL_CALL(dup3, from, to, flags));
}

static bool makes_copy(int command)
{
	return command == F_DUPFD || command == F_DUPFD_CLOEXEC;
}

RL_HOOK int fcntl(int fd, int command, ...)
{
	va_list args;
	void *arg;
	int rv;

	va_start(args, command);
	arg = va_arg(args, void *);
	va_end(args);
	rv = RL_CALL(fcntl, fd, command, arg);
	return makes_copy(command) ? copied(fd, rv) : rv;
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
