// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "batch.h"
#include "host.h"
#include "region.h"

/* Room kept at the end of a batch, so that a Terminate can always be appended. */
#define SPARE 128

/* What is shorter is copied in less time than it is referred to. */
#define REFER_MIN 256

static_assert(WEFT_BATCH_MEM_MIN >= 2 * (sizeof(struct weft_txd) + SPARE),
	      "the least memory holds an FPDU's description, a Terminate, and as much again");
static_assert(WEFT_MPA_LEN_SIZE + WEFT_MPA_ULPDU_MAX + 2 + WEFT_MPA_CRC_SIZE == WEFT_LARGE_FPDU,
	      "the longest ULPDU, with PAD");
static_assert(WEFT_BATCH_REFER_FROM >= 4 * sizeof(struct weft_batch_refs),
	      "the list takes the smaller part of the memory");

/* ---- the memory ---- */

/* Behind the batch's octets is what is needed only while there is a batch. */
static void use_memory(struct weft_batch *b, void *mem, u32 size)
{
	b->buf = mem;
	b->lent = b->asked = size;
	b->size = size - sizeof(*b->d);
	b->d = (void *)(b->buf + b->size);
	b->d->npieces = 0;
	b->refs = NULL;
}

void weft_batch_lend(struct weft_batch *b, void *mem, u32 size)
{
	use_memory(b, mem, size);
	if (size < WEFT_BATCH_REFER_FROM)
		return;
	b->size -= sizeof(*b->refs);
	b->refs = (void *)(b->buf + b->size);
}

void *weft_batch_reclaim(struct weft_batch *b, bool all)
{
	void *mem = b->buf;

	if (all)
		b->off = b->end = b->used = 0;
	if (!weft_batch_is_sent(b))
		return NULL;
	b->buf = NULL;
	return mem;
}

void weft_batch_begin(struct weft_batch *b, u32 mss, u32 seg_off)
{
	b->off = b->end = b->used = b->span = 0;
	b->fresh = b->eor = false;
	b->mss = mss;
	b->seg_off = seg_off;
	b->limit = b->size - SPARE;
}

void weft_batch_limit(struct weft_batch *b, u32 octets)
{
	b->limit = min_t(u32, b->limit, octets);
}

/* ---- what is referred to ---- */

/* Lists the memory's octets that iov does not list yet, up to @end. */
static void close_span(struct weft_batch *b, u32 end)
{
	if (end == b->span)
		return;
	b->refs->iov[b->niov++] = (struct weft_iov) {
		.base = b->buf + b->span,
		.len = end - b->span,
	};
	b->span = end;
}

/* The next @n octets of the FPDU in @e are those at @mem. False: no room to list them. */
static bool refer(struct weft_batch *b, const struct weft_emit *e, void *mem, u32 n)
{
	if (b->niov + 3 > ARRAY_SIZE(b->refs->iov))
		return false;
	close_span(b, (u32)(e->out - b->buf));
	b->refs->iov[b->niov++] = (struct weft_iov) { .base = mem, .len = n };
	return true;
}

/* Keeps @p's region, which is held, until TCP has its octets. */
static void keep_region(struct weft_batch *b, struct weft_piece *p)
{
	/* One hold will do for a run of pieces. */
	if (b->nheld && b->refs->held[b->nheld - 1] == p->region)
		return;
	b->refs->held[b->nheld++] = p->region;
	p->region = NULL;
}

const struct weft_iov *weft_batch_list(struct weft_batch *b, u32 *niov)
{
	if (!b->niov) {
		b->whole = (struct weft_iov) {
			.base = b->buf + b->off,
			.len = b->end - b->off,
		};
		*niov = 1;
		return &b->whole;
	}
	close_span(b, b->used);
	*niov = b->niov;
	return b->refs->iov;
}

static void let_regions_go(struct weft_batch *b, struct weft_qpc *qp)
{
	u32 i;

	for (i = 0; i < b->nheld; i++)
		weft_region_put(qp, b->refs->held[i]);
	b->niov = b->nheld = 0;
}

void weft_batch_break_off(struct weft_batch *b, struct weft_qpc *qp)
{
	if (!b->buf)
		return;
	if (qp)
		weft_tx_put(qp, b->d);
	let_regions_go(b, qp);
	b->off = b->end = b->used = 0;
}

/* From the end on, so that nothing is written over what is to be moved. */
void weft_batch_taken(struct weft_batch *b, struct weft_qpc *qp, u32 taken)
{
	u32 pos = b->end, i;

	for (i = b->niov; i && pos > taken; i--) {
		const struct weft_iov *v = &b->refs->iov[i - 1];

		pos -= (u32)v->len;
		memmove(b->buf + pos, v->base, v->len);
	}
	let_regions_go(b, qp);
	b->used = b->end;
	b->off += taken;
}

