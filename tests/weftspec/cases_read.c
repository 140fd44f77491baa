/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The peer answers RDMA Reads: RFC 5040 sections 4.4, 5.2 and 7.2. */
#include "cases.h"

static void put_read(struct stream *s, const struct rreq *r)
{
	static uint8_t hdr[8][RDMA_READ_LEN];
	static int next;
	uint8_t *h = hdr[next++ % 8];
	struct seg g = mk_read(s, h, r->src_stag, r->src_to, r->size);

	rreq_encode(h, r);
	put_seg(s, &g, NULL);
}

/* a: sink STag, b: sink TO. */
static void sink_copied(struct ctx *c)
{
	struct stream *s = full(c);
	const struct region *big = &s->t.r[REFL_BIG];
	struct rreq r = { .sink_stag = (uint32_t)c->w->a,
			  .sink_to = (uint64_t)c->w->b, .size = 8,
			  .src_stag = big->stag, .src_to = big->addr };

	put_read(s, &r);
	shoot(s);
	expect_op(s, OP_READ_RESP);
	CHECK(c, s->m.s.stag == r.sink_stag && s->m.s.to == r.sink_to,
	      "the sink's STag and TO as they were asked",
	      "STag %08x TO %#llx", s->m.s.stag,
	      (unsigned long long)s->m.s.to);
}

/* a: octets. */
static void exact_size(struct ctx *c)
{
	static uint8_t want[1 << 20];
	struct stream *s = full(c);
	const struct region *big = &s->t.r[REFL_BIG];
	struct rreq r = { .sink_stag = 7, .sink_to = 0x100, .size = c->w->a,
			  .src_stag = big->stag, .src_to = big->addr };

	for (uint32_t i = 0; i < r.size; i++)
		want[i] = refl_fill(REFL_BIG, i);
	put_read(s, &r);
	shoot(s);
	expect_resp(s, r.size, want);
	expect_alive(s, "the Read");
}

static void zero_unchecked(struct ctx *c)
{
	struct stream *s = full(c);
	struct rreq r = { .sink_stag = 1, .src_stag = 0xdeadbeef,
			  .src_to = -1ull };

	put_read(s, &r);
	r.src_stag = s->t.r[REFL_W].stag;
	put_read(s, &r);
	shoot(s);
	expect_resp(s, 0, NULL);
	expect_resp(s, 0, NULL);
	expect_alive(s, "zero-length Reads");
}

static void zero_behind_others(struct ctx *c)
{
	struct stream *s = full(c);
	const struct region *big = &s->t.r[REFL_BIG];
	struct rreq r = { .sink_stag = 1, .size = 65536,
			  .src_stag = big->stag, .src_to = big->addr };

	put_read(s, &r);
	r.sink_stag = 2;
	r.size = 0;
	r.src_stag = 0xdeadbeef;
	put_read(s, &r);
	shoot(s);
	expect_resp(s, 65536, NULL);
	expect_resp(s, 0, NULL);
	expect_alive(s, "a zero-length Read behind a long one");
}

static void in_request_order(struct ctx *c)
{
	struct stream *s = full(c);
	const struct region *big = &s->t.r[REFL_BIG];
	static const uint32_t size[] = { 30000, 8, 5000, 1 };

	for (int i = 0; i < 4; i++) {
		struct rreq r = { .sink_stag = 0x100 + i, .size = size[i],
				  .src_stag = big->stag, .src_to = big->addr };

		put_read(s, &r);
	}
	shoot(s);
	for (int i = 0; i < 4; i++) {
		expect_resp(s, size[i], NULL);
		CHECK(c, s->m.s.stag == 0x100u + i, "Responses in order",
		      "sink %x at place %d", s->m.s.stag, i);
	}
}

static void sees_writes(struct ctx *c)
{
	struct stream *s = full(c);
	const struct region *rw = &s->t.r[REFL_RW];
	uint8_t b[64], got[64];

	for (int i = 0; i < 1000; i++) {
		struct rreq r = { .sink_stag = 1, .size = 64,
				  .src_stag = rw->stag, .src_to = rw->addr };
		struct seg g;

		for (int k = 0; k < 64; k++)
			b[k] = rnd(c);
		g = mk_write(rw->stag, rw->addr, b, 64);
		put_seg(s, &g, NULL);
		put_read(s, &r);
		shoot(s);
		expect_op(s, OP_READ_RESP);
		memcpy(got, s->m.s.data, s->m.s.len < 64 ? s->m.s.len : 64);
		CHECK(c, !memcmp(b, got, 64), "a Read sees the Write before it",
		      "older octets in round %d", i);
	}
}

