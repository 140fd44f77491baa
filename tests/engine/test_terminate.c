// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Terminates: RFC 5040 §4.8 with Fig. 8 to 10, RFC 5041 §8.2, RFC 6581 §8. */
#include "rig.h"

/*
 * Written by hand: the first three octets as sent for a faulty Send (tagged: Write), the third
 * again for a Read Request, and the name.
 */
struct term_row {
	enum weft_err e;
	u8 layer_etype, code, hdr, hdr_read;
	const char *name;
};

#define M_D 0xC0
#define MDR 0xE0

static const struct term_row rows[] = {
	{ WEFT_E_MPA_CRC,	0x20, 0x02, 0, 0, "mpa-crc" },
	{ WEFT_E_MPA_MARKER,	0x20, 0x03, 0, 0, "mpa-marker" },
	{ WEFT_E_MPA_SETUP,	0x20, 0x05, 0, 0, "mpa-setup" },
	{ WEFT_E_MPA_IRD,	0x20, 0x06, 0, 0, "mpa-ird" },
	{ WEFT_E_MPA_RTR,	0x20, 0x07, 0, 0, "mpa-rtr" },
	{ WEFT_E_DDP_LOCAL,	0x10, 0x00, 0, 0, "ddp-local" },
	{ WEFT_E_DDP_STAG,	0x11, 0x00, M_D, M_D, "ddp-stag" },
	{ WEFT_E_DDP_BOUNDS,	0x11, 0x01, M_D, M_D, "ddp-bounds" },
	{ WEFT_E_DDP_ASSOC,	0x11, 0x02, M_D, M_D, "ddp-assoc" },
	{ WEFT_E_DDP_WRAP,	0x11, 0x03, M_D, M_D, "ddp-wrap" },
	{ WEFT_E_DDP_TVERSION,	0x11, 0x04, M_D, M_D, "ddp-tagged-version" },
	{ WEFT_E_DDP_QN,	0x12, 0x01, M_D, M_D, "ddp-qn" },
	{ WEFT_E_DDP_NO_BUFFER,	0x12, 0x02, M_D, M_D, "ddp-no-buffer" },
	{ WEFT_E_DDP_MSN,	0x12, 0x03, M_D, M_D, "ddp-msn" },
	{ WEFT_E_DDP_MO,	0x12, 0x04, M_D, M_D, "ddp-mo" },
	{ WEFT_E_DDP_TOO_LONG,	0x12, 0x05, M_D, M_D, "ddp-too-long" },
	{ WEFT_E_DDP_UVERSION,	0x12, 0x06, M_D, M_D, "ddp-untagged-version" },
	{ WEFT_E_RDMAP_LOCAL,	0x00, 0x00, 0, 0, "rdmap-local" },
	{ WEFT_E_RDMAP_STAG,	0x01, 0x00, M_D, MDR, "rdmap-stag" },
	{ WEFT_E_RDMAP_BOUNDS,	0x01, 0x01, M_D, MDR, "rdmap-bounds" },
	{ WEFT_E_RDMAP_ACCESS,	0x01, 0x02, M_D, MDR, "rdmap-access" },
	{ WEFT_E_RDMAP_ASSOC,	0x01, 0x03, M_D, MDR, "rdmap-assoc" },
	{ WEFT_E_RDMAP_WRAP,	0x01, 0x04, M_D, MDR, "rdmap-wrap" },
	{ WEFT_E_RDMAP_PROT_CANT_INV, 0x01, 0x09, M_D, MDR, "rdmap-protected-invalidate" },
	{ WEFT_E_RDMAP_VERSION,	0x02, 0x05, M_D, M_D, "rdmap-version" },
	{ WEFT_E_RDMAP_OPCODE,	0x02, 0x06, M_D, M_D, "rdmap-opcode" },
	{ WEFT_E_RDMAP_STREAM,	0x02, 0x07, M_D, M_D, "rdmap-stream" },
	{ WEFT_E_RDMAP_GLOBAL,	0x02, 0x08, M_D, M_D, "rdmap-global" },
	{ WEFT_E_RDMAP_CANT_INV, 0x02, 0x09, M_D, M_D, "rdmap-cannot-invalidate" },
	{ WEFT_E_RDMAP_UNSPECIFIED, 0x02, 0xFF, M_D, M_D, "rdmap-unspecified" },
};

