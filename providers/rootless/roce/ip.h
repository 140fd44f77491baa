/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Control messages of UDP sockets of either family: fields of IP's header, received and sent. An
 * IPv6 socket may carry IPv4, too.
 */
#ifndef RL_IP_H
#define RL_IP_H

#include <netinet/in.h>
#include <sys/socket.h>

#include "datagram.h"

/* Octets for rl_ip_put_source() and two of rl_ip_put_number(); and for reception. */
#define RL_IP_CONTROL	(CMSG_SPACE(sizeof(struct in6_pktinfo)) + 2 * CMSG_SPACE(sizeof(int)))
#define RL_IP_ROOM	256

/* From now on datagrams of @fd arrive with these control messages. */
void rl_ip_enable_control(int fd, bool six);
/* Reads a datagram's control messages into *@ip. Fields without one are unchanged. */
void rl_ip_read_control(struct msghdr *m, struct rl_ip_header *ip);

/*
 * Sends from the address @gid (IPv4 as mapped into IPv6) of a socket, IPv6's if @six, through
 * @ifindex (0: by the route).
 */
void rl_ip_put_source(struct msghdr *m, bool six, const u8 gid[16], u32 ifindex);
/* A control message with a number, such as IP_TOS. */
void rl_ip_put_number(struct msghdr *m, int level, int type, int number);

#endif
