// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Multicast groups and their member QPs. A group is an IP multicast address. For each group and
 * netdev a process has one UDP socket, bound to the group's address and the port of all groups with
 * SO_REUSEADDR: each process in the group gets its own copy. IP informs the network.
 */
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "kernel/core/ud.h"
#include "datagram.h"
#include "devices/limits.h"
#include "process/file.h"
#include "port_group.h"
#include "process/raw.h"
#include "process/stats.h"
#include "ud.h"

/* Not in all headers: Linux 5.0, 4.20. */
#ifndef SO_BINDTOIFINDEX
#define SO_BINDTOIFINDEX 62
#endif
#ifndef IPV6_MULTICAST_ALL
#define IPV6_MULTICAST_ALL 29
#endif

struct group {
	struct list_head node;
	u8 gid[RL_GID_LEN];
	u32 ifindex;
	int fd;				/* hidden */
	struct rl_ud_socket *socket;
	struct list_head members;
	u32 nmembers;
};

/* A QP's place in a group. */
struct member {
	struct list_head node;		/* the group's */
	struct list_head of_qp;		/* the context's lock */
	struct group *group;
	struct rl_qp *qp;
};

static struct {
	pthread_mutex_t lock;
	struct list_head groups;	/* and their members */
} all = { .lock = PTHREAD_MUTEX_INITIALIZER, .groups = LIST_HEAD_INIT(all.groups) };

static bool group_is_v4(const u8 gid[RL_GID_LEN])
{
	return IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)gid);
}

bool rl_gid_is_group(const u8 gid[RL_GID_LEN])
{
	return group_is_v4(gid) ? gid[12] >> 4 == 0xe : gid[0] == 0xff;
}

/* ---- receiving ---- */

/* Referenced: how many. */
static u32 members_of(const struct group *g, struct rl_qp *qps[RL_GROUP_MEMBERS])
{
	const struct member *m;
	u32 n = 0;

	pthread_mutex_lock(&all.lock);
	list_for_each_entry(m, &g->members, node) {
		rl_qp_get(m->qp);
		qps[n++] = m->qp;
	}
	pthread_mutex_unlock(&all.lock);
	return n;
}

/* The group exists as long as its socket is read. */
static void deliver(struct rl_ud_socket *s, const struct rl_datagram *d,
		    const struct weft_ud_in *in)
{
	struct rl_qp *qps[RL_GROUP_MEMBERS];
	u32 n, i;

	if (d->to != RL_GROUP_QPN) {
		rl_count(RL_STRANGE_DATAGRAMS, 1);
		return;
	}
	n = members_of(rl_ud_socket_group(s), qps);
	for (i = 0; i < n; i++) {
		rl_ud_deliver(qps[i], d->qkey, in);
		rl_qp_put(qps[i]);
	}
}

/* ---- sockets ---- */

static int set_group_option(int fd, int level, int option, int value)
{
	return rl_raw(SYS_setsockopt, fd, level, option, &value, sizeof(value));
}

static int join_ip_group(const struct group *g)
{
	struct ipv6_mreq six = { .ipv6mr_interface = g->ifindex };
	struct ip_mreqn four = { .imr_ifindex = (int)g->ifindex };

	memcpy(&six.ipv6mr_multiaddr, g->gid, sizeof(six.ipv6mr_multiaddr));
	memcpy(&four.imr_multiaddr, g->gid + 12, sizeof(four.imr_multiaddr));
	return group_is_v4(g->gid) ?
	       rl_raw(SYS_setsockopt, g->fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &four, sizeof(four)) :
	       rl_raw(SYS_setsockopt, g->fd, IPPROTO_IPV6, IPV6_ADD_MEMBERSHIP, &six, sizeof(six));
}

/*
 * Groups of other sockets of this host must not be received. IPv6 ignores the netdev unless the
 * socket is bound to it, which needs no privilege since Linux 5.7.
 */
static int bind_to_group(const struct group *g, const struct rl_device *dev)
{
	struct sockaddr_storage a;
	socklen_t len = rl_gid_to_address(dev, g->gid, rl_qpn_port(RL_GROUP_QPN), &a);

	set_group_option(g->fd, SOL_SOCKET, SO_REUSEADDR, 1);
	set_group_option(g->fd, SOL_SOCKET, SO_BINDTOIFINDEX, (int)g->ifindex);
	if (group_is_v4(g->gid))
		set_group_option(g->fd, IPPROTO_IP, IP_MULTICAST_ALL, 0);
	else
		set_group_option(g->fd, IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0);
	return rl_raw(SYS_bind, g->fd, &a, len);
}

static int open_group_socket(struct group *g, const struct rl_device *dev)
{
	bool six = !group_is_v4(g->gid);
	int fd = rl_raw(SYS_socket, six ? AF_INET6 : AF_INET,
			SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), rv;

	if (fd < 0)
		return fd;
	g->fd = rl_fd_hide(fd);
	if (g->fd < 0)
		return g->fd;
	rv = bind_to_group(g, dev);
	if (!rv)
		rv = join_ip_group(g);
	if (rv)
		return rv;
	g->socket = rl_ud_socket_new(g->fd, six, rl_qpn_port(RL_GROUP_QPN), deliver, g);
	return g->socket ? 0 : -ENOMEM;
}

