// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The ports of QP numbers, and their sockets. */
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "host/accept.h"
#include "process/file.h"
#include "byhand_conn.h"
#include "process/options.h"
#include "port_group.h"
#include "process/raw.h"
#include "ud.h"

/* TCP's backlog: a peer beyond it retries after a second. */
#define TCP_QUEUE	4096
/* Tries at a port of the kernel's choice: UDP's port of that number may be in use. */
#define TRIES		64

struct group {
	struct rl_acceptor acceptor;	/* first: the references */
	struct list_head node;
	u16 port;
	bool six;
	int tcp, udp;			/* hidden; tcp until the acceptor has it */
	u32 used;			/* numbers taken */
	u8 from;			/* the first index to try */
	bool taken[RL_GROUP_QPS];
};

static struct {
	pthread_mutex_t lock;
	struct list_head groups;
} all = { .lock = PTHREAD_MUTEX_INITIALIZER, .groups = LIST_HEAD_INIT(all.groups) };

/* ---- sockets ---- */

/* The wildcard address. */
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

/* A socket on *@port. 0 becomes the kernel's choice. */
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
	*port = ntohs(six ? ((struct sockaddr_in6 *)&a)->sin6_port :
			    ((struct sockaddr_in *)&a)->sin_port);
	return fd;
}

/* Both sockets on @port; 0: of the kernel's choice. */
static int open_pair(struct group *g, u16 port)
{
	int tcp = open_bound(g->six, SOCK_STREAM, &port), udp, rv;

	if (tcp < 0)
		return tcp;
	if (port == rl_qpn_port(RL_GROUP_QPN)) {
		rl_raw(SYS_close, tcp);
		return -EADDRINUSE;
	}
	udp = open_bound(g->six, SOCK_DGRAM, &port);
	if (udp < 0) {
		rl_raw(SYS_close, tcp);
		return udp;
	}
	g->port = port;
	g->tcp = rl_fd_hide(tcp);
	g->udp = rl_fd_hide(udp);
	if (g->tcp < 0 || g->udp < 0)
		return -EMFILE;
	rv = rl_acceptor_start(&g->acceptor, g->tcp, TCP_QUEUE);
	if (!rv)
		g->tcp = -1;
	return rv;
}

static bool has_six(void)
{
	int fd = open_one(true, SOCK_DGRAM);

	if (fd >= 0)
		rl_raw(SYS_close, fd);
	return fd >= 0;
}

static u32 random_u32(void)
{
	u32 number;

	return getrandom(&number, sizeof(number), 0) == sizeof(number) ? number : 0;
}

/* From a random port of the range on: processes that start together do not collide at each. */
static int open_in_range(struct group *g, u32 min, u32 max)
{
	u32 n = max - min + 1, at = random_u32(), i;
	int rv = -EADDRINUSE;

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

/* Whether it listens already or not. */
static void close_sockets(struct group *g)
{
	if (g->acceptor.fd >= 0)
		rl_acceptor_stop(&g->acceptor);
	rl_acceptor_drop_half_open(&g->acceptor);
	if (g->tcp >= 0)
		rl_fd_close_hidden(g->tcp);
	if (g->udp >= 0)
		rl_fd_close_hidden(g->udp);
}

/* ---- the acceptor's calls ---- */

static struct group *group_of(struct rl_acceptor *a)
{
	return container_of(a, struct group, acceptor);
}

/* Its Request will name the QP. */
static bool port_group_adopt(struct rl_acceptor *a, struct rl_conn *c)
{
	return true;
}

static void port_group_release(struct rl_acceptor *a)
{
	rl_acceptor_fini(a);
	free(group_of(a));
}

static const struct rl_acceptor_ops group_ops = {
	.ulp = &rl_byhand_ulp,
	.adopt = port_group_adopt,
	.release = port_group_release,
};

/* ---- groups; with the lock ---- */

/* The group of a number that is taken. */
static struct group *find_port_group(u16 port)
{
	struct group *g;

	list_for_each_entry(g, &all.groups, node)
		if (g->port == port)
			break;
	return g;
}

static struct group *group_with_room(void)
{
	struct group *g;

	list_for_each_entry(g, &all.groups, node)
		if (g->used < RL_GROUP_QPS)
			return g;
	return NULL;
}

static void close_port_group(struct group *g)
{
	close_sockets(g);
	rl_watch_put(&g->acceptor.watch);
}

static int open_port_group(struct group **out)
{
	struct group *g = calloc(1, sizeof(*g));
	int rv;

	if (!g)
		return -ENOMEM;
	rl_acceptor_init(&g->acceptor, &group_ops);
	g->tcp = g->udp = -1;
	/* An open port must not give a QP's number away. */
	g->from = (u8)random_u32();
	rv = open_sockets(g);
	if (rv) {
		close_port_group(g);
		return rv;
	}
	list_add(&g->node, &all.groups);
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

/* ---- interface ---- */

int rl_port_group_take(u32 *qpn)
{
	struct group *g;
	int rv = 0;

	pthread_mutex_lock(&all.lock);
	g = group_with_room();
	if (!g)
		rv = open_port_group(&g);
	if (!rv)
		*qpn = (u32)g->port << 8 | take_index(g);
	pthread_mutex_unlock(&all.lock);
	return rv;
}

void rl_port_group_give(u32 qpn)
{
	struct group *g;
	bool last;

	pthread_mutex_lock(&all.lock);
	g = find_port_group(rl_qpn_port(qpn));
	g->taken[(u8)qpn] = false;
	last = !--g->used;
	if (last)
		list_del(&g->node);
	pthread_mutex_unlock(&all.lock);
	if (last)
		close_port_group(g);
}

int rl_port_group_udp(u32 qpn, bool *six)
{
	const struct group *g;
	int fd;

	pthread_mutex_lock(&all.lock);
	g = find_port_group(rl_qpn_port(qpn));
	*six = g->six;
	fd = g->udp;
	pthread_mutex_unlock(&all.lock);
	return fd;
}