/* Aligned for the list that follows the octets. */
u32 weft_batch_rest_size(const struct weft_batch *b)
{
	u32 size = (u32)(((b->end - b->off + SPARE + 7) & ~7u) + sizeof(*b->d));

	return size > b->asked - b->asked / 4 ? 0 : size;
}

void *weft_batch_move(struct weft_batch *b, void *mem, u32 size, u32 asked)
{
	u32 n = b->end - b->off;
	void *old = b->buf;

	memcpy(mem, b->buf + b->off, n);
	use_memory(b, mem, size);
	b->asked = asked;
	b->off = 0;
	b->end = b->used = n;
	return old;
}

/* ---- appending ---- */

/* What a null region is read as. */
static void emit_zeros(struct weft_emit *e, u32 len)
{
	static const u8 zeros[256];
	u32 n;

	for (; len; len -= n) {
		n = min_t(u32, len, sizeof(zeros));
		weft_emit_bytes(e, zeros, n);
	}
}

/* Returns how many of @p's octets are referred to, and not copied. */
static u32 emit_piece(struct weft_batch *b, struct weft_emit *e, struct weft_piece *p)
{
	bool may = b->refs && p->len >= REFER_MIN && weft_emit_may_refer(e) &&
		   b->nheld < ARRAY_SIZE(b->refs->held);
	u32 left = p->len, referred = 0, n;
	struct weft_region *memory;
	u64 addr = p->addr;

	if (!p->region) {
		weft_emit_bytes(e, p->p, left);
		return 0;
	}
	memory = weft_region_memory(p->region, &addr);
	if (unlikely(memory->kind == WEFT_REGION_NULL)) {
		emit_zeros(e, left);
		return 0;
	}
	for (; left; left -= n, addr += n) {
		void *mem = weft_host_piece(memory, addr, left, &n);

		if (may && refer(b, e, mem, n))
			referred += n;
		else
			weft_emit_bytes(e, mem, n);
	}
	if (referred)
		keep_region(b, p);
	return referred;
}

/* Appends the FPDU in b->d. */
static void append(struct weft_batch *b, struct weft_qpc *qp)
{
	struct weft_txd *d = b->d;
	u32 i, n, referred = 0;
	struct weft_emit e;

	weft_stream_tx_emit(qp->st, &d->f, &e, b->buf + b->used);
	for (i = 0; i < d->npieces; i++)
		referred += emit_piece(b, &e, &d->piece[i]);
	n = weft_emit_end(&e);
	weft_tx_put(qp, d);

	b->used += n;
	n += referred;
	if (!b->seg_off)
		b->segs++;
	b->fpdus++;
	b->end += n;
	if (b->seg_off != WEFT_SEG_UNKNOWN)
		b->seg_off = (b->seg_off + n) % b->mss;
}

static u32 room(const struct weft_batch *b)
{
	return b->limit - b->end;
}

static u32 left_in_segment(const struct weft_batch *b)
{
	return b->seg_off == WEFT_SEG_UNKNOWN ? b->mss : b->mss - b->seg_off;
}

/* The batch is full once another segment would not fit whole. */
static bool is_full(const struct weft_batch *b)
{
	return b->end && room(b) < min_t(u32, left_in_segment(b), b->size / 4);
}

/* Appends the next FPDU, if there is one and it fits into the segment. */
static enum weft_tx_result append_next(struct weft_batch *b, struct weft_qpc *qp)
{
	u32 max = weft_stream_tx_max_ulpdu(qp->st, min_t(u32, left_in_segment(b), room(b)));
	enum weft_tx_result r;

	r = weft_tx_next(qp, max, max < WEFT_MPA_ULPDU_MIN_MULPDU, b->d);
	if (r == WEFT_TX_FPDU)
		append(b, qp);
	return r;
}

enum weft_tx_result weft_batch_fill(struct weft_batch *b, struct weft_qpc *qp)
{
	enum weft_tx_result r;
	bool sent = false;

	while (!is_full(b)) {
		if (sent && weft_tx_rests(qp))
			return WEFT_TX_IDLE;
		r = append_next(b, qp);
		sent = r == WEFT_TX_FPDU;
		if (sent)
			continue;
		if (r != WEFT_TX_NO_FIT)
			return r;
		/* What is left of the segment is no use: the next octet begins a new one. */
		b->seg_off = 0;
		if (b->end) {
			b->eor = true;
			return r;
		}
		b->fresh = true;
	}
	return WEFT_TX_FPDU;
}

/* A Terminate is all that a QP in TERM says. */
bool weft_batch_append_terminate(struct weft_batch *b, struct weft_qpc *qp)
{
	if (weft_tx_next(qp, WEFT_MPA_ULPDU_MIN_MULPDU, true, b->d) != WEFT_TX_FPDU)
		return false;
	append(b, qp);
	b->eor = false;
	return true;
}
