// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Big-endian fields, the cursor, and the CRC that all of it relies on. */
#include "rig.h"

static void fields_are_big_endian(void **state)
{
	u8 b[8];

	(void)state;
	assert_ptr_equal(weft_put16(b, 0x0102), b + 2);
	assert_memory_equal(b, "\x01\x02", 2);
	assert_ptr_equal(weft_put32(b, 0x81020304), b + 4);
	assert_memory_equal(b, "\x81\x02\x03\x04", 4);
	assert_int_equal(weft_get32(b), 0x81020304);
	assert_int_equal(weft_get16(b), 0x8102);
	assert_ptr_equal(weft_put64(b, 0xF102030405060708), b + 8);
	assert_memory_equal(b, "\xF1\x02\x03\x04\x05\x06\x07\x08", 8);
	assert_true(weft_get64(b) == 0xF102030405060708);
}

static void only_the_crc_is_little_endian(void **state)
{
	u8 b[4];

	(void)state;
	assert_ptr_equal(weft_put32_le(b, 0x83992352), b + 4);
	assert_memory_equal(b, "\x52\x23\x99\x83", 4);
	assert_int_equal(weft_get32_le(b), 0x83992352);
}

/* "abcdefgh" in pieces, with empty ones before, between and after. */
static const struct weft_seg pieces[] = {
	{ NULL, 0 }, { (const u8 *)"abc", 3 }, { NULL, 0 }, { NULL, 0 },
	{ (const u8 *)"d", 1 }, { (const u8 *)"efgh", 4 }, { NULL, 0 },
};

static void cursor_counts_all_pieces_and_skips_empty_ones(void **state)
{
	struct weft_cur c;
	char out[9] = "";

	(void)state;
	weft_cur_init(&c, pieces, ARRAY_SIZE(pieces));
	assert_int_equal(c.left, 8);
	weft_cur_copy(&c, out, 8);
	assert_string_equal(out, "abcdefgh");
	assert_int_equal(c.left, 0);
}

/* The list is memory of its own: nothing behind it is read. */
static void skipping_ends_where_reading_would(void **state)
{
	static const u8 octets[9];
	static const u32 len[] = { 0, 3, 0, 0, 1, 5, 0 };
	struct weft_seg *seg = malloc(sizeof(*seg) * 7);
	struct weft_cur skipped, read;
	u8 out[9];
	u32 n, i;

	(void)state;
	assert_non_null(seg);
	for (i = 0; i < 7; i++)
		seg[i] = (struct weft_seg){ .p = octets, .len = len[i] };
	for (n = 0; n <= sizeof(octets); n++) {
		weft_cur_init(&skipped, seg, 7);
		weft_cur_init(&read, seg, 7);
		weft_cur_skip_pieces(&skipped, n);
		weft_cur_copy(&read, out, n);
		assert_ptr_equal(skipped.seg, read.seg);
		assert_int_equal(skipped.off, read.off);
		assert_int_equal(skipped.left, read.left);
	}
	free(seg);
}

static void cursor_over_nothing_has_nothing(void **state)
{
	struct weft_cur c;
	u32 len = 7;

	(void)state;
	weft_cur_init(&c, NULL, 0);
	assert_int_equal(c.left, 0);
	assert_null(weft_cur_piece(&c, 10, &len));
	assert_int_equal(len, 0);
	weft_cur_init(&c, pieces, 1);
	assert_int_equal(c.left, 0);
	weft_cur_skip(&c, 0);
	weft_cur_copy(&c, NULL, 0);
}

static void pieces_come_contiguous_and_no_longer_than_asked(void **state)
{
	struct weft_cur c;
	u32 len;

	(void)state;
	weft_cur_init(&c, pieces, ARRAY_SIZE(pieces));
	assert_memory_equal(weft_cur_piece(&c, 2, &len), "ab", 2);
	assert_int_equal(len, 2);
	assert_memory_equal(weft_cur_piece(&c, 9, &len), "c", 1);
	assert_int_equal(len, 1);
	assert_memory_equal(weft_cur_piece(&c, 9, &len), "d", 1);
	assert_memory_equal(weft_cur_piece(&c, 9, &len), "efgh", 4);
	assert_int_equal(len, 4);
	assert_null(weft_cur_piece(&c, 9, &len));
	assert_int_equal(len, 0);
}

static void a_copied_cursor_marks_its_place(void **state)
{
	struct weft_cur c, mark;
	char out[4] = "";

	(void)state;
	weft_cur_init(&c, pieces, ARRAY_SIZE(pieces));
	weft_cur_skip(&c, 2);
	mark = c;
	weft_cur_skip(&c, 5);
	assert_int_equal(c.left, 1);
	weft_cur_copy(&mark, out, 3);
	assert_string_equal(out, "cde");
	weft_cur_copy(&c, out, 1);
	assert_int_equal(out[0], 'h');
}

static void a_shortened_cursor_ends_early(void **state)
{
	struct weft_cur c;
	u32 len;

	(void)state;
	weft_cur_init(&c, pieces, ARRAY_SIZE(pieces));
	weft_cur_skip(&c, 4);
	c.left = 2;
	assert_memory_equal(weft_cur_piece(&c, 100, &len), "ef", 2);
	assert_int_equal(len, 2);
	assert_null(weft_cur_piece(&c, 100, &len));
}

static void cursor_sums_as_if_the_pieces_were_one(void **state)
{
	struct weft_cur c;

	(void)state;
	weft_cur_init(&c, pieces, ARRAY_SIZE(pieces));
	assert_int_equal(~weft_cur_crc(&c, ~0u, 7), ref_crc32c((const u8 *)"abcdefg", 7));
	assert_int_equal(c.left, 1);
}

static void crc_has_the_known_check_value(void **state)
{
	(void)state;
	assert_int_equal(ref_crc32c((const u8 *)"123456789", 9), 0xE3069283);
	assert_int_equal(~weft_crc32c(~0u, "123456789", 9), 0xE3069283);
}

static void crc_continues_over_any_cut(void **state)
{
	static u8 buf[4000];

	(void)state;
	pattern(buf, sizeof(buf), 2);
	for (u32 k = 0; k <= sizeof(buf); k += 7)
		assert_int_equal(weft_crc32c(weft_crc32c(~0u, buf, k), buf + k, sizeof(buf) - k),
				 weft_crc32c(~0u, buf, sizeof(buf)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_are_big_endian),
		cmocka_unit_test(only_the_crc_is_little_endian),
		cmocka_unit_test(cursor_counts_all_pieces_and_skips_empty_ones),
		cmocka_unit_test(skipping_ends_where_reading_would),
		cmocka_unit_test(cursor_over_nothing_has_nothing),
		cmocka_unit_test(pieces_come_contiguous_and_no_longer_than_asked),
		cmocka_unit_test(a_copied_cursor_marks_its_place),
		cmocka_unit_test(a_shortened_cursor_ends_early),
		cmocka_unit_test(cursor_sums_as_if_the_pieces_were_one),
		cmocka_unit_test(crc_has_the_known_check_value),
		cmocka_unit_test(crc_continues_over_any_cut),
	};

	return cmocka_run_group_tests_name("bytes", tests, NULL, NULL);
}
