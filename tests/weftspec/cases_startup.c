/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* MPA start-up, the peer as responder: RFC 5044 section 7.1. */
#include "cases.h"

static void bad_key(struct ctx *c)
{
	struct stream *s;
	struct hs h;

	hs_default(c, &h);
	memcpy(h.key, c->w->a ? (const char *)mpa_key_rep :
	       "GET / HTTP/1.0\r\n", MPA_KEY);
	s = dial(c);
	send_frame(s, &h);
	expect_refused(s, c->w->a ? "a Reply key in the Request" :
		       "a Request that is HTTP");
}

/* a: our C bit, b: with a bad CRC behind it. */
static void crc_agreed(struct ctx *c)
{
	struct fpdu_break bad = { .crc_xor = 0x5a5a5a5a };
	struct stream *s;
	struct seg g;
	struct hs h;

	hs_default(c, &h);
	h.flags = (h.flags & ~MPA_C) | (c->w->a ? MPA_C : 0);
	if (c->role == ROLE_R) {
		s = open_hs(c, &h);
	} else {
		s = take_request(c, "");
		answer_default(s, &h);
		h.flags = (h.flags & ~MPA_C) | (c->w->a ? MPA_C : 0);
		answer(s, &h);
	}
	if (!s->crc)
		skip(c, "neither side asked for CRC");
	CHECK(c, c->w->a == 0 || c->role == ROLE_I || s->theirs.flags & MPA_C,
	      "C=1 in the Reply to C=1", "C=0");
	expect_alive(s, "the start-up");
	if (!c->w->b)
		lint_verdict(c, "MPA-56");
	g = mk_write(SINK_STAG, 0, NULL, 0);
	put_seg(s, &g, &bad);
	shoot(s);
	EXPECT_END(s, TERM(MPA_CRC));
}

static void crc_off_not_checked(struct ctx *c)
{
	struct fpdu_break junk = { .crc_xor = 0xdeadbeef };
	struct stream *s;
	struct seg g;
	struct hs h;

	hs_default(c, &h);
	h.flags &= ~MPA_C;
	s = open_hs(c, &h);
	if (s->crc)
		skip(c, "the peer asks for CRC by itself");
	g = mk_write(SINK_STAG, 0, NULL, 0);
	put_seg(s, &g, &junk);
	shoot(s);
	expect_alive(s, "an FPDU with a junk CRC, CRC being off");
}

static void crc_field_is_there(struct ctx *c)
{
	struct stream *s;
	uint8_t b[16];
	struct hs h;

	if (c->role == ROLE_R) {
		hs_default(c, &h);
		h.flags &= ~MPA_C;
		s = full_hs(c, &h);
	} else {
		s = take_request(c, "");
		answer_default(s, &h);
		h.flags &= ~MPA_C;
		answer(s, &h);
	}
	for (uint32_t n = 1; n < 9; n++) {
		bool ok = read_peer(s, s->t.r[REFL_R].stag, s->t.r[REFL_R].addr,
				    b, n);

		CHECK(c, ok && b[0] == refl_fill(REFL_R, 0),
		      "FPDUs end in four octets of CRC field",
		      "the stream does not parse so (Read of %u octets)", n);
	}
}

static void crc_by_default(struct ctx *c)
{
	struct stream *s;
	struct hs h;

	if (c->role == ROLE_I) {
		s = take_request(c, "");
	} else {
		hs_default(c, &h);
		h.flags &= ~MPA_C;
		s = open_hs(c, &h);
	}
	CHECK(c, s->theirs.flags & MPA_C, "C=1 in the peer's own frame",
	      "C=0 (flags %02x)", s->theirs.flags);
}

