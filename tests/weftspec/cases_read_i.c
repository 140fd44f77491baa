/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The peer's own RDMA Reads, and what it does with our Responses. */
#include "cases.h"

/* Has the reflector post one Read; its request as it came. */
static struct rreq peer_reads(struct stream *s, uint32_t size, uint32_t *seq)
{
	struct cmd k = { .op = REFL_READ, .count = 1, .len = size,
			 .stag = 0x77001100, .to = 0x123456789000ull };
	struct rreq r;

	*seq = command(s, &k);
	do
		if (receive(s, s->c->o->patience_ms) != RX_FPDU)
			fail(s->c, "a Read Request", "none came");
	while (s->m.s.op != OP_READ_REQ || s->m.s.len < RDMA_READ_LEN);
	rreq_decode(s->m.s.data, &r);
	return r;
}

static void request_fields(struct ctx *c)
{
	struct stream *s = full(c);
	uint32_t seq;
	struct rreq r = peer_reads(s, 500, &seq);
	const struct seg *g = &s->m.s;

	CHECK(c, s->m.f.len == DDP_UNTAGGED_LEN + RDMA_READ_LEN &&
	      g->qn == QN_READ && !g->mo && g->last,
	      "46 octets on QN 1, MO 0, L=1", "%zu octets on QN %u, MO %u, L=%d",
	      s->m.f.len, g->qn, g->mo, g->last);
	CHECK(c, r.size == 500 && r.src_stag == 0x77001100 &&
	      r.src_to == 0x123456789000ull, "size, source STag and TO as posted",
	      "size %u, %08x:%#llx", r.size, r.src_stag,
	      (unsigned long long)r.src_to);
	serve_read(s);
	serve_until(s, seq, true);
}

static bool wait_for_done(struct stream *s, uint32_t seq)
{
	while (receive(s, s->c->o->patience_ms / 2) == RX_FPDU && !s->had_term)
		if (is_done(s, seq))
			return true;
	return false;
}

static void send_response(struct stream *s, const struct rreq *r, uint32_t stag,
			  uint64_t to, uint32_t n, bool last)
{
	struct seg g = mk_resp(r, 0, pattern(n), n, last);

	g.stag = stag;
	g.to = to;
	send_seg(s, &g);
}

enum bad_sink { SINK_OTHER, SINK_OUTSIDE };

/* a: what is wrong, b: in the second segment. */
static void bad_sink(struct ctx *c)
{
	struct stream *s = full(c);
	uint32_t seq;
	struct rreq r = peer_reads(s, 16, &seq);
	uint32_t stag = c->w->a == SINK_OTHER ? 0x12345600 : r.sink_stag;
	uint64_t to = c->w->a == SINK_OTHER ? r.sink_to :
					      r.sink_to + REFL_BIG_LEN + 64;

	if (c->w->b) {
		send_response(s, &r, r.sink_stag, r.sink_to, 8, false);
		send_response(s, &r, stag, to + 8, 8, true);
	} else {
		send_response(s, &r, stag, to, 16, true);
	}
	CHECK(c, !wait_for_done(s, seq), "the Read does not succeed", "it does");
	if (s->had_term) {
		const struct want w[] = { TERM(DDP_BAD_STAG), TERM(DDP_BOUNDS),
					  TOLERATE(RDMAP_BAD_OPCODE) };

		judge_end(s, END_TERM, w, 3);
		return;
	}
	EXPECT_END(s, TERM(DDP_BAD_STAG), TERM(DDP_BOUNDS));
}

/* a: 0 the TO of the second segment is elsewhere in the sink's region. */
static void second_elsewhere(struct ctx *c)
{
	struct stream *s, *observer;
	const struct region *big;
	struct rreq r;
	uint32_t seq;
	uint8_t b[16];

	pair(c, &s, &observer);
	big = &s->t.r[REFL_BIG];
	r = peer_reads(s, 16, &seq);
	send_response(s, &r, r.sink_stag, r.sink_to, 8, false);
	send_response(s, &r, c->w->a ? 0x12345600 : r.sink_stag,
		      r.sink_to + (c->w->a ? 8 : 100000), 8, true);
	CHECK(c, !wait_for_done(s, seq), "the Read does not succeed", "it does");
	peek(observer, big->addr, b, 16);
	CHECK(c, memcmp(b + 8, pattern(8), 8),
	      "placed by its own STag and TO, or refused", "placed by position");
}

/* a: octets in the Response to a Read of 16, b: segments. */
static void other_length(struct ctx *c)
{
	struct stream *s, *observer;
	uint32_t seq, n = c->w->a;
	struct rreq r;
	bool ok;

	pair(c, &s, &observer);
	r = peer_reads(s, 16, &seq);
	if (c->w->b > 1) {
		send_response(s, &r, r.sink_stag, r.sink_to, 8, false);
		send_response(s, &r, r.sink_stag, r.sink_to + 8, n - 8, true);
	} else {
		send_response(s, &r, r.sink_stag, r.sink_to, n, true);
	}
	ok = wait_for_done(s, seq);
	CHECK(c, is_untouched(observer, REFL_BIG, 16, 64), "nothing is written past it",
	      "octets behind the 16 changed");
	if (ok)
		divergent(c, "an error", "the Read of 16 succeeds with %u", n);
}

static void response_halves(struct ctx *c)
{
	struct stream *s, *observer;
	struct rreq r;
	uint32_t seq;
	uint8_t b[16];

	pair(c, &s, &observer);
	r = peer_reads(s, 16, &seq);
	send_response(s, &r, r.sink_stag, r.sink_to + 8, 8, false);
	send_response(s, &r, r.sink_stag, r.sink_to, 8, true);
	CHECK(c, wait_for_done(s, seq), "the Read completes", "it does not");
	peek(observer, s->t.r[REFL_BIG].addr, b, 16);
	CHECK(c, !memcmp(b, pattern(8), 8) && !memcmp(b + 8, pattern(8), 8),
	      "each half at its own TO", "elsewhere");
}

#define NEEDS (N_ULP)

const struct wcase cases_read_i[] = {
	{ "RDM-15", NULL, B, request_fields, NEEDS, 0, 0, 0 },
	{ "DDP-20", "response", B, response_halves, NEEDS, 0, 0, 0 },
	{ "RDM-56", "stag", B, bad_sink, NEEDS, 0, SINK_OTHER, 0 },
	{ "RDM-56", "outside", B, bad_sink, NEEDS, 0, SINK_OUTSIDE, 0 },
	{ "RDM-56", "stag-2nd", B, bad_sink, NEEDS, 0, SINK_OTHER, 1 },
	{ "RDM-56", "outside-2nd", B, bad_sink, NEEDS, 0, SINK_OUTSIDE, 1 },
	{ "RDM-57", "to", B, second_elsewhere, NEEDS, 0, 0, 0 },
	{ "RDM-57", "stag", B, second_elsewhere, NEEDS, 0, 1, 0 },
	{ "RDM-58", "12", B, other_length, NEEDS, 0, 12, 1 },
	{ "RDM-58", "12-two", B, other_length, NEEDS, 0, 12, 2 },
	{ "RDM-58", "20", B, other_length, NEEDS, 0, 20, 1 },
	{ "RDM-58", "20-two", B, other_length, NEEDS, 0, 20, 2 },
	{ 0 },
};
