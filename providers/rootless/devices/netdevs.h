/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The host's netdevs that are up and have an IP address, in the order of devices. */
#ifndef RL_NETDEVS_H
#define RL_NETDEVS_H

#include <net/if.h>

#include "process/port.h"

#define RL_NETDEVS 64

struct ifaddrs;

struct rl_netdev {
	char name[IFNAMSIZ];
	unsigned int ifindex;
	bool is_loopback;
	u32 place;			/* in the list of those asked for */
};

/*
 * Those of @first, which getifaddrs() made, that @wanted lists with commas, in that order; NULL:
 * all, real ones before lo: many programs take the first device. How many.
 */
u32 rl_netdevs_list(const struct ifaddrs *first, const char *wanted,
		    struct rl_netdev list[RL_NETDEVS]);
/* Is @i an entry of @netdev, whatever its label? */
bool rl_netdev_has(const struct ifaddrs *i, const char *netdev);
/* Is it up, with an IP address? */
bool rl_netdev_is_ip(const struct ifaddrs *i);

#endif