static void the_table_above_is_complete(void **state)
{
	(void)state;
	assert_int_equal(ARRAY_SIZE(rows), WEFT_E_NR - 2);
	for (u32 i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(rows[i].e, i + WEFT_E_MPA_CRC);
		assert_string_equal(weft_err_name(rows[i].e), rows[i].name);
	}
	assert_string_equal(weft_err_name(WEFT_OK), "ok");
	assert_string_equal(weft_err_name(WEFT_E_MPA_STARTUP), "mpa-startup");
}

static void each_code_leads_back_to_its_error(void **state)
{
	(void)state;
	u32 found = 0;

	for (u32 i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(weft_err_of_term(rows[i].layer_etype >> 4,
						  rows[i].layer_etype & 0x0F, rows[i].code),
				 rows[i].e);
	/* No other code maps to an error. */
	for (u32 i = 0; i < 1 << 16; i++)
		found += weft_err_of_term((u8)(i >> 12), i >> 8 & 0x0F, (u8)i) != WEFT_OK;
	assert_int_equal(found, ARRAY_SIZE(rows));
}

/* @hdr: the offending message's header. Checks all octets of the Terminate's body. */
static void exact(const struct term_row *r, const u8 *hdr, u32 hdr_len, u8 bits)
{
	u32 attached = bits & 0x20 ? 46 : bits & 0x40 ? weft_ddp_len(hdr[0]) : 0;
	u8 want[64] = { r->layer_etype, r->code, bits, 0, 0x12, 0x34 };
	u32 want_len = attached ? 6 + attached : 4;
	u8 *out = guarded(1, want, want_len);
	struct weft_term t;

	if (attached)
		memcpy(want + 6, hdr, attached);
	weft_term_make(&t, r->e, hdr, hdr_len, 0x1234);
	assert_ptr_equal(weft_term_write(out, &t), out + want_len);
	assert_memory_equal(out, want, want_len);
}

static void each_error_has_its_exact_terminate(void **state)	/* RDM-43, RDM-44, SIW-04 */
{
	u8 send[60], write[60], read[60], sendinv[60];

	(void)state;
	pattern(send, sizeof(send), 1);
	memcpy(write, send, sizeof(send));
	memcpy(read, send, sizeof(send));
	memcpy(sendinv, send, sizeof(send));
	memcpy(send, "\x41\x43", 2);
	memcpy(write, "\xC1\x40", 2);
	memcpy(read, "\x41\x41", 2);
	memcpy(sendinv, "\x41\x44", 2);
	for (u32 i = 0; i < ARRAY_SIZE(rows); i++) {
		exact(&rows[i], guarded(0, send, 18), 18, rows[i].hdr);
		exact(&rows[i], guarded(0, send, 60), 60, rows[i].hdr);
		exact(&rows[i], guarded(0, sendinv, 60), 60, rows[i].hdr);
		exact(&rows[i], guarded(0, write, 14), 14, rows[i].hdr);
		exact(&rows[i], guarded(0, read, 46), 46, rows[i].hdr_read);
		exact(&rows[i], guarded(0, read, 60), 60, rows[i].hdr_read);
		/* A truncated Read Request, and a tagged segment that only looks like one. */
		exact(&rows[i], guarded(0, read, 45), 45, rows[i].hdr);
		write[1] = 0x41;
		exact(&rows[i], guarded(0, write, 60), 60, rows[i].hdr);
		write[1] = 0x40;
	}
}

static void no_header_is_attached_that_did_not_come_whole(void **state)
{
	static const u8 send[18] = { 0x41, 0x43 }, write[14] = { 0xC1, 0x40 };

	(void)state;
	for (u32 i = 0; i < ARRAY_SIZE(rows); i++) {
		exact(&rows[i], NULL, 0, 0);
		exact(&rows[i], guarded(0, send, 17), 17, 0);
		exact(&rows[i], guarded(0, send, 1), 1, 0);
		exact(&rows[i], guarded(0, write, 13), 13, 0);
	}
}

/* RFC 5040 §4.8: the length "MUST be present when the D bit is set", valid when M is. */
static void the_length_is_there_with_either_bit(void **state)
{
	struct weft_term t = { .layer = 1, .etype = 2, .code = 3, .m = true, .seg_len = 0x102 };
	u8 out[64], d[64] = { 0x12, 3, 0x40, 0, 1, 2 };

	(void)state;
	assert_ptr_equal(weft_term_write(out, &t), out + 6);
	assert_memory_equal(out, "\x12\x03\x80\x00\x01\x02", 6);
	t.m = false;
	t.d = true;
	t.hdr_len = 14;
	memset(t.hdr, 0xC1, 14);
	memset(d + 6, 0xC1, 14);
	assert_ptr_equal(weft_term_write(out, &t), out + 20);
	assert_memory_equal(out, d, 20);
	/* Read: D alone skips the length and does not trust it. */
	weft_term_read(guarded(0, d, 20), 20, &t);
	assert_int_equal(t.seg_len, 0);
	assert_int_equal(t.hdr_len, 14);
}

static void same_term(const struct weft_term *a, const struct weft_term *b)
{
	assert_int_equal(a->layer, b->layer);
	assert_int_equal(a->etype, b->etype);
	assert_int_equal(a->code, b->code);
	assert_true(a->m == b->m && a->d == b->d && a->r == b->r);
	assert_int_equal(a->seg_len, b->seg_len);
	assert_int_equal(a->hdr_len, b->hdr_len);
	assert_memory_equal(a->hdr, b->hdr, sizeof(a->hdr));
}

static void a_terminate_is_read_as_it_was_made(void **state)
{
	u8 read[46], body[WEFT_TERM_MAX];

	(void)state;
	pattern(read, sizeof(read), 2);
	memcpy(read, "\x41\x41", 2);
	for (u32 i = 0; i < ARRAY_SIZE(rows); i++) {
		struct weft_term made, got;
		u32 len;

		weft_term_make(&made, rows[i].e, read, sizeof(read), 46);
		len = (u32)(weft_term_write(body, &made) - body);
		weft_term_read(guarded(0, body, len), len, &got);
		same_term(&got, &made);
	}
}

static void a_terminate_may_be_cut_anywhere(void **state)
{
	u8 read[46], body[WEFT_TERM_MAX];
	struct weft_term whole, t;

	(void)state;
	pattern(read, sizeof(read), 3);
	memcpy(read, "\x41\x41", 2);
	weft_term_make(&whole, WEFT_E_RDMAP_ACCESS, read, sizeof(read), 0xABCD);
	weft_term_write(body, &whole);
	for (u32 len = 0; len <= sizeof(body); len++) {
		weft_term_read(guarded(0, body, len), len, &t);
		assert_int_equal(t.etype, len >= 1 ? 1 : 0);
		assert_int_equal(t.code, len >= 2 ? 2 : 0);
		assert_int_equal(t.m && t.d && t.r, len >= 3);
		assert_int_equal(t.seg_len, len >= 6 ? 0xABCD : len == 5 ? 0xAB00 : 0);
		assert_int_equal(t.hdr_len, len > 6 ? len - 6 : 0);
		assert_memory_equal(t.hdr, read, t.hdr_len);
		for (u32 i = t.hdr_len; i < sizeof(t.hdr); i++)
			assert_int_equal(t.hdr[i], 0);
	}
}

static void a_terminate_may_be_longer_than_it_says(void **state)
{
	u8 body[200];
	struct weft_term t;

	(void)state;
	memset(body, 0xFF, sizeof(body));
	/* Untagged DDP, untagged header: 18; all bits set, Reserved included. */
	memcpy(body, "\x12\x05\xC0\x00\x00\x12\x41\x43", 8);
	weft_term_read(guarded(0, body, 200), 200, &t);
	assert_int_equal(t.hdr_len, 18);
	body[2] = 0xFF;
	body[3] = 0xFF;
	weft_term_read(guarded(0, body, 200), 200, &t);
	assert_true(t.m && t.d && t.r);
	assert_int_equal(t.hdr_len, 46);
	/* D of a tagged header. */
	body[6] = 0xC1;
	weft_term_read(guarded(0, body, 200), 200, &t);
	assert_int_equal(t.hdr_len, 14 + 28);
	/* R without D: ignored, since R needs the DDP header. */
	body[2] = 0x20;
	weft_term_read(guarded(0, body, 200), 200, &t);
	assert_int_equal(t.hdr_len, 0);
	assert_int_equal(t.seg_len, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_table_above_is_complete),
		cmocka_unit_test(each_code_leads_back_to_its_error),
		cmocka_unit_test(each_error_has_its_exact_terminate),
		cmocka_unit_test(no_header_is_attached_that_did_not_come_whole),
		cmocka_unit_test(the_length_is_there_with_either_bit),
		cmocka_unit_test(a_terminate_is_read_as_it_was_made),
		cmocka_unit_test(a_terminate_may_be_cut_anywhere),
		cmocka_unit_test(a_terminate_may_be_longer_than_it_says),
	};

	return cmocka_run_group_tests_name("terminate", tests, NULL, NULL);
}
