// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Two engines back to back: frames negotiated, then messages of random kinds and sizes in both
 * directions, cut for random room, delivered in random pieces. Each end must receive what the
 * other sent. The seed is printed; WEFT_SEED sets it.
 */
#include "rig.h"

enum { MAX_LEN = 40000, MESSAGES = 60 };

/* One direction: octets in flight, and the messages that they carry. */
struct pipe {
	u8 *buf;
	u32 len, got;
	struct weft_tx_msg sent[MESSAGES];
	u32 salt[MESSAGES];
	u32 nsent;
	/* the receiver's progress */
	u32 at;				/* message being received */
	u32 off;			/* octets of it placed */
	u32 seen;			/* events looked at */
};

static u8 data[MAX_LEN];

static const enum weft_opcode ops[] = {
	WEFT_OP_WRITE, WEFT_OP_READ_RESP, WEFT_OP_SEND, WEFT_OP_SEND_INV, WEFT_OP_SEND_SE,
	WEFT_OP_SEND_SE_INV, WEFT_OP_READ_REQ, WEFT_OP_ATOMIC_REQ, WEFT_OP_IMM,
};

static u32 random_len(void)
{
	switch (rnd_below(4)) {
	case 0:
		return 0;
	case 1:
		return rnd_below(64);
	case 2:
		return rnd_below(4096);
	}
	return rnd_below(MAX_LEN);
}

static struct weft_tx_msg random_message(u32 msn)
{
	struct weft_tx_msg m = { .op = ops[rnd_below(ARRAY_SIZE(ops))], .stag = rnd(),
				 .to = (u64)rnd() << 32 | rnd(), .msn = msn, .inv_stag = rnd() };

	m.ulp_len = (u8)weft_opcode_header_len(m.op);
	pattern(m.ulp, m.ulp_len, msn);
	if (!m.ulp_len)
		m.len = random_len();
	return m;
}

static void put_fpdu(struct weft_stream *st, struct pipe *p, const struct weft_tx_fpdu *f)
{
	u32 wire = weft_stream_tx_wire_len(st, f->ulpdu_len);
	struct weft_emit e;

	p->buf = realloc(p->buf, p->len + wire);
	weft_stream_tx_emit(st, f, &e, p->buf + p->len);
	weft_emit_bytes(&e, data + f->payload_off, f->payload_len);
	assert_int_equal(weft_emit_end(&e), wire);
	p->len += wire;
}

static void send_message(struct weft_stream *st, struct pipe *p)
{
	struct weft_tx_msg m = random_message(p->nsent + 1);
	u32 mulpdu = 128 + rnd_below(rnd_below(2) ? 2000 : 64768 - 128 + 1);

	assert_true(weft_stream_may_send(st));
	p->sent[p->nsent] = m;
	p->salt[p->nsent] = rnd();
	pattern(data, m.len, p->salt[p->nsent++]);
	while (!weft_tx_msg_finished(&m)) {
		struct weft_tx_fpdu f;
		u32 max = mulpdu;

		if (rnd_below(3) == 0)
			max = weft_stream_tx_max_ulpdu(st, 200 + rnd_below(1300));
		weft_stream_tx(&m, max, &f);
		put_fpdu(st, p, &f);
	}
}

static void check_segment(const struct event *e, const struct weft_tx_msg *m, u32 salt, u32 off)
{
	u32 skip = m->ulp_len;

	assert_int_equal(weft_rdmap_opcode(e->ddp.rdmap), m->op);
	assert_int_equal(e->ddp.tagged, weft_opcode_is_tagged(m->op));
	if (e->ddp.tagged) {
		assert_int_equal(e->ddp.stag, m->stag);
		assert_true(e->ddp.to == m->to + off);
	} else {
		assert_int_equal(e->ddp.msn, m->msn);
		assert_int_equal(e->ddp.mo, off);
		assert_int_equal(e->ddp.inv_stag, weft_opcode_invalidates(m->op) ? m->inv_stag : 0);
	}
	assert_memory_equal(e->data, m->ulp, skip);
	pattern(data, m->len, salt);
	assert_memory_equal(e->data + skip, data + off, e->len - skip);
	assert_int_equal(e->ddp.last, off + e->len - skip == m->len);
}

