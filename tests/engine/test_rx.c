// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Receiving in Full Operation: which events are reported, which errors, and in which order. */
#include <pthread.h>

#include "rig.h"

static u8 ulpdu[70000];

static struct host run_as(const struct weft_mpa_agreed *agreed, bool ext, const struct ref_wire *w)
{
	struct scenario s = { .initiator = true, .ext = ext, .agreed = agreed,
			      .bytes = w->buf, .len = w->len };
	struct host h;

	each_delivery(&s, 200, &h);
	return h;
}

static struct host run(const struct ref_wire *w)
{
	return run_as(w->crc ? &crc_agreed : &plain_agreed, false, w);
}

static void a_send_is_reported_with_header_and_payload(void **state)
{
	for (int crc = 0; crc < 2; crc++) {
		struct ref_wire w;
		struct host h;
		const struct event *e;

		(void)state;
		ref_init(&w, crc, false);
		ref_fpdu(&w, ulpdu, ulpdu_untagged(ulpdu, WEFT_OP_SEND_SE, 0, 7, 100, false,
						   "payload", 7));
		h = run(&w);
		e = host_last(&h, 1, WEFT_RX_FPDU);
		assert_true(!e->ddp.tagged && !e->ddp.last && e->ddp.dv == 1);
		assert_int_equal(weft_rdmap_opcode(e->ddp.rdmap), WEFT_OP_SEND_SE);
		assert_int_equal(e->ddp.msn, 7);
		assert_int_equal(e->ddp.mo, 100);
		assert_int_equal(e->ulpdu_len, 25);
		assert_int_equal(e->raw_len, 18);
		assert_memory_equal(e->raw, ulpdu, 18);
		assert_int_equal(e->len, 7);
		assert_memory_equal(e->data, "payload", 7);
		assert_int_equal(h.st.rx_fpdus, 1);
		host_free(&h);
		ref_free(&w);
	}
}

static void a_write_is_reported_with_stag_and_offset(void **state)
{
	struct ref_wire w;
	u8 data[200];
	struct host h;
	const struct event *e;

	(void)state;
	pattern(data, sizeof(data), 1);
	ref_init(&w, true, false);
	ref_fpdu(&w, ulpdu, ulpdu_tagged(ulpdu, WEFT_OP_WRITE, 0xAABBCCDD, 0xFFFFFFFFFFFFFFF8,
					 true, data, sizeof(data)));
	h = run(&w);
	e = host_last(&h, 1, WEFT_RX_FPDU);
	assert_true(e->ddp.tagged && e->ddp.last);
	assert_int_equal(e->ddp.stag, 0xAABBCCDD);
	assert_true(e->ddp.to == 0xFFFFFFFFFFFFFFF8);
	assert_int_equal(e->raw_len, 14);
	assert_memory_equal(e->raw, ulpdu, 14);
	assert_int_equal(e->len, 200);
	assert_memory_equal(e->data, data, 200);
	host_free(&h);
	ref_free(&w);
}

static void each_pad_length_is_stripped(void **state)
{
	struct ref_wire w;
	u8 data[40];
	struct host h;

	(void)state;
	pattern(data, sizeof(data), 2);
	ref_init(&w, true, false);
	for (u32 n = 0; n < 8; n++)
		ref_fpdu(&w, ulpdu, ulpdu_tagged(ulpdu, WEFT_OP_WRITE, 1, n, true, data, n));
	h = run(&w);
	assert_int_equal(h.n, 8);
	for (u32 n = 0; n < 8; n++) {
		assert_int_equal(h.log[n].ev, WEFT_RX_FPDU);
		assert_true(h.log[n].ddp.to == n);
		assert_int_equal(h.log[n].len, n);
		assert_memory_equal(h.log[n].data, data, n);
	}
	host_free(&h);
	ref_free(&w);
}

static void pad_octets_matter_to_the_crc_only(void **state)
{
	struct ref_wire w;
	struct host h;

	(void)state;
	ref_init(&w, true, false);
	w.pad = 0xEE;
	ref_fpdu(&w, ulpdu, ulpdu_untagged(ulpdu, WEFT_OP_SEND, 0, 1, 0, true, "12345", 5));
	h = run(&w);
	host_last(&h, 1, WEFT_RX_FPDU);
	host_free(&h);
	/* Octet 25 is the first of PAD: changed after the CRC was computed, it is damage. */
	w.buf[25] ^= 1;
	h = run(&w);
	assert_int_equal(host_last(&h, 1, WEFT_RX_ERROR)->err, WEFT_E_MPA_CRC);
	host_free(&h);
	ref_free(&w);
}

