/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <string.h>

#include "bytes.h"
#include "refl.h"

uint8_t *refl_request(struct ctx *c, uint8_t *out)
{
	out = put32(out, REFL_MAGIC_REQUEST);
	out = put16(out, REFL_VERSION);
	out = put16(out, c->refl_flags);
	out = put64(out, c->cookie);
	out = put16(out, c->reply_pd);
	return put16(out, c->recv_count);
}

static void read_regions(const uint8_t *p, size_t n, struct table *t)
{
	for (size_t i = 0; i < n && i < REFL_REGIONS; i++, p += 16) {
		t->r[i].addr = get64(p);
		t->r[i].len = get32(p + 8);
		t->r[i].stag = get32(p + 12);
	}
}

void refl_take_table(struct stream *s, const uint8_t *p, size_t len)
{
	size_t n;

	if (s->c->o->no_reflector || len < REFL_TABLE_HEAD ||
	    get32(p) != REFL_MAGIC_TABLE || get16(p + 4) != REFL_VERSION)
		return;
	n = get16(p + 6);
	if (n < REFL_REGIONS || len < REFL_TABLE_HEAD + 16 * n)
		return;
	s->t.caps = get32(p + 8);
	s->t.recv_count = get16(p + 12);
	s->t.recv_size = get16(p + 14);
	s->t.status = get64(p + 16);
	s->t.recv = get64(p + 24);
	read_regions(p + REFL_TABLE_HEAD, n, &s->t);
	s->t.valid = true;
}

void refl_read_table(struct stream *s)
{
	size_t skip = s->enhanced ? MPA_ENH : 0;

	if (s->pd_len >= skip)
		refl_take_table(s, s->pd + skip, s->pd_len - skip);
}

static bool is_send(const struct seg *g)
{
	return !g->tagged && (g->op == OP_SEND || g->op == OP_SEND_SE);
}

/* What a device keeps of the ORD for its own questions. */
#define ASKS 2

/* The device's question about the HELLO, if it can ask one, is no part of what the case begins. */
static bool is_asked_about_it(struct stream *s)
{
	double end = now() + s->c->o->timeout_ms / 1000.0;

	if (s->my_enh.ird < ASKS)
		return true;
	while (!s->hand.asks && now() < end && s->k->state == CONN_UP)
		if (receive(s, 10) == RX_FPDU)
			return false;
	return s->hand.asks;
}

bool refl_take_hello(struct stream *s)
{
	while (receive(s, s->c->o->timeout_ms) == RX_FPDU)
		if (is_send(&s->m.s) && s->m.s.len >= 4 &&
		    get32(s->m.s.data) == REFL_MAGIC_HELLO)
			return !s->c->o->by_hand || is_asked_about_it(s);
	return false;
}

uint32_t command(struct stream *s, const struct cmd *k)
{
	uint8_t b[REFL_CMD_LEN] = { 0 }, *p = b;
	struct seg g = mk_send(s, b, sizeof(b));

	p = put32(p, REFL_MAGIC_CMD);
	p = put16(p, k->op);
	p = put16(p, k->flags);
	p = put32(p, ++s->cmd_seq);
	p = put32(p, k->count);
	p = put32(p, k->len);
	p = put32(p, k->stag);
	p = put64(p, k->to);
	p = put64(p, k->arg);
	put64(p, k->arg2);
	send_seg(s, &g);
	return s->cmd_seq;
}

static bool is_note(const struct stream *s, uint32_t magic, uint32_t seq)
{
	const struct seg *g = &s->m.s;

	return is_send(g) && g->len >= REFL_ACK_LEN && get32(g->data) == magic &&
	       get32(g->data + 4) == seq;
}

bool is_ack(const struct stream *s, uint32_t seq)
{
	return is_note(s, REFL_MAGIC_ACK, seq);
}

bool is_done(const struct stream *s, uint32_t seq)
{
	return is_note(s, REFL_MAGIC_DONE, seq);
}

uint32_t command_ack(struct stream *s, uint32_t seq)
{
	while (receive(s, s->c->o->timeout_ms) == RX_FPDU) {
		if (!is_ack(s, seq))
			continue;
		if (get32(s->m.s.data + 8))
			skip(s->c, "the reflector could not: error %u",
			     get32(s->m.s.data + 8));
		return get32(s->m.s.data + 12);
	}
	fail(s->c, "the reflector acknowledges a command", "no ACK came");
}

