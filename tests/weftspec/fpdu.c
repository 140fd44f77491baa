/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <string.h>

#include "bytes.h"
#include "crc32c.h"
#include "fpdu.h"

/* The FPDU under construction. */
struct emit {
	struct fpdu_tx *tx;
	const struct fpdu_break *b;
	uint8_t *out;
	size_t n;
	bool any;    /* the length field has begun */
	size_t head; /* where the length field stands: a Marker may precede it */
};

static void emit_marker(struct emit *e)
{
	size_t off = e->n - e->head;
	uint16_t ptr = (uint16_t)(off + e->b->mk_add) | e->b->mk_or;

	put16(e->out + e->n, e->b->mk_reserved);
	put16(e->out + e->n + 2, ptr);
	e->n += MARKER_LEN;
}

static void emit_byte(struct emit *e, uint8_t v)
{
	/* A Marker at the first octet of an FPDU belongs to that FPDU. */
	if (e->tx->markers && (e->tx->pos + e->n) % MARKER_EVERY == 0)
		emit_marker(e);
	if (e->n == MARKER_LEN && !e->head && !e->any)
		e->head = e->n;
	e->any = true;
	e->out[e->n++] = v;
}

static void emit_crc(struct emit *e)
{
	uint32_t crc;

	/* A Marker right behind the PAD is inside this CRC: 5044 4.4. */
	if (e->tx->markers && (e->tx->pos + e->n) % MARKER_EVERY == 0)
		emit_marker(e);
	crc = e->tx->crc ? crc32c(e->out, e->n) : 0;
	crc ^= e->b->crc_xor;
	for (int i = 0; i < 4; i++)
		e->out[e->n++] = crc >> 8 * i;
}

size_t fpdu_build(struct fpdu_tx *tx, uint8_t *out, const uint8_t *ulpdu,
		  size_t len, const struct fpdu_break *b)
{
	static const struct fpdu_break none;
	struct emit e = { .tx = tx, .b = b ? b : &none, .out = out };
	uint16_t claim = (uint16_t)(len + e.b->len_add);
	size_t npad = -(len + 2) & 3;

	emit_byte(&e, claim >> 8);
	emit_byte(&e, (uint8_t)claim);
	for (size_t i = 0; i < len; i++)
		emit_byte(&e, ulpdu[i]);
	for (size_t i = 0; i < npad; i++)
		emit_byte(&e, e.b->pad[i]);
	emit_crc(&e);
	if (e.b->flip_at > 0 && (size_t)e.b->flip_at <= e.n)
		out[e.b->flip_at - 1] ^= 0x01;
	tx->pos += e.n;
	return e.n;
}

/* The FPDU being taken apart. */
struct take {
	struct fpdu_rx *rx;
	const uint8_t *in;
	size_t avail, n;
	size_t head; /* as in struct emit */
	struct fpdu *f;
};

static bool at_marker(const struct take *t)
{
	return t->rx->markers && (t->rx->pos + t->n) % MARKER_EVERY == 0;
}

static bool take_marker(struct take *t)
{
	uint16_t ptr;

	if (t->n + MARKER_LEN > t->avail)
		return false;
	ptr = get16(t->in + t->n + 2);
	t->f->nmarkers++;
	t->f->mk_reserved_bad |= get16(t->in + t->n) != 0;
	t->f->mk_low_bad |= (ptr & 3) != 0;
	t->f->mk_ptr_bad |= (ptr & ~3u) != t->n - t->head;
	t->n += MARKER_LEN;
	if (t->n == MARKER_LEN)
		t->head = t->n;
	return true;
}

static bool take_bytes(struct take *t, uint8_t *to, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (at_marker(t) && !take_marker(t))
			return false;
		if (t->n >= t->avail)
			return false;
		to[i] = t->in[t->n++];
	}
	return true;
}

static bool take_crc(struct take *t)
{
	if (at_marker(t) && !take_marker(t))
		return false;
	if (t->n + 4 > t->avail)
		return false;
	t->f->crc_want = crc32c(t->in, t->n);
	for (int i = 0; i < 4; i++)
		t->f->crc |= (uint32_t)t->in[t->n++] << 8 * i;
	t->f->crc_ok = t->f->crc == t->f->crc_want;
	return true;
}

size_t fpdu_parse(struct fpdu_rx *rx, const uint8_t *in, size_t avail,
		  struct fpdu *f)
{
	struct take t = { .rx = rx, .in = in, .avail = avail, .f = f };
	uint8_t head[2];

	memset(f, 0, sizeof(*f));
	f->at = rx->pos;
	f->ulpdu = rx->ulpdu;
	if (!take_bytes(&t, head, 2))
		return 0;
	f->len = get16(head);
	f->npad = -(f->len + 2) & 3;
	if (!take_bytes(&t, rx->ulpdu, f->len) ||
	    !take_bytes(&t, f->pad, f->npad) || !take_crc(&t))
		return 0;
	f->wire = t.n;
	rx->pos += t.n;
	return t.n;
}
