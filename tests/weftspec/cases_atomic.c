/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Atomics: RFC 7306 section 5. */
#include <sys/socket.h>

#include "cases.h"

/* The first address of region RW that is a multiple of eight, and a value. */
static uint64_t set_cell(struct stream *s, uint64_t value)
{
	const struct region *rw = &s->t.r[REFL_RW];
	uint64_t at = (rw->addr + 7) & ~7ull;
	uint8_t b[8];

	/* Memory holds it in the host's order: let the peer put it there. */
	for (int i = 0; i < 8; i++)
		b[i] = value >> 8 * i;
	poke(s, rw->stag, at, b, 8);
	return at;
}

static uint64_t read_cell(struct stream *s, uint64_t at)
{
	uint64_t v = 0;
	uint8_t b[8];

	CHECK(s->c, read_peer(s, s->t.r[REFL_RW].stag, at, b, 8),
	      "the cell can be read", "it cannot");
	for (int i = 0; i < 8; i++)
		v |= (uint64_t)b[i] << 8 * i;
	return v;
}

static uint64_t expect_atomic_response(struct stream *s, uint32_t id)
{
	const struct seg *g = &s->m.s;

	expect_op(s, OP_ATOMIC_REP);
	CHECK(s->c, !g->tagged && g->qn == QN_ATOMIC && g->last && !g->mo &&
	      g->len == ATOMIC_REP_LEN, "12 octets on QN 3, L=1, MO 0",
	      "%zu octets on QN %u", g->len, g->qn);
	CHECK(s->c, get32(g->data) == id, "the request's identifier",
	      "%08x for %08x", get32(g->data), id);
	return get64(g->data + 4);
}

static uint64_t run_atomic(struct stream *s, struct atomic *a)
{
	uint8_t hdr[ATOMIC_REQ_LEN];
	struct seg g;

	if (!a->stag)
		a->stag = s->t.r[REFL_RW].stag;
	g = mk_atomic(s, hdr, a);
	send_seg(s, &g);
	return expect_atomic_response(s, a->id);
}

static void check_cell(struct stream *s, struct atomic *a, uint64_t old,
		       uint64_t want)
{
	uint64_t got;

	a->to = set_cell(s, old);
	got = run_atomic(s, a);
	CHECK(s->c, got == old, "the old value is returned", "%#llx for %#llx",
	      (unsigned long long)got, (unsigned long long)old);
	got = read_cell(s, a->to);
	CHECK(s->c, got == want, "the value by section 5.1", "%#llx for %#llx",
	      (unsigned long long)got, (unsigned long long)want);
}

static void request_form(struct ctx *c)
{
	struct atomic a = { .reserved = 0xfffffff, .code = ATOMIC_FADD,
			    .id = 7, .add = 1, .cmp_mask = -1ull };
	struct stream *s = full(c);

	expect_alive(s, "the start-up"); /* a Read before: the MSN is shared */
	check_cell(s, &a, 41, 42);
	expect_alive(s, "an Atomic between Reads");
}

static void identifiers_echoed(struct ctx *c)
{
	static const uint32_t id[] = { 0, 0xffffffff, 0x12345678 };
	struct stream *s = full(c);

	for (int i = 0; i < 3; i++) {
		struct atomic a = { .code = ATOMIC_FADD, .id = id[i], .add = 1 };

		check_cell(s, &a, i, i + 1);
		CHECK(c, s->untagged[QN_ATOMIC].msn == i + 1u ||
		      s->untagged[QN_READ].any, "QN 3 has MSNs of its own",
		      "MSN %u", s->untagged[QN_ATOMIC].msn);
	}
	lint_verdict(c, "DDP-10");
}

/* Section 5.1.1: the mask's bits end the carries. */
static uint64_t masked_add(uint64_t v, uint64_t add, uint64_t mask)
{
	uint64_t out = 0;
	unsigned int carry = 0;

	for (int i = 0; i < 64; i++) {
		unsigned int sum = (v >> i & 1) + (add >> i & 1) + carry;

		out |= (uint64_t)(sum & 1) << i;
		carry = mask >> i & 1 ? 0 : sum >> 1;
	}
	return out;
}

