/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What InfiniBand does by SIDR (12.11): rdma_cm's ids of datagrams ask for the QP behind a port. A
 * request and its reply are UDP datagrams of the same size, so that a reply cannot amplify. Unused
 * octets are zero. Pure functions.
 *
 *	 0  magic                16  QP (of a reply)
 *	 4  version, kind        20  qkey (of a reply)
 *	 6  port space           24  status (of a reply), octets of private data, 0
 *	 8  the request's number, which its reply repeats
 *	28  private data
 */
#ifndef RL_SIDR_H
#define RL_SIDR_H

#include "kernel/proto/bytes.h"

#define RL_SIDR_DATA	256
#define RL_SIDR_LEN	(28 + RL_SIDR_DATA)

/* rdma_cm's default qkey. */
#define RL_CM_QKEY	0x01234567

enum rl_sidr_kind {
	RL_SIDR_REQUEST = 1,
	RL_SIDR_REPLY = 2,
};

/* InfiniBand's statuses (12.11.3), which programs see. */
enum rl_sidr_status {
	RL_SIDR_VALID = 0,
	RL_SIDR_UNSUPPORTED = 1,		/* no listener in that port space */
	RL_SIDR_REJECTED = 2,
};

struct rl_sidr_msg {
	u8 kind, status;
	u16 ps;
	u64 number;
	u32 qpn, qkey;
	u32 len;			/* of data: at most 255 */
	u8 data[RL_SIDR_DATA];
};

void rl_sidr_write(u8 p[RL_SIDR_LEN], const struct rl_sidr_msg *a);
/* Reads @len received octets. False: not such a message. */
bool rl_sidr_read(const u8 *p, u32 len, struct rl_sidr_msg *a);

/* How many ms to wait for the reply after request @nth (0: the first). */
u32 rl_sidr_timeout(u32 nth);

#endif
