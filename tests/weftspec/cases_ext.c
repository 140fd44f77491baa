/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Immediate Data: RFC 7306 section 6. */
#include "cases.h"

static struct seg mk_imm(struct stream *s, const void *p, size_t len, bool se)
{
	struct seg g = mk_send(s, p, len);

	g.op = se ? OP_IMM_SE : OP_IMM;
	return g;
}

/* a: with SE. */
static void peer_immediate(struct ctx *c)
{
	struct cmd k = { .op = REFL_WRITE_IMM, .count = 1, .len = 16,
			 .stag = SINK_STAG, .to = 0, .arg2 = 0x11223344,
			 .flags = c->w->a ? REFL_CF_SE : 0 };
	uint8_t op = c->w->a ? OP_IMM_SE : OP_IMM;
	struct stream *s = full(c);
	const struct seg *g = &s->m.s;
	uint32_t seq = command(s, &k);

	do
		if (receive(s, c->o->patience_ms) != RX_FPDU || is_ack(s, seq))
			skip(c, "the peer's verbs do not send Immediate Data");
	while (g->op != OP_IMM && g->op != OP_IMM_SE);
	CHECK(c, g->op == op, op_name(op), "%s", op_name(g->op));
	CHECK(c, !g->tagged && g->qn == QN_SEND && g->last && !g->mo &&
	      g->len == IMM_LEN, "T=0 on QN 0, L=1, MO 0, 8 octets",
	      "T=%d QN=%u L=%d MO=%u len=%zu", g->tagged, g->qn, g->last,
	      g->mo, g->len);
	command_ack(s, seq);
	lint_verdict(c, "DDP-11");
}

/* All eight octets in the buffer, or the half of them that verbs hand over. */
static bool is_text8(const struct event *e)
{
	return !memcmp(e->head, TEXT8, IMM_LEN) || e->imm == get32(TEXT8) ||
	       e->imm == get32(TEXT8 + 4);
}

/* Between two Sends, with the same MSNs. */
static void between_sends(struct ctx *c)
{
	struct stream *s = full(c);
	struct event e[REFL_EVENTS];
	unsigned int n;
	struct seg g = mk_send(s, "first...", 8);

	put_seg(s, &g, NULL);
	g = mk_imm(s, TEXT8, IMM_LEN, c->w->a);
	if (c->w->b)
		g.inval = 0xffffffff;
	put_seg(s, &g, NULL);
	g = mk_send(s, "third...", 8);
	put_seg(s, &g, NULL);
	shoot(s);
	expect_alive(s, "an Immediate between two Sends");
	n = wait_for_events(s, e, 3);
	CHECK(c, n == 3 && !e[0].status && !e[1].status && !e[2].status,
	      "three deliveries in order", "%u events", n);
	CHECK(c, !memcmp(e[0].head, "first", 5) &&
	      !memcmp(e[2].head, "third", 5), "three deliveries in order",
	      "another order");
	CHECK(c, is_text8(&e[1]), "the Immediate Data that was sent", "%08x",
	      e[1].imm);
}

static void immediate_needs_buffer(struct ctx *c)
{
	struct stream *s;
	struct seg g;

	c->recv_count = 2;
	s = full(c);
	for (int i = 0; i < 3; i++) {
		g = mk_imm(s, TEXT8, IMM_LEN, false);
		send_seg(s, &g);
		nap_ms(50);
	}
	EXPECT_END(s, TERM(DDP_NO_BUFFER));
}

/* a: octets, b: judge only the headers that the Terminate copies. */
static void immediate_length(struct ctx *c)
{
	struct stream *s, *observer;
	struct seg g;

	pair(c, &s, &observer);
	g = mk_imm(s, "weftspecweftspec", c->w->a, false);
	send_seg(s, &g);
	if (c->w->b) {
		CHECK(c, wait_end(s, c->o->patience_ms, NULL) == END_TERM,
		      "a Terminate", "none");
		CHECK(c, s->term.bits == TERM_MD, "M=1, D=1, R=0", "bits %02x",
		      s->term.bits);
		return;
	}
	EXPECT_END(s, TERM(RDMAP_OPERATION), TOLERATE(RDMAP_STREAM_CATASTROPHE),
		   TOLERATE(DDP_TOO_LONG));
	CHECK(c, !count_received(observer, NULL, 0), "not delivered", "it is");
}

static void immediate_rv(struct ctx *c)
{
	struct stream *s = full(c);
	struct seg g = mk_imm(s, TEXT8, IMM_LEN, false);

	g.rv = 2;
	send_seg(s, &g);
	EXPECT_END(s, TERM(RDMAP_BAD_VERSION));
}

static void write_visible(struct ctx *c)
{
	struct stream *s = full(c);
	const struct region *rw = &s->t.r[REFL_RW];
	struct seg g = mk_write(rw->stag, rw->addr, pattern(64), 64);
	struct event e;
	uint8_t b[64];

	put_seg(s, &g, NULL);
	g = mk_imm(s, TEXT8, IMM_LEN, false);
	put_seg(s, &g, NULL);
	shoot(s);
	CHECK(c, wait_for_events(s, &e, 1), "the Immediate is delivered", "nothing");
	CHECK(c, read_peer(s, rw->stag, rw->addr, b, 64) &&
	      !memcmp(b, pattern(64), 64), "the Write is visible by then",
	      "it is not");
}

#define LEN(n) { "EXT-03", "len" #n, B, immediate_length, N_ULP | N_IMM, 0, n, 0 }

const struct wcase cases_ext[] = {
	{ "EXT-01", "sent", B, peer_immediate, N_ULP | N_IMM, 0, 0, 0 },
	{ "EXT-01", "sent-se", B, peer_immediate, N_ULP | N_IMM, 0, 1, 0 },
	{ "EXT-01", "between", B, between_sends, N_ULP | N_IMM, 0, 0, 0 },
	{ "EXT-01", "between-se", B, between_sends, N_ULP | N_IMM, 0, 1, 0 },
	{ "EXT-02", NULL, R, immediate_needs_buffer, N_ULP | N_IMM, 0, 0, 0 },
	{ "EXT-02", "order", B, between_sends, N_ULP | N_IMM, 0, 0, 0 },
	LEN(0), LEN(4), LEN(7), LEN(9), LEN(16),
	{ "EXT-04", "field", B, between_sends, N_ULP | N_IMM, 0, 0, 1 },
	{ "EXT-04", "rv", B, immediate_rv, N_ULP | N_IMM, 0, 0, 0 },
	{ "EXT-14", "immediate", B, immediate_length, N_ULP | N_IMM, 0, 4, 1 },
	{ "EXT-05", NULL, B, write_visible, N_ULP | N_IMM, 0, 0, 0 },
	{ 0 },
};