/* a: 0 no mask, else the mask. */
static void fetch_add(struct ctx *c)
{
	static const uint64_t v[][2] = {
		{ -1ull, 1 }, { 0, 0 }, { 0x7fffffffffffffff, 1 },
		{ 0x00000000ffffffff, 1 }, { 0x0102030405060708, 0xff },
		{ 0xffffffff80808080, 0x8080808080808080 },
	};
	struct stream *s = full(c);

	for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
		struct atomic a = { .code = ATOMIC_FADD, .id = i, .add = v[i][1],
				    .add_mask = (uint64_t)c->w->a,
				    .cmp_mask = -1ull };

		check_cell(s, &a, v[i][0],
			   masked_add(v[i][0], v[i][1], a.add_mask));
	}
}

/* a: compare mask, b: swap mask. */
static void compare_swap(struct ctx *c)
{
	const uint64_t cm = c->w->a, sm = c->w->b;
	const uint64_t old = 0x1122334455667788, swap = 0xa1a2a3a4a5a6a7a8;
	struct stream *s = full(c);
	struct atomic a = { .code = ATOMIC_CSWAP, .id = 1, .add = swap,
			    .add_mask = sm, .cmp = old ^ ~cm, .cmp_mask = cm };

	check_cell(s, &a, old, (old & ~sm) | (swap & sm));
	a.cmp = old ^ 1; /* differs where the mask looks, if it looks at all */
	check_cell(s, &a, old, cm & 1 ? old : (old & ~sm) | (swap & sm));
}

static void both_codes(struct ctx *c)
{
	struct atomic add = { .code = ATOMIC_FADD, .add = 1 };
	struct atomic cas = { .code = ATOMIC_CSWAP, .add = 9, .add_mask = -1ull,
			      .cmp = 5, .cmp_mask = -1ull };
	struct stream *s = full(c);

	check_cell(s, &add, 4, 5);
	check_cell(s, &cas, 5, 9);
}

/* a: octets off alignment, b: code. */
static void misaligned(struct ctx *c)
{
	uint8_t hdr[ATOMIC_REQ_LEN];
	struct stream *s, *observer;
	struct atomic a = { .code = c->w->b, .id = 1, .add = 1, .add_mask = -1ull };
	const struct region *rw;
	struct seg g;

	pair(c, &s, &observer);
	rw = &s->t.r[REFL_RW];
	a.stag = rw->stag;
	a.to = ((rw->addr + 7) & ~7ull) + c->w->a;
	g = mk_atomic(s, hdr, &a);
	send_seg(s, &g);
	EXPECT_END(s, TERM(RDMAP_STREAM_CATASTROPHE));
	CHECK(c, is_untouched(observer, REFL_RW, 0, 32), "memory is unchanged",
	      "it changed");
}

/* a: AOpCode. */
static void bad_code(struct ctx *c)
{
	uint8_t hdr[ATOMIC_REQ_LEN];
	struct stream *s = full(c);
	struct atomic a = { .code = c->w->a, .stag = s->t.r[REFL_RW].stag,
			    .to = (s->t.r[REFL_RW].addr + 7) & ~7ull };
	struct seg g = mk_atomic(s, hdr, &a);

	send_seg(s, &g);
	EXPECT_END(s, TERM(RDMAP_BAD_OPCODE), TERM(RDMAP_OPERATION),
		   TOLERATE(RDMAP_STREAM_CATASTROPHE));
}

enum bad { BAD_STAG, BAD_PD, BAD_RIGHTS, BAD_BELOW, BAD_END, BAD_WRAP };

