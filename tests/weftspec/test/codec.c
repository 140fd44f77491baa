/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Unit tests of the tester's own codec: RFC vectors first, then its edges. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <string.h>
#include <stdio.h>
#include <cmocka.h>

#include "../bytes.h"
#include "../crc32c.h"
#include "../ddp.h"
#include "../fpdu.h"
#include "../mpa.h"
#include "../term.h"

static size_t send24(uint8_t *out, uint32_t msn)
{
	static const uint8_t zero[24];
	struct seg s = { .last = true, .dv = 1, .rv = 1, .op = OP_SEND,
			 .msn = msn, .data = zero, .len = 24 };

	return seg_encode(out, &s);
}

static void crc_check_value(void **state)
{
	assert_int_equal(crc32c("123456789", 9), 0xe3069283);
	assert_int_equal(crc32c("", 0), 0);
}

static void rfc5044_figure_5(void **state)
{
	static const uint8_t want[4] = { 0x52, 0x23, 0x99, 0x83 };
	struct fpdu_tx tx = { .markers = true, .crc = true };
	uint8_t ulpdu[64], wire[256];
	size_t n = fpdu_build(&tx, wire, ulpdu, send24(ulpdu, 1), NULL);

	assert_int_equal(n, 0x34);
	assert_int_equal(get32(wire), 0);
	assert_int_equal(get16(wire + 4), 0x2a);
	assert_int_equal(get16(wire + 6), 0x4143);
	assert_memory_equal(wire + 0x30, want, 4);
}

static void rfc5044_figure_6(void **state)
{
	static const uint8_t want[4] = { 0x84, 0x92, 0x58, 0x98 };
	struct fpdu_tx tx = { .markers = true, .crc = true, .pos = 0x1ec };
	uint8_t ulpdu[64], wire[256];
	size_t n = fpdu_build(&tx, wire, ulpdu, send24(ulpdu, 2), NULL);

	assert_int_equal(n, 0x34);
	assert_int_equal(get32(wire + 0x14), 0x14);
	assert_memory_equal(wire + 0x30, want, 4);
}

/* Every length and start position with Markers survives the round trip. */
static void markers_round_trip(void **state)
{
	static struct fpdu_rx rx;
	static uint8_t in[3000], wire[4000];
	struct fpdu f;

	for (size_t i = 0; i < sizeof(in); i++)
		in[i] = (uint8_t)(i * 7 + 3);
	for (uint32_t pos = 0; pos < 520; pos += 4)
		for (size_t len = 1; len < 1200; len += 37) {
			struct fpdu_tx tx = { .markers = true, .crc = true,
					      .pos = pos };
			size_t n = fpdu_build(&tx, wire, in, len, NULL);

			rx.markers = true;
			rx.pos = pos;
			assert_int_equal(fpdu_parse(&rx, wire, n - 1, &f), 0);
			assert_int_equal(fpdu_parse(&rx, wire, n, &f), n);
			assert_true(f.crc_ok);
			assert_false(f.mk_ptr_bad | f.mk_low_bad |
				     f.mk_reserved_bad);
			assert_int_equal(f.len, len);
			assert_memory_equal(f.ulpdu, in, len);
		}
}

/* FPDUPTR counts from the length field, also when a Marker stands before it. */
static void pointer_behind_a_leading_marker(void **state)
{
	static uint8_t ulpdu[600], wire[700];
	struct fpdu_tx tx = { .markers = true, .crc = true, .pos = 1024 };

	fpdu_build(&tx, wire, ulpdu, sizeof(ulpdu), NULL);
	assert_int_equal(get32(wire), 0);
	assert_int_equal(get16(wire + 4), 600);
	assert_int_equal(get32(wire + 512), 508);
}