enum src {
	SRC_UNKNOWN, SRC_KEY, SRC_REVOKED, SRC_PD2, SRC_RIGHTS, SRC_BELOW,
	SRC_END, SRC_SIZE, SRC_WRAP,
};

static struct rreq misaimed_read(struct stream *s, enum src src, uint32_t size)
{
	const struct region *rw = &s->t.r[REFL_RW];
	struct cmd k = { .op = REFL_REVOKE, .arg = REFL_RW };
	struct rreq r = { .sink_stag = SINK_STAG, .sink_to = SINK_TO,
			  .size = size ? size : 8, .src_stag = rw->stag,
			  .src_to = rw->addr };

	switch (src) {
	case SRC_UNKNOWN: r.src_stag = 0x12345600; break;
	case SRC_KEY: r.src_stag ^= 1; break;
	case SRC_REVOKED: command_wait(s, &k); break;
	case SRC_PD2:
		r.src_stag = s->t.r[REFL_PD2].stag;
		r.src_to = s->t.r[REFL_PD2].addr;
		break;
	case SRC_RIGHTS:
		r.src_stag = s->t.r[REFL_W].stag;
		r.src_to = s->t.r[REFL_W].addr;
		break;
	case SRC_BELOW: r.src_to -= 8; break;
	case SRC_END: r.src_to += rw->len - 8; break;
	case SRC_SIZE: break;
	case SRC_WRAP: r.src_to = -8ull; break;
	}
	return r;
}

/* a: what is wrong, b: size. */
static void bad_read(struct ctx *c)
{
	static const struct want ends[] = {
		[SRC_UNKNOWN] = TERM_OF_READ(RDMAP_BAD_STAG),
		[SRC_KEY] = TERM_OF_READ(RDMAP_BAD_STAG),
		[SRC_REVOKED] = TERM_OF_READ(RDMAP_BAD_STAG),
		[SRC_PD2] = TERM_OF_READ(RDMAP_OTHER_STREAM),
		[SRC_RIGHTS] = TERM_OF_READ(RDMAP_ACCESS),
		[SRC_BELOW] = TERM_OF_READ(RDMAP_BOUNDS),
		[SRC_END] = TERM_OF_READ(RDMAP_BOUNDS),
		[SRC_SIZE] = TERM_OF_READ(RDMAP_BOUNDS),
		[SRC_WRAP] = TERM_OF_READ(RDMAP_TO_WRAP),
	};
	struct stream *s = full(c);
	struct rreq r = misaimed_read(s, c->w->a, (uint32_t)c->w->b);
	unsigned int other;
	enum end e;

	put_read(s, &r);
	shoot(s);
	e = wait_end(s, c->o->patience_ms, &other);
	CHECK(c, !other, "no Read Response",
	      "%zu octets were returned", s->m.s.len);
	CHECK(c, !s->k->rx_len, "no partial FPDU", "%zu octets of one",
	      s->k->rx_len);
	judge_end(s, e, &ends[c->w->a], 1);
}

static void copied_exactly(struct ctx *c)
{
	struct stream *s = full(c);
	struct rreq r = misaimed_read(s, SRC_UNKNOWN, 4242);
	const struct offender *o = &s->off;

	put_read(s, &r);
	shoot(s);
	CHECK(c, wait_end(s, c->o->patience_ms, NULL) == END_TERM,
	      "a Terminate", "none");
	CHECK(c, s->term.ddp && s->term.rdma, "both headers are copied",
	      "a header is missing");
	CHECK(c, !memcmp(s->term.ddp, o->head, DDP_UNTAGGED_LEN),
	      "the DDP header as received", "MSN %u MO %u, received %u and %u",
	      get32(s->term.ddp + 10), get32(s->term.ddp + 14),
	      get32(o->head + 10), get32(o->head + 14));
	CHECK(c, !memcmp(s->term.rdma, o->head + DDP_UNTAGGED_LEN,
			 RDMA_READ_LEN), "the Read header as received",
	      "it differs");
}

