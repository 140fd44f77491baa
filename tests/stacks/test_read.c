// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Reads that the stack posts: what is sent, which of the peer's Responses are accepted, and the
 * order of completions around them.
 */
#include "world.h"

#define REMOTE 0xABCD1234u
#define REMOTE_TO 0x1122334455667788ull

static void post_read_flags(struct world *w, u64 wr_id, u8 flags, u64 off, u32 len)
{
	const struct host_wr wr = {
		.wr_id = wr_id,
		.opcode = WEFT_WR_READ,
		.flags = flags,
		.num_sge = 1,
		.sge = { host_sge(w->wonly, off, len) },
		.rkey = REMOTE,
		.remote_addr = REMOTE_TO,
	};

	side_post(&w->p->s, &wr);
}

static void post_read(struct world *w, u64 wr_id, u64 off, u32 len)
{
	post_read_flags(w, wr_id, SIG, off, len);
}

static struct pdu *response(struct world *w, bool last, u64 off, const void *data, u32 len)
{
	return p_tagged(P_READ_RESP, last, w->wonly->r.stag, WORLD_BASE + off, data, len);
}

static const struct pdu *expect_request(struct world *w, u32 msn)
{
	const struct pdu *d = peer_expect(w->p, P_L, P_READ_REQ);

	assert_int_equal(d->qn, 1);
	assert_int_equal(d->msn, msn);
	assert_int_equal(d->mo, 0);
	assert_int_equal(d->inv, 0);
	assert_int_equal(d->len, 28);
	return d;
}

static void a_read_request_says_what_was_posted(struct world *w)	/* RDM-15 */
{
	struct pdu *want = p_read_req(1, w->wonly->r.stag, WORLD_BASE + 5, 16, REMOTE, REMOTE_TO);

	post_read(w, 1, 5, 16);
	peer_run(w->p);
	assert_memory_equal(expect_request(w, 1)->body, want->body, 28);
	peer_expect_silence(w->p);
	free(want);
}

static void a_response_is_placed_and_completes_the_read(struct world *w)
{
	struct weft_cqe e;

	post_read(w, 7, 5, 16);
	peer_run(w->p);
	expect_no_cqe(w->p->s.scq);
	peer_say(w->p, response(w, true, 5, "sixteen octets..", 16));
	e = expect_cqe(w->p->s.scq, 7, WEFT_WC_SUCCESS);
	assert_int_equal(e.opcode, WEFT_WCO_READ);
	assert_int_equal(e.byte_len, 16);
	assert_memory_equal(w->wonly->mem + 5, "sixteen octets..", 16);
	assert_int_equal(w->wonly->mem[4], world_octet(4));
	assert_int_equal(w->wonly->mem[21], world_octet(21));
}

static void response_segments_are_placed_in_any_order(struct world *w)	/* DDP-20, SIW-24 */
{
	post_read(w, 7, 0, 16);
	peer_run(w->p);
	peer_say(w->p, response(w, false, 8, "89abcdef", 8));
	expect_no_cqe(w->p->s.scq);
	peer_say(w->p, response(w, true, 0, "01234567", 8));
	expect_cqe(w->p->s.scq, 7, WEFT_WC_SUCCESS);
	assert_memory_equal(w->wonly->mem, "0123456789abcdef", 16);
}

/* Some RNICs send a Send, or a Write, between two segments of a Response (lesson 30). */
static void other_messages_may_stand_within_a_response(struct world *w)
{
	post_read(w, 7, 0, 16);
	peer_run(w->p);
	peer_add(w->p, response(w, false, 0, "01234567", 8));
	peer_add(w->p, p_send(P_SEND, false, 1, 0, "se", 2));
	peer_add(w->p, p_tagged(P_WRITE, true, w->rw->r.stag, WORLD_BASE, "write", 5));
	peer_add(w->p, p_read_req(1, 9, 0, 4, w->ronly->r.stag, WORLD_BASE));
	peer_add(w->p, response(w, true, 8, "89abcdef", 8));
	peer_add(w->p, p_send(P_SEND, true, 1, 2, "nd", 2));
	peer_flush(w->p);
	expect_request(w, 1);
	assert_memory_equal(peer_expect(w->p, P_T | P_L, P_READ_RESP)->body, w->ronly->mem, 4);
	expect_cqe(w->p->s.scq, 7, WEFT_WC_SUCCESS);
	expect_cqe(w->p->s.rcq, 0, WEFT_WC_SUCCESS);
	assert_memory_equal(w->wonly->mem, "0123456789abcdef", 16);
	assert_memory_equal(w->inbox->mem, "send", 4);
	assert_memory_equal(w->rw->mem, "write", 5);
}