static void each_damaged_bit_is_a_crc_error_and_nothing_else(void **state)
{
	struct ref_wire w;

	(void)state;
	ref_init(&w, true, false);
	ref_fpdu(&w, ulpdu, ulpdu_untagged(ulpdu, WEFT_OP_SEND, 0, 1, 0, true, "12345", 5));
	/* From the end of the length field on, the CRC's own octets included. */
	for (u32 bit = 16; bit < w.len * 8; bit++) {
		struct host h;
		const struct event *e;

		w.buf[bit / 8] ^= 1 << bit % 8;
		host_init(&h, true, &crc_agreed);
		host_bytes(&h, guarded(0, w.buf, w.len), w.len);
		e = host_last(&h, 1, WEFT_RX_ERROR);
		assert_int_equal(e->err, WEFT_E_MPA_CRC);
		assert_int_equal(e->raw_len, 0);
		assert_int_equal(h.st.rx_fpdus, 0);
		host_free(&h);
		w.buf[bit / 8] ^= 1 << bit % 8;
	}
	ref_free(&w);
}

static void a_damaged_length_ends_in_a_crc_error(void **state)
{
	struct ref_wire w;

	(void)state;
	for (u32 bit = 0; bit < 16; bit++) {
		struct host h;

		ref_init(&w, true, false);
		for (u32 n = 0; n < 1200; n++)
			ref_fpdu(&w, ulpdu, ulpdu_untagged(ulpdu, WEFT_OP_SEND, 0, n + 1, 0, true,
							   "1234567890123456789012345678901", 31));
		w.buf[bit / 8] ^= 1 << bit % 8;
		host_init(&h, true, &crc_agreed);
		host_bytes(&h, w.buf, w.len);
		assert_int_equal(host_last(&h, 1, WEFT_RX_ERROR)->err, WEFT_E_MPA_CRC);
		host_free(&h);
		ref_free(&w);
	}
}

static void with_crc_off_the_field_may_hold_anything(void **state)
{
	struct ref_wire w;
	struct host h;

	(void)state;
	ref_init(&w, false, false);
	w.crc_xor = 0xDEADBEEF;
	ref_fpdu(&w, ulpdu, ulpdu_untagged(ulpdu, WEFT_OP_SEND, 0, 1, 0, true, "12345", 5));
	h = run(&w);
	host_last(&h, 1, WEFT_RX_FPDU);
	host_free(&h);
	ref_free(&w);
}

struct short_row {
	u32 len;
	u8 op;
	bool tagged;
	u32 qn;
	enum weft_err err;		/* with RFC 7306 */
	u32 raw_len;
};