/* a: flags to add to an ordinary Request. */
static void odd_flags(struct ctx *c)
{
	struct stream *s;
	enum reply how;
	struct hs h;

	hs_default(c, &h);
	h.flags |= c->w->a;
	s = try_hs(c, &h, &how);
	CHECK(c, how == REPLY_OK, "accepted, Reply with R=0",
	      how == REPLY_REJECT ? "Reply with R=1" : "not accepted");
	CHECK(c, !(s->theirs.flags & MPA_RES), "Res bits zero in the Reply",
	      "flags %02x", s->theirs.flags);
	expect_alive(s, "the start-up");
}

static void reply_r_bit(struct ctx *c)
{
	enum reply how;

	c->refl_flags = c->w->a ? REFL_F_REJECT : 0;
	try_hs(c, NULL, &how);
	CHECK(c, how == (c->w->a ? REPLY_REJECT : REPLY_OK),
	      c->w->a ? "Reply with R=1" : "Reply with R=0",
	      how == REPLY_OK ? "R=0" : how == REPLY_REJECT ? "R=1" : "no Reply");
}

static void rev1(struct ctx *c)
{
	struct stream *s;
	struct hs h;

	hs_v1(c, &h);
	s = open_hs(c, &h);
	CHECK(c, s->theirs.rev == 1, "Rev 1 in the Reply", "Rev %u",
	      s->theirs.rev);
	expect_alive(s, "a Rev 1 start-up");
}

static void unknown_rev(struct ctx *c)
{
	struct stream *s;
	struct hs h;

	hs_v1(c, &h);
	h.rev = c->w->a;
	s = dial(c);
	send_frame(s, &h);
	expect_refused(s, "an unassigned revision");
}

static void rev0(struct ctx *c)
{
	struct stream *s = dial(c);
	const struct mpa_frame *f = &s->theirs;
	enum reply how;
	struct hs h;

	hs_v1(c, &h);
	h.rev = 0;
	send_frame(s, &h);
	how = read_frame(s, c->o->timeout_ms);
	if (how == REPLY_CLOSED)
		return;
	CHECK(c, how == REPLY_OK || how == REPLY_REJECT,
	      "a close, or a Reply", "neither");
	if (f->rev == 1) {
		stream_start(s);
		CHECK(c, wait_end(s, c->o->timeout_ms, NULL) != END_QUIET,
		      "Rev 1 answered, then closed", "still open");
		return;
	}
	CHECK(c, (f->flags & (MPA_M | MPA_C)) == (MPA_M | MPA_C),
	      "Rev 0 answered with M=1 and C=1", "flags %02x", f->flags);
}

/*
 * a: PD_Length of a Rev 1 Request.  Where the ULP's interface carries less (255
 * octets in Linux iw_cm), a refusal of more is tolerated: 5044 7.1.2(9).
 */
static void pd_length(struct ctx *c)
{
	struct stream *s;
	enum reply how;
	struct hs h;

	hs_v1(c, &h);
	h.pd = pattern(c->w->a);
	h.pd_len = c->w->a;
	s = try_hs(c, &h, &how);
	if ((how == REPLY_CLOSED || how == REPLY_REJECT) && c->w->a > 255) {
		divergent(c, "accepted", "%s: %ld octets are too many for it",
			  how == REPLY_CLOSED ? "closed" : "rejected", c->w->a);
		return;
	}
	CHECK(c, how == REPLY_OK, "accepted", "%ld octets of private data are not",
	      c->w->a);
	expect_alive(s, "the start-up");
}

/* a: octets sent, b: PD_Length. */
static void pd_mismatch(struct ctx *c)
{
	struct stream *s = dial(c);
	struct hs h;

	hs_v1(c, &h);
	h.pd = pattern(c->w->a);
	h.pd_len = c->w->a;
	h.pd_claim = c->w->b;
	send_frame(s, &h);
	expect_refused(s, "private data that does not fit PD_Length");
}

