/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Bytes in hand: big-endian fields, and a cursor over borrowed pieces.
 *
 * A host receives bytes in pieces (an skb's fragments, a socket read). It
 * lists them once as struct weft_seg; a cursor walks the list. Cursors are
 * plain values: copying one marks a place to come back to. Nothing here owns
 * memory; a cursor is good as long as the pieces are.
 */
#ifndef WEFT_BYTES_H
#define WEFT_BYTES_H

#include "port.h"

static inline u16 weft_get16(const u8 *p)
{
	return (u16)(p[0] << 8 | p[1]);
}

static inline u32 weft_get32(const u8 *p)
{
	return (u32)p[0] << 24 | (u32)p[1] << 16 | (u32)p[2] << 8 | p[3];
}

static inline u64 weft_get64(const u8 *p)
{
	return (u64)weft_get32(p) << 32 | weft_get32(p + 4);
}

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define WEFT_BIG_ENDIAN(bits, v) swab##bits(v)
#else
#define WEFT_BIG_ENDIAN(bits, v) ((u##bits)(v))
#endif

/*
 * The put functions return the end of what they wrote. One store each: of stores of single octets
 * compilers make fewer, by many shifts, where several fields follow each other.
 */
static inline u8 *weft_put16(u8 *p, u16 v)
{
	v = WEFT_BIG_ENDIAN(16, v);
	memcpy(p, &v, sizeof(v));
	return p + sizeof(v);
}

static inline u8 *weft_put32(u8 *p, u32 v)
{
	v = WEFT_BIG_ENDIAN(32, v);
	memcpy(p, &v, sizeof(v));
	return p + sizeof(v);
}

static inline u8 *weft_put64(u8 *p, u64 v)
{
	v = WEFT_BIG_ENDIAN(64, v);
	memcpy(p, &v, sizeof(v));
	return p + sizeof(v);
}

/* The MPA CRC alone goes least significant byte first (RFC 5044 Fig. 5, 6). */
static inline u32 weft_get32_le(const u8 *p)
{
	return (u32)p[3] << 24 | (u32)p[2] << 16 | (u32)p[1] << 8 | p[0];
}

static inline u8 *weft_put32_le(u8 *p, u32 v)
{
	p[0] = (u8)v;
	p[1] = (u8)(v >> 8);
	p[2] = (u8)(v >> 16);
	p[3] = (u8)(v >> 24);
	return p + 4;
}

/* One contiguous piece of borrowed bytes. */
struct weft_seg {
	const u8 *p;
	u32 len;
};

/* A place in a list of pieces. Invariant: off < seg->len whenever left > 0. */
struct weft_cur {
	const struct weft_seg *seg;	/* the piece under the cursor */
	u32 off;			/* bytes of it already behind us */
	u32 left;			/* bytes ahead in all pieces together */
};

/* Starts at the first byte of @nseg pieces; empty pieces are allowed. */
void weft_cur_init(struct weft_cur *c, const struct weft_seg *seg, u32 nseg);

/* Returns the contiguous bytes under the cursor, at most @max, in *@len (0 at
 * the end of the pieces, with a NULL return) and steps over them.
 */
const u8 *weft_cur_piece(struct weft_cur *c, u32 max, u32 *len);

/* Copies exactly @n bytes and steps over them. Caller: n <= c->left. */
void weft_cur_copy(struct weft_cur *c, void *dst, u32 n);

/* Restores the invariant: leaves a piece that is used up, skips empty ones. */
static inline void weft_cur_settle(struct weft_cur *c)
{
	while (c->left && c->off == c->seg->len) {
		c->seg++;
		c->off = 0;
	}
}

/* Steps over exactly @n bytes. Caller: n <= c->left. */
void weft_cur_skip_pieces(struct weft_cur *c, u32 n);

static inline void weft_cur_skip(struct weft_cur *c, u32 n)
{
	if (unlikely(!c->left || n > c->seg->len - c->off)) {
		weft_cur_skip_pieces(c, n);
		return;
	}
	c->off += n;
	c->left -= n;
	weft_cur_settle(c);
}

/*
 * Sets @to on the @n bytes that begin @skip behind @from. Caller: skip + n <=
 * from->left. (Field by field: copying a cursor whose fields were just stored
 * one by one stalls the load.)
 */
static inline void weft_cur_slice(struct weft_cur *to, const struct weft_cur *from,
				  u32 skip, u32 n)
{
	to->seg = from->seg;
	to->off = from->off;
	to->left = from->left;
	weft_cur_skip(to, skip);
	to->left = n;
}

/* Sums exactly @n bytes, continued from @crc, and steps over them. */
u32 weft_cur_crc(struct weft_cur *c, u32 crc, u32 n);

#endif
