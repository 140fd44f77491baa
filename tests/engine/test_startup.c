// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The stream before Full Operation: RFC 5044 §7.1.2. */
#include "rig.h"

#define REQ_KEY "MPA ID Req Frame"
#define REP_KEY "MPA ID Rep Frame"

static u32 frame(u8 *out, const struct weft_mpa_frame *f, u8 *pd)
{
	pattern(pd, WEFT_MPA_PD_MAX, 5);
	return weft_mpa_frame_write(f, pd, out, WEFT_MPA_FRAME_MAX);
}

static void expect_startup(const struct host *h, const struct weft_mpa_frame *f, const u8 *pd)
{
	const struct event *e = host_last(h, 1, WEFT_RX_STARTUP);

	assert_memory_equal(&e->frame, f, sizeof(*f));
	assert_int_equal(e->len, f->pd_len);
	assert_memory_equal(e->data, pd, e->len);
	assert_int_equal(h->st.rx_state, WEFT_AWAIT_START);
}

static void a_frame_of_any_kind_arrives_in_any_cut(void **state)
{
	static const u16 pd_lens[] = { 0, 1, 3, 4, 255, 256, 257, 508 };
	u8 buf[WEFT_MPA_FRAME_MAX], pd[WEFT_MPA_PD_MAX];

	(void)state;
	for (u32 n = 0; n < ARRAY_SIZE(pd_lens) * 4; n++) {
		struct weft_mpa_frame f = {
			.reply = n & 1, .rev = n & 2 ? 2 : 1, .enhanced = n & 2, .crc = true,
			.pd_len = pd_lens[n / 4], .p2p = n & 2, .rtr = n & 2 ? 5 : 0,
			.ird = n & 2 ? 3 : 0, .ord = n & 2 ? 9 : 0,
		};
		u32 len = frame(buf, &f, pd);
		struct scenario s = { .initiator = f.reply, .bytes = buf, .len = len };
		struct host h;

		each_delivery(&s, 60, &h);
		expect_startup(&h, &f, pd);
		host_free(&h);
	}
}

static void private_data_of_512_octets_is_taken(void **state)	/* MPA-21, SIW-36 */
{
	struct weft_mpa_frame f = { .rev = 1, .pd_len = 512 };
	u8 buf[WEFT_MPA_FRAME_MAX], pd[WEFT_MPA_PD_MAX];
	struct scenario s = { .bytes = buf, .len = frame(buf, &f, pd) };
	struct host h;

	(void)state;
	each_delivery(&s, 600, &h);
	expect_startup(&h, &f, pd);
	host_free(&h);
}

static void expect_error(bool initiator, const void *bytes, u32 len)
{
	struct scenario s = { .initiator = initiator, .bytes = bytes, .len = len };
	struct host h;

	each_delivery(&s, 100, &h);
	assert_int_equal(host_last(&h, 1, WEFT_RX_ERROR)->err, WEFT_E_MPA_STARTUP);
	assert_int_equal(h.st.rx_state, WEFT_RX_DEAD);
	assert_false(weft_stream_may_send(&h.st));
	assert_false(weft_stream_may_terminate(&h.st));
	host_free(&h);
}

/* MPA-05, ENH-07, SIW-02, SIW-38, SIW-42 */
static void an_improper_frame_is_an_error(void **state)
{
	(void)state;
	expect_error(false, "GET / HTTP/1.0\r\n\r\n\r\n", 20);
	expect_error(false, REP_KEY "\x40\x01\x00\x00", 20);
	expect_error(true, REQ_KEY "\x40\x01\x00\x00", 20);
	expect_error(false, REQ_KEY "\x40\x01\x02\x01", 20);
	expect_error(true, REP_KEY "\x40\x01\xFF\xFF", 20);
	for (u8 n = 0; n < 4; n++) {
		u8 buf[24] = REP_KEY "\x50\x02\x00";

		buf[19] = n;
		expect_error(true, buf, 20 + n);
		memcpy(buf, REQ_KEY, 16);
		expect_error(false, buf, 20 + n);
	}
}

static void a_wrong_key_is_refused_before_the_frame_is_whole(void **state)
{
	struct host h;

	(void)state;
	host_init(&h, false, NULL);
	host_bytes(&h, "G", 1);
	assert_int_equal(host_last(&h, 1, WEFT_RX_ERROR)->err, WEFT_E_MPA_STARTUP);
	host_bytes(&h, "ET / HTTP/1.0\r\n\r\n", 17);
	assert_int_equal(h.n, 1);
	host_free(&h);
}

static void an_incomplete_frame_waits(void **state)
{
	struct host h;

	(void)state;
	host_init(&h, false, NULL);
	host_bytes(&h, REQ_KEY "\x40\x01\x00\x08" "1234", 24);
	assert_int_equal(h.n, 0);
	assert_int_equal(h.st.rx_state, WEFT_AWAIT_REQUEST);
	host_free(&h);
}

/* MPA-23, MPA-40: PD_Length must match the octets received. */
static void a_request_with_bytes_behind_it_is_an_error(void **state)
{
	struct host h;

	(void)state;
	host_init(&h, false, NULL);
	host_bytes(&h, REQ_KEY "\x40\x01\x00\x00" "12345678", 28);
	assert_int_equal(host_last(&h, 1, WEFT_RX_ERROR)->err, WEFT_E_MPA_STARTUP);
	host_free(&h);
}