/* RFC 5044 has no code for it; AMB-5. Exact lengths next to them are fine. */
static const struct short_row shorts[] = {
	{ 0, 0, false, 0, WEFT_E_RDMAP_UNSPECIFIED, 0 },
	{ 1, WEFT_OP_SEND, false, 0, WEFT_E_RDMAP_UNSPECIFIED, 1 },
	{ 1, WEFT_OP_WRITE, true, 0, WEFT_E_RDMAP_UNSPECIFIED, 1 },
	{ 13, WEFT_OP_WRITE, true, 0, WEFT_E_RDMAP_UNSPECIFIED, 13 },
	{ 14, WEFT_OP_WRITE, true, 0, WEFT_OK, 14 },
	{ 14, WEFT_OP_SEND, false, 0, WEFT_E_RDMAP_UNSPECIFIED, 14 },
	{ 17, WEFT_OP_SEND, false, 0, WEFT_E_RDMAP_UNSPECIFIED, 17 },
	{ 18, WEFT_OP_SEND, false, 0, WEFT_OK, 18 },
	{ 18, WEFT_OP_READ_REQ, false, 1, WEFT_E_RDMAP_UNSPECIFIED, 18 },
	{ 38, WEFT_OP_READ_REQ, false, 1, WEFT_E_RDMAP_UNSPECIFIED, 38 },
	{ 45, WEFT_OP_READ_REQ, false, 1, WEFT_E_RDMAP_UNSPECIFIED, 45 },
	{ 46, WEFT_OP_READ_REQ, false, 1, WEFT_OK, 46 },
	{ 50, WEFT_OP_READ_REQ, false, 1, WEFT_OK, 50 },
	{ 19, WEFT_OP_SEND, false, 0, WEFT_OK, 18 },
	{ 25, WEFT_OP_IMM, false, 0, WEFT_E_RDMAP_UNSPECIFIED, 25 },
	{ 26, WEFT_OP_IMM, false, 0, WEFT_OK, 26 },
	{ 25, WEFT_OP_IMM_SE, false, 0, WEFT_E_RDMAP_UNSPECIFIED, 25 },
	{ 69, WEFT_OP_ATOMIC_REQ, false, 1, WEFT_E_RDMAP_UNSPECIFIED, 69 },
	{ 70, WEFT_OP_ATOMIC_REQ, false, 1, WEFT_OK, 70 },
	{ 29, WEFT_OP_ATOMIC_RESP, false, 3, WEFT_E_RDMAP_UNSPECIFIED, 29 },
	{ 30, WEFT_OP_ATOMIC_RESP, false, 3, WEFT_OK, 30 },
	{ 18, WEFT_OP_TERMINATE, false, 2, WEFT_OK, 18 },
	{ 19, WEFT_OP_TERMINATE, false, 2, WEFT_OK, 19 },
	{ 18 + 200, WEFT_OP_TERMINATE, false, 2, WEFT_OK, 70 },
	{ 14, WEFT_OP_READ_RESP, true, 0, WEFT_OK, 14 },
};

static void write_short(struct ref_wire *w, const struct short_row *r)
{
	static const u8 body[300];

	if (r->tagged)
		ulpdu_tagged(ulpdu, r->op, 1, 2, true, body, 300);
	else
		ulpdu_untagged(ulpdu, r->op, r->qn, 1, 0, true, body, 300);
	ref_fpdu(w, ulpdu, r->len);
}

static void a_ulpdu_shorter_than_its_headers_is_an_error_in_time(void **state)
{
	(void)state;
	for (u32 i = 0; i < ARRAY_SIZE(shorts); i++) {
		const struct short_row *r = &shorts[i];
		const struct event *e;
		struct ref_wire w;
		struct host h;

		print_message("# row %u\n", i);
		ref_init(&w, true, false);
		write_short(&w, r);
		h = run_as(&crc_agreed, true, &w);
		e = host_last(&h, 1, r->err ? WEFT_RX_ERROR : WEFT_RX_FPDU);
		assert_int_equal(e->err, r->err);
		assert_int_equal(e->raw_len, r->raw_len);
		assert_memory_equal(e->raw, ulpdu, e->raw_len);
		assert_int_equal(e->ulpdu_len, r->raw_len ? r->len : 0);
		/* Its DDP header is complete or, if it was cut, zero. */
		assert_int_equal(e->ddp.dv, r->len >= (r->tagged ? 14 : 18));
		host_free(&h);
		ref_free(&w);
	}
}

static void the_crc_is_judged_before_the_length(void **state)
{
	(void)state;
	for (u32 i = 0; i < ARRAY_SIZE(shorts); i++) {
		struct ref_wire w;
		struct host h;

		ref_init(&w, true, false);
		w.crc_xor = 1;
		write_short(&w, &shorts[i]);
		h = run_as(&crc_agreed, true, &w);
		assert_int_equal(host_last(&h, 1, WEFT_RX_ERROR)->err, WEFT_E_MPA_CRC);
		host_free(&h);
		ref_free(&w);
	}
}

/* A faulty header, and the fields of it that the Terminate needs. */
struct fault_row {
	u8 ctl, rdmap;
	u32 qn;
	enum weft_err err;
	u32 raw_len;
};

