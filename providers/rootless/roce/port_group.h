/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * QP numbers that name ports. A number has 24 bits: a port of 16 and an index of 8, so that a peer
 * needs only a QP's address and number to reach it, and no daemon. A group is one port with its 256
 * QPs: a listening TCP socket, for connections made by hand, and a UDP socket, for UD. Both are
 * bound to all addresses of both families (IPv4's alone if there is no IPv6). The port is one that
 * --ports allows, or the kernel's choice. A group opens with its first QP and closes after its
 * last.
 *
 * Any thread; a leaf lock of its own.
 */
#ifndef RL_PORT_GROUP_H
#define RL_PORT_GROUP_H

#include "process/port.h"

#define RL_GROUP_QPS	256

static inline u16 rl_qpn_port(u32 qpn)
{
	return (u16)(qpn >> 8);
}

/*
 * A free number for a QP of any type: 0, or -errno (-EADDRINUSE: all allowed ports are in use). A
 * number that was given back is the last of its group to be taken again.
 */
int rl_port_group_take(u32 *qpn);

/* @qpn is free again. Its UDP socket must not be waited for any more. */
void rl_port_group_give(u32 qpn);

/*
 * The UDP socket of a number that is taken: hidden, non-blocking, owned by the group, and shared by
 * all numbers of one port, which is its source port. If *@six it is an IPv6 socket that carries
 * IPv4, too, as mapped into IPv6; else an IPv4 one.
 */
int rl_port_group_udp(u32 qpn, bool *six);

#endif
