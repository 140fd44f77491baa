// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Faults of a peer in DDP (RFC 5041 §7), and unusual but valid segments. The numbers are rows of
 * the conformance list.
 */
#include "world.h"

static struct pdu *write_to(const struct host_mr *mr, u64 off, u32 len)
{
	return p_tagged(P_WRITE, true, mr->r.stag, mr->r.base + off, NULL, len);
}

static struct pdu *a_send(u32 msn, u32 len)
{
	return p_send(P_SEND, true, msn, 0, NULL, len);
}

/* ---- untagged ---- */

static void unknown_queue_is_refused_4(struct world *w)			/* DDP-22 */
{
	struct pdu *d = a_send(1, 8);

	d->qn = 4;
	world_refuses(w, d, 1, 2, 0x01);
}

static void unknown_queue_is_refused_3_without_atomics(struct world *w)
{
	struct pdu *d = a_send(1, 8);

	d->qn = 3;
	world_refuses(w, d, 1, 2, 0x01);
}

static void unknown_queue_is_refused_all_ones(struct world *w)
{
	struct pdu *d = a_send(1, 8);

	d->qn = 0xFFFFFFFF;
	world_refuses(w, d, 1, 2, 0x01);
}

static void use_all_receives(struct world *w)
{
	u32 i;

	for (i = 1; i <= NRECV; i++)
		peer_say(w->p, a_send(i, 0));
	for (i = 0; i < NRECV; i++)
		assert_int_equal(expect_cqe(w->p->s.rcq, i, WEFT_WC_SUCCESS).byte_len, 0);
	expect_no_cqe(w->p->s.rcq);
}

static void send_without_receive_is_refused(struct world *w)		/* DDP-23 */
{
	use_all_receives(w);
	world_refuses_after(w, a_send(NRECV + 1, 8), 1, 2, 0x02, NRECV, NULL);
}

static void empty_send_without_receive_is_refused(struct world *w)	/* DDP-23, RDM-35 */
{
	use_all_receives(w);
	world_refuses_after(w, a_send(NRECV + 1, 0), 1, 2, 0x02, NRECV, NULL);
}

static void msn_ahead_is_refused(struct world *w)			/* DDP-24 */
{
	world_refuses(w, a_send(2, 8), 1, 2, 0x03);
}

static void msn_0_is_refused(struct world *w)				/* DDP-25 */
{
	world_refuses(w, a_send(0, 8), 1, 2, 0x03);
}

static void msn_repeated_is_refused(struct world *w)			/* DDP-25 */
{
	peer_say(w->p, a_send(1, 0));
	expect_cqe(w->p->s.rcq, 0, WEFT_WC_SUCCESS);
	world_refuses_after(w, a_send(1, 0), 1, 2, 0x03, 1, NULL);
}

static void mo_outside_the_buffer_is_refused(struct world *w)		/* DDP-26 */
{
	world_refuses(w, p_send(P_SEND, true, 1, RECV_LEN + 4, NULL, 4), 1, 2, 0x04);
}

static void mo_outside_the_buffer_is_refused_in_any_segment(struct world *w)
{
	world_refuses(w, p_send(P_SEND, false, 1, RECV_LEN + 1, NULL, 4), 1, 2, 0x04);
}

static void mo_of_all_ones_is_refused(struct world *w)
{
	world_refuses(w, p_send(P_SEND, true, 1, 0xFFFFFFFF, NULL, 4), 1, 2, 0x04);
}

static void send_longer_than_its_receive_is_refused(struct world *w)	/* DDP-27, 28, SIW-17 */
{
	world_refuses_too_long(w, a_send(1, RECV_LEN + 1), NULL);
}

static void second_segment_past_the_receive_is_refused(struct world *w) /* DDP-27 */
{
	peer_say(w->p, p_send(P_SEND, false, 1, 0, NULL, 200));
	world_refuses_too_long(w, p_send(P_SEND, true, 1, 200, NULL, 57), w->inbox);
	/* The segment before it was good; the bad one touched nothing. */
	assert_int_equal(w->inbox->mem[199], 0);
	assert_int_equal(w->inbox->mem[200], world_octet(200));
}

static void send_of_exactly_its_receive_is_delivered(struct world *w)
{
	peer_say(w->p, a_send(1, RECV_LEN));
	assert_int_equal(expect_cqe(w->p->s.rcq, 0, WEFT_WC_SUCCESS).byte_len, RECV_LEN);
	assert_int_equal(w->inbox->mem[RECV_LEN - 1], 0);
	assert_int_equal(w->inbox->mem[RECV_LEN], world_octet(RECV_LEN));
	peer_expect_alive(w->p, 1, w->rw);
}

