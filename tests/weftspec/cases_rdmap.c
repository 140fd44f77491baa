/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* RDMAP headers, Sends and Writes: RFC 5040 sections 4, 5 and 7. */
#include "cases.h"

/* a: RV, b: opcode. */
static void bad_rv(struct ctx *c)
{
	struct stream *s = full(c);
	const struct region *rw = &s->t.r[REFL_RW];
	uint8_t hdr[RDMA_READ_LEN];
	struct seg g;

	if (c->w->b == OP_WRITE)
		g = mk_write(rw->stag, rw->addr, TEXT8, 8);
	else if (c->w->b == OP_SEND)
		g = mk_send(s, TEXT8, 8);
	else
		g = mk_read(s, hdr, rw->stag, rw->addr, 8);
	g.rv = c->w->a;
	send_seg(s, &g);
	EXPECT_END(s, TERM(RDMAP_BAD_VERSION));
}

static void rsv_ignored(struct ctx *c)
{
	struct stream *s = full(c);
	struct seg g = mk_send(s, TEXT8, 8);

	g.rsv = 3;
	send_seg(s, &g);
	g = mk_write(s->t.r[REFL_RW].stag, s->t.r[REFL_RW].addr, TEXT8, 8);
	g.rsv = 3;
	send_seg(s, &g);
	expect_alive(s, "RDMAP Rsv of all ones");
}

/* a: an unassigned opcode. */
static void reserved_opcode(struct ctx *c)
{
	static const uint32_t qn[16] = { [OP_ATOMIC_REQ] = QN_READ };
	uint32_t caps = c->facts->caps;
	struct stream *s;
	struct seg g;

	if ((c->w->a <= OP_IMM_SE && caps & REFL_CAP_IMM) ||
	    (c->w->a > OP_IMM_SE && c->w->a < 12 && caps & REFL_CAP_ATOMIC))
		skip(c, "the peer has RFC 7306");
	s = full(c);
	g = mk_send(s, TEXT8, 8);
	g.op = c->w->a;
	g.qn = qn[c->w->a];
	g.msn = g.qn ? s->read_msn++ : g.msn;
	send_seg(s, &g);
	EXPECT_END(s, TERM(RDMAP_BAD_OPCODE));
}

static void write_untagged(struct ctx *c)
{
	struct stream *s, *observer;
	struct seg g;

	pair(c, &s, &observer);
	/* Its DDP header, read as a tagged one, aims at region RW. */
	g = mk_send(s, TEXT8, 8);
	g.op = OP_WRITE;
	g.inval = s->t.r[REFL_RW].stag;
	send_seg(s, &g);
	EXPECT_END(s, TERM(RDMAP_BAD_OPCODE));
	CHECK(c, is_untouched(observer, REFL_RW, 0, 16), "not executed", "it was");
}

/* a: opcode of an untagged message, sent tagged and empty. */
static void tagged_untagged(struct ctx *c)
{
	struct stream *s = full(c);
	struct seg g = mk_write(SINK_STAG, 0, NULL, 0);

	g.op = c->w->a;
	send_seg(s, &g);
	EXPECT_END(s, TERM(RDMAP_BAD_OPCODE));
}

static void response_untagged(struct ctx *c)
{
	struct stream *s = full(c);
	struct seg g = mk_send(s, TEXT8, 8);

	g.op = OP_READ_RESP;
	send_seg(s, &g);
	EXPECT_END(s, TERM(RDMAP_BAD_OPCODE));
}

static void send_on_qn1(struct ctx *c)
{
	struct stream *s = full(c);
	struct seg g = mk_send(s, TEXT8, 8);

	g.qn = QN_READ;
	g.msn = s->read_msn;
	send_seg(s, &g);
	EXPECT_END(s, TERM(RDMAP_BAD_OPCODE), TOLERATE(DDP_BAD_QN),
		   TOLERATE(DDP_TOO_LONG));
}

/* a: QN. */
static void read_on_qn(struct ctx *c)
{
	const struct want strict = TERM(DDP_BAD_QN);
	const struct want some[] = { TERM(RDMAP_BAD_OPCODE), TOLERATE(DDP_BAD_QN) };
	struct stream *s = full(c);
	const struct region *rw = &s->t.r[REFL_RW];
	uint8_t hdr[RDMA_READ_LEN];
	struct seg g = mk_read(s, hdr, rw->stag, rw->addr, 8);
	unsigned int other;
	enum end e;

	g.qn = c->w->a;
	g.msn = g.qn ? 1 : s->send_msn;
	send_seg(s, &g);
	e = wait_end(s, c->o->patience_ms, &other);
	CHECK(c, !other, "no Read Response", "it is answered");
	if (c->w->a >= 4)
		judge_end(s, e, &strict, 1);
	else
		judge_end(s, e, some, 2);
}

