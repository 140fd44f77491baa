// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Faults of a peer in RDMAP (RFC 5040 §7) towards a stack that answers: opcodes, Read Requests,
 * remote invalidation, Terminates. The comments name rows of the conformance list.
 */
#include "world.h"

#define SINK 0xFFFFFFFFu		/* the peer's sink: opaque to us */

static struct pdu *read_of(const struct host_mr *mr, u64 off, u32 size)
{
	return p_read_req(1, SINK, 0x5000, size, mr->r.stag, mr->r.base + off);
}

static struct pdu *send_inv(u32 stag)
{
	struct pdu *d = p_send(P_SEND_INV, true, 1, 0, NULL, 0);

	d->inv = stag;
	return d;
}

/* ---- versions, opcodes, buffer models ---- */

static struct pdu *with_rv(struct pdu *d, u8 rv)
{
	d->rdmap = (u8)(rv << 6 | (d->rdmap & 0x0F));
	return d;
}

static void version_0_of_a_send_is_refused(struct world *w)		/* RDM-02, SIW-27 */
{
	world_refuses(w, with_rv(p_send(P_SEND, true, 1, 0, NULL, 8), 0), 0, 2, 0x05);
}

static void version_2_of_a_write_is_refused(struct world *w)
{
	struct pdu *d = p_tagged(P_WRITE, true, w->rw->r.stag, WORLD_BASE, NULL, 8);

	world_refuses(w, with_rv(d, 2), 0, 2, 0x05);
}

static void version_3_of_a_read_request_is_refused(struct world *w)
{
	world_refuses(w, with_rv(read_of(w->rw, 0, 8), 3), 0, 2, 0x05);
}

static void refuse_opcode(struct world *w, u8 op)
{
	world_refuses(w, p_send(op, true, 1, 0, NULL, 8), 0, 2, 0x06);
}

static void opcode_8_is_refused_without_extensions(struct world *w)	/* RDM-05 */
{
	refuse_opcode(w, 8);
}

static void opcode_a_is_refused_without_extensions(struct world *w)
{
	struct pdu *d = p_send(10, true, 1, 0, NULL, 52);

	d->qn = 1;
	world_refuses(w, d, 0, 2, 0x06);
}

static void opcode_c_is_refused(struct world *w)
{
	refuse_opcode(w, 12);
}

static void opcode_f_is_refused(struct world *w)	/* SIW-27 */
{
	refuse_opcode(w, 15);
}

static void tagged_opcode_f_is_refused(struct world *w)
{
	world_refuses(w, p_tagged(15, true, w->rw->r.stag, WORLD_BASE, NULL, 8), 0, 2, 0x06);
}

static void untagged_write_is_refused(struct world *w)			/* RDM-06, SIW-20 */
{
	world_refuses(w, p_send(P_WRITE, true, 1, 0, NULL, 8), 0, 2, 0x06);
}

static void tagged_send_is_refused(struct world *w)			/* RDM-07, SIW-20 */
{
	world_refuses(w, p_tagged(P_SEND, true, 0, 0, NULL, 0), 0, 2, 0x06);
}

static void tagged_read_request_is_refused(struct world *w)		/* RDM-07 */
{
	world_refuses(w, p_tagged(P_READ_REQ, true, 0, 0, NULL, 0), 0, 2, 0x06);
}

static void tagged_terminate_is_refused(struct world *w)		/* RDM-07 */
{
	world_refuses(w, p_tagged(P_TERM, true, 0, 0, NULL, 0), 0, 2, 0x06);
}

static void untagged_read_response_is_refused(struct world *w)		/* RDM-08 */
{
	world_refuses(w, p_send(P_READ_RESP, true, 1, 0, NULL, 8), 0, 2, 0x06);
}

static void send_on_queue_1_is_refused(struct world *w)			/* RDM-09 */
{
	struct pdu *d = p_send(P_SEND, true, 1, 0, NULL, 28);

	d->qn = 1;
	world_refuses(w, d, 0, 2, 0x06);
}

static struct pdu *read_on(struct world *w, u32 qn)
{
	struct pdu *d = read_of(w->rw, 0, 8);

	d->qn = qn;
	return d;
}

static void read_request_on_queue_0_is_refused(struct world *w)		/* RDM-10, SIW-18 */
{
	world_refuses(w, read_on(w, 0), 0, 2, 0x06);
}

