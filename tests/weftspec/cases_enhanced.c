/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Enhanced set-up, the peer as responder: RFC 6581 sections 9 and 10. */
#include "cases.h"

static struct stream *expect_accepted(struct ctx *c, const struct hs *h)
{
	enum reply how;
	struct stream *s = try_hs(c, h, &how);

	CHECK(c, how == REPLY_OK, "accepted", how == REPLY_REJECT ?
	      "Reply with R=1" : "not accepted");
	return s;
}

static struct stream *ask_ird_ord(struct ctx *c, uint16_t ird, uint16_t ord)
{
	struct stream *s;
	struct hs h;

	hs_default(c, &h);
	h.enh.ird = ird;
	h.enh.ord = ord;
	s = expect_accepted(c, &h);
	CHECK(c, s->enhanced, "S=1 in the Reply", "S=0");
	return s;
}

static void enhanced_answered(struct ctx *c)
{
	struct stream *s;
	enum reply how;
	struct hs h;

	hs_default(c, &h);
	h.rev = 2;
	h.flags |= MPA_S;
	s = try_hs(c, &h, &how);
	if (how == REPLY_CLOSED)
		skip(c, "the peer does not serve S=1");
	CHECK(c, how == REPLY_OK, "accepted", "not accepted");
	CHECK(c, s->theirs.flags & MPA_S, "S=1 in the Reply", "S=0");
	CHECK(c, s->theirs.rev == 2, "Rev 2 in the Reply", "Rev %u",
	      s->theirs.rev);
	expect_alive(s, "an enhanced start-up");
}

/* a: Rev of a Request without S. */
static void plain_answered(struct ctx *c)
{
	struct stream *s;
	struct hs h;

	hs_v1(c, &h);
	h.rev = c->w->a;
	s = expect_accepted(c, &h);
	CHECK(c, !(s->theirs.flags & MPA_S), "S=0 in the Reply to S=0", "S=1");
	expect_alive(s, "a start-up with S=0");
}

static void not_enhanced(struct ctx *c)
{
	struct stream *s;
	struct hs h;

	if (c->facts->v2)
		skip(c, "the peer serves S=1");
	hs_default(c, &h);
	h.rev = 2;
	h.flags |= MPA_S;
	s = dial(c);
	send_frame(s, &h);
	expect_refused(s, "S=1 to a peer that does not serve it");
}

/* a: PD_Length, less than the words that S=1 announces. */
static void no_words(struct ctx *c)
{
	struct stream *s = dial(c);
	struct hs h;

	hs_default(c, &h);
	h.no_pd = true;
	h.pd_claim = c->w->a;
	h.tail = TEXT8;
	h.tail_len = c->w->a;
	send_frame(s, &h);
	expect_refused(s, "S=1 without the enhanced words");
	expect_reconnect(c);
}

static void s_bit_in_rev1(struct ctx *c)
{
	struct stream *s;
	struct hs h;

	hs_v1(c, &h);
	h.flags |= MPA_S;
	s = expect_accepted(c, &h);
	CHECK(c, s->theirs.rev == 1 && !(s->theirs.flags & MPA_S),
	      "an ordinary Rev 1 Reply", "Rev %u, flags %02x", s->theirs.rev,
	      s->theirs.flags);
	expect_alive(s, "Rev 1 with a reserved bit set");
}

/* a: our IRD. */
static void ord_bounded(struct ctx *c)
{
	struct stream *s = ask_ird_ord(c, c->w->a, 4);

	CHECK(c, s->their_enh.ord <= c->w->a, "ORD at most our IRD",
	      "ORD %u, IRD %ld", s->their_enh.ord, c->w->a);
}

/* a: our ORD.  A smaller IRD is reported, not hidden. */
static void ird_told(struct ctx *c)
{
	struct stream *s;
	enum reply how;
	struct hs h;

	hs_default(c, &h);
	h.enh.ord = c->w->a;
	s = try_hs(c, &h, &how);
	if (how == REPLY_REJECT)
		return;
	CHECK(c, how == REPLY_OK, "an IRD, or a rejection", "not accepted");
	CHECK(c, s->their_enh.ird >= c->w->a || c->w->a > 1,
	      "an IRD for one Read", "IRD %u", s->their_enh.ird);
	CHECK(c, s->their_enh.ird != MPA_NO_NEGOTIATION,
	      "a number for a number", "IRD 3FFF");
	expect_alive(s, "the start-up");
}

/* a: 0 our ORD is 3FFF, 1 our IRD is. */
static void no_negotiation(struct ctx *c)
{
	struct stream *s = c->w->a ? ask_ird_ord(c, MPA_NO_NEGOTIATION, 16) :
				     ask_ird_ord(c, 16, MPA_NO_NEGOTIATION);
	uint16_t got = c->w->a ? s->their_enh.ord : s->their_enh.ird;

	CHECK(c, got == MPA_NO_NEGOTIATION, "3FFF for 3FFF", "%u", got);
}

