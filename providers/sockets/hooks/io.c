// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Hooks of calls that receive and send. What is no stream's goes on to the next hook: weft-run's
 * own, which has netlink, and libc.
 */
#define _GNU_SOURCE
#include <limits.h>
#include <sys/sendfile.h>
#include <sys/uio.h>

#include "process/alias.h"
#include "process/clock.h"
#include "process/guard.h"
#include "own.h"
#include "process/hook.h"
#include "sockets/overlay/connect.h"
#include "sockets/overlay/flags.h"
#include "sockets/overlay/io.h"
#include "sockets/overlay/sock.h"
#include "sockets/stream/option.h"

/* What a program compiled with _FORTIFY_SOURCE calls. */
ssize_t __read_chk(int fd, void *buf, size_t len, size_t room);
ssize_t __recv_chk(int fd, void *buf, size_t len, size_t room, int flags);
ssize_t __recvfrom_chk(int fd, void *buf, size_t len, size_t room, int flags, struct sockaddr *a,
		       socklen_t *a_len);
void __chk_fail(void) __attribute__((noreturn));

/* ---- read and write ---- */

RL_HOOK ssize_t read(int fd, void *buf, size_t len)
{
	ssize_t rv;

	if (rl_sock_is_candidate(fd) && rl_sock_recv_one(fd, buf, len, 0, &rv))
		return rv;
	return RL_CALL(read, fd, buf, len);
}

RL_HOOK ssize_t write(int fd, const void *buf, size_t len)
{
	ssize_t rv;

	if (rl_sock_is_candidate(fd) && rl_sock_send_one(fd, buf, len, 0, &rv))
		return rv;
	return RL_CALL(write, fd, buf, len);
}

RL_HOOK ssize_t __read_chk(int fd, void *buf, size_t len, size_t room)
{
	if (len > room)
		__chk_fail();
	return read(fd, buf, len);
}

/* Of more pieces recvmsg() says EMSGSIZE, and readv() EINVAL: the kernel does. */
static bool may_be_vector(int n)
{
	return n >= 0 && n <= IOV_MAX;
}

RL_HOOK ssize_t readv(int fd, const struct iovec *iov, int n)
{
	ssize_t rv;

	if (rl_sock_is_candidate(fd) && may_be_vector(n) &&
	    rl_sock_recv(fd, iov, (size_t)n, 0, &rv))
		return rv;
	return RL_CALL(readv, fd, iov, n);
}

RL_HOOK ssize_t writev(int fd, const struct iovec *iov, int n)
{
	ssize_t rv;

	if (rl_sock_is_candidate(fd) && may_be_vector(n) &&
	    rl_sock_send(fd, iov, (size_t)n, 0, &rv))
		return rv;
	return RL_CALL(writev, fd, iov, n);
}

/* ---- messages ---- */

/* Descriptors that @m carries to another process, or has brought. @visit: false ends it. */
static bool each_right(const struct msghdr *m, bool (*visit)(int fd))
{
	struct cmsghdr *c;
	size_t i, n;
	int fd;

	if (!m->msg_control || !m->msg_controllen ||
	    !rl_guard_readable(m->msg_control, m->msg_controllen))
		return true;
	for (c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR((struct msghdr *)m, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS ||
		    c->cmsg_len < CMSG_LEN(0))
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(fd);
		for (i = 0; i < n; i++) {
			memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
			if (!visit(fd))
				return false;
		}
	}
	return true;
}

/* Another process could not use the FPDUs of a stream. */
static bool hands_over(const struct msghdr *m)
{
	return !each_right(m, rl_sock_goes_out);
}

static bool look_at_one(int fd)
{
	rl_sock_found(fd);
	return true;
}

static void look_at_found(const struct msghdr *m)
{
	int saved = errno;

	each_right(m, look_at_one);
	errno = saved;
}

/* False: it is not there, which the kernel reports. */
static bool read_message(struct msghdr *copy, const struct msghdr *m)
{
	rl_guard_begin();
	return rl_guard_copy(copy, m, sizeof(*copy));
}

RL_HOOK ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
	struct msghdr own;
	ssize_t rv;

	if (likely(rl_sockets_on) && read_message(&own, m)) {
		if (rl_sock_is_candidate(fd) &&
		    rl_sock_send(fd, own.msg_iov, own.msg_iovlen, flags, &rv))
			return rv;
		if (hands_over(&own))
			return rl_hook_result(-EOPNOTSUPP);
	}
	return RL_CALL(sendmsg, fd, m, flags);
}

/* What recvmsg() says beside the octets, at @m, which may not be there. */
static bool tell_nothing(struct msghdr *m)
{
	static const struct msghdr says;

	return rl_option_copy(&m->msg_namelen, &says.msg_namelen, sizeof(m->msg_namelen)) &&
		rl_option_copy(&m->msg_controllen, &says.msg_controllen,
			       sizeof(m->msg_controllen)) &&
		rl_option_copy(&m->msg_flags, &says.msg_flags, sizeof(m->msg_flags));
}