static void read_request_on_queue_2_is_refused(struct world *w)
{
	world_refuses(w, read_on(w, 2), 0, 2, 0x06);
}

static void read_request_on_queue_7_is_refused(struct world *w)
{
	world_refuses(w, read_on(w, 7), 1, 2, 0x01);
}

static void terminate_on_queue_0_is_not_obeyed(struct world *w)		/* RDM-11, SIW-43 */
{
	world_refuses(w, p_send(P_TERM, true, 1, 0, NULL, 4), 0, 2, 0x06);
}

/* ---- Reads answered ---- */

static void reads_of_any_size_are_one_message(struct world *w)		/* RDM-17, DDP-02, 14 */
{
	static const u32 size[] = { 0, 1, 8, 1428, 1429, 4095, 4096 };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(size); i++) {
		u32 got = 0;
		const struct pdu *d;

		peer_say(w->p, p_read_req(i + 1, SINK - i, 99, size[i], w->rw->r.stag, WORLD_BASE));
		do {
			bool last;
			struct pdu seen;

			assert_true(peer_next(w->p, &seen));
			d = &seen;
			last = d->ddp & P_L;
			assert_int_equal(d->ddp & ~P_L, P_T | P_DV);
			assert_int_equal(d->rdmap, P_RV | P_READ_RESP);
			assert_int_equal(d->stag, SINK - i);
			assert_int_equal(d->to, 99 + got);
			assert_memory_equal(d->body, w->rw->mem + got, d->len);
			got += d->len;
			assert_int_equal(last, got == size[i]);
			if (last)
				break;
		} while (1);
		peer_expect_silence(w->p);
	}
}

static void the_sink_is_not_interpreted(struct world *w)		/* RDM-16 */
{
	const struct pdu *d;

	peer_say(w->p, p_read_req(1, 0, ~0ull - 7, 8, w->ronly->r.stag, WORLD_BASE + 3));
	d = peer_expect(w->p, P_T | P_L, P_READ_RESP);
	assert_int_equal(d->stag, 0);
	assert_int_equal(d->to, ~0ull - 7);
	assert_memory_equal(d->body, w->ronly->mem + 3, 8);
}

static void an_empty_read_names_no_buffer(struct world *w)		/* RDM-18 */
{
	peer_say(w->p, p_read_req(1, 5, 6, 0, 0xBADBAD, ~0ull));
	assert_int_equal(peer_expect(w->p, P_T | P_L, P_READ_RESP)->len, 0);
	peer_expect_alive(w->p, 2, w->rw);
}

static void an_empty_read_behind_a_long_one_is_empty(struct world *w)	/* RDM-19, SIW-09 */
{
	struct pdu d;
	u32 got = 0;

	peer_add(w->p, p_read_req(1, 5, 0, WORLD_LEN, w->rw->r.stag, WORLD_BASE));
	peer_add(w->p, p_read_req(2, 6, 0, 0, 0, 0));
	peer_flush(w->p);
	while (peer_next(w->p, &d) && d.stag == 5)
		got += d.len;
	assert_int_equal(got, WORLD_LEN);
	assert_int_equal(d.stag, 6);
	assert_int_equal(d.len, 0);
	peer_expect_silence(w->p);
}

static void as_many_reads_as_ird_are_answered_in_order(struct world *w)	/* RDM-20, RDM-30 */
{
	u32 i;

	for (i = 1; i <= 8; i++)
		peer_add(w->p, p_read_req(i, i, 0, i, w->rw->r.stag, WORLD_BASE + i));
	peer_flush(w->p);
	for (i = 1; i <= 8; i++) {
		const struct pdu *d = peer_expect(w->p, P_T | P_L, P_READ_RESP);

		assert_int_equal(d->stag, i);
		assert_int_equal(d->len, i);
		assert_memory_equal(d->body, w->rw->mem + i, i);
	}
	peer_expect_alive(w->p, 9, w->rw);
}

static void a_read_sees_the_write_before_it(struct world *w)		/* RDM-21 */
{
	u32 i;

	for (i = 1; i <= 50; i++) {
		peer_add(w->p, p_tagged(P_WRITE, true, w->rw->r.stag, WORLD_BASE, &i, sizeof(i)));
		peer_add(w->p, p_read_req(i, 1, 0, sizeof(i), w->rw->r.stag, WORLD_BASE));
		peer_flush(w->p);
		assert_memory_equal(peer_expect(w->p, P_T | P_L, P_READ_RESP)->body, &i,
				    sizeof(i));
	}
}