/* a: what is wrong, b: judge only that R=0. */
static void bad_atomic(struct ctx *c)
{
	static const struct want ends[] = {
		[BAD_STAG] = TERM(RDMAP_BAD_STAG),
		[BAD_PD] = TERM(RDMAP_OTHER_STREAM),
		[BAD_RIGHTS] = TERM(RDMAP_ACCESS),
		[BAD_BELOW] = TERM(RDMAP_BOUNDS),
		[BAD_END] = TERM(RDMAP_BOUNDS),
		/* The last word ends with the address space, which some call a wrap. */
		[BAD_WRAP] = TERM(RDMAP_BOUNDS),
		TERM(RDMAP_TO_WRAP),
	};
	struct atomic a = { .code = ATOMIC_FADD, .id = 1, .add = 1 };
	const struct region *rw;
	uint8_t hdr[ATOMIC_REQ_LEN];
	struct stream *s = full(c);
	struct seg g;
	enum end e;

	rw = &s->t.r[c->w->a == BAD_PD ? REFL_PD2 : c->w->a == BAD_RIGHTS ?
		     REFL_R : REFL_RW];
	a.stag = c->w->a == BAD_STAG ? 0x12345600 : rw->stag;
	a.to = (rw->addr + 7) & ~7ull;
	if (c->w->a == BAD_BELOW)
		a.to -= 8;
	if (c->w->a == BAD_END) /* some octets of the word are left, if any can be */
		a.to = (rw->addr + rw->len) & ~7ull;
	if (c->w->a == BAD_WRAP)
		a.to = -8ull;
	g = mk_atomic(s, hdr, &a);
	send_seg(s, &g);
	e = wait_end(s, c->o->patience_ms, NULL);
	if (c->w->b) {
		CHECK(c, e == END_TERM, "a Terminate", "none");
		CHECK(c, !(s->term.bits & TERM_R), "R=0", "R=1");
		return;
	}
	judge_end(s, e, &ends[c->w->a], c->w->a == BAD_WRAP ? 2 : 1);
}

static void mixed_order(struct ctx *c)
{
	struct stream *s = full(c);
	const struct region *big = &s->t.r[REFL_BIG];
	struct atomic a = { .code = ATOMIC_FADD, .id = 1, .add = 1,
			    .stag = s->t.r[REFL_RW].stag };
	uint8_t h[4][ATOMIC_REQ_LEN];
	struct seg g;

	a.to = set_cell(s, 100);
	g = mk_read(s, h[0], big->stag, big->addr, 60000);
	put_seg(s, &g, NULL);
	g = mk_atomic(s, h[1], &a);
	put_seg(s, &g, NULL);
	g = mk_read(s, h[2], a.stag, a.to, 8);
	put_seg(s, &g, NULL);
	a.id = 2;
	g = mk_atomic(s, h[3], &a);
	put_seg(s, &g, NULL);
	shoot(s);
	expect_resp(s, 60000, NULL);
	CHECK(c, expect_atomic_response(s, 1) == 100, "100 first", "another value");
	expect_op(s, OP_READ_RESP);
	CHECK(c, s->m.s.len == 8 && s->m.s.data[0] == 101,
	      "the Read behind the Atomic sees 101", "%u", s->m.s.data[0]);
	CHECK(c, expect_atomic_response(s, 2) == 101, "101 last", "another value");
}

static void counts_for_ird(struct ctx *c)
{
	struct stream *s;
	const struct region *big;
	struct atomic a = { .code = ATOMIC_FADD, .id = 1, .add = 1 };
	uint8_t h[300][ATOMIC_REQ_LEN];
	struct seg g;
	struct hs hs;
	int n;

	c->rcvbuf = 8192;
	if (c->role == ROLE_R) {
		hs_default(c, &hs);
		hs.enh.ord = 4;
		s = full_hs(c, &hs);
	} else {
		s = full(c);
	}
	if (!s->enhanced || s->their_enh.ird > 255)
		skip(c, "the peer's IRD is not known");
	n = s->their_enh.ird;
	big = &s->t.r[REFL_BIG];
	a.stag = s->t.r[REFL_RW].stag;
	a.to = (s->t.r[REFL_RW].addr + 7) & ~7ull;
	for (int i = 0; i < n + 8; i++) {
		if (i < n)
			g = mk_read(s, h[i], big->stag, big->addr, big->len);
		else
			g = mk_atomic(s, h[i], &a);
		put_seg(s, &g, NULL);
	}
	shoot(s);
	blame_none(s);
	nap_ms(500);
	EXPECT_END(s, TERM(DDP_NO_BUFFER), TOLERATE(DDP_BAD_MSN),
		   TOLERATE(RDMAP_STREAM_CATASTROPHE));
}

#define STREAMS 8
#define ROUNDS 10000 /* of each stream */
#define BATCH 4

/* The initiator opens two. */
static int open_streams(struct ctx *c, struct stream **s)
{
	if (c->role == ROLE_I) {
		pair(c, &s[0], &s[1]);
		return 2;
	}
	for (int i = 0; i < STREAMS; i++)
		s[i] = full(c);
	return STREAMS;
}

