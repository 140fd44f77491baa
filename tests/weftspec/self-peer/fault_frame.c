/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Faults of the start-up frames. */
#include <stdio.h>
#include <string.h>

#include "../bytes.h"
#include "fault_frame.h"
#include "manner.h"

static void drop_octets(struct fault_dir *d, size_t n)
{
	memmove(d->buf, d->buf + n, d->len - n);
	d->len -= n;
}

/* A zero-length Write, where no FPDU may be. */
static size_t append_write(struct fault_dir *d, uint8_t *dst)
{
	struct seg g = { .tagged = true, .last = true, .dv = 1, .rv = 1 };
	uint8_t ulpdu[32];
	struct fpdu_tx tx = { .crc = true };

	return fpdu_build(&tx, dst, ulpdu, seg_encode(ulpdu, &g), NULL);
}

static void change_words(uint8_t *words, uint8_t asked_m)
{
	struct mpa_enh e;

	mpa_enh_decode(words, &e);
	if (fault_is(FR_IRD_MAX))
		e.ird = MPA_NO_NEGOTIATION;
	if (fault_is(FR_ORD_MAX))
		e.ord = 200;
	if (fault_is(FR_NEG)) {
		e.ird = e.ird == MPA_NO_NEGOTIATION ? 16 : e.ird;
		e.ord = e.ord == MPA_NO_NEGOTIATION ? 16 : e.ord;
	}
	if (fault_is(FR_A))
		e.a = !e.a;
	if (fault_is(FR_BCD0))
		e.b = e.c = e.d = false;
	if (fault_is(FR_BCD1) && e.b + e.c + e.d > 1)
		e.b = e.d = false;
	if (fault_is(FR_BCD_ALL))
		e.b = e.c = e.d = true;
	mpa_enh_encode(words, &e);
}

static void change_flags(uint8_t *f, const struct fault_dir *in)
{
	if (fault_is(FR_KEY))
		f[3] ^= 0x20;
	if (fault_is(FR_C0))
		f[16] &= ~MPA_C;
	if (fault_is(FR_R))
		f[16] |= MPA_R;
	if (fault_is(FR_RES))
		f[16] |= 0x05;
	if (fault_is(FR_S))
		f[16] |= MPA_S;
	if (fault_is(FR_REV1))
		f[17] = 1;
	if (fault_is(FR_REV2))
		f[17] = 2;
	if (fault_is(FR_M_ECHO))
		f[16] = (f[16] & ~MPA_M) | (in->flags & MPA_M);
	if (fault_is(FR_REV_ECHO) && !in->rev)
		f[17] = 0;
}

static size_t out_frame(struct fault_dir *d, struct fault_dir *in, size_t len,
			uint8_t *dst)
{
	uint8_t *f = d->buf;

	d->flags = f[16]; /* what the stack believes it said */
	d->rev = f[17];
	if (!manner_is(MANNER_NONE))
		manner_speak(in, !d->initiator, f);
	if (fault_is(FR_REJECT_CLOSE) && f[16] & MPA_R)
		return 0;
	if (f[16] & MPA_S && f[17] >= 2 && len >= MPA_HEAD + MPA_ENH)
		change_words(f + MPA_HEAD, in->flags & MPA_M);
	change_flags(f, in);
	if (fault_is(FR_PD) && len > MPA_HEAD && f[len - 1] == 0x5a)
		put16(f + 18, len - MPA_HEAD - 1);
	if (fault_is(FR_WORDS)) {
		len = MPA_HEAD + 2;
		put16(f + 18, 2);
	}
	memcpy(dst, f, len);
	if (fault_is(FR_PD_BIG)) {
		put16(dst + 18, 600);
		memset(dst + len, 0, MPA_HEAD + 600 - len);
		len = MPA_HEAD + 600;
	}
	if (fault_is(FR_TAIL))
		len += append_write(d, dst + len);
	return len;
}