/* ---- Reads refused ---- */

static void read_of_an_unknown_stag_is_refused(struct world *w)		/* RDM-22, RDM-28, SIW-29 */
{
	world_refuses_read(w, p_read_req(1, SINK, 0x5000, 8, 0x12345600, WORLD_BASE), 0x00);
}

static void read_with_a_wrong_key_is_refused(struct world *w)
{
	world_refuses_read(w, p_read_req(1, SINK, 1, 8, w->rw->r.stag ^ 0x80, WORLD_BASE), 0x00);
}

static void read_of_an_invalidated_stag_is_refused(struct world *w)
{
	w->fast->r.valid = false;
	world_refuses_read(w, read_of(w->fast, 0, 8), 0x00);
}

static void read_of_another_pd_is_refused(struct world *w)		/* RDM-23 */
{
	world_refuses_read(w, read_of(w->foreign, 0, 8), 0x03);
}

static void read_of_another_streams_window_is_refused(struct world *w)	/* RDM-23, SEC-02 */
{
	w->fast->r.kind = WEFT_REGION_WINDOW_2;
	w->fast->r.qp++;
	world_refuses_read(w, read_of(w->fast, 0, 8), 0x03);
}

static void read_without_the_right_is_refused(struct world *w)		/* RDM-24, SIW-05 */
{
	world_refuses_read(w, read_of(w->wonly, 0, 8), 0x02);
}

static void read_below_the_base_is_refused(struct world *w)		/* RDM-25 */
{
	world_refuses_read(w, read_of(w->rw, -8, 8), 0x01);
}

static void read_past_the_end_is_refused(struct world *w)		/* RDM-25 */
{
	world_refuses_read(w, read_of(w->rw, WORLD_LEN - 8, 16), 0x01);
}

static void a_long_read_past_the_end_sends_nothing(struct world *w)	/* RDM-25 */
{
	world_refuses_read(w, read_of(w->rw, 0, WORLD_LEN + 1), 0x01);
}

static void read_of_2_gb_is_refused(struct world *w)			/* RDM-26 */
{
	world_refuses_read(w, read_of(w->rw, 0, 0x80000000), 0x01);
}

static void read_of_all_ones_is_refused(struct world *w)		/* RDM-26, SIW-16 */
{
	world_refuses_read(w, read_of(w->rw, 0, 0xFFFFFFFF), 0x01);
}

static void short_read_across_the_wrap_is_refused(struct world *w)	/* RDM-27 */
{
	world_refuses_read(w, p_read_req(1, SINK, 1, 16, w->rw->r.stag, ~0ull - 7), 0x04);
}

static void long_read_across_the_wrap_is_refused(struct world *w)	/* RDM-27, SIW-15 */
{
	world_refuses_read(w, p_read_req(1, SINK, 1, 4096, w->rw->r.stag, ~0ull - 7), 0x04);
}

static void a_region_lost_in_mid_read_tells_where(struct world *w)	/* RDM-29 */
{
	struct pdu d, *want;

	/* The first FPDU fills the batch. */
	w->p->s.link.cfg.batch = 1;
	w->p->s.out.mss = 2900;
	peer_add(w->p, read_of(w->fast, 0, WORLD_LEN));
	peer_deliver(w->p);
	host_link_tx(&w->p->s.link);
	w->fast->r.valid = false;
	peer_run(w->p);
	assert_true(peer_next(w->p, &d));
	assert_in_range(d.len, 1, WORLD_LEN - 1);
	want = p_read_req(1, SINK, 0x5000 + d.len, WORLD_LEN - d.len, w->fast->r.stag,
			  WORLD_BASE + d.len);
	peer_expect_terminate(w->p, 0, 1, 0x00, want, true);
	free(want);
}

/* The responder's own fault; the Terminate names the Read. */
static void expect_gone(struct world *w)
{
	struct pdu *read = read_of(w->rw, 0, WORLD_LEN);

	peer_expect_terminate(w->p, 0, 2, 0x07, read, false);
	free(read);
	assert_int_equal(host_qp_count_events(w->p->s.qp, WEFT_EV_TERM_SENT), 1);
	world_expect_untouched(w, NULL);
	world_expect_flushed(w, 0);
}

static void a_read_of_memory_that_is_gone_is_not_answered(struct world *w)
{
	w->rw->gone = true;
	peer_say(w->p, read_of(w->rw, 0, WORLD_LEN));
	expect_gone(w);
}

