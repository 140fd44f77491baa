/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* MPA Full Operation: CRC, framing, segmentation.  RFC 5044 sections 4 to 8. */
#include <sys/ioctl.h>

#include "cases.h"

static void need_crc(struct stream *s)
{
	if (!s->crc)
		skip(s->c, "CRC is off on this stream");
}

/* An ordinary Send of 5 octets: FPDU of 2 + 18 + 5 + 3 PAD + 4. */
#define AT_LEN_LOW 2
#define AT_DDP_CTL 3
#define AT_RDMAP_CTL 4
#define AT_QN_LOW 12
#define AT_PAYLOAD 22
#define AT_PAD 26
#define AT_CRC 29

/* a: octet of the FPDU to damage behind the CRC's back. */
static void damaged(struct ctx *c)
{
	struct fpdu_break b = { .flip_at = c->w->a };
	struct stream *s = full(c);
	struct seg g = mk_send(s, "hello", 5);

	need_crc(s);
	put_seg(s, &g, &b);
	blame_last(s);
	/* A damaged length needs octets behind it to be a whole FPDU. */
	if (c->w->a == AT_LEN_LOW) {
		g = mk_send(s, "again", 5);
		put_seg(s, &g, NULL);
	}
	shoot(s);
	EXPECT_END(s, TERM(MPA_CRC));
}

static void terminate_before_fin(struct ctx *c)
{
	struct fpdu_break b = { .crc_xor = 0x80 };
	struct stream *s = full(c);
	struct seg g = mk_send(s, "hello", 5);
	enum end e;

	need_crc(s);
	put_seg(s, &g, &b);
	shoot(s);
	e = wait_end(s, c->o->patience_ms, NULL);
	CHECK(c, e == END_TERM, "a Terminate, then the close",
	      e == END_QUIET ? "nothing" : "a bare close");
}

/* The target as it was, seen over the second stream. */
static void expect_unplaced(struct stream *s, struct stream *observer, int off,
			    uint32_t len, const char *what)
{
	nap_ms(100);
	CHECK(s->c, is_untouched(observer, REFL_RW, off, len), "nothing is placed",
	      "%s is visible in memory", what);
}

static void crc_before_placement(struct ctx *c)
{
	struct fpdu_break b = { .crc_xor = 1 };
	struct stream *s, *observer;
	struct seg g;

	pair(c, &s, &observer);
	need_crc(s);
	g = mk_write(s->t.r[REFL_RW].stag, s->t.r[REFL_RW].addr, TEXT8, 8);
	put_seg(s, &g, &b);
	shoot(s);
	wait_end(s, c->o->patience_ms, NULL);
	expect_unplaced(s, observer, 0, 8, "the payload of a bad-CRC Write");
}

/* The same, with the payload well ahead of the trailer. */
static void crc_before_placement_cut(struct ctx *c)
{
	struct fpdu_break b = { .crc_xor = 1 };
	struct stream *s, *observer;
	struct seg g;

	pair(c, &s, &observer);
	need_crc(s);
	g = mk_write(s->t.r[REFL_RW].stag, s->t.r[REFL_RW].addr, pattern(2000),
		     2000);
	put_seg(s, &g, &b);
	shoot_cut(s, 1500, 200);
	wait_end(s, c->o->patience_ms, NULL);
	expect_unplaced(s, observer, 0, 2000, "the payload of a bad-CRC Write");
}

static void nothing_after_error(struct ctx *c)
{
	struct fpdu_break b = { .crc_xor = 1 };
	struct stream *s, *observer;
	struct seg g;

	pair(c, &s, &observer);
	need_crc(s);
	g = mk_write(SINK_STAG, 0, NULL, 0);
	put_seg(s, &g, &b);
	blame_last(s);
	g = mk_write(s->t.r[REFL_RW].stag, s->t.r[REFL_RW].addr, TEXT8, 8);
	put_seg(s, &g, NULL);
	shoot(s);
	wait_end(s, c->o->patience_ms, NULL);
	expect_unplaced(s, observer, 0, 8, "a good Write behind a bad FPDU");
}