static void add_ones(struct stream *s, uint32_t id, uint64_t at)
{
	struct atomic a = { .code = ATOMIC_FADD, .id = id, .add = 1,
			    .stag = s->t.r[REFL_RW].stag, .to = at };
	uint8_t h[ATOMIC_REQ_LEN];

	for (int k = 0; k < BATCH; k++) {
		struct seg g = mk_atomic(s, h, &a);

		put_seg(s, &g, NULL);
	}
	shoot(s);
}

/* The streams add one, all at once: none may be lost. */
static void between_streams(struct ctx *c)
{
	struct stream *s[STREAMS];
	int streams = open_streams(c, s);
	uint64_t at = set_cell(s[0], 0), want = (uint64_t)streams * ROUNDS, got;

	read_cell(s[0], at);
	for (int n = 0; n < ROUNDS; n += BATCH) {
		for (int i = 0; i < streams; i++)
			add_ones(s[i], n, at);
		for (int i = 0; i < streams; i++)
			for (int k = 0; k < BATCH; k++)
				expect_atomic_response(s[i], n);
	}
	got = read_cell(s[0], at);
	CHECK(c, got == want, "the sum of all additions", "%llu of %llu",
	      (unsigned long long)got, (unsigned long long)want);
}

enum odd { ODD_UNASKED, ODD_ID, ODD_LENGTH, ODD_TWICE };

static void odd_response(struct ctx *c)
{
	struct cmd k = { .op = REFL_FADD, .stag = 0x77001100, .to = 0x1000,
			 .arg = 1 };
	struct stream *s = full(c);
	uint8_t b[16] = { 0 };
	struct seg g = { .last = true, .dv = 1, .rv = 1, .op = OP_ATOMIC_REP,
			 .qn = QN_ATOMIC, .msn = 1, .data = b,
			 .len = ATOMIC_REP_LEN };

	if (c->w->a != ODD_UNASKED) {
		command(s, &k);
		do
			if (receive(s, c->o->patience_ms) != RX_FPDU)
				skip(c, "the peer's verbs send no Atomic");
		while (s->m.s.op != OP_ATOMIC_REQ);
		put32(b, get32(s->m.s.data + 4) + (c->w->a == ODD_ID));
		g.len += c->w->a == ODD_LENGTH ? 4 : 0;
	}
	send_seg(s, &g);
	if (c->w->a == ODD_TWICE) {
		g.msn = 2;
		send_seg(s, &g);
	}
	while (wait_end(s, c->o->patience_ms, NULL) == END_QUIET)
		fail(c, "an error", "nothing; the stream is %s",
		     alive(s) ? "alive" : "mute");
	if (!s->had_term)
		fail(c, "a Terminate", "a bare close");
}

/* a: 0 a Request on QN 0, 1 a Response on QN 1. */
static void wrong_queue(struct ctx *c)
{
	struct stream *s = full(c);
	struct atomic a = { .code = ATOMIC_FADD, .stag = s->t.r[REFL_RW].stag,
			    .to = (s->t.r[REFL_RW].addr + 7) & ~7ull };
	uint8_t hdr[ATOMIC_REQ_LEN];
	struct seg g = mk_atomic(s, hdr, &a);

	if (c->w->a) {
		g.op = OP_ATOMIC_REP;
		g.len = ATOMIC_REP_LEN;
	} else {
		g.qn = QN_SEND;
		g.msn = s->send_msn;
	}
	send_seg(s, &g);
	EXPECT_END(s, TERM(RDMAP_BAD_OPCODE), TOLERATE(DDP_BAD_QN));
}

static void not_delivered_to_ulp(struct ctx *c)
{
	struct atomic a = { .code = ATOMIC_FADD, .add = 1 };
	struct event e[REFL_EVENTS];
	struct stream *s = full(c);
	struct seg g;

	check_cell(s, &a, 1, 2);
	check_cell(s, &a, 2, 3);
	g = mk_send(s, TEXT8, 8);
	send_seg(s, &g);
	CHECK(c, wait_for_events(s, e, 1) == 1 && !memcmp(e[0].head, TEXT8, 8),
	      "the Send behind the Atomics is the ULP's first event", "another");
}

