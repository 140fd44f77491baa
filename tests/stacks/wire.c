// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <stdlib.h>

#include "host.h"
#include "wire.h"

/* RFC 5044 Fig. 7: 20 octets and private data. */
#define FRAME_MAX (20 + 512)

void wire_init(struct wire *w, u32 mss, u32 sndbuf)
{
	memset(w, 0, sizeof(*w));
	w->mss = mss;
	w->sndbuf = sndbuf;
	w->size = sndbuf + FRAME_MAX;
	w->buf = malloc(w->size);
	HOST_ASSERT(w->buf);
}

void wire_fini(struct wire *w)
{
	free(w->buf);
	w->buf = NULL;
}

/* Counts segments as a sender with full windows would cut them. */
static void count_segments(struct wire *w, u32 n, bool eor)
{
	while (n) {
		u32 run = min_t(u32, n, w->mss - w->seg_off);

		w->segments += !w->seg_off;
		w->seg_off = (w->seg_off + run) % w->mss;
		n -= run;
	}
	if (eor)
		w->seg_off = 0;
}

size_t wire_write(struct wire *w, const void *p, size_t len, bool eor)
{
	bool frame = !w->calls++ && len <= FRAME_MAX;
	u32 n = frame ? (u32)len : (u32)min_t(size_t, len, wire_room(w));

	HOST_ASSERT(!w->fin);
	if (w->tail + n > w->size) {
		memmove(w->buf, w->buf + w->head, w->tail - w->head);
		w->tail -= w->head;
		w->head = 0;
	}
	if (n)
		memcpy(w->buf + w->tail, p, n);
	w->tail += n;
	w->sent += n;
	count_segments(w, n, frame || (eor && n == len));
	return n;
}

void wire_close(struct wire *w)
{
	w->fin = true;
}

void wire_drop(struct wire *w)
{
	w->dropped = true;
	w->head = w->tail;
}

static void batch_add(struct wire_batch *b, const u8 *p, u32 len)
{
	u8 *copy = malloc(len ? len : 1);

	HOST_ASSERT(copy);
	if (len)
		memcpy(copy, p, len);
	b->seg[b->nseg++] = (struct weft_seg){ .p = copy, .len = len };
	b->len += len;
}

static u32 portion(const struct wire *w, enum wire_cut cut, struct rng *rng)
{
	u32 all = wire_waiting(w);
	u32 n;

	switch (cut) {
	case WIRE_WHOLE:
		return all;
	case WIRE_BYTES:
		return min_t(u32, all, 1);
	case WIRE_RANDOM:
		break;
	}
	/* Mostly a few segments, at times a few octets. */
	n = rng_below(rng, 4) ? rng_upto(rng, 4 * w->mss) : rng_upto(rng, 24);
	return min_t(u32, all, n);
}

void wire_read(struct wire *w, enum wire_cut cut, struct rng *rng, struct wire_batch *b)
{
	u32 left = portion(w, cut, rng);

	memset(b, 0, sizeof(*b));
	while (left) {
		u32 n = left;

		if (cut == WIRE_RANDOM && b->nseg < ARRAY_SIZE(b->seg) - 1 && rng_below(rng, 3))
			n = rng_below(rng, left + 1);
		batch_add(b, w->buf + w->head, n);
		w->head += n;
		left -= n;
	}
}

void wire_batch_free(struct wire_batch *b)
{
	u32 i;

	for (i = 0; i < b->nseg; i++)
		free((void *)(uintptr_t)b->seg[i].p);
	memset(b, 0, sizeof(*b));
}

bool wire_read_fin(struct wire *w)
{
	if (!w->fin || w->fin_read || wire_waiting(w) || w->dropped)
		return false;
	w->fin_read = true;
	return true;
}
