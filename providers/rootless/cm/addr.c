// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Addresses: what an id is bound to, which device leads to a peer, and the sockets that have these
 * addresses: TCP's, or UDP's of an id of datagrams. An id has its port from the moment it is bound, and so
 * its socket.
 */
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include "id.h"
#include "process/file.h"
#include "process/options.h"
#include "process/raw.h"
#include "roce/ud.h"

/* A peer that fell silent is given up after about two minutes, as by the driver. */
#define KEEP_IDLE_S	60
#define KEEP_INTERVAL_S	10
#define KEEP_COUNT	6
#define USER_TIMEOUT_MS	120000

/* What TCP_MAXSEG takes. */
#define MSS_MIN		88
#define MSS_MAX		32767
#define TCP_HEADER	20
#define IPV4_HEADER	20
#define IPV6_HEADER	40

/* ---- addresses ---- */

bool rl_addr_is_any(const struct sockaddr_storage *a)
{
	if (a->ss_family == AF_INET6)
		return IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)a)->sin6_addr);
	return ((const struct sockaddr_in *)a)->sin_addr.s_addr == htonl(INADDR_ANY);
}

u32 rl_addr_len(const struct sockaddr_storage *a)
{
	switch (a->ss_family) {
	case AF_INET:
		return sizeof(struct sockaddr_in);
	case AF_INET6:
		return sizeof(struct sockaddr_in6);
	default:
		return 0;
	}
}

u16 rl_addr_port(const struct sockaddr_storage *a)
{
	return ntohs(a->ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)a)->sin6_port
					      : ((const struct sockaddr_in *)a)->sin_port);
}

static void set_port(struct sockaddr_storage *a, u16 port)
{
	if (a->ss_family == AF_INET6)
		((struct sockaddr_in6 *)a)->sin6_port = htons(port);
	else
		((struct sockaddr_in *)a)->sin_port = htons(port);
}

static const struct rl_device *device_of(const struct sockaddr_storage *a)
{
	return rl_device_of_address((const struct sockaddr *)a);
}

static bool is_datagrams(const struct rl_cmid *id)
{
	return id->ps == RDMA_PS_UDP;
}

bool rl_addr_is_group(const struct sockaddr_storage *a)
{
	u8 gid[RL_GID_LEN];

	rl_gid_of_address(a, gid);
	return rl_gid_is_group(gid);
}

/*
 * An RNIC has connections alone. IPoIB's port space is InfiniBand's: its qkey is that of a group which no
 * Ethernet has.
 */
static bool is_served(const struct rl_cmid *id)
{
	return id->ps == RDMA_PS_TCP || (is_datagrams(id) && rl_options()->roce);
}

/* ---- paths ---- */

void rl_cm_gids(const struct rl_cmid *id, u8 sgid[RL_GID_LEN], u8 dgid[RL_GID_LEN])
{
	memset(sgid, 0, RL_GID_LEN);
	memset(dgid, 0, RL_GID_LEN);
	/* An RNIC's peers have none. */
	if (id->dev && !rl_options()->roce)
		memcpy(sgid, id->dev->gids[0], RL_GID_LEN);
	if (!rl_options()->roce)
		return;
	rl_gid_of_address(&id->src, sgid);
	rl_gid_of_address(&id->dst, dgid);
}

void rl_cm_put_path(const struct rl_cmid *id, struct ib_uverbs_ah_attr *ah)
{
	u8 sgid[RL_GID_LEN];

	rl_cm_gids(id, sgid, ah->grh.dgid);
	ah->grh.sgid_index = (u8)rl_device_gid_index(id->dev, sgid);
	ah->grh.hop_limit = RL_HOP_LIMIT;
	ah->grh.traffic_class = id->tos;
	ah->is_global = 1;
	ah->port_num = RL_PORT;
}

/* ---- sockets ---- */

static void set_option(int fd, int level, int name, int value)
{
	rl_raw(SYS_setsockopt, fd, level, name, &value, sizeof(value));
}

static void set_tos(int fd, int family, u8 tos)
{
	set_option(fd, IPPROTO_IP, IP_TOS, tos);
	if (family == AF_INET6)
		set_option(fd, IPPROTO_IPV6, IPV6_TCLASS, tos);
}

/*
 * FPDUs are multiples of four octets: with such segments they can fill them. A larger MTU than TCP
 * lets us ask for is left as it is.
 */
static void set_segment_size(int fd, int family, u32 mtu)
{
	u32 headers = TCP_HEADER + (family == AF_INET6 ? IPV6_HEADER : IPV4_HEADER);
	u32 mss = (mtu - headers) & ~3u;

	if (mtu > headers && mss >= MSS_MIN && mss <= MSS_MAX)
		set_option(fd, IPPROTO_TCP, TCP_MAXSEG, mss);
}

/* What a listener's children inherit, too. */
static void set_tcp_options(int fd, int family, const struct rl_cmid *id)
{
	set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEP_IDLE_S);
	set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEP_INTERVAL_S);
	set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEP_COUNT);
	set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, USER_TIMEOUT_MS);
	if (id->dev)
		set_segment_size(fd, family, id->dev->mtu);
}

static void set_options(int fd, int family, const struct rl_cmid *id)
{
	if (!is_datagrams(id))
		set_tcp_options(fd, family, id);
	if (READ_ONCE(id->tos_set))
		set_tos(fd, family, READ_ONCE(id->tos));
	if (family == AF_INET6 && id->afonly)
		set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
}

static int open_socket(const struct rl_cmid *id, int family)
{
	int type = is_datagrams(id) ? SOCK_DGRAM : SOCK_STREAM;
	int fd = rl_raw(SYS_socket, family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd >= 0)
		set_options(fd, family, id);
	return fd;
}

