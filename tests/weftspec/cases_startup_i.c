/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* MPA start-up, the peer as initiator: RFC 5044 section 7.1. */
#include "cases.h"

/* The peer ends the start-up: no FPDU, at most a Terminate. */
static void expect_gives_up(struct stream *s, const char *what)
{
	const struct want w[] = { CLOSE, TOLERATE(MPA_BAD_STARTUP) };
	unsigned int other;
	enum end e;

	stream_start(s);
	e = wait_end(s, s->c->o->timeout_ms, &other);
	CHECK(s->c, !other, "no FPDU", "%u FPDUs after %s", other, what);
	judge_end(s, e, w, 2);
}

static void wrong_key(struct ctx *c)
{
	struct stream *s = take_request(c, "");
	struct hs h;

	answer_default(s, &h);
	memcpy(h.key, c->w->a ? (const char *)mpa_key_req :
	       "HTTP/1.0 200 OK\r", MPA_KEY);
	send_frame(s, &h);
	expect_gives_up(s, "a wrong key");
}

static void wrong_rev(struct ctx *c)
{
	struct stream *s = take_request(c, "");
	struct hs h;

	answer_default(s, &h);
	h.rev = c->w->a;
	h.flags &= ~MPA_S;
	send_frame(s, &h);
	expect_gives_up(s, "a wrong revision");
}

/* a: octets of private data in the Reply, b: PD_Length or -1. */
static void reply_pd(struct ctx *c)
{
	struct stream *s = take_request(c, "");
	struct hs h;

	answer_default(s, &h);
	h.pd = pattern(c->w->a);
	h.pd_len = c->w->a - (h.flags & MPA_S ? MPA_ENH : 0);
	h.pd_claim = c->w->b;
	send_frame(s, &h);
	if (c->w->a > MPA_PD_MAX) {
		expect_gives_up(s, "private data longer than 512");
		return;
	}
	stream_start(s);
	if (receive(s, c->o->timeout_ms) == RX_FPDU && !s->had_term)
		return; /* the RTR, or the reflector's HELLO */
	CHECK(c, s->k->state != CONN_UP || s->had_term, "accepted",
	      "the peer neither goes on nor closes");
	CHECK(c, c->w->a > 255, "accepted", "closed");
	divergent(c, "accepted", "closed: %ld octets are too many for it",
		  c->w->a);
}

static void not_before_reply(struct ctx *c)
{
	struct stream *s = take_request(c, "");

	expect_silence(s, 1000, "before the Reply");
	answer(s, NULL);
}

static void told_no(struct ctx *c)
{
	struct stream *s = take_request(c, "");
	unsigned int other;
	struct hs h;

	answer_default(s, &h);
	h.flags |= MPA_R;
	h.pd = TEXT8;
	h.pd_len = 8;
	send_frame(s, &h);
	stream_start(s);
	wait_end(s, c->o->patience_ms, &other);
	CHECK(c, !other && !s->had_term, "nothing behind a rejection",
	      s->had_term ? "a Terminate" : "FPDUs");
}

static void no_reply(struct ctx *c)
{
	struct stream *s = take_request(c, "");
	double t0 = now();

	while (s->k->state == CONN_UP && now() - t0 < c->o->timeout_ms / 1000.0)
		conn_recv(s->k, 100);
	CHECK(c, s->k->state != CONN_UP, "gives up in time",
	      "still waits for a Reply after %d s", c->o->timeout_ms / 1000);
	say(c, "- the peer waited %.1f s", now() - t0);
}

static void reply_and_fpdu(struct ctx *c)
{
	struct stream *s = take_request(c, "");
	struct fpdu_tx tx = { .crc = true };
	uint8_t ulpdu[64], wire[64];
	struct seg g = mk_write(SINK_STAG, 0, NULL, 0);
	struct hs h;

	answer_default(s, &h);
	h.tail = wire;
	h.tail_len = fpdu_build(&tx, wire, ulpdu, seg_encode(ulpdu, &g), NULL);
	answer_only(s, &h);
	CHECK(c, receive(s, c->o->timeout_ms) == RX_FPDU ||
	      s->k->state != CONN_UP, "accepted, or closed", "neither");
}

/* a: octets of the Reply that are sent, -1: all; b: RST.  Another peer, of the
 * same host, must still be able to connect. */
static void lost_in_startup(struct ctx *c)
{
	struct stream *s = take_request(c, "");
	struct hs h;

	answer_default(s, &h);
	if (c->w->a > 0)
		h.cut = c->w->a;
	if (c->w->a)
		send_frame(s, &h);
	if (c->w->b)
		conn_rst(s->k);
	else
		conn_fin(s->k);
	nap_ms(200);
	stop_peer(c);
	answer(take_request(c, ""), NULL);
}

#define REPLY_PD(n, f) { "MPA-21", "reply-pd" #n, I, reply_pd, 0, f, n, -1 }

const struct wcase cases_startup_i[] = {
	{ "MPA-05", "junk", I, wrong_key, 0, 0, 0, 0 },
	{ "MPA-05", "request-key", I, wrong_key, 0, 0, 1, 0 },
	{ "MPA-19", "reply-rev3", I, wrong_rev, 0, 0, 3, 0 },
	REPLY_PD(4, 0), REPLY_PD(5, 0), REPLY_PD(256, 0),
	REPLY_PD(257, CASE_X), REPLY_PD(512, CASE_X),
	{ "MPA-22", "reply-pd513", I, reply_pd, 0, CASE_X, 513, -1 },
	{ "MPA-33", NULL, I, not_before_reply, N_ULP, 0, 0, 0 },
	{ "MPA-34", NULL, I, told_no, 0, 0, 0, 0 },
	{ "MPA-35", "rev3", I, wrong_rev, 0, 0, 3, 0 },
	{ "MPA-35", "pd513", I, reply_pd, 0, CASE_X, 513, -1 },
	{ "MPA-37", NULL, I, no_reply, 0, CASE_SLOW, 0, 0 },
	{ "MPA-41", NULL, I, reply_and_fpdu, 0, 0, 0, 0 },
	{ "MPA-42", "reply-fin0", I, lost_in_startup, N_ULP, 0, 0, 0 },
	{ "MPA-42", "reply-rst0", I, lost_in_startup, N_ULP, 0, 0, 1 },
	{ "MPA-42", "reply-fin10", I, lost_in_startup, N_ULP, 0, 10, 0 },
	{ "MPA-42", "reply-rst10", I, lost_in_startup, N_ULP, 0, 10, 1 },
	{ "MPA-42", "reply-fin", I, lost_in_startup, N_ULP, 0, -1, 0 },
	{ "MPA-42", "reply-rst", I, lost_in_startup, N_ULP, 0, -1, 1 },
	{ 0 },
};
