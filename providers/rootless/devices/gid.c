// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <netinet/in.h>

#include "gid.h"

static const u8 mapped[12] = { [10] = 0xff, [11] = 0xff };
static const u8 isatap[12] = { 0xfe, 0x80, [10] = 0x5e, [11] = 0xfe };

static void gid_from_v4(const u8 prefix[12], const void *v4, u8 gid[RL_GID_LEN])
{
	memcpy(gid, prefix, 12);
	memcpy(gid + 12, v4, 4);
}

void rl_gid_of_v4(const struct in_addr *v4, u8 gid[RL_GID_LEN])
{
	gid_from_v4(mapped, v4, gid);
}

void rl_gid_link_local_of_v4(const struct in_addr *v4, u8 gid[RL_GID_LEN])
{
	gid_from_v4(isatap, v4, gid);
}

void rl_gid_of_address(const struct sockaddr_storage *a, u8 gid[RL_GID_LEN])
{
	memset(gid, 0, RL_GID_LEN);
	if (a->ss_family == AF_INET)
		rl_gid_of_v4(&((const struct sockaddr_in *)a)->sin_addr, gid);
	else if (a->ss_family == AF_INET6)
		memcpy(gid, &((const struct sockaddr_in6 *)a)->sin6_addr, RL_GID_LEN);
}

void rl_gid_resolve(const u8 gid[RL_GID_LEN], u8 address[RL_GID_LEN])
{
	u8 v4[4];

	memcpy(v4, gid + 12, sizeof(v4));
	if (!memcmp(gid, isatap, sizeof(isatap)))
		gid_from_v4(mapped, v4, address);
	else
		memmove(address, gid, RL_GID_LEN);
}
