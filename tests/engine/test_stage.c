// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* FPDUs that arrive in parts: the stage and the chunks lent to it. */
#include "rig.h"

static u8 ulpdu[70000], data[70000];

/* A Write whose ULPDU has @len octets. */
static void write_of(struct ref_wire *w, u32 len)
{
	pattern(data, len, len);
	ref_fpdu(w, ulpdu, ulpdu_tagged(ulpdu, WEFT_OP_WRITE, 5, 6, true, data, len - 14));
}

static void expect_write(const struct event *e, u32 len)
{
	pattern(data, len, len);
	assert_int_equal(e->ev, WEFT_RX_FPDU);
	assert_int_equal(e->ulpdu_len, len);
	assert_int_equal(e->len, len - 14);
	assert_memory_equal(e->data, data, len - 14);
}

static void in_steps(struct host *h, const struct ref_wire *w, u32 step)
{
	for (u32 i = 0; i < w->len; i += step)
		host_bytes(h, w->buf + i, min_t(u32, step, w->len - i));
}

/* MPA-65, MPA-69: also above the largest length that is sent. */
static void the_largest_fpdu_arrives_in_88_octet_pieces(void **state)
{
	static const u32 lens[] = { 64768, 64769, 65521, 65533, 65534, 65535 };

	(void)state;
	for (u32 i = 0; i < ARRAY_SIZE(lens) * 2; i++) {
		struct ref_wire w;
		struct host h;

		ref_init(&w, i % 2, false);
		write_of(&w, lens[i / 2]);
		host_init(&h, true, i % 2 ? &crc_agreed : &plain_agreed);
		in_steps(&h, &w, 88);
		host_last(&h, 1, WEFT_RX_FPDU);
		expect_write(&h.log[0], lens[i / 2]);
		assert_int_equal(h.lends, DIV_ROUND_UP(w.len, WEFT_STAGE_CHUNK));
		host_free(&h);
		/* And in one piece: no chunk at all. */
		host_init(&h, true, i % 2 ? &crc_agreed : &plain_agreed);
		host_bytes(&h, guarded(0, w.buf, w.len), w.len);
		expect_write(host_last(&h, 1, WEFT_RX_FPDU), lens[i / 2]);
		assert_int_equal(h.lends, 0);
		host_free(&h);
		ref_free(&w);
	}
}

static void an_fpdu_may_end_around_a_chunks_end(void **state)
{
	(void)state;
	for (u32 len = 4096 - 16; len < 4096 + 12; len++) {
		struct ref_wire w;

		ref_init(&w, true, false);
		write_of(&w, len);
		for (u32 cut = w.len - 20; cut < w.len; cut++) {
			struct host h;

			host_init(&h, true, &crc_agreed);
			host_bytes(&h, w.buf, cut);
			assert_int_equal(h.n, 0);
			host_bytes(&h, w.buf + cut, w.len - cut);
			host_last(&h, 1, WEFT_RX_FPDU);
			expect_write(&h.log[0], len);
			assert_int_equal(h.lends, DIV_ROUND_UP(w.len, WEFT_STAGE_CHUNK));
			host_free(&h);
		}
		ref_free(&w);
	}
}

static void a_damaged_staged_fpdu_is_a_crc_error(void **state)
{
	struct ref_wire w;
	struct host h;

	(void)state;
	ref_init(&w, true, false);
	write_of(&w, 9000);
	for (u32 k = 2; k < w.len; k += 97) {
		w.buf[k] ^= 0x10;
		host_init(&h, true, &crc_agreed);
		in_steps(&h, &w, 1448);
		assert_int_equal(host_last(&h, 1, WEFT_RX_ERROR)->err, WEFT_E_MPA_CRC);
		assert_int_equal(h.log[0].raw_len, 0);
		host_free(&h);
		w.buf[k] ^= 0x10;
	}
	ref_free(&w);
}