static void each_break_is_seen(void **state)
{
	static struct fpdu_rx rx;
	struct fpdu_tx tx = { .markers = true, .crc = true };
	struct fpdu_break crc = { .crc_xor = 1 }, ptr = { .mk_add = 4 };
	struct fpdu_break res = { .mk_reserved = 0xffff }, low = { .mk_or = 3 };
	struct fpdu_break pad = { .pad = { 0xff, 0xee, 0xdd } };
	const struct fpdu_break *all[] = { &crc, &ptr, &res, &low, &pad };
	uint8_t wire[64];
	struct fpdu f[5];

	for (int i = 0; i < 5; i++) {
		size_t n;

		tx.pos = 0;
		rx = (struct fpdu_rx){ .markers = true };
		n = fpdu_build(&tx, wire, (const uint8_t *)"abc", 3, all[i]);
		assert_int_equal(fpdu_parse(&rx, wire, n, &f[i]), n);
		assert_int_equal(f[i].crc_ok, i != 0);
	}
	assert_true(f[1].mk_ptr_bad && !f[0].mk_ptr_bad);
	assert_true(f[2].mk_reserved_bad && !f[1].mk_reserved_bad);
	assert_true(f[3].mk_low_bad && !f[2].mk_low_bad);
	assert_int_equal(f[4].npad, 3);
	assert_int_equal(f[4].pad[2], 0xdd);
}

static void crc_off_still_has_the_field(void **state)
{
	struct fpdu_tx tx = { .crc = false };
	uint8_t wire[64];

	assert_int_equal(fpdu_build(&tx, wire, (const uint8_t *)"ab", 2, NULL),
			 8);
	assert_int_equal(get32(wire + 4), 0);
}

static void startup_frames(void **state)
{
	struct mpa_frame f = { .flags = MPA_C | MPA_S, .rev = 2, .pd_len = 4 };
	struct mpa_enh e = { .a = true, .c = true, .ird = 5, .ord = 0x3fff };
	struct mpa_frame g;
	struct mpa_enh h;
	uint8_t wire[32];

	memcpy(f.key, mpa_key_req, MPA_KEY);
	mpa_enh_encode(mpa_encode(wire, &f), &e);
	assert_memory_equal(wire, "MPA ID Req Frame", 16);
	assert_int_equal(get32(wire + 16), 0x50020004);
	assert_int_equal(get32(wire + 20), 0x8005bfff);
	mpa_decode(wire, &g);
	assert_memory_equal(&f, &g, sizeof(f));
	mpa_enh_decode(wire + 20, &h);
	assert_true(h.a && !h.b && h.c && !h.d);
	assert_int_equal(h.ird, 5);
	assert_int_equal(h.ord, 0x3fff);
}

/* RFC 6581 changes nothing below revision 2: the codec keeps the bytes. */
static void old_revisions(void **state)
{
	for (uint8_t rev = 0; rev < 3; rev++) {
		struct mpa_frame f = { .flags = MPA_M, .rev = rev }, g;
		uint8_t wire[MPA_HEAD];

		memcpy(f.key, mpa_key_rep, MPA_KEY);
		mpa_encode(wire, &f);
		mpa_decode(wire, &g);
		assert_int_equal(g.rev, rev);
		assert_int_equal(g.flags, MPA_M);
	}
}

static void headers_round_trip(void **state)
{
	struct seg t = { .tagged = true, .dv = 1, .rv = 1, .op = OP_WRITE,
			 .stag = 0x12345678, .to = 0x123456789abcdef0ull,
			 .data = (const uint8_t *)"xy", .len = 2 };
	struct rreq r = { 1, 2, 3, 4, 5 }, q;
	struct atomic a = { .code = ATOMIC_CSWAP, .id = 9, .stag = 1, .to = 8,
			    .add = 1, .add_mask = 2, .cmp = 3, .cmp_mask = 4 };
	struct atomic b;
	struct seg u;
	uint8_t w[64];

	assert_int_equal(seg_encode(w, &t), 16);
	assert_int_equal(get16(w), 0x8140);
	assert_int_equal(seg_decode(w, 16, &u), 0);
	assert_true(u.tagged && !u.last && u.to == t.to && u.len == 2);
	assert_int_equal(seg_decode(w, 13, &u), -1);
	assert_int_equal(rreq_encode(w, &r) - w, RDMA_READ_LEN);
	rreq_decode(w, &q);
	assert_true(q.src_to == 5 && q.size == 3 && q.sink_to == 2);
	assert_int_equal(atomic_encode(w, &a) - w, ATOMIC_REQ_LEN);
	atomic_decode(w, &b);
	assert_memory_equal(&a, &b, sizeof(a));
}

