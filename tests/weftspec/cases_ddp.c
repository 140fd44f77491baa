/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* DDP errors: RFC 5041 section 7. */
#include "cases.h"

/* a: DV, b: opcode. */
static void bad_dv(struct ctx *c)
{
	struct stream *s = full(c);
	struct seg g;

	if (c->w->b == OP_WRITE)
		g = mk_write(s->t.r[REFL_RW].stag, s->t.r[REFL_RW].addr, TEXT8,
			     8);
	else
		g = mk_send(s, TEXT8, 8);
	g.dv = c->w->a;
	send_seg(s, &g);
	if (c->w->b == OP_WRITE)
		EXPECT_END(s, TERM(DDP_TAGGED_VERSION));
	else
		EXPECT_END(s, TERM(DDP_UNTAGGED_VERSION));
}

static void rsvd_ignored(struct ctx *c)
{
	struct stream *s = full(c);
	struct seg g = mk_send(s, TEXT8, 8);

	g.rsvd = 15;
	send_seg(s, &g);
	g = mk_write(s->t.r[REFL_RW].stag, s->t.r[REFL_RW].addr, TEXT8, 8);
	g.rsvd = 15;
	send_seg(s, &g);
	expect_alive(s, "DDP Rsvd of all ones");
}

/* a: QN. */
static void unknown_qn(struct ctx *c)
{
	struct stream *s = full(c);
	struct seg g = mk_send(s, TEXT8, 8);

	g.qn = (uint32_t)c->w->a;
	g.msn = 1;
	send_seg(s, &g);
	EXPECT_END(s, TERM(DDP_BAD_QN));
}

/* a: payload of each Send.  One more than there are receives. */
static void no_buffer(struct ctx *c)
{
	struct stream *s;

	c->recv_count = 4;
	s = full(c);
	for (int i = 0; i <= s->t.recv_count; i++) {
		struct seg g = mk_send(s, TEXT8, c->w->a);

		if (i == s->t.recv_count)
			nap_ms(100);
		send_seg(s, &g);
	}
	EXPECT_END(s, TERM(DDP_NO_BUFFER));
}

/* a: MSN of one Send, relative to the next one when b. */
static void wrong_msn(struct ctx *c)
{
	struct stream *s;
	struct seg g;

	c->recv_count = 4;
	s = full(c);
	if (c->w->b) {
		g = mk_send(s, TEXT8, 8);
		send_seg(s, &g);
		nap_ms(50);
	}
	g = mk_send(s, TEXT8, 8);
	g.msn = (uint32_t)c->w->a;
	send_seg(s, &g);
	if ((uint32_t)c->w->a > 4)
		EXPECT_END(s, TERM(DDP_BAD_MSN), TOLERATE(DDP_NO_BUFFER));
	else
		EXPECT_END(s, TERM(DDP_BAD_MSN));
}

static void mo_outside(struct ctx *c)
{
	struct stream *s = full(c);
	struct seg g = mk_send(s, "four", 4);

	g.mo = s->t.recv_size + 4;
	send_seg(s, &g);
	EXPECT_END(s, TERM(DDP_BAD_MO));
}

/* A message of 200 + 200 octets into 256; the parts end up in s. */
static void too_long_twice(struct stream *s)
{
	struct seg g = mk_send(s, pattern(200), 200);

	g.last = false;
	send_seg(s, &g);
	nap_ms(20);
	g.last = true;
	g.mo = 200;
	send_seg(s, &g);
}

static void too_long(struct ctx *c)
{
	struct stream *s = full(c);

	if (c->w->a) {
		too_long_twice(s);
	} else {
		struct seg g = mk_send(s, pattern(s->t.recv_size + 44),
				       s->t.recv_size + 44);

		send_seg(s, &g);
	}
	EXPECT_END(s, TERM(DDP_TOO_LONG));
}

/* No octet of a bad segment in the buffer or behind it. */
static void too_long_memory(struct ctx *c)
{
	uint8_t b[REFL_RECV_STRIDE];
	struct stream *s, *observer;
	struct seg g;

	pair(c, &s, &observer);
	if (c->w->a) {
		too_long_twice(s);
	} else {
		g = mk_send(s, pattern(1000), s->t.recv_size + 44);
		send_seg(s, &g);
	}
	wait_end(s, c->o->patience_ms, NULL);
	peek(observer, s->t.recv, b, sizeof(b));
	for (size_t i = c->w->a ? 200 : 0; i < sizeof(b); i++)
		CHECK(c, b[i] == REFL_GUARD_BYTE,
		      "no octet of the bad segment is placed",
		      "octet %zu of the receive buffer changed", i);
}