static void send_segments_are_placed_in_any_order(struct world *w)	/* DDP-19, SIW-24 */
{
	peer_say(w->p, p_send(P_SEND, false, 1, 4, "5678", 4));
	peer_say(w->p, p_send(P_SEND, false, 1, 0, "1234", 4));
	expect_no_cqe(w->p->s.rcq);
	peer_say(w->p, p_send(P_SEND, true, 1, 8, "9abc", 4));
	assert_int_equal(expect_cqe(w->p->s.rcq, 0, WEFT_WC_SUCCESS).byte_len, 12);
	assert_memory_equal(w->inbox->mem, "123456789abc", 12);
	peer_expect_alive(w->p, 1, w->rw);
}

static void send_with_a_hole_is_not_delivered(struct world *w)		/* DDP-40 */
{
	peer_say(w->p, p_send(P_SEND, false, 1, 0, NULL, 4));
	peer_say(w->p, p_send(P_SEND, true, 1, 8, NULL, 4));
	peer_expect(w->p, P_L, P_TERM);
	world_expect_flushed(w, 0);
}

static void more_octets_than_the_receive_in_all_are_refused(struct world *w)
{
	peer_say(w->p, p_send(P_SEND, false, 1, 0, NULL, 200));
	world_refuses_after(w, p_send(P_SEND, false, 1, 0, NULL, 100), 1, 2, 0x04, 0, w->inbox);
}

static void send_without_last_segment_is_not_delivered(struct world *w) /* DDP-40 */
{
	peer_say(w->p, p_send(P_SEND, false, 1, 0, NULL, 4));
	peer_close(w->p);
	world_expect_flushed(w, 0);
}

static void new_msn_before_the_last_segment_is_refused(struct world *w) /* DDP-41 */
{
	peer_say(w->p, p_send(P_SEND, false, 1, 0, NULL, 0));
	world_refuses(w, a_send(2, 4), 1, 2, 0x03);
}

static void new_opcode_within_a_message_is_refused(struct world *w)	/* DDP-42, SIW-23 */
{
	peer_say(w->p, p_send(P_SEND, false, 1, 0, NULL, 0));
	world_refuses(w, p_send(P_SEND_SE, true, 1, 0, NULL, 4), 0, 2, 0x06);
}

static void write_between_two_segments_of_a_send_is_placed(struct world *w) /* DDP-43 */
{
	peer_say(w->p, p_send(P_SEND, false, 1, 0, "ab", 2));
	peer_say(w->p, p_tagged(P_WRITE, true, w->rw->r.stag, WORLD_BASE, "write", 5));
	peer_say(w->p, p_send(P_SEND, true, 1, 2, "cd", 2));
	expect_cqe(w->p->s.rcq, 0, WEFT_WC_SUCCESS);
	assert_memory_equal(w->inbox->mem, "abcd", 4);
	assert_memory_equal(w->rw->mem, "write", 5);
}

static void two_sends_in_one_segment_arrive_in_order(struct world *w)	/* DDP-21 */
{
	peer_add(w->p, p_send(P_SEND, true, 1, 0, "one", 3));
	peer_add(w->p, p_send(P_SEND, true, 2, 0, "two", 3));
	peer_flush(w->p);
	expect_cqe(w->p->s.rcq, 0, WEFT_WC_SUCCESS);
	expect_cqe(w->p->s.rcq, 1, WEFT_WC_SUCCESS);
	assert_memory_equal(w->inbox->mem, "one", 3);
	assert_memory_equal(w->inbox->mem + RECV_LEN, "two", 3);
}

/* ---- tagged ---- */

static void unknown_stag_is_refused(struct world *w)			/* DDP-29, SIW-28 */
{
	world_refuses(w, p_tagged(P_WRITE, true, 0x12345600, WORLD_BASE, NULL, 8), 1, 1, 0x00);
}

static void stag_0_is_refused(struct world *w)
{
	world_refuses(w, p_tagged(P_WRITE, true, 0, WORLD_BASE, NULL, 8), 1, 1, 0x00);
}

static void wrong_key_byte_is_refused(struct world *w)			/* DDP-30 */
{
	world_refuses(w, p_tagged(P_WRITE, true, w->rw->r.stag ^ 1, WORLD_BASE, NULL, 8),
		      1, 1, 0x00);
}