static void sees_write(struct ctx *c)
{
	struct stream *s = full(c);
	uint64_t at = set_cell(s, 0), got;
	struct atomic a = { .code = ATOMIC_FADD, .id = 1, .add = 1,
			    .stag = s->t.r[REFL_RW].stag, .to = at };
	uint8_t h[ATOMIC_REQ_LEN];
	struct seg g = mk_write(a.stag, at, TEXT8, 8);

	put_seg(s, &g, NULL);
	g = mk_atomic(s, h, &a);
	put_seg(s, &g, NULL);
	shoot(s);
	got = expect_atomic_response(s, 1);
	CHECK(c, got == get64(TEXT8) || got == __builtin_bswap64(get64(TEXT8)),
	      "the value that the Write placed", "%#llx", (unsigned long long)got);
}

/* a: the CRC is wrong; else the last octets never come. */
static void not_run(struct ctx *c)
{
	static const struct fpdu_break bad = { .crc_xor = 0x10 };
	struct stream *s, *observer;
	struct atomic a = { .code = ATOMIC_FADD, .id = 1, .add = 1 };
	uint8_t h[ATOMIC_REQ_LEN];
	struct seg g;

	pair(c, &s, &observer);
	a.stag = s->t.r[REFL_RW].stag;
	a.to = set_cell(s, 41);
	CHECK(c, read_cell(s, a.to) == 41, "41", "another value");
	g = mk_atomic(s, h, &a);
	put_seg(s, &g, c->w->a ? &bad : NULL);
	if (c->w->a) {
		blame_none(s);
		shoot(s);
		EXPECT_END(s, TERM(MPA_CRC));
	} else {
		s->out_len -= 5;
		shoot(s);
		shutdown(s->k->fd, SHUT_RDWR);
		nap_ms(300);
	}
	CHECK(c, read_cell(observer, a.to) == 41, "not run", "it was");
}

enum of { OF_REQUEST, OF_IMMEDIATE };

/* A right message of a kind: a. */
static struct seg mk_extension(struct stream *s, uint8_t *hdr)
{
	struct atomic a = { .code = ATOMIC_FADD, .stag = s->t.r[REFL_RW].stag,
			    .to = (s->t.r[REFL_RW].addr + 7) & ~7ull };
	struct seg g;

	if (s->c->w->a == OF_REQUEST)
		return mk_atomic(s, hdr, &a);
	g = mk_send(s, TEXT8, IMM_LEN);
	g.op = OP_IMM;
	return g;
}

/* b: octets of MO; 0: an MSN past the next one. */
static void odd_header(struct ctx *c)
{
	uint8_t hdr[ATOMIC_REQ_LEN];
	struct stream *s = full(c);
	struct seg g = mk_extension(s, hdr);

	g.mo = c->w->b;
	g.msn += c->w->b ? 0 : 40;
	send_seg(s, &g);
	if (c->w->b)
		EXPECT_END(s, TERM(DDP_BAD_MO), TOLERATE(DDP_TOO_LONG));
	else
		EXPECT_END(s, TERM(DDP_BAD_MSN), TOLERATE(DDP_NO_BUFFER));
}

/* b: of a Response instead. */
static void bad_version(struct ctx *c)
{
	uint8_t hdr[ATOMIC_REQ_LEN];
	struct stream *s = full(c);
	struct seg g = mk_extension(s, hdr);

	if (c->w->b) {
		g.op = OP_ATOMIC_REP;
		g.qn = QN_ATOMIC;
		g.msn = 1;
		g.len = ATOMIC_REP_LEN;
	}
	g.rv = 2;
	send_seg(s, &g);
	EXPECT_END(s, TERM(RDMAP_BAD_VERSION));
}

/* b: QN; -1: tagged. */
static void wrong_place(struct ctx *c)
{
	uint8_t hdr[ATOMIC_REQ_LEN];
	struct stream *s = full(c);
	struct seg g = mk_extension(s, hdr);

	if (c->w->b < 0) {
		g.tagged = true;
		g.stag = s->t.r[REFL_RW].stag;
		g.to = s->t.r[REFL_RW].addr;
	} else {
		g.qn = c->w->b;
		g.msn = g.qn == QN_READ ? s->read_msn : 1;
	}
	send_seg(s, &g);
	EXPECT_END(s, TERM(RDMAP_BAD_OPCODE), TOLERATE(DDP_BAD_QN));
}