enum aim {
	AIM_UNKNOWN, AIM_KEY, AIM_REVOKED, AIM_PD2, AIM_BELOW, AIM_FAR_BELOW,
	AIM_END, AIM_PAST, AIM_WRAP, AIM_RIGHTS,
};

static void revoke(struct stream *s, enum refl_region r)
{
	struct cmd k = { .op = REFL_REVOKE, .arg = r };

	command_wait(s, &k);
}

/* Where a bad Write goes; the region's octets must not change. */
static struct seg misaimed_write(struct stream *s, enum aim aim, enum refl_region *r)
{
	const struct region *rw = &s->t.r[REFL_RW];
	uint32_t stag = rw->stag;
	uint64_t to = rw->addr;

	*r = REFL_RW;
	switch (aim) {
	case AIM_UNKNOWN: stag = 0x12345600; break;
	case AIM_KEY: stag ^= 1; break;
	case AIM_REVOKED: revoke(s, REFL_RW); break;
	case AIM_PD2: *r = REFL_PD2; break;
	case AIM_BELOW: to -= 1; break;
	case AIM_FAR_BELOW: to -= 4096; break;
	case AIM_END: to += rw->len - 4; break;
	case AIM_PAST: to += rw->len; break;
	case AIM_WRAP: to = -4ull; break;
	case AIM_RIGHTS: *r = REFL_R; break;
	}
	if (*r != REFL_RW) {
		stag = s->t.r[*r].stag;
		to = s->t.r[*r].addr;
	}
	return mk_write(stag, to, TEXT8, 8);
}

static void judge_aim(struct stream *s, enum aim aim)
{
	switch (aim) {
	case AIM_UNKNOWN: case AIM_KEY: case AIM_REVOKED:
		EXPECT_END(s, TERM(DDP_BAD_STAG));
		break;
	case AIM_PD2:
		EXPECT_END(s, TERM(DDP_OTHER_STREAM),
			   TOLERATE(RDMAP_OTHER_STREAM));
		break;
	case AIM_BELOW: case AIM_FAR_BELOW: case AIM_END: case AIM_PAST:
		EXPECT_END(s, TERM(DDP_BOUNDS));
		break;
	case AIM_WRAP:
		EXPECT_END(s, TERM(DDP_TO_WRAP), TOLERATE(RDMAP_TO_WRAP));
		break;
	case AIM_RIGHTS: /* no code in DDP for it: AMB-2 */
		EXPECT_END(s, TERM(RDMAP_ACCESS), TERM(DDP_BAD_STAG),
			   TERM(DDP_OTHER_STREAM));
		break;
	}
}

/* The 8 octets that the Write aimed at, and its neighbours. */
static void still_as_filled(struct stream *observer, enum refl_region r)
{
	CHECK(observer->c, is_untouched(observer, r, 0, 16) &&
	      is_untouched(observer, r, REFL_REGION_LEN - 16, 16),
	      "memory is unchanged", "the bad Write is visible");
}

static void bad_write(struct ctx *c)
{
	struct stream *s, *observer;
	enum refl_region r;
	struct seg g;

	pair(c, &s, &observer);
	g = misaimed_write(s, c->w->a, &r);
	send_seg(s, &g);
	judge_aim(s, c->w->a);
	still_as_filled(observer, r);
}

static void exact_end(struct ctx *c)
{
	struct stream *s = full(c);
	const struct region *rw = &s->t.r[REFL_RW];
	uint8_t b[8];

	poke(s, rw->stag, rw->addr + rw->len - 1, "z", 1);
	poke(s, rw->stag, rw->addr + rw->len - 9, TEXT8, 8);
	expect_alive(s, "Writes that end exactly at the region's end");
	CHECK(c, read_peer(s, rw->stag, rw->addr + rw->len - 1, b, 1) &&
	      b[0] == 'z', "the last octet is placed", "it is not");
	poke(s, rw->stag, rw->addr, pattern(rw->len), rw->len);
	expect_alive(s, "a Write of the whole region");
}

/* In-bounds octets first, the bad ones 200 ms later. */
static void pieces_of_any_size(struct ctx *c)
{
	struct stream *s, *observer;
	const struct region *rw;
	struct seg g;

	pair(c, &s, &observer);
	rw = &s->t.r[REFL_RW];
	g = mk_write(rw->stag, rw->addr + rw->len - 64, pattern(128), 128);
	put_seg(s, &g, NULL);
	shoot_cut(s, 2 + DDP_TAGGED_LEN + c->w->a, 200);
	EXPECT_END(s, TERM(DDP_BOUNDS));
	CHECK(c, is_untouched(observer, REFL_RW, rw->len - 64, 64),
	      "nothing of a bad segment is placed",
	      "the part that was in bounds is");
}

