/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* DDP segmentation, order and delivery: RFC 5041 sections 4 and 5. */
#include "cases.h"

/* a: octets.  The peer sends one message of each kind of that length. */
static void whole_message(struct ctx *c)
{
	uint32_t n = c->w->a, got = 0;
	struct cmd k = { .op = REFL_SEND, .count = 1, .len = n };
	static uint8_t b[1 << 20];
	struct stream *s;
	uint32_t seq;

	c->maxseg = 1460;
	s = full(c);
	seq = command(s, &k);
	do {
		expect_op(s, OP_SEND);
		CHECK(c, s->m.s.len <= n - got, "no more than the message",
		      "more than %u octets", n);
		got += s->m.s.len;
	} while (!s->m.s.last);
	CHECK(c, got == n, "the whole message", "%u of %u octets", got, n);
	command_ack(s, seq);
	CHECK(c, read_peer(s, s->t.r[REFL_BIG].stag, s->t.r[REFL_BIG].addr, b,
			   n), "a Response of the size asked", "%u: no", n);
	lint_verdict(c, "MPA-54");
}

static void sends_keep_order(struct ctx *c)
{
	struct cmd k = { .op = REFL_SEND, .count = 20, .len = 16 };
	struct stream *s = full(c);
	uint32_t seq;

	seq = command(s, &k);
	for (uint32_t i = 0; i < 20; i++) {
		expect_op(s, OP_SEND);
		CHECK(c, get32(s->m.s.data) == i, "Sends in the order posted",
		      "number %u at place %u", get32(s->m.s.data), i);
	}
	command_ack(s, seq);
}

/* The event of a receive that begins so; the case fails when there is none. */
static struct event want_event(struct stream *observer, const char *head, int n)
{
	struct event e[REFL_EVENTS];
	unsigned int all = wait_for_events(observer, e, 1);

	for (unsigned int i = 0; i < all; i++)
		if (e[i].kind == REFL_EV_RECV && !e[i].status &&
		    !memcmp(e[i].head, head, n))
			return e[i];
	fail(observer->c, "the message is delivered", "it is not");
}

static void send_out_of_order(struct ctx *c)
{
	static const char text[] = "123456789abc";
	static const int order[] = { 4, 0, 8 };
	struct stream *s = full(c);
	struct seg g = mk_send(s, NULL, 4);
	struct event e;

	for (int i = 0; i < 3; i++) {
		g.mo = order[i];
		g.data = (const uint8_t *)text + order[i];
		g.last = i == 2;
		send_seg(s, &g);
	}
	expect_alive(s, "a Send whose MOs do not increase");
	e = want_event(s, text, 12);
	CHECK(c, e.len == 12, "delivered with 12 octets", "%u", e.len);
}

static void write_out_of_order(struct ctx *c)
{
	struct stream *s = full(c);
	const struct region *rw = &s->t.r[REFL_RW];
	const uint8_t *p = pattern(64);
	struct seg g = mk_write(rw->stag, rw->addr + 32, p + 32, 32);
	uint8_t b[64];

	g.last = false;
	send_seg(s, &g);
	g = mk_write(rw->stag, rw->addr, p, 32);
	send_seg(s, &g);
	expect_alive(s, "a Write with its second half first");
	CHECK(c, read_peer(s, rw->stag, rw->addr, b, 64) && !memcmp(b, p, 64),
	      "both halves are placed", "they are not");
}

static void once_in_order(struct ctx *c)
{
	struct stream *s = full(c);
	struct event e[REFL_EVENTS];
	unsigned int n, seen = 0;

	for (uint32_t i = 0; i < 8; i++) {
		uint8_t b[16] = { 'o', 'r', 'd', 'e', 'r', (uint8_t)i };
		struct seg g = mk_send(s, b, sizeof(b));

		put_seg(s, &g, NULL);
	}
	shoot(s);
	expect_alive(s, "eight Sends at once");
	n = wait_for_events(s, e, 8);
	for (unsigned int i = 0; i < n; i++)
		if (!memcmp(e[i].head, "order", 5)) {
			CHECK(c, e[i].head[5] == seen, "in order, once each",
			      "number %u at place %u", e[i].head[5], seen);
			seen++;
		}
	CHECK(c, seen == 8, "eight deliveries", "%u", seen);
}

static void no_last(struct ctx *c)
{
	static const char text[16] = "L never comes..";
	struct stream *s, *observer;
	struct seg g;

	pair(c, &s, &observer);
	g = mk_send(s, text, sizeof(text));
	g.last = false;
	send_seg(s, &g);
	nap_ms(100);
	conn_fin(s->k);
	wait_for_parting(observer);
	CHECK(c, !count_received(observer, text, 12), "not delivered without L",
	      "the receive completed well");
}

static void next_msn_before_last(struct ctx *c)
{
	struct stream *s = full(c);
	struct seg g = mk_send(s, TEXT8, 8);

	g.last = false;
	send_seg(s, &g);
	g = mk_send(s, TEXT8, 8);
	send_seg(s, &g);
	EXPECT_END(s, TERM(DDP_BAD_MSN));
}