static void chunks_are_kept_for_the_next_fpdu(void **state)
{
	struct ref_wire w;
	struct host h;

	(void)state;
	ref_init(&w, true, false);
	for (int i = 0; i < 50; i++)
		write_of(&w, 9000);
	host_init(&h, true, &crc_agreed);
	in_steps(&h, &w, 1448);
	assert_int_equal(h.n, 50);
	for (int i = 0; i < 50; i++)
		expect_write(&h.log[i], 9000);
	assert_int_equal(h.lends, 3);
	host_free(&h);
	ref_free(&w);
}

static void without_memory_octets_stay_until_there_is_some(void **state)
{
	struct ref_wire w;
	struct host h;

	(void)state;
	ref_init(&w, true, false);
	write_of(&w, 9000);
	write_of(&w, 100);
	for (u32 chunks = 0; chunks < 3; chunks++) {
		u32 first = chunks * WEFT_STAGE_CHUNK;

		host_init(&h, true, &crc_agreed);
		host_bytes(&h, w.buf, first);
		h.no_memory = true;
		/* An incomplete FPDU is not consumed, however often it is offered. */
		for (int again = 0; again < 3; again++) {
			host_bytes(&h, w.buf + first, 9000 - first);
			assert_int_equal(h.left, 9000 - first);
			assert_int_equal(h.lends, chunks + 1 + again);
		}
		h.no_memory = false;
		host_bytes(&h, w.buf + first, w.len - first);
		assert_int_equal(h.n, 2);
		expect_write(&h.log[0], 9000);
		expect_write(&h.log[1], 100);
		host_free(&h);
	}
	ref_free(&w);
}

static void a_stop_without_memory_drops_what_waits(void **state)
{
	struct weft_stream st;
	struct weft_seg seg = { (const u8 *)"\0", 1 };
	struct weft_fpdu f;
	struct weft_cur in;

	(void)state;
	weft_stream_init(&st, true);
	weft_stream_start(&st, &plain_agreed);
	weft_cur_init(&in, &seg, 1);
	assert_int_equal(weft_stream_rx(&st, &in, &f), WEFT_RX_CHUNK);
	weft_stream_stop(&st);
	assert_int_equal(weft_stream_rx(&st, &in, &f), WEFT_RX_MORE);
	assert_int_equal(in.left, 0);
	assert_int_equal(st.rx_error, WEFT_OK);
}

static void a_staged_payload_stays_until_the_next_call(void **state)
{
	struct ref_wire w;
	struct weft_stream st;
	struct weft_fpdu f;
	struct weft_cur in, c;
	struct weft_seg seg;
	static u8 chunk[WEFT_STAGE_CHUNK];
	char out[6];

	(void)state;
	ref_init(&w, true, false);
	ref_fpdu(&w, ulpdu, ulpdu_untagged(ulpdu, WEFT_OP_SEND, 0, 1, 0, true, "hello", 5));
	ref_fpdu(&w, ulpdu, ulpdu_untagged(ulpdu, WEFT_OP_SEND, 0, 2, 0, true, "world", 5));
	weft_stream_init(&st, true);
	weft_stream_start(&st, &crc_agreed);
	seg = (struct weft_seg){ w.buf, 10 };
	weft_cur_init(&in, &seg, 1);
	assert_int_equal(weft_stream_rx(&st, &in, &f), WEFT_RX_CHUNK);
	weft_stream_lend(&st, chunk);
	assert_int_equal(weft_stream_rx(&st, &in, &f), WEFT_RX_MORE);
	seg = (struct weft_seg){ w.buf + 10, w.len - 10 };
	weft_cur_init(&in, &seg, 1);
	assert_int_equal(weft_stream_rx(&st, &in, &f), WEFT_RX_FPDU);
	/* The chunk is in use: it must not be reclaimed. */
	assert_null(weft_stream_reclaim(&st, false));
	c = f.payload;
	weft_cur_copy(&c, out, 5);
	assert_memory_equal(out, "hello", 5);
	assert_int_equal(weft_stream_rx(&st, &in, &f), WEFT_RX_FPDU);
	assert_int_equal(f.ddp.msn, 2);
	assert_ptr_equal(weft_stream_reclaim(&st, false), chunk);
	assert_null(weft_stream_reclaim(&st, false));
	ref_free(&w);
}

