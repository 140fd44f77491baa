/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * DDP segments (RFC 5041 section 4) with the RDMAP control byte (RFC 5040
 * section 4.1), and the fixed RDMAP headers that ride in untagged segments.
 */
#ifndef WEFTSPEC_DDP_H
#define WEFTSPEC_DDP_H

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

#define DDP_TAGGED_LEN 14
#define DDP_UNTAGGED_LEN 18
#define RDMA_READ_LEN 28
#define ATOMIC_REQ_LEN 52
#define ATOMIC_REP_LEN 12
#define IMM_LEN 8

enum rdma_op {
	OP_WRITE = 0, OP_READ_REQ, OP_READ_RESP, OP_SEND, OP_SEND_INV,
	OP_SEND_SE, OP_SEND_SE_INV, OP_TERM, OP_IMM, OP_IMM_SE,
	OP_ATOMIC_REQ, OP_ATOMIC_REP,
};

enum ddp_qn { QN_SEND = 0, QN_READ = 1, QN_TERM = 2, QN_ATOMIC = 3 };

/* One segment.  dv and rv are the values on the wire, so right is 1. */
struct seg {
	bool tagged, last;
	uint8_t rsvd;        /* DDP Rsvd, 4 bits */
	uint8_t dv;          /* 2 bits */
	uint8_t rv, rsv, op; /* RDMAP: 2, 2 and 4 bits */
	uint32_t stag;       /* tagged */
	uint64_t to;
	uint32_t inval;      /* untagged: Invalidate STag or RsvdULP */
	uint32_t qn, msn, mo;
	const uint8_t *data;
	size_t len;
};

/* RDMA Read Request, RFC 5040 section 4.4. */
struct rreq {
	uint32_t sink_stag;
	uint64_t sink_to;
	uint32_t size;
	uint32_t src_stag;
	uint64_t src_to;
};

/* Atomic Request, RFC 7306 section 5.2.1. */
struct atomic {
	uint32_t reserved; /* 28 bits */
	uint8_t code;
	uint32_t id, stag;
	uint64_t to, add, add_mask, cmp, cmp_mask;
};

#define ATOMIC_FADD 0
#define ATOMIC_CSWAP 2

size_t seg_head_len(const struct seg *s);
/* Writes header and payload, returns the ULPDU's length. */
size_t seg_encode(uint8_t *out, const struct seg *s);
/* Returns 0, or -1 when the ULPDU is shorter than its header. */
int seg_decode(const uint8_t *in, size_t len, struct seg *s);

uint8_t *rreq_encode(uint8_t *out, const struct rreq *r);
void rreq_decode(const uint8_t *in, struct rreq *r);
uint8_t *atomic_encode(uint8_t *out, const struct atomic *a);
void atomic_decode(const uint8_t *in, struct atomic *a);

const char *op_name(uint8_t op);

#endif