static int bind_as_is(int fd, const struct sockaddr_storage *a)
{
	return rl_raw(SYS_bind, fd, a, rl_addr_len(a));
}

/* A port of the range that the options ask for: each time another is tried first. */
static int bind_in_range(int fd, struct sockaddr_storage a, u32 min, u32 max)
{
	static u32 turn;
	u32 span = max - min + 1, start = __atomic_fetch_add(&turn, 1, __ATOMIC_RELAXED), i;
	int rv = -EADDRINUSE;

	for (i = 0; i < span && rv == -EADDRINUSE; i++) {
		set_port(&a, min + (start + i) % span);
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
 * For this id alone, unless it wants to share. rdma_cm does not look at connections of the past,
 * so TCP is asked strictly first, and then without them. UDP has none, and would share with anybody.
 */
static int bind_alone(int fd, const struct sockaddr_storage *a, const struct rl_cmid *id)
{
	int rv;

	set_option(fd, SOL_SOCKET, SO_REUSEADDR, id->reuseaddr);
	rv = bind_to(fd, a);
	if (rv != -EADDRINUSE || id->reuseaddr || is_datagrams(id) || !rl_addr_port(a))
		return rv;
	set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	return bind_to(fd, a);
}

/* @fd becomes the id's socket, and its address the id's; closed if that fails. */
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

static int bind_id(struct rl_cmid *id, const struct sockaddr_storage *a)
{
	int fd = open_socket(id, a->ss_family), rv;

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
	if (!is_served(id))
		return -ENODEV;
	if (!rl_addr_is_any(a))
		dev = device_of(a);
	id->dev = dev;
	rv = bind_id(id, a);
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
		set_option(id->sock, SOL_SOCKET, SO_REUSEADDR, on);
	return 0;
}

/* A socket learns it before it is bound. */
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
	rv = bind_id(id, &a);
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
	int fd = open_socket(id, own.ss_family), rv;

	if (fd < 0)
		return fd;
	set_option(fd, SOL_SOCKET, SO_REUSEADDR, !is_datagrams(id));
	if (any_port)
		set_port(&own, 0);
	/* Ports that lead to other peers will do, too. */
	if (any_port && !port_now)
		set_option(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
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

/* ---- resolving ---- */

/* The source address by which the kernel would send to @dst: a UDP socket sends nothing for it. */
static int ask_route(const struct sockaddr_storage *src, const struct sockaddr_storage *dst,
		     struct sockaddr_storage *local)
{
	int fd = rl_raw(SYS_socket, dst->ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0), rv = 0;
	struct sockaddr_storage own = *src;
	socklen_t len = sizeof(*local);

	if (fd < 0)
		return fd;
	if (own.ss_family && !rl_addr_is_any(&own)) {
		set_port(&own, 0);
		rv = bind_as_is(fd, &own);
	}
	if (!rv)
		rv = rl_raw(SYS_connect, fd, dst, rl_addr_len(dst));
	memset(local, 0, sizeof(*local));
	if (!rv)
		rv = rl_raw(SYS_getsockname, fd, local, &len);
	rl_raw(SYS_close, fd);
	return rv;
}

/* The id gets the address, a port, and a socket, unless it was bound before. */
static int take_source(struct rl_cmid *id, const struct sockaddr_storage *local)
{
	u16 port = id->sock < 0 ? 0 : rl_addr_port(&id->src);
	int fd;

	id->src = *local;
	set_port(&id->src, port);
	if (id->sock >= 0)
		return 0;
	fd = open_active(id, true, true);
	/* No port is free for all peers: connect() will find one. */
	if (fd == -EADDRINUSE)
		return 0;
	return fd < 0 ? fd : keep_socket(id, fd);
}

static int resolve(struct rl_cmid *id)
{
	struct sockaddr_storage local;
	const struct rl_device *dev;
	int rv;

	if (!is_served(id))
		return -ENODEV;
	/* A group is on the netdev that the id is bound to, whatever route there is. */
	if (is_datagrams(id) && id->dev && rl_addr_is_group(&id->dst))
		return 0;
	rv = ask_route(&id->src, &id->dst, &local);
	if (rv)
		return rv;
	dev = device_of(&local);
	if (!dev)
		return -ENODEV;
	id->dev = dev;
	return take_source(id, &local);
}

/* Of an id that is bound already the source stays what it is. */
static int bind_for_resolving(struct rl_cmid *id, const struct sockaddr_storage *src,
			      const struct sockaddr_storage *dst)
{
	if (id->phase != RL_CM_IDLE && id->phase != RL_CM_BOUND)
		return -EINVAL;
	if (id->phase == RL_CM_IDLE && src->ss_family && is_served(id)) {
		int rv = rl_cm_bind(id, src);

		if (rv)
			return rv;
	}
	return id->phase == RL_CM_BOUND && id->src.ss_family != dst->ss_family ? -EINVAL : 0;
}

int rl_cm_resolve_addr(struct rl_cmid *id, const struct sockaddr_storage *src,
		       const struct sockaddr_storage *dst)
{
	struct rl_cm_words w = { .event = RL_CM_ADDR_RESOLVED };
	int rv = bind_for_resolving(id, src, dst);

	if (rv)
		return rv;
	id->dst = *dst;
	w.status = resolve(id);
	if (w.status)
		w.event = RL_CM_ADDR_ERROR;
	else
		id->phase = RL_CM_ADDR;
	return rl_cmid_say(id, &w);
}

int rl_cm_resolve_route(struct rl_cmid *id)
{
	const struct rl_cm_words w = { .event = RL_CM_ROUTE_RESOLVED };

	if (id->phase != RL_CM_ADDR)
		return -EINVAL;
	id->phase = RL_CM_ROUTE;
	return rl_cmid_say(id, &w);
}
