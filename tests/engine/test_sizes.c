// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* FPDU sizes: pad, MULPDU (RFC 5044 §4.5), Markers (§4.3). */
#include "rig.h"

static void pad_makes_fpdus_multiples_of_four(void **state)
{
	static const u32 pad[] = { 2, 1, 0, 3, 2, 1, 0, 3 };

	(void)state;
	for (u32 len = 0; len < ARRAY_SIZE(pad); len++) {
		assert_int_equal(weft_mpa_pad(len), pad[len]);
		assert_int_equal(weft_mpa_fpdu_len(len), 2 + len + pad[len] + 4);
	}
	assert_int_equal(weft_mpa_fpdu_len(65535), 65544);
}

struct mulpdu_row {
	u32 emss, plain, marked;
};

/* Computed by hand from the two formulas; below 134 (138) the minimum of 128 applies. */
static const struct mulpdu_row mulpdus[] = {
	{ 0, 128, 128 }, { 1, 128, 128 }, { 88, 128, 128 }, { 128, 128, 128 },
	{ 133, 128, 128 }, { 134, 128, 128 }, { 136, 130, 128 }, { 139, 130, 128 },
	{ 140, 134, 130 },
	{ 512, 506, 502 }, { 513, 506, 498 }, { 516, 510, 502 }, { 536, 530, 522 },
	{ 1440, 1434, 1422 }, { 1448, 1442, 1430 }, { 1449, 1442, 1430 }, { 1451, 1442, 1430 },
	{ 1460, 1454, 1442 }, { 8948, 8942, 8870 }, { 64768, 64762, 64254 },
	{ 65000, 64768, 64486 }, { 65483, 64768, 64768 }, { 1000000, 64768, 64768 },
};

static void mulpdu_follows_the_formula(void **state)		/* MPA-53 to 55, SIW-46, SIW-48 */
{
	(void)state;
	for (u32 i = 0; i < ARRAY_SIZE(mulpdus); i++) {
		assert_int_equal(weft_mpa_mulpdu(mulpdus[i].emss, false), mulpdus[i].plain);
		assert_int_equal(weft_mpa_mulpdu(mulpdus[i].emss, true), mulpdus[i].marked);
	}
}

static void a_mulpdu_fpdu_fits_the_segment_at_any_marker_position(void **state)
{
	(void)state;
	for (u32 emss = 144; emss < 9000; emss += emss % 7 + 1) {
		assert_true(weft_mpa_fpdu_len(weft_mpa_mulpdu(emss, false)) <= emss);
		for (u32 pos = 0; pos < 512; pos += 4)
			assert_true(weft_mpa_marked_len(pos,
				    weft_mpa_fpdu_len(weft_mpa_mulpdu(emss, true))) <= emss);
	}
}

static void the_next_marker_is_a_multiple_of_512_away(void **state)
{
	(void)state;
	assert_int_equal(weft_mpa_to_marker(0), 0);
	assert_int_equal(weft_mpa_to_marker(4), 508);
	assert_int_equal(weft_mpa_to_marker(508), 4);
	assert_int_equal(weft_mpa_to_marker(511), 1);
}

/* Counts octet by octet, as RFC 5044 §4.3 describes it. */
static u32 walked_len(u32 pos, u32 plain)
{
	u32 len = 0;

	while (plain) {
		if ((pos + len) % 512 == 0)
			len += 4;
		len++;
		plain--;
	}
	return len;
}

static void marked_length_counts_each_marker_inside_and_before(void **state)
{
	static const u32 more[] = { 4096, 9000, 64768, 65540 };

	(void)state;
	for (u32 pos = 0; pos < 512; pos += 4)
		for (u32 plain = 8; plain < 2100; plain += 4)
			assert_int_equal(weft_mpa_marked_len(pos, plain), walked_len(pos, plain));
	for (u32 i = 0; i < ARRAY_SIZE(more); i++)
		for (u32 pos = 0; pos < 512; pos += 28)
			assert_int_equal(weft_mpa_marked_len(pos, more[i]),
					 walked_len(pos, more[i]));
}

static struct weft_stream sender(bool markers, u32 pos)
{
	struct weft_stream st;

	weft_stream_init(&st, true);
	weft_stream_start(&st, markers ? &marked_agreed : &plain_agreed);
	st.tx_marker_pos = pos;
	return st;
}

static void wire_length_is_with_markers_when_the_peer_wants_them(void **state)
{
	struct weft_stream plain = sender(false, 0), marked = sender(true, 0);

	(void)state;
	assert_int_equal(weft_stream_tx_wire_len(&plain, 1000), 1008);
	assert_int_equal(weft_stream_tx_wire_len(&marked, 1000), 1016);
	marked.tx_marker_pos = 4;
	assert_int_equal(weft_stream_tx_wire_len(&marked, 1000), 1012);
}

static u32 searched_max(const struct weft_stream *st, u32 room)
{
	u32 best = 0;

	for (u32 u = 0; u <= room; u++)
		if (weft_stream_tx_wire_len(st, u) <= room)
			best = u;
	return best;
}

/* The largest ULPDU that fits is found, neither more nor less. */
static void room_is_used_to_the_last_octet(void **state)
{
	struct weft_stream plain = sender(false, 0);

	(void)state;
	for (u32 room = 0; room < 300; room++)
		assert_int_equal(weft_stream_tx_max_ulpdu(&plain, room),
				 searched_max(&plain, room));
	for (u32 pos = 0; pos < 512; pos += 12)
		for (u32 room = 0; room < 1200; room += 1 + room % 3) {
			struct weft_stream st = sender(true, pos);

			assert_int_equal(weft_stream_tx_max_ulpdu(&st, room),
					 searched_max(&st, room));
		}
}

static void no_room_means_none_and_much_means_64768(void **state)
{
	struct weft_stream plain = sender(false, 0), marked = sender(true, 0);

	(void)state;
	assert_int_equal(weft_stream_tx_max_ulpdu(&plain, 7), 0);
	assert_int_equal(weft_stream_tx_max_ulpdu(&plain, 8), 2);
	assert_int_equal(weft_stream_tx_max_ulpdu(&marked, 11), 0);
	assert_int_equal(weft_stream_tx_max_ulpdu(&marked, 12), 2);
	assert_int_equal(weft_stream_tx_max_ulpdu(&plain, 64773), 64766);
	assert_int_equal(weft_stream_tx_max_ulpdu(&plain, 64776), 64768);
	assert_int_equal(weft_stream_tx_max_ulpdu(&plain, 0xFFFFFFFF), 64768);
	assert_int_equal(weft_stream_tx_max_ulpdu(&marked, 0xFFFFFFFF), 64768);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pad_makes_fpdus_multiples_of_four),
		cmocka_unit_test(mulpdu_follows_the_formula),
		cmocka_unit_test(a_mulpdu_fpdu_fits_the_segment_at_any_marker_position),
		cmocka_unit_test(the_next_marker_is_a_multiple_of_512_away),
		cmocka_unit_test(marked_length_counts_each_marker_inside_and_before),
		cmocka_unit_test(wire_length_is_with_markers_when_the_peer_wants_them),
		cmocka_unit_test(room_is_used_to_the_last_octet),
		cmocka_unit_test(no_room_means_none_and_much_means_64768),
	};

	return cmocka_run_group_tests_name("sizes", tests, NULL, NULL);
}