/* Its sink is not STag 0, which some RNICs refuse even for no octets. */
static void a_read_without_sges_names_no_buffer(struct world *w)
{
	struct pdu *want = p_read_req(1, 1, 0, 0, REMOTE, REMOTE_TO);
	const struct host_wr wr = {
		.wr_id = 7, .opcode = WEFT_WR_READ, .flags = SIG,
		.rkey = REMOTE, .remote_addr = REMOTE_TO,
	};

	side_post(&w->p->s, &wr);
	peer_run(w->p);
	assert_memory_equal(expect_request(w, 1)->body, want->body, 28);
	peer_say(w->p, p_tagged(P_READ_RESP, true, 1, 0, NULL, 0));
	expect_cqe(w->p->s.scq, 7, WEFT_WC_SUCCESS);
	free(want);
}

static void an_empty_read_completes_with_an_empty_response(struct world *w)
{
	post_read(w, 7, 0, 0);
	peer_run(w->p);
	expect_request(w, 1);
	/* RFC 5041 §5.2: STag and TO of an empty message are not checked. */
	peer_say(w->p, p_tagged(P_READ_RESP, true, 0, ~0ull, NULL, 0));
	assert_int_equal(expect_cqe(w->p->s.scq, 7, WEFT_WC_SUCCESS).byte_len, 0);
}

/* @bad answers a Read of 16 octets at 0, of which @good have arrived already. */
static void refuses_response(struct world *w, struct pdu *bad, u8 code, u32 good)
{
	struct pdu *copy = malloc(sizeof(*copy));
	u32 i;

	assert_non_null(copy);
	*copy = *bad;
	peer_run(w->p);
	expect_request(w, 1);
	if (good)
		peer_say(w->p, response(w, false, 0, NULL, good));
	peer_add(w->p, bad);
	peer_add(w->p, response(w, true, 0, NULL, 16));
	peer_flush(w->p);
	peer_expect_terminate(w->p, 1, 1, code, copy, false);
	free(copy);
	expect_cqe(w->p->s.scq, 7, WEFT_WC_BAD_RESP_ERR);
	expect_no_cqe(w->p->s.scq);
	world_expect_untouched(w, w->wonly);
	for (i = good; i < WORLD_LEN; i++)
		assert_int_equal(w->wonly->mem[i], world_octet(i));
	world_expect_flushed(w, 0);
}

static void response_to_another_stag_is_refused(struct world *w)	/* RDM-56 */
{
	post_read(w, 7, 0, 16);
	refuses_response(w, p_tagged(P_READ_RESP, true, w->rw->r.stag, WORLD_BASE, NULL, 16),
			 0x00, 0);
}

static void second_segment_to_another_stag_is_refused(struct world *w)	/* RDM-56, 57, SIW-25 */
{
	post_read(w, 7, 0, 16);
	refuses_response(w, p_tagged(P_READ_RESP, true, w->rw->r.stag, WORLD_BASE + 8, NULL, 8),
			 0x00, 8);
}

static void response_below_the_sink_is_refused(struct world *w)		/* RDM-56 */
{
	post_read(w, 7, 32, 16);
	refuses_response(w, response(w, true, 31, NULL, 16), 0x01, 0);
}

static void response_past_the_sink_is_refused(struct world *w)		/* RDM-56 */
{
	post_read(w, 7, 0, 16);
	refuses_response(w, response(w, true, 1, NULL, 16), 0x01, 0);
}

static void second_segment_far_past_the_sink_is_refused(struct world *w) /* RDM-57, SIW-25 */
{
	post_read(w, 7, 0, 16);
	refuses_response(w, response(w, true, 100000, NULL, 8), 0x01, 8);
}

static void a_longer_response_is_refused(struct world *w)		/* RDM-58 */
{
	post_read(w, 7, 0, 16);
	refuses_response(w, response(w, true, 0, NULL, 20), 0x01, 0);
}

