// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Markers (RFC 5044 §4.2 to §4.4) in both directions, and the vectors of Fig. 5 and 6. */
#include "rig.h"

static u8 ulpdu[70000];

/* Fig. 5: the first FPDU of a stream, with the Marker before it. */
static const u8 fig5[0x34] = {
	0x00, 0x00, 0x00, 0x00, 0x00, 0x2a, 0x41, 0x43,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01,
	[0x30] = 0x52, 0x23, 0x99, 0x83,
};

/* Fig. 6: the second one, after 492 octets. */
static const u8 fig6[0x34] = {
	0x00, 0x2a, 0x41, 0x43,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x14, [0x30] = 0x84, 0x92, 0x58, 0x98,
};

static void expect_figure(const struct event *e, u32 msn)
{
	static const u8 zero[24];

	assert_int_equal(e->ev, WEFT_RX_FPDU);
	assert_true(!e->ddp.tagged && e->ddp.last);
	assert_int_equal(weft_rdmap_opcode(e->ddp.rdmap), WEFT_OP_SEND);
	assert_int_equal(e->ddp.msn, msn);
	assert_int_equal(e->ulpdu_len, 42);
	assert_int_equal(e->len, 24);
	assert_memory_equal(e->data, zero, 24);
}

/* Fig. 5's stream up to Fig. 6: a first FPDU of 488 octets after its Marker. */
static void figure_stream(struct ref_wire *w)
{
	u8 data[464] = { 0 };

	ref_init(w, true, true);
	ref_fpdu(w, ulpdu, ulpdu_untagged(ulpdu, WEFT_OP_SEND, 0, 1, 0, true, data, 464));
	assert_int_equal(w->len, 492);
	w->buf = realloc(w->buf, w->len + sizeof(fig6));
	memcpy(w->buf + w->len, fig6, sizeof(fig6));
	w->len += sizeof(fig6);
}

static void figure_5_is_received(void **state)
{
	struct scenario s = { .initiator = true, .agreed = &marked_agreed,
			      .bytes = fig5, .len = sizeof(fig5) };
	struct host h;

	(void)state;
	each_delivery(&s, 1000, &h);
	assert_int_equal(h.n, 1);
	expect_figure(&h.log[0], 1);
	host_free(&h);
}

static void figure_6_is_received(void **state)
{
	struct scenario s = { .initiator = true, .agreed = &marked_agreed };
	struct ref_wire w;
	struct host h;

	(void)state;
	figure_stream(&w);
	s.bytes = w.buf;
	s.len = w.len;
	each_delivery(&s, 1000, &h);
	assert_int_equal(h.n, 2);
	assert_int_equal(h.log[0].ulpdu_len, 482);
	expect_figure(&h.log[1], 2);
	host_free(&h);
	ref_free(&w);
}

static u32 emit_send(struct weft_stream *st, u32 msn, u32 len, u8 *out)
{
	static const u8 zero[1000];
	struct weft_tx_msg m = { .op = WEFT_OP_SEND, .msn = msn, .len = len };
	struct weft_tx_fpdu f;
	struct weft_emit e;

	weft_stream_tx(&m, 1442, &f);
	weft_stream_tx_emit(st, &f, &e, out);
	weft_emit_bytes(&e, zero, f.payload_len);
	return weft_emit_end(&e);
}

static void figures_5_and_6_are_sent(void **state)
{
	struct weft_stream st;
	struct ref_wire w;
	u8 out[1000];

	(void)state;
	weft_stream_init(&st, true);
	weft_stream_start(&st, &marked_agreed);
	assert_int_equal(emit_send(&st, 1, 24, out), sizeof(fig5));
	assert_memory_equal(out, fig5, sizeof(fig5));

	figure_stream(&w);
	weft_stream_init(&st, true);
	weft_stream_start(&st, &marked_agreed);
	assert_int_equal(emit_send(&st, 1, 464, out), 492);
	assert_memory_equal(out, w.buf, 492);
	assert_int_equal(st.tx_marker_pos, 492);
	assert_int_equal(emit_send(&st, 2, 24, out), sizeof(fig6));
	assert_memory_equal(out, fig6, sizeof(fig6));
	assert_int_equal(st.tx_marker_pos, 492 + 52 - 512);
	ref_free(&w);
}

/* Octets on the wire from @pos for @plain octets of FPDU, counted one by one. */
static u32 walk(u64 pos, u32 plain)
{
	u64 at = pos;

	for (; plain; plain--, at++)
		if (at % 512 == 0)
			at += 4;
	return (u32)(at - pos);
}

/*
 * A first FPDU that ends at @phase (mod 512). Any multiple of 4 except 4 itself: the Marker that
 * ends there belongs to the next FPDU.
 */