/* a: QN. */
static void terminate_on_qn(struct ctx *c)
{
	static const uint8_t none[4];
	struct stream *s = full(c);
	struct seg g = mk_send(s, none, 4);

	g.op = OP_TERM;
	g.qn = c->w->a;
	g.msn = g.qn ? s->read_msn : g.msn;
	send_seg(s, &g);
	EXPECT_END(s, TERM(RDMAP_BAD_OPCODE), TOLERATE_CLOSE,
		   TOLERATE(DDP_BAD_QN));
}

static void inval_field_ignored(struct ctx *c)
{
	struct stream *s = full(c);
	uint8_t hdr[RDMA_READ_LEN];
	struct seg g = mk_send(s, TEXT8, 8);

	g.inval = 0xffffffff;
	send_seg(s, &g);
	g = mk_send(s, TEXT8, 8);
	g.op = OP_SEND_SE;
	g.inval = s->t.r[REFL_RW].stag;
	send_seg(s, &g);
	g = mk_read(s, hdr, s->t.r[REFL_RW].stag, s->t.r[REFL_RW].addr, 8);
	g.inval = 0xffffffff;
	send_seg(s, &g);
	expect_resp(s, 8, NULL);
	expect_alive(s, "Invalidate STag fields in messages that have none");
}

static void peer_send_inv(struct ctx *c)
{
	struct cmd k = { .op = REFL_SEND_INV, .count = 1, .len = 16,
			 .stag = 0xabcd1234 };
	struct stream *s = full(c);
	uint32_t seq = command(s, &k);

	if (receive(s, c->o->patience_ms) != RX_FPDU || is_ack(s, seq))
		skip(c, "the peer's verbs do not take SEND_WITH_INV");
	CHECK(c, s->m.s.op == OP_SEND_INV && s->m.s.inval == 0xabcd1234,
	      "SendInv with the STag in its header", "%s with %08x",
	      op_name(s->m.s.op), s->m.s.inval);
}

static void write_silent(struct ctx *c)
{
	struct stream *s = full(c);
	const struct region *big = &s->t.r[REFL_BIG];
	struct event e[REFL_EVENTS];
	uint8_t b[8];

	for (int i = 0; i < 20; i++)
		poke(s, big->stag, big->addr + 52431ull * i, pattern(8), 8);
	for (int i = 0; i < 20; i++)
		CHECK(c, read_peer(s, big->stag, big->addr + 52431ull * i, b, 8)
		      && !memcmp(b, pattern(8), 8), "each Write is placed",
		      "not number %d", i);
	CHECK(c, !read_events(s, e, 1), "no receive is consumed", "there is an event");
}

static void zero_sends(struct ctx *c)
{
	struct event e[REFL_EVENTS];
	struct stream *s, *observer;

	c->recv_count = 4;
	pair(c, &s, &observer);
	for (int i = 0; i < 4; i++) {
		struct seg g = mk_send(s, NULL, 0);

		send_seg(s, &g);
	}
	expect_alive(s, "zero-length Sends");
	wait_for_events(observer, e, 4);
	CHECK(c, count_received(observer, NULL, 0) >= 4, "each is delivered", "%u of 4",
	      count_received(observer, NULL, 0));
	if (c->role == ROLE_R) {
		struct seg g = mk_send(s, NULL, 0);

		send_seg(s, &g);
		EXPECT_END(s, TERM(DDP_NO_BUFFER));
	}
}

/* A command reads what a Write just before it has left: by the peer's own
 * Write back to us. */
static void write_then_send(struct ctx *c)
{
	struct stream *s = full(c);
	const struct region *big = &s->t.r[REFL_BIG];

	for (uint8_t i = 1; i < 50; i++) {
		struct cmd k = { .op = REFL_WRITE, .count = 1, .len = 1000,
				 .stag = SINK_STAG, .to = 0 };
		uint8_t b[1000];
		uint32_t seq;

		memset(b, i, sizeof(b));
		poke(s, big->stag, big->addr, b, sizeof(b));
		seq = command(s, &k);
		expect_op(s, OP_WRITE);
		CHECK(c, s->m.s.data[0] == i && s->m.s.data[s->m.s.len - 1] == i,
		      "the Write before the Send is visible at its delivery",
		      "octets of round %u in round %u", s->m.s.data[0], i);
		command_ack(s, seq);
	}
}