static void next_opcode_before_last(struct ctx *c)
{
	struct stream *s = full(c);
	struct seg g = mk_send(s, TEXT8, 8);
	enum end e;

	g.last = false;
	send_seg(s, &g);
	g.last = true;
	g.op = OP_SEND_SE;
	g.mo = 8;
	send_seg(s, &g);
	e = wait_end(s, c->o->patience_ms, NULL);
	CHECK(c, e == END_TERM, "an error with a Terminate",
	      e == END_QUIET ? "nothing" : "a bare close");
}

static void tagged_between(struct ctx *c)
{
	struct stream *s = full(c);
	struct seg g = mk_send(s, TEXT8, 8);

	g.last = false;
	send_seg(s, &g);
	poke(s, s->t.r[REFL_RW].stag, s->t.r[REFL_RW].addr, TEXT8, 8);
	g.last = true;
	g.mo = 8;
	send_seg(s, &g);
	if (!alive(s))
		CHECK(c, s->had_term, "alive, or a Terminate", "neither");
}

/* a: an Atomic Request instead of a Read Request. */
static void request_without_last(struct ctx *c)
{
	struct stream *s = full(c);
	const struct region *rw = &s->t.r[REFL_RW];
	struct atomic a = { .stag = rw->stag, .to = (rw->addr + 7) & ~7ull };
	uint8_t hdr[ATOMIC_REQ_LEN];
	struct seg g = c->w->a ? mk_atomic(s, hdr, &a) :
				 mk_read(s, hdr, rw->stag, rw->addr, 8);
	enum end e;

	g.last = false;
	send_seg(s, &g);
	e = wait_end(s, c->o->patience_ms, NULL);
	CHECK(c, e == END_TERM, "a Terminate",
	      e == END_QUIET ? "nothing" : "a bare close");
}

enum tear { TEAR_WRITE, TEAR_QN, TEAR_READ_WRAP, TEAR_READ_LONG, TEAR_OPCODE };

static void send_fatal_segment(struct stream *s, enum tear how)
{
	const struct region *rw = &s->t.r[REFL_RW];
	uint8_t hdr[RDMA_READ_LEN + 4] = { 0 };
	struct seg g;

	switch (how) {
	case TEAR_WRITE:
		g = mk_write(0x12345600, 0, TEXT8, 8);
		break;
	case TEAR_QN:
		g = mk_send(s, TEXT8, 8);
		g.qn = 9;
		break;
	case TEAR_READ_WRAP:
		g = mk_read(s, hdr, rw->stag, -8ull, 4096);
		break;
	case TEAR_READ_LONG:
		g = mk_read(s, hdr, rw->stag, rw->addr, 8);
		g.len += 4;
		break;
	default:
		g = mk_send(s, TEXT8, 8);
		g.op = 14;
	}
	send_seg(s, &g);
}

/* An error ends in a Terminate that comes before the close. */
static void terminate_first(struct ctx *c)
{
	struct stream *s = full(c);
	enum end e;

	send_fatal_segment(s, c->w->a);
	e = wait_end(s, c->o->patience_ms, NULL);
	CHECK(c, e == END_TERM, "a Terminate, then the close",
	      e == END_QUIET ? "nothing" : "a bare close");
	CHECK(c, s->k->state != CONN_UP, "a Terminate, then the close",
	      "no close within %d s", c->o->timeout_ms / 1000);
}

#define WHOLE(n) { "DDP-15", "len" #n, B, whole_message, N_ULP, 0, n, 0 }
#define TEAR(row, l, how) { row, l, B, terminate_first, N_ULP, 0, how, 0 }

const struct wcase cases_ddp_order[] = {
	WHOLE(1), WHOLE(1442), WHOLE(1443), WHOLE(65536), WHOLE(1000000),
	{ "DDP-18", NULL, B, sends_keep_order, N_ULP, 0, 0, 0 },
	{ "DDP-19", NULL, B, send_out_of_order, N_ULP, 0, 0, 0 },
	{ "DDP-20", NULL, B, write_out_of_order, N_ULP, 0, 0, 0 },
	{ "DDP-21", NULL, B, once_in_order, N_ULP, 0, 0, 0 },
	{ "DDP-40", NULL, B, no_last, N_ULP, 0, 0, 0 },
	{ "DDP-41", NULL, B, next_msn_before_last, N_ULP, 0, 0, 0 },
	{ "DDP-42", NULL, B, next_opcode_before_last, N_ULP, 0, 0, 0 },
	{ "DDP-43", NULL, B, tagged_between, N_ULP, 0, 0, 0 },
	{ "DDP-44", "read", B, request_without_last, N_ULP, 0, 0, 0 },
	{ "DDP-44", "atomic", B, request_without_last, N_ULP | N_ATOMIC, 0, 1,
	  0 },
	TEAR("DDP-51", "stag", TEAR_WRITE), TEAR("DDP-51", "qn", TEAR_QN),
	TEAR("DDP-51", "read-wrap", TEAR_READ_WRAP),
	TEAR("DDP-51", "read-long", TEAR_READ_LONG),
	TEAR("DDP-52", "stag", TEAR_WRITE), TEAR("DDP-52", "opcode", TEAR_OPCODE),
	{ 0 },
};