/* a: bits A 8, B 4, C 2, D 1. */
static struct stream *ask_rtr(struct ctx *c, long bits)
{
	struct hs h;

	hs_default(c, &h);
	h.enh.a = bits >> 3 & 1;
	h.enh.b = bits >> 2 & 1;
	h.enh.c = bits >> 1 & 1;
	h.enh.d = bits & 1;
	return expect_accepted(c, &h);
}

static long rtr_bits(const struct stream *s)
{
	const struct mpa_enh *e = &s->their_enh;

	return e->a << 3 | e->b << 2 | e->c << 1 | e->d;
}

static void a_answered(struct ctx *c)
{
	struct stream *s = ask_rtr(c, c->w->a);

	CHECK(c, s->their_enh.a == !!(c->w->a & 8), "A as in the Request",
	      "A=%d", s->their_enh.a);
}

static void not_p2p(struct ctx *c)
{
	struct stream *s = ask_rtr(c, 7);

	CHECK(c, !rtr_bits(s), "A, B, C and D clear", "A%d B%d C%d D%d",
	      s->their_enh.a, s->their_enh.b, s->their_enh.c, s->their_enh.d);
}

static void some_option(struct ctx *c)
{
	struct stream *s = ask_rtr(c, 8 | c->w->a);

	CHECK(c, s->their_enh.a && rtr_bits(s) & 7,
	      "A=1 and at least one of B, C, D", "A%d B%d C%d D%d",
	      s->their_enh.a, s->their_enh.b, s->their_enh.c, s->their_enh.d);
}

static void each_option(struct ctx *c)
{
	long alone = 0, all;

	for (long bit = 1; bit < 8; bit <<= 1)
		alone |= rtr_bits(ask_rtr(c, 8 | bit)) & bit;
	all = rtr_bits(ask_rtr(c, 15)) & 7;
	CHECK(c, all == alone, "each option that it supports",
	      "%ld of the options %ld that it takes alone (B 4, C 2, D 1)", all,
	      alone);
}

/* a: the one option asked for, to be used with an odd STag b. */
static void rtr_sent(struct ctx *c)
{
	struct stream *s = ask_rtr(c, 8 | c->w->a);
	uint8_t hdr[RDMA_READ_LEN];
	struct seg g;

	if (!(rtr_bits(s) & c->w->a))
		skip(c, "the peer does not offer this RTR");
	if (c->w->a == 4)
		g = mk_send(s, NULL, 0);
	else if (c->w->a == 2)
		g = mk_write((uint32_t)c->w->b, 0, NULL, 0);
	else
		g = mk_read(s, hdr, (uint32_t)c->w->b, 0, 0);
	send_seg(s, &g);
	if (c->w->a == 1)
		expect_resp(s, 0, NULL);
	expect_alive(s, "the RTR");
}

static void rtr_read_without_ord(struct ctx *c)
{
	uint8_t hdr[RDMA_READ_LEN];
	struct stream *s;
	struct seg g;
	struct hs h;

	c->refl_flags = REFL_F_MIRROR;
	hs_default(c, &h);
	h.enh = (struct mpa_enh){ .a = true, .d = true, .ird = 16, .ord = 0 };
	s = expect_accepted(c, &h);
	/* A peer that expects no Read from one with ORD 0 offers other kinds. */
	if (!s->their_enh.d) {
		CHECK(c, s->their_enh.a && rtr_bits(s) & 6, "D, or A=1 and one of B and C",
		      "A%d B%d C%d D0", s->their_enh.a, s->their_enh.b, s->their_enh.c);
		return;
	}
	g = mk_read(s, hdr, SINK_STAG, 0, 0);
	send_seg(s, &g);
	expect_resp(s, 0, NULL);
}

static void held_until_rtr(struct ctx *c)
{
	struct stream *s;
	struct seg g;

	c->refl_flags = REFL_F_EARLY;
	s = ask_rtr(c, 8 | 2);
	if (!s->their_enh.c)
		skip(c, "the peer does not offer a Write as RTR");
	expect_silence(s, 1000, "before the RTR");
	g = mk_write(SINK_STAG, 0, NULL, 0);
	send_seg(s, &g);
	CHECK(c, refl_take_hello(s), "the Send that was held back", "none");
}

/* a: octets of ULP private data behind the words. */
static void ulp_data(struct ctx *c)
{
	struct stream *s;
	enum reply how;
	struct hs h;

	hs_default(c, &h);
	h.pd = pattern(c->w->a);
	h.pd_len = c->w->a;
	s = try_hs(c, &h, &how);
	if (c->w->a > 508) {
		CHECK(c, how == REPLY_CLOSED, "closed", "513 octets are not");
		return;
	}
	if ((how == REPLY_CLOSED || how == REPLY_REJECT) && c->w->a > 251) {
		divergent(c, "accepted", "%s: too much for it",
			  how == REPLY_CLOSED ? "closed" : "rejected");
		return;
	}
	CHECK(c, how == REPLY_OK, "accepted", "not accepted");
	expect_alive(s, "the start-up");
}

