// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#define _GNU_SOURCE
#include <sys/mman.h>
#include "rig.h"

const struct weft_mpa_agreed plain_agreed = { .rev = 1 };
const struct weft_mpa_agreed crc_agreed = { .rev = 1, .crc = true };
const struct weft_mpa_agreed marked_agreed = {
	.rev = 1, .crc = true, .tx_markers = true, .rx_markers = true,
};

/* The host */

void host_init(struct host *h, bool initiator, const struct weft_mpa_agreed *agreed)
{
	memset(h, 0, sizeof(*h));
	weft_stream_init(&h->st, initiator);
	if (agreed)
		weft_stream_start(&h->st, agreed);
}

static void forget(struct host *h)
{
	for (u32 i = 0; i < h->n; i++)
		free(h->log[i].data);
	free(h->log);
	h->log = NULL;
	h->n = 0;
}

void host_free(struct host *h)
{
	u8 *chunk;

	while ((chunk = weft_stream_reclaim(&h->st, true))) {
		free(chunk);
		h->lent--;
	}
	assert_int_equal(h->lent, 0);
	forget(h);
}

static bool lend(struct host *h)
{
	h->lends++;
	if (h->no_memory)
		return false;
	h->lent++;
	weft_stream_lend(&h->st, malloc(WEFT_STAGE_CHUNK));
	return true;
}

static void copy_cursor(struct event *e, struct weft_cur c, u32 len)
{
	assert_int_equal(c.left, len);
	e->len = len;
	e->data = malloc(len + 1);
	weft_cur_copy(&c, e->data, len);
}

static void write_down(struct host *h, enum weft_rx_event ev, const struct weft_fpdu *f)
{
	struct event *e;

	h->log = realloc(h->log, (h->n + 1) * sizeof(*h->log));
	e = memset(&h->log[h->n++], 0, sizeof(*e));
	e->ev = ev;
	if (ev == WEFT_RX_STARTUP) {
		e->frame = h->st.frame;
		e->len = h->st.frame.pd_len;
		e->data = malloc(e->len + 1);
		memcpy(e->data, h->st.pd, e->len);
	}
	if (ev == WEFT_RX_ERROR)
		e->err = h->st.rx_error;
	if (ev == WEFT_RX_FPDU)
		copy_cursor(e, f->payload, f->payload_len);
	if (ev == WEFT_RX_FPDU || (ev == WEFT_RX_ERROR && f->raw_len)) {
		e->ddp = f->ddp;
		e->ulpdu_len = f->ulpdu_len;
		e->raw_len = f->raw_len;
		memcpy(e->raw, f->raw, f->raw_len);
	}
}

/* One step of the host; false when the stream wants more bytes, or memory that is not available. */
static bool handle(struct host *h, enum weft_rx_event ev, const struct weft_fpdu *f)
{
	if (ev == WEFT_RX_MORE)
		return false;
	if (ev == WEFT_RX_CHUNK)
		return lend(h);
	write_down(h, ev, f);
	if (ev == WEFT_RX_STARTUP && h->autostart)
		weft_stream_start(&h->st, &h->start);
	return true;
}

void host_deliver(struct host *h, const struct weft_seg *seg, u32 n)
{
	struct weft_fpdu f;
	struct weft_cur in;

	/* Not zero: a field that the stream does not set must not look set. */
	memset(&f, 0xA5, sizeof(f));
	f.raw_len = 0;
	weft_cur_init(&in, seg, n);
	while (handle(h, weft_stream_rx(&h->st, &in, &f), &f))
		;
	h->left = in.left;
	assert_true(h->no_memory || !in.left);
}

void host_bytes(struct host *h, const void *p, u32 len)
{
	struct weft_seg seg = { p, len };

	host_deliver(h, &seg, 1);
}

const struct event *host_last(const struct host *h, u32 n, enum weft_rx_event ev)
{
	assert_int_equal(h->n, n);
	assert_int_equal(h->log[n - 1].ev, ev);
	return &h->log[n - 1];
}

/* Deliveries */

