/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * RDMAP (RFC 5040) and its extensions (RFC 7306): opcodes, which buffer model
 * each uses, the headers behind DDP's, and the Terminate.
 */
#ifndef WEFT_RDMAP_H
#define WEFT_RDMAP_H

#include "ddp.h"
#include "err.h"

#define WEFT_RDMAP_VERSION	1
#define WEFT_READ_REQ_LEN	28
#define WEFT_ATOMIC_REQ_LEN	52
#define WEFT_ATOMIC_RESP_LEN	12
#define WEFT_IMMEDIATE_LEN	8
#define WEFT_TERM_CTL_LEN	4
/* control, DDP Segment Length, untagged header, Read Request */
#define WEFT_TERM_MAX		(WEFT_TERM_CTL_LEN + 2 + WEFT_DDP_UNTAGGED_LEN + WEFT_READ_REQ_LEN)

/* The longest header before a payload: a whole Atomic Request. */
#define WEFT_HEAD_MAX		(2 + WEFT_DDP_UNTAGGED_LEN + WEFT_ATOMIC_REQ_LEN)

enum weft_opcode {
	WEFT_OP_WRITE		= 0x0,
	WEFT_OP_READ_REQ	= 0x1,
	WEFT_OP_READ_RESP	= 0x2,
	WEFT_OP_SEND		= 0x3,
	WEFT_OP_SEND_INV	= 0x4,
	WEFT_OP_SEND_SE		= 0x5,
	WEFT_OP_SEND_SE_INV	= 0x6,
	WEFT_OP_TERMINATE	= 0x7,
	WEFT_OP_IMM		= 0x8,
	WEFT_OP_IMM_SE		= 0x9,
	WEFT_OP_ATOMIC_REQ	= 0xA,
	WEFT_OP_ATOMIC_RESP	= 0xB,
};

static inline u8 weft_rdmap_ctl(enum weft_opcode op)
{
	return WEFT_RDMAP_VERSION << 6 | op;
}

static inline enum weft_opcode weft_rdmap_opcode(u8 ctl)
{
	return ctl & 0x0F;
}

static inline bool weft_opcode_is_send(enum weft_opcode op)
{
	return op >= WEFT_OP_SEND && op <= WEFT_OP_SEND_SE_INV;
}

static inline bool weft_opcode_invalidates(enum weft_opcode op)
{
	return op == WEFT_OP_SEND_INV || op == WEFT_OP_SEND_SE_INV;
}

static inline bool weft_opcode_solicits(enum weft_opcode op)
{
	return op == WEFT_OP_SEND_SE || op == WEFT_OP_SEND_SE_INV || op == WEFT_OP_IMM_SE;
}

/* Buffer model of the messages this end sends, RFC 5040 Fig. 4. */
static inline bool weft_opcode_is_tagged(enum weft_opcode op)
{
	return op == WEFT_OP_WRITE || op == WEFT_OP_READ_RESP;
}

/* What RFC 5040 Fig. 4 and RFC 7306 Fig. 2 say of an opcode. */
struct weft_opcode_rule {
	u8 level;			/* enum below */
	bool tagged;
	u8 qn;				/* untagged */
	u8 header_len;			/* octets that must follow the DDP header */
};

enum {
	WEFT_LEVEL_BASE,		/* RFC 5040 */
	WEFT_LEVEL_EXT,			/* RFC 7306 */
	WEFT_LEVEL_UNKNOWN,
};

extern const struct weft_opcode_rule weft_opcode_rules[16];

static inline u32 weft_opcode_qn(enum weft_opcode op)
{
	return weft_opcode_rules[op & 0x0F].qn;
}

static inline u32 weft_opcode_header_len(enum weft_opcode op)
{
	return weft_opcode_rules[op & 0x0F].header_len;
}

/* RDMA Read Request header, RFC 5040 Fig. 6. */
struct weft_read_req {
	u32 sink_stag;
	u64 sink_to;
	u32 size;
	u32 src_stag;
	u64 src_to;
};

void weft_read_req_read(const u8 *p, struct weft_read_req *r);
u8 *weft_read_req_write(u8 *p, const struct weft_read_req *r);

/* Atomic Operation Codes, RFC 7306 Fig. 5. */
enum weft_atomic_code {
	WEFT_ATOMIC_FETCH_ADD	= 0x0,
	WEFT_ATOMIC_CMP_SWAP	= 0x2,
};

/* Atomic Request header, RFC 7306 Fig. 4, in host order. */
struct weft_atomic_req {
	u64 to;				/* of the word */
	u64 operand;			/* Add or Swap Data */
	u64 operand_mask;
	u64 compare;			/* CMP_SWAP's */
	u64 compare_mask;
	u32 stag;
	u32 id;				/* Request Identifier */
	u8 code;			/* enum weft_atomic_code, or what a peer says */
};

void weft_atomic_req_read(const u8 *p, struct weft_atomic_req *r);
u8 *weft_atomic_req_write(u8 *p, const struct weft_atomic_req *r);

/* Atomic Response header, RFC 7306 Fig. 6: the identifier, the word as it was. */
u8 *weft_atomic_resp_write(u8 *p, u32 id, u64 was);

/* The error in a header that breaks its opcode's rule; WEFT_OK if none does. */
enum weft_err weft_rdmap_fault(const struct weft_ddp_hdr *h, bool ext);

/*
 * Judges a segment's header against the versions and RFC 5040 Fig. 4 (opcode,
 * buffer model, queue number). Order: DDP version, queue number, RDMAP
 * version, opcode. @ext allows the opcodes of RFC 7306. Returns WEFT_OK or
 * the error for the Terminate.
 */
static inline enum weft_err weft_rdmap_check(const struct weft_ddp_hdr *h, bool ext)
{
	const struct weft_opcode_rule *r = &weft_opcode_rules[weft_rdmap_opcode(h->rdmap)];

	if (likely(h->dv == WEFT_DDP_VERSION && h->rdmap >> 6 == WEFT_RDMAP_VERSION &&
		   h->tagged == r->tagged && h->qn == r->qn && r->level <= ext))
		return WEFT_OK;
	return weft_rdmap_fault(h, ext);
}

/* What a Terminate says, in host order. */
struct weft_term {
	u8 layer, etype, code;
	bool m, d, r;
	u16 seg_len;			/* DDP Segment Length, when m */
	u8 hdr[WEFT_DDP_UNTAGGED_LEN + WEFT_READ_REQ_LEN]; /* DDP, then RDMAP header */
	u8 hdr_len;
};

/*
 * Makes the Terminate for @e. @hdr, @hdr_len: the offender's DDP header, and
 * its Read Request header behind it if there is one; NULL, 0 when no segment
 * caused it. @seg_len: its ULPDU_Length. How much is attached follows from
 * err.h's table and RFC 5040 §4.8.
 */
void weft_term_make(struct weft_term *t, enum weft_err e, const u8 *hdr, u32 hdr_len,
		    u16 seg_len);

/* Writes the Terminate's body (behind the DDP header): at most WEFT_TERM_MAX bytes. */
u8 *weft_term_write(u8 *p, const struct weft_term *t);

/* Reads a received body of @len bytes, however short: what is missing stays 0. */
void weft_term_read(const u8 *p, u32 len, struct weft_term *t);

#endif