RL_HOOK ssize_t recvmsg(int fd, struct msghdr *m, int flags)
{
	struct msghdr own;
	ssize_t rv;

	if (rl_sock_is_candidate(fd) && read_message(&own, m) &&
	    rl_sock_recv(fd, own.msg_iov, own.msg_iovlen, flags, &rv))
		return rv < 0 || tell_nothing(m) ? rv : rl_hook_result(-EFAULT);
	rv = flags & MSG_ERRQUEUE ? RL_CALL_OWN(recvmsg, fd, m, flags) :
		RL_CALL(recvmsg, fd, m, flags);
	if (likely(rl_sockets_on) && rv >= 0)
		look_at_found(m);
	return rv;
}

/* ---- send and recv ---- */

RL_HOOK ssize_t sendto(int fd, const void *buf, size_t len, int flags, const struct sockaddr *a,
		       socklen_t a_len)
{
	ssize_t rv;

	if (rl_sock_is_candidate(fd) && rl_sock_send_one(fd, buf, len, flags, &rv))
		return rv;
	return RL_CALL(sendto, fd, buf, len, flags, a, a_len);
}

RL_HOOK ssize_t send(int fd, const void *buf, size_t len, int flags)
{
	__typeof__(&send) real;
	ssize_t rv;

	if (rl_sock_is_candidate(fd) && rl_sock_send_one(fd, buf, len, flags, &rv))
		return rv;
	real = RL_REAL(send);
	return real ? real(fd, buf, len, flags)
		    : syscall(SYS_sendto, fd, buf, len, flags, NULL, 0);
}

RL_HOOK ssize_t recvfrom(int fd, void *buf, size_t len, int flags, struct sockaddr *a,
			 socklen_t *a_len)
{
	socklen_t room = 0;
	ssize_t rv;

	if (rl_sock_is_candidate(fd) && a && !rl_option_copy(&room, a_len, sizeof(room)))
		return rl_hook_result(-EFAULT);
	if ((int)room < 0)
		return rl_hook_result(-EINVAL);
	room = 0;
	if (rl_sock_is_candidate(fd) && rl_sock_recv_one(fd, buf, len, flags, &rv)) {
		if (rv >= 0 && a && !rl_option_copy(a_len, &room, sizeof(room)))
			return rl_hook_result(-EFAULT);
		return rv;
	}
	return flags & MSG_ERRQUEUE ? RL_CALL_OWN(recvfrom, fd, buf, len, flags, a, a_len) :
		RL_CALL(recvfrom, fd, buf, len, flags, a, a_len);
}

RL_HOOK ssize_t __recvfrom_chk(int fd, void *buf, size_t len, size_t room, int flags,
			       struct sockaddr *a, socklen_t *a_len)
{
	if (len > room)
		__chk_fail();
	return recvfrom(fd, buf, len, flags, a, a_len);
}

RL_HOOK ssize_t recv(int fd, void *buf, size_t len, int flags)
{
	__typeof__(&recv) real;
	ssize_t rv;

	if (flags & MSG_ERRQUEUE)
		return recvfrom(fd, buf, len, flags, NULL, NULL);
	if (rl_sock_is_candidate(fd) && rl_sock_recv_one(fd, buf, len, flags, &rv))
		return rv;
	real = RL_REAL(recv);
	return real ? real(fd, buf, len, flags)
		    : syscall(SYS_recvfrom, fd, buf, len, flags, NULL, NULL);
}

RL_HOOK ssize_t __recv_chk(int fd, void *buf, size_t len, size_t room, int flags)
{
	if (len > room)
		__chk_fail();
	return recv(fd, buf, len, flags);
}

/* ---- many messages ---- */

/* The kernel's own loop: an error behind the first message is the next call's. */
static int each_message(int fd, struct mmsghdr *m, unsigned int n, int flags, bool is_send,
			u64 until)
{
	unsigned int i, len;
	ssize_t rv;

	for (i = 0; i < n && i < 1024; i++) {
		rv = is_send ? sendmsg(fd, &m[i].msg_hdr, flags) :
			recvmsg(fd, &m[i].msg_hdr, flags & ~MSG_WAITFORONE);
		len = (unsigned int)rv;
		if (rv >= 0 && !rl_option_copy(&m[i].msg_len, &len, sizeof(len)))
			rv = rl_hook_result(-EFAULT);
		if (rv < 0)
			return i ? (int)i : -1;
		if (!is_send && flags & MSG_WAITFORONE)
			flags |= MSG_DONTWAIT;
		if (until && rl_now_ns() >= until)
			return (int)i + 1;
	}
	return (int)i;
}

