/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The Terminates that the peer receives: RFC 5040 sections 5.4 and 7.2. */
#include "cases.h"

static struct seg mk_terminate(const uint8_t *body, size_t len)
{
	return (struct seg){ .last = true, .dv = 1, .rv = 1, .op = OP_TERM,
			     .qn = QN_TERM, .msn = 1, .data = body,
			     .len = len };
}

/* A Terminate is obeyed: no more messages, no Terminate back, a close. */
static void expect_obeyed(struct stream *s, const char *what)
{
	unsigned int other;
	enum end e = wait_end(s, s->c->o->timeout_ms, &other);

	CHECK(s->c, e != END_TERM, "closed without an answer",
	      "%s is answered with a Terminate", what);
	CHECK(s->c, !other, "no message behind it", "%s", op_name(s->m.s.op));
	CHECK(s->c, e != END_QUIET, "closed", "%s is ignored", what);
}

static const uint8_t codes[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0xff };

/* a: layer, b: EType.  All codes there are, each on a stream of its own. */
static void each_registered_error(struct ctx *c)
{
	for (size_t i = 0; i < sizeof(codes); i++) {
		uint8_t b[TERM_CTL_LEN] = { 0 };
		struct stream *s;
		struct seg g = mk_terminate(b, sizeof(b));

		if (!term_registered(c->w->a, c->w->b, codes[i]))
			continue;
		if (c->role == ROLE_I)
			stop_peer(c);
		s = full(c);
		b[0] = c->w->a << 4 | c->w->b;
		b[1] = codes[i];
		send_seg(s, &g);
		expect_obeyed(s, term_name(c->w->a, c->w->b, codes[i]));
	}
	if (c->role == ROLE_R)
		expect_alive(full(c), "all these Terminates, on a fresh stream");
}

/* a: octets of body, b: control word. */
static void odd_body(struct ctx *c)
{
	static uint8_t body[256];
	struct stream *s = full(c);
	struct seg g = mk_terminate(body, c->w->a);

	memset(body, 0xa5, sizeof(body));
	put32(body, (uint32_t)c->w->b);
	send_seg(s, &g);
	CHECK(c, wait_end(s, c->o->timeout_ms, NULL) != END_QUIET,
	      "closed", "a Terminate of %ld octets is ignored", c->w->a);
	expect_reconnect(c);
}

/* a: MSN, b: MO. */
static void bad_place(struct ctx *c)
{
	static const uint8_t body[TERM_CTL_LEN] = { 0x01, 0x02 };
	const struct want msn[] = { TERM(DDP_BAD_MSN), TOLERATE_CLOSE };
	const struct want mo[] = { TERM(DDP_BAD_MO), TERM(DDP_TOO_LONG), TOLERATE_CLOSE };
	struct stream *s = full(c);
	struct seg g = mk_terminate(body, sizeof(body));
	enum end e;

	g.msn = c->w->a;
	g.mo = c->w->b;
	send_seg(s, &g);
	e = wait_end(s, c->o->patience_ms, NULL);
	if (c->w->b)
		judge_end(s, e, mo, 3);
	else
		judge_end(s, e, msn, 2);
}

static void bad_crc(struct ctx *c)
{
	static const uint8_t body[TERM_CTL_LEN] = { 0x01, 0x02 };
	struct fpdu_break b = { .crc_xor = 1 };
	struct stream *s = full(c);
	struct seg g = mk_terminate(body, sizeof(body));

	if (!s->crc)
		skip(c, "CRC is off on this stream");
	put_seg(s, &g, &b);
	shoot(s);
	EXPECT_END(s, TERM(MPA_CRC));
}

static void within_send(struct ctx *c)
{
	static const uint8_t body[TERM_CTL_LEN] = { 0x01, 0x02 };
	struct stream *s = full(c);
	struct seg g = mk_send(s, TEXT8, 8);

	g.last = false;
	send_seg(s, &g);
	g = mk_terminate(body, sizeof(body));
	send_seg(s, &g);
	expect_obeyed(s, "a Terminate between the segments of a Send");
}

#define TRIPLES(l, layer, et) { "RDM-52", l, B, each_registered_error, N_ULP, 0, layer, et }
#define BODY(l, n, ctl) { "RDM-52", l, B, odd_body, N_ULP, 0, n, ctl }

const struct wcase cases_term_rx[] = {
	TRIPLES("local", 0, 0), TRIPLES("protection", 0, 1),
	TRIPLES("operation", 0, 2), TRIPLES("ddp-local", 1, 0),
	TRIPLES("tagged", 1, 1), TRIPLES("untagged", 1, 2),
	TRIPLES("mpa", 2, 0), TRIPLES("mpa-etype3", 2, 3),
	BODY("unknown", 4, 0x77770000), BODY("empty", 0, 0), BODY("3", 3, 0),
	BODY("md-cut", 10, 0x1200c000), BODY("mdr-cut", 40, 0x0102e000),
	BODY("200", 200, 0x0102e000), BODY("reserved", 4, 0x01020fff),
	{ "RDM-53", "msn2", B, bad_place, N_ULP, 0, 2, 0 },
	{ "RDM-53", "mo", B, bad_place, N_ULP, 0, 1, 4096 },
	{ "RDM-53", "crc", B, bad_crc, N_ULP, 0, 0, 0 },
	{ "RDM-54", NULL, B, within_send, N_ULP, 0, 0, 0 },
	{ 0 },
};