static void a_shorter_response_is_refused(struct world *w)		/* RDM-58 */
{
	post_read(w, 7, 0, 16);
	refuses_response(w, response(w, true, 0, NULL, 12), 0x01, 0);
}

static void a_response_short_in_its_second_segment_is_refused(struct world *w) /* RDM-58, SIW-25 */
{
	post_read(w, 7, 0, 16);
	refuses_response(w, response(w, true, 8, NULL, 4), 0x01, 8);
}

static void an_empty_last_segment_does_not_make_up_for_octets(struct world *w) /* RDM-58 */
{
	post_read(w, 7, 0, 16);
	refuses_response(w, response(w, true, 0, NULL, 0), 0x01, 8);
}

static void more_octets_than_asked_for_in_all_are_refused(struct world *w) /* RDM-58 */
{
	post_read(w, 7, 0, 16);
	refuses_response(w, response(w, false, 0, NULL, 16), 0x01, 8);
}

static void a_response_across_the_wrap_is_refused(struct world *w)	/* RDM-56 */
{
	post_read(w, 7, 0, 16);
	refuses_response(w, p_tagged(P_READ_RESP, true, w->wonly->r.stag, ~0ull - 3, NULL, 8),
			 0x03, 0);
}

static void a_sink_may_end_with_the_address_space(struct world *w)	/* DDP-35 */
{
	struct host_mr *mr = host_mr_new(&w->p->s.host, PD, ~0ull - 15, 16, RW);

	side_read(&w->p->s, 7, SIG, mr, 0, 16, w->rw, 0);
	peer_run(w->p);
	expect_request(w, 1);
	peer_say(w->p, p_tagged(P_READ_RESP, false, mr->r.stag, mr->r.base, "01234567", 8));
	peer_say(w->p, p_tagged(P_READ_RESP, true, mr->r.stag, mr->r.base + 8, "89abcdef", 8));
	expect_cqe(w->p->s.scq, 7, WEFT_WC_SUCCESS);
	assert_memory_equal(mr->mem, "0123456789abcdef", 16);
}

/* The Read is taken up, but its Request still waits for a segment with room for it. */
static void a_response_before_its_request_is_refused(struct world *w)
{
	struct pdu *bad = p_tagged(P_READ_RESP, true, 0, 0, NULL, 0), copy = *bad;
	struct weft_txd d;

	post_read_flags(w, 1, SIG, 0, 0);
	assert_int_equal(weft_tx_next(&w->p->s.qp->core, 0, true, &d), WEFT_TX_NO_FIT);
	peer_say(w->p, bad);
	peer_expect_terminate(w->p, 0, 2, 0x06, &copy, false);
	expect_cqe(w->p->s.scq, 1, WEFT_WC_FLUSH_ERR);
}

static void a_response_after_the_last_read_is_refused(struct world *w)	/* RDM-55 */
{
	struct pdu *bad = response(w, true, 0, NULL, 16), copy = *bad;

	post_read(w, 7, 16, 16);
	peer_run(w->p);
	expect_request(w, 1);
	peer_say(w->p, response(w, true, 16, NULL, 16));
	expect_cqe(w->p->s.scq, 7, WEFT_WC_SUCCESS);
	peer_say(w->p, bad);
	peer_expect_terminate(w->p, 0, 2, 0x06, &copy, false);
	assert_int_equal(w->wonly->mem[0], world_octet(0));
}

static void a_response_out_of_turn_is_refused(struct world *w)		/* RDM-20 */
{
	post_read(w, 7, 0, 16);
	post_read(w, 8, 64, 16);
	peer_run(w->p);
	peer_say(w->p, response(w, true, 64, NULL, 16));
	expect_cqe(w->p->s.scq, 7, WEFT_WC_BAD_RESP_ERR);
	expect_cqe(w->p->s.scq, 8, WEFT_WC_FLUSH_ERR);
	world_expect_untouched(w, NULL);
}

/* The user invalidated the sink: nothing is placed, and the Read fails. */
static void a_sink_lost_under_a_read_fails_it(struct world *w)
{
	post_read(w, 7, 0, 16);
	peer_run(w->p);
	expect_request(w, 1);
	w->wonly->r.valid = false;
	peer_say(w->p, response(w, true, 0, NULL, 16));
	peer_expect_terminate(w->p, 0, 0, 0x00, NULL, false);
	expect_cqe(w->p->s.scq, 7, WEFT_WC_LOC_PROT_ERR);
	world_expect_untouched(w, NULL);
}