static void fill_to(struct ref_wire *w, u32 phase)
{
	u8 data[600];
	u32 plain = 24;

	while ((w->pos + walk(w->pos, plain)) % 512 != phase)
		plain += 4;
	pattern(data, sizeof(data), 1);
	ref_fpdu(w, ulpdu, ulpdu_tagged(ulpdu, WEFT_OP_WRITE, 1, 0, true, data, plain - 6 - 14));
	assert_int_equal(w->pos % 512, phase);
}

/* The same, then an FPDU of @len octets of ULPDU. */
static void phased(struct ref_wire *w, u32 phase, u32 len)
{
	u8 data[2500];

	fill_to(w, phase);
	pattern(data, sizeof(data), phase);
	ref_fpdu(w, ulpdu, ulpdu_tagged(ulpdu, WEFT_OP_WRITE, 2, 7, true, data, len - 14));
}

/* Each Marker position within, before and after PAD of an FPDU: 128 phases. */
static void markers_are_stripped_at_any_phase(void **state)
{
	static const u32 lens[] = { 14, 17, 60, 506, 507, 508, 509, 510, 1015, 2003 };

	(void)state;
	for (u32 n = 0; n < 128 * ARRAY_SIZE(lens); n++) {
		u32 phase = n % 128 * 4, len = lens[n / 128];
		struct scenario s = { .initiator = true, .agreed = &marked_agreed };
		struct ref_wire w;
		struct host h;
		u8 data[2500];

		if (phase == 4)
			continue;
		ref_init(&w, true, true);
		phased(&w, phase, len);
		s.bytes = w.buf;
		s.len = w.len;
		each_delivery(&s, 8, &h);
		assert_int_equal(h.n, 2);
		assert_int_equal(h.log[1].ev, WEFT_RX_FPDU);
		assert_int_equal(h.log[1].ddp.stag, 2);
		assert_int_equal(h.log[1].len, len - 14);
		pattern(data, sizeof(data), phase);
		assert_memory_equal(h.log[1].data, data, len - 14);
		host_free(&h);
		ref_free(&w);
	}
}

static void expect_after_one(struct ref_wire *w, const struct weft_mpa_agreed *agreed,
			     enum weft_err err)
{
	struct host h;

	host_init(&h, true, agreed);
	host_bytes(&h, guarded(0, w->buf, w->len), w->len);
	if (err) {
		assert_int_equal(host_last(&h, 2, WEFT_RX_ERROR)->err, err);
		assert_int_equal(h.log[1].raw_len, 0);
	} else {
		host_last(&h, 2, WEFT_RX_FPDU);
	}
	host_free(&h);
}

/* MPA-75. */
static void reserved_and_the_low_pointer_bits_are_ignored(void **state)
{
	struct ref_wire w;

	(void)state;
	ref_init(&w, true, true);
	w.marker_reserved = 0xFFFF;
	w.ptr_or = 3;
	phased(&w, 400, 700);
	expect_after_one(&w, &marked_agreed, WEFT_OK);
	ref_free(&w);
}

/* MPA-76: at each place a Marker can have in the second FPDU, and before it. */
static void a_marker_that_points_elsewhere_is_a_marker_error(void **state)
{
	static const u16 adds[] = { 4, 0xFFFC, 512, 0x8000 };

	(void)state;
	for (u32 n = 0; n < 128 * ARRAY_SIZE(adds); n++) {
		struct ref_wire w;
		u8 data[506];

		if (n % 128 == 1)
			continue;
		pattern(data, sizeof(data), n);
		ref_init(&w, true, true);
		fill_to(&w, n % 128 * 4);
		w.ptr_add = adds[n / 128];
		ref_fpdu(&w, ulpdu, ulpdu_tagged(ulpdu, WEFT_OP_WRITE, 2, 0, true, data, 506));
		expect_after_one(&w, &marked_agreed, WEFT_E_MPA_MARKER);
		ref_free(&w);
	}
}

static void with_crc_off_markers_are_still_judged(void **state)
{
	static const struct weft_mpa_agreed agreed = { .rev = 1, .rx_markers = true };

	(void)state;
	for (int bad = 0; bad < 2; bad++) {
		struct ref_wire w;
		struct host h;

		ref_init(&w, false, true);
		w.ptr_add = bad ? 4 : 0;
		ref_fpdu(&w, ulpdu, ulpdu_untagged(ulpdu, WEFT_OP_SEND, 0, 1, 0, true, "x", 1));
		host_init(&h, true, &agreed);
		host_bytes(&h, w.buf, w.len);
		if (bad)
			assert_int_equal(host_last(&h, 1, WEFT_RX_ERROR)->err, WEFT_E_MPA_MARKER);
		else
			host_last(&h, 1, WEFT_RX_FPDU);
		host_free(&h);
		ref_free(&w);
	}
}