static void length_lies(struct ctx *c)
{
	struct fpdu_break b = { .len_add = 4 };
	struct stream *s = full(c);
	struct seg g = mk_send(s, "hello", 5);

	need_crc(s);
	put_seg(s, &g, &b);
	g = mk_send(s, "again", 5);
	put_seg(s, &g, NULL);
	shoot(s);
	expect_any_end(s, "a length that is not the FPDU's, under a right CRC");
}

static void pad_is_ignored(struct ctx *c)
{
	struct fpdu_break b = { .pad = { 0xff, 0xee, 0xdd } };
	struct stream *s = full(c);
	struct seg g = mk_send(s, "hello", 5);

	put_seg(s, &g, &b);
	shoot(s);
	expect_alive(s, "PAD that is not zero, under a right CRC");
}

/* a: opcode.  The FPDU is cut at each octet of its header in turn. */
static void header_cut(struct ctx *c)
{
	struct stream *s = full(c);
	const struct region *rw = &s->t.r[REFL_RW];
	uint8_t hdr[RDMA_READ_LEN];

	for (size_t at = 1; at <= 20; at++) {
		struct seg g;

		if (c->w->a == OP_WRITE)
			g = mk_write(rw->stag, rw->addr, pattern(9) + at, 8);
		else if (c->w->a == OP_SEND && at < 14)
			g = mk_send(s, TEXT8, 8);
		else
			g = mk_read(s, hdr, rw->stag, rw->addr, 8);
		put_seg(s, &g, NULL);
		shoot_cut(s, at, 20);
		if (g.op == OP_READ_REQ)
			expect_resp(s, 8, NULL);
	}
	expect_alive(s, "FPDUs cut inside their headers");
}

/* a: octets before the end. */
static void trailer_cut(struct ctx *c)
{
	struct stream *s = full(c);
	const struct region *rw = &s->t.r[REFL_RW];
	struct seg g = mk_write(rw->stag, rw->addr, "abcde", 5);
	uint8_t b[5];

	put_seg(s, &g, NULL);
	shoot_cut(s, s->out_len - c->w->a, 50);
	expect_alive(s, "an FPDU cut inside PAD and CRC");
	CHECK(c, read_peer(s, rw->stag, rw->addr, b, 5) &&
	      !memcmp(b, "abcde", 5), "the Write is placed", "it is not");
}

static void many_in_one(struct ctx *c)
{
	struct stream *s = full(c);
	const struct region *rw = &s->t.r[REFL_RW];
	uint8_t b[24];

	for (int i = 0; i < 3; i++) {
		struct seg g = mk_write(rw->stag, rw->addr + 8 * i,
					pattern(24) + 8 * i, 8);

		put_seg(s, &g, NULL);
	}
	shoot(s);
	CHECK(c, read_peer(s, rw->stag, rw->addr, b, 24) &&
	      !memcmp(b, pattern(24), 24), "three Writes of one TCP segment",
	      "not all are placed");
}

/* a: payload of one FPDU, b: octets of each TCP segment. */
static void one_in_many(struct ctx *c)
{
	struct stream *s = full(c);
	const struct region *big = &s->t.r[REFL_BIG];
	static uint8_t b[65536];
	struct seg g = mk_write(big->stag, big->addr, pattern(c->w->a), c->w->a);

	put_seg(s, &g, NULL);
	shoot_each(s, c->w->b, 0);
	CHECK(c, read_peer(s, big->stag, big->addr, b, c->w->a) &&
	      !memcmp(b, pattern(c->w->a), c->w->a),
	      "the Write of many TCP segments is placed", "it is not");
}

static void all_but_one(struct ctx *c)
{
	struct stream *s = full(c);
	struct seg g = mk_send(s, "hello", 5);

	put_seg(s, &g, NULL);
	shoot_cut(s, s->out_len - 1, 2000);
	expect_alive(s, "an FPDU whose last octet came two seconds late");
}

