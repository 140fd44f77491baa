// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>

#include "link.h"
#include "port_watch.h"
#include "process/file.h"
#include "process/options.h"
#include "process/raw.h"
#include "process/thread.h"

/* Messages that are read in a row; the others wait for the next turn. */
#define TURN 64

struct rl_port_watch {
	struct rl_watch watch;		/* first: the references */
	int fd;				/* hidden */
	u32 forks;			/* rl_fd_forks() at the beginning */
	rl_port_changed *changed;
	bool up[RL_DEVICES];		/* as last reported */
};

static struct rl_port_watch *port_watch_of(struct rl_watch *w)
{
	return container_of(w, struct rl_port_watch, watch);
}

static int open_route_socket(void)
{
	struct sockaddr_nl name = { .nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK };
	int fd = (int)rl_raw(SYS_socket, AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK,
			     NETLINK_ROUTE);
	long rv;

	if (fd < 0)
		return fd;
	rv = rl_raw(SYS_bind, fd, &name, sizeof(name));
	if (!rv)
		return rl_fd_hide(fd);
	rl_raw(SYS_close, fd);
	return (int)rv;
}

/* ---- changes ---- */

static void port_is(struct rl_port_watch *w, const struct rl_device *d, bool up)
{
	struct rl_port_state s;

	/* For the MTU, which may have changed. */
	rl_device_read_port(d, &s);
	if (w->up[d->index] == up)
		return;
	w->up[d->index] = up;
	w->changed(d, up);
}

/* Messages may be lost. */
static void ask_all(struct rl_port_watch *w)
{
	const struct rl_device *d;
	struct rl_link l;
	u32 i;

	for (i = 0; (d = rl_device_at(i)); i++) {
		rl_link_read(d->netdev, &l);
		port_is(w, d, l.up);
	}
}

/* Each change of a netdev, in order: a flap that is over already is reported, too. */
static void take_link(struct rl_port_watch *w, const struct nlmsghdr *h)
{
	const u32 running = IFF_UP | IFF_RUNNING;
	const struct rl_device *d;
	struct ifinfomsg info;
	u32 i;

	if (h->nlmsg_type != RTM_NEWLINK && h->nlmsg_type != RTM_DELLINK)
		return;
	if (h->nlmsg_len < NLMSG_LENGTH(sizeof(info)))
		return;
	memcpy(&info, NLMSG_DATA(h), sizeof(info));
	for (i = 0; info.ifi_family == AF_UNSPEC && (d = rl_device_at(i)); i++)
		if (d->ifindex == (unsigned int)info.ifi_index)
			port_is(w, d, h->nlmsg_type == RTM_NEWLINK &&
				      (info.ifi_flags & running) == running);
}

static void take_links(struct rl_port_watch *w, const u8 *p, size_t len)
{
	const struct nlmsghdr *h;
	size_t whole;

	while (len >= NLMSG_HDRLEN) {
		h = (const struct nlmsghdr *)p;
		if (h->nlmsg_len < NLMSG_HDRLEN || h->nlmsg_len > len)
			return;
		take_link(w, h);
		whole = NLMSG_ALIGN(h->nlmsg_len);
		if (whole >= len)
			return;
		p += whole;
		len -= whole;
	}
}

/* ---- the watch ---- */

static void port_watch_ready(struct rl_watch *watch, u32 events)
{
	struct rl_port_watch *w = port_watch_of(watch);
	u8 buf[8192] __attribute__((aligned(NLMSG_ALIGNTO)));
	struct sockaddr_nl from;
	socklen_t size;
	long n;
	u32 i;

	for (i = 0; i < TURN; i++) {
		size = sizeof(from);
		n = rl_raw(SYS_recvfrom, w->fd, buf, sizeof(buf), MSG_DONTWAIT, &from, &size);
		if (n == -ENOBUFS)
			ask_all(w);
		else if (n <= 0)
			return;
		else if (!from.nl_pid)	/* of the kernel */
			take_links(w, buf, (size_t)n);
	}
}

static void port_watch_timeout(struct rl_watch *watch)
{
}

/* In a child: its own socket, for the parent reads from the other. */
static void port_watch_revive(struct rl_watch *watch)
{
	struct rl_port_watch *w = port_watch_of(watch);
	int old = w->fd;

	w->fd = open_route_socket();
	rl_fd_close_inherited(old);
	w->forks = rl_fd_forks();
	if (w->fd >= 0 && !rl_thread_add(watch, w->fd, EPOLLIN))
		ask_all(w);
}

static void port_watch_release(struct rl_watch *watch)
{
	struct rl_port_watch *w = port_watch_of(watch);

	if (w->fd >= 0)
		rl_fd_close_hidden(w->fd);
	free(w);
}

static const struct rl_watch_ops port_watch_ops = {
	.ready = port_watch_ready,
	.timeout = port_watch_timeout,
	.revive = port_watch_revive,
	.release = port_watch_release,
};

struct rl_port_watch *rl_port_watch_begin(rl_port_changed *changed)
{
	struct rl_port_watch *w = calloc(1, sizeof(*w));
	const struct rl_device *d;
	struct rl_link l;
	u32 i;

	if (!w)
		return NULL;
	rl_watch_init(&w->watch, &port_watch_ops);
	w->changed = changed;
	w->forks = rl_fd_forks();
	w->fd = open_route_socket();
	for (i = 0; (d = rl_device_at(i)); i++) {
		rl_link_read(d->netdev, &l);
		w->up[i] = l.up;
	}
	if (w->fd >= 0 && !rl_thread_watch(&w->watch, w->fd, EPOLLIN))
		return w;
	rl_trace("netdevs that go down and up are not noticed: no netlink socket, or no thread");
	rl_watch_put(&w->watch);
	return NULL;
}

/* This process's epoll does not have an inherited socket, and its number may be another's. */
void rl_port_watch_end(struct rl_port_watch *w)
{
	if (rl_port_watch_is_inherited(w)) {
		rl_watch_end(&w->watch);
		rl_fd_close_inherited(w->fd);
		w->fd = -1;
	} else {
		rl_thread_end_watch(&w->watch, w->fd);
	}
	rl_watch_put(&w->watch);
}

bool rl_port_watch_is_inherited(const struct rl_port_watch *w)
{
	return w->forks != rl_fd_forks();
}
