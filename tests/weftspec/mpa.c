/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <string.h>

#include "bytes.h"
#include "mpa.h"

const uint8_t mpa_key_req[MPA_KEY] = {
	0x4d, 0x50, 0x41, 0x20, 0x49, 0x44, 0x20, 0x52,
	0x65, 0x71, 0x20, 0x46, 0x72, 0x61, 0x6d, 0x65,
};

const uint8_t mpa_key_rep[MPA_KEY] = {
	0x4d, 0x50, 0x41, 0x20, 0x49, 0x44, 0x20, 0x52,
	0x65, 0x70, 0x20, 0x46, 0x72, 0x61, 0x6d, 0x65,
};

uint8_t *mpa_encode(uint8_t *out, const struct mpa_frame *f)
{
	memcpy(out, f->key, MPA_KEY);
	out = put8(out + MPA_KEY, f->flags);
	out = put8(out, f->rev);
	return put16(out, f->pd_len);
}

void mpa_decode(const uint8_t *in, struct mpa_frame *f)
{
	memcpy(f->key, in, MPA_KEY);
	f->flags = in[16];
	f->rev = in[17];
	f->pd_len = get16(in + 18);
}

uint8_t *mpa_enh_encode(uint8_t *out, const struct mpa_enh *e)
{
	out = put16(out, e->a << 15 | e->b << 14 | (e->ird & 0x3fff));
	return put16(out, e->c << 15 | e->d << 14 | (e->ord & 0x3fff));
}

void mpa_enh_decode(const uint8_t *in, struct mpa_enh *e)
{
	uint16_t i = get16(in), o = get16(in + 2);

	e->a = i >> 15;
	e->b = i >> 14 & 1;
	e->ird = i & 0x3fff;
	e->c = o >> 15;
	e->d = o >> 14 & 1;
	e->ord = o & 0x3fff;
}
