/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <stdio.h>
#include <string.h>

#include "bytes.h"
#include "ddp.h"
#include "term.h"

#define ANY_CODE 0x100

static const struct {
	uint8_t layer, etype;
	uint16_t code;
	const char *name;
} registry[] = {
	{ 0, 0, ANY_CODE, "RDMAP local catastrophic" },
	{ 0, 1, 0x00, "invalid STag" },
	{ 0, 1, 0x01, "base or bounds violation" },
	{ 0, 1, 0x02, "access rights violation" },
	{ 0, 1, 0x03, "STag not of this stream" },
	{ 0, 1, 0x04, "TO wrap" },
	{ 0, 1, 0x09, "STag cannot be invalidated" },
	{ 0, 1, 0xff, "protection, unspecified" },
	{ 0, 2, 0x05, "invalid RDMAP version" },
	{ 0, 2, 0x06, "unexpected opcode" },
	{ 0, 2, 0x07, "catastrophic, this stream" },
	{ 0, 2, 0x08, "catastrophic, global" },
	{ 0, 2, 0x09, "STag cannot be invalidated" },
	{ 0, 2, 0xff, "operation, unspecified" },
	{ 1, 0, 0x00, "DDP local catastrophic" },
	{ 1, 1, 0x00, "tagged: invalid STag" },
	{ 1, 1, 0x01, "tagged: base or bounds" },
	{ 1, 1, 0x02, "tagged: STag not of this stream" },
	{ 1, 1, 0x03, "tagged: TO wrap" },
	{ 1, 1, 0x04, "tagged: invalid DDP version" },
	{ 1, 2, 0x01, "untagged: invalid QN" },
	{ 1, 2, 0x02, "untagged: no buffer" },
	{ 1, 2, 0x03, "untagged: MSN out of range" },
	{ 1, 2, 0x04, "untagged: invalid MO" },
	{ 1, 2, 0x05, "untagged: message too long" },
	{ 1, 2, 0x06, "untagged: invalid DDP version" },
	{ 2, 0, 0x01, "MPA: connection lost" },
	{ 2, 0, 0x02, "MPA: CRC" },
	{ 2, 0, 0x03, "MPA: Marker against length" },
	{ 2, 0, 0x04, "MPA: invalid startup frame" },
	{ 2, 0, 0x05, "MPA: local catastrophic" },
	{ 2, 0, 0x06, "MPA: insufficient IRD" },
	{ 2, 0, 0x07, "MPA: no matching RTR" },
};

#define NREG (sizeof(registry) / sizeof(registry[0]))

const char *term_name(uint8_t layer, uint8_t etype, uint8_t code)
{
	for (size_t i = 0; i < NREG; i++)
		if (registry[i].layer == layer && registry[i].etype == etype &&
		    (registry[i].code == ANY_CODE || registry[i].code == code))
			return registry[i].name;
	return NULL;
}

bool term_registered(uint8_t layer, uint8_t etype, uint8_t code)
{
	/* EType 3 is what two hardware makers use for MPA: known, not right. */
	if (layer == 2 && etype == 3)
		etype = 0;
	return term_name(layer, etype, code) != NULL;
}

static void read_control(const uint8_t *b, enum term_quirk q, struct term *t)
{
	t->read_as = q;
	t->code = b[1];
	if (q == TERM_STRICT) {
		t->layer = b[0] >> 4;
		t->etype = b[0] & 15;
		t->bits = b[2] & TERM_MDR;
		t->reserved = (uint16_t)((b[2] & 0x1f) << 8 | b[3]);
		return;
	}
	t->layer = b[0] & 15;
	t->etype = b[0] >> 4;
	t->bits = (b[2] & 1 ? TERM_M : 0) | (b[2] & 2 ? TERM_D : 0) |
		  (b[2] & 4 ? TERM_R : 0);
	t->reserved = (uint16_t)((b[2] & 0xf8) << 8 | b[3]);
}

/* Layer and EType of the error say nothing of T: the copied header does. */
static size_t copied_ddp_len(const uint8_t *p, size_t len)
{
	if (!len)
		return 0;
	return p[0] & 0x80 ? DDP_TAGGED_LEN : DDP_UNTAGGED_LEN;
}

static void read_headers(const uint8_t *p, size_t len, struct term *t)
{
	if (t->bits & TERM_MD) {
		t->has_seglen = len >= 2;
		t->cut |= len < 2;
		t->seglen = t->has_seglen ? get16(p) : 0;
		p += t->has_seglen ? 2 : len;
		len -= t->has_seglen ? 2 : len;
	}
	if (t->bits & TERM_D) {
		t->ddp_len = copied_ddp_len(p, len);
		t->cut |= !t->ddp_len || len < t->ddp_len;
		if (!t->cut) {
			t->ddp = p;
			p += t->ddp_len;
			len -= t->ddp_len;
		}
	}
	if (t->bits & TERM_R && !t->cut) {
		t->cut = len < RDMA_READ_LEN;
		if (!t->cut) {
			t->rdma = p;
			len -= RDMA_READ_LEN;
		}
	}
	t->left = t->cut ? 0 : len;
}

static void read_as(const uint8_t *b, size_t len, enum term_quirk q,
		    struct term *t)
{
	memset(t, 0, sizeof(*t));
	read_control(b, q, t);
	read_headers(b + TERM_CTL_LEN, len - TERM_CTL_LEN, t);
}

static bool sound(const struct term *t)
{
	return term_registered(t->layer, t->etype, t->code) && !t->reserved &&
	       !t->cut && !t->left;
}

int term_read(const uint8_t *body, size_t len, enum term_quirk hint,
	      struct term *t)
{
	struct term other;

	if (len < TERM_CTL_LEN)
		return -1;
	read_as(body, len, TERM_STRICT, t);
	read_as(body, len, TERM_SIW_BITORDER, &other);
	/*
	 * Without header bits both readings can be sound (20 06 00 00): only
	 * then does what the peer did before decide.
	 */
	if (sound(&other) && (hint == TERM_SIW_BITORDER || !sound(t)))
		*t = other;
	return 0;
}

uint8_t *term_write(uint8_t *out, const struct term *t)
{
	out = put8(out, t->layer << 4 | (t->etype & 15));
	out = put8(out, t->code);
	out = put8(out, (t->bits & TERM_MDR) | (t->reserved >> 8 & 0x1f));
	out = put8(out, (uint8_t)t->reserved);
	if (t->has_seglen)
		out = put16(out, t->seglen);
	if (t->ddp) {
		memcpy(out, t->ddp, t->ddp_len);
		out += t->ddp_len;
	}
	if (t->rdma) {
		memcpy(out, t->rdma, RDMA_READ_LEN);
		out += RDMA_READ_LEN;
	}
	return out;
}

void term_print(char *out, size_t size, const struct term *t)
{
	snprintf(out, size, "%x/%x/%02x %s%s%s%s%s", t->layer, t->etype,
		 t->code, t->bits & TERM_M ? "M" : "", t->bits & TERM_D ? "D" : "",
		 t->bits & TERM_R ? "R" : "", t->bits ? "" : "-",
		 t->read_as == TERM_SIW_BITORDER ? " (bit-reversed)" : "");
}