static uint16_t ird_of(const struct stream *s)
{
	if (!s->enhanced || s->their_enh.ird == MPA_NO_NEGOTIATION)
		skip(s->c, "the peer's IRD is not known");
	return s->their_enh.ird;
}

/*
 * The region goes away while its octets are on their way: what is copied says
 * how far the Response came.  s2 tells the reflector, for s is stuck.
 */
static void revoked_midway(struct ctx *c)
{
	struct cmd k = { .op = REFL_REVOKE, .arg = REFL_BIG };
	struct rreq r = { .sink_stag = SINK_STAG, .sink_to = SINK_TO };
	struct stream *s, *s2;
	const struct region *big;
	uint32_t got = 0;
	enum rx rx;

	c->rcvbuf = 32768;
	pair(c, &s, &s2);
	big = &s->t.r[REFL_BIG];
	r.size = big->len;
	r.src_stag = big->stag;
	r.src_to = big->addr;
	for (int i = ird_of(s) < 16 ? ird_of(s) : 16; i; i--) /* more than TCP takes at once */
		put_read(s, &r);
	shoot(s);
	nap_ms(100);
	command_wait(s2, &k);
	blame_none(s);
	while ((rx = receive(s, c->o->patience_ms)) == RX_FPDU && !s->had_term)
		got = s->m.s.last ? 0 : got + s->m.s.len;
	if (!s->had_term)
		skip(c, "all Responses were on their way before the region went");
	CHECK(c, s->term.rdma, "the Read header is copied", "it is not");
	CHECK(c, get64(s->term.rdma + 4) == SINK_TO + got &&
	      get32(s->term.rdma + 12) == r.size - got &&
	      get64(s->term.rdma + 20) == r.src_to + got,
	      "SinkTO + k, size - k, SrcTO + k of the octets sent",
	      "k is %u; SinkTO %#llx size %u", got,
	      (unsigned long long)get64(s->term.rdma + 4),
	      get32(s->term.rdma + 12));
}

static void ird_served(struct ctx *c)
{
	struct stream *s = full(c);
	const struct region *rw = &s->t.r[REFL_RW];
	uint16_t n = ird_of(s);

	for (int i = 0; i < n; i++) {
		struct rreq r = { .sink_stag = 1, .size = 8,
				  .src_stag = rw->stag, .src_to = rw->addr };

		put_read(s, &r);
	}
	shoot(s);
	for (int i = 0; i < n; i++)
		expect_resp(s, 8, NULL);
}

static void ird_exceeded(struct ctx *c)
{
	struct stream *s;
	const struct region *big;
	struct hs h;
	uint16_t n;

	c->rcvbuf = 8192;
	hs_default(c, &h);
	if (c->role == ROLE_R) {
		h.enh.ord = 4;
		s = full_hs(c, &h);
	} else {
		s = full(c);
	}
	big = &s->t.r[REFL_BIG];
	n = ird_of(s);
	for (int i = 0; i < n + 8; i++) {
		struct rreq r = { .sink_stag = 1, .size = big->len,
				  .src_stag = big->stag, .src_to = big->addr };

		put_read(s, &r);
	}
	shoot(s);
	blame_none(s);
	nap_ms(500);
	EXPECT_END(s, TERM(DDP_NO_BUFFER), TOLERATE(DDP_BAD_MSN),
		   TOLERATE(RDMAP_STREAM_CATASTROPHE));
}

static void too_long(struct ctx *c)
{
	struct stream *s = full(c);
	uint8_t hdr[RDMA_READ_LEN + 4] = { 0 };
	struct seg g = mk_read(s, hdr, s->t.r[REFL_RW].stag,
			       s->t.r[REFL_RW].addr, 8);

	g.len += 4;
	send_seg(s, &g);
	EXPECT_END(s, TERM(DDP_TOO_LONG));
}