static void dropped_after_error(struct ctx *c)
{
	struct stream *s, *observer;
	struct seg g;

	pair(c, &s, &observer);
	g = mk_write(0x12345600, 0, TEXT8, 8);
	put_seg(s, &g, NULL);
	blame_last(s);
	g = mk_write(s->t.r[REFL_RW].stag, s->t.r[REFL_RW].addr, TEXT8, 8);
	put_seg(s, &g, NULL);
	shoot(s);
	EXPECT_END(s, TERM(DDP_BAD_STAG));
	still_as_filled(observer, REFL_RW);
}

static void zero_length_unchecked(struct ctx *c)
{
	struct stream *s = full(c);
	static const uint32_t stag[] = { 0, 0xdeadbeef, 0xffffffff };

	for (int i = 0; i < 3; i++)
		poke(s, stag[i], i ? -1ull : 0, NULL, 0);
	poke(s, s->t.r[REFL_R].stag, s->t.r[REFL_R].addr, NULL, 0);
	expect_alive(s, "zero-length Writes to STags that do not exist");
}

#define DV(row, v, op) { row, "dv" #v, B, bad_dv, N_ULP, 0, v, op }
#define AIM(row, label, aim) { row, label, B, bad_write, N_ULP, 0, aim, 0 }

const struct wcase cases_ddp[] = {
	{ "DDP-05", NULL, B, rsvd_ignored, N_ULP, 0, 0, 0 },
	DV("DDP-07", 0, OP_WRITE), DV("DDP-07", 2, OP_WRITE),
	DV("DDP-07", 3, OP_WRITE), DV("DDP-08", 0, OP_SEND),
	DV("DDP-08", 2, OP_SEND), DV("DDP-08", 3, OP_SEND),
	{ "DDP-17", NULL, B, zero_length_unchecked, N_ULP, 0, 0, 0 },
	{ "DDP-22", "qn4", B, unknown_qn, N_ULP, 0, 4, 0 },
	{ "DDP-22", "qn5", B, unknown_qn, N_ULP, 0, 5, 0 },
	{ "DDP-22", "qn-max", B, unknown_qn, N_ULP, 0, 0xffffffff, 0 },
	{ "DDP-23", NULL, R, no_buffer, N_ULP, 0, 8, 0 },
	{ "DDP-23", "zero-length", R, no_buffer, N_ULP, 0, 0, 0 },
	{ "DDP-24", "far", R, wrong_msn, N_ULP, 0, 1000, 0 },
	{ "DDP-24", "gap", B, wrong_msn, N_ULP, 0, 2, 0 },
	{ "DDP-25", "zero", B, wrong_msn, N_ULP, 0, 0, 0 },
	{ "DDP-25", "repeated", B, wrong_msn, N_ULP, 0, 1, 1 },
	{ "DDP-26", NULL, B, mo_outside, N_ULP, 0, 0, 0 },
	{ "DDP-27", "one", B, too_long, N_ULP, 0, 0, 0 },
	{ "DDP-27", "two", B, too_long, N_ULP, 0, 1, 0 },
	{ "DDP-28", "one", B, too_long_memory, N_ULP, 0, 0, 0 },
	{ "DDP-28", "two", B, too_long_memory, N_ULP, 0, 1, 0 },
	AIM("DDP-29", NULL, AIM_UNKNOWN), AIM("DDP-30", NULL, AIM_KEY),
	AIM("DDP-31", NULL, AIM_REVOKED), AIM("DDP-32", NULL, AIM_PD2),
	AIM("DDP-33", "minus1", AIM_BELOW), AIM("DDP-33", "page", AIM_FAR_BELOW),
	AIM("DDP-34", "end", AIM_END), AIM("DDP-34", "past", AIM_PAST),
	{ "DDP-35", NULL, B, exact_end, N_ULP, 0, 0, 0 },
	AIM("DDP-36", NULL, AIM_WRAP),
	{ "DDP-37", "in-bounds", B, pieces_of_any_size, N_ULP, 0, 32, 0 },
	{ "DDP-37", "at-end", B, pieces_of_any_size, N_ULP, 0, 64, 0 },
	{ "DDP-37", "header", B, pieces_of_any_size, N_ULP, 0, 0, 0 },
	{ "DDP-38", NULL, B, dropped_after_error, N_ULP, 0, 0, 0 },
	AIM("DDP-39", NULL, AIM_RIGHTS),
	AIM("SEC-01", "write", AIM_PD2), AIM("SEC-03", "write-below", AIM_BELOW),
	AIM("SEC-03", "write-end", AIM_END), AIM("SEC-03", "write-past", AIM_PAST),
	AIM("SEC-05", "write", AIM_RIGHTS),
	{ 0 },
};
