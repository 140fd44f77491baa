/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include "bytes.h"
#include "lint.h"
#include "stream.h"

struct stream *stream_new(struct ctx *c, struct conn *k)
{
	struct stream *s = calloc(1, sizeof(*s));

	if (!s)
		abort();
	s->c = c;
	s->k = k;
	s->send_msn = s->read_msn = 1;
	s->id = c->streams ? c->streams->id + 1 : 1;
	s->next = c->streams;
	c->streams = s;
	return s;
}

void stream_start(struct stream *s)
{
	struct tcp_info ti;
	socklen_t len = sizeof(ti);

	s->crc = (s->mine.flags | s->theirs.flags) & MPA_C;
	s->tx = (struct fpdu_tx){ .crc = s->crc,
				  .markers = s->theirs.flags & MPA_M };
	s->rx.markers = s->mine.flags & MPA_M;
	if (s->c->maxseg &&
	    !getsockopt(s->k->fd, IPPROTO_TCP, TCP_INFO, &ti, &len))
		s->emss = s->c->maxseg -
			  (ti.tcpi_options & TCPI_OPT_TIMESTAMPS ? 12 : 0);
}

static void reserve_output(struct stream *s, size_t more)
{
	if (s->out_len + more <= s->out_cap)
		return;
	s->out_cap = (s->out_len + more) * 2;
	s->out = realloc(s->out, s->out_cap);
	if (!s->out)
		abort();
}

static void log_segment(struct stream *s, char dir, const struct seg *g,
			const char *extra)
{
	char what[120];

	seg_print(what, sizeof(what), g);
	say(s->c, "%c [%d] FPDU %s%s", dir, s->id, what, extra);
}

void blame_last(struct stream *s)
{
	s->off_fixed = true;
}

void blame_none(struct stream *s)
{
	s->off_fixed = true;
	s->off.head_len = 0;
}

static void remember_offender(struct stream *s, const uint8_t *ulpdu, size_t len)
{
	if (s->off_fixed)
		return;
	s->off.head_len = len < HEAD_COPY ? len : HEAD_COPY;
	s->off.ulpdu_len = len;
	memcpy(s->off.head, ulpdu, s->off.head_len);
}

void put_raw(struct stream *s, const uint8_t *ulpdu, size_t len,
	     const struct fpdu_break *b)
{
	struct seg g;

	reserve_output(s, FPDU_WIRE_MAX);
	s->out_len += fpdu_build(&s->tx, s->out + s->out_len, ulpdu, len, b);
	remember_offender(s, ulpdu, len);
	if (seg_decode(ulpdu, len, &g))
		say(s->c, "< [%d] FPDU runt of %zu octets", s->id, len);
	else
		log_segment(s, '<', &g, b ? " (broken framing)" : "");
}

void put_seg(struct stream *s, const struct seg *g, const struct fpdu_break *b)
{
	static uint8_t ulpdu[FPDU_ULPDU_MAX + 64];

	put_raw(s, ulpdu, seg_encode(ulpdu, g), b);
}

void put_bytes(struct stream *s, const void *p, size_t len)
{
	reserve_output(s, len);
	memcpy(s->out + s->out_len, p, len);
	s->out_len += len;
}

/* A peer that has closed already is judged by what is read, not by EPIPE. */
static void send_octets(struct stream *s, const uint8_t *p, size_t len)
{
	if (s->k->fd >= 0 && conn_send(s->k, p, len, s->c->o->timeout_ms))
		say(s->c, "- [%d] send of %zu octets: peer does not take them",
		    s->id, len);
}

void shoot(struct stream *s)
{
	send_octets(s, s->out, s->out_len);
	s->out_len = 0;
}

void shoot_cut(struct stream *s, size_t at, int gap_ms)
{
	if (at > s->out_len)
		at = s->out_len;
	say(s->c, "- [%d] TCP segments of %zu and %zu octets", s->id, at,
	    s->out_len - at);
	send_octets(s, s->out, at);
	nap_ms(gap_ms);
	send_octets(s, s->out + at, s->out_len - at);
	s->out_len = 0;
}

void shoot_each(struct stream *s, size_t piece, int gap_ms)
{
	for (size_t i = 0; i < s->out_len; i += piece) {
		send_octets(s, s->out + i,
			    s->out_len - i < piece ? s->out_len - i : piece);
		if (gap_ms)
			nap_ms(gap_ms);
	}
	s->out_len = 0;
}

static void keep_terminate(struct stream *s)
{
	const struct seg *g = &s->m.s;
	char what[80];

	s->term_len = g->len < sizeof(s->term_raw) ? g->len :
						     sizeof(s->term_raw);
	memcpy(s->term_raw, g->data, s->term_len);
	if (term_decode(s->term_raw, s->term_len, s->c->facts->quirk, &s->term)) {
		say(s->c, "> [%d] Terminate without a control word", s->id);
		return;
	}
	term_print(what, sizeof(what), &s->term);
	say(s->c, "> [%d] Terminate %s", s->id, what);
}