/* a: MO, b: MSN or 0. */
static void wrong_place(struct ctx *c)
{
	struct stream *s = full(c);
	uint8_t hdr[RDMA_READ_LEN];
	struct seg g = mk_read(s, hdr, s->t.r[REFL_RW].stag,
			       s->t.r[REFL_RW].addr, 8);
	const struct want mo = TERM(DDP_BAD_MO), msn = TERM(DDP_BAD_MSN);
	unsigned int other;
	enum end e;

	g.mo = c->w->a;
	g.msn = c->w->b ? (uint32_t)c->w->b : g.msn;
	send_seg(s, &g);
	e = wait_end(s, c->o->patience_ms, &other);
	CHECK(c, !other, "no Read Response", "it is answered");
	judge_end(s, e, c->w->a ? &mo : &msn, 1);
}

/* An unsolicited Response, into a writable region. */
static void unsolicited(struct ctx *c)
{
	struct stream *s, *observer;
	struct seg g;

	pair(c, &s, &observer);
	g = mk_write(s->t.r[REFL_RW].stag, s->t.r[REFL_RW].addr, TEXT8, 8);
	g.op = OP_READ_RESP;
	send_seg(s, &g);
	EXPECT_END(s, TERM(RDMAP_BAD_OPCODE), TOLERATE(DDP_BAD_STAG),
		   TOLERATE(DDP_CATASTROPHE));
	CHECK(c, is_untouched(observer, REFL_RW, 0, 16), "not placed", "it is");
}

#define SIZE(n) { "RDM-17", "len" #n, B, exact_size, N_ULP | N_IRD, 0, n, 0 }
#define BAD(row, l, src, n) { row, l, B, bad_read, N_ULP | N_IRD, 0, src, n }
#define READ(row, l, fn, a, b) { row, l, B, fn, N_ULP | N_IRD, 0, a, b }

const struct wcase cases_read[] = {
	READ("RDM-16", "stag0", sink_copied, 0, 0x1000),
	READ("RDM-16", "stag-max", sink_copied, 0xffffffff, 8),
	READ("RDM-16", "to-max", sink_copied, 5, -8),
	SIZE(1), SIZE(8), SIZE(4095), SIZE(65536), SIZE(1048576),
	READ("RDM-18", NULL, zero_unchecked, 0, 0),
	READ("RDM-19", NULL, zero_behind_others, 0, 0),
	READ("RDM-20", NULL, in_request_order, 0, 0),
	READ("RDM-21", NULL, sees_writes, 0, 0),
	BAD("RDM-22", "unknown", SRC_UNKNOWN, 0), BAD("RDM-22", "key", SRC_KEY, 0),
	BAD("RDM-22", "revoked", SRC_REVOKED, 0), BAD("RDM-23", NULL, SRC_PD2, 0),
	BAD("RDM-24", NULL, SRC_RIGHTS, 0), BAD("RDM-25", "below", SRC_BELOW, 0),
	BAD("RDM-25", "end", SRC_END, 16),
	BAD("RDM-26", "7fffffff", SRC_SIZE, 0x7fffffff),
	BAD("RDM-26", "80000000", SRC_SIZE, 0x80000000),
	BAD("RDM-26", "fffffffc", SRC_SIZE, 0xfffffffc),
	BAD("RDM-26", "fffffffd", SRC_SIZE, 0xfffffffd),
	BAD("RDM-26", "fffffffe", SRC_SIZE, 0xfffffffe),
	BAD("RDM-26", "ffffffff", SRC_SIZE, 0xffffffff),
	BAD("RDM-27", "size16", SRC_WRAP, 16),
	BAD("RDM-27", "size4096", SRC_WRAP, 4096),
	READ("RDM-28", NULL, copied_exactly, 0, 0),
	READ("RDM-29", NULL, revoked_midway, 0, 0),
	READ("RDM-30", NULL, ird_served, 0, 0),
	READ("RDM-31", NULL, ird_exceeded, 0, 0),
	READ("RDM-33", NULL, too_long, 0, 0),
	READ("RDM-34", "mo", wrong_place, 4, 0),
	READ("RDM-34", "msn", wrong_place, 0, 5),
	READ("RDM-34", "msn0", wrong_place, 0, -1),
	READ("RDM-55", NULL, unsolicited, 0, 0),
	BAD("SEC-01", "read", SRC_PD2, 0), BAD("SEC-03", "read-below", SRC_BELOW, 0),
	BAD("SEC-03", "read-end", SRC_END, 16), BAD("SEC-05", "read", SRC_RIGHTS, 0),
	{ 0 },
};