/* The user has unmapped it, before the Response or within it. */
static void expect_sink_gone(struct world *w)
{
	peer_expect_terminate(w->p, 0, 0, 0x00, NULL, false);
	expect_cqe(w->p->s.scq, 7, WEFT_WC_LOC_PROT_ERR);
	expect_no_cqe(w->p->s.scq);
	world_expect_flushed(w, 0);
}

static void a_sink_that_is_gone_fails_its_read(struct world *w)
{
	post_read(w, 7, 0, 16);
	peer_run(w->p);
	expect_request(w, 1);
	w->wonly->gone = true;
	peer_add(w->p, response(w, true, 0, NULL, 16));
	peer_add(w->p, p_tagged(P_WRITE, true, w->rw->r.stag, WORLD_BASE, NULL, 8));
	peer_flush(w->p);
	expect_sink_gone(w);
	world_expect_untouched(w, NULL);
}

static void a_sink_that_goes_within_a_response_fails_its_read(struct world *w)
{
	post_read(w, 7, 0, 16);
	peer_run(w->p);
	expect_request(w, 1);
	peer_say(w->p, response(w, false, 0, "01234567", 8));
	w->wonly->gone = true;
	peer_say(w->p, response(w, true, 8, "89abcdef", 8));
	expect_sink_gone(w);
	assert_memory_equal(w->wonly->mem, "01234567", 8);
	assert_int_equal(w->wonly->mem[8], world_octet(8));
}

static void read_with_invalidate_invalidates_its_sink(struct world *w)
{
	const struct host_wr wr = {
		.wr_id = 3, .opcode = WEFT_WR_READ_INV, .flags = SIG, .num_sge = 1,
		.sge = { host_sge(w->fast, 0, 8) }, .rkey = REMOTE,
	};

	side_post(&w->p->s, &wr);
	peer_run(w->p);
	peer_say(w->p, p_tagged(P_READ_RESP, false, w->fast->r.stag, WORLD_BASE, "1234", 4));
	assert_true(w->fast->r.valid);
	peer_say(w->p, p_tagged(P_READ_RESP, true, w->fast->r.stag, WORLD_BASE + 4, "5678", 4));
	expect_cqe(w->p->s.scq, 3, WEFT_WC_SUCCESS);
	assert_false(w->fast->r.valid);
	assert_memory_equal(w->fast->mem, "12345678", 8);
}

static void read_with_invalidate_into_a_user_region_fails(struct world *w)
{
	const struct host_wr wr = {
		.wr_id = 3, .opcode = WEFT_WR_READ_INV, .flags = SIG, .num_sge = 1,
		.sge = { host_sge(w->rw, 0, 8) }, .rkey = REMOTE,
	};

	side_post(&w->p->s, &wr);
	peer_run(w->p);
	expect_request(w, 1);
	peer_say(w->p, p_tagged(P_READ_RESP, true, w->rw->r.stag, WORLD_BASE, NULL, 8));
	expect_cqe(w->p->s.scq, 3, WEFT_WC_LOC_PROT_ERR);
	peer_expect_terminate(w->p, 0, 0, 0x00, NULL, false);
	assert_true(w->rw->r.valid);
}

/* A Terminate with the headers of Read Request number @msn. */
static void terminate_for(struct world *w, u8 etype, u8 code, u32 msn)
{
	u8 body[4 + 2 + 18 + 28] = { etype, code, 0xE0, 0, 0, 46, 0x41, 0x41 };
	struct pdu *d;

	body[15] = 1;			/* QN */
	body[19] = (u8)msn;
	d = p_send(P_TERM, true, 1, 0, body, sizeof(body));
	d->qn = 2;
	peer_say(w->p, d);
}

static void a_terminate_for_a_read_fails_that_read(struct world *w)
{
	post_read(w, 7, 0, 16);
	post_read(w, 8, 16, 16);
	peer_run(w->p);
	terminate_for(w, 1, 0x02, 1);
	expect_cqe(w->p->s.scq, 7, WEFT_WC_REM_ACCESS_ERR);
	expect_cqe(w->p->s.scq, 8, WEFT_WC_FLUSH_ERR);
	world_expect_flushed(w, 0);
}