static void decode_and_lint(struct stream *s)
{
	struct in *m = &s->m;

	s->nin++;
	m->runt = seg_decode(m->f.ulpdu, m->f.len, &m->s) != 0;
	if (m->runt)
		say(s->c, "> [%d] FPDU runt of %zu octets", s->id, m->f.len);
	else if (m->s.op != OP_TERM || m->s.tagged)
		log_segment(s, '>', &m->s, s->crc && !m->f.crc_ok ? " BAD CRC" : "");
	lint_fpdu(s);
	if (!m->runt && !m->s.tagged && m->s.op == OP_TERM && !s->had_term) {
		keep_terminate(s);
		s->had_term = true;
	}
}

static enum rx log_end(struct stream *s)
{
	if (s->k->state == CONN_UP)
		return RX_QUIET;
	say(s->c, "> [%d] %s", s->id, s->k->state == CONN_FIN ? "FIN" : "RST");
	if (s->k->rx_len)
		say(s->c, "> [%d] %zu octets of an FPDU that never ended", s->id,
		    s->k->rx_len);
	return s->k->state == CONN_FIN ? RX_FIN : RX_RST;
}

/*
 * By hand the peer's device asks, by Reads of no octets that no ULP has posted, whether all before has been
 * taken in. Its first may be the RTR that was agreed on.
 */
static bool is_ask(const struct stream *s)
{
	const struct in *m = &s->m;
	struct rreq r;

	if (!s->c->o->by_hand || m->runt || m->s.tagged || m->s.op != OP_READ_REQ ||
	    m->s.len < RDMA_READ_LEN)
		return false;
	if (s->nin == 1 && s->c->role == ROLE_I && s->my_enh.a && s->my_enh.d)
		return false;
	rreq_decode(m->s.data, &r);
	return !r.size;
}

/* Beside what the case says, which is what a Terminate is about. */
static void answer_ask(struct stream *s)
{
	struct offender off = s->off;
	struct rreq r;
	struct seg g;

	rreq_decode(s->m.s.data, &r);
	g = mk_resp(&r, 0, NULL, 0, true);
	put_seg(s, &g, NULL);
	if (s->out_len)
		shoot(s);
	s->off = off;
	s->hand.asks++;
}

enum rx receive(struct stream *s, int ms)
{
	double end = now() + ms / 1000.0;

	for (;;) {
		size_t n = fpdu_parse(&s->rx, s->k->rx, s->k->rx_len, &s->m.f);
		int left = (int)((end - now()) * 1000);

		if (n) {
			bool asked;

			decode_and_lint(s);
			asked = is_ask(s);
			if (asked)
				answer_ask(s);
			conn_take(s->k, n);
			if (asked)
				continue;
			return RX_FPDU;
		}
		if (!conn_recv(s->k, left > 0 ? left : 0) &&
		    (left <= 0 || s->k->state != CONN_UP))
			return log_end(s);
	}
}

struct seg mk_send(struct stream *s, const void *p, size_t len)
{
	return (struct seg){ .last = true, .dv = 1, .rv = 1, .op = OP_SEND,
			     .msn = s->send_msn++, .data = p, .len = len };
}

struct seg mk_write(uint32_t stag, uint64_t to, const void *p, size_t len)
{
	return (struct seg){ .tagged = true, .last = true, .dv = 1, .rv = 1,
			     .op = OP_WRITE, .stag = stag, .to = to,
			     .data = p, .len = len };
}

struct seg mk_read(struct stream *s, uint8_t *hdr, uint32_t stag, uint64_t to,
		   uint32_t size)
{
	struct rreq r = { .sink_stag = SINK_STAG, .sink_to = SINK_TO,
			  .size = size, .src_stag = stag, .src_to = to };

	rreq_encode(hdr, &r);
	return (struct seg){ .last = true, .dv = 1, .rv = 1, .op = OP_READ_REQ,
			     .qn = QN_READ, .msn = s->read_msn++, .data = hdr,
			     .len = RDMA_READ_LEN };
}

struct seg mk_atomic(struct stream *s, uint8_t *hdr, const struct atomic *a)
{
	atomic_encode(hdr, a);
	return (struct seg){ .last = true, .dv = 1, .rv = 1,
			     .op = OP_ATOMIC_REQ, .qn = QN_READ,
			     .msn = s->read_msn++, .data = hdr,
			     .len = ATOMIC_REQ_LEN };
}

struct seg mk_resp(const struct rreq *r, uint32_t off, const void *p, size_t n,
		   bool last)
{
	return (struct seg){ .tagged = true, .last = last, .dv = 1, .rv = 1,
			     .op = OP_READ_RESP, .stag = r->sink_stag,
			     .to = r->sink_to + off, .data = p, .len = n };
}
