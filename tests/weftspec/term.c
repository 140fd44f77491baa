/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <stdio.h>
#include <string.h>

#include "bytes.h"
#include "ddp.h"
#include "term.h"

const struct term_error_bytes term_errors[] = {
#define TERM_ERROR(name, layer, etype, code, bits, text) \
	[TERM_##name] = { layer, etype, code, bits, text },
#include "term-errors.def"
#undef TERM_ERROR
};

#define NERRORS (sizeof(term_errors) / sizeof(term_errors[0]))

bool term_is_error(enum term_error e, uint8_t layer, uint8_t etype, uint8_t code)
{
	const struct term_error_bytes *b = &term_errors[e];

	return b->layer == layer && b->etype == etype &&
	       (b->code == TERM_ANY_CODE || b->code == code);
}

const char *term_name(uint8_t layer, uint8_t etype, uint8_t code)
{
	for (size_t e = 0; e < NERRORS; e++)
		if (term_is_error(e, layer, etype, code))
			return term_errors[e].text;
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

static bool is_sound(const struct term *t)
{
	return term_registered(t->layer, t->etype, t->code) && !t->reserved &&
	       !t->cut && !t->left;
}

int term_decode(const uint8_t *body, size_t len, enum term_quirk hint,
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
	if (is_sound(&other) && (hint == TERM_SIW_BITORDER || !is_sound(t)))
		*t = other;
	return 0;
}

uint8_t *term_encode(uint8_t *out, const struct term *t)
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
