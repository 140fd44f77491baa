/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a UD QP's datagram is on the wire: UDP, whose ports are those of the QPs' numbers, then this
 * header, then what was sent. And the header of InfiniBand's that is put before it where it is
 * received, made of what IP says. Pure functions.
 *
 *	0  magic            8  QP it is for     16  qkey
 *	4  version, flags  12  QP it is from    20  Immediate Data, or 0
 *	6  0
 */
#ifndef RL_DATAGRAM_H
#define RL_DATAGRAM_H

#include "kernel/core/ud.h"

#define RL_DATAGRAM_HEADER	24

struct rl_datagram {
	u32 to, from;			/* QP numbers */
	u32 qkey;
	bool imm, solicited;
	u32 imm_data;
};

void rl_datagram_write(u8 p[RL_DATAGRAM_HEADER], const struct rl_datagram *d);
/* The first @len octets of what came: false: they are no such header. */
bool rl_datagram_read(const u8 *p, u32 len, struct rl_datagram *d);

/* How IP carried it. */
struct rl_ip_header {
	u8 from[16], to[16];		/* IPv4 as mapped into IPv6 */
	u8 traffic_class, hop_limit;
	u32 ifindex;			/* by which it came in */
	u32 len;			/* octets of UDP's payload */
};

/*
 * As RoCE v2 has it: IPv6's header; or 20 octets of zeros, then IPv4's, whose checksum is good, so that
 * whoever makes an address handle of it can tell.
 */
void rl_datagram_grh(u8 grh[WEFT_GRH_LEN], const struct rl_ip_header *ip);

#endif
