/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The devices: one for each netdev that is up and has an address, or those that --rails asks for.
 * The list is made on first use, and is then constant; the state of a port is not.
 */
#ifndef RL_DEVICE_H
#define RL_DEVICE_H

#include <net/if.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "gid.h"
#include "process/port.h"
#include "profile.h"
#include "rates.h"

#define RL_PORT 1			/* the only one of each device */
#define RL_DEVICES 64
#define RL_MAX_GIDS 64
/* Headers of a datagram: IPv6, UDP and roce/datagram.h. */
#define RL_DATAGRAM_HEADERS (40 + 8 + 24)
#define RL_HOP_LIMIT 64		/* of paths that rdma_cm reports */

struct rl_device {
	u32 index;			/* in the list; NETLINK_RDMA's number, uverbsN's N */
	char name[RL_PROFILE_NAMES];
	char netdev[IFNAMSIZ];
	unsigned int ifindex;
	const struct rl_profile *about;	/* what it looks like, and its limits */
	u8 guid[8];			/* node_guid, as on the wire; unique */
	u8 system_guid[8];		/* sys_image_guid */
	struct rl_pci_path pci;		/* unless own_pci */
	char pci_folder[96];		/* below /sys; its last part is the function */
	bool own_pci;			/* it is the netdev's, and the kernel's */
	s32 numa_node;
	/*
	 * The addresses for peers. A RoCE device: addresses of the netdev, IPv4 mapped into IPv6,
	 * each for every type. An RNIC: the netdev's MAC, then zeros.
	 */
	u8 gids[RL_MAX_GIDS][RL_GID_LEN]; /* rl_device_gid() */
	bool gid_is_v2[RL_MAX_GIDS];
	u32 ngids;			/* at least 1 */
};

u32 rl_device_count(void);
/* NULL after the last. */
const struct rl_device *rl_device_at(u32 index);
/* The device whose netdev has this address; NULL: none. The port is ignored. */
const struct rl_device *rl_device_of_address(const struct sockaddr *a);

/* The character devices of uverbsN and of rdma_cm. */
dev_t rl_device_uverbs_rdev(const struct rl_device *d);
dev_t rl_device_cm_rdev(void);

/*
 * Converts a GID of a RoCE device's peer, and @port, to the address by which @d reaches it: its
 * length.
 */
socklen_t rl_gid_to_address(const struct rl_device *d, const u8 gid[RL_GID_LEN], u16 port,
			    struct sockaddr_storage *a);
/* The entry of @d's table for @gid, of RoCE v2 if there is one; 0 if there is none. */
u32 rl_device_gid_index(const struct rl_device *d, const u8 gid[RL_GID_LEN]);

/* ---- the port, as it is now ---- */

struct rl_port_state {
	bool up;
	struct rl_rate rate;
	u8 mtu;				/* enum ib_mtu */
	u16 lid;			/* 0, unless weft-ctl has set it */
};

/* Asks the netdev. What is read by the functions below is as new, too. */
void rl_device_read_port(const struct rl_device *d, struct rl_port_state *s);
/* The port is down, whatever its netdev is: for weft-ctl. */
void rl_device_pull(const struct rl_device *d, bool pulled);
bool rl_device_is_pulled(const struct rl_device *d);
void rl_device_set_lid(const struct rl_device *d, u16 lid);
/* GID @index as it is now. False: there is none, and @gid is zeros. */
bool rl_device_gid(const struct rl_device *d, u32 index, u8 gid[RL_GID_LEN]);
/* It is another one; zeros: none. For weft-ctl. False: the table has no such entry. */
bool rl_device_set_gid(const struct rl_device *d, u32 index, const u8 gid[RL_GID_LEN]);
/* The netdev's MTU when it was last asked. */
u32 rl_device_mtu(const struct rl_device *d);
/*
 * Number of enum ib_mtu: 1 (256) to 5 (4096): the profile's, or the largest that fits into the
 * netdev's MTU; on a RoCE device, after all headers of a datagram.
 */
u8 rl_device_ib_mtu(const struct rl_device *d);

#endif
