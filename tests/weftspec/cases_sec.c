/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Security seen on the wire: RFC 5042, and RFC 5040 section 8.1.1. */
#include "cases.h"

/* An STag bound to one stream (a type 2 window), used on another. */
static void other_stream(struct ctx *c)
{
	struct cmd k = { .op = REFL_BIND, .arg = REFL_RW };
	struct stream *s, *t;
	uint8_t hdr[RDMA_READ_LEN];
	uint32_t stag;
	struct seg g;

	pair(c, &s, &t);
	stag = command_wait(s, &k);
	if (c->w->a) {
		g = mk_read(t, hdr, stag, s->t.r[REFL_RW].addr, 8);
		send_seg(t, &g);
		EXPECT_END(t, TERM_OF_READ(RDMAP_OTHER_STREAM),
			   TOLERATE_OF_READ(RDMAP_BAD_STAG));
	} else {
		g = mk_write(stag, s->t.r[REFL_RW].addr, TEXT8, 8);
		send_seg(t, &g);
		EXPECT_END(t, TERM(DDP_OTHER_STREAM), TOLERATE(DDP_BAD_STAG));
		CHECK(c, is_untouched(s, REFL_RW, 0, 16), "not placed", "it is");
	}
}

/* Nor does it go by a Send with Invalidate of another stream. */
static void other_stream_invalidates(struct ctx *c)
{
	struct cmd k = { .op = REFL_BIND, .arg = REFL_RW };
	struct stream *s, *t;
	struct seg g;
	uint32_t stag;
	uint8_t b[8];

	pair(c, &s, &t);
	stag = command_wait(s, &k);
	g = mk_send(t, TEXT8, 8);
	g.op = OP_SEND_INV;
	g.inval = stag;
	send_seg(t, &g);
	EXPECT_END(t, TERM(RDMAP_PROTECTED_INVALIDATE),
		   TOLERATE(RDMAP_INVALIDATE), TOLERATE(RDMAP_OTHER_STREAM));
	CHECK(c, read_peer(s, stag, s->t.r[REFL_RW].addr, b, 8),
	      "its own stream can use it still", "it was invalidated");
}

/* The region goes while half of a Write's FPDU is in. */
static void revoked_between(struct ctx *c)
{
	struct cmd k = { .op = REFL_REVOKE, .arg = REFL_RW };
	struct stream *s, *t;
	struct seg g;
	size_t half;

	pair(c, &s, &t);
	g = mk_write(s->t.r[REFL_RW].stag, s->t.r[REFL_RW].addr, pattern(1000),
		     1000);
	put_seg(s, &g, NULL);
	half = s->out_len / 2;
	conn_send(s->k, s->out, half, c->o->timeout_ms);
	nap_ms(100);
	command_wait(t, &k);
	/* The first half may be in memory already; from here on nothing may. */
	conn_send(s->k, s->out + half, s->out_len - half, c->o->timeout_ms);
	s->out_len = 0;
	EXPECT_END(s, TERM(DDP_BAD_STAG));
	CHECK(c, is_untouched(t, REFL_RW, half, 1000 - half),
	      "nothing is placed behind the revocation", "octets are");
}

static void small_cq(struct ctx *c)
{
	struct stream *s, *t;

	c->recv_count = 16;
	c->refl_flags = REFL_F_CQ;
	s = full(c);
	c->refl_flags = 0;
	t = full(c);
	for (int i = 0; i < 16; i++) {
		struct seg g = mk_send(s, TEXT8, 8);

		send_seg(s, &g);
	}
	nap_ms(300);
	expect_alive(t, "another stream's completion queue ran over");
	expect_reconnect(c);
}

static void ird_apart(struct ctx *c)
{
	uint8_t hdr[RDMA_READ_LEN];
	const struct region *big;
	struct stream *s, *t;
	int n;

	c->rcvbuf = 8192;
	pair(c, &s, &t);
	big = &s->t.r[REFL_BIG];
	n = s->enhanced && s->their_enh.ird < 16 ? s->their_enh.ird : 16;
	for (int i = 0; i < n; i++) {
		struct seg g = mk_read(s, hdr, big->stag, big->addr, big->len);

		put_seg(s, &g, NULL);
	}
	shoot(s);
	nap_ms(100);
	for (int i = 0; i < 20; i++)
		expect_alive(t, "another stream is at its IRD");
}

