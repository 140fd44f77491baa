// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Hooks of socket calls. A NETLINK_RDMA socket is one end of a pair here (netlink.c): what the
 * kernel does with it is right but for addresses, and for sends, which are answered.
 */
#define _GNU_SOURCE
#include <sys/socket.h>

#include "devices/netlink.h"
#include "process/file.h"
#include "process/gate.h"
#include "process/guard.h"
#include "process/hook.h"

static struct rl_file *get_netlink(int fd)
{
	struct rl_file *f = rl_call_begin(fd);

	if (!f || f->ops->send)
		return f;
	rl_call_end(f);
	return NULL;
}

/* A hook's result, and @f is put. */
static ssize_t finish(struct rl_file *f, ssize_t rv)
{
	rl_call_end(f);
	return rl_hook_result(rv);
}

RL_HOOK int socket(int domain, int type, int protocol)
{
	if (domain == AF_NETLINK && protocol == NETLINK_RDMA)
		return (int)rl_hook_result(rl_netlink_open(type));
	return RL_CALL(socket, domain, type, protocol);
}

RL_HOOK int bind(int fd, const struct sockaddr *a, socklen_t len)
{
	struct rl_file *f = get_netlink(fd);

	return f ? (int)finish(f, rl_netlink_bind(f, a, len)) : RL_CALL(bind, fd, a, len);
}

/* As the kernel tells an address: as much as there is room for, and how long it is. */
static void tell_name(const struct sockaddr_nl *name, void *a, socklen_t *len)
{
	memcpy(a, name, min_t(size_t, *len, sizeof(*name)));
	*len = sizeof(*name);
}

static int name_of(struct rl_file *f, struct sockaddr *a, socklen_t *len)
{
	struct sockaddr_nl name;

	if (!a || !len)
		return -EFAULT;
	rl_netlink_name(f, &name);
	tell_name(&name, a, len);
	return 0;
}

RL_HOOK int getsockname(int fd, struct sockaddr *a, socklen_t *len)
{
	struct rl_file *f = get_netlink(fd);

	return f ? (int)finish(f, name_of(f, a, len)) : RL_CALL(getsockname, fd, a, len);
}

/* Of netlink's own options none changes what is answered here. */
RL_HOOK int setsockopt(int fd, int level, int option, const void *value, socklen_t len)
{
	struct rl_file *f = level == SOL_NETLINK ? get_netlink(fd) : NULL;

	return f ? (int)finish(f, 0) : RL_CALL(setsockopt, fd, level, option, value, len);
}

/* ---- send ---- */

static int check_destination(const struct sockaddr *a, socklen_t len)
{
	if (!a || (len >= sizeof(struct sockaddr_nl) && a->sa_family == AF_NETLINK))
		return 0;
	return -EINVAL;
}

static ssize_t send_ours(struct rl_file *f, int fd, const struct msghdr *m)
{
	int rv = check_destination(m->msg_name, m->msg_namelen);

	return finish(f, rv ? rv : rl_netlink_gather(f, fd, m->msg_iov, m->msg_iovlen));
}

RL_HOOK ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
	struct rl_file *f = get_netlink(fd);

	return f ? send_ours(f, fd, m) : RL_CALL(sendmsg, fd, m, flags);
}

RL_HOOK ssize_t sendto(int fd, const void *buf, size_t len, int flags, const struct sockaddr *a,
		       socklen_t a_len)
{
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };
	struct msghdr m = {
		.msg_name = (void *)a, .msg_namelen = a_len, .msg_iov = &iov, .msg_iovlen = 1,
	};
	struct rl_file *f = get_netlink(fd);

	return f ? send_ours(f, fd, &m) : RL_CALL(sendto, fd, buf, len, flags, a, a_len);
}

RL_HOOK ssize_t send(int fd, const void *buf, size_t len, int flags)
{
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct rl_file *f = get_netlink(fd);
	__typeof__(&send) real;

	if (f)
		return send_ours(f, fd, &m);
	real = RL_REAL(send);
	return real ? real(fd, buf, len, flags)
		    : syscall(SYS_sendto, fd, buf, len, flags, NULL, 0);
}

/* ---- receive ---- */

/* What netlink answers comes from the kernel, whose port is 0. The call is over before the wait. */
static const struct sockaddr_nl kernel_name = { .nl_family = AF_NETLINK };

static ssize_t recvfrom_ours(struct rl_file *f, int fd, void *buf, size_t len, int flags,
			     struct sockaddr *a, socklen_t *a_len)
{
	ssize_t rv;

	rl_call_end(f);
	rv = RL_CALL(recvfrom, fd, buf, len, flags, NULL, NULL);
	if (rv >= 0 && a && a_len)
		tell_name(&kernel_name, a, a_len);
	return rv;
}

RL_HOOK ssize_t recvfrom(int fd, void *buf, size_t len, int flags, struct sockaddr *a,
			 socklen_t *a_len)
{
	struct rl_file *f = get_netlink(fd);

	return f ? recvfrom_ours(f, fd, buf, len, flags, a, a_len)
		 : RL_CALL(recvfrom, fd, buf, len, flags, a, a_len);
}

/* What a program compiled with _FORTIFY_SOURCE calls. */
ssize_t __recvfrom_chk(int fd, void *buf, size_t len, size_t room, int flags, struct sockaddr *a,
		       socklen_t *a_len);
void __chk_fail(void) __attribute__((noreturn));

RL_HOOK ssize_t __recvfrom_chk(int fd, void *buf, size_t len, size_t room, int flags,
			       struct sockaddr *a, socklen_t *a_len)
{
	if (len > room)
		__chk_fail();
	return recvfrom(fd, buf, len, flags, a, a_len);
}

/* False: some of @to or @from is not there. */
static bool copy(void *to, const void *from, size_t n)
{
	bool ok;

	rl_gate_enter();
	rl_guard_begin();
	ok = rl_guard_copy(to, from, n);
	rl_gate_leave();
	return ok;
}

/* What recvmsg() says beside the octets. */
static bool tell_message(struct msghdr *m, const struct msghdr *says)
{
	return copy(&m->msg_namelen, &says->msg_namelen, sizeof(m->msg_namelen)) &&
		copy(&m->msg_controllen, &says->msg_controllen, sizeof(m->msg_controllen)) &&
		copy(&m->msg_flags, &says->msg_flags, sizeof(m->msg_flags));
}

static ssize_t recvmsg_ours(struct rl_file *f, int fd, struct msghdr *m, int flags)
{
	struct msghdr own;
	socklen_t room;
	void *name;
	ssize_t rv;
	bool told;

	rl_call_end(f);
	if (!copy(&own, m, sizeof(own)))
		return rl_hook_result(-EFAULT);
	name = own.msg_name;
	room = own.msg_namelen;
	own.msg_name = NULL;
	own.msg_namelen = 0;
	rv = RL_CALL(recvmsg, fd, &own, flags);
	if (rv < 0)
		return rv;
	told = !name || copy(name, &kernel_name, min_t(size_t, room, sizeof(kernel_name)));
	own.msg_namelen = name ? sizeof(kernel_name) : room;
	return told && tell_message(m, &own) ? rv : rl_hook_result(-EFAULT);
}

RL_HOOK ssize_t recvmsg(int fd, struct msghdr *m, int flags)
{
	struct rl_file *f = get_netlink(fd);

	return f ? recvmsg_ours(f, fd, m, flags) : RL_CALL(recvmsg, fd, m, flags);
}
