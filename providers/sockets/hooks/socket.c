// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Hooks of calls that make, connect and configure sockets. */
#define _GNU_SOURCE
#include <limits.h>
#include <sys/socket.h>

#include "own.h"
#include "sockets/overlay/connect.h"
#include "sockets/overlay/io.h"
#include "sockets/overlay/mode.h"
#include "sockets/overlay/options.h"
#include "sockets/overlay/sock.h"
#include "sockets/stream/option.h"

RL_HOOK int socket(int domain, int type, int protocol)
{
	int fd = RL_CALL(socket, domain, type, protocol);

	if (likely(rl_sockets_on))
		rl_sock_made(fd, domain, type, protocol);
	return fd;
}

/* The rule is looked for before: the program may free the address. */
RL_HOOK int connect(int fd, const struct sockaddr *a, socklen_t len)
{
	const struct rl_rule *rule;

	if (!rl_sock_is_candidate(fd))
		return RL_CALL(connect, fd, a, len);
	if (unlikely(rl_sock_is_none(a, len)))
		return rl_sock_connect_to_none(fd, a, len, RL_REAL(connect));
	rule = rl_sock_rule_to(fd, a, len);
	if (rl_sock_is_connected(fd))
		return (int)rl_hook_result(-EISCONN);
	return rl_sock_connected(fd, rule, RL_CALL(connect, fd, a, len));
}

RL_HOOK int bind(int fd, const struct sockaddr *a, socklen_t len)
{
	return rl_sock_is_connected(fd) ? (int)rl_hook_result(-EINVAL) : RL_CALL(bind, fd, a, len);
}

RL_HOOK int getsockname(int fd, struct sockaddr *a, socklen_t *len)
{
	return RL_CALL_OWN(getsockname, fd, a, len);
}

/* Of a connection that both ends have left TCP says ENOTCONN. */
RL_HOOK int getpeername(int fd, struct sockaddr *a, socklen_t *len)
{
	int rv = RL_CALL_OWN(getpeername, fd, a, len);
	struct sockaddr_in6 peer;
	socklen_t room, own;

	if (rv >= 0 || errno != ENOTCONN || !rl_sock_is_candidate(fd) || !rl_sock_peer(fd, &peer))
		return rv;
	own = peer.sin6_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(peer);
	if (!rl_option_copy(&room, len, sizeof(room)))
		return (int)rl_hook_result(-EFAULT);
	if ((int)room < 0)
		return (int)rl_hook_result(-EINVAL);
	return (int)rl_hook_result(rl_option_copy(a, &peer, room < own ? room : own) &&
				   rl_option_copy(len, &own, sizeof(own)) ? 0 : -EFAULT);
}

RL_HOOK int listen(int fd, int backlog)
{
	if (rl_sock_is_candidate(fd))
		rl_sock_listens(fd);
	return rl_sock_is_connected(fd) ? (int)rl_hook_result(-EINVAL) :
		RL_CALL(listen, fd, backlog);
}

/* The peer's name is the kernel's: the program may have no room for it. */
static int hook_accepted(int fd)
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

	return likely(rl_sockets_on) ? hook_accepted(rv) : rv;
}

RL_HOOK int accept4(int fd, struct sockaddr *a, socklen_t *len, int flags)
{
	int rv = RL_CALL(accept4, fd, a, len, flags);

	return likely(rl_sockets_on) ? hook_accepted(rv) : rv;
}

RL_HOOK int shutdown(int fd, int how)
{
	bool is_known = how == SHUT_RD || how == SHUT_WR || how == SHUT_RDWR;
	int rv;

	/* What is no way to shut it the kernel refuses. */
	if (rl_sock_is_candidate(fd) && is_known && rl_sock_shutdown(fd, how, &rv))
		return rv;
	return RL_CALL(shutdown, fd, how);
}

/* Is there room for an int? What is not there the kernel refuses. */
static bool hook_has_room(const socklen_t *len)
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
	int error, rv;

	if (unlikely(level == SOL_WEFT))
		return (int)rl_hook_result(rl_sock_get_mode(fd, option, value, len));
	if (rl_sock_is_candidate(fd) && level == SOL_SOCKET && option == SO_ERROR &&
	    hook_has_room(len) &&
	    rl_sock_error(fd, &error))
		return tell_error(error, value, len);
	if (rl_sock_is_candidate(fd) && rl_sock_has_option(level, option) &&
	    rl_sock_get_option(fd, level, option, value, len, &rv))
		return rv;
	return RL_CALL_OWN(getsockopt, fd, level, option, value, len);
}

RL_HOOK int setsockopt(int fd, int level, int option, const void *value, socklen_t len)
{
	int rv;

	if (unlikely(level == SOL_WEFT))
		return (int)rl_hook_result(rl_sock_set_mode(fd, option, value, len));
	if (likely(rl_sockets_on) && unlikely(rl_sock_has_option(level, option)) &&
	    rl_sock_set_option(fd, level, option, value, len, &rv))
		return rv;
	return RL_CALL_OWN(setsockopt, fd, level, option, value, len);
}