/*
 * a: ULPDU_Length; an FPDU too short for its headers.  Alone it is whole and
 * must be judged; b & 2: a good one behind it must not make it pass.
 */
static void runt_fpdu(struct ctx *c)
{
	struct stream *s = full(c);
	struct seg g = c->w->b & 1 ? mk_write(s->t.r[REFL_RW].stag,
					  s->t.r[REFL_RW].addr, NULL, 0) :
				 mk_send(s, NULL, 0);
	uint8_t ulpdu[64], hdr[RDMA_READ_LEN];

	if (c->w->a > 18) {
		s->send_msn--;
		g = mk_read(s, hdr, SINK_STAG, 0, 0);
	}
	seg_encode(ulpdu, &g);
	put_raw(s, ulpdu, c->w->a, NULL);
	blame_none(s);
	if (c->w->b & 2) {
		g = mk_write(SINK_STAG, 0, NULL, 0);
		put_seg(s, &g, NULL);
	}
	shoot(s);
	expect_any_end(s, "a ULPDU shorter than its header");
}

static void largest_fpdu(struct ctx *c)
{
	struct stream *s = full(c);
	const struct region *big = &s->t.r[REFL_BIG];
	static uint8_t b[65536];
	size_t n = 65535 - DDP_TAGGED_LEN;
	struct seg g = mk_write(big->stag, big->addr, pattern(n), n);
	enum end e;

	put_seg(s, &g, NULL);
	shoot(s);
	if (read_peer(s, big->stag, big->addr, b, n)) {
		CHECK(c, !memcmp(b, pattern(n), n), "placed right",
		      "other octets are in memory");
		return;
	}
	e = wait_end(s, c->o->patience_ms, NULL);
	CHECK(c, e != END_QUIET, "placed, or a clean error", "neither");
}

/* a: RST instead of FIN, b: the rest of a message instead of an FPDU. */
static void lost_midway(struct ctx *c)
{
	static const uint8_t text[64] = "half a Send that is never delivered";
	struct stream *s, *observer;
	struct seg g;

	pair(c, &s, &observer);
	g = mk_send(s, text, sizeof(text));
	g.last = !c->w->b;
	put_seg(s, &g, NULL);
	if (!c->w->b)
		s->out_len /= 2;
	shoot(s);
	nap_ms(50);
	if (c->w->a)
		conn_rst(s->k);
	else
		conn_fin(s->k);
	wait_for_parting(observer);
	CHECK(c, !count_received(observer, text, 16), "the receive does not complete well",
	      "it completed as if the message were whole");
	expect_reconnect(c);
}

/* Waits until the peer has filled our receive buffer and stalls; 2 s at most. */
static void await_stall(struct conn *k)
{
	int before = -1, now = 0;

	for (int i = 0; i < 20 && (now != before || !now); i++) {
		before = now;
		nap_ms(100);
		if (ioctl(k->fd, FIONREAD, &now))
			return;
	}
}

/* Read Responses of many MB under way when our FIN arrives. */
static void half_close(struct ctx *c)
{
	uint8_t hdr[RDMA_READ_LEN];
	const struct region *big;
	struct stream *s;
	int n;

	c->rcvbuf = 65536; /* so that most is still unsent */
	s = full(c);
	big = &s->t.r[REFL_BIG];
	n = s->enhanced && s->their_enh.ird < 16 ? s->their_enh.ird : 16;
	for (int i = 0; i < n; i++) {
		struct seg g = mk_read(s, hdr, big->stag, big->addr, big->len);

		put_seg(s, &g, NULL);
	}
	shoot(s);
	await_stall(s->k);
	conn_fin(s->k);
	nap_ms(500);
	for (int i = 0; i < n; i++)
		expect_resp(s, big->len, NULL);
}