/* a: octets of private data that the ULP hands over. */
static void pd_of_peer(struct ctx *c)
{
	size_t enh, want = c->w->a;
	struct stream *s;
	char args[32];

	c->refl_flags = REFL_F_PD;
	c->reply_pd = want;
	snprintf(args, sizeof(args), "--pd-len %zu", want);
	if (c->role == ROLE_R)
		s = open_hs(c, NULL);
	else
		answer_only(s = take_request(c, args), NULL);
	enh = s->enhanced ? MPA_ENH : 0;
	CHECK(c, s->pd_len == want + enh, "PD_Length counts what is sent",
	      "PD_Length %zu for %zu octets of the ULP and %zu enhanced",
	      s->pd_len, want, enh);
	for (size_t i = enh; i < s->pd_len; i++)
		CHECK(c, s->pd[i] == 0x5a, "the ULP's octets",
		      "%02x at octet %zu", s->pd[i], i);
	if (c->role == ROLE_I)
		expect_op(s, s->enhanced && s->their_enh.a ?
			  s->my_enh.c ? OP_WRITE : s->my_enh.d ? OP_READ_REQ :
			  OP_SEND : OP_SEND);
	else
		expect_alive(s, "the start-up");
}

static void rejected(struct ctx *c)
{
	struct stream *s;
	enum reply how;

	c->refl_flags = REFL_F_REJECT;
	s = try_hs(c, NULL, &how);
	CHECK(c, how == REPLY_REJECT, "a Reply with R=1", "%s",
	      how == REPLY_CLOSED ? "closed without a Reply" : "no Reply");
	if (c->w->a) /* what follows is the ULP's affair, but no FPDU is */
		CHECK(c, receive(s, c->o->patience_ms) != RX_FPDU,
		      "no FPDU behind R=1", "%s", op_name(s->m.s.op));
}

static struct stream *stream_with_early_send(struct ctx *c)
{
	enum reply how;
	struct stream *s;

	c->refl_flags = REFL_F_EARLY;
	s = try_hs(c, NULL, &how);
	CHECK(c, how == REPLY_OK, "accepted", "not accepted");
	return s;
}

static void early_send_is_held(struct ctx *c)
{
	struct stream *s = stream_with_early_send(c);
	struct seg g = mk_write(SINK_STAG, 0, NULL, 0);

	expect_silence(s, 1000, "before the first FPDU of the initiator");
	send_seg(s, &g);
	CHECK(c, refl_take_hello(s), "the Send that was held back",
	      "it does not come after the first FPDU");
}

static void gate_bad_crc(struct ctx *c)
{
	struct fpdu_break bad = { .crc_xor = 1 };
	struct stream *s = stream_with_early_send(c);
	struct seg g = mk_write(SINK_STAG, 0, NULL, 0);
	const struct want w = TERM(MPA_CRC);
	unsigned int other;
	enum end e;

	if (!s->crc)
		skip(c, "CRC is off");
	put_seg(s, &g, &bad);
	shoot(s);
	e = wait_end(s, c->o->patience_ms, &other);
	CHECK(c, !other, "only a Terminate behind a bad first FPDU",
	      "%u FPDUs came", other);
	judge_end(s, e, &w, 1);
}

static void silent_before_request(struct ctx *c)
{
	expect_silence(dial(c), 1000, "before the Request");
}

/* a: octets of the Request that are sent at all. */
static void startup_timeout(struct ctx *c)
{
	struct stream *s = dial(c);
	double t0 = now();
	struct hs h;

	hs_v1(c, &h);
	h.pd = TEXT8;
	h.pd_len = 8;
	h.cut = c->w->a;
	if (h.cut)
		send_frame(s, &h);
	expect_refused(s, "a Request that never ends");
	say(c, "- the peer waited %.1f s", now() - t0);
}

static void frame_exact(struct ctx *c)
{
	struct stream *s = full(c);

	if (c->role == ROLE_R)
		CHECK(c, !s->k->rx_len, "nothing behind the Reply",
		      "%zu octets", s->k->rx_len);
	expect_alive(s, "the start-up");
	lint_verdict(c, "MPA-50");
}