static bool any_hands_over(const struct mmsghdr *m, unsigned int n)
{
	struct msghdr own;
	unsigned int i;

	for (i = 0; i < n && i < 1024 && read_message(&own, &m[i].msg_hdr); i++)
		if (hands_over(&own))
			return true;
	return false;
}

RL_HOOK int sendmmsg(int fd, struct mmsghdr *m, unsigned int n, int flags)
{
	return rl_sock_is_candidate(fd) || (unlikely(rl_sockets_on) && any_hands_over(m, n)) ?
		each_message(fd, m, n, flags, true, 0) : RL_CALL(sendmmsg, fd, m, n, flags);
}

#define NS		1000000000ull
/* Longer than any wait. */
#define YEARS		3000000000ll

/* The time is looked at between messages only, as the kernel does, and reports what is left. */
static int receive_in_time(int fd, struct mmsghdr *m, unsigned int n, int flags,
			   struct timespec *t)
{
	struct timespec own;
	u64 until, now;
	int rv;

	if (!rl_option_copy(&own, t, sizeof(own)))
		return (int)rl_hook_result(-EFAULT);
	if (own.tv_sec < 0 || own.tv_nsec < 0 || (u64)own.tv_nsec >= NS)
		return (int)rl_hook_result(-EINVAL);
	until = rl_now_ns() + (own.tv_sec < YEARS ? (u64)own.tv_sec : YEARS) * NS +
		(u64)own.tv_nsec;
	rv = each_message(fd, m, n, flags, false, until);
	now = rl_now_ns();
	now = now < until ? until - now : 0;
	own = (struct timespec){ .tv_sec = (time_t)(now / NS), .tv_nsec = (long)(now % NS) };
	return rv > 0 && !rl_option_copy(t, &own, sizeof(own)) ? (int)rl_hook_result(-EFAULT) : rv;
}

RL_HOOK int recvmmsg(int fd, struct mmsghdr *m, unsigned int n, int flags, struct timespec *t)
{
	if (!rl_sock_is_candidate(fd))
		return RL_CALL(recvmmsg, fd, m, n, flags, t);
	return t ? receive_in_time(fd, m, n, flags, t) :
		each_message(fd, m, n, flags, false, 0);
}

/* ---- files ---- */

/*
 * At a place of -1 these are readv() and writev(); a socket has no other place. A stream refuses
 * flags, which the kernel would judge.
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
	bool may_be = at == -1 && rl_sock_is_candidate(fd);

	if (may_be && !flags)
		return readv(fd, iov, n);
	if (may_be && has_no_flags(fd))
		return rl_hook_result(-EOPNOTSUPP);
	return RL_PASS(preadv2, fd, iov, n, at, flags);
}

RL_HOOK ssize_t pwritev2(int fd, const struct iovec *iov, int n, off_t at, int flags)
{
	bool may_be = at == -1 && rl_sock_is_candidate(fd);

	if (may_be && !flags)
		return writev(fd, iov, n);
	if (may_be && has_no_flags(fd))
		return rl_hook_result(-EOPNOTSUPP);
	return RL_PASS(pwritev2, fd, iov, n, at, flags);
}

RL_ALIAS(preadv2, preadv64v2);
RL_ALIAS(pwritev2, pwritev64v2);

/*
 * Of a place that can be read the kernel, too, has sent before it finds that it cannot be written.
 */
static ssize_t tell_place(off_t *at, off_t own, ssize_t rv)
{
	return !at || rv < 0 || rl_option_copy(at, &own, sizeof(own)) ? rv :
		rl_hook_result(-EFAULT);
}

RL_HOOK ssize_t sendfile(int fd, int in, off_t *at, size_t len)
{
	off_t own = 0;
	ssize_t rv;

	/* What is not there the kernel refuses. */
	if (rl_sock_is_candidate(fd) && (!at || rl_option_copy(&own, at, sizeof(own))) &&
	    rl_sock_sendfile(fd, in, at ? &own : NULL, len, &rv))
		return tell_place(at, own, rv);
	if (rl_sock_is_bound(in))
		return rl_hook_result(-EINVAL);
	return RL_PASS(sendfile, fd, in, at, len);
}

RL_ALIAS(sendfile, sendfile64);

/* What comes of it is no octets of TCP's, which the kernel would move: programs go on without. */
RL_HOOK ssize_t splice(int in, off64_t *in_at, int out, off64_t *out_at, size_t len,
		       unsigned int flags)
{
	struct rl_sock *sk;
	int end = rl_sock_is_candidate(in) ? in : rl_sock_is_candidate(out) ? out : -1;

	sk = end < 0 ? NULL : rl_sock_begin(end);
	if (!sk)
		return RL_CALL(splice, in, in_at, out, out_at, len, flags);
	rl_sock_end(sk);
	return rl_hook_result(-EINVAL);
}
