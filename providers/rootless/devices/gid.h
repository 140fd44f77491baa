/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * GIDs of RoCE: IP addresses, IPv4's mapped into IPv6.
 *
 * Adapters have a link-local GID first, even where the netdev has no such address. Here each GID
 * must lead to its owner, so such a netdev's first IPv4 address gets a GID of ISATAP's form (RFC
 * 5214), fe80::5efe and the address: both ends take it for the address.
 */
#ifndef RL_GID_H
#define RL_GID_H

#include <sys/socket.h>

#include "process/port.h"

#define RL_GID_LEN 16

struct in_addr;

/* Mapped: after ::ffff. */
void rl_gid_of_v4(const struct in_addr *v4, u8 gid[RL_GID_LEN]);
/* The same after fe80::5efe. */
void rl_gid_link_local_of_v4(const struct in_addr *v4, u8 gid[RL_GID_LEN]);
/* An IP address as a GID; zeros for other families. */
void rl_gid_of_address(const struct sockaddr_storage *a, u8 gid[RL_GID_LEN]);
/* The GID as an address: of two GIDs for one IPv4 address the mapped one. */
void rl_gid_resolve(const u8 gid[RL_GID_LEN], u8 address[RL_GID_LEN]);

#endif