static void bytes_before_the_reply_is_out_are_an_error(void **state)
{
	struct host h;

	(void)state;
	host_init(&h, false, NULL);
	host_bytes(&h, REQ_KEY "\x40\x01\x00\x00", 20);
	host_last(&h, 1, WEFT_RX_STARTUP);
	host_bytes(&h, "", 0);
	assert_int_equal(h.n, 1);
	host_bytes(&h, "x", 1);
	assert_int_equal(host_last(&h, 2, WEFT_RX_ERROR)->err, WEFT_E_MPA_STARTUP);
	/* Starting is no longer allowed. */
	weft_stream_start(&h.st, &plain_agreed);
	assert_int_equal(h.st.rx_state, WEFT_RX_DEAD);
	assert_false(weft_stream_may_terminate(&h.st));
	host_free(&h);
}

static void fpdus_right_behind_a_reply_are_kept(void **state)
{
	struct ref_wire w;
	u8 ulpdu[64];
	struct host h;
	struct scenario s = { .initiator = true, .start = &crc_agreed };

	(void)state;
	ref_init(&w, true, false);
	w.buf = malloc(20);
	memcpy(w.buf, REP_KEY "\x40\x01\x00\x00", 20);
	w.len = 20;
	ref_fpdu(&w, ulpdu, ulpdu_untagged(ulpdu, WEFT_OP_SEND, 0, 1, 0, true, "hello", 5));
	ref_fpdu(&w, ulpdu, ulpdu_untagged(ulpdu, WEFT_OP_SEND, 0, 2, 0, true, "", 0));
	s.bytes = w.buf;
	s.len = w.len;
	each_delivery(&s, 1000, &h);
	assert_int_equal(h.n, 3);
	assert_int_equal(h.log[0].ev, WEFT_RX_STARTUP);
	assert_int_equal(h.log[1].ev, WEFT_RX_FPDU);
	assert_memory_equal(h.log[1].data, "hello", 5);
	assert_int_equal(h.log[2].ddp.msn, 2);
	host_free(&h);
	ref_free(&w);
}

static void bytes_behind_a_reply_stay_until_the_start(void **state)
{
	struct weft_seg seg = { (const u8 *)REP_KEY "\x40\x01\x00\x00" "12345", 25 };
	struct weft_stream st;
	struct weft_fpdu f;
	struct weft_cur in;

	(void)state;
	weft_stream_init(&st, true);
	weft_cur_init(&in, &seg, 1);
	assert_int_equal(weft_stream_rx(&st, &in, &f), WEFT_RX_STARTUP);
	assert_int_equal(in.left, 5);
	assert_int_equal(weft_stream_rx(&st, &in, &f), WEFT_RX_MORE);
	assert_int_equal(in.left, 5);
}

/* RFC 5044 §7.1.2 (4): only a valid FPDU of the initiator opens the gate. */
static void a_responder_sends_only_after_a_valid_fpdu(void **state)
{
	struct ref_wire w;
	u8 ulpdu[64];
	u32 len = ulpdu_tagged(ulpdu, WEFT_OP_WRITE, 0, 0, true, "", 0);
	struct host h;

	(void)state;
	ref_init(&w, true, false);
	ref_fpdu(&w, ulpdu, len);
	host_init(&h, false, NULL);
	assert_false(weft_stream_may_send(&h.st));
	host_bytes(&h, REQ_KEY "\x40\x01\x00\x00", 20);
	assert_false(weft_stream_may_send(&h.st));
	assert_false(weft_stream_may_terminate(&h.st));
	weft_stream_start(&h.st, &crc_agreed);
	assert_false(weft_stream_may_send(&h.st));
	assert_true(weft_stream_may_terminate(&h.st));
	host_bytes(&h, w.buf, w.len - 1);
	assert_false(weft_stream_may_send(&h.st));
	host_bytes(&h, w.buf + w.len - 1, 1);
	host_last(&h, 2, WEFT_RX_FPDU);
	assert_true(weft_stream_may_send(&h.st));
	host_free(&h);

	host_init(&h, false, &crc_agreed);
	w.buf[w.len - 1] ^= 1;
	host_bytes(&h, w.buf, w.len);
	assert_int_equal(host_last(&h, 1, WEFT_RX_ERROR)->err, WEFT_E_MPA_CRC);
	assert_false(weft_stream_may_send(&h.st));
	assert_true(weft_stream_may_terminate(&h.st));
	host_free(&h);
	ref_free(&w);
}

static void an_initiator_sends_once_it_is_started(void **state)
{
	struct host h;

	(void)state;
	host_init(&h, true, NULL);
	assert_false(weft_stream_may_send(&h.st));
	host_bytes(&h, REP_KEY "\x40\x01\x00\x00", 20);
	assert_false(weft_stream_may_send(&h.st));
	weft_stream_start(&h.st, &crc_agreed);
	assert_true(weft_stream_may_send(&h.st));
	host_free(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_frame_of_any_kind_arrives_in_any_cut),
		cmocka_unit_test(private_data_of_512_octets_is_taken),
		cmocka_unit_test(an_improper_frame_is_an_error),
		cmocka_unit_test(a_wrong_key_is_refused_before_the_frame_is_whole),
		cmocka_unit_test(an_incomplete_frame_waits),
		cmocka_unit_test(a_request_with_bytes_behind_it_is_an_error),
		cmocka_unit_test(bytes_before_the_reply_is_out_are_an_error),
		cmocka_unit_test(fpdus_right_behind_a_reply_are_kept),
		cmocka_unit_test(bytes_behind_a_reply_stay_until_the_start),
		cmocka_unit_test(a_responder_sends_only_after_a_valid_fpdu),
		cmocka_unit_test(an_initiator_sends_once_it_is_started),
	};

	return cmocka_run_group_tests_name("startup", tests, NULL, NULL);
}
