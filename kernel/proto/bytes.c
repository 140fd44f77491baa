// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A cursor over borrowed pieces. */
#include "bytes.h"

static u32 run_len(const struct weft_cur *c, u32 max)
{
	u32 n = c->seg->len - c->off;

	if (n > c->left)
		n = c->left;
	return n < max ? n : max;
}

static void step(struct weft_cur *c, u32 n)
{
	c->off += n;
	c->left -= n;
	weft_cur_settle(c);
}

void weft_cur_init(struct weft_cur *c, const struct weft_seg *seg, u32 nseg)
{
	u32 i;

	c->seg = seg;
	c->off = 0;
	c->left = 0;
	for (i = 0; i < nseg; i++)
		c->left += seg[i].len;
	weft_cur_settle(c);
}

const u8 *weft_cur_piece(struct weft_cur *c, u32 max, u32 *len)
{
	const u8 *p;

	*len = 0;
	if (!c->left || !max)
		return NULL;
	p = c->seg->p + c->off;
	*len = run_len(c, max);
	step(c, *len);
	return p;
}

void weft_cur_copy(struct weft_cur *c, void *dst, u32 n)
{
	u8 *out = dst;

	while (n) {
		u32 len = run_len(c, n);

		memcpy(out, c->seg->p + c->off, len);
		out += len;
		n -= len;
		step(c, len);
	}
}

void weft_cur_skip_pieces(struct weft_cur *c, u32 n)
{
	/* There may be no piece at all. */
	if (!n)
		return;
	c->left -= n;
	/* At the end it stays behind the last octet, wherever the list ends. */
	for (n += c->off; c->left ? n >= c->seg->len : n > c->seg->len; c->seg++)
		n -= c->seg->len;
	c->off = n;
}

u32 weft_cur_crc(struct weft_cur *c, u32 crc, u32 n)
{
	while (n) {
		u32 len = run_len(c, n);

		crc = weft_crc32c(crc, c->seg->p + c->off, len);
		n -= len;
		step(c, len);
	}
	return crc;
}