static const struct fault_row faults[] = {
	{ 0x42, 0x43, 0, WEFT_E_DDP_UVERSION, 18 }, { 0x40, 0x43, 0, WEFT_E_DDP_UVERSION, 18 },
	{ 0xC3, 0x40, 0, WEFT_E_DDP_TVERSION, 14 },
	{ 0x41, 0x43, 4, WEFT_E_DDP_QN, 18 },
	{ 0x41, 0x43, 3, WEFT_E_DDP_QN, 18 }, { 0x41, 0x03, 0, WEFT_E_RDMAP_VERSION, 18 },
	{ 0x41, 0xC3, 0, WEFT_E_RDMAP_VERSION, 18 }, { 0x41, 0x48, 0, WEFT_E_RDMAP_OPCODE, 70 },
	{ 0x41, 0x4F, 0, WEFT_E_RDMAP_OPCODE, 70 }, { 0x41, 0x40, 0, WEFT_E_RDMAP_OPCODE, 70 },
	{ 0xC1, 0x43, 0, WEFT_E_RDMAP_OPCODE, 14 }, { 0x41, 0x43, 1, WEFT_E_RDMAP_OPCODE, 18 },
	{ 0x41, 0x41, 0, WEFT_E_RDMAP_OPCODE, 70 },
};

static void a_faulty_header_stays_readable_for_the_terminate(void **state)
{
	u8 data[60];

	(void)state;
	pattern(data, sizeof(data), 4);
	for (u32 i = 0; i < ARRAY_SIZE(faults); i++) {
		struct ref_wire w;
		struct host h;
		const struct event *e;
		u32 len = ulpdu_untagged(ulpdu, 3, faults[i].qn, 9, 0, true, data, sizeof(data));

		ulpdu[0] = faults[i].ctl;
		ulpdu[1] = faults[i].rdmap;
		ref_init(&w, true, false);
		ref_fpdu(&w, ulpdu, len);
		h = run(&w);
		e = host_last(&h, 1, WEFT_RX_ERROR);
		assert_int_equal(e->err, faults[i].err);
		assert_int_equal(e->ulpdu_len, len);
		assert_int_equal(e->raw_len, faults[i].raw_len);
		assert_memory_equal(e->raw, ulpdu, e->raw_len);
		assert_int_equal(e->ddp.rdmap, faults[i].rdmap);
		assert_int_equal(e->ddp.qn, faults[i].ctl & 0x80 ? 0 : faults[i].qn);
		host_free(&h);
		ref_free(&w);
	}
}

static void rfc_7306_opcodes_need_the_feature(void **state)
{
	(void)state;
	for (int ext = 0; ext < 2; ext++) {
		struct ref_wire w;
		struct host h;

		ref_init(&w, true, false);
		ref_fpdu(&w, ulpdu, ulpdu_untagged(ulpdu, WEFT_OP_IMM, 0, 1, 0, true,
						   "12345678", 8));
		h = run_as(&crc_agreed, ext, &w);
		if (ext)
			assert_memory_equal(host_last(&h, 1, WEFT_RX_FPDU)->data, "12345678", 8);
		else
			assert_int_equal(host_last(&h, 1, WEFT_RX_ERROR)->err, WEFT_E_RDMAP_OPCODE);
		host_free(&h);
		ref_free(&w);
	}
}

/* RFC 5044 §8: "it MUST NOT pass or deliver any additional FPDUs". */
static void nothing_is_reported_after_an_error(void **state)
{
	static const enum weft_err kinds[] = { WEFT_E_MPA_CRC, WEFT_E_RDMAP_OPCODE };

	(void)state;
	for (u32 i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct ref_wire w;
		struct host h;

		ref_init(&w, true, false);
		ref_fpdu(&w, ulpdu, ulpdu_untagged(ulpdu, WEFT_OP_SEND, 0, 1, 0, true, "a", 1));
		w.crc_xor = i == 0;
		ref_fpdu(&w, ulpdu, ulpdu_untagged(ulpdu, i ? 14 : 3, 0, 2, 0, true, "b", 1));
		w.crc_xor = 0;
		ref_fpdu(&w, ulpdu, ulpdu_tagged(ulpdu, WEFT_OP_WRITE, 1, 0, true, "c", 1));
		h = run(&w);
		assert_int_equal(h.n, 2);
		assert_int_equal(h.log[0].ev, WEFT_RX_FPDU);
		assert_int_equal(host_last(&h, 2, WEFT_RX_ERROR)->err, kinds[i]);
		assert_int_equal(h.st.rx_error, kinds[i]);
		host_free(&h);
		ref_free(&w);
	}
}

