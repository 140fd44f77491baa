// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Which port a QP number names, and the sockets of the port. */
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "file.h"
#include "options.h"
#include "port_group.h"
#include "raw.h"

/* Peers that come at once: TCP asks those beyond to come again a second later. */
#define TCP_QUEUE	4096
/* Ports of the kernel's choice of which the other protocol's may be somebody's. */
#define TRIES		64

struct group {
	struct group *next;
	u16 port;
	bool six;
	int tcp, udp;			/* hidden */
	u32 used;			/* numbers taken */
	u8 from;			/* the first index to try */
	bool taken[RL_GROUP_QPS];
};

static struct {
	pthread_mutex_t lock;
	struct group *groups;
} all = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- sockets ---- */

/* All addresses. */
static socklen_t make_any(struct sockaddr_storage *a, bool six, u16 port)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)a;
	struct sockaddr_in *in4 = (struct sockaddr_in *)a;

	memset(a, 0, sizeof(*a));
	a->ss_family = six ? AF_INET6 : AF_INET;
	if (six)
		in6->sin6_port = htons(port);
	else
		in4->sin_port = htons(port);
	return six ? sizeof(*in6) : sizeof(*in4);
}

static int open_one(bool six, int type)
{
	int fd = rl_raw(SYS_socket, six ? AF_INET6 : AF_INET,
			type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), off = 0;

	if (fd >= 0 && six)
		rl_raw(SYS_setsockopt, fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	return fd;
}

/* A socket on *@port, which becomes the kernel's choice if it is 0. */
static int open_bound(bool six, int type, u16 *port)
{
	int fd = open_one(six, type), rv;
	struct sockaddr_storage a;
	socklen_t len = make_any(&a, six, *port);

	if (fd < 0)
		return fd;
	rv = rl_raw(SYS_bind, fd, &a, len);
	if (!rv)
		rv = rl_raw(SYS_getsockname, fd, &a, &len);
	if (rv) {
		rl_raw(SYS_close, fd);
		return rv;
	}
	*port = ntohs(six ? ((struct sockaddr_in6 *)&a)->sin6_port : ((struct sockaddr_in *)&a)->sin_port);
	return fd;
}

/* Both sockets on @port, or one of the kernel's choice (0). */
static int open_pair(struct group *g, u16 port)
{
	int tcp = open_bound(g->six, SOCK_STREAM, &port), udp, rv;

	if (tcp < 0)
		return tcp;
	udp = open_bound(g->six, SOCK_DGRAM, &port);
	rv = udp < 0 ? udp : rl_raw(SYS_listen, tcp, TCP_QUEUE);
	if (rv) {
		rl_raw(SYS_close, tcp);
		if (udp >= 0)
			rl_raw(SYS_close, udp);
		return rv;
	}
	g->port = port;
	g->tcp = rl_fd_hide(tcp);
	g->udp = rl_fd_hide(udp);
	return g->tcp < 0 || g->udp < 0 ? -EMFILE : 0;
}

static bool has_six(void)
{
	int fd = open_one(true, SOCK_DGRAM);

	if (fd >= 0)
		rl_raw(SYS_close, fd);
	return fd >= 0;
}

/* Those of the range, from a random one on: processes that begin together do not meet at each. */
static int open_in_range(struct group *g, u32 min, u32 max)
{
	u32 n = max - min + 1, at, i;
	int rv = -EADDRINUSE;

	if (getrandom(&at, sizeof(at), 0) != sizeof(at))
		at = 0;
	for (i = 0; i < n && rv == -EADDRINUSE; i++)
		rv = open_pair(g, (u16)(min + (at % n + i) % n));
	return rv;
}

static int open_anywhere(struct group *g)
{
	int rv = -EADDRINUSE, i;

	for (i = 0; i < TRIES && rv == -EADDRINUSE; i++)
		rv = open_pair(g, 0);
	return rv;
}

static int open_sockets(struct group *g)
{
	const struct rl_options *o = rl_options();

	g->six = has_six();
	return o->port_min ? open_in_range(g, o->port_min, o->port_max) : open_anywhere(g);
}

/* A child of fork() may have the sockets, too: of what listens no more it has nothing. */
static void close_sockets(struct group *g)
{
	if (g->tcp >= 0) {
		rl_raw(SYS_shutdown, g->tcp, SHUT_RDWR);
		rl_fd_close_hidden(g->tcp);
	}
	if (g->udp >= 0)
		rl_fd_close_hidden(g->udp);
}

/* ---- groups; with the lock ---- */

static struct group **find(u16 port)
{
	struct group **p;

	for (p = &all.groups; *p && (*p)->port != port; p = &(*p)->next)
		;
	return p;
}

static struct group *group_with_room(void)
{
	struct group *g;

	for (g = all.groups; g && g->used == RL_GROUP_QPS; g = g->next)
		;
	return g;
}

static int open_group(struct group **out)
{
	struct group *g = calloc(1, sizeof(*g));
	int rv;

	if (!g)
		return -ENOMEM;
	g->tcp = g->udp = -1;
	rv = open_sockets(g);
	if (rv) {
		close_sockets(g);
		free(g);
		return rv;
	}
	g->next = all.groups;
	all.groups = g;
	*out = g;
	return 0;
}

static u32 take_index(struct group *g)
{
	while (g->taken[g->from])
		g->from++;
	g->taken[g->from] = true;
	g->used++;
	return g->from++;
}

/* ---- for others ---- */

int rl_port_group_take(u32 *qpn)
{
	struct group *g;
	int rv = 0;

	pthread_mutex_lock(&all.lock);
	g = group_with_room();
	if (!g)
		rv = open_group(&g);
	if (!rv)
		*qpn = (u32)g->port << 8 | take_index(g);
	pthread_mutex_unlock(&all.lock);
	return rv;
}

void rl_port_group_give(u32 qpn)
{
	struct group **p, *g;

	pthread_mutex_lock(&all.lock);
	p = find(rl_qpn_port(qpn));
	g = *p;
	g->taken[(u8)qpn] = false;
	if (!--g->used) {
		*p = g->next;
		close_sockets(g);
		free(g);
	}
	pthread_mutex_unlock(&all.lock);
}

int rl_port_group_udp(u32 qpn, bool *six)
{
	const struct group *g;
	int fd;

	pthread_mutex_lock(&all.lock);
	g = *find(rl_qpn_port(qpn));
	*six = g->six;
	fd = g->udp;
	pthread_mutex_unlock(&all.lock);
	return fd;
}
