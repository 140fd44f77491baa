// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* MPA start-up frames: octets out, octets in (RFC 5044 §7.1.1, RFC 6581 §6, §9). */
#include "rig.h"

#define REQ_KEY "MPA ID Req Frame"
#define REP_KEY "MPA ID Rep Frame"

struct frame_row {
	const char *what;
	struct weft_mpa_frame f;
	const char *pd;
	const char *bytes;
	u32 len;
};

#define BYTES(s) .bytes = s, .len = sizeof(s) - 1

static const struct frame_row rows[] = {
	{ "plain revision 1 Request", { .rev = 1 }, "", BYTES(REQ_KEY "\x00\x01\x00\x00") },
	{ "M and C", { .rev = 1, .markers = true, .crc = true }, "",
	  BYTES(REQ_KEY "\xC0\x01\x00\x00") },
	{ "private data", { .rev = 1, .crc = true, .pd_len = 3 }, "abc",
	  BYTES(REQ_KEY "\x40\x01\x00\x03" "abc") },
	{ "plain Reply", { .reply = true, .rev = 1 }, "", BYTES(REP_KEY "\x00\x01\x00\x00") },
	{ "rejecting Reply with data", { .reply = true, .rev = 1, .reject = true, .pd_len = 2 },
	  "no", BYTES(REP_KEY "\x20\x01\x00\x02" "no") },
	{ "revision 2 without S", { .rev = 2 }, "", BYTES(REQ_KEY "\x00\x02\x00\x00") },
	{ "S with depths", { .rev = 2, .enhanced = true, .ird = 0x1234, .ord = 0x2BCD }, "",
	  BYTES(REQ_KEY "\x10\x02\x00\x04" "\x12\x34\x2B\xCD") },
	{ "S with depths not negotiated, and data",
	  { .rev = 2, .enhanced = true, .crc = true, .ird = 0x3FFF, .ord = 0x3FFF, .pd_len = 1 },
	  "x", BYTES(REQ_KEY "\x50\x02\x00\x05" "\x3F\xFF\x3F\xFF" "x") },
	{ "A alone", { .rev = 2, .enhanced = true, .p2p = true }, "",
	  BYTES(REQ_KEY "\x10\x02\x00\x04" "\x80\x00\x00\x00") },
	{ "A and B", { .rev = 2, .enhanced = true, .p2p = true, .rtr = WEFT_RTR_SEND }, "",
	  BYTES(REQ_KEY "\x10\x02\x00\x04" "\xC0\x00\x00\x00") },
	{ "A and C", { .rev = 2, .enhanced = true, .p2p = true, .rtr = WEFT_RTR_WRITE }, "",
	  BYTES(REQ_KEY "\x10\x02\x00\x04" "\x80\x00\x80\x00") },
	{ "A and D", { .rev = 2, .enhanced = true, .p2p = true, .rtr = WEFT_RTR_READ }, "",
	  BYTES(REQ_KEY "\x10\x02\x00\x04" "\x80\x00\x40\x00") },
	{ "all of it in a Reply",
	  { .reply = true, .rev = 2, .enhanced = true, .p2p = true, .rtr = WEFT_RTR_ALL,
	    .markers = true, .crc = true, .reject = true, .ird = 1, .ord = 2, .pd_len = 2 },
	  "ok", BYTES(REP_KEY "\xF0\x02\x00\x06" "\xC0\x01\xC0\x02" "ok") },
};

static void each_frame_has_its_exact_octets(void **state)
{
	u8 out[WEFT_MPA_FRAME_MAX];

	(void)state;
	for (u32 i = 0; i < ARRAY_SIZE(rows); i++) {
		print_message("# %s\n", rows[i].what);
		assert_int_equal(weft_mpa_frame_write(&rows[i].f, rows[i].pd, out, sizeof(out)),
				 rows[i].len);
		assert_memory_equal(out, rows[i].bytes, rows[i].len);
	}
}