static void only_unused_chunks_are_given_back_while_receiving(void **state)
{
	struct ref_wire w;
	struct host h;
	u8 *chunk;
	u32 back = 0;

	(void)state;
	ref_init(&w, true, false);
	write_of(&w, 30000);
	write_of(&w, 30000);
	host_init(&h, true, &crc_agreed);
	/* A whole FPDU, then 5000 octets of the next: two chunks in use. */
	host_bytes(&h, w.buf, 20000);
	host_bytes(&h, w.buf + 20000, w.len / 2 - 20000);
	host_bytes(&h, w.buf + w.len / 2, 5000);
	assert_int_equal(h.lent, 8);
	for (; (chunk = weft_stream_reclaim(&h.st, false)); back++)
		free(chunk);
	assert_int_equal(back, 6);
	h.lent -= back;
	host_bytes(&h, w.buf + w.len / 2 + 5000, w.len / 2 - 5000);
	assert_int_equal(h.n, 2);
	expect_write(&h.log[1], 30000);
	/* After the end, all chunks can be reclaimed, though half an FPDU is staged. */
	host_bytes(&h, w.buf, 5000);
	weft_stream_stop(&h.st);
	for (; (chunk = weft_stream_reclaim(&h.st, false)); h.lent--)
		free(chunk);
	assert_int_equal(h.lent, 0);
	host_free(&h);
	ref_free(&w);
}

static void reclaiming_all_ends_the_stream(void **state)
{
	struct ref_wire w;
	struct host h;

	(void)state;
	ref_init(&w, true, false);
	write_of(&w, 9000);
	host_init(&h, true, &crc_agreed);
	host_bytes(&h, w.buf, 8000);
	free(weft_stream_reclaim(&h.st, true));
	h.lent--;
	host_bytes(&h, w.buf + 8000, w.len - 8000);
	assert_int_equal(h.n, 0);
	host_free(&h);
	ref_free(&w);
}

static void a_long_fpdu_arrives_in_any_cut(void **state)
{
	struct ref_wire w;
	struct host h;
	struct scenario s = { .initiator = true, .agreed = &crc_agreed };

	(void)state;
	ref_init(&w, true, false);
	write_of(&w, 5000);
	write_of(&w, 17);
	write_of(&w, 8999);
	s.bytes = w.buf;
	s.len = w.len;
	each_delivery(&s, 500, &h);
	assert_int_equal(h.n, 3);
	expect_write(&h.log[0], 5000);
	expect_write(&h.log[1], 17);
	expect_write(&h.log[2], 8999);
	host_free(&h);
	ref_free(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_largest_fpdu_arrives_in_88_octet_pieces),
		cmocka_unit_test(an_fpdu_may_end_around_a_chunks_end),
		cmocka_unit_test(a_damaged_staged_fpdu_is_a_crc_error),
		cmocka_unit_test(chunks_are_kept_for_the_next_fpdu),
		cmocka_unit_test(without_memory_octets_stay_until_there_is_some),
		cmocka_unit_test(a_stop_without_memory_drops_what_waits),
		cmocka_unit_test(a_staged_payload_stays_until_the_next_call),
		cmocka_unit_test(only_unused_chunks_are_given_back_while_receiving),
		cmocka_unit_test(reclaiming_all_ends_the_stream),
		cmocka_unit_test(a_long_fpdu_arrives_in_any_cut),
	};

	return cmocka_run_group_tests_name("stage", tests, NULL, NULL);
}