u8 *guarded(int slot, const void *p, u32 len)
{
	enum { ROOM = 1 << 20 };
	static u8 *base[2];
	u8 *at;

	if (!base[slot]) {
		base[slot] = mmap(NULL, ROOM + 4096, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		assert_ptr_not_equal(base[slot], MAP_FAILED);
		assert_int_equal(mprotect(base[slot] + ROOM, 4096, PROT_NONE), 0);
	}
	assert_true(len <= ROOM);
	at = base[slot] + ROOM - len;
	if (len)
		memcpy(at, p, len);
	return at;
}

static void begin(struct host *h, const struct scenario *s)
{
	host_init(h, s->initiator, s->agreed);
	h->st.ext = s->ext;
	if (s->start) {
		h->start = *s->start;
		h->autostart = true;
	}
}

static void same_events(const struct host *a, const struct host *b)
{
	assert_int_equal(a->n, b->n);
	for (u32 i = 0; i < a->n; i++) {
		const struct event *x = &a->log[i], *y = &b->log[i];

		assert_int_equal(x->ev, y->ev);
		assert_int_equal(x->err, y->err);
		assert_int_equal(x->len, y->len);
		assert_int_equal(x->ulpdu_len, y->ulpdu_len);
		assert_int_equal(x->raw_len, y->raw_len);
		assert_memory_equal(x->raw, y->raw, sizeof(x->raw));
		assert_memory_equal(&x->ddp, &y->ddp, sizeof(x->ddp));
		assert_memory_equal(&x->frame, &y->frame, sizeof(x->frame));
		if (x->len)
			assert_memory_equal(x->data, y->data, x->len);
	}
}

static void compare(struct host *h, const struct host *ref)
{
	same_events(ref, h);
	host_free(h);
}

static void one_by_one(const struct scenario *s, const struct host *ref)
{
	struct host h;

	begin(&h, s);
	for (u32 i = 0; i < s->len; i++)
		host_bytes(&h, guarded(0, s->bytes + i, 1), 1);
	compare(&h, ref);
}

static void one_byte_pieces(const struct scenario *s, const struct host *ref)
{
	struct weft_seg *seg = calloc(s->len + 1, sizeof(*seg));
	struct host h;

	for (u32 i = 0; i < s->len; i++)
		seg[i] = (struct weft_seg){ s->bytes + i, 1 };
	begin(&h, s);
	host_deliver(&h, seg, s->len);
	compare(&h, ref);
	free(seg);
}

static void split_at(const struct scenario *s, u32 k, const struct host *ref)
{
	struct weft_seg seg[3] = {
		{ guarded(0, s->bytes, k), k },
		{ s->bytes, 0 },
		{ guarded(1, s->bytes + k, s->len - k), s->len - k },
	};
	struct host h;

	begin(&h, s);
	host_deliver(&h, seg, 3);
	compare(&h, ref);
	begin(&h, s);
	host_deliver(&h, seg, 1);
	host_deliver(&h, seg + 2, 1);
	compare(&h, ref);
}

void each_delivery(const struct scenario *s, u32 splits, struct host *h)
{
	u32 step = s->len > splits ? s->len / splits : 1;

	begin(h, s);
	host_bytes(h, guarded(0, s->bytes, s->len), s->len);
	one_by_one(s, h);
	one_byte_pieces(s, h);
	for (u32 k = 0; k <= s->len; k += step)
		split_at(s, k, h);
}

/* Reference writers */

u32 ref_crc32c(const u8 *p, u32 len)
{
	u32 crc = ~0u;

	while (len--) {
		crc ^= *p++;
		for (int i = 0; i < 8; i++)
			crc = crc & 1 ? crc >> 1 ^ 0x82F63B78u : crc >> 1;
	}
	return ~crc;
}

void ref_init(struct ref_wire *w, bool crc, bool markers)
{
	memset(w, 0, sizeof(*w));
	w->crc = crc;
	w->markers = markers;
}

void ref_free(struct ref_wire *w)
{
	free(w->buf);
}

/* One octet of an FPDU, preceded by a Marker if one is due. */
static void ref_octet(struct ref_wire *w, u8 v, u32 *since_length)
{
	if (w->markers && w->pos % 512 == 0) {
		u16 ptr = (u16)((*since_length | w->ptr_or) + w->ptr_add);
		u8 m[4] = { (u8)(w->marker_reserved >> 8), (u8)w->marker_reserved,
			    (u8)(ptr >> 8), (u8)ptr };

		for (int i = 0; i < 4; i++)
			w->buf[w->len++] = m[i];
		w->pos += 4;
		*since_length += *since_length ? 4 : 0;
	}
	w->buf[w->len++] = v;
	w->pos++;
	++*since_length;
}

/* A Marker may stand between PAD and CRC, and the CRC covers it: write a dummy CRC, step back. */
static void ref_crc(struct ref_wire *w, u32 begin, u32 *since_length)
{
	u32 crc;

	ref_octet(w, 0, since_length);
	w->len--;
	w->pos--;
	crc = w->crc ? ref_crc32c(w->buf + begin, w->len - begin) ^ w->crc_xor : w->crc_xor;
	for (int i = 0; i < 4; i++, crc >>= 8)
		w->buf[w->len++] = (u8)crc;
	w->pos += 4;
}

void ref_fpdu_claim(struct ref_wire *w, const u8 *ulpdu, u32 len, u16 claim)
{
	u32 since_length = 0, begin = w->len;

	w->buf = realloc(w->buf, w->len + len + len / 100 + 64);
	ref_octet(w, (u8)(claim >> 8), &since_length);
	ref_octet(w, (u8)claim, &since_length);
	for (u32 i = 0; i < len; i++)
		ref_octet(w, ulpdu[i], &since_length);
	for (u32 n = len + 2; n % 4; n++)
		ref_octet(w, w->pad, &since_length);
	ref_crc(w, begin, &since_length);
}

void ref_fpdu(struct ref_wire *w, const u8 *ulpdu, u32 len)
{
	ref_fpdu_claim(w, ulpdu, len, (u16)len);
}

static u8 *big_endian(u8 *p, u64 v, int octets)
{
	for (int i = octets - 1; i >= 0; i--)
		*p++ = (u8)(v >> 8 * i);
	return p;
}

u32 ulpdu_untagged(u8 *p, u8 op, u32 qn, u32 msn, u32 mo, bool last, const void *data, u32 len)
{
	*p++ = last ? 0x41 : 0x01;
	*p++ = 0x40 | op;
	p = big_endian(p, 0, 4);
	p = big_endian(p, qn, 4);
	p = big_endian(p, msn, 4);
	p = big_endian(p, mo, 4);
	if (len)
		memcpy(p, data, len);
	return 18 + len;
}

u32 ulpdu_tagged(u8 *p, u8 op, u32 stag, u64 to, bool last, const void *data, u32 len)
{
	*p++ = last ? 0xC1 : 0x81;
	*p++ = 0x40 | op;
	p = big_endian(p, stag, 4);
	p = big_endian(p, to, 8);
	if (len)
		memcpy(p, data, len);
	return 14 + len;
}

void pattern(u8 *p, u32 len, u32 salt)
{
	u32 v = salt * 2654435761u + 12345;

	for (u32 i = 0; i < len; i++) {
		v = v * 1664525 + 1013904223;
		p[i] = (u8)(v >> 24);
	}
}

static u64 rnd_state = 1;

u32 rnd(void)
{
	rnd_state ^= rnd_state << 13;
	rnd_state ^= rnd_state >> 7;
	rnd_state ^= rnd_state << 17;
	return (u32)(rnd_state >> 16);
}

u32 rnd_below(u32 n)
{
	return n ? rnd() % n : 0;
}

void rnd_seed(const char *test)
{
	const char *env = getenv("WEFT_SEED");

	rnd_state = env ? strtoull(env, NULL, 0) : 20261120;
	if (!rnd_state)
		rnd_state = 1;
	print_message("# %s: WEFT_SEED=%llu\n", test, (unsigned long long)rnd_state);
}
