// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Cutting messages into FPDUs (RFC 5041 §5.2) and writing them (RFC 5044 §4.1, §4.4). */
#include "rig.h"

static const u32 sizes[] = { 0, 1, 2, 3, 4, 109, 110, 111, 114, 115, 1423, 1424, 1425, 1428, 1429,
			     4096, 65535, 65536, 1 << 20 };
static const u32 mulpdus[] = { 128, 129, 130, 131, 522, 1442, 1454, 8942, 64768 };

/* Octets at @p as a number. */
static u64 number(const u8 *p, int octets)
{
	u64 v = 0;

	while (octets--)
		v = v << 8 | *p++;
	return v;
}


static void check_tagged(const struct weft_tx_msg *m, const struct weft_tx_fpdu *f, u32 off)
{
	assert_int_equal(f->head_len, 16);
	assert_int_equal(f->head[2], f->last ? 0xC1 : 0x81);
	assert_int_equal(number(f->head + 4, 4), m->stag);
	assert_true(number(f->head + 8, 8) == m->to + off);
}

static void check_untagged(const struct weft_tx_msg *m, const struct weft_tx_fpdu *f, u32 off)
{
	bool inv = m->op == WEFT_OP_SEND_INV || m->op == WEFT_OP_SEND_SE_INV;

	assert_int_equal(f->head_len, 20);
	assert_int_equal(f->head[2], f->last ? 0x41 : 0x01);
	assert_int_equal(number(f->head + 4, 4), inv ? m->inv_stag : 0);
	assert_int_equal(number(f->head + 8, 4), 0);
	assert_int_equal(number(f->head + 12, 4), m->msn);
	assert_int_equal(number(f->head + 16, 4), off);
}

static void cut_message(enum weft_opcode op, u32 len, u32 mulpdu)
{
	struct weft_tx_msg m = { .op = op, .stag = 0xA1B2C3D4, .to = 0xFFFFFFFFFFFFF000,
				 .msn = 0xFFFFFFFF, .inv_stag = 0x11223344, .len = len };
	bool tagged = op == WEFT_OP_WRITE || op == WEFT_OP_READ_RESP;
	u32 per = mulpdu - (tagged ? 14 : 18), off = 0, n = 0;

	assert_false(weft_tx_msg_finished(&m));
	while (!weft_tx_msg_finished(&m)) {
		struct weft_tx_fpdu f;

		weft_stream_tx(&m, mulpdu, &f);
		n++;
		assert_int_equal(f.payload_off, off);
		assert_int_equal(f.payload_len, min_t(u32, per, len - off));
		assert_int_equal(f.ulpdu_len, f.head_len - 2 + f.payload_len);
		assert_true(f.ulpdu_len <= mulpdu);
		assert_int_equal(f.last, off + f.payload_len == len);
		assert_int_equal(number(f.head, 2), f.ulpdu_len);
		assert_int_equal(f.head[3], 0x40 | op);
		if (tagged)
			check_tagged(&m, &f, off);
		else
			check_untagged(&m, &f, off);
		off += f.payload_len;
	}
	assert_int_equal(off, len);
	assert_int_equal(n, len ? DIV_ROUND_UP(len, per) : 1);
}

static void messages_are_cut_into_full_segments(void **state)
{
	static const enum weft_opcode ops[] = { WEFT_OP_WRITE, WEFT_OP_READ_RESP, WEFT_OP_SEND,
						WEFT_OP_SEND_INV, WEFT_OP_SEND_SE,
						WEFT_OP_SEND_SE_INV };

	(void)state;
	for (u32 o = 0; o < ARRAY_SIZE(ops); o++)
		for (u32 s = 0; s < ARRAY_SIZE(sizes); s++)
			for (u32 u = 0; u < ARRAY_SIZE(mulpdus); u++)
				cut_message(ops[o], sizes[s], mulpdus[u]);
}

static void the_room_may_differ_for_each_fpdu(void **state)
{
	struct weft_tx_msg m = { .op = WEFT_OP_SEND, .msn = 1, .len = 100000 };
	u32 off = 0;

	(void)state;
	rnd_seed(__func__);
	while (!weft_tx_msg_finished(&m)) {
		u32 max = 128 + rnd_below(3000);
		struct weft_tx_fpdu f;

		weft_stream_tx(&m, max, &f);
		assert_true(f.ulpdu_len == max || f.last);
		assert_int_equal(f.payload_off, off);
		off += f.payload_len;
	}
	assert_int_equal(off, 100000);
}

struct header_row {
	enum weft_opcode op;
	u8 qn;
	u8 ulp_len;
};