static void each_frame_is_read_as_it_was_meant(void **state)
{
	struct weft_mpa_frame f;
	const u8 *pd;

	(void)state;
	for (u32 i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct frame_row *r = &rows[i];
		const u8 *p = guarded(0, r->bytes, r->len);

		print_message("# %s\n", r->what);
		assert_int_equal(weft_mpa_frame_need(p, r->len, r->f.reply), r->len);
		assert_int_equal(weft_mpa_frame_read(p, r->len, r->f.reply, &f, &pd), WEFT_OK);
		assert_memory_equal(&f, &r->f, sizeof(f));
		assert_ptr_equal(pd, p + r->len - r->f.pd_len);
		/* The wrong key, one byte too short, one byte too long. */
		assert_int_equal(weft_mpa_frame_read(p, r->len, !r->f.reply, &f, &pd),
				 WEFT_E_MPA_STARTUP);
		assert_int_equal(weft_mpa_frame_read(p + 1, r->len - 1, r->f.reply, &f, &pd),
				 WEFT_E_MPA_STARTUP);
		p = guarded(0, r->bytes, r->len - 1);
		assert_int_equal(weft_mpa_frame_read(p, r->len - 1, r->f.reply, &f, &pd),
				 WEFT_E_MPA_STARTUP);
	}
}

static void need_is_told_from_any_prefix(void **state)
{
	const char req[] = REQ_KEY "\x40\x01\x01\x02";

	(void)state;
	for (u32 n = 0; n < 20; n++)
		assert_int_equal(weft_mpa_frame_need(guarded(0, req, n), n, false), 20);
	assert_int_equal(weft_mpa_frame_need(guarded(0, req, 20), 20, false), 20 + 0x102);
}

static void a_wrong_key_is_known_at_its_first_wrong_octet(void **state)
{
	char key[21];

	(void)state;
	for (u32 k = 0; k < 16; k++) {
		memcpy(key, REQ_KEY "\x40\x01\x00\x00", 20);
		key[k] ^= 0x20;
		for (u32 n = 0; n <= 20; n++)
			assert_int_equal(weft_mpa_frame_need(guarded(0, key, n), n, false),
					 n > k ? 0 : 20);
	}
	/* A Reply's key where a Request is expected: the tenth octet shows it. */
	assert_int_equal(weft_mpa_frame_need((const u8 *)REP_KEY, 9, false), 20);
	assert_int_equal(weft_mpa_frame_need((const u8 *)REP_KEY, 10, false), 0);
	assert_int_equal(weft_mpa_frame_need((const u8 *)"GET / HTTP/1.0\r\n", 1, false), 0);
}

static void pd_length_is_legal_up_to_512(void **state)		/* MPA-21, MPA-22, SIW-03, SIW-36 */
{
	static const struct { u16 len; bool ok; } pd[] = {
		{ 0, true }, { 1, true }, { 256, true }, { 257, true }, { 511, true },
		{ 512, true }, { 513, false }, { 0x0300, false }, { 0xFFFF, false },
	};
	u8 buf[20 + 512] = REP_KEY "\x40\x01";
	struct weft_mpa_frame f;
	const u8 *p;

	(void)state;
	for (u32 i = 0; i < ARRAY_SIZE(pd); i++) {
		u32 len = 20 + (pd[i].ok ? pd[i].len : 0);

		weft_put16(buf + 18, pd[i].len);
		assert_int_equal(weft_mpa_frame_need(buf, 20, true), pd[i].ok ? len : 0);
		assert_int_equal(weft_mpa_frame_read(buf, len, true, &f, &p),
				 pd[i].ok ? WEFT_OK : WEFT_E_MPA_STARTUP);
		if (pd[i].ok)
			assert_int_equal(f.pd_len, pd[i].len);
	}
}

/* ENH-07, SIW-02, SIW-38 */
static void enhanced_frame_with_less_than_four_octets_is_refused(void **state)
{
	static const char *const enh = "\x10\x02\x00";
	u8 buf[28] = REQ_KEY;
	struct weft_mpa_frame f;
	const u8 *pd;

	(void)state;
	memcpy(buf + 16, enh, 3);
	for (u8 n = 0; n < 8; n++) {
		u8 *p;

		buf[19] = n;
		p = guarded(0, buf, 20 + n);
		assert_int_equal(weft_mpa_frame_read(p, 20 + n, false, &f, &pd),
				 n < 4 ? WEFT_E_MPA_STARTUP : WEFT_OK);
		if (n >= 4)
			assert_int_equal(f.pd_len, n - 4);
	}
}