uint32_t command_wait(struct stream *s, const struct cmd *k)
{
	return command_ack(s, command(s, k));
}

uint8_t refl_fill(enum refl_region r, size_t i)
{
	return (uint8_t)(7 * i + 31 * r + 13);
}

bool read_peer(struct stream *s, uint32_t stag, uint64_t to, void *buf,
	       uint32_t len)
{
	uint8_t hdr[RDMA_READ_LEN];
	struct seg g = mk_read(s, hdr, stag, to, len);
	uint32_t got = 0;

	send_seg(s, &g);
	while (receive(s, s->c->o->patience_ms) == RX_FPDU) {
		const struct seg *m = &s->m.s;

		if (!m->tagged || m->op != OP_READ_RESP || m->stag != SINK_STAG)
			continue;
		if (m->to != SINK_TO + got || m->len > len - got)
			return false;
		memcpy((uint8_t *)buf + got, m->data, m->len);
		got += m->len;
		if (m->last)
			return got == len;
	}
	return false;
}

void peek(struct stream *s, uint64_t addr, void *buf, uint32_t len)
{
	if (!read_peer(s, s->t.r[REFL_ALL].stag, addr, buf, len))
		fail(s->c, "the peer's memory can be read on a sound stream",
		     "the Read was not answered");
}

bool is_untouched(struct stream *s, enum refl_region r, int off, uint32_t len)
{
	uint8_t b[4096];

	peek(s, s->t.r[r].addr + off, b, len);
	for (uint32_t i = 0; i < len; i++)
		if (b[i] != refl_fill(r, off + i))
			return false;
	return true;
}

void poke(struct stream *s, uint32_t stag, uint64_t to, const void *p, size_t n)
{
	struct seg g = mk_write(stag, to, p, n);

	send_seg(s, &g);
}

static void event_read(const uint8_t *p, struct event *e)
{
	e->conn = get16(p);
	e->kind = p[2];
	e->status = p[3];
	e->opcode = get32(p + 4);
	e->len = get32(p + 8);
	e->imm = get32(p + 12);
	memcpy(e->head, p + 16, 16);
}

unsigned int read_events(struct stream *s, struct event *e, unsigned int max)
{
	static uint8_t b[REFL_STATUS_HEAD + REFL_EVENTS * REFL_EVENT_LEN];
	uint32_t n;

	peek(s, s->t.status, b, sizeof(b));
	CHECK(s->c, get32(b) == REFL_MAGIC_STATUS, "the status block",
	      "something else");
	n = get32(b + 4);
	n = n < max ? n : max;
	n = n < REFL_EVENTS ? n : REFL_EVENTS;
	for (uint32_t i = 0; i < n; i++)
		event_read(b + REFL_STATUS_HEAD + i * REFL_EVENT_LEN, &e[i]);
	return n;
}

unsigned int wait_for_events(struct stream *s, struct event *e, unsigned int least)
{
	unsigned int n = 0;

	/* The ULP learns of a receive some time after the wire is done. */
	for (int ms = 0; ms < s->c->o->patience_ms; ms += 50) {
		n = read_events(s, e, REFL_EVENTS);
		if (n >= least)
			break;
		nap_ms(50);
	}
	return n;
}

static bool has_parted(struct stream *s)
{
	struct event e[REFL_EVENTS];
	unsigned int n = read_events(s, e, REFL_EVENTS);

	while (n)
		if (e[--n].kind == REFL_EV_CM)
			return true;
	return false;
}

void wait_for_parting(struct stream *s)
{
	int most = s->c->o->by_hand ? 300 : s->c->o->patience_ms;

	for (int ms = 0; ms < most && !has_parted(s); ms += 50)
		nap_ms(50);
}

unsigned int count_received(struct stream *s, const void *head, size_t n)
{
	struct event e[REFL_EVENTS];
	unsigned int all = read_events(s, e, REFL_EVENTS), hit = 0;

	for (unsigned int i = 0; i < all; i++)
		hit += e[i].kind == REFL_EV_RECV && !e[i].status &&
		       e[i].len >= n && !memcmp(e[i].head, head, n < 16 ? n : 16);
	return hit;
}
