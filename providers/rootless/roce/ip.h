/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the kernel tells of a datagram's IP header, and is told of it: control messages of UDP sockets of
 * either family. An IPv6 socket may take IPv4, too.
 */
#ifndef RL_IP_H
#define RL_IP_H

#include <netinet/in.h>
#include <sys/socket.h>

#include "datagram.h"

/* Octets for what rl_ip_put_source() and two of rl_ip_put_number() say; and for what comes. */
#define RL_IP_CONTROL	(CMSG_SPACE(sizeof(struct in6_pktinfo)) + 2 * CMSG_SPACE(sizeof(int)))
#define RL_IP_ROOM	256

/* Datagrams of @fd come with their control messages from now on. */
void rl_ip_enable_control(int fd, bool six);
/* What came with a datagram; of what did not, *@ip stays as it is. */
void rl_ip_read_control(struct msghdr *m, struct rl_ip_header *ip);

/*
 * It goes from the address @gid (IPv4 as mapped into IPv6), from a socket of IPv6's if @six, by @ifindex (0:
 * as the route says).
 */
void rl_ip_put_source(struct msghdr *m, bool six, const u8 gid[16], u32 ifindex);
/* A number more, of IP_TOS and its kin. */
void rl_ip_put_number(struct msghdr *m, int level, int type, int number);

#endif
