// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Addresses of a connection's socket. */
#include <netinet/in.h>

#include "conn.h"
#include "process/raw.h"
#include "ulp.h"

static void unmap(struct sockaddr_storage *a)
{
	struct sockaddr_in6 *six = (void *)a;
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = six->sin6_port };

	if (a->ss_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&six->sin6_addr))
		return;
	memcpy(&four.sin_addr, &six->sin6_addr.s6_addr[12], sizeof(four.sin_addr));
	memset(a, 0, sizeof(*a));
	memcpy(a, &four, sizeof(four));
}

void rl_socket_names(int fd, struct sockaddr_storage *own, struct sockaddr_storage *peer)
{
	socklen_t len = sizeof(*own);

	memset(own, 0, sizeof(*own));
	memset(peer, 0, sizeof(*peer));
	rl_raw(SYS_getsockname, fd, own, &len);
	len = sizeof(*peer);
	rl_raw(SYS_getpeername, fd, peer, &len);
	unmap(own);
	unmap(peer);
}

void rl_conn_names(struct rl_conn *c, struct sockaddr_storage *own, struct sockaddr_storage *peer)
{
	rl_socket_names(c->fd, own, peer);
}
