/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The peer as the initiator: its own Atomics and Immediates, RFC 7306 sections 5 and 6. */
#include "cases.h"

#define CELL 0x1000ull /* of the tester, at SINK_STAG */

static uint32_t ask(struct stream *s, enum refl_op op)
{
	struct cmd k = { .op = op, .count = 1, .stag = SINK_STAG, .to = CELL,
			 .len = 8, .arg = 5, .arg2 = 9 };

	return command(s, &k);
}

/* The peer's next message that is neither a Send nor one of these; Reads are answered. */
static void next_message(struct stream *s)
{
	do {
		if (receive(s, s->c->o->patience_ms) != RX_FPDU)
			fail(s->c, "the requests that the reflector posts",
			     "the stream ended or stalled");
		if (s->m.s.op == OP_READ_REQ && s->m.s.len >= RDMA_READ_LEN)
			serve_read(s);
	} while (s->m.s.op == OP_SEND);
}

static struct atomic next_atomic(struct stream *s)
{
	struct atomic a;

	do
		next_message(s);
	while (s->m.s.op == OP_READ_REQ);
	CHECK(s->c, s->m.s.op == OP_ATOMIC_REQ, "an Atomic Request", "%s",
	      op_name(s->m.s.op));
	CHECK(s->c, s->m.s.len == ATOMIC_REQ_LEN, "52 octets", "%zu", s->m.s.len);
	atomic_decode(s->m.s.data, &a);
	return a;
}

static void put_response(struct stream *s, uint32_t msn, uint32_t id, uint64_t value)
{
	uint8_t b[ATOMIC_REP_LEN];
	struct seg g = { .last = true, .dv = 1, .rv = 1, .op = OP_ATOMIC_REP,
			 .qn = QN_ATOMIC, .msn = msn, .data = b,
			 .len = sizeof(b) };

	put64(put32(b, id), value);
	send_seg(s, &g);
}

static void check_operands(struct ctx *c, const struct atomic *a, bool swap)
{
	CHECK(c, a->code == (swap ? ATOMIC_CSWAP : ATOMIC_FADD) && !a->reserved,
	      "the code alone in its word", "code %u, reserved %x", a->code,
	      a->reserved);
	CHECK(c, a->stag == SINK_STAG && a->to == CELL, "the place asked for",
	      "%08x:%#llx", a->stag, (unsigned long long)a->to);
	CHECK(c, a->add == (swap ? 9 : 5) && a->cmp == (swap ? 5 : 0),
	      "the operands; Compare Data 0 in a FetchAdd", "%#llx, %#llx",
	      (unsigned long long)a->add, (unsigned long long)a->cmp);
	CHECK(c, a->cmp_mask == -1ull && a->add_mask == (swap ? -1ull : 0),
	      "masks of a plain operation", "%#llx, %#llx",
	      (unsigned long long)a->add_mask, (unsigned long long)a->cmp_mask);
}

/* a: a swap.  A Read goes before: the MSN is shared. */
static void own_request(struct ctx *c)
{
	struct stream *s = full(c);
	const struct seg *g = &s->m.s;
	struct atomic a;
	uint32_t before;

	serve_until(s, ask(s, REFL_READ), true);
	before = s->untagged[QN_READ].msn; /* behind an RTR it is not 1 */
	ask(s, c->w->a ? REFL_CSWAP : REFL_FADD);
	a = next_atomic(s);
	CHECK(c, !g->tagged && g->qn == QN_READ && g->last && !g->mo && !g->inval,
	      "T=0 on QN 1, L=1, MO 0, Invalidate STag 0",
	      "T=%d QN=%u L=%d MO=%u inval=%08x", g->tagged, g->qn, g->last,
	      g->mo, g->inval);
	CHECK(c, g->msn == before + 1, "the MSN behind the Read's", "%u", g->msn);
	check_operands(c, &a, c->w->a);
}

/* Three Atomics, told one by one. */
static void own_order(struct ctx *c)
{
	static const enum refl_op told[] = { REFL_FADD, REFL_CSWAP, REFL_FADD };
	struct stream *s = full(c);
	struct atomic a;

	for (int i = 0; i < 3; i++)
		ask(s, told[i]);
	for (int i = 0; i < 3; i++) {
		a = next_atomic(s);
		check_operands(c, &a, told[i] == REFL_CSWAP);
		put_response(s, i + 1, a.id, i);
	}
	lint_verdict(c, "DDP-11");
}

/* Each Immediate stands behind all of its Write. */
static void write_before_immediate(struct ctx *c)
{
	struct cmd k = { .op = REFL_WRITE_IMM, .count = 3, .len = 16,
			 .stag = SINK_STAG, .to = CELL };
	struct stream *s = full(c);
	bool written = false;

	command(s, &k);
	for (int n = 0; n < 3;) {
		next_message(s);
		if (s->m.s.op == OP_WRITE) {
			written = s->m.s.last;
			continue;
		}
		CHECK(c, s->m.s.op == OP_IMM, "Writes and Immediates", "%s",
		      op_name(s->m.s.op));
		CHECK(c, written, "the Write, then its Immediate", "the Immediate");
		written = false;
		n++;
	}
}

