// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* RDMAP: what each opcode looks like, Read Requests, Terminates. */
#include "rdmap.h"

/* Terminate Control, RFC 5040 Fig. 8: header bits in the third octet. */
#define TERM_M	0x80
#define TERM_D	0x40
#define TERM_R	0x20

#define TAGGED			{ .tagged = true }
#define UNTAGGED(q, n)		{ .qn = q, .header_len = n }
#define EXTENSION(q, n)		{ .level = WEFT_LEVEL_EXT, .qn = q, .header_len = n }
#define UNKNOWN			{ .level = WEFT_LEVEL_UNKNOWN }

const struct weft_opcode_rule weft_opcode_rules[16] = {
	[WEFT_OP_WRITE]		= TAGGED,
	[WEFT_OP_READ_REQ]	= UNTAGGED(WEFT_QN_READ_REQUEST, WEFT_READ_REQ_LEN),
	[WEFT_OP_READ_RESP]	= TAGGED,
	[WEFT_OP_SEND]		= UNTAGGED(WEFT_QN_SEND, 0),
	[WEFT_OP_SEND_INV]	= UNTAGGED(WEFT_QN_SEND, 0),
	[WEFT_OP_SEND_SE]	= UNTAGGED(WEFT_QN_SEND, 0),
	[WEFT_OP_SEND_SE_INV]	= UNTAGGED(WEFT_QN_SEND, 0),
	/* A peer's Terminate is understood however short it is: no minimum. */
	[WEFT_OP_TERMINATE]	= UNTAGGED(WEFT_QN_TERMINATE, 0),
	[WEFT_OP_IMM]		= EXTENSION(WEFT_QN_SEND, WEFT_IMMEDIATE_LEN),
	[WEFT_OP_IMM_SE]	= EXTENSION(WEFT_QN_SEND, WEFT_IMMEDIATE_LEN),
	[WEFT_OP_ATOMIC_REQ]	= EXTENSION(WEFT_QN_READ_REQUEST, WEFT_ATOMIC_REQ_LEN),
	[WEFT_OP_ATOMIC_RESP]	= EXTENSION(WEFT_QN_ATOMIC_RESPONSE, WEFT_ATOMIC_RESP_LEN),
	[0xC]			= UNKNOWN,
	[0xD]			= UNKNOWN,
	[0xE]			= UNKNOWN,
	[0xF]			= UNKNOWN,
};

void weft_read_req_read(const u8 *p, struct weft_read_req *r)
{
	r->sink_stag = weft_get32(p);
	r->sink_to = weft_get64(p + 4);
	r->size = weft_get32(p + 12);
	r->src_stag = weft_get32(p + 16);
	r->src_to = weft_get64(p + 20);
}

u8 *weft_read_req_write(u8 *p, const struct weft_read_req *r)
{
	p = weft_put32(p, r->sink_stag);
	p = weft_put64(p, r->sink_to);
	p = weft_put32(p, r->size);
	p = weft_put32(p, r->src_stag);
	return weft_put64(p, r->src_to);
}

void weft_atomic_req_read(const u8 *p, struct weft_atomic_req *r)
{
	r->code = p[3] & 0x0F;
	r->id = weft_get32(p + 4);
	r->stag = weft_get32(p + 8);
	r->to = weft_get64(p + 12);
	r->operand = weft_get64(p + 20);
	r->operand_mask = weft_get64(p + 28);
	r->compare = weft_get64(p + 36);
	r->compare_mask = weft_get64(p + 44);
}

u8 *weft_atomic_req_write(u8 *p, const struct weft_atomic_req *r)
{
	p = weft_put32(p, r->code);
	p = weft_put32(p, r->id);
	p = weft_put32(p, r->stag);
	p = weft_put64(p, r->to);
	p = weft_put64(p, r->operand);
	p = weft_put64(p, r->operand_mask);
	p = weft_put64(p, r->compare);
	return weft_put64(p, r->compare_mask);
}

u8 *weft_atomic_resp_write(u8 *p, u32 id, u64 was)
{
	return weft_put64(weft_put32(p, id), was);
}