static void invalidated_stag_is_refused(struct world *w)		/* DDP-31 */
{
	w->fast->r.valid = false;
	world_refuses(w, write_to(w->fast, 0, 8), 1, 1, 0x00);
}

static void stag_of_another_pd_is_refused(struct world *w)		/* DDP-32, SEC-01 */
{
	world_refuses(w, write_to(w->foreign, 0, 8), 1, 1, 0x02);
}

static void stag_of_another_stream_is_refused(struct world *w)		/* SEC-02 */
{
	w->fast->r.kind = WEFT_REGION_WINDOW_2;
	w->fast->r.qp++;
	world_refuses(w, write_to(w->fast, 0, 8), 1, 1, 0x02);
}

/* RFC 5040 §8.1: access is by PD. Only for windows it is by stream. */
static void a_fast_region_is_for_all_streams_of_its_pd(struct world *w)
{
	w->fast->r.qp++;
	peer_say(w->p, write_to(w->fast, 4, 8));
	assert_memory_not_equal(w->fast->mem + 4, w->rw->mem + 4, 8);
	world_expect_untouched(w, w->fast);
	peer_expect_alive(w->p, 1, w->rw);
}

static void a_fast_region_is_for_no_other_pd(struct world *w)
{
	w->fast->r.pd = OTHER_PD;
	world_refuses(w, write_to(w->fast, 0, 8), 1, 1, 0x02);
}

static void to_below_the_base_is_refused(struct world *w)		/* DDP-33 */
{
	world_refuses(w, write_to(w->rw, -1, 1), 1, 1, 0x01);
}

static void to_a_page_below_the_base_is_refused(struct world *w)
{
	world_refuses(w, write_to(w->rw, -4096, 8), 1, 1, 0x01);
}

static void range_past_the_end_is_refused(struct world *w)		/* DDP-34, 37, SIW-13 */
{
	world_refuses(w, write_to(w->rw, WORLD_LEN - 4, 8), 1, 1, 0x01);
}

static void range_one_past_the_end_is_refused(struct world *w)
{
	world_refuses(w, write_to(w->rw, 1, WORLD_LEN), 1, 1, 0x01);
}

static void to_just_past_the_end_is_refused(struct world *w)
{
	world_refuses(w, write_to(w->rw, WORLD_LEN, 1), 1, 1, 0x01);
}

static void the_last_octet_may_be_written(struct world *w)		/* DDP-35 */
{
	peer_say(w->p, p_tagged(P_WRITE, true, w->rw->r.stag, WORLD_BASE + WORLD_LEN - 1, "!", 1));
	assert_int_equal(w->rw->mem[WORLD_LEN - 1], '!');
	peer_expect_alive(w->p, 1, w->rw);
}

static void the_whole_region_may_be_written(struct world *w)		/* DDP-35 */
{
	peer_say(w->p, write_to(w->rw, 0, WORLD_LEN));
	assert_int_equal(w->rw->mem[0] | w->rw->mem[WORLD_LEN - 1], 0);
	peer_expect_alive(w->p, 1, w->rw);
}

static void to_wrap_is_refused(struct world *w)				/* DDP-36, SIW-14 */
{
	world_refuses(w, p_tagged(P_WRITE, true, w->rw->r.stag, ~0ull - 3, NULL, 8), 1, 1, 0x03);
}

static void a_region_that_ends_with_the_address_space_is_usable(struct world *w)
{
	struct host_mr *mr = host_mr_new(&w->p->s.host, PD, ~0ull - 15, 16, RW);

	peer_say(w->p, p_tagged(P_WRITE, true, mr->r.stag, ~0ull - 7, "lastoct", 8));
	assert_memory_equal(mr->mem + 8, "lastoct", 8);
	peer_expect_alive(w->p, 1, mr);
}

static void write_without_the_right_is_refused(struct world *w)		/* DDP-39, SEC-05 */
{
	world_refuses(w, write_to(w->ronly, 0, 8), 0, 1, 0x02);
}

/* The owner has unmapped it: the responder's own fault, and the Terminate names the Write. */
static void a_write_into_memory_that_is_gone_places_nothing(struct world *w)
{
	struct pdu *first = write_to(w->rw, 0, 8), copy = *first;

	w->rw->gone = true;
	peer_add(w->p, first);
	peer_add(w->p, write_to(w->wonly, 0, 8));
	peer_flush(w->p);
	peer_expect_terminate(w->p, 0, 2, 0x07, &copy, false);
	assert_int_equal(host_qp_count_events(w->p->s.qp, WEFT_EV_TERM_SENT), 1);
	world_expect_untouched(w, NULL);
	world_expect_flushed(w, 0);
}

