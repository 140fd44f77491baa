/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Enhanced set-up, the peer as initiator: RFC 6581 sections 9 and 10. */
#include "cases.h"

static struct stream *enhanced_request(struct ctx *c, const char *args)
{
	struct stream *s = take_request(c, args);

	if (!s->enhanced)
		skip(c, "the peer's Request has S=0");
	return s;
}

/* a: PD_Length of a Reply with S=1. */
static void reply_no_words(struct ctx *c)
{
	struct stream *s = enhanced_request(c, "");
	unsigned int other;
	struct hs h;

	answer_default(s, &h);
	h.no_pd = true;
	h.tail = TEXT8;
	h.tail_len = c->w->a;
	h.pd_claim = c->w->a;
	send_frame(s, &h);
	stream_start(s);
	CHECK(c, wait_end(s, c->o->timeout_ms, &other) != END_QUIET && !other,
	      "closed", "S=1 without the words is accepted");
}

/* a: what to add to the initiator's IRD, 0: the largest there is. */
static void ord_too_large(struct ctx *c)
{
	struct stream *s = enhanced_request(c, "--ird 4");
	const struct want w = TERM(MPA_IRD);
	unsigned int other;
	bool seen = false;
	enum end e;
	struct hs h;

	if (s->their_enh.ird >= MPA_NO_NEGOTIATION - 1)
		skip(c, "the initiator's IRD is the largest");
	answer_default(s, &h);
	h.enh.ord = c->w->a ? s->their_enh.ird + c->w->a :
			      MPA_NO_NEGOTIATION - 1;
	answer_only(s, &h);
	while ((e = wait_end(s, c->o->patience_ms, &other)) == END_QUIET && other)
		seen = true; /* the RTR and the HELLO: it raised its IRD */
	if (e == END_QUIET && seen) {
		expect_alive(s, "an ORD above its first IRD");
		return;
	}
	judge_end(s, e, &w, 1);
}

/* a: our IRD.  So many Reads at most may be on the wire at once. */
static void ord_kept(struct ctx *c)
{
	struct cmd k = { .op = REFL_READ, .count = 32, .len = 8,
			 .stag = SINK_STAG, .to = 0x100000 };
	struct stream *s = enhanced_request(c, "--ord 16");
	long seen = 0;
	struct hs h;

	answer_default(s, &h);
	h.enh.ird = c->w->a;
	answer(s, &h);
	command(s, &k);
	/* A first one must come, and has time; those that may be beside it come at once. */
	while (receive(s, seen || !c->w->a ? 700 : c->o->patience_ms) == RX_FPDU)
		seen += s->m.s.op == OP_READ_REQ;
	CHECK(c, seen <= c->w->a, "no more Reads at once than our IRD",
	      "%ld at once, IRD %ld", seen, c->w->a);
	CHECK(c, seen || !c->w->a, "Reads come at all", "none came");
}

static void no_negotiation_reply(struct ctx *c)
{
	struct stream *s = enhanced_request(c, "");
	struct hs h;

	answer_default(s, &h);
	h.enh.ird = h.enh.ord = MPA_NO_NEGOTIATION;
	answer(s, &h);
	expect_alive(s, "a Reply with 3FFF twice");
}

static uint8_t op_of_rtr(const struct mpa_enh *e)
{
	return e->c ? OP_WRITE : e->d ? OP_READ_REQ : OP_SEND;
}

/* a: the one option in the Reply: B 4, C 2, D 1. */
static void rtr_first(struct ctx *c)
{
	struct stream *s = enhanced_request(c, "");
	const struct mpa_enh *e = &s->their_enh;
	const struct seg *g;
	struct rreq r;
	struct hs h;

	if (!((e->b && c->w->a == 4) || (e->c && c->w->a == 2) ||
	      (e->d && c->w->a == 1)))
		skip(c, "the initiator does not offer this RTR");
	answer_default(s, &h);
	h.enh.b = c->w->a == 4;
	h.enh.c = c->w->a == 2;
	h.enh.d = c->w->a == 1;
	answer_only(s, &h);
	expect_op(s, op_of_rtr(&h.enh));
	g = &s->m.s;
	CHECK(c, g->len == (g->op == OP_READ_REQ ? RDMA_READ_LEN : 0),
	      "a zero-length RTR", "%zu octets of payload", g->len);
	if (g->op == OP_READ_REQ) {
		rreq_decode(g->data, &r);
		CHECK(c, !r.size, "a Read of no octets", "size %u", r.size);
	}
}

/* a: 1 nothing offered, 0: only what the initiator did not ask for. */
static void rtr_impossible(struct ctx *c)
{
	struct stream *s = enhanced_request(c, "");
	const struct mpa_enh *e = &s->their_enh;
	struct hs h;

	answer_default(s, &h);
	h.enh.b = h.enh.c = h.enh.d = false;
	if (!c->w->a) {
		if (e->b && e->c && e->d)
			skip(c, "the initiator supports every RTR");
		h.enh.b = !e->b;
		h.enh.c = e->b && !e->c;
		h.enh.d = e->b && e->c;
	}
	answer_only(s, &h);
	EXPECT_END(s, TERM(MPA_RTR));
}

/* a: Rev of a Reply with S=0 to a Request with S=1. */
static void answered_plain(struct ctx *c)
{
	struct stream *s = enhanced_request(c, "");
	struct hs h;

	answer_default(s, &h);
	h.flags &= ~MPA_S;
	h.rev = c->w->a;
	answer_only(s, &h);
	CHECK(c, receive(s, c->o->patience_ms) != RX_FPDU || s->had_term,
	      "not gone on as enhanced", "%s follows", op_name(s->m.s.op));
}

#define WORDS(n) { "ENH-07", "reply-pd" #n, I, reply_no_words, N_V2, CASE_X, n, 0 }

const struct wcase cases_enhanced_i[] = {
	WORDS(0), WORDS(1), WORDS(3),
	{ "ENH-11", "plus1", I, ord_too_large, N_V2, 0, 1, 0 },
	{ "ENH-11", "max", I, ord_too_large, N_V2, 0, 0, 0 },
	{ "ENH-12", "ird0", I, ord_kept, N_V2 | N_ULP, 0, 0, 0 },
	{ "ENH-12", "ird1", I, ord_kept, N_V2 | N_ULP, 0, 1, 0 },
	{ "ENH-12", "ird4", I, ord_kept, N_V2 | N_ULP, 0, 4, 0 },
	{ "RDM-32", "ird1", I, ord_kept, N_V2 | N_ULP, 0, 1, 0 },
	{ "RDM-32", "ird4", I, ord_kept, N_V2 | N_ULP, 0, 4, 0 },
	{ "ENH-15", NULL, I, no_negotiation_reply, N_V2 | N_ULP, 0, 0, 0 },
	{ "ENH-21", "send", I, rtr_first, N_V2 | N_RTR, 0, 4, 0 },
	{ "ENH-21", "write", I, rtr_first, N_V2 | N_RTR, 0, 2, 0 },
	{ "ENH-21", "read", I, rtr_first, N_V2 | N_RTR, 0, 1, 0 },
	{ "ENH-22", "other", I, rtr_impossible, N_V2 | N_RTR, 0, 0, 0 },
	{ "ENH-22", "none", I, rtr_impossible, N_V2 | N_RTR, 0, 1, 0 },
	{ "ENH-29", "rev2", I, answered_plain, N_V2, 0, 2, 0 },
	{ "ENH-29", "rev1", I, answered_plain, N_V2, 0, 1, 0 },
	{ 0 },
};