/* "In the event that the CRC is valid": a damaged Marker is a CRC error first. */
static void a_damaged_marker_is_a_crc_error(void **state)
{
	struct ref_wire w;

	(void)state;
	ref_init(&w, true, true);
	phased(&w, 400, 700);
	/* The second FPDU's Marker at 512: each of its 32 bits. */
	for (u32 bit = 0; bit < 32; bit++) {
		w.buf[512 + bit / 8] ^= 1 << bit % 8;
		expect_after_one(&w, &marked_agreed, WEFT_E_MPA_CRC);
		w.buf[512 + bit / 8] ^= 1 << bit % 8;
	}
	ref_free(&w);
}

static void each_damaged_octet_of_a_marked_stream_is_caught(void **state)
{
	struct ref_wire w;

	(void)state;
	ref_init(&w, true, true);
	phased(&w, 508, 700);
	/* Except its ULPDU_Length: if that is damaged, the FPDU ends elsewhere. */
	for (u32 k = 508 + 2; k < w.len; k++) {
		w.buf[k] ^= 0x80;
		expect_after_one(&w, &marked_agreed, WEFT_E_MPA_CRC);
		w.buf[k] ^= 0x80;
	}
	ref_free(&w);
}

/* FPDUPTR has 16 bits; with Markers, an FPDU above 64768 octets exceeds 65535. */
static void the_pointer_wraps_in_an_oversized_fpdu(void **state)
{
	struct ref_wire w;
	struct host h;
	static u8 data[65535];

	(void)state;
	pattern(data, sizeof(data), 9);
	ref_init(&w, true, true);
	ref_fpdu(&w, ulpdu, ulpdu_tagged(ulpdu, WEFT_OP_WRITE, 1, 0, true, data, 65535 - 14));
	assert_true(w.len > 65544 + 4 * 128);
	host_init(&h, true, &marked_agreed);
	for (u32 i = 0; i < w.len; i += 88)
		host_bytes(&h, w.buf + i, min_t(u32, 88, w.len - i));
	assert_int_equal(host_last(&h, 1, WEFT_RX_FPDU)->len, 65535 - 14);
	assert_memory_equal(h.log[0].data, data, 65535 - 14);
	host_free(&h);
	ref_free(&w);
}

/* All output equals the reference writer's, whatever was sent before. */
/* MPA-70 to 74, SIW-32 */
static void sent_markers_stand_where_the_reference_puts_them(void **state)
{
	static u8 out[70000], data[65000];
	struct weft_stream st;
	struct ref_wire w;

	(void)state;
	rnd_seed(__func__);
	pattern(data, sizeof(data), 11);
	ref_init(&w, true, true);
	weft_stream_init(&st, true);
	weft_stream_start(&st, &marked_agreed);
	for (u32 n = 0; n < 3000; n++) {
		u32 len = rnd_below(n % 100 ? 1200 : 60000), old = w.len, got;
		struct weft_tx_msg m = { .op = WEFT_OP_WRITE, .stag = 3, .to = n, .len = len };
		struct weft_tx_fpdu f;
		struct weft_emit e;

		ref_fpdu(&w, ulpdu, ulpdu_tagged(ulpdu, WEFT_OP_WRITE, 3, n, true, data, len));
		got = weft_stream_tx_wire_len(&st, len + 14);
		assert_int_equal(got, w.len - old);
		weft_stream_tx(&m, 64768, &f);
		weft_stream_tx_emit(&st, &f, &e, out);
		for (u32 off = 0; off < len; ) {
			u32 piece = min_t(u32, 1 + rnd_below(900), len - off);

			weft_emit_bytes(&e, data + off, piece);
			off += piece;
		}
		assert_int_equal(weft_emit_end(&e), got);
		assert_memory_equal(out, w.buf + old, got);
		assert_int_equal(st.tx_marker_pos, w.pos % 512);
	}
	ref_free(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(figure_5_is_received),
		cmocka_unit_test(figure_6_is_received),
		cmocka_unit_test(figures_5_and_6_are_sent),
		cmocka_unit_test(markers_are_stripped_at_any_phase),
		cmocka_unit_test(reserved_and_the_low_pointer_bits_are_ignored),
		cmocka_unit_test(a_marker_that_points_elsewhere_is_a_marker_error),
		cmocka_unit_test(with_crc_off_markers_are_still_judged),
		cmocka_unit_test(a_damaged_marker_is_a_crc_error),
		cmocka_unit_test(each_damaged_octet_of_a_marked_stream_is_caught),
		cmocka_unit_test(the_pointer_wraps_in_an_oversized_fpdu),
		cmocka_unit_test(sent_markers_stand_where_the_reference_puts_them),
	};

	return cmocka_run_group_tests_name("markers", tests, NULL, NULL);
}