static void an_operation_error_for_a_read_fails_that_read(struct world *w)
{
	post_read(w, 7, 0, 16);
	side_send(&w->p->s, 8, SIG, w->rw, 0, 8);
	peer_run(w->p);
	terminate_for(w, 2, 0x07, 1);
	expect_cqe(w->p->s.scq, 7, WEFT_WC_REM_OP_ERR);
	/* It was sent, but its fate after that error is unknown. */
	expect_cqe(w->p->s.scq, 8, WEFT_WC_FLUSH_ERR);
}

/* The Response to the one before may have been in flight; the one after was not processed. */
static void a_terminate_for_a_later_read_fails_that_read(struct world *w)
{
	u32 i;

	for (i = 7; i < 10; i++)
		post_read(w, i, 16 * i, 16);
	peer_run(w->p);
	terminate_for(w, 1, 0x02, 2);
	expect_cqe(w->p->s.scq, 7, WEFT_WC_FLUSH_ERR);
	expect_cqe(w->p->s.scq, 8, WEFT_WC_REM_ACCESS_ERR);
	expect_cqe(w->p->s.scq, 9, WEFT_WC_FLUSH_ERR);
}

/* Layer DDP, untagged buffers: no room in the queue of Read Requests. */
static void a_read_that_the_peer_has_no_room_for_says_so(struct world *w)
{
	post_read(w, 7, 0, 16);
	peer_run(w->p);
	terminate_for(w, 0x12, 0x02, 1);
	expect_cqe(w->p->s.scq, 7, WEFT_WC_REM_INV_REQ_ERR);
}

/* CRC errors, and errors of Sends, are not about a Read. */
static void a_terminate_about_something_else_flushes_the_read(struct world *w)
{
	post_read(w, 7, 0, 16);
	peer_run(w->p);
	terminate_for(w, 0x20, 0x02, 1);
	expect_cqe(w->p->s.scq, 7, WEFT_WC_FLUSH_ERR);
}

static void a_wrong_response_fails_its_read(struct world *w)
{
	post_read(w, 7, 0, 16);
	post_read(w, 8, 16, 16);
	peer_run(w->p);
	expect_request(w, 1);
	expect_request(w, 2);
	peer_say(w->p, response(w, true, 0, NULL, 15));
	expect_cqe(w->p->s.scq, 7, WEFT_WC_BAD_RESP_ERR);
	expect_cqe(w->p->s.scq, 8, WEFT_WC_FLUSH_ERR);
}

static void a_terminate_for_another_read_flushes_only(struct world *w)
{
	post_read(w, 7, 0, 16);
	peer_run(w->p);
	terminate_for(w, 1, 0x02, 9);
	expect_cqe(w->p->s.scq, 7, WEFT_WC_FLUSH_ERR);
}

/* ---- the ORD gate ---- */

static void ord_limits_reads_on_the_wire(u32 ord)
{
	struct peer_cfg c;
	struct world w;
	u32 i, out = 0, done;

	peer_cfg_init(&c);
	c.dut_initiates = true;
	c.ird = (u16)ord;
	c.ord = 1;
	world_init(&w, &c, WIRE_WHOLE);
	for (i = 0; i < 12; i++)
		post_read(&w, i, 16 * i, 16);
	for (done = 0; done < 12; done++) {
		peer_run(w.p);
		for (; out < done + ord && out < 12; out++)
			expect_request(&w, out + 1);
		peer_expect_silence(w.p);
		expect_no_cqe(w.p->s.scq);
		peer_say(w.p, response(&w, true, 16 * done, NULL, 16));
		expect_cqe(w.p->s.scq, done, WEFT_WC_SUCCESS);
	}
	world_fini(&w);
}

static void ord_1_lets_one_read_out(void **state)			/* RDM-32, ENH-12 */
{
	ord_limits_reads_on_the_wire(1);
}

static void ord_4_lets_four_reads_out(void **state)
{
	ord_limits_reads_on_the_wire(4);
}