/* A fault of the Write itself is the peer's, and is reported. */
static void a_bad_write_into_memory_that_is_gone_is_refused_as_ever(struct world *w)
{
	w->rw->gone = true;
	world_refuses(w, write_to(w->rw, WORLD_LEN - 4, 8), 1, 1, 0x01);
}

static void a_write_of_nothing_into_memory_that_is_gone_is_one(struct world *w)
{
	w->wonly->gone = true;
	peer_say(w->p, write_to(w->wonly, 0, 0));
	peer_expect_alive(w->p, 1, w->rw);
}

static void bad_second_segment_of_a_write_is_refused(struct world *w)	/* DDP-37 */
{
	struct pdu *d = write_to(w->rw, WORLD_LEN - 8, 8);

	d->ddp &= ~P_L;
	memcpy(d->body, w->rw->mem + WORLD_LEN - 8, 8);
	peer_say(w->p, d);
	world_refuses(w, write_to(w->rw, WORLD_LEN, 8), 1, 1, 0x01);
}

static void second_half_of_a_write_may_come_first(struct world *w)	/* DDP-20, SIW-24 */
{
	struct pdu *d = p_tagged(P_WRITE, false, w->rw->r.stag, WORLD_BASE + 4, "5678", 4);

	peer_add(w->p, d);
	peer_add(w->p, p_tagged(P_WRITE, true, w->rw->r.stag, WORLD_BASE, "1234", 4));
	peer_flush(w->p);
	assert_memory_equal(w->rw->mem, "12345678", 8);
	peer_expect_alive(w->p, 1, w->rw);
}

static void an_empty_write_names_no_buffer(struct world *w)		/* DDP-17, ENH-24 */
{
	static const u32 stag[] = { 0, 0xDEADBEEF, 0xFFFFFFFF };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(stag); i++)
		peer_say(w->p, p_tagged(P_WRITE, true, stag[i], ~0ull, NULL, 0));
	peer_say(w->p, write_to(w->ronly, 0, 0));
	world_expect_untouched(w, NULL);
	peer_expect_alive(w->p, 1, w->rw);
}

static void an_empty_first_segment_does_not_stand_for_the_next(struct world *w) /* lesson 29 */
{
	peer_say(w->p, p_tagged(P_WRITE, false, 0, 0, NULL, 0));
	world_refuses(w, p_tagged(P_WRITE, true, 0, 0, NULL, 8), 1, 1, 0x00);
}

/* ---- versions, reserved bits, L ---- */

static void tagged_version_is_judged(struct world *w)			/* DDP-07, SIW-27 */
{
	struct pdu *d = write_to(w->rw, 0, 8);

	d->ddp = P_T | P_L | 2;
	world_refuses(w, d, 1, 1, 0x04);
}

static void untagged_version_is_judged(struct world *w)			/* DDP-08, SIW-27 */
{
	struct pdu *d = a_send(1, 8);

	d->ddp = P_L | 0;
	world_refuses(w, d, 1, 2, 0x06);
}

static void reserved_bits_are_not_judged(struct world *w)		/* DDP-05, RDM-03, RDM-12 */
{
	struct pdu *d = a_send(1, 4);

	d->ddp |= 0x3C;
	d->rdmap |= 0x30;
	d->inv = 0xFFFFFFFF;
	peer_say(w->p, d);
	assert_int_equal(expect_cqe(w->p->s.rcq, 0, WEFT_WC_SUCCESS).flags, 0);
	peer_expect_alive(w->p, 1, w->rw);
}

static void read_request_without_l_is_refused(struct world *w)		/* DDP-44, SIW-22 */
{
	struct pdu *d = p_read_req(1, 1, 0, 8, w->rw->r.stag, WORLD_BASE);

	d->ddp &= ~P_L;
	world_refuses(w, d, 1, 2, 0x05);
}

/* ---- MPA's verdict comes first ---- */

static void a_bad_crc_places_nothing(struct world *w)			/* MPA-57 to 60, SIW-10 */
{
	peer_add_bad_crc(w->p, write_to(w->rw, 0, 8));
	peer_add(w->p, write_to(w->rw, 8, 8));
	peer_flush(w->p);
	peer_expect_terminate(w->p, 2, 0, 0x02, NULL, false);
	world_expect_untouched(w, NULL);
	world_expect_flushed(w, 0);
}