#define DAMAGED(row, what, at) { row, what, B, damaged, N_ULP, 0, at, 0 }
#define TRAILER(n) { "MPA-64", "cut" #n, B, trailer_cut, N_ULP, 0, n, 0 }

const struct wcase cases_fpdu[] = {
	{ "MPA-52", NULL, B, pad_is_ignored, N_ULP, 0, 0, 0 },
	DAMAGED("MPA-57", "length", AT_LEN_LOW),
	DAMAGED("MPA-57", "payload", AT_PAYLOAD),
	DAMAGED("MPA-57", "pad", AT_PAD), DAMAGED("MPA-57", "crc", AT_CRC),
	{ "MPA-58", "whole", B, crc_before_placement, N_ULP, 0, 0, 0 },
	{ "MPA-58", "cut", B, crc_before_placement_cut, N_ULP, 0, 0, 0 },
	DAMAGED("MPA-59", "dv", AT_DDP_CTL),
	DAMAGED("MPA-59", "opcode", AT_RDMAP_CTL),
	DAMAGED("MPA-59", "qn", AT_QN_LOW),
	{ "MPA-60", NULL, B, nothing_after_error, N_ULP, 0, 0, 0 },
	{ "MPA-61", NULL, B, terminate_before_fin, N_ULP, 0, 0, 0 },
	DAMAGED("MPA-62", "pad", AT_PAD + 1),
	{ "MPA-62", "length", B, length_lies, N_ULP, 0, 0, 0 },
	{ "MPA-63", "write", B, header_cut, N_ULP, 0, OP_WRITE, 0 },
	{ "MPA-63", "send", B, header_cut, N_ULP, 0, OP_SEND, 0 },
	{ "MPA-63", "read", B, header_cut, N_ULP, 0, OP_READ_REQ, 0 },
	TRAILER(1), TRAILER(2), TRAILER(3), TRAILER(4), TRAILER(5), TRAILER(6),
	TRAILER(7),
	{ "MPA-65", "three-in-one", B, many_in_one, N_ULP, 0, 0, 0 },
	{ "MPA-65", "60k-by-88", B, one_in_many, N_ULP, 0, 60000, 88 },
	{ "MPA-65", "60k-by-1448", B, one_in_many, N_ULP, 0, 60000, 1448 },
	{ "MPA-66", NULL, B, all_but_one, N_ULP, CASE_SLOW, 0, 0 },
	{ "MPA-67", NULL, B, runt_fpdu, N_ULP, 0, 0, 0 },
	{ "MPA-67", "then-good", B, runt_fpdu, N_ULP, 0, 0, 2 },
	{ "MPA-68", "len1", B, runt_fpdu, N_ULP, 0, 1, 0 },
	{ "MPA-68", "len1-then-good", B, runt_fpdu, N_ULP, 0, 1, 2 },
	{ "MPA-68", "len13", B, runt_fpdu, N_ULP, 0, 13, 1 },
	{ "MPA-68", "len17", B, runt_fpdu, N_ULP, 0, 17, 0 },
	{ "MPA-68", "read38", B, runt_fpdu, N_ULP, 0, 38, 0 },
	{ "MPA-68", "read38-then-good", B, runt_fpdu, N_ULP, 0, 38, 2 },
	{ "MPA-69", NULL, B, largest_fpdu, N_ULP, 0, 0, 0 },
	{ "MPA-78", "fin-fpdu", B, lost_midway, N_ULP, 0, 0, 0 },
	{ "MPA-78", "rst-fpdu", B, lost_midway, N_ULP, 0, 1, 0 },
	{ "MPA-78", "fin-message", B, lost_midway, N_ULP, 0, 0, 1 },
	{ "MPA-78", "rst-message", B, lost_midway, N_ULP, 0, 1, 1 },
	{ "MPA-79", NULL, B, half_close, N_ULP | N_IRD, 0, 0, 0 },
	{ "DDP-50", NULL, B, half_close, N_ULP | N_IRD, 0, 0, 0 },
	{ 0 },
};
