/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * QP numbers that name ports. A number is 24 bits: a port of 16 and an index of 8, so that whoever
 * knows a QP's address and number can reach it, and no daemon is needed. A group is one port number
 * with its 256 QPs: a TCP socket that listens, for connections made by hand, and a UDP socket, for UD.
 * Both are bound to all addresses of both families (to IPv4's alone where there is no IPv6); the port is
 * one that --ports allows, or the kernel's choice. A group opens with its first QP and closes behind
 * its last.
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
 * A number that no QP of this process has, for a QP of any type: 0, or -errno (-EADDRINUSE: no port
 * is free of those allowed). A number that was given back is the last of its group to be taken again.
 */
int rl_port_group_take(u32 *qpn);

/* @qpn is no QP's any more. Whoever waits for its UDP socket stops before. */
void rl_port_group_give(u32 qpn);

/*
 * The UDP socket of a number that is taken: hidden, non-blocking, the group's own, and the same for all
 * numbers of one port. Its source port is the number's. An IPv6 socket that takes IPv4, too, as
 * mapped into IPv6, if *@six; else an IPv4 one.
 */
int rl_port_group_udp(u32 qpn, bool *six);

#endif
