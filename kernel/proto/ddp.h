/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * DDP (RFC 5041) segment headers together with the RDMAP control octet that
 * rides in their reserved-for-ULP field (RFC 5040 §4.1).
 */
#ifndef WEFT_DDP_H
#define WEFT_DDP_H

#include "bytes.h"

#define WEFT_DDP_VERSION	1
#define WEFT_DDP_TAGGED_LEN	14
#define WEFT_DDP_UNTAGGED_LEN	18

#define WEFT_DDP_T		0x80
#define WEFT_DDP_L		0x40
#define WEFT_DDP_DV_MASK	0x03

/* Queue numbers that RDMAP uses, RFC 5040 Fig. 4 and RFC 7306 §6. */
enum {
	WEFT_QN_SEND = 0,
	WEFT_QN_READ_REQUEST = 1,
	WEFT_QN_TERMINATE = 2,
	WEFT_QN_ATOMIC_RESPONSE = 3,
};

/* A segment's header in host order. */
struct weft_ddp_hdr {
	bool tagged;
	bool last;
	u8 dv;				/* DDP version */
	u8 rdmap;			/* RDMAP control octet: RV, Rsv, opcode */
	/* tagged */
	u32 stag;
	u64 to;
	/* untagged */
	u32 inv_stag;			/* RDMAP's Invalidate STag field */
	u32 qn, msn, mo;
};

/* Bytes that the header of a segment takes, from its first octet. */
static inline u32 weft_ddp_len(u8 ctl)
{
	return ctl & WEFT_DDP_T ? WEFT_DDP_TAGGED_LEN : WEFT_DDP_UNTAGGED_LEN;
}

/* RFC 5041 §4.2: control, RsvdULP (8 bits), STag, TO. */
static inline void weft_ddp_read_tagged(const u8 *p, struct weft_ddp_hdr *h)
{
	h->stag = weft_get32(p + 2);
	h->to = weft_get64(p + 6);
	h->inv_stag = 0;
	h->qn = 0;
	h->msn = 0;
	h->mo = 0;
}

/* RFC 5041 §4.3: control, RsvdULP (40 bits: RDMAP control, Invalidate STag), QN, MSN, MO. */
static inline void weft_ddp_read_untagged(const u8 *p, struct weft_ddp_hdr *h)
{
	h->stag = 0;
	h->to = 0;
	h->inv_stag = weft_get32(p + 2);
	h->qn = weft_get32(p + 6);
	h->msn = weft_get32(p + 10);
	h->mo = weft_get32(p + 14);
}

/* Reads a header; @p has at least weft_ddp_len(p[0]) bytes. Judges nothing. */
static __always_inline void weft_ddp_read(const u8 *p, struct weft_ddp_hdr *h)
{
	h->tagged = p[0] & WEFT_DDP_T;
	h->last = p[0] & WEFT_DDP_L;
	h->dv = p[0] & WEFT_DDP_DV_MASK;
	h->rdmap = p[1];
	if (h->tagged)
		weft_ddp_read_tagged(p, h);
	else
		weft_ddp_read_untagged(p, h);
}

/* Writes a header with Rsvd zero. Returns the end. */
static inline u8 *weft_ddp_write(u8 *p, const struct weft_ddp_hdr *h)
{
	p[0] = (h->tagged ? WEFT_DDP_T : 0) | (h->last ? WEFT_DDP_L : 0) |
	       (h->dv & WEFT_DDP_DV_MASK);
	p[1] = h->rdmap;
	if (h->tagged)
		return weft_put64(weft_put32(p + 2, h->stag), h->to);
	p = weft_put32(p + 2, h->inv_stag);
	p = weft_put32(p, h->qn);
	p = weft_put32(p, h->msn);
	return weft_put32(p, h->mo);
}

#endif