static void a_read_whose_memory_goes_is_answered_as_far_as_it_was_there(struct world *w)
{
	struct pdu d;

	/* The first FPDU fills the batch. */
	w->p->s.link.cfg.batch = 1;
	w->p->s.out.mss = 2900;
	peer_add(w->p, read_of(w->rw, 0, WORLD_LEN));
	peer_deliver(w->p);
	host_link_tx(&w->p->s.link);
	w->rw->gone = true;
	peer_run(w->p);
	assert_true(peer_next(w->p, &d));
	assert_int_equal(d.rdmap, P_RV | P_READ_RESP);
	assert_false(d.ddp & P_L);
	assert_in_range(d.len, 1, WORLD_LEN - 1);
	assert_memory_equal(d.body, w->rw->mem, d.len);
	expect_gone(w);
}

static void more_reads_than_ird_are_refused(struct world *w)		/* RDM-31, SIW-31 */
{
	u32 i;

	for (i = 1; i <= 8; i++)
		peer_add(w->p, p_read_req(i, i, 0, 8, w->rw->r.stag, WORLD_BASE));
	peer_deliver(w->p);
	world_refuses(w, p_read_req(9, 9, 0, 8, w->rw->r.stag, WORLD_BASE), 1, 2, 0x02);
}

static void a_longer_read_request_is_refused(struct world *w)		/* RDM-33, SIW-19 */
{
	struct pdu *d = read_of(w->rw, 0, 8);

	d->len = 32;
	world_refuses(w, d, 1, 2, 0x05);
}

static void read_request_with_mo_is_refused(struct world *w)		/* RDM-34, SIW-18 */
{
	struct pdu *d = read_of(w->rw, 0, 8);

	d->mo = 4;
	world_refuses(w, d, 1, 2, 0x04);
}

static void read_request_with_a_wrong_msn_is_refused(struct world *w)	/* RDM-34 */
{
	world_refuses(w, p_read_req(2, SINK, 0, 8, w->rw->r.stag, WORLD_BASE), 1, 2, 0x03);
}

/* ---- Sends ---- */

static void a_send_sees_the_write_before_it(struct world *w)		/* RDM-36 */
{
	peer_add(w->p, p_tagged(P_WRITE, true, w->rw->r.stag, WORLD_BASE, "seen", 4));
	peer_add(w->p, p_send(P_SEND, true, 1, 0, NULL, 0));
	peer_flush(w->p);
	expect_cqe(w->p->s.rcq, 0, WEFT_WC_SUCCESS);
	assert_memory_equal(w->rw->mem, "seen", 4);
}

static void the_four_sends_are_told_apart(struct world *w)
{
	static const u16 flags[] = {
		0, WEFT_CQE_INV, WEFT_CQE_SOLICITED, WEFT_CQE_SOLICITED | WEFT_CQE_INV,
	};
	u32 i;

	for (i = 0; i < 4; i++) {
		struct pdu *d = p_send((u8)(P_SEND + i), true, i + 1, 0, "abc", 3);
		struct weft_cqe e;

		if (!w->fast->r.valid)
			host_mr_bind(w->fast, w->p->s.qp, RW);
		d->inv = w->fast->r.stag;
		peer_say(w->p, d);
		e = expect_cqe(w->p->s.rcq, i, WEFT_WC_SUCCESS);
		assert_int_equal(e.flags, flags[i]);
		assert_int_equal(e.inv_stag, i & 1 ? w->fast->r.stag : 0);
		assert_int_equal(w->fast->r.valid, !(i & 1));
		assert_int_equal(e.byte_len, 3);
	}
}

static void an_invalidated_stag_is_unusable(struct world *w)		/* RDM-37 */
{
	peer_say(w->p, send_inv(w->fast->r.stag));
	expect_cqe(w->p->s.rcq, 0, WEFT_WC_SUCCESS);
	world_refuses_after(w, p_tagged(P_WRITE, true, w->fast->r.stag, WORLD_BASE, NULL, 8),
			    1, 1, 0x00, 1, NULL);
}

static void invalidating_an_unknown_stag_is_refused(struct world *w)	/* RDM-38, SIW-07 */
{
	world_refuses(w, send_inv(0xABCDEF00), 0, 2, 0x09);
}

static void invalidating_another_pds_stag_is_refused(struct world *w)	/* RDM-39 */
{
	world_refuses(w, send_inv(w->foreign->r.stag), 0, 1, 0x09);
	assert_true(w->foreign->r.valid);
}