static void a_bad_crc_is_told_before_a_bad_header(struct world *w)	/* MPA-59, SIW-11 */
{
	struct pdu *d = write_to(w->rw, 0, 8);

	d->rdmap = 0xFF;
	peer_add_bad_crc(w->p, d);
	peer_flush(w->p);
	peer_expect_terminate(w->p, 2, 0, 0x02, NULL, false);
}

static void an_empty_ulpdu_ends_the_connection(struct world *w)		/* MPA-67, SIW-21 */
{
	static const u8 empty[8] = { 0, 0, 0, 0, 0xC7, 0x4B, 0x67, 0x48 };

	peer_add_raw(w->p, empty, sizeof(empty));
	peer_flush(w->p);
	peer_expect_terminate(w->p, 0, 2, 0xFF, NULL, false);
	world_expect_flushed(w, 0);
}

/* MPA-68, SIW-21 */
static void a_ulpdu_shorter_than_its_header_ends_the_connection(struct world *w)
{
	struct pdu *d = p_read_req(1, 1, 0, 8, w->rw->r.stag, WORLD_BASE);

	d->len = 20;
	world_refuses(w, d, 0, 2, 0xFF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(unknown_queue_is_refused_4),
		CASE(unknown_queue_is_refused_3_without_atomics),
		CASE(unknown_queue_is_refused_all_ones),
		CASE(send_without_receive_is_refused),
		CASE(empty_send_without_receive_is_refused),
		CASE(msn_ahead_is_refused),
		CASE(msn_0_is_refused),
		CASE(msn_repeated_is_refused),
		CASE(mo_outside_the_buffer_is_refused),
		CASE(mo_outside_the_buffer_is_refused_in_any_segment),
		CASE(mo_of_all_ones_is_refused),
		CASE(send_longer_than_its_receive_is_refused),
		CASE(second_segment_past_the_receive_is_refused),
		CASE(send_of_exactly_its_receive_is_delivered),
		CASE(send_segments_are_placed_in_any_order),
		CASE(send_with_a_hole_is_not_delivered),
		CASE(more_octets_than_the_receive_in_all_are_refused),
		CASE(send_without_last_segment_is_not_delivered),
		CASE(new_msn_before_the_last_segment_is_refused),
		CASE(new_opcode_within_a_message_is_refused),
		CASE(write_between_two_segments_of_a_send_is_placed),
		CASE(two_sends_in_one_segment_arrive_in_order),
		CASE(unknown_stag_is_refused),
		CASE(stag_0_is_refused),
		CASE(wrong_key_byte_is_refused),
		CASE(invalidated_stag_is_refused),
		CASE(stag_of_another_pd_is_refused),
		CASE(stag_of_another_stream_is_refused),
		CASE(a_fast_region_is_for_all_streams_of_its_pd),
		CASE(a_fast_region_is_for_no_other_pd),
		CASE(to_below_the_base_is_refused),
		CASE(to_a_page_below_the_base_is_refused),
		CASE(range_past_the_end_is_refused),
		CASE(range_one_past_the_end_is_refused),
		CASE(to_just_past_the_end_is_refused),
		CASE(the_last_octet_may_be_written),
		CASE(the_whole_region_may_be_written),
		CASE(to_wrap_is_refused),
		CASE(a_region_that_ends_with_the_address_space_is_usable),
		CASE(write_without_the_right_is_refused),
		CASE(a_write_into_memory_that_is_gone_places_nothing),
		CASE(a_bad_write_into_memory_that_is_gone_is_refused_as_ever),
		CASE(a_write_of_nothing_into_memory_that_is_gone_is_one),
		CASE(bad_second_segment_of_a_write_is_refused),
		CASE(second_half_of_a_write_may_come_first),
		CASE(an_empty_write_names_no_buffer),
		CASE(an_empty_first_segment_does_not_stand_for_the_next),
		CASE(tagged_version_is_judged),
		CASE(untagged_version_is_judged),
		CASE(reserved_bits_are_not_judged),
		CASE(read_request_without_l_is_refused),
		CASE(a_bad_crc_places_nothing),
		CASE(a_bad_crc_is_told_before_a_bad_header),
		CASE(an_empty_ulpdu_ends_the_connection),
		CASE(a_ulpdu_shorter_than_its_header_ends_the_connection),
	};

	return RUN_TESTS("stacks: DDP", tests);
}