/* It is in no list. */
static void close_mcast_group(struct group *g)
{
	if (g->socket)
		rl_ud_socket_end(g->socket);
	if (g->fd >= 0)
		rl_fd_close_hidden(g->fd);
	free(g);
}

/* ---- groups; with the lock ---- */

static int open_mcast_group(const struct rl_device *dev, const u8 gid[RL_GID_LEN],
			    struct group **out)
{
	struct group *g = calloc(1, sizeof(*g));
	int rv;

	if (!g)
		return -ENOMEM;
	memcpy(g->gid, gid, sizeof(g->gid));
	g->ifindex = dev->ifindex;
	g->fd = -1;
	INIT_LIST_HEAD(&g->members);
	rv = open_group_socket(g, dev);
	if (rv) {
		close_mcast_group(g);
		return rv;
	}
	list_add(&g->node, &all.groups);
	*out = g;
	return 0;
}

static int find_group(const struct rl_device *dev, const u8 gid[RL_GID_LEN], struct group **out)
{
	struct group *g;

	list_for_each_entry(g, &all.groups, node)
		if (g->ifindex == dev->ifindex && !memcmp(g->gid, gid, sizeof(g->gid))) {
			*out = g;
			return 0;
		}
	*out = NULL;
	return open_mcast_group(dev, gid, out);
}

/* Does a member of the group receive at @cq? */
static bool group_serves_cq(const struct group *g, const struct rl_cq *cq)
{
	const struct member *m;

	list_for_each_entry(m, &g->members, node)
		if (m->qp->rcq == cq)
			return true;
	return false;
}

static int add_member(struct group *g, struct member *m, struct rl_qp *qp)
{
	int rv = g->nmembers < RL_GROUP_MEMBERS ? 0 : -ENOMEM;

	if (!rv && !group_serves_cq(g, qp->rcq))
		rv = rl_cq_add_source(qp->rcq, rl_ud_socket_watch(g->socket), g->fd);
	if (rv)
		return rv;
	m->group = g;
	m->qp = qp;
	list_add(&m->node, &g->members);
	g->nmembers++;
	return 0;
}

/* True: it was the last, and the caller closes the group, without the lock. */
static bool remove_member(struct member *m)
{
	struct group *g = m->group;
	bool last;

	list_del(&m->node);
	g->nmembers--;
	if (!group_serves_cq(g, m->qp->rcq))
		rl_cq_remove_source(m->qp->rcq, rl_ud_socket_watch(g->socket), g->fd);
	last = list_empty(&g->members);
	if (last)
		list_del(&g->node);
	return last;
}

/* ---- interface ---- */

static struct member *find_membership(struct rl_qp *qp, const u8 gid[RL_GID_LEN])
{
	struct member *m;

	list_for_each_entry(m, &qp->ud->groups, of_qp)
		if (!memcmp(m->group->gid, gid, RL_GID_LEN))
			return m;
	return NULL;
}

static int enter_group_of(struct rl_qp *qp, const u8 gid[RL_GID_LEN], struct member *m)
{
	struct group *g, *empty = NULL;
	int rv;

	pthread_mutex_lock(&all.lock);
	rv = find_group(qp->ctx->dev, gid, &g);
	if (!rv)
		rv = add_member(g, m, qp);
	if (rv && g && list_empty(&g->members)) {
		list_del(&g->node);
		empty = g;
	}
	pthread_mutex_unlock(&all.lock);
	if (empty)
		close_mcast_group(empty);
	return rv;
}

int rl_ud_attach(struct rl_qp *qp, const u8 gid[RL_GID_LEN])
{
	struct member *m;
	int rv;

	if (!rl_gid_is_group(gid))
		return -EINVAL;
	if (find_membership(qp, gid))
		return 0;
	m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	rv = enter_group_of(qp, gid, m);
	if (rv) {
		free(m);
		return rv;
	}
	list_add(&m->of_qp, &qp->ud->groups);
	return 0;
}

static void detach(struct member *m)
{
	bool last;

	list_del(&m->of_qp);
	pthread_mutex_lock(&all.lock);
	last = remove_member(m);
	pthread_mutex_unlock(&all.lock);
	if (last)
		close_mcast_group(m->group);
	free(m);
}

int rl_ud_detach(struct rl_qp *qp, const u8 gid[RL_GID_LEN])
{
	struct member *m = find_membership(qp, gid);

	if (!m)
		return -EINVAL;
	detach(m);
	return 0;
}

void rl_ud_detach_all(struct rl_qp *qp)
{
	struct member *m, *after;

	list_for_each_entry_safe(m, after, &qp->ud->groups, of_qp)
		detach(m);
}