/* a: first TCP segment of the frame, 0: octet by octet. */
static void frame_cut(struct ctx *c)
{
	struct stream *s = NULL;
	struct hs h;

	if (c->role == ROLE_R) {
		hs_default(c, &h);
	} else {
		s = take_request(c, "");
		answer_default(s, &h);
	}
	h.split = c->w->a;
	h.bytewise = !c->w->a;
	if (c->role == ROLE_R)
		s = open_hs(c, &h);
	else
		answer(s, &h);
	expect_alive(s, "a start-up frame cut by TCP");
}

static void pipelined(struct ctx *c)
{
	struct fpdu_tx tx = { .crc = true };
	uint8_t ulpdu[64], wire[64];
	struct stream *s = dial(c);
	struct seg g = mk_write(SINK_STAG, 0, NULL, 0);
	enum reply how;
	struct hs h;

	hs_default(c, &h);
	h.tail = wire;
	h.tail_len = fpdu_build(&tx, wire, ulpdu, seg_encode(ulpdu, &g), NULL);
	send_frame(s, &h);
	how = read_frame(s, c->o->timeout_ms);
	if (how == REPLY_OK)
		divergent(c, "closed: PD_Length does not match", "accepted");
	else
		CHECK(c, how != REPLY_QUIET, "a close", "nothing at all");
}

/* RST before the peer's RNIC can have taken the connection from TCP. */
static void reset_at_once(struct ctx *c)
{
	for (int i = 0; i < 300; i++)
		conn_rst(dial(c)->k);
	expect_reconnect(c);
}

/* a: octets of the Request; -1: all, and the Reply awaited.  b: RST. */
static void startup_lost(struct ctx *c)
{
	struct stream *s = dial(c);
	struct hs h;

	nap_ms(50);

	hs_default(c, &h);
	if (c->w->a > 0)
		h.cut = c->w->a;
	if (c->w->a)
		send_frame(s, &h);
	if (c->w->a < 0)
		CHECK(c, read_frame(s, c->o->timeout_ms) == REPLY_OK,
		      "accepted", "not accepted");
	nap_ms(20);
	if (c->w->b)
		conn_rst(s->k);
	else
		conn_fin(s->k);
	nap_ms(200);
	expect_reconnect(c);
}

#define PD_ROW(n, x) { "MPA-21", "pd" #n, R, pd_length, 0, x, n, 0 }
#define PD_ULP(n) { "MPA-25", "pd" #n, B, pd_of_peer, N_ULP, 0, n, 0 }
#define CUT(n) { "MPA-39", "cut" #n, B, frame_cut, 0, 0, n, 0 }

