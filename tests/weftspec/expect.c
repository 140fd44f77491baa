/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <linux/sockios.h>

#include "expect.h"
#include "lint.h"

/* What the peer does behind its Terminate: only a close is right. */
static enum end after_terminate(struct stream *s)
{
	double t0 = now();
	enum rx r;

	lint_terminate(s);
	while ((r = receive(s, s->c->o->timeout_ms)) == RX_FPDU)
		lint(s->c, "RDM-48", false, "%s follows the Terminate",
		     op_name(s->m.s.op));
	lint(s->c, "RDM-48", true, "-");
	if (r == RX_QUIET)
		say(s->c, "- [%d] no close %.1f s after the Terminate", s->id,
		    now() - t0);
	lint(s->c, "RDM-49", r != RX_RST, "RST behind the Terminate");
	return END_TERM;
}

enum end wait_end(struct stream *s, int ms, unsigned int *other)
{
	double end = now() + (ms + s->c->o->timeout_ms) / 1000.0;
	unsigned int dummy;

	if (!other)
		other = &dummy;
	*other = 0;
	if (s->had_term) /* a sentinel came upon it */
		return after_terminate(s);
	for (;;) {
		enum rx r = receive(s, ms);

		if (r == RX_FPDU && s->had_term)
			return after_terminate(s);
		if (r == RX_FPDU)
			(*other)++;
		else if (r != RX_QUIET)
			return r == RX_FIN ? END_FIN : END_RST;
		if (r == RX_QUIET || now() > end)
			return END_QUIET;
	}
}

static uint8_t header_bits(const struct want *w)
{
	return term_errors[w->error].bits | (w->of_read ? TERM_R : 0);
}

static void wants_print(char *out, size_t size, const struct want *w, size_t n)
{
	int at = 0;

	*out = 0;
	for (size_t i = 0; i < n && at < (int)size - 40; i++) {
		const struct term_error_bytes *b = &term_errors[w[i].error];
		struct term t = { .layer = b->layer, .etype = b->etype,
				  .code = (uint8_t)b->code,
				  .bits = header_bits(&w[i]) };
		char one[40] = "close";

		if (!w[i].close)
			term_print(one, sizeof(one), &t);
		at += snprintf(out + at, size - at, "%s%s%s",
			       !i ? "" : w[i].tolerated ? ", tolerated " : " or ",
			       w[i].close ? "" : "Terminate ", one);
	}
}

static bool same_error(const struct want *w, const struct term *t)
{
	return !w->close && term_is_error(w->error, t->layer, t->etype, t->code);
}

static const struct want *find_want(const struct want *w, size_t n,
				    const struct term *t)
{
	for (size_t i = 0; i < n; i++)
		if (same_error(&w[i], t))
			return &w[i];
	return NULL;
}

/* Figure 10 of RFC 5040 is a SHOULD: other header bits are a divergence. */
static void judge_bits(struct stream *s, const struct want *w,
		       const char *expected)
{
	const struct term *t = &s->term;
	uint8_t bits = header_bits(w);
	char got[80];
	bool on_read = s->off.head_len > 1 &&
		       (s->off.head[1] & 15) == OP_READ_REQ;

	if (t->bits == bits)
		return;
	/* Section 4.8 and section 7.1 disagree on R here: AMB-4. */
	if (on_read && (t->bits ^ bits) == TERM_R && t->etype == 2)
		return;
	term_print(got, sizeof(got), t);
	divergent(s->c, expected, "Terminate %s: other header bits", got);
}

static void judge_term(struct stream *s, const struct want *w, size_t n,
		       const char *expected)
{
	const struct term *t = &s->term;
	struct term llp = *t;
	const struct want *hit = find_want(w, n, t);
	char got[80];

	term_print(got, sizeof(got), t);
	if (!hit && t->layer == 2 && t->etype == 3) {
		llp.etype = 0; /* two hardware makers: AMB-1 */
		hit = find_want(w, n, &llp);
		if (hit)
			divergent(s->c, expected, "Terminate %s", got);
	}
	if (!hit)
		fail(s->c, expected, "Terminate %s (%s)", got,
		     term_name(t->layer, t->etype, t->code) ?
		     term_name(t->layer, t->etype, t->code) : "unregistered");
	if (hit->tolerated)
		divergent(s->c, expected, "Terminate %s", got);
	else
		judge_bits(s, hit, expected);
}

void judge_end(struct stream *s, enum end e, const struct want *w, size_t n)
{
	char expected[TEXT_MAX];

	wants_print(expected, sizeof(expected), w, n);
	if (e == END_TERM) {
		judge_term(s, w, n, expected);
		return;
	}
	if (e == END_QUIET)
		fail(s->c, expected, "nothing within %d ms; the stream is %s",
		     s->c->o->patience_ms, alive(s) ? "alive" : "mute");
	for (size_t i = 0; i < n; i++)
		if (w[i].close) {
			if (w[i].tolerated)
				divergent(s->c, expected, "closed, no Terminate");
			return;
		}
	fail(s->c, expected, "%s without a Terminate",
	     e == END_FIN ? "FIN" : "RST");
}

