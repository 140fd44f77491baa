// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* DDP and RDMAP headers, and how they are judged (RFC 5040 Fig. 4, RFC 7306 Fig. 2). */
#include "rig.h"

static void tagged_header_has_its_exact_octets(void **state)
{
	static const u8 bytes[14] = { 0xC1, 0x40, 0x11, 0x22, 0x33, 0x44,
				      0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x88 };
	const struct weft_ddp_hdr want = {
		.tagged = true, .last = true, .dv = 1, .rdmap = 0x40,
		.stag = 0x11223344, .to = 0x0102030405060788,
	};
	struct weft_ddp_hdr h;
	u8 out[14];

	(void)state;
	assert_int_equal(weft_ddp_len(bytes[0]), 14);
	memset(&h, 0xEE, sizeof(h));
	weft_ddp_read(guarded(0, bytes, 14), &h);
	assert_true(h.tagged && h.last && h.dv == 1 && h.rdmap == 0x40);
	assert_int_equal(h.stag, want.stag);
	assert_true(h.to == want.to);
	assert_true(!h.inv_stag && !h.qn && !h.msn && !h.mo);
	assert_ptr_equal(weft_ddp_write(out, &want), out + 14);
	assert_memory_equal(out, bytes, 14);
}

static void untagged_header_has_its_exact_octets(void **state)
{
	static const u8 bytes[18] = { 0x01, 0x44, 0xA1, 0xA2, 0xA3, 0xA4, 0, 0, 0, 3,
				      0xFF, 0xFF, 0xFF, 0xFE, 0x80, 0, 0, 1 };
	const struct weft_ddp_hdr want = {
		.dv = 1, .rdmap = 0x44, .inv_stag = 0xA1A2A3A4, .qn = 3,
		.msn = 0xFFFFFFFE, .mo = 0x80000001,
	};
	struct weft_ddp_hdr h;
	u8 out[18];

	(void)state;
	assert_int_equal(weft_ddp_len(bytes[0]), 18);
	memset(&h, 0xEE, sizeof(h));
	weft_ddp_read(guarded(0, bytes, 18), &h);
	assert_true(!h.tagged && !h.last && h.dv == 1 && h.rdmap == 0x44);
	assert_int_equal(h.inv_stag, want.inv_stag);
	assert_int_equal(h.qn, 3);
	assert_int_equal(h.msn, want.msn);
	assert_int_equal(h.mo, want.mo);
	assert_true(!h.stag && !h.to);
	assert_ptr_equal(weft_ddp_write(out, &want), out + 18);
	assert_memory_equal(out, bytes, 18);
}

static void reserved_ddp_bits_are_ignored(void **state)
{
	u8 bytes[18] = { 0x7D, 0x43 };
	struct weft_ddp_hdr h;

	(void)state;
	weft_ddp_read(bytes, &h);
	assert_true(h.last && !h.tagged);
	assert_int_equal(h.dv, 1);
}

static void read_request_has_its_exact_octets(void **state)
{
	static const u8 bytes[28] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16,
				      17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28 };
	struct weft_read_req r;
	u8 out[28];

	(void)state;
	weft_read_req_read(guarded(0, bytes, 28), &r);
	assert_int_equal(r.sink_stag, 0x01020304);
	assert_true(r.sink_to == 0x05060708090A0B0C);
	assert_int_equal(r.size, 0x0D0E0F10);
	assert_int_equal(r.src_stag, 0x11121314);
	assert_true(r.src_to == 0x15161718191A1B1C);
	assert_ptr_equal(weft_read_req_write(out, &r), out + 28);
	assert_memory_equal(out, bytes, 28);
}

/* The two figures as text: opcode, T, QN; 'x' for RFC 7306. */
static const char *const figure[16] = {
	"T-", "U1", "T-", "U0", "U0", "U0", "U0", "U2",
	"U0x", "U0x", "U1x", "U3x", NULL, NULL, NULL, NULL,
};

static bool figure_allows(u8 op, bool tagged, u32 qn, bool ext)
{
	const char *f = figure[op];

	if (!f || (f[2] == 'x' && !ext))
		return false;
	if (tagged)
		return f[0] == 'T';
	return f[0] == 'U' && qn == (u32)(f[1] - '0');
}

/* Order of the checks: DDP version, queue number, RDMAP version, opcode. */
static enum weft_err verdict(const struct weft_ddp_hdr *h, bool ext)
{
	if (h->dv != 1 && h->tagged)
		return WEFT_E_DDP_TVERSION;
	if (h->dv != 1)
		return WEFT_E_DDP_UVERSION;
	if (!h->tagged && (h->qn > 3 || (h->qn == 3 && !ext)))
		return WEFT_E_DDP_QN;
	if ((h->rdmap & 0xC0) != 0x40)
		return WEFT_E_RDMAP_VERSION;
	return figure_allows(h->rdmap & 0x0F, h->tagged, h->qn, ext) ?
	       WEFT_OK : WEFT_E_RDMAP_OPCODE;
}

/* Each opcode x T x QN x DV x RV x Rsv, with and without RFC 7306. */
static void each_header_gets_the_figures_verdict(void **state)
{
	static const u32 qns[] = { 0, 1, 2, 3, 4, 5, 0x80000000, 0xFFFFFFFF };
	u32 ok = 0;

	(void)state;
	for (u32 n = 0; n < 256 * 4 * 2 * 8 * 2; n++) {
		struct weft_ddp_hdr h = {
			.rdmap = n & 0xFF, .dv = n >> 8 & 3, .tagged = n >> 10 & 1,
			.qn = qns[n >> 11 & 7], .last = true, .inv_stag = 0xFFFFFFFF,
		};
		bool ext = n >> 14 & 1;

		assert_int_equal(weft_rdmap_check(&h, ext), verdict(&h, ext));
		ok += !verdict(&h, ext);
	}
	/* 2 tagged opcodes at 8 QNs (ignored), 6 or 10 untagged; 4 Rsv values. */
	assert_int_equal(ok, 4 * (2 * 2 * 8 + 6 + 10));
}

static void opcodes_say_how_they_are_sent(void **state)
{
	static const u8 len[16] = { [1] = 28, [8] = 8, [9] = 8, [0xA] = 52, [0xB] = 12 };

	(void)state;
	for (u8 op = 0; op < 12; op++) {
		assert_int_equal(weft_opcode_is_tagged(op), figure[op][0] == 'T');
		if (figure[op][0] == 'U')
			assert_int_equal(weft_opcode_qn(op), figure[op][1] - '0');
		assert_int_equal(weft_opcode_header_len(op), len[op]);
		assert_int_equal(weft_rdmap_ctl(op), 0x40 | op);
		assert_int_equal(weft_rdmap_opcode(0xF0 | op), op);
		assert_int_equal(weft_opcode_is_send(op), op >= 3 && op <= 6);
		assert_int_equal(weft_opcode_invalidates(op), op == 4 || op == 6);
		assert_int_equal(weft_opcode_solicits(op), op == 5 || op == 6 || op == 9);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tagged_header_has_its_exact_octets),
		cmocka_unit_test(untagged_header_has_its_exact_octets),
		cmocka_unit_test(reserved_ddp_bits_are_ignored),
		cmocka_unit_test(read_request_has_its_exact_octets),
		cmocka_unit_test(each_header_gets_the_figures_verdict),
		cmocka_unit_test(opcodes_say_how_they_are_sent),
	};

	return cmocka_run_group_tests_name("headers", tests, NULL, NULL);
}