const struct wcase cases_startup[] = {
	{ "MPA-01", NULL, R, bad_key, 0, 0, 0, 0 },
	{ "MPA-02", NULL, R, bad_key, 0, 0, 1, 0 },
	{ "MPA-10", "asked", B, crc_agreed, 0, 0, 1, 0 },
	{ "MPA-10", "asked-bad", B, crc_agreed, 0, 0, 1, 1 },
	{ "MPA-10", "peer-asks", B, crc_agreed, 0, 0, 0, 0 },
	{ "MPA-10", "peer-asks-bad", B, crc_agreed, 0, 0, 0, 1 },
	{ "MPA-11", NULL, R, crc_off_not_checked, 0, 0, 0, 0 },
	{ "MPA-12", NULL, B, crc_field_is_there, N_ULP, 0, 0, 0 },
	{ "MPA-13", NULL, B, crc_by_default, 0, 0, 0, 0 },
	{ "MPA-14", NULL, R, odd_flags, 0, 0, MPA_R, 0 },
	{ "MPA-15", "accepted", R, reply_r_bit, 0, 0, 0, 0 },
	{ "MPA-15", "rejected", R, reply_r_bit, N_ULP, 0, 1, 0 },
	{ "MPA-15", "echo", R, odd_flags, 0, 0, MPA_R, 0 },
	{ "MPA-17", NULL, R, odd_flags, 0, 0, MPA_RES, 0 },
	{ "MPA-18", NULL, R, rev1, 0, 0, 0, 0 },
	{ "ENH-05", NULL, R, rev1, 0, 0, 0, 0 },
	{ "MPA-19", "rev3", R, unknown_rev, 0, 0, 3, 0 },
	{ "MPA-19", "rev255", R, unknown_rev, 0, 0, 255, 0 },
	{ "MPA-20", NULL, R, rev0, 0, 0, 0, 0 },
	PD_ROW(0, 0), PD_ROW(1, 0), PD_ROW(3, 0), PD_ROW(256, 0),
	PD_ROW(257, 0), PD_ROW(511, 0), PD_ROW(512, 0),
	{ "MPA-22", "pd513", R, pd_mismatch, 0, 0, 513, 513 },
	{ "MPA-22", "pd65535", R, pd_mismatch, 0, 0, 600, 65535 },
	{ "MPA-23", NULL, R, pd_mismatch, 0, 0, 8, 0 },
	{ "MPA-24", NULL, R, pd_mismatch, 0, CASE_SLOW, 4, 8 },
	{ "MPA-27", "key", R, bad_key, 0, 0, 0, 0 },
	{ "MPA-27", "reply-key", R, bad_key, 0, 0, 1, 0 },
	{ "MPA-27", "pd513", R, pd_mismatch, 0, 0, 513, 513 },
	{ "MPA-27", "extra", R, pd_mismatch, 0, 0, 8, 0 },
	PD_ULP(0), PD_ULP(1), PD_ULP(247), PD_ULP(248), PD_ULP(251),
	PD_ULP(252), PD_ULP(255),
	{ "MPA-28", NULL, R, rejected, N_ULP, 0, 0, 0 },
	{ "MPA-29", NULL, R, rejected, N_ULP, 0, 1, 0 },
	{ "MPA-30", NULL, R, early_send_is_held, N_ULP, 0, 0, 0 },
	{ "MPA-31", NULL, R, gate_bad_crc, N_ULP, 0, 0, 0 },
	{ "MPA-32", NULL, R, silent_before_request, 0, 0, 0, 0 },
	{ "MPA-36", "silent", R, startup_timeout, 0, CASE_SLOW, 0, 0 },
	{ "MPA-36", "half", R, startup_timeout, 0, CASE_SLOW, 10, 0 },
	{ "MPA-36", "no-data", R, startup_timeout, 0, CASE_SLOW, 20, 0 },
	{ "MPA-38", NULL, B, frame_exact, N_ULP, 0, 0, 0 },
	{ "MPA-39", "bytewise", B, frame_cut, 0, 0, 0, 0 },
	CUT(1), CUT(16), CUT(19), CUT(20), CUT(22),
	{ "MPA-40", NULL, R, pipelined, 0, 0, 0, 0 },
	{ "MPA-42", "rst-at-once", R, reset_at_once, 0, CASE_X, 0, 0 },
	{ "MPA-42", "fin0", R, startup_lost, 0, 0, 0, 0 },
	{ "MPA-42", "rst0", R, startup_lost, 0, 0, 0, 1 },
	{ "MPA-42", "fin10", R, startup_lost, 0, 0, 10, 0 },
	{ "MPA-42", "rst10", R, startup_lost, 0, 0, 10, 1 },
	{ "MPA-42", "fin20", R, startup_lost, 0, 0, 20, 0 },
	{ "MPA-42", "rst20", R, startup_lost, 0, 0, 20, 1 },
	{ "MPA-42", "fin-reply", R, startup_lost, 0, 0, -1, 0 },
	{ "MPA-42", "rst-reply", R, startup_lost, 0, 0, -1, 1 },
	{ 0 },
};