static void with_ord_0_a_read_fails_at_once(void **state)		/* lesson 26 */
{
	struct peer_cfg c;
	struct world w;

	peer_cfg_init(&c);
	c.dut_initiates = true;
	c.ird = 0;
	world_init(&w, &c, WIRE_WHOLE);
	side_send(&w.p->s, 1, SIG, w.rw, 0, 4);
	post_read(&w, 2, 0, 16);
	side_send(&w.p->s, 3, SIG, w.rw, 0, 4);
	peer_run(w.p);
	peer_expect(w.p, P_L, P_SEND);
	peer_expect_terminate(w.p, 0, 0, 0x00, NULL, false);
	expect_cqe(w.p->s.scq, 1, WEFT_WC_SUCCESS);
	expect_cqe(w.p->s.scq, 2, WEFT_WC_LOC_QP_OP_ERR);
	expect_cqe(w.p->s.scq, 3, WEFT_WC_FLUSH_ERR);
	world_fini(&w);
}

/* ---- order ---- */

static void a_send_goes_out_behind_a_read_but_completes_after_it(struct world *w) /* lesson 27 */
{
	post_read(w, 1, 0, 16);
	side_send(&w->p->s, 2, SIG, w->rw, 0, 4);
	side_write(&w->p->s, 3, SIG, w->rw, 0, 4, w->foreign, 0);
	peer_run(w->p);
	expect_request(w, 1);
	peer_expect(w->p, P_L, P_SEND);
	peer_expect(w->p, P_T | P_L, P_WRITE);
	expect_no_cqe(w->p->s.scq);
	peer_say(w->p, response(w, true, 0, NULL, 16));
	expect_cqe(w->p->s.scq, 1, WEFT_WC_SUCCESS);
	expect_cqe(w->p->s.scq, 2, WEFT_WC_SUCCESS);
	expect_cqe(w->p->s.scq, 3, WEFT_WC_SUCCESS);
}

static void read_fence_waits_for_all_reads(struct world *w)		/* lesson 26 */
{
	u32 i;

	for (i = 1; i <= 3; i++)
		post_read(w, i, 16 * i, 16);
	side_send(&w->p->s, 4, SIG | WEFT_WR_FENCE, w->rw, 0, 4);
	side_send(&w->p->s, 5, SIG, w->rw, 0, 4);
	peer_run(w->p);
	for (i = 1; i <= 3; i++)
		expect_request(w, i);
	for (i = 1; i <= 3; i++) {
		peer_expect_silence(w->p);
		peer_say(w->p, response(w, true, 16 * i, NULL, 16));
		expect_cqe(w->p->s.scq, i, WEFT_WC_SUCCESS);
	}
	peer_expect(w->p, P_L, P_SEND);
	peer_expect(w->p, P_L, P_SEND);
	expect_cqe(w->p->s.scq, 4, WEFT_WC_SUCCESS);
	expect_cqe(w->p->s.scq, 5, WEFT_WC_SUCCESS);
}

static void a_fence_without_reads_waits_for_nothing(struct world *w)
{
	side_write(&w->p->s, 1, WEFT_WR_FENCE | SIG, w->rw, 0, 4, w->rw, 0);
	peer_run(w->p);
	peer_expect(w->p, P_T | P_L, P_WRITE);
	expect_cqe(w->p->s.scq, 1, WEFT_WC_SUCCESS);
}

static void a_fenced_read_waits_for_the_one_before(struct world *w)
{
	post_read(w, 1, 0, 16);
	post_read_flags(w, 2, SIG | WEFT_WR_FENCE, 16, 16);
	peer_run(w->p);
	expect_request(w, 1);
	peer_expect_silence(w->p);
	peer_say(w->p, response(w, true, 0, NULL, 16));
	expect_request(w, 2);
}

static void unsignalled_work_completes_silently_in_order(struct world *w)
{
	post_read_flags(w, 1, 0, 0, 16);
	side_send(&w->p->s, 2, 0, w->rw, 0, 4);
	side_send(&w->p->s, 3, SIG, w->rw, 0, 4);
	side_send(&w->p->s, 4, 0, w->rw, 0, 4);
	peer_run(w->p);
	expect_no_cqe(w->p->s.scq);
	assert_int_equal(w->p->s.qp->core.sq.q.ring->kern_idx, 0);
	peer_say(w->p, response(w, true, 0, NULL, 16));
	expect_cqe(w->p->s.scq, 3, WEFT_WC_SUCCESS);
	expect_no_cqe(w->p->s.scq);
	/* Its slots are free nevertheless. */
	assert_int_equal(w->p->s.qp->core.sq.q.ring->kern_idx, 4);
}

