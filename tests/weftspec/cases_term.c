/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The Terminates that the peer sends: RFC 5040 sections 4.8, 5.4 and 7.1. */
#include "cases.h"

static struct seg bad_segment(struct stream *s, int kind, uint8_t *hdr)
{
	const struct region *rw = &s->t.r[REFL_RW];
	struct seg g;

	switch (kind) {
	case 0: /* DDP_BAD_STAG */
		return mk_write(0x12345600, 0x1234, TEXT8, 8);
	case 1: /* DDP_BAD_QN */
		g = mk_send(s, TEXT8, 8);
		g.qn = 9;
		return g;
	case 2: /* RDMAP_BAD_STAG of a Read Request */
		return mk_read(s, hdr, 0x12345600, 0x4321, 77);
	case 3: /* RDMAP_BAD_OPCODE */
		g = mk_send(s, TEXT8, 8);
		g.op = 14;
		return g;
	case 4: /* DDP_BAD_MO */
		g = mk_send(s, TEXT8, 8);
		g.mo = 4096;
		return g;
	default: /* DDP_BOUNDS */
		return mk_write(rw->stag, rw->addr + rw->len, TEXT8, 8);
	}
}

#define KINDS 6

/* One Terminate of each kind; then what the watch saw of the row's aspect. */
static void all_kinds(struct ctx *c)
{
	uint8_t hdr[RDMA_READ_LEN];
	struct fpdu_break crc = { .crc_xor = 1 };

	for (int kind = 0; kind <= KINDS; kind++) {
		struct stream *s;
		struct seg g;

		if (c->role == ROLE_I && kind)
			stop_peer(c);
		s = full(c);
		g = bad_segment(s, kind, hdr);
		put_seg(s, &g, kind == KINDS ? &crc : NULL);
		shoot(s);
		if (wait_end(s, c->o->patience_ms, NULL) != END_TERM)
			say(c, "- no Terminate for stimulus %d", kind);
	}
	lint_verdict(c, c->w->row);
}

/* The bad FPDU has much behind it that is never read. */
static void terminate_arrives(struct ctx *c)
{
	struct stream *s = full(c);
	struct seg g = mk_write(0x12345600, 0, TEXT8, 8);
	enum end e;

	put_seg(s, &g, NULL);
	blame_last(s);
	for (int i = 0; i < 8; i++) {
		g = mk_write(s->t.r[REFL_BIG].stag, s->t.r[REFL_BIG].addr,
			     pattern(32768), 32768);
		put_seg(s, &g, NULL);
	}
	shoot(s);
	e = wait_end(s, c->o->timeout_ms, NULL);
	CHECK(c, e == END_TERM, "the Terminate arrives",
	      e == END_RST ? "RST without it" : "it does not");
	CHECK(c, s->k->state != CONN_RST, "FIN behind the Terminate", "RST");
}

/* Long Responses are under way when the error comes. */
static void while_sending(struct ctx *c)
{
	uint8_t hdr[16][RDMA_READ_LEN];
	const struct region *big;
	struct stream *s;
	struct seg g;
	enum end e;
	int n;

	c->rcvbuf = 32768;
	s = full(c);
	big = &s->t.r[REFL_BIG];
	n = s->enhanced && s->their_enh.ird < 16 ? s->their_enh.ird : 16;
	for (int i = 0; i < n; i++) {
		g = mk_read(s, hdr[i], big->stag, big->addr, big->len);
		put_seg(s, &g, NULL);
	}
	shoot(s);
	nap_ms(200);
	g = mk_send(s, TEXT8, 8);
	g.op = 14;
	send_seg(s, &g);
	nap_ms(200);
	e = wait_end(s, c->o->timeout_ms, NULL);
	CHECK(c, e == END_TERM, "a Terminate behind whole FPDUs",
	      s->k->rx_len ? "the stream ends inside an FPDU" :
	      "the stream ends without it");
}

static void first_wins(struct ctx *c)
{
	struct fpdu_break crc = { .crc_xor = 1 };
	struct stream *s = full(c);
	struct seg g = mk_send(s, TEXT8, 8);

	g.op = 14;
	put_seg(s, &g, NULL);
	blame_last(s);
	g = mk_send(s, TEXT8, 8);
	put_seg(s, &g, &crc);
	shoot(s);
	EXPECT_END(s, TERM(RDMAP_BAD_OPCODE));
}

/* An Invalidate that fails, then a bad opcode: the first is reported. */
static void first_wins_inval(struct ctx *c)
{
	struct stream *s = full(c);
	struct seg g = mk_send(s, TEXT8, 8);

	g.op = OP_SEND_INV;
	g.inval = 0x12345600;
	put_seg(s, &g, NULL);
	shoot(s);
	if (wait_end(s, c->o->patience_ms, NULL) == END_TERM)
		return; /* nothing can come second */
	g = mk_send(s, TEXT8, 8);
	g.op = 14;
	send_seg(s, &g);
	EXPECT_END(s, TERM(RDMAP_BAD_OPCODE));
}

#define ASPECT(row) { row, NULL, B, all_kinds, N_ULP, 0, 0, 0 }

const struct wcase cases_term[] = {
	ASPECT("RDM-42"), ASPECT("RDM-43"), ASPECT("RDM-44"), ASPECT("RDM-45"),
	ASPECT("RDM-46"), ASPECT("RDM-47"), ASPECT("RDM-48"),
	{ "RDM-49", NULL, B, terminate_arrives, N_ULP, 0, 0, 0 },
	{ "RDM-50", NULL, B, while_sending, N_ULP | N_IRD, 0, 0, 0 },
	{ "RDM-51", "crc", B, first_wins, N_ULP, 0, 0, 0 },
	{ "RDM-51", "stale", B, first_wins_inval, N_ULP, 0, 0, 0 },
	{ 0 },
};