/* The rules that an incoming frame would break, bent until it keeps them. */
static size_t make_right(struct fault_dir *d, uint8_t *dst)
{
	const uint8_t *key = d->initiator ? mpa_key_rep : mpa_key_req;
	size_t len = d->len < MPA_HEAD + MPA_PD_MAX ? d->len :
						      MPA_HEAD + MPA_PD_MAX;
	uint16_t claim = get16(d->buf + 18);

	memcpy(dst, d->buf, len);
	memcpy(dst, key, MPA_KEY);
	if (dst[17] > 2 || (d->initiator && dst[17] != 2))
		dst[17] = d->initiator ? 2 : 1;
	if (claim < len - MPA_HEAD)
		len = MPA_HEAD + claim;
	if (d->initiator) {
		dst[16] &= ~MPA_R;
		if (!(dst[16] & MPA_S) || d->buf[17] != 2) {
			/* Words it never had: IRD and ORD of 16. */
			memmove(dst + MPA_HEAD + MPA_ENH, dst + MPA_HEAD,
				len - MPA_HEAD);
			put32(dst + MPA_HEAD, 0x00100010);
			len += MPA_ENH;
		}
		dst[16] |= MPA_S;
	}
	if (dst[16] & MPA_S && dst[17] == 2 && len < MPA_HEAD + MPA_ENH) {
		memset(dst + len, 0, MPA_HEAD + MPA_ENH - len);
		len = MPA_HEAD + MPA_ENH;
	}
	put16(dst + 18, len - MPA_HEAD);
	d->flags = dst[16];
	drop_octets(d, d->len);
	return len;
}

static size_t in_frame(struct fault_dir *d, size_t len, uint8_t *dst)
{
	uint8_t *f = d->buf;

	d->flags = f[16];
	d->rev = f[17];
	if (fault_is(I_V1) && f[17] == 2) {
		f[16] &= ~MPA_S;
		f[17] = 1;
	}
	if (fault_is(I_FRAME_STRICT) && f[16] & (MPA_RES | MPA_R))
		f[0] ^= 1;
	if (fault_is(I_PD) && len > MPA_HEAD + 60)
		f[0] ^= 1;
	if (fault_is(I_PD) && len == MPA_HEAD)
		f[0] ^= 1;
	if (fault_is(FR_REV_ECHO) && !f[17])
		f[17] = 1;
	if (fault_is(I_NEG) && f[16] & MPA_S &&
	    (get16(f + 22) & 0x3fff) == MPA_NO_NEGOTIATION)
		put16(f + 22, 0x3ffe);
	memcpy(dst, f, len);
	return len;
}

static size_t manner_frame(struct fault_dir *d, size_t len, uint8_t *dst)
{
	const char *why;

	d->flags = d->buf[16];
	d->rev = d->buf[17];
	why = manner_refuses(d, d->buf, &len, d->len - len);
	if (why) {
		fprintf(stderr, "self-peer: refused: %s\n", why);
		d->kill = true;
		return 0;
	}
	memcpy(dst, d->buf, len);
	return len;
}

static bool looks_like_a_frame(const struct fault_dir *d, bool out)
{
	const uint8_t *key = d->initiator == out ? mpa_key_req : mpa_key_rep;

	return !memcmp(d->buf, key, MPA_KEY) &&
	       get16(d->buf + 18) <= MPA_PD_MAX;
}

size_t frame_pass(struct fault_dir *d, struct fault_dir *other, bool out,
		  uint8_t *dst)
{
	size_t len, n;

	/* A busy host may have all segments of a frame together: it is cut all the same. */
	if (!out && (fault_is(I_FRAME_ONE) || manner_is(MANNER_IRDMA)) && d->len &&
	    (d->segments > 1 || d->len < MPA_HEAD ||
	     d->len < (size_t)MPA_HEAD + get16(d->buf + 18)))
		d->kill = true;
	if (d->len < MPA_HEAD)
		return 0;
	d->framed = true;
	if (!out && fault_is(I_FRAME_OK))
		return make_right(d, dst);
	if (!looks_like_a_frame(d, out)) {
		d->raw = true;
		return 0;
	}
	len = MPA_HEAD + get16(d->buf + 18);
	if (d->len < len) {
		d->framed = false;
		return 0;
	}
	n = out ? out_frame(d, other, len, dst) : manner_is(MANNER_NONE) ?
	    in_frame(d, len, dst) : manner_frame(d, len, dst);
	drop_octets(d, !out && manner_is(MANNER_IRDMA) ? d->len : len);
	d->raw = !manner_is(MANNER_NONE) && !manner_is(MANNER_CXGB4);
	return n;
}