static void unsignalled_work_that_fails_is_told(struct world *w)
{
	post_read_flags(w, 1, 0, 0, 16);
	peer_run(w->p);
	peer_close(w->p);
	expect_cqe(w->p->s.scq, 1, WEFT_WC_FLUSH_ERR);
}

static void untagged_messages_are_numbered_by_queue(struct world *w)	/* DDP-10, DDP-11 */
{
	u32 i;

	for (i = 1; i <= 5; i++) {
		side_send(&w->p->s, 2 * i, 0, w->rw, 0, i);
		post_read(w, 2 * i + 1, 0, 1);
	}
	peer_run(w->p);
	for (i = 1; i <= 5; i++) {
		const struct pdu *d = peer_expect(w->p, P_L, P_SEND);

		assert_int_equal(d->qn, 0);
		assert_int_equal(d->msn, i);
		assert_int_equal(d->mo, 0);
		assert_int_equal(d->inv, 0);
		assert_int_equal(d->len, i);
		expect_request(w, i);
	}
}

static void message_numbers_wrap(struct world *w)			/* DDP-12 */
{
	struct weft_qpc *c = &w->p->s.qp->core;
	u32 i;

	c->msn_send = c->msn_read = c->msn_in_send = c->msn_in_read = 0xFFFFFFFE;
	for (i = 0; i < 4; i++) {
		u32 msn = 0xFFFFFFFE + i;

		side_send(&w->p->s, 2 * i, SIG, w->rw, 0, 4);
		post_read(w, 2 * i + 1, 0, 16);
		peer_add(w->p, p_send(P_SEND, true, msn, 0, NULL, 0));
		peer_flush(w->p);
		assert_int_equal(peer_expect(w->p, P_L, P_SEND)->msn, msn);
		expect_request(w, msn);
		peer_say(w->p, response(w, true, 0, NULL, 16));
		expect_cqe(w->p->s.scq, 2 * i, WEFT_WC_SUCCESS);
		expect_cqe(w->p->s.scq, 2 * i + 1, WEFT_WC_SUCCESS);
		expect_cqe(w->p->s.rcq, i, WEFT_WC_SUCCESS);
		peer_expect_alive(w->p, msn, w->ronly);
	}
}

static void a_long_send_is_cut_as_ddp_asks(struct world *w)	/* DDP-01 to 04, 09, 13, 15 */
{
	u32 at = 0;
	struct pdu d;
	struct host_wr wr = {
		.opcode = WEFT_WR_SEND_INV, .flags = SIG | WEFT_WR_SOLICITED, .num_sge = 2,
		.inv_stag = 0x01020304,
		.sge = { host_sge(w->rw, 0, 2000), host_sge(w->rw, 2000, 2096) },
	};

	side_post(&w->p->s, &wr);
	peer_run(w->p);
	while (peer_next(w->p, &d)) {
		assert_int_equal(d.rdmap, P_RV | P_SEND_SE_INV);
		assert_int_equal(d.inv, 0x01020304);
		assert_int_equal(d.qn, 0);
		assert_int_equal(d.msn, 1);
		assert_int_equal(d.mo, at);
		assert_memory_equal(d.body, w->rw->mem + at, d.len);
		at += d.len;
		assert_int_equal(d.ddp, at == WORLD_LEN ? P_L | P_DV : P_DV);
		/* MPA-54: no longer than a segment, framing included. */
		assert_true(18 + d.len + 6 <= 1460);
	}
	assert_int_equal(at, WORLD_LEN);
	expect_cqe(w->p->s.scq, 0, WEFT_WC_SUCCESS);
}

/*
 * A ring of 64 slots for 8 of the longest entries has room for more short ones. They wait behind a
 * Read that is not complete: a doorbell for them changes nothing.
 */
