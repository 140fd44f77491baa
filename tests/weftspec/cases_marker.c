/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Markers, both directions.  RFC 5044 section 4.3. */
#include "cases.h"

/* A stream on which we ask for Markers; b: do so at all. */
static struct stream *with_markers(struct ctx *c, bool ask, enum reply *how)
{
	struct stream *s;
	struct hs h;

	*how = REPLY_OK;
	if (c->role == ROLE_R) {
		hs_default(c, &h);
		h.flags |= ask ? MPA_M : 0;
		return try_hs(c, &h, how);
	}
	s = take_request(c, "");
	if (!s->t.valid)
		skip(c, "the peer has no reflector behind it");
	answer_default(s, &h);
	h.flags |= ask ? MPA_M : 0;
	answer_only(s, &h);
	if (s->enhanced && s->their_enh.a)
		take_rtr(s, c->o->timeout_ms);
	*how = refl_take_hello(s) ? REPLY_OK : REPLY_CLOSED;
	return s;
}

static void markers_inserted(struct ctx *c)
{
	static uint8_t b[4000];
	enum reply how;
	struct stream *s = with_markers(c, true, &how);

	CHECK(c, how == REPLY_OK, "M=1 is served", "%s",
	      how == REPLY_REJECT ? "Reply with R=1" : "the connection is dropped");
	CHECK(c, s->t.valid && read_peer(s, s->t.r[REFL_BIG].stag,
					 s->t.r[REFL_BIG].addr, b, 4000),
	      "a stream with Markers", "it does not parse as one");
	lint_verdict(c, "MPA-70");
}

static struct stream *stream_with_markers(struct ctx *c)
{
	enum reply how;
	struct stream *s = with_markers(c, true, &how);

	if (how != REPLY_OK)
		skip(c, "the peer does not serve M=1 (MPA-07, MPA-08)");
	if (!s->t.valid)
		skip(c, "the peer has no reflector behind it");
	return s;
}

static void watch_markers(struct ctx *c)
{
	struct stream *s;

	c->maxseg = c->w->a;
	s = stream_with_markers(c);
	traffic(c, s);
	lint_verdict(c, c->w->row);
}

/* How many octets a Response with n of payload takes from where we are. */
static size_t response_octets(struct stream *s, size_t n)
{
	struct fpdu_tx tx = { .markers = true, .pos = s->rx.pos };
	static uint8_t out[FPDU_WIRE_MAX], zero[2048];

	return fpdu_build(&tx, out, zero, DDP_TAGGED_LEN + n, NULL);
}

/*
 * Reads tuned so that an FPDU of the peer ends (a = 0), or its PAD ends
 * (a = 8: Marker and CRC follow), at a multiple of 512 octets.
 */
static void ends_at_marker(struct ctx *c)
{
	struct stream *s = stream_with_markers(c);
	const struct region *big = &s->t.r[REFL_BIG];
	static uint8_t b[2048];

	for (int round = 0; round < 12; round++) {
		uint32_t n = 1 + round % 4;

		while (n < 1200 && (s->rx.pos + response_octets(s, n) - c->w->a) %
				   MARKER_EVERY)
			n++;
		CHECK(c, read_peer(s, big->stag, big->addr, b, n),
		      "the Read is answered on a stream with Markers",
		      "%u octets: no", n);
		CHECK(c, read_peer(s, big->stag, big->addr, b, 3),
		      "the Read is answered on a stream with Markers", "no");
	}
	lint_verdict(c, c->w->row);
}

static void no_markers(struct ctx *c)
{
	enum reply how;
	struct stream *s = with_markers(c, false, &how);

	CHECK(c, how == REPLY_OK, "accepted", "not accepted");
	if (!s->t.valid)
		skip(c, "the peer has no reflector behind it");
	traffic(c, s);
	lint_verdict(c, "MPA-50");
}

