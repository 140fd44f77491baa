/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Send with Invalidate: RFC 5040 sections 5.3, 7.2 and 8.1.1. */
#include "cases.h"

static struct seg send_inv(struct stream *s, uint32_t stag)
{
	struct seg g = mk_send(s, TEXT8, 8);

	g.op = OP_SEND_INV;
	g.inval = stag;
	return g;
}

static bool is_readable(struct stream *s, const struct region *r)
{
	uint8_t b[8];

	return read_peer(s, r->stag, r->addr, b, 8);
}

static void valid_invalidation(struct ctx *c)
{
	struct event e[REFL_EVENTS];
	struct cmd k = { .op = REFL_BIND, .arg = REFL_RW };
	struct stream *s = full(c);
	const struct region *rw = &s->t.r[REFL_RW];
	uint32_t stag = command_wait(s, &k);
	uint8_t b[8];
	struct seg g;

	CHECK(c, read_peer(s, stag, rw->addr, b, 8), "the window can be read",
	      "it cannot");
	g = send_inv(s, stag);
	if (c->w->a)
		g.op = OP_SEND_SE_INV;
	send_seg(s, &g);
	expect_alive(s, "a right Send with Invalidate");
	wait_for_events(s, e, 1);
	CHECK(c, count_received(s, TEXT8, 8) == 1, "the Send is delivered", "it is not");
	g = mk_write(stag, rw->addr, TEXT8, 8);
	send_seg(s, &g);
	EXPECT_END(s, TERM(DDP_BAD_STAG));
}

/* a: 0 unknown, 1 another PD's, 2 wrong key. */
static void refused_invalidation(struct ctx *c)
{
	struct stream *s, *observer;
	const struct region *rw;
	struct seg g;

	pair(c, &s, &observer);
	rw = &s->t.r[REFL_RW];
	g = send_inv(s, c->w->a == 0 ? 0x12345600 : c->w->a == 1 ?
		     s->t.r[REFL_PD2].stag : rw->stag ^ 0x55);
	send_seg(s, &g);
	if (c->w->a == 1)
		EXPECT_END(s, TERM(RDMAP_PROTECTED_INVALIDATE),
			   TOLERATE(RDMAP_INVALIDATE),
			   TOLERATE(RDMAP_OTHER_STREAM));
	else
		EXPECT_END(s, TERM(RDMAP_INVALIDATE),
			   TOLERATE(RDMAP_PROTECTED_INVALIDATE));
	CHECK(c, is_readable(observer, rw), "the region stays valid",
	      "it was invalidated");
}

/* Only the memory, whatever the Terminate: what counts is that it stays. */
static void stays_valid(struct ctx *c)
{
	struct stream *s, *observer;
	const struct region *rw;
	struct seg g;

	pair(c, &s, &observer);
	rw = &s->t.r[REFL_RW];
	g = send_inv(s, rw->stag ^ 0x55);
	send_seg(s, &g);
	wait_end(s, c->o->patience_ms, NULL);
	CHECK(c, is_readable(observer, rw), "the region stays valid",
	      "it was invalidated with a wrong key");
}

static void shared_by_streams(struct ctx *c)
{
	struct stream *s, *observer;
	const struct region *rw;
	struct seg g;

	pair(c, &s, &observer);
	rw = &s->t.r[REFL_RW];
	CHECK(c, is_readable(observer, rw), "the region serves both streams", "it does not");
	g = send_inv(s, rw->stag);
	send_seg(s, &g);
	EXPECT_END(s, TERM(RDMAP_INVALIDATE), TERM(RDMAP_PROTECTED_INVALIDATE));
	CHECK(c, is_readable(observer, rw), "valid on the other stream still",
	      "it was invalidated for both");
}

const struct wcase cases_inval[] = {
	{ "RDM-37", NULL, B, valid_invalidation, N_ULP | N_INV, 0, 0, 0 },
	{ "RDM-37", "solicited", B, valid_invalidation, N_ULP | N_INV, 0, 1, 0 },
	{ "RDM-38", NULL, B, refused_invalidation, N_ULP, 0, 0, 0 },
	{ "RDM-39", NULL, B, refused_invalidation, N_ULP, 0, 1, 0 },
	{ "RDM-40", NULL, B, refused_invalidation, N_ULP, 0, 2, 0 },
	{ "RDM-40", "memory", B, stays_valid, N_ULP, 0, 0, 0 },
	{ "RDM-41", NULL, B, shared_by_streams, N_ULP, 0, 0, 0 },
	{ 0 },
};