static void invalidating_with_a_wrong_key_is_refused(struct world *w)	/* RDM-40, SIW-06 */
{
	world_refuses(w, send_inv(w->fast->r.stag ^ 0x55), 0, 2, 0x09);
	assert_true(w->fast->r.valid);
}

static void invalidating_a_pd_wide_region_is_refused(struct world *w)	/* RDM-41 */
{
	world_refuses(w, send_inv(w->rw->r.stag), 0, 1, 0x09);
	assert_true(w->rw->r.valid);
}

static void invalidating_another_streams_region_is_refused(struct world *w) /* RDM-41 */
{
	w->fast->r.qp++;
	world_refuses(w, send_inv(w->fast->r.stag), 0, 1, 0x09);
	assert_true(w->fast->r.valid);
}

static void the_stag_to_invalidate_may_not_change_within_a_message(struct world *w) /* DDP-09 */
{
	struct pdu *d = send_inv(w->fast->r.stag);

	d->ddp &= ~P_L;
	peer_say(w->p, d);
	d = send_inv(w->rw->r.stag);
	peer_say(w->p, d);
	peer_expect(w->p, P_L, P_TERM);
	assert_true(w->fast->r.valid);
	assert_true(w->rw->r.valid);
	world_expect_flushed(w, 0);
}

/* ---- errors, Terminates ---- */

static void the_first_error_wins(struct world *w)			/* RDM-51, SIW-08 */
{
	struct pdu *d = p_send(14, true, 1, 0, NULL, 8), copy = *d;

	peer_add(w->p, d);
	peer_add_bad_crc(w->p, p_send(P_SEND, true, 1, 0, NULL, 8));
	peer_add(w->p, p_tagged(P_WRITE, true, 0, 0, NULL, 8));
	peer_flush(w->p);
	peer_expect_terminate(w->p, 0, 2, 0x06, &copy, false);
	assert_int_equal(host_qp_count_events(w->p->s.qp, WEFT_EV_TERM_SENT), 1);
}

static void much_data_behind_an_error_is_discarded(struct world *w)	/* RDM-48, RDM-49 */
{
	u32 i;

	peer_add(w->p, p_send(14, true, 1, 0, NULL, 8));
	for (i = 0; i < 60; i++)
		peer_add(w->p, p_tagged(P_WRITE, true, w->rw->r.stag, WORLD_BASE, NULL, 4000));
	peer_flush(w->p);
	peer_expect(w->p, P_L, P_TERM);
	peer_expect_silence(w->p);
	assert_true(w->p->fin);
	assert_false(w->p->s.aborted);
	world_expect_untouched(w, NULL);
}

static struct pdu *terminate(u8 b0, u8 b1, u8 b2, u32 len)
{
	const u8 body[200] = { b0, b1, b2 };
	struct pdu *d = p_send(P_TERM, true, 1, 0, body, len);

	d->qn = 2;
	return d;
}

/* Nothing more is sent, and the connection is closed from this end too. */
static void expect_obeyed(struct world *w)
{
	struct side *s = &w->p->s;

	peer_expect_silence(w->p);
	assert_true(w->p->fin);
	assert_false(s->aborted);
	assert_int_equal(host_qp_count_events(s->qp, WEFT_EV_TERM_RECEIVED), 1);
	assert_int_equal(host_qp_count_events(s->qp, WEFT_EV_TERM_SENT), 0);
	world_expect_flushed(w, 0);
}

static void a_terminate_is_obeyed_and_not_answered(struct world *w)	/* RDM-52 */
{
	peer_add(w->p, terminate(0x12, 0x05, 0, 4));
	peer_add(w->p, p_tagged(P_WRITE, true, w->rw->r.stag, WORLD_BASE, NULL, 8));
	peer_flush(w->p);
	expect_obeyed(w);
	world_expect_untouched(w, NULL);
	assert_int_equal(w->p->s.qp->core.term_in.layer, 1);
	assert_int_equal(w->p->s.qp->core.term_in.etype, 2);
	assert_int_equal(w->p->s.qp->core.term_in.code, 5);
}

