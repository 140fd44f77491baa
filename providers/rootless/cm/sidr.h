/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What rdma_cm's ids of datagrams say to each other, where InfiniBand has SIDR (12.11): one asks for
 * the QP behind a port, one answers. Both are UDP, and one and the same number of octets, so that nobody
 * can have more sent to another than he sends himself. What is not said is zeros. Pure functions.
 *
 *	 0  magic                16  QP (an answer's)
 *	 4  version, kind        20  qkey (an answer's)
 *	 6  port space           24  status (an answer's), octets of private data, 0
 *	 8  the question's number, which its answer repeats
 *	28  private data
 */
#ifndef RL_SIDR_H
#define RL_SIDR_H

#include "kernel/proto/bytes.h"

#define RL_SIDR_DATA	256
#define RL_SIDR_LEN	(28 + RL_SIDR_DATA)

/* The qkey of whoever does not name one: rdma_cm's. */
#define RL_CM_QKEY	0x01234567

enum rl_sidr_kind {
	RL_SIDR_REQUEST = 1,
	RL_SIDR_REPLY = 2,
};

/* InfiniBand's statuses (12.11.3), which programs get to see. */
enum rl_sidr_status {
	RL_SIDR_VALID = 0,
	RL_SIDR_UNSUPPORTED = 1,		/* who listens, or in that port space */
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
/* The @len octets of what came: false: nobody here says that. */
bool rl_sidr_read(const u8 *p, u32 len, struct rl_sidr_msg *a);

/* How long, in ms, the answer to a question is awaited that was asked for the @nth time (0: first). */
u32 rl_sidr_timeout(u32 nth);

#endif