static void only_rdma(struct ctx *c)
{
	static const char text[] = "GET /index.html HTTP/1.1\r\nHost: x\r\n\r\n";
	struct stream *s = full(c);

	for (int i = 0; i < 400; i++) /* the length it reads is 18245 */
		put_bytes(s, text, sizeof(text) - 1);
	put_bytes(s, pattern(65536), 65536);
	blame_none(s);
	shoot(s);
	expect_any_end(s, "text instead of FPDUs");
}

static void graceful(struct ctx *c)
{
	struct cmd k = { .op = REFL_DISCONNECT, .flags = REFL_CF_NOACK };
	struct stream *s = full(c);
	enum end e;

	expect_alive(s, "the start-up");
	command(s, &k);
	e = wait_end(s, c->o->patience_ms, NULL);
	CHECK(c, e == END_FIN, "FIN, no Terminate", e == END_TERM ?
	      "a Terminate" : e == END_RST ? "RST" : "nothing");
}

static void local_fault(struct ctx *c)
{
	struct cmd k = { .op = REFL_BAD_LKEY, .flags = REFL_CF_NOACK };
	const struct want w = TERM(RDMAP_CATASTROPHE);
	struct stream *s = full(c);
	unsigned int other;
	enum end e;

	command(s, &k);
	blame_none(s);
	e = wait_end(s, c->o->patience_ms, &other);
	CHECK(c, !other, "no message out of memory that is not the ULP's",
	      "%s came", op_name(s->m.s.op));
	judge_end(s, e, &w, 1);
}

#define RV(v, l, op) { "RDM-02", l #v, B, bad_rv, N_ULP, 0, v, op }
#define OPCODE(n) { "RDM-05", "op" #n, B, reserved_opcode, N_ULP, 0, n, 0 }
#define TAGGED(l, op) { "RDM-07", l, B, tagged_untagged, N_ULP, 0, op, 0 }

const struct wcase cases_rdmap[] = {
	RV(0, "send", OP_SEND), RV(2, "send", OP_SEND), RV(3, "send", OP_SEND),
	RV(0, "write", OP_WRITE), RV(2, "write", OP_WRITE),
	RV(3, "write", OP_WRITE), RV(0, "read", OP_READ_REQ),
	RV(2, "read", OP_READ_REQ), RV(3, "read", OP_READ_REQ),
	{ "RDM-03", NULL, B, rsv_ignored, N_ULP, 0, 0, 0 },
	OPCODE(8), OPCODE(9), OPCODE(10), OPCODE(11), OPCODE(12), OPCODE(13),
	OPCODE(14), OPCODE(15),
	{ "RDM-06", NULL, B, write_untagged, N_ULP, 0, 0, 0 },
	TAGGED("send", OP_SEND), TAGGED("send-inv", OP_SEND_INV),
	TAGGED("send-se", OP_SEND_SE), TAGGED("read", OP_READ_REQ),
	TAGGED("terminate", OP_TERM),
	{ "RDM-08", NULL, B, response_untagged, N_ULP, 0, 0, 0 },
	{ "RDM-09", NULL, B, send_on_qn1, N_ULP, 0, 0, 0 },
	{ "RDM-10", "qn0", B, read_on_qn, N_ULP, 0, 0, 0 },
	{ "RDM-10", "qn2", B, read_on_qn, N_ULP, 0, 2, 0 },
	{ "RDM-10", "qn7", B, read_on_qn, N_ULP, 0, 7, 0 },
	{ "RDM-11", "qn0", B, terminate_on_qn, N_ULP, 0, 0, 0 },
	{ "RDM-11", "qn1", B, terminate_on_qn, N_ULP, 0, 1, 0 },
	{ "RDM-12", "received", B, inval_field_ignored, N_ULP | N_IRD, 0, 0, 0 },
	{ "RDM-13", NULL, B, peer_send_inv, N_ULP, 0, 0, 0 },
	{ "RDM-14", NULL, B, write_silent, N_ULP, 0, 0, 0 },
	{ "RDM-35", NULL, B, zero_sends, N_ULP, 0, 0, 0 },
	{ "RDM-36", NULL, B, write_then_send, N_ULP, 0, 0, 0 },
	{ "RDM-59", NULL, B, only_rdma, N_ULP, 0, 0, 0 },
	{ "RDM-60", NULL, B, graceful, N_ULP, 0, 0, 0 },
	{ "RDM-61", NULL, B, local_fault, N_ULP, 0, 0, 0 },
	{ 0 },
};
