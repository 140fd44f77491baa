// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <ifaddrs.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "netdevs.h"

/* An IPv4 address may have a label, NETDEV:WORD, instead of the netdev's name. */
static size_t netdev_len(const struct ifaddrs *i)
{
	return strcspn(i->ifa_name, ":");
}

bool rl_netdev_has(const struct ifaddrs *i, const char *netdev)
{
	size_t len = netdev_len(i);

	return strlen(netdev) == len && !memcmp(i->ifa_name, netdev, len);
}

bool rl_netdev_is_ip(const struct ifaddrs *i)
{
	return i->ifa_flags & IFF_UP && i->ifa_addr &&
	       (i->ifa_addr->sa_family == AF_INET || i->ifa_addr->sa_family == AF_INET6);
}

/* Its index in @wanted; -1: not listed. */
static int place_of(const char *netdev, const char *wanted)
{
	const char *s = wanted;
	size_t len;
	int place;

	for (place = 0; s && *s; place++) {
		len = strcspn(s, ",");
		if (strlen(netdev) == len && !memcmp(s, netdev, len))
			return place;
		s += len + (s[len] == ',');
	}
	return wanted ? -1 : 0;
}

static int netdev_compare(const void *a, const void *b)
{
	const struct rl_netdev *x = a, *y = b;

	if (x->place != y->place)
		return x->place < y->place ? -1 : 1;
	if (x->is_loopback != y->is_loopback)
		return x->is_loopback ? 1 : -1;
	return x->ifindex < y->ifindex ? -1 : x->ifindex > y->ifindex;
}

static bool netdev_is_listed(const struct rl_netdev *list, u32 n, const struct ifaddrs *i)
{
	for (; n; n--, list++)
		if (rl_netdev_has(i, list->name))
			return true;
	return false;
}

/* False: not for the list. */
static bool netdev_fill(struct rl_netdev *d, const struct ifaddrs *i, const char *wanted)
{
	size_t len = netdev_len(i);
	int place;

	memset(d, 0, sizeof(*d));
	if (!len || len >= sizeof(d->name))
		return false;
	memcpy(d->name, i->ifa_name, len);
	d->is_loopback = i->ifa_flags & IFF_LOOPBACK;
	d->ifindex = if_nametoindex(d->name);
	place = place_of(d->name, wanted);
	d->place = (u32)place;
	return place >= 0 && d->ifindex;
}

u32 rl_netdevs_list(const struct ifaddrs *first, const char *wanted,
		    struct rl_netdev list[RL_NETDEVS])
{
	const struct ifaddrs *i;
	u32 n = 0;

	for (i = first; i && n < RL_NETDEVS; i = i->ifa_next)
		if (rl_netdev_is_ip(i) && !netdev_is_listed(list, n, i) &&
		    netdev_fill(&list[n], i, wanted))
			n++;
	qsort(list, n, sizeof(list[0]), netdev_compare);
	return n;
}