enum abort_how { AB_RST, AB_FIN, AB_CRC, AB_OPCODE, AB_TERM };

static void rtr_aborted(struct ctx *c)
{
	struct fpdu_break bad = { .crc_xor = 1 };
	struct stream *s = ask_rtr(c, 8 | 2);
	struct seg g = mk_write(SINK_STAG, 0, NULL, 0);
	uint8_t none[4] = { 0 };

	switch (c->w->a) {
	case AB_RST: conn_rst(s->k); break;
	case AB_FIN: conn_fin(s->k); break;
	case AB_CRC:
		put_seg(s, &g, &bad);
		shoot(s);
		break;
	case AB_OPCODE:
		g.op = 14;
		send_seg(s, &g);
		break;
	default:
		g = mk_send(s, none, 4);
		g.op = OP_TERM;
		g.qn = QN_TERM;
		g.msn = 1;
		send_seg(s, &g);
	}
	nap_ms(300);
	if (s->k->fd >= 0)
		wait_end(s, c->o->patience_ms, NULL);
	expect_reconnect(c);
}

static void other_first_message(struct ctx *c)
{
	struct stream *s = ask_rtr(c, 8 | 2);
	struct seg g = mk_send(s, TEXT8, 8);

	send_seg(s, &g);
	if (!alive(s))
		CHECK(c, s->had_term || s->k->state != CONN_UP,
		      "tolerated, or a clean error", "neither");
}

#define WORDS(n) { "ENH-07", "pd" #n, R, no_words, N_V2, 0, n, 0 }
#define IRD(n) { "ENH-09", "ird" #n, R, ord_bounded, N_V2, 0, n, 0 }
#define ORD(n) { "ENH-10", "ord" #n, R, ird_told, N_V2, 0, n, 0 }
#define OPT(n) { "ENH-18", "bits" #n, R, some_option, N_V2, 0, n, 0 }
#define ABORT(l, how) { "ENH-28", l, R, rtr_aborted, N_V2, CASE_X, how, 0 }

const struct wcase cases_enhanced[] = {
	{ "ENH-03", NULL, R, enhanced_answered, 0, 0, 0, 0 },
	{ "ENH-04", "rev2", R, plain_answered, 0, 0, 2, 0 },
	{ "ENH-04", "rev1", R, plain_answered, 0, 0, 1, 0 },
	{ "ENH-06", NULL, R, not_enhanced, 0, 0, 0, 0 },
	WORDS(0), WORDS(1), WORDS(3),
	{ "ENH-08", NULL, R, s_bit_in_rev1, 0, 0, 0, 0 },
	IRD(0), IRD(1), IRD(4),
	ORD(1), ORD(4), ORD(128), ORD(200), ORD(16382),
	{ "ENH-13", NULL, R, no_negotiation, N_V2, 0, 0, 0 },
	{ "ENH-14", NULL, R, no_negotiation, N_V2, 0, 1, 0 },
	{ "ENH-16", "a1", R, a_answered, N_V2, 0, 15, 0 },
	{ "ENH-16", "a0", R, a_answered, N_V2, 0, 0, 0 },
	{ "ENH-17", NULL, R, not_p2p, N_V2, 0, 0, 0 },
	OPT(1), OPT(2), OPT(3), OPT(4), OPT(5), OPT(6), OPT(7),
	{ "ENH-19", NULL, R, each_option, N_V2, 0, 0, 0 },
	{ "ENH-20", NULL, R, some_option, N_V2, 0, 0, 0 },
	{ "ENH-23", NULL, R, held_until_rtr, N_V2 | N_ULP, 0, 0, 0 },
	{ "ENH-24", "write-0", R, rtr_sent, N_V2, 0, 2, 0 },
	{ "ENH-24", "write-junk", R, rtr_sent, N_V2, 0, 2, 0xdeadbeef },
	{ "ENH-24", "read-0", R, rtr_sent, N_V2, 0, 1, 0 },
	{ "ENH-24", "read-junk", R, rtr_sent, N_V2, 0, 1, 0xdeadbeef },
	{ "ENH-25", "ord0", R, rtr_read_without_ord, N_V2, CASE_X, 0, 0 },
	{ "ENH-25", "ord16", R, rtr_sent, N_V2, 0, 1, 0 },
	{ "ENH-27", "pd508", R, ulp_data, N_V2, 0, 508, 0 },
	{ "ENH-27", "pd509", R, ulp_data, N_V2, 0, 509, 0 },
	ABORT("rst", AB_RST), ABORT("fin", AB_FIN), ABORT("crc", AB_CRC),
	ABORT("opcode", AB_OPCODE), ABORT("terminate", AB_TERM),
	{ "ENH-30", NULL, R, other_first_message, N_V2, CASE_X, 0, 0 },
	{ 0 },
};