static void a_queue_takes_no_more_than_it_was_made_for(void **state)
{
	const u32 max = 64 / WEFT_SQ_MAX_SLOTS;
	struct peer_cfg c;
	struct world w;
	u32 i;

	peer_cfg_init(&c);
	c.dut_initiates = true;
	c.side.qp.sq_slots = 64;
	world_init(&w, &c, WIRE_WHOLE);
	/* The first FPDU requests a run by itself. */
	peer_say(w.p, p_send(P_SEND, true, 1, 0, NULL, 0));
	post_read(&w, 0, 0, 8);
	for (i = 1; i < 20; i++)
		side_send(&w.p->s, i, SIG, w.rw, 0, 8);
	peer_run(w.p);
	expect_request(&w, 1);
	for (i = 1; i < max; i++)
		peer_expect(w.p, P_L, P_SEND);
	peer_expect_silence(w.p);
	w.p->s.qp->kicked = true;
	peer_run(w.p);
	peer_expect_silence(w.p);
	peer_say(w.p, response(&w, true, 0, "the Read", 8));
	for (; i < 20; i++)
		peer_expect(w.p, P_L, P_SEND);
	for (i = 0; i < 20; i++)
		expect_cqe(w.p->s.scq, i, WEFT_WC_SUCCESS);
	world_fini(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE_INITIATOR(a_read_request_says_what_was_posted),
		CASE_INITIATOR(a_response_is_placed_and_completes_the_read),
		CASE_INITIATOR(response_segments_are_placed_in_any_order),
		CASE_INITIATOR(other_messages_may_stand_within_a_response),
		CASE_INITIATOR(a_read_without_sges_names_no_buffer),
		CASE_INITIATOR(an_empty_read_completes_with_an_empty_response),
		CASE_INITIATOR(response_to_another_stag_is_refused),
		CASE_INITIATOR(second_segment_to_another_stag_is_refused),
		CASE_INITIATOR(response_below_the_sink_is_refused),
		CASE_INITIATOR(response_past_the_sink_is_refused),
		CASE_INITIATOR(second_segment_far_past_the_sink_is_refused),
		CASE_INITIATOR(a_longer_response_is_refused),
		CASE_INITIATOR(a_shorter_response_is_refused),
		CASE_INITIATOR(a_response_short_in_its_second_segment_is_refused),
		CASE_INITIATOR(an_empty_last_segment_does_not_make_up_for_octets),
		CASE_INITIATOR(more_octets_than_asked_for_in_all_are_refused),
		CASE_INITIATOR(a_response_across_the_wrap_is_refused),
		CASE_INITIATOR(a_sink_may_end_with_the_address_space),
		CASE_INITIATOR(a_response_before_its_request_is_refused),
		CASE_INITIATOR(a_response_after_the_last_read_is_refused),
		CASE_INITIATOR(a_response_out_of_turn_is_refused),
		CASE_INITIATOR(a_sink_lost_under_a_read_fails_it),
		CASE_INITIATOR(a_sink_that_is_gone_fails_its_read),
		CASE_INITIATOR(a_sink_that_goes_within_a_response_fails_its_read),
		CASE_INITIATOR(read_with_invalidate_invalidates_its_sink),
		CASE_INITIATOR(read_with_invalidate_into_a_user_region_fails),
		CASE_INITIATOR(a_terminate_for_a_read_fails_that_read),
		CASE_INITIATOR(an_operation_error_for_a_read_fails_that_read),
		CASE_INITIATOR(a_terminate_for_another_read_flushes_only),
		CASE_INITIATOR(a_terminate_for_a_later_read_fails_that_read),
		CASE_INITIATOR(a_read_that_the_peer_has_no_room_for_says_so),
		CASE_INITIATOR(a_terminate_about_something_else_flushes_the_read),
		CASE_INITIATOR(a_wrong_response_fails_its_read),
		cmocka_unit_test(ord_1_lets_one_read_out),
		cmocka_unit_test(ord_4_lets_four_reads_out),
		cmocka_unit_test(with_ord_0_a_read_fails_at_once),
		CASE_INITIATOR(a_send_goes_out_behind_a_read_but_completes_after_it),
		CASE_INITIATOR(read_fence_waits_for_all_reads),
		CASE_INITIATOR(a_fence_without_reads_waits_for_nothing),
		CASE_INITIATOR(a_fenced_read_waits_for_the_one_before),
		CASE_INITIATOR(unsignalled_work_completes_silently_in_order),
		CASE_INITIATOR(unsignalled_work_that_fails_is_told),
		CASE_INITIATOR(untagged_messages_are_numbered_by_queue),
		CASE_INITIATOR(message_numbers_wrap),
		CASE_INITIATOR(a_long_send_is_cut_as_ddp_asks),
		cmocka_unit_test(a_queue_takes_no_more_than_it_was_made_for),
	};

	return RUN_TESTS("stacks: Reads and order", tests);
}
