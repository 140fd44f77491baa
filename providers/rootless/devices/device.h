/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The devices: one for each netdev that is up and has an address. The list is made on first use,
 * and is then constant.
 */
#ifndef RL_DEVICE_H
#define RL_DEVICE_H

#include <net/if.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "process/port.h"

#define RL_PORT 1			/* the only one of each device */
#define RL_MAX_GIDS 64
#define RL_GID_LEN 16
/* Headers of a datagram: IPv6, UDP and roce/datagram.h. */
#define RL_DATAGRAM_HEADERS (40 + 8 + 24)
#define RL_HOP_LIMIT 64		/* of paths that rdma_cm reports */

struct rl_device {
	u32 index;			/* in the list; NETLINK_RDMA's number, uverbsN's N */
	char name[32];			/* weft_ and the netdev's name */
	char netdev[IFNAMSIZ];
	unsigned int ifindex;
	u8 guid[8];			/* node_guid, as on the wire; unique */
	/*
	 * The addresses for peers. A RoCE device: the netdev's addresses, IPv4 mapped into IPv6. An
	 * RNIC: the netdev's MAC, then zeros.
	 */
	u8 gids[RL_MAX_GIDS][RL_GID_LEN];
	u32 ngids;			/* at least 1 */
	u32 mtu;			/* of the netdev */
};

u32 rl_device_count(void);
/* NULL after the last. */
const struct rl_device *rl_device_at(u32 index);
/* The device whose netdev has this address; NULL: none. The port is ignored. */
const struct rl_device *rl_device_of_address(const struct sockaddr *a);

/* The character devices of uverbsN and of rdma_cm. */
dev_t rl_device_uverbs_rdev(const struct rl_device *d);
dev_t rl_device_cm_rdev(void);

/* An IP address as a GID; zeros for other families. */
void rl_gid_of_address(const struct sockaddr_storage *a, u8 gid[RL_GID_LEN]);
/*
 * Converts a GID of a RoCE device's peer, and @port, to the address by which @d reaches it: its
 * length.
 */
socklen_t rl_gid_to_address(const struct rl_device *d, const u8 gid[RL_GID_LEN], u16 port,
			    struct sockaddr_storage *a);
/* The first entry of @d's table that is @gid; 0 if there is none. */
u32 rl_device_gid_index(const struct rl_device *d, const u8 gid[RL_GID_LEN]);

/*
 * Number of enum ib_mtu: 1 (256) to 5 (4096), the largest that fits into the netdev's MTU; on a
 * RoCE device, after all headers of a datagram.
 */
u8 rl_device_ib_mtu(const struct rl_device *d);

#endif