static void terminate_strict(void **state)
{
	uint8_t b[64] = { 0x12, 0x05, 0xc0, 0x00, 0x00, 0x1a, 0x41, 0x43 };
	struct term t;

	assert_int_equal(term_decode(b, 24, TERM_STRICT, &t), 0);
	assert_int_equal(t.layer << 16 | t.etype << 8 | t.code, 0x010205);
	assert_int_equal(t.bits, TERM_MD);
	assert_int_equal(t.seglen, 26);
	assert_int_equal(t.ddp_len, 18);
	assert_true(!t.cut && !t.left && t.read_as == TERM_STRICT);
	assert_int_equal(term_decode(b, 23, TERM_STRICT, &t), 0);
	assert_true(t.cut);
	assert_int_equal(term_decode(b, 3, TERM_STRICT, &t), -1);
}

/* The bytes siw sends for 0/1/02 MDR, 1/2/03 MD, 2/0/02 - and 1/1/00 MD. */
static void terminate_siw_bitorder(void **state)
{
	uint8_t rights[52] = { 0x10, 0x02, 0x07, 0, 0, 0, 0x41, 0x41 };
	uint8_t msn[24] = { 0x21, 0x03, 0x03, 0, 0, 0, 0x41, 0x43 };
	uint8_t crc[4] = { 0x02, 0x02, 0x00, 0x00 };
	uint8_t stag[20] = { 0x11, 0x00, 0x03, 0, 0, 22, 0xc1, 0x40 };
	uint8_t both[4] = { 0x20, 0x06, 0x00, 0x00 };
	struct term t;

	term_decode(rights, sizeof(rights), TERM_STRICT, &t);
	assert_true(t.read_as == TERM_SIW_BITORDER && t.layer == 0 &&
		    t.etype == 1 && t.bits == TERM_MDR && !t.left);
	term_decode(msn, sizeof(msn), TERM_STRICT, &t);
	assert_true(t.read_as == TERM_SIW_BITORDER && t.layer == 1 &&
		    t.etype == 2 && t.code == 3);
	term_decode(crc, sizeof(crc), TERM_STRICT, &t);
	assert_true(t.read_as == TERM_SIW_BITORDER && t.layer == 2);
	term_decode(stag, sizeof(stag), TERM_STRICT, &t);
	assert_true(t.read_as == TERM_SIW_BITORDER && t.bits == TERM_MD);
	term_decode(both, sizeof(both), TERM_STRICT, &t);
	assert_true(t.read_as == TERM_STRICT && t.layer == 2);
	term_decode(both, sizeof(both), TERM_SIW_BITORDER, &t);
	assert_true(t.layer == 0 && t.etype == 2);
}

/* A right Terminate is never mistaken for a reversed one, whatever the hint
 * was not: all registered triples with right headers. */
static void terminate_registry_is_read_strictly(void **state)
{
	static const uint8_t hdr[18] = { 0x41, 0x43 };
	uint8_t b[64];

	for (int l = 0; l < 3; l++)
		for (int e = 0; e < 3; e++)
			for (int c = 0; c < 256; c++) {
				struct term t = { .layer = l, .etype = e,
					.code = c, .bits = TERM_MD,
					.has_seglen = true, .seglen = 22,
					.ddp = hdr, .ddp_len = 18 }, u;
				uint8_t *end = term_encode(b, &t);

				if (!term_registered(l, e, c))
					continue;
				term_decode(b, end - b, TERM_STRICT, &u);
				assert_int_equal(u.read_as, TERM_STRICT);
				assert_int_equal(u.layer, l);
				assert_int_equal(u.bits, TERM_MD);
			}
}

static void terminate_prints(void **state)
{
	struct term t = { .layer = 1, .etype = 2, .code = 5, .bits = TERM_MD };
	char s[64];

	term_print(s, sizeof(s), &t);
	assert_string_equal(s, "1/2/05 MD");
	t = (struct term){ .layer = 2, .code = 2 };
	term_print(s, sizeof(s), &t);
	assert_string_equal(s, "2/0/02 -");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(crc_check_value),
		cmocka_unit_test(rfc5044_figure_5),
		cmocka_unit_test(rfc5044_figure_6),
		cmocka_unit_test(markers_round_trip),
		cmocka_unit_test(pointer_behind_a_leading_marker),
		cmocka_unit_test(each_break_is_seen),
		cmocka_unit_test(crc_off_still_has_the_field),
		cmocka_unit_test(startup_frames),
		cmocka_unit_test(old_revisions),
		cmocka_unit_test(headers_round_trip),
		cmocka_unit_test(terminate_strict),
		cmocka_unit_test(terminate_siw_bitorder),
		cmocka_unit_test(terminate_registry_is_read_strictly),
		cmocka_unit_test(terminate_prints),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