/* Requests of the peer until it is silent behind them. */
static int count_requests(struct stream *s, uint32_t *ids)
{
	int n = 0;

	while (receive(s, n ? 600 : s->c->o->patience_ms) == RX_FPDU)
		if (s->m.s.op == OP_ATOMIC_REQ && s->m.s.len == ATOMIC_REQ_LEN && n < 8)
			ids[n++] = get32(s->m.s.data + 4);
	return n;
}

/* The tester takes two at once; six are asked for, and all must come in the end. */
static void own_depth(struct ctx *c)
{
	uint32_t id[8], msn = 1;
	struct stream *s;
	struct hs hs;
	int n, all = 0;

	if (c->role == ROLE_R) {
		hs_default(c, &hs);
		hs.enh.ird = 2;
		s = full_hs(c, &hs);
	} else {
		s = take_request(c, "");
		answer_default(s, &hs);
		hs.enh.ird = 2;
		answer(s, &hs);
	}
	if (!s->enhanced)
		skip(c, "needs enhanced set-up (RFC 6581)");
	for (int i = 0; i < 6; i++)
		ask(s, REFL_FADD);
	while (all < 6) {
		n = count_requests(s, id);
		CHECK(c, n && n <= 2, "one or two Requests at once",
		      "%d, behind %d that were answered", n, all);
		for (int i = 0; i < n; i++)
			put_response(s, msn++, id[i], i);
		all += n;
	}
	expect_alive(s, "six Atomic Responses");
}

static bool done_comes(struct stream *s, uint32_t seq, int ms)
{
	while (receive(s, ms) == RX_FPDU)
		if (is_done(s, seq))
			return true;
	return false;
}

static void completes_with_response(struct ctx *c)
{
	const uint64_t value = 0x1122334455667788;
	struct stream *s = full(c);
	const struct region *big = &s->t.r[REFL_BIG];
	uint32_t seq = ask(s, REFL_FADD);
	struct atomic a = next_atomic(s);
	uint64_t got = 0;
	uint8_t b[8];

	CHECK(c, !done_comes(s, seq, 500), "no completion before the Response",
	      "it completed");
	put_response(s, 1, a.id, value);
	CHECK(c, done_comes(s, seq, c->o->patience_ms), "a completion with the Response",
	      "none");
	CHECK(c, read_peer(s, big->stag, big->addr + 4, b, 8), "the result can be read",
	      "it cannot");
	for (int i = 7; i >= 0; i--) /* in the host's order */
		got = got << 8 | b[i];
	CHECK(c, got == value || get64(b) == value, "the value of the Response",
	      "%#llx", (unsigned long long)got);
}

/* a: MSN, b: MO.  Each is not what the peer waits for. */
static void odd_response_header(struct ctx *c)
{
	struct stream *s = full(c);
	uint8_t b[ATOMIC_REP_LEN] = { 0 };
	struct seg g = { .last = true, .dv = 1, .rv = 1, .op = OP_ATOMIC_REP,
			 .qn = QN_ATOMIC, .msn = c->w->a, .mo = c->w->b,
			 .data = b, .len = sizeof(b) };

	ask(s, REFL_FADD);
	put32(b, next_atomic(s).id);
	send_seg(s, &g);
	if (c->w->b)
		EXPECT_END(s, TERM(DDP_BAD_MO), TOLERATE(DDP_TOO_LONG));
	else
		EXPECT_END(s, TERM(DDP_BAD_MSN), TOLERATE(DDP_NO_BUFFER));
}

/* Its Write cannot be made, so nothing may speak of it but a Terminate. */
static void immediate_of_no_write(struct ctx *c)
{
	struct cmd k = { .op = REFL_BAD_LKEY, .flags = REFL_CF_NOACK, .arg = 1,
			 .stag = SINK_STAG, .to = CELL };
	const struct want w = TERM(RDMAP_CATASTROPHE);
	struct stream *s = full(c);
	unsigned int other;
	enum end e;

	command(s, &k);
	blame_none(s);
	e = wait_end(s, c->o->patience_ms, &other);
	CHECK(c, !other, "neither the Write nor its Immediate", "%s came",
	      op_name(s->m.s.op));
	judge_end(s, e, &w, 1);
}

#define OUT(row, l, fn, needs, a, b) { row, l, B, fn, N_ULP | (needs), 0, a, b }

const struct wcase cases_requester[] = {
	OUT("EXT-21", "add", own_request, N_ATOMIC, 0, 0),
	OUT("EXT-21", "swap", own_request, N_ATOMIC, 1, 0),
	OUT("EXT-22", "atomics", own_order, N_ATOMIC, 0, 0),
	OUT("EXT-22", "immediates", write_before_immediate, N_IMM, 0, 0),
	OUT("EXT-23", NULL, own_depth, N_ATOMIC, 0, 0),
	OUT("EXT-24", NULL, completes_with_response, N_ATOMIC, 0, 0),
	OUT("EXT-28", "response-msn", odd_response_header, N_ATOMIC, 2, 0),
	OUT("EXT-28", "response-mo", odd_response_header, N_ATOMIC, 1, 4),
	OUT("EXT-31", NULL, immediate_of_no_write, N_IMM, 0, 0),
	{ 0 },
};