/* Any control octets, header bits that promise more than follows, 0 to 200 octets. */
static void any_terminate_is_understood(struct world *w)		/* RDM-52 */
{
	static const u8 bits[] = { 0x00, 0x80, 0xC0, 0xE0, 0xFF };
	static const u32 len[] = { 0, 1, 3, 4, 5, 6, 7, 19, 24, 51, 52, 200 };
	enum wire_cut cut = w->p->cut;
	struct peer_cfg c;
	u32 i, n;

	peer_cfg_init(&c);
	for (i = 0; i < ARRAY_SIZE(bits); i++) {
		for (n = 0; n < ARRAY_SIZE(len); n++) {
			world_fini(w);
			world_init(w, &c, cut);
			peer_say(w->p, terminate((u8)(i << 4 | n), (u8)(n * 37), bits[i], len[n]));
			expect_obeyed(w);
		}
	}
}

static void terminate_with_a_wrong_msn_is_refused(struct world *w)	/* RDM-53, SIW-43 */
{
	struct pdu *d = terminate(0, 0, 0, 4);

	d->msn = 2;
	world_refuses(w, d, 1, 2, 0x03);
}

static void terminate_with_mo_is_refused(struct world *w)		/* RDM-53 */
{
	struct pdu *d = terminate(0, 0, 0, 4);

	d->mo = 4;
	world_refuses(w, d, 1, 2, 0x04);
}

static void terminate_with_a_bad_crc_is_an_mpa_error(struct world *w)	/* RDM-53 */
{
	peer_add_bad_crc(w->p, terminate(0, 0, 0, 4));
	peer_flush(w->p);
	peer_expect_terminate(w->p, 2, 0, 0x02, NULL, false);
}

static void terminate_within_a_send_is_understood(struct world *w)	/* RDM-54, SIW-23 */
{
	peer_say(w->p, p_send(P_SEND, false, 1, 0, NULL, 0));
	peer_say(w->p, terminate(0x12, 0x02, 0, 4));
	expect_obeyed(w);
}

static void terminate_goes_out_within_a_long_response(struct world *w)	/* RDM-50 */
{
	static struct pdu d, bad;
	struct pdu *p = p_send(14, true, 1, 0, NULL, 8);
	u32 n = 0, i;

	bad = *p;
	/* A batch of two FPDUs. */
	w->p->s.link.cfg.batch = 1;
	for (i = 1; i <= 4; i++)
		peer_add(w->p, p_read_req(i, 1, 0, WORLD_LEN, w->rw->r.stag, WORLD_BASE));
	peer_deliver(w->p);
	host_link_tx(&w->p->s.link);
	peer_add(w->p, p);
	peer_deliver(w->p);
	peer_run(w->p);
	/* Whole FPDUs of the first response, but not all of them, then the Terminate. */
	while (n < 2) {
		assert_true(peer_next(w->p, &d));
		assert_int_equal(d.rdmap, P_RV | P_READ_RESP);
		assert_false(d.ddp & P_L);
		n++;
	}
	peer_expect_terminate(w->p, 0, 2, 0x06, &bad, false);
}

/* TCP is full in the middle of an FPDU: that one is finished, then the Terminate follows. */
static void terminate_follows_the_fpdu_that_tcp_cut(void **state)	/* RDM-50, SIW-26 */
{
	struct peer_cfg c;
	struct world w;
	struct pdu d;
	u32 n = 0, i;

	peer_cfg_init(&c);
	c.side.sndbuf = 3500;
	c.side.link.batch = 3;
	world_init(&w, &c, WIRE_WHOLE);
	for (i = 1; i <= 4; i++)
		peer_add(w.p, p_read_req(i, 1, 0, WORLD_LEN, w.rw->r.stag, WORLD_BASE));
	peer_deliver(w.p);
	for (i = 0; i < 5; i++)
		host_link_tx(&w.p->s.link);
	assert_true(host_link_waits_for_tcp(&w.p->s.link));
	peer_add(w.p, p_send(14, true, 1, 0, NULL, 8));
	peer_deliver(w.p);
	host_link_tx(&w.p->s.link);
	peer_run(w.p);
	/* Of the 16 KB, the octets already handed over, in whole FPDUs; then the Terminate. */
	while (peer_next(w.p, &d) && d.rdmap == (P_RV | P_READ_RESP))
		n += d.len;
	assert_in_range(n, 3000, 4 * WORLD_LEN - 1);
	assert_int_equal(d.rdmap, P_RV | P_TERM);
	assert_int_equal(d.body[0], 0x02);
	assert_int_equal(d.body[1], 0x06);
	peer_expect_silence(w.p);
	assert_true(w.p->fin);
	world_fini(&w);
}