enum weft_err weft_rdmap_fault(const struct weft_ddp_hdr *h, bool ext)
{
	const struct weft_opcode_rule *r = &weft_opcode_rules[weft_rdmap_opcode(h->rdmap)];

	/* RFC 5041 §7.1: what DDP can judge by itself. */
	if (h->dv != WEFT_DDP_VERSION)
		return h->tagged ? WEFT_E_DDP_TVERSION : WEFT_E_DDP_UVERSION;
	if (!h->tagged && h->qn > (ext ? WEFT_QN_ATOMIC_RESPONSE : WEFT_QN_TERMINATE))
		return WEFT_E_DDP_QN;
	/* RFC 5040 §7.2 (2), (3). The Rsv bits of the control octet are ignored. */
	if (h->rdmap >> 6 != WEFT_RDMAP_VERSION)
		return WEFT_E_RDMAP_VERSION;
	if (r->level > ext || r->tagged != h->tagged || (!r->tagged && r->qn != h->qn))
		return WEFT_E_RDMAP_OPCODE;
	return WEFT_OK;
}

static bool is_read_req(const u8 *hdr, u32 hdr_len)
{
	return hdr_len >= WEFT_DDP_UNTAGGED_LEN + WEFT_READ_REQ_LEN &&
	       !(hdr[0] & WEFT_DDP_T) && weft_rdmap_opcode(hdr[1]) == WEFT_OP_READ_REQ;
}

void weft_term_make(struct weft_term *t, enum weft_err e, const u8 *hdr, u32 hdr_len,
		    u16 seg_len)
{
	const struct weft_term_code *c = weft_err_term(e);

	memset(t, 0, sizeof(*t));
	t->layer = c->layer;
	t->etype = c->etype;
	t->code = c->code;
	/* A header that did not come whole is not sent back in part: D promises all of it. */
	if (c->headers == WEFT_TERM_BARE || !hdr_len || hdr_len < weft_ddp_len(hdr[0]))
		return;
	t->m = true;
	t->d = true;
	t->seg_len = seg_len;
	t->hdr_len = (u8)weft_ddp_len(hdr[0]);
	if (c->headers == WEFT_TERM_DDP_RDMAP && is_read_req(hdr, hdr_len)) {
		t->r = true;
		t->hdr_len += WEFT_READ_REQ_LEN;
	}
	memcpy(t->hdr, hdr, t->hdr_len);
}

u8 *weft_term_write(u8 *p, const struct weft_term *t)
{
	*p++ = (u8)(t->layer << 4 | t->etype);
	*p++ = t->code;
	*p++ = (t->m ? TERM_M : 0) | (t->d ? TERM_D : 0) | (t->r ? TERM_R : 0);
	*p++ = 0;
	/* RFC 5040 §4.8: the length is present when D is set, valid when M is. */
	if (!t->m && !t->d)
		return p;
	p = weft_put16(p, t->seg_len);
	memcpy(p, t->hdr, t->hdr_len);
	return p + t->hdr_len;
}

/* Octets of header that the bits announce; @ctl is the DDP header's first one. */
static u32 announced_len(const struct weft_term *t, u8 ctl)
{
	if (!t->d)
		return 0;
	return weft_ddp_len(ctl) + (t->r ? WEFT_READ_REQ_LEN : 0);
}

void weft_term_read(const u8 *p, u32 len, struct weft_term *t)
{
	u8 ctl[WEFT_TERM_CTL_LEN + 2] = { 0 };
	u32 n = min_t(u32, len, sizeof(ctl));

	memset(t, 0, sizeof(*t));
	if (!n)
		return;
	memcpy(ctl, p, n);
	t->layer = ctl[0] >> 4;
	t->etype = ctl[0] & 0x0F;
	t->code = ctl[1];
	t->m = ctl[2] & TERM_M;
	t->d = ctl[2] & TERM_D;
	t->r = ctl[2] & TERM_R;
	if (t->m)
		t->seg_len = weft_get16(ctl + WEFT_TERM_CTL_LEN);
	if (len <= sizeof(ctl))
		return;
	n = min_t(u32, len - sizeof(ctl), announced_len(t, p[sizeof(ctl)]));
	memcpy(t->hdr, p + sizeof(ctl), n);
	t->hdr_len = (u8)n;
}