#define NEEDS (N_ULP | N_ATOMIC)
#define A(row, l, fn, a, b) { row, l, B, fn, NEEDS, 0, a, b }
#define IMM(row, l, fn, b) { row, l, B, fn, N_ULP | N_IMM, 0, OF_IMMEDIATE, b }

const struct wcase cases_atomic[] = {
	A("EXT-06", NULL, request_form, 0, 0),
	A("EXT-07", NULL, identifiers_echoed, 0, 0),
	A("EXT-08", NULL, fetch_add, 0, 0),
	A("EXT-09", "top", fetch_add, (long)0x8000000000000000, 0),
	A("EXT-09", "bytes", fetch_add, (long)0x8080808080808080, 0),
	A("EXT-09", "middle", fetch_add, 0x80000000, 0),
	A("EXT-10", "full", compare_swap, -1, -1),
	A("EXT-10", "no-compare", compare_swap, 0, -1),
	A("EXT-10", "no-swap", compare_swap, -1, 0),
	A("EXT-10", "partial", compare_swap, 0xffff, 0xff00ff00),
	A("EXT-11", NULL, both_codes, 0, 0),
	A("EXT-12", "plus1", misaligned, 1, 0), A("EXT-12", "plus2", misaligned, 2, 0),
	A("EXT-12", "plus4", misaligned, 4, 0), A("EXT-12", "plus7", misaligned, 7, 0),
	A("EXT-12", "swap", misaligned, 4, ATOMIC_CSWAP),
	A("EXT-13", "code1", bad_code, 1, 0), A("EXT-13", "code3", bad_code, 3, 0),
	A("EXT-13", "code15", bad_code, 15, 0),
	A("EXT-14", "stag", bad_atomic, BAD_STAG, 1),
	A("EXT-14", "end", bad_atomic, BAD_END, 1),
	A("EXT-15", "stag", bad_atomic, BAD_STAG, 0),
	A("EXT-15", "pd", bad_atomic, BAD_PD, 0),
	A("EXT-15", "rights", bad_atomic, BAD_RIGHTS, 0),
	A("EXT-15", "below", bad_atomic, BAD_BELOW, 0),
	A("EXT-15", "end", bad_atomic, BAD_END, 0),
	A("EXT-15", "wrap", bad_atomic, BAD_WRAP, 0),
	A("EXT-16", NULL, mixed_order, 0, 0),
	A("EXT-17", NULL, counts_for_ird, 0, 0),
	A("EXT-18", NULL, between_streams, 0, 0),
	A("EXT-19", "unasked", odd_response, ODD_UNASKED, 0),
	A("EXT-19", "id", odd_response, ODD_ID, 0),
	A("EXT-19", "length", odd_response, ODD_LENGTH, 0),
	A("EXT-19", "twice", odd_response, ODD_TWICE, 0),
	A("EXT-20", "request", wrong_queue, 0, 0),
	A("EXT-20", "response", wrong_queue, 1, 0),
	A("EXT-25", NULL, not_delivered_to_ulp, 0, 0),
	A("EXT-26", NULL, sees_write, 0, 0),
	A("EXT-27", "crc", not_run, 1, 0), A("EXT-27", "cut", not_run, 0, 0),
	A("EXT-28", "msn", odd_header, OF_REQUEST, 0),
	A("EXT-28", "mo", odd_header, OF_REQUEST, 8),
	IMM("EXT-28", "immediate-msn", odd_header, 0),
	IMM("EXT-28", "immediate-mo", odd_header, 8),
	A("EXT-29", "request", bad_version, OF_REQUEST, 0),
	A("EXT-29", "response", bad_version, OF_REQUEST, 1),
	A("EXT-30", "request-tagged", wrong_place, OF_REQUEST, -1),
	IMM("EXT-30", "immediate-tagged", wrong_place, -1),
	IMM("EXT-30", "immediate-qn1", wrong_place, QN_READ),
	IMM("EXT-30", "immediate-qn3", wrong_place, QN_ATOMIC),
	{ 0 },
};