static void unsolicited_read_response_is_refused(struct world *w)	/* RDM-55, SIW-30 */
{
	world_refuses(w, p_tagged(P_READ_RESP, true, w->rw->r.stag, WORLD_BASE, NULL, 8),
		      0, 2, 0x06);
}

static void text_is_not_rdma(struct world *w)				/* RDM-59 */
{
	static char text[70000] = "GET / HTTP/1.0\r\n\r\n";

	peer_add_raw(w->p, text, sizeof(text));
	peer_flush(w->p);
	peer_expect_terminate(w->p, 2, 0, 0x02, NULL, false);
	world_expect_untouched(w, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(version_0_of_a_send_is_refused),
		CASE(version_2_of_a_write_is_refused),
		CASE(version_3_of_a_read_request_is_refused),
		CASE(opcode_8_is_refused_without_extensions),
		CASE(opcode_a_is_refused_without_extensions),
		CASE(opcode_c_is_refused),
		CASE(opcode_f_is_refused),
		CASE(tagged_opcode_f_is_refused),
		CASE(untagged_write_is_refused),
		CASE(tagged_send_is_refused),
		CASE(tagged_read_request_is_refused),
		CASE(tagged_terminate_is_refused),
		CASE(untagged_read_response_is_refused),
		CASE(send_on_queue_1_is_refused),
		CASE(read_request_on_queue_0_is_refused),
		CASE(read_request_on_queue_2_is_refused),
		CASE(read_request_on_queue_7_is_refused),
		CASE(terminate_on_queue_0_is_not_obeyed),
		CASE(reads_of_any_size_are_one_message),
		CASE(the_sink_is_not_interpreted),
		CASE(an_empty_read_names_no_buffer),
		CASE(an_empty_read_behind_a_long_one_is_empty),
		CASE(as_many_reads_as_ird_are_answered_in_order),
		CASE(a_read_sees_the_write_before_it),
		CASE(read_of_an_unknown_stag_is_refused),
		CASE(read_with_a_wrong_key_is_refused),
		CASE(read_of_an_invalidated_stag_is_refused),
		CASE(read_of_another_pd_is_refused),
		CASE(read_of_another_streams_window_is_refused),
		CASE(read_without_the_right_is_refused),
		CASE(read_below_the_base_is_refused),
		CASE(read_past_the_end_is_refused),
		CASE(a_long_read_past_the_end_sends_nothing),
		CASE(read_of_2_gb_is_refused),
		CASE(read_of_all_ones_is_refused),
		CASE(short_read_across_the_wrap_is_refused),
		CASE(long_read_across_the_wrap_is_refused),
		CASE(a_region_lost_in_mid_read_tells_where),
		CASE(a_read_of_memory_that_is_gone_is_not_answered),
		CASE(a_read_whose_memory_goes_is_answered_as_far_as_it_was_there),
		CASE(more_reads_than_ird_are_refused),
		CASE(a_longer_read_request_is_refused),
		CASE(read_request_with_mo_is_refused),
		CASE(read_request_with_a_wrong_msn_is_refused),
		CASE(a_send_sees_the_write_before_it),
		CASE(the_four_sends_are_told_apart),
		CASE(an_invalidated_stag_is_unusable),
		CASE(invalidating_an_unknown_stag_is_refused),
		CASE(invalidating_another_pds_stag_is_refused),
		CASE(invalidating_with_a_wrong_key_is_refused),
		CASE(invalidating_a_pd_wide_region_is_refused),
		CASE(invalidating_another_streams_region_is_refused),
		CASE(the_stag_to_invalidate_may_not_change_within_a_message),
		CASE(the_first_error_wins),
		CASE(much_data_behind_an_error_is_discarded),
		CASE(a_terminate_is_obeyed_and_not_answered),
		CASE(any_terminate_is_understood),
		CASE(terminate_with_a_wrong_msn_is_refused),
		CASE(terminate_with_mo_is_refused),
		CASE(terminate_with_a_bad_crc_is_an_mpa_error),
		CASE(terminate_within_a_send_is_understood),
		CASE(terminate_goes_out_within_a_long_response),
		cmocka_unit_test(terminate_follows_the_fpdu_that_tcp_cut),
		CASE(unsolicited_read_response_is_refused),
		CASE(text_is_not_rdma),
	};

	return RUN_TESTS("stacks: RDMAP", tests);
}