static void reserved_bits_and_r_of_a_request_are_ignored(void **state)
{
	u8 buf[20] = REQ_KEY "\x6F\x01\x00";
	struct weft_mpa_frame f;
	const u8 *pd;

	(void)state;
	assert_int_equal(weft_mpa_frame_read(buf, 20, false, &f, &pd), WEFT_OK);
	assert_true(f.crc && !f.markers && !f.reject && !f.enhanced);
}

static void s_is_reserved_before_revision_2(void **state)	/* ENH-08, SIW-33 */
{
	u8 buf[20] = REQ_KEY "\x50\x01\x00";
	struct weft_mpa_frame f = { .rev = 1, .enhanced = true, .ird = 7 };
	const u8 *pd;
	u8 out[64];

	(void)state;
	assert_int_equal(weft_mpa_frame_read(buf, 20, false, &f, &pd), WEFT_OK);
	assert_false(f.enhanced);
	f.enhanced = true;
	assert_int_equal(weft_mpa_frame_write(&f, NULL, out, sizeof(out)), 20);
	assert_int_equal(out[16], 0x40);
}

static void rtr_flags_without_a_are_neither_sent_nor_seen(void **state)
{
	struct weft_mpa_frame f = { .rev = 2, .enhanced = true, .rtr = WEFT_RTR_ALL, .ird = 1 };
	u8 buf[24] = REQ_KEY "\x10\x02\x00\x04" "\x40\x05\xC0\x06";
	const u8 *pd;
	u8 out[24];

	(void)state;
	assert_int_equal(weft_mpa_frame_write(&f, NULL, out, sizeof(out)), 24);
	assert_memory_equal(out + 20, "\x00\x01\x00\x00", 4);
	assert_int_equal(weft_mpa_frame_read(buf, 24, false, &f, &pd), WEFT_OK);
	assert_int_equal(f.rtr, 0);
	assert_false(f.p2p);
	assert_int_equal(f.ird, 5);
	assert_int_equal(f.ord, 6);
}

static void a_request_never_carries_r(void **state)
{
	struct weft_mpa_frame f = { .rev = 1, .reject = true };
	u8 out[20];

	(void)state;
	assert_int_equal(weft_mpa_frame_write(&f, NULL, out, sizeof(out)), 20);
	assert_int_equal(out[16], 0);
}

static void private_data_is_bounded_on_sending(void **state)	/* MPA-25, SIW-37 */
{
	static const u8 pd[600];
	struct weft_mpa_frame plain = { .rev = 1 }, enh = { .rev = 2, .enhanced = true };
	u8 out[WEFT_MPA_FRAME_MAX];

	(void)state;
	plain.pd_len = 512;
	assert_int_equal(weft_mpa_frame_write(&plain, pd, out, sizeof(out)), 532);
	assert_int_equal(weft_mpa_frame_write(&plain, pd, out, 531), 0);
	plain.pd_len = 513;
	assert_int_equal(weft_mpa_frame_write(&plain, pd, out, sizeof(out)), 0);
	enh.pd_len = 508;
	assert_int_equal(weft_mpa_frame_write(&enh, pd, out, sizeof(out)), 532);
	assert_memory_equal(out + 18, "\x02\x00", 2);
	enh.pd_len = 509;
	assert_int_equal(weft_mpa_frame_write(&enh, pd, out, sizeof(out)), 0);
	enh.pd_len = 0xFFFF;
	assert_int_equal(weft_mpa_frame_write(&enh, pd, out, sizeof(out)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_frame_has_its_exact_octets),
		cmocka_unit_test(each_frame_is_read_as_it_was_meant),
		cmocka_unit_test(need_is_told_from_any_prefix),
		cmocka_unit_test(a_wrong_key_is_known_at_its_first_wrong_octet),
		cmocka_unit_test(pd_length_is_legal_up_to_512),
		cmocka_unit_test(enhanced_frame_with_less_than_four_octets_is_refused),
		cmocka_unit_test(reserved_bits_and_r_of_a_request_are_ignored),
		cmocka_unit_test(s_is_reserved_before_revision_2),
		cmocka_unit_test(rtr_flags_without_a_are_neither_sent_nor_seen),
		cmocka_unit_test(a_request_never_carries_r),
		cmocka_unit_test(private_data_is_bounded_on_sending),
	};

	return cmocka_run_group_tests_name("frames", tests, NULL, NULL);
}
