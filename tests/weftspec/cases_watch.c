/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Rows that only watch the peer's own stream. */
#include "cases.h"

uint8_t serve_byte(uint64_t to)
{
	return (uint8_t)(to * 11 + 5);
}

const uint8_t *pattern(size_t n)
{
	static uint8_t p[1 << 20];

	if (!p[1])
		for (size_t i = 0; i < sizeof(p); i++)
			p[i] = (uint8_t)(i * 13 + (i >> 8) + 1);
	return p;
}

void serve_read(struct stream *s)
{
	static uint8_t data[1 << 16];
	struct rreq r;
	uint32_t off = 0;

	rreq_decode(s->m.s.data, &r);
	do {
		uint32_t n = r.size - off < 1024 ? r.size - off : 1024;
		struct seg g = mk_resp(&r, off, data, n, off + n == r.size);

		for (uint32_t i = 0; i < n; i++)
			data[i] = serve_byte(r.src_to + off + i);
		send_seg(s, &g);
		off += n;
	} while (off < r.size);
}

void serve_until(struct stream *s, uint32_t seq, bool done)
{
	for (;;) {
		if (receive(s, s->c->o->timeout_ms) != RX_FPDU)
			fail(s->c, "the peer sends what the reflector posts",
			     "the stream ended or stalled");
		if (s->m.s.op == OP_READ_REQ && s->m.s.len >= RDMA_READ_LEN)
			serve_read(s);
		else if (done ? is_done(s, seq) : is_ack(s, seq))
			return;
	}
}

static void peer_sends(struct stream *s, uint32_t count, uint32_t len,
		       uint16_t flags)
{
	struct cmd k = { .op = REFL_SEND, .count = count, .len = len,
			 .flags = flags };

	serve_until(s, command(s, &k), false);
}

static void peer_tagged(struct stream *s, uint16_t op, uint32_t len)
{
	struct cmd k = { .op = op, .count = 1, .len = len, .stag = SINK_STAG,
			 .to = 0x10000 };

	serve_until(s, command(s, &k), op == REFL_READ);
}

void traffic(struct ctx *c, struct stream *s)
{
	const struct region *big = &s->t.r[REFL_BIG];
	static uint8_t buf[100000];
	uint32_t large = c->maxseg && c->maxseg < 500 ? 8000 : 100000;

	for (uint32_t n = 0; n < 5; n++)
		peer_sends(s, 1, n, 0);
	peer_sends(s, 3, 100, REFL_CF_SE);
	peer_sends(s, 1, large, 0);
	peer_tagged(s, REFL_WRITE, 5);
	peer_tagged(s, REFL_WRITE, 0);
	peer_tagged(s, REFL_WRITE, large);
	for (uint32_t n = 0; n < 4; n++)
		CHECK(c, read_peer(s, big->stag, big->addr, buf, n),
		      "a Read is answered", "%u octets: no", n);
	CHECK(c, read_peer(s, big->stag, big->addr, buf, large),
	      "a Read is answered", "%u octets: no", large);
	if (!s->enhanced || s->my_enh.ird)
		peer_tagged(s, REFL_READ, 64);
}

void watch(struct ctx *c)
{
	struct stream *s;

	c->maxseg = c->w->a;
	s = full(c);
	traffic(c, s);
	lint_verdict(c, c->w->row);
}

/* Only the start-up frame is looked at. */
static void watch_frame(struct ctx *c)
{
	if (c->role == ROLE_R)
		open_hs(c, NULL);
	else
		answer_only(take_request(c, ""), NULL);
	lint_verdict(c, c->w->row);
}

#define WATCH(row) { row, NULL, B, watch, N_ULP, 0, 0, 0 }

const struct wcase cases_watch[] = {
	{ "MPA-03", NULL, I, watch_frame, 0, 0, 0, 0 },
	{ "MPA-04", NULL, R, watch_frame, 0, 0, 0, 0 },
	{ "MPA-16", NULL, B, watch_frame, 0, 0, 0, 0 },
	{ "MPA-26", NULL, B, watch_frame, 0, 0, 0, 0 },
	{ "ENH-01", "words", I, watch_frame, 0, 0, 0, 0 },
	{ "ENH-02", NULL, I, watch_frame, 0, 0, 0, 0 },
	WATCH("MPA-50"), WATCH("MPA-51"), WATCH("MPA-53"), WATCH("MPA-56"),
	{ "MPA-54", "mss1460", B, watch, N_ULP, 0, 1460, 0 },
	{ "MPA-54", "mss536", B, watch, N_ULP, 0, 536, 0 },
	{ "MPA-54", "mss88", B, watch, N_ULP, 0, 88, 0 },
	{ "MPA-53", "mss1460", B, watch, N_ULP, 0, 1460, 0 },
	WATCH("DDP-01"), WATCH("DDP-04"), WATCH("DDP-06"), WATCH("DDP-10"),
	WATCH("DDP-11"), WATCH("DDP-16"), WATCH("RDM-01"), WATCH("RDM-04"),
	WATCH("RDM-12"),
	{ "DDP-02", NULL, B, watch, N_ULP, 0, 1460, 0 },
	{ "DDP-03", NULL, B, watch, N_ULP, 0, 1460, 0 },
	{ "DDP-09", NULL, B, watch, N_ULP, 0, 1460, 0 },
	{ "DDP-13", NULL, B, watch, N_ULP, 0, 1460, 0 },
	{ "DDP-14", NULL, B, watch, N_ULP, 0, 1460, 0 },
	{ 0 },
};
