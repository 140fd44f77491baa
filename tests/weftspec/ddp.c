/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <string.h>

#include "bytes.h"
#include "ddp.h"

size_t seg_head_len(const struct seg *s)
{
	return s->tagged ? DDP_TAGGED_LEN : DDP_UNTAGGED_LEN;
}

static uint8_t *ctl_write(uint8_t *out, const struct seg *s)
{
	out = put8(out, s->tagged << 7 | s->last << 6 | (s->rsvd & 15) << 2 |
		   (s->dv & 3));
	return put8(out, (s->rv & 3) << 6 | (s->rsv & 3) << 4 | (s->op & 15));
}

size_t seg_encode(uint8_t *out, const struct seg *s)
{
	uint8_t *p = ctl_write(out, s);

	if (s->tagged) {
		p = put32(p, s->stag);
		p = put64(p, s->to);
	} else {
		p = put32(p, s->inval);
		p = put32(p, s->qn);
		p = put32(p, s->msn);
		p = put32(p, s->mo);
	}
	if (s->len)
		memcpy(p, s->data, s->len);
	return (size_t)(p - out) + s->len;
}

static void ctl_read(const uint8_t *in, struct seg *s)
{
	s->tagged = in[0] >> 7;
	s->last = in[0] >> 6 & 1;
	s->rsvd = in[0] >> 2 & 15;
	s->dv = in[0] & 3;
	s->rv = in[1] >> 6;
	s->rsv = in[1] >> 4 & 3;
	s->op = in[1] & 15;
}

int seg_decode(const uint8_t *in, size_t len, struct seg *s)
{
	size_t head;

	memset(s, 0, sizeof(*s));
	if (len < 2)
		return -1;
	ctl_read(in, s);
	head = seg_head_len(s);
	if (len < head)
		return -1;
	if (s->tagged) {
		s->stag = get32(in + 2);
		s->to = get64(in + 6);
	} else {
		s->inval = get32(in + 2);
		s->qn = get32(in + 6);
		s->msn = get32(in + 10);
		s->mo = get32(in + 14);
	}
	s->data = in + head;
	s->len = len - head;
	return 0;
}

uint8_t *rreq_encode(uint8_t *out, const struct rreq *r)
{
	out = put32(out, r->sink_stag);
	out = put64(out, r->sink_to);
	out = put32(out, r->size);
	out = put32(out, r->src_stag);
	return put64(out, r->src_to);
}

void rreq_decode(const uint8_t *in, struct rreq *r)
{
	r->sink_stag = get32(in);
	r->sink_to = get64(in + 4);
	r->size = get32(in + 12);
	r->src_stag = get32(in + 16);
	r->src_to = get64(in + 20);
}

uint8_t *atomic_encode(uint8_t *out, const struct atomic *a)
{
	out = put32(out, a->reserved << 4 | (a->code & 15));
	out = put32(out, a->id);
	out = put32(out, a->stag);
	out = put64(out, a->to);
	out = put64(out, a->add);
	out = put64(out, a->add_mask);
	out = put64(out, a->cmp);
	return put64(out, a->cmp_mask);
}

void atomic_decode(const uint8_t *in, struct atomic *a)
{
	a->reserved = get32(in) >> 4;
	a->code = get32(in) & 15;
	a->id = get32(in + 4);
	a->stag = get32(in + 8);
	a->to = get64(in + 12);
	a->add = get64(in + 20);
	a->add_mask = get64(in + 28);
	a->cmp = get64(in + 36);
	a->cmp_mask = get64(in + 44);
}

const char *op_name(uint8_t op)
{
	static const char *const name[16] = {
		[OP_WRITE] = "Write", [OP_READ_REQ] = "ReadReq",
		[OP_READ_RESP] = "ReadResp", [OP_SEND] = "Send",
		[OP_SEND_INV] = "SendInv", [OP_SEND_SE] = "SendSE",
		[OP_SEND_SE_INV] = "SendSEInv", [OP_TERM] = "Terminate",
		[OP_IMM] = "Immediate", [OP_IMM_SE] = "ImmediateSE",
		[OP_ATOMIC_REQ] = "AtomicReq", [OP_ATOMIC_REP] = "AtomicRep",
	};

	return name[op & 15] ? name[op & 15] : "reserved-opcode";
}
