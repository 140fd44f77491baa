/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A UD QP's datagram on the wire: UDP, whose ports are those of the QPs' numbers, then this header,
 * then the payload. And the InfiniBand header that the receiver puts before the payload, made from
 * IP's. Pure functions.
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
/* The header of a datagram of @len octets. False: it has none. */
bool rl_datagram_read(const u8 *p, u32 len, struct rl_datagram *d);

/* The fields of IP's header. */
struct rl_ip_header {
	u8 from[16], to[16];		/* IPv4 as mapped into IPv6 */
	u8 traffic_class, hop_limit;
	u32 ifindex;			/* where it arrived */
	u32 len;			/* octets of UDP's payload */
};

/*
 * As in RoCE v2: IPv6's header, or 20 octets of zeros, then IPv4's with a good checksum, by which
 * libibverbs tells them apart.
 */
void rl_datagram_grh(u8 grh[WEFT_GRH_LEN], const struct rl_ip_header *ip);

#endif