static void per_direction(struct ctx *c)
{
	enum reply how;
	struct stream *s = with_markers(c, c->w->a, &how), *t;

	CHECK(c, how == REPLY_OK, "either value of M is served", "M=%ld is not",
	      c->w->a);
	expect_alive(s, "the start-up");
	if (c->role == ROLE_I)
		return; /* its M is in the Request, before it knows ours */
	t = with_markers(c, !c->w->a, &how);
	CHECK(c, how == REPLY_OK, "either value of M is served", "M=%d is not",
	      !c->w->a);
	CHECK(c, !((s->theirs.flags ^ t->theirs.flags) & MPA_M),
	      "the peer's M does not follow ours", "it does");
}

static struct stream *we_mark(struct ctx *c)
{
	struct stream *s = full(c);

	if (!s->tx.markers)
		skip(c, "the peer does not ask for Markers (M=0)");
	return s;
}

/* a: Reserved, b: ORed into FPDUPTR; or pointer off by four. */
static void odd_markers(struct ctx *c)
{
	struct fpdu_break b = { .mk_reserved = c->w->a, .mk_or = c->w->b };
	struct stream *s = we_mark(c);
	struct seg g = mk_write(s->t.r[REFL_RW].stag, s->t.r[REFL_RW].addr,
				pattern(2000), 2000);

	put_seg(s, &g, &b);
	shoot(s);
	expect_alive(s, "Markers with odd reserved bits");
	CHECK(c, !is_untouched(s, REFL_RW, 0, 64), "the Write is placed",
	      "it is not");
}

static void wrong_pointer(struct ctx *c)
{
	struct fpdu_break b = { .mk_add = 4 };
	struct stream *s = we_mark(c);
	struct seg g = mk_write(s->t.r[REFL_RW].stag, s->t.r[REFL_RW].addr,
				pattern(2000), 2000);

	put_seg(s, &g, &b);
	shoot(s);
	if (alive(s))
		return; /* the check is optional while TCP delivers in order */
	EXPECT_END(s, TERM(MPA_MARKER), TOLERATE_CLOSE);
}

/* Our sequence numbers wrap while Markers are in the stream. */
static void across_wrap(struct ctx *c)
{
	struct stream *s;
	const struct region *big;
	static uint8_t b[60000];

	c->set_isn = true;
	c->isn = 0u - 3000;
	s = we_mark(c);
	big = &s->t.r[REFL_BIG];
	for (int i = 0; i < 60; i++)
		poke(s, big->stag, big->addr + 1000 * i, pattern(60000) +
		     1000 * i, 1000);
	CHECK(c, read_peer(s, big->stag, big->addr, b, 60000) &&
	      !memcmp(b, pattern(60000), 60000),
	      "Markers are found across the wrap", "the Writes are not placed");
}

const struct wcase cases_marker[] = {
	{ "MPA-06", NULL, B, no_markers, N_ULP, 0, 0, 0 },
	{ "MPA-07", NULL, R, markers_inserted, N_ULP, 0, 0, 0 },
	{ "MPA-08", NULL, I, markers_inserted, N_ULP, 0, 0, 0 },
	{ "MPA-09", "off", B, per_direction, 0, 0, 0, 0 },
	{ "MPA-09", "on", B, per_direction, 0, 0, 1, 0 },
	{ "MPA-55", "mss1460", B, watch_markers, N_ULP, 0, 1460, 0 },
	{ "MPA-55", "mss536", B, watch_markers, N_ULP, 0, 536, 0 },
	{ "MPA-70", NULL, B, watch_markers, N_ULP, 0, 0, 0 },
	{ "MPA-71", NULL, B, watch_markers, N_ULP, 0, 0, 0 },
	{ "MPA-72", NULL, B, watch_markers, N_ULP, 0, 0, 0 },
	{ "MPA-73", NULL, B, ends_at_marker, N_ULP, 0, 0, 0 },
	{ "MPA-74", NULL, B, ends_at_marker, N_ULP, 0, 8, 0 },
	{ "MPA-75", "reserved", B, odd_markers, N_ULP, 0, 0xffff, 0 },
	{ "MPA-75", "low-bits", B, odd_markers, N_ULP, 0, 0, 3 },
	{ "MPA-76", NULL, B, wrong_pointer, N_ULP, 0, 0, 0 },
	{ "MPA-77", NULL, R, across_wrap, N_ULP, 0, 0, 0 },
	{ 0 },
};