static void a_stopped_stream_discards_silently(void **state)
{
	struct ref_wire w;
	struct host h;

	(void)state;
	ref_init(&w, true, false);
	ref_fpdu(&w, ulpdu, ulpdu_untagged(ulpdu, WEFT_OP_SEND, 0, 1, 0, true, "a", 1));
	host_init(&h, true, &crc_agreed);
	weft_stream_stop(&h.st);
	host_bytes(&h, w.buf, w.len);
	assert_int_equal(h.n, 0);
	assert_int_equal(h.st.rx_error, WEFT_OK);
	host_free(&h);
	ref_free(&w);
}

static void a_partial_fpdu_waits_for_its_last_octet(void **state)
{
	struct ref_wire w;
	struct host h;

	(void)state;
	ref_init(&w, false, false);
	ref_fpdu(&w, ulpdu, ulpdu_untagged(ulpdu, WEFT_OP_SEND, 0, 1, 0, true, "abcd", 4));
	host_init(&h, true, &plain_agreed);
	for (u32 i = 0; i + 1 < w.len; i++) {
		host_bytes(&h, w.buf + i, 1);
		assert_int_equal(h.n, 0);
		assert_int_equal(h.st.rx_fpdus, 0);
	}
	host_bytes(&h, w.buf + w.len - 1, 1);
	host_last(&h, 1, WEFT_RX_FPDU);
	host_free(&h);
	ref_free(&w);
}

/* In place: the payload cursor points into the host's pieces, and no chunk is requested. */
static void a_whole_fpdu_is_reported_in_place(void **state)
{
	struct ref_wire w;
	struct weft_stream st;
	struct weft_fpdu f;
	struct weft_cur in;
	struct weft_seg seg[2];
	u32 len;

	(void)state;
	ref_init(&w, true, false);
	ref_fpdu(&w, ulpdu, ulpdu_untagged(ulpdu, WEFT_OP_SEND, 0, 1, 0, true, "abcdef", 6));
	ref_fpdu(&w, ulpdu, ulpdu_untagged(ulpdu, WEFT_OP_SEND, 0, 2, 0, true, "ghi", 3));
	for (u32 k = 0; k <= w.len; k++) {
		seg[0] = (struct weft_seg){ w.buf, k };
		seg[1] = (struct weft_seg){ w.buf + k, w.len - k };
		weft_stream_init(&st, true);
		weft_stream_start(&st, &crc_agreed);
		weft_cur_init(&in, seg, 2);
		assert_int_equal(weft_stream_rx(&st, &in, &f), WEFT_RX_FPDU);
		assert_ptr_equal(weft_cur_piece(&f.payload, 1, &len), w.buf + 20);
		assert_int_equal(in.left, w.len - 32);
		assert_int_equal(weft_stream_rx(&st, &in, &f), WEFT_RX_FPDU);
		assert_ptr_equal(weft_cur_piece(&f.payload, 1, &len), w.buf + 32 + 20);
		assert_int_equal(weft_stream_rx(&st, &in, &f), WEFT_RX_MORE);
	}
	ref_free(&w);
}

static void terminates_of_any_length_are_reported(void **state)
{
	(void)state;
	for (u32 n = 0; n <= 200; n++) {
		struct ref_wire w;
		struct host h;
		u8 body[200];

		pattern(body, sizeof(body), n);
		ref_init(&w, true, false);
		ref_fpdu(&w, ulpdu, ulpdu_untagged(ulpdu, WEFT_OP_TERMINATE, 2, 1, 0, true,
						   body, n));
		host_init(&h, true, &crc_agreed);
		host_bytes(&h, guarded(0, w.buf, w.len), w.len);
		assert_int_equal(host_last(&h, 1, WEFT_RX_FPDU)->len, n);
		assert_memory_equal(h.log[0].data, body, n);
		host_free(&h);
		ref_free(&w);
	}
}

/* ---- octets that change while they are read: on one host, a peer may have spliced them ---- */

#define CHANGES 300000

struct changing {
	u8 *octet;			/* atomic */
	u8 one, other;
	bool over;			/* atomic */
};