static void headers_of_the_upper_layer_ride_in_one_segment(void **state)
{
	static const struct header_row rows[] = {
		{ WEFT_OP_READ_REQ, 1, 28 }, { WEFT_OP_TERMINATE, 2, 4 },
		{ WEFT_OP_TERMINATE, 2, 52 }, { WEFT_OP_IMM, 0, 8 }, { WEFT_OP_IMM_SE, 0, 8 },
		{ WEFT_OP_ATOMIC_REQ, 1, 52 }, { WEFT_OP_ATOMIC_RESP, 3, 12 },
	};

	(void)state;
	for (u32 i = 0; i < ARRAY_SIZE(rows); i++) {
		struct weft_tx_msg m = { .op = rows[i].op, .msn = 5, .ulp_len = rows[i].ulp_len };
		struct weft_tx_fpdu f;

		pattern(m.ulp, sizeof(m.ulp), i);
		weft_stream_tx(&m, 128, &f);
		assert_true(f.last && weft_tx_msg_finished(&m));
		assert_int_equal(f.payload_len, 0);
		assert_int_equal(f.ulpdu_len, 18 + rows[i].ulp_len);
		assert_int_equal(f.head_len, 20 + rows[i].ulp_len);
		assert_int_equal(number(f.head, 2), f.ulpdu_len);
		assert_int_equal(f.head[2], 0x41);
		assert_int_equal(f.head[3], 0x40 | rows[i].op);
		assert_int_equal(number(f.head + 4, 4), 0);
		assert_int_equal(number(f.head + 8, 4), rows[i].qn);
		assert_int_equal(number(f.head + 12, 4), 5);
		assert_int_equal(number(f.head + 16, 4), 0);
		assert_memory_equal(f.head + 20, m.ulp, rows[i].ulp_len);
	}
}

/* The whole of T 1/2/05 MD, conformance.md's "12 05 C0 00": 42 octets of ULPDU. */
static void a_terminate_has_its_exact_octets_on_the_wire(void **state)
{
	static const u8 offender[18] = { 0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1 };
	static const u8 want[44] = {
		0x00, 0x2A, 0x41, 0x47, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0,
		0x12, 0x05, 0xC0, 0x00, 0x01, 0x3E, 0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
		0, 0, 0, 0,
	};
	struct weft_tx_msg m = { .op = WEFT_OP_TERMINATE, .msn = 1 };
	struct weft_tx_fpdu f;
	struct weft_term t;

	(void)state;
	weft_term_make(&t, WEFT_E_DDP_TOO_LONG, offender, sizeof(offender), 318);
	m.ulp_len = (u8)(weft_term_write(m.ulp, &t) - m.ulp);
	weft_stream_tx(&m, 128, &f);
	assert_int_equal(f.head_len, sizeof(want));
	assert_memory_equal(f.head, want, sizeof(want));
}

static void emitted_fpdus_have_zero_pad_and_the_crc(void **state)	/* MPA-51, SIW-47 */
{
	u8 ulpdu[300], out[400];

	(void)state;
	for (u32 n = 0; n < 4000; n++) {
		bool crc = n & 1;
		u32 len = 1 + n / 2 % 290, wire = weft_mpa_fpdu_len(len);
		struct ref_wire w;
		struct weft_emit e;
		u8 *p;

		pattern(ulpdu, len, n);
		ref_init(&w, crc, false);
		ref_fpdu(&w, ulpdu, len);
		memset(out, 0xEE, sizeof(out));
		p = guarded(0, out, wire);
		weft_emit_begin(&e, p, len, crc, false, 0);
		weft_emit_bytes(&e, ulpdu, len / 2);
		weft_emit_bytes(&e, ulpdu + len / 2, len - len / 2);
		assert_int_equal(weft_emit_end(&e), wire);
		assert_int_equal(w.len, wire);
		assert_memory_equal(p, w.buf, wire);
		ref_free(&w);
	}
}

static void long_fpdus_are_summed_in_steps(void **state)
{
	static u8 ulpdu[64768], out[64776];
	struct ref_wire w;
	struct weft_emit e;

	(void)state;
	pattern(ulpdu, sizeof(ulpdu), 1);
	ref_init(&w, true, false);
	ref_fpdu(&w, ulpdu, sizeof(ulpdu));
	weft_emit_begin(&e, out, sizeof(ulpdu), true, false, 0);
	weft_emit_bytes(&e, ulpdu, sizeof(ulpdu));
	assert_int_equal(weft_emit_end(&e), w.len);
	assert_memory_equal(out, w.buf, w.len);
	ref_free(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_are_cut_into_full_segments),
		cmocka_unit_test(the_room_may_differ_for_each_fpdu),
		cmocka_unit_test(headers_of_the_upper_layer_ride_in_one_segment),
		cmocka_unit_test(a_terminate_has_its_exact_octets_on_the_wire),
		cmocka_unit_test(emitted_fpdus_have_zero_pad_and_the_crc),
		cmocka_unit_test(long_fpdus_are_summed_in_steps),
	};

	return cmocka_run_group_tests_name("tx", tests, NULL, NULL);
}