static void shared_queue(struct ctx *c)
{
	struct stream *s, *t;
	struct seg g;

	c->refl_flags = REFL_F_SRQ;
	c->recv_count = 4;
	s = full(c);
	t = full(c);
	for (int i = 0; i < 8; i++) { /* all that both of them brought */
		g = mk_send(s, TEXT8, 8);
		send_seg(s, &g);
	}
	expect_alive(s, "the Sends that the queue has room for");
	g = mk_send(t, TEXT8, 8);
	send_seg(t, &g);
	EXPECT_END(t, TERM(DDP_NO_BUFFER));
	c->refl_flags = 0;
	expect_alive(full(c), "a shared receive queue was emptied");
}

#define DRAWN 256

static unsigned int count_distinct(const uint32_t *v, int shift)
{
	bool seen[256] = { false };
	unsigned int n = 0;

	for (int i = 0; i < DRAWN; i++) {
		uint8_t b = v[i] >> shift;

		n += !seen[b];
		seen[b] = true;
	}
	return n;
}

/*
 * Of 256 values drawn at random some 162 differ in each octet; far fewer
 * show a counter or a constant.
 */
static void stags_drawn(struct ctx *c)
{
	struct cmd k = { .op = REFL_REGISTER, .count = DRAWN };
	struct stream *s = full(c);
	unsigned int steps = 0;
	uint8_t raw[4 * DRAWN];
	uint32_t v[DRAWN];

	command_wait(s, &k);
	CHECK(c, read_peer(s, s->t.r[REFL_BIG].stag, s->t.r[REFL_BIG].addr, raw,
			   sizeof(raw)), "the STags can be read", "they cannot");
	for (int i = 0; i < DRAWN; i++)
		v[i] = get32(raw + 4 * i);
	for (int i = 1; i < DRAWN; i++)
		steps += v[i] - v[i - 1] == 0x100 || v[i] - v[i - 1] == 1;
	CHECK(c, steps < 4, "no steps of one index", "%u of %d", steps, DRAWN);
	for (int shift = 24; shift >= 0; shift -= 8)
		CHECK(c, count_distinct(v, shift) > 100, "32 bits that vary",
		      "bits %d..%d take %u values in %d", shift + 7, shift,
		      count_distinct(v, shift), DRAWN);
}

#define SILENT 200

static void half_open(struct ctx *c)
{
	struct stream *s[SILENT];
	double t0 = now();
	int left = SILENT;

	for (int i = 0; i < SILENT; i++)
		s[i] = dial(c);
	expect_reconnect(c);
	while (left && now() - t0 < c->o->timeout_ms / 1000.0 + 5) {
		left = 0;
		for (int i = 0; i < SILENT; i++) {
			conn_recv(s[i]->k, 0);
			left += s[i]->k->state == CONN_UP;
		}
		nap_ms(50);
	}
	CHECK(c, !left, "silent connections are closed in time",
	      "%d of %d are open after %.0f s", left, SILENT, now() - t0);
	say(c, "- all closed after %.1f s", now() - t0);
	expect_reconnect(c);
}

static void slow_stream(struct ctx *c)
{
	struct stream *s, *t;
	double t0, took, worst = 0;
	int slow = 0;

	pair(c, &s, &t);
	for (int i = 0; i < 30; i++) {
		struct seg g = mk_write(s->t.r[REFL_RW].stag,
					s->t.r[REFL_RW].addr, pattern(200), 200);

		put_seg(s, &g, NULL);
		shoot_each(s, 1, 0);
		t0 = now();
		expect_alive(t, "octet-sized segments on another stream");
		took = now() - t0;
		slow += took >= 1.0;
		worst = took > worst ? took : worst;
	}
	say(c, "- slowest Read beside them: %.1f ms", worst * 1e3);
	/* A machine that had no time for one of them says nothing of the peer. */
	CHECK(c, slow < 3, "Reads of another stream take no second",
	      "%d of 30 did, one took %.1f s", slow, worst);
	expect_alive(s, "octet-sized segments");
}

