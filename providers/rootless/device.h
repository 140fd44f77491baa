/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The devices: one for each netdev that is up and has an address. The list is made when it is
 * first asked for, and constant then.
 */
#ifndef RL_DEVICE_H
#define RL_DEVICE_H

#include <net/if.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "port.h"

#define RL_PORT 1			/* the only one of each device */

struct rl_device {
	u32 index;			/* in the list; NETLINK_RDMA's number, uverbsN's N */
	char name[32];			/* weft_ and the netdev's name */
	char netdev[IFNAMSIZ];
	unsigned int ifindex;
	u8 guid[8];			/* node_guid, as on the wire; no two devices have the same */
	u8 gid[16];			/* GID 0: the netdev's MAC, then zeros */
	u32 mtu;			/* of the netdev */
};

u32 rl_device_count(void);
/* NULL behind the last. */
const struct rl_device *rl_device_at(u32 index);
/* Whose netdev has this address; NULL if there is none. The port is not looked at. */
const struct rl_device *rl_device_of_address(const struct sockaddr *a);

/* The character devices of uverbsN and of rdma_cm. */
dev_t rl_device_uverbs_rdev(const struct rl_device *d);
dev_t rl_device_cm_rdev(void);

/* port.h's enum ib_mtu number: 1 (256) to 5 (4096), the largest that @mtu holds. */
u8 rl_device_ib_mtu(const struct rl_device *d);

#endif