void expect_end(struct stream *s, const struct want *w, size_t n)
{
	judge_end(s, wait_end(s, s->c->o->patience_ms, NULL), w, n);
}

static bool read_zero(struct stream *s)
{
	uint8_t none;

	return read_peer(s, SINK_STAG, 0, &none, 0);
}

/* Without a Read the peer's TCP is the only witness: it took our octets. */
static bool quiet_but_open(struct stream *s)
{
	int left = 0;

	if (receive(s, s->c->o->patience_ms / 4) != RX_QUIET)
		return s->k->state == CONN_UP && !s->had_term;
	ioctl(s->k->fd, SIOCOUTQ, &left);
	return !left;
}

bool alive(struct stream *s)
{
	uint8_t b[8];

	if (s->k->state != CONN_UP || s->had_term)
		return false;
	if (s->t.valid)
		return read_peer(s, s->t.r[REFL_R].stag, s->t.r[REFL_R].addr, b,
				 8);
	if (s->enhanced && s->their_enh.ird)
		return read_zero(s);
	return quiet_but_open(s);
}

static const char *how_ended(struct stream *s, char *buf, size_t n)
{
	char t[80];

	if (!s->had_term)
		return s->k->state == CONN_FIN ? "FIN" :
		       s->k->state == CONN_RST ? "RST" : "a small Read is not answered";
	term_print(t, sizeof(t), &s->term);
	snprintf(buf, n, "Terminate %s", t);
	return buf;
}

void expect_alive(struct stream *s, const char *after)
{
	char buf[100];

	if (!alive(s))
		fail(s->c, "the stream is alive", "after %s: %s", after,
		     how_ended(s, buf, sizeof(buf)));
}

void expect_any_end(struct stream *s, const char *what)
{
	if (wait_end(s, s->c->o->patience_ms, NULL) == END_QUIET)
		fail(s->c, "a Terminate or a close, in time",
		     "after %s: nothing for %d ms; the stream is %s", what,
		     s->c->o->patience_ms, alive(s) ? "alive" : "mute");
}

void expect_refused(struct stream *s, const char *what)
{
	enum reply r = read_frame(s, s->c->o->timeout_ms);

	if (r == REPLY_CLOSED)
		return;
	fail(s->c, "closed without a Reply", "%s: %s", what,
	     r == REPLY_OK ? "accepted" : r == REPLY_REJECT ?
	     "Reply with R=1" : r == REPLY_QUIET ? "still open" :
	     "octets that are no Reply");
}

void expect_silence(struct stream *s, int ms, const char *what)
{
	double end = now() + ms / 1000.0;

	while (now() < end && !s->k->rx_len && s->k->state == CONN_UP)
		conn_recv(s->k, (int)((end - now()) * 1000) + 1);
	CHECK(s->c, !s->k->rx_len, "silence", "%s: %zu octets came", what,
	      s->k->rx_len);
	CHECK(s->c, s->k->state == CONN_UP, "silence", "%s: closed", what);
}

void expect_op(struct stream *s, uint8_t op)
{
	enum rx r = receive(s, s->c->o->patience_ms);
	char want[40];

	snprintf(want, sizeof(want), "%s", op_name(op));
	CHECK(s->c, r == RX_FPDU, want, "%s", r == RX_QUIET ? "nothing" :
	      r == RX_FIN ? "FIN" : "RST");
	CHECK(s->c, s->m.s.op == op, want, "%s", op_name(s->m.s.op));
}

void expect_resp(struct stream *s, uint32_t size, const uint8_t *want)
{
	uint32_t got = 0;

	do {
		const struct seg *g = &s->m.s;

		expect_op(s, OP_READ_RESP);
		CHECK(s->c, g->len <= size - got, "a Response of the size asked",
		      "more than %u octets", size);
		if (want && memcmp(g->data, want + got, g->len))
			fail(s->c, "a Response with the memory's octets",
			     "other octets in the segment at %u", got);
		got += g->len;
	} while (!s->m.s.last);
	CHECK(s->c, got == size, "a Response of the size asked",
	      "%u of %u octets", got, size);
}

void expect_reconnect(struct ctx *c)
{
	enum reply how;

	if (c->role != ROLE_R)
		return; /* an initiator that died does not dial again */
	nap_ms(100);
	try_hs(c, NULL, &how);
	if (how != REPLY_OK)
		fail(c, "a fresh connection works afterwards", "it does not");
}
