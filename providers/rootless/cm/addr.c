// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <netinet/in.h>

#include "devices/device.h"
#include "id.h"
#include "roce/ud.h"

bool rl_addr_is_any(const struct sockaddr_storage *a)
{
	if (a->ss_family == AF_INET6)
		return IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)a)->sin6_addr);
	return ((const struct sockaddr_in *)a)->sin_addr.s_addr == htonl(INADDR_ANY);
}

u32 rl_addr_len(const struct sockaddr_storage *a)
{
	switch (a->ss_family) {
	case AF_INET:
		return sizeof(struct sockaddr_in);
	case AF_INET6:
		return sizeof(struct sockaddr_in6);
	default:
		return 0;
	}
}

u16 rl_addr_port(const struct sockaddr_storage *a)
{
	return ntohs(a->ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)a)->sin6_port
					      : ((const struct sockaddr_in *)a)->sin_port);
}

void rl_addr_set_port(struct sockaddr_storage *a, u16 port)
{
	if (a->ss_family == AF_INET6)
		((struct sockaddr_in6 *)a)->sin6_port = htons(port);
	else
		((struct sockaddr_in *)a)->sin_port = htons(port);
}

bool rl_addr_is_group(const struct sockaddr_storage *a)
{
	u8 gid[RL_GID_LEN];

	rl_gid_of_address(a, gid);
	return rl_gid_is_group(gid);
}