static void check_events(struct host *h, struct pipe *p)
{
	for (; p->seen < h->n; p->seen++) {
		const struct event *e = &h->log[p->seen];

		assert_int_equal(e->ev, WEFT_RX_FPDU);
		assert_true(p->at < p->nsent);
		check_segment(e, &p->sent[p->at], p->salt[p->at], p->off);
		p->off += e->len - p->sent[p->at].ulp_len;
		if (e->ddp.last) {
			p->at++;
			p->off = 0;
		}
	}
}

/* Delivers up to @max of the octets in flight, in one to four pieces. */
static void deliver(struct host *h, struct pipe *p, u32 max)
{
	u32 n = min_t(u32, max, p->len - p->got), used = 0;
	struct weft_seg seg[4];
	u8 *copy = malloc(n + 1);	/* its own memory: the sanitizer sees overruns */

	if (n)
		memcpy(copy, p->buf + p->got, n);
	for (u32 i = 0; i < 4; i++) {
		u32 len = i == 3 ? n - used : rnd_below(n - used + 1);

		seg[i] = (struct weft_seg){ copy + used, len };
		used += len;
	}
	host_deliver(h, seg, 4);
	free(copy);
	p->got += n;
	check_events(h, p);
}

static void agree(struct host *i, struct host *r)
{
	struct weft_mpa_cfg ic = { .rev = 1 + rnd_below(2), .crc = rnd() & 1, .markers = rnd() & 1,
				   .rtr = WEFT_RTR_ALL, .ird = 4, .ord = 4 };
	struct weft_mpa_cfg rc = { .rev = 2, .crc = rnd() & 1, .markers = rnd() & 1,
				   .rtr = WEFT_RTR_ALL, .ird = 4, .ord = 4 };
	struct weft_mpa_frame req, rep;
	struct weft_mpa_agreed ia, ra;
	u8 buf[WEFT_MPA_FRAME_MAX];
	bool retry;

	weft_mpa_request(&ic, 3, &req);
	host_bytes(r, buf, weft_mpa_frame_write(&req, "abc", buf, sizeof(buf)));
	assert_int_equal(host_last(r, 1, WEFT_RX_STARTUP)->len, 3);
	assert_int_equal(weft_mpa_request_check(&rc, &r->st.frame), WEFT_OK);
	weft_mpa_reply(&rc, &r->st.frame, false, 2, &rep, &ra);
	weft_stream_start(&r->st, &ra);
	host_bytes(i, buf, weft_mpa_frame_write(&rep, "de", buf, sizeof(buf)));
	host_last(i, 1, WEFT_RX_STARTUP);
	assert_int_equal(weft_mpa_reply_check(&ic, &req, &i->st.frame, &ia, &retry), WEFT_OK);
	weft_stream_start(&i->st, &ia);
	assert_int_equal(ia.crc, ra.crc);
	i->st.ext = true;
	r->st.ext = true;
}

static void converse(void)
{
	struct host h[2];
	struct pipe p[2] = { 0 };	/* p[k] leads to h[k] */
	u32 limit = rnd_below(2) ? 3000 : 100000;

	host_init(&h[0], true, NULL);
	host_init(&h[1], false, NULL);
	agree(&h[0], &h[1]);
	p[0].seen = 1;
	p[1].seen = 1;
	while (p[1].at < MESSAGES || p[0].at < MESSAGES) {
		u32 k = rnd_below(2);

		if (p[k].nsent < MESSAGES && weft_stream_may_send(&h[!k].st) && rnd_below(2))
			send_message(&h[!k].st, &p[k]);
		deliver(&h[k], &p[k], rnd_below(limit));
	}
	for (u32 k = 0; k < 2; k++) {
		assert_int_equal(p[k].got, p[k].len);
		assert_int_equal(h[k].st.rx_fpdus, h[k].n - 1);
		host_free(&h[k]);
		free(p[k].buf);
	}
}

static void what_one_end_sends_the_other_gets(void **state)
{
	(void)state;
	rnd_seed(__func__);
	for (int round = 0; round < 60; round++)
		converse();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_one_end_sends_the_other_gets),
	};

	return cmocka_run_group_tests_name("roundtrip", tests, NULL, NULL);
}