enum phase { PH_TCP, PH_REQUEST, PH_FULL, PH_MIDWAY };
enum harm { HARM_FIN, HARM_RST, HARM_JUNK };

static struct stream *open_up_to(struct ctx *c, enum phase ph)
{
	struct stream *s;
	struct seg g;
	struct hs h;

	if (ph >= PH_FULL) {
		s = open_hs(c, NULL);
		if (ph == PH_MIDWAY) {
			g = mk_send(s, TEXT8, 8);
			put_seg(s, &g, NULL);
			s->out_len -= 7;
			shoot(s);
		}
		return s;
	}
	s = dial(c);
	hs_default(c, &h);
	h.cut = 15;
	if (ph == PH_REQUEST)
		send_frame(s, &h);
	nap_ms(20);
	return s;
}

/* a: how far the connection is, b: what happens to it. */
static void survives_harm(struct ctx *c)
{
	struct stream *s = open_up_to(c, c->w->a);
	uint8_t junk[512];

	if (c->w->b == HARM_FIN)
		conn_fin(s->k);
	else if (c->w->b == HARM_RST)
		conn_rst(s->k);
	for (size_t i = 0; i < sizeof(junk); i++)
		junk[i] = rnd(c);
	if (c->w->b == HARM_JUNK) {
		put_bytes(s, junk, sizeof(junk));
		shoot(s);
	}
	nap_ms(200);
	expect_reconnect(c);
}

#define SURVIVES(l, ph, harm) { "SEC-12", l, R, survives_harm, 0, 0, ph, harm }

const struct wcase cases_sec[] = {
	{ "SEC-02", "write", B, other_stream, N_ULP | N_INV | N_ONE, 0, 0, 0 },
	{ "SEC-02", "read", B, other_stream, N_ULP | N_INV | N_ONE, 0, 1, 0 },
	{ "SEC-02", "invalidate", B, other_stream_invalidates, N_ULP | N_INV, 0, 0, 0 },
	{ "SEC-04", NULL, B, revoked_between, N_ULP, 0, 0, 0 },
	{ "SEC-06", NULL, R, small_cq, N_ULP, 0, 0, 0 },
	{ "SEC-07", NULL, B, ird_apart, N_ULP | N_IRD, 0, 0, 0 },
	{ "SEC-08", NULL, R, shared_queue, N_ULP | N_SRQ, 0, 0, 0 },
	{ "SEC-09", NULL, B, stags_drawn, N_ULP, 0, 0, 0 },
	{ "SEC-10", NULL, R, half_open, 0, CASE_ALONE, 0, 0 },
	{ "SEC-11", NULL, B, slow_stream, N_ULP, 0, 0, 0 },
	SURVIVES("tcp-fin", PH_TCP, HARM_FIN), SURVIVES("tcp-rst", PH_TCP, HARM_RST),
	SURVIVES("tcp-junk", PH_TCP, HARM_JUNK),
	SURVIVES("request-fin", PH_REQUEST, HARM_FIN),
	SURVIVES("request-rst", PH_REQUEST, HARM_RST),
	SURVIVES("request-junk", PH_REQUEST, HARM_JUNK),
	SURVIVES("full-fin", PH_FULL, HARM_FIN),
	SURVIVES("full-rst", PH_FULL, HARM_RST),
	SURVIVES("full-junk", PH_FULL, HARM_JUNK),
	SURVIVES("midway-fin", PH_MIDWAY, HARM_FIN),
	SURVIVES("midway-rst", PH_MIDWAY, HARM_RST),
	SURVIVES("midway-junk", PH_MIDWAY, HARM_JUNK),
	{ 0 },
};