static void *change(void *arg)
{
	struct changing *c = arg;

	while (!__atomic_load_n(&c->over, __ATOMIC_RELAXED)) {
		__atomic_store_n(c->octet, c->one, __ATOMIC_RELAXED);
		__atomic_store_n(c->octet, c->other, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* A stream for each reading: the payload lies within the FPDU, and is what its header leaves. */
static void read_once(const u8 *wire, u32 len, u32 seen[2])
{
	const struct weft_seg seg = { .p = wire, .len = len };
	struct weft_fpdu f = { .raw_len = 0 };
	struct weft_stream st;
	struct weft_cur in;
	enum weft_rx_event ev;

	weft_stream_init(&st, true);
	weft_stream_start(&st, &plain_agreed);
	weft_cur_init(&in, &seg, 1);
	ev = weft_stream_rx(&st, &in, &f);
	/* It is not whole: the stage would be asked for. */
	if (ev == WEFT_RX_CHUNK)
		return;
	assert_true(f.raw_len <= f.ulpdu_len);
	if (f.payload_len)
		assert_int_equal(f.payload_len, f.ulpdu_len - (f.ddp.tagged ? 14 : 18));
	assert_true(f.payload.off + f.payload.left <= in.off);
	assert_int_equal(in.off + in.left, len);
	seen[f.ddp.tagged]++;
}

static void read_while_it_changes(const struct ref_wire *w, u32 at, u8 other)
{
	u8 *wire = guarded(0, w->buf, w->len);
	struct changing c = { .octet = wire + at, .one = wire[at], .other = other };
	u32 seen[2] = { 0 }, i;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, change, &c), 0);
	for (i = 0; i < CHANGES || !seen[1]; i++)
		read_once(wire, w->len, seen);
	__atomic_store_n(&c.over, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	print_message("%u tagged, %u untagged\n", seen[1], seen[0]);
}

/* Long enough for a tagged header, and too short for a Read Request's. */
static void a_header_that_changes_meanwhile_is_judged_as_it_was_copied(void **state)
{
	struct ref_wire w;

	(void)state;
	ref_init(&w, false, false);
	ref_fpdu(&w, ulpdu, ulpdu_tagged(ulpdu, WEFT_OP_READ_REQ, 1, 2, true, "x", 1));
	read_while_it_changes(&w, 2, w.buf[2] & ~WEFT_DDP_T);
	ref_free(&w);
}

static void a_length_that_changes_meanwhile_is_read_once(void **state)
{
	struct ref_wire w;

	(void)state;
	ref_init(&w, false, false);
	ref_fpdu(&w, ulpdu, ulpdu_tagged(ulpdu, WEFT_OP_WRITE, 1, 2, true, "payload", 7));
	read_while_it_changes(&w, 0, 0x7f);
	ref_free(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_send_is_reported_with_header_and_payload),
		cmocka_unit_test(a_write_is_reported_with_stag_and_offset),
		cmocka_unit_test(each_pad_length_is_stripped),
		cmocka_unit_test(pad_octets_matter_to_the_crc_only),
		cmocka_unit_test(each_damaged_bit_is_a_crc_error_and_nothing_else),
		cmocka_unit_test(a_damaged_length_ends_in_a_crc_error),
		cmocka_unit_test(with_crc_off_the_field_may_hold_anything),
		cmocka_unit_test(a_ulpdu_shorter_than_its_headers_is_an_error_in_time),
		cmocka_unit_test(the_crc_is_judged_before_the_length),
		cmocka_unit_test(a_faulty_header_stays_readable_for_the_terminate),
		cmocka_unit_test(rfc_7306_opcodes_need_the_feature),
		cmocka_unit_test(nothing_is_reported_after_an_error),
		cmocka_unit_test(a_stopped_stream_discards_silently),
		cmocka_unit_test(a_partial_fpdu_waits_for_its_last_octet),
		cmocka_unit_test(a_whole_fpdu_is_reported_in_place),
		cmocka_unit_test(terminates_of_any_length_are_reported),
		cmocka_unit_test(a_header_that_changes_meanwhile_is_judged_as_it_was_copied),
		cmocka_unit_test(a_length_that_changes_meanwhile_is_read_once),
	};

	return cmocka_run_group_tests_name("rx", tests, NULL, NULL);
}
