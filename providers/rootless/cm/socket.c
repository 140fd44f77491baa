// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The sockets of ids: TCP's, or UDP's if the id is for datagrams. A bound id has a socket, which
 * holds its port.
 */
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include "id.h"
#include "process/file.h"
#include "process/options.h"
#include "process/raw.h"

/* The range of TCP_MAXSEG. */
#define MSS_MIN		88
#define MSS_MAX		32767
#define TCP_HEADER	20
#define IPV4_HEADER	20
#define IPV6_HEADER	40

/*
 * An RNIC has no datagrams. IPoIB's port space is InfiniBand's: its qkey belongs to a group that
 * Ethernet does not have.
 */
bool rl_cm_is_served(const struct rl_cmid *id)
{
	return id->ps == RDMA_PS_TCP || (rl_cmid_is_ud(id) && rl_options()->roce);
}

/* ---- sockets ---- */

static void socket_set_option(int fd, int level, int name, int value)
{
	rl_raw(SYS_setsockopt, fd, level, name, &value, sizeof(value));
}

static void set_tos(int fd, int family, u8 tos)
{
	socket_set_option(fd, IPPROTO_IP, IP_TOS, tos);
	if (family == AF_INET6)
		socket_set_option(fd, IPPROTO_IPV6, IPV6_TCLASS, tos);
}

/*
 * FPDUs are multiples of four octets, and can fill segments of such a size. Larger ones than
 * TCP_MAXSEG allows are left alone.
 */
static void set_segment_size(int fd, int family, u32 mtu)
{
	u32 headers = TCP_HEADER + (family == AF_INET6 ? IPV6_HEADER : IPV4_HEADER);
	u32 mss = (mtu - headers) & ~3u;

	if (mtu > headers && mss >= MSS_MIN && mss <= MSS_MAX)
		socket_set_option(fd, IPPROTO_TCP, TCP_MAXSEG, mss);
}

static void socket_set_options(int fd, int family, const struct rl_cmid *id)
{
	/* Accepted sockets inherit it. */
	if (!rl_cmid_is_ud(id) && id->dev)
		set_segment_size(fd, family, rl_device_mtu(id->dev));
	if (READ_ONCE(id->tos_set))
		set_tos(fd, family, READ_ONCE(id->tos));
	if (family == AF_INET6 && id->afonly)
		socket_set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
}

static int socket_open(const struct rl_cmid *id, int family)
{
	int type = rl_cmid_is_ud(id) ? SOCK_DGRAM : SOCK_STREAM;
	int fd = rl_raw(SYS_socket, family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd >= 0)
		socket_set_options(fd, family, id);
	return fd;
}

static int bind_as_is(int fd, const struct sockaddr_storage *a)
{
	return rl_raw(SYS_bind, fd, a, rl_addr_len(a));
}

/* A port of the range that the options give: starts with another one each time. */
static int bind_in_range(int fd, struct sockaddr_storage a, u32 min, u32 max)
{
	static u32 turn;
	u32 span = max - min + 1, start = __atomic_fetch_add(&turn, 1, __ATOMIC_RELAXED), i;
	int rv = -EADDRINUSE;

	for (i = 0; i < span && rv == -EADDRINUSE; i++) {
		rl_addr_set_port(&a, min + (start + i) % span);
		rv = bind_as_is(fd, &a);
	}
	return rv;
}

static int bind_to(int fd, const struct sockaddr_storage *a)
{
	const struct rl_options *o = rl_options();

	if (!rl_addr_port(a) && o->port_min && o->port_max >= o->port_min)
		return bind_in_range(fd, *a, o->port_min, o->port_max);
	return bind_as_is(fd, a);
}

/*
 * For this id alone, unless it shares its address. rdma_cm ignores connections that have ended, so
 * the strict bind is tried first, then one that ignores them. UDP has none, and would share with
 * any socket.
 */
static int bind_alone(int fd, const struct sockaddr_storage *a, const struct rl_cmid *id)
{
	int rv;

	socket_set_option(fd, SOL_SOCKET, SO_REUSEADDR, id->reuseaddr);
	rv = bind_to(fd, a);
	if (rv != -EADDRINUSE || id->reuseaddr || rl_cmid_is_ud(id) || !rl_addr_port(a))
		return rv;
	socket_set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	return bind_to(fd, a);
}

/* Makes @fd the id's socket and its address the id's; closes it on failure. */
static int keep_socket(struct rl_cmid *id, int fd)
{
	struct sockaddr_storage a = { 0 };
	socklen_t len = sizeof(a);
	int rv = rl_raw(SYS_getsockname, fd, &a, &len);

	if (rv) {
		rl_raw(SYS_close, fd);
		return rv;
	}
	fd = rl_fd_hide(fd);
	if (fd < 0)
		return fd;
	id->sock = fd;
	id->src = a;
	return 0;
}

void rl_cm_drop_socket(struct rl_cmid *id)
{
	if (id->sock >= 0)
		rl_fd_close_hidden(id->sock);
	id->sock = -1;
}

/* ---- binding ---- */

static int socket_bind(struct rl_cmid *id, const struct sockaddr_storage *a)
{
	int fd = socket_open(id, a->ss_family), rv;

	if (fd < 0)
		return fd;
	rv = bind_alone(fd, a, id);
	if (rv) {
		rl_raw(SYS_close, fd);
		return rv;
	}
	return keep_socket(id, fd);
}

int rl_cm_bind(struct rl_cmid *id, const struct sockaddr_storage *a)
{
	const struct rl_device *dev = NULL;
	int rv;

	if (!rl_addr_len(a))
		return -EAFNOSUPPORT;
	if (id->phase != RL_CM_IDLE)
		return -EINVAL;
	if (!rl_cm_is_served(id))
		return -ENODEV;
	if (!rl_addr_is_any(a))
		dev = rl_device_of_address((const struct sockaddr *)a);
	id->dev = dev;
	rv = socket_bind(id, a);
	if (!rv && !dev && !rl_addr_is_any(a)) {
		rl_cm_drop_socket(id);
		rv = -ENODEV;
	}
	if (rv)
		id->dev = NULL;
	else
		id->phase = RL_CM_BOUND;
	return rv;
}

/* ---- options ---- */

int rl_cm_set_reuseaddr(struct rl_cmid *id, bool on)
{
	if (id->phase != RL_CM_IDLE && (!on || id->phase == RL_CM_LISTEN))
		return -EINVAL;
	id->reuseaddr = on;
	if (id->sock >= 0)
		socket_set_option(id->sock, SOL_SOCKET, SO_REUSEADDR, on);
	return 0;
}

/* The option has to be set before bind(). */
int rl_cm_set_afonly(struct rl_cmid *id, bool on)
{
	struct sockaddr_storage a = id->src;
	int rv;

	if (id->phase != RL_CM_IDLE && id->phase != RL_CM_BOUND)
		return -EINVAL;
	id->afonly = on;
	if (id->phase == RL_CM_IDLE || a.ss_family != AF_INET6)
		return 0;
	rl_cm_drop_socket(id);
	rv = socket_bind(id, &a);
	if (rv)
		id->phase = RL_CM_IDLE;
	return rv;
}

void rl_cm_set_tos(struct rl_cmid *id, u8 tos)
{
	WRITE_ONCE(id->tos, tos);
	WRITE_ONCE(id->tos_set, true);
	if (id->sock >= 0)
		set_tos(id->sock, id->src.ss_family, tos);
}

/* ---- connecting ---- */

/* A socket with @id's source address, and its port or any. */
static int open_active(const struct rl_cmid *id, bool any_port, bool port_now)
{
	struct sockaddr_storage own = id->src;
	int fd = socket_open(id, own.ss_family), rv;

	if (fd < 0)
		return fd;
	socket_set_option(fd, SOL_SOCKET, SO_REUSEADDR, !rl_cmid_is_ud(id));
	if (any_port)
		rl_addr_set_port(&own, 0);
	/* Ports with connections to other peers will do, too. */
	if (any_port && !port_now)
		socket_set_option(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
	rv = bind_to(fd, &own);
	if (!rv)
		return fd;
	rl_raw(SYS_close, fd);
	return rv;
}

static int socket_to_connect(const struct rl_cmid *id, bool any_port)
{
	if (any_port || id->sock < 0)
		return open_active(id, true, false);
	return rl_raw(SYS_fcntl, id->sock, F_DUPFD_CLOEXEC, 0);
}

int rl_cm_start_connecting(struct rl_cmid *id, bool any_port)
{
	int fd = socket_to_connect(id, any_port), rv;

	if (fd < 0)
		return fd;
	rv = rl_raw(SYS_connect, fd, &id->dst, rl_addr_len(&id->dst));
	if (!rv || rv == -EINPROGRESS)
		return fd;
	rl_raw(SYS_close, fd);
	return rv;
}

int rl_cm_take_source(struct rl_cmid *id, const struct sockaddr_storage *local)
{
	u16 port = id->sock < 0 ? 0 : rl_addr_port(&id->src);
	int fd;

	id->src = *local;
	rl_addr_set_port(&id->src, port);
	if (id->sock >= 0)
		return 0;
	fd = open_active(id, true, true);
	/* No port is free for all peers: connect() will find one. */
	if (fd == -EADDRINUSE)
		return 0;
	return fd < 0 ? fd : keep_socket(id, fd);
}
