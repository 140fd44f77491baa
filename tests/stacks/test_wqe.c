// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Invalid work requests, and users who scribble over their rings: the right status, a Terminate
 * without headers, everything flushed, and nothing of the bad request on the wire.
 */
#include "world.h"

static struct host_wr good_send(struct world *w, u64 wr_id)
{
	return (struct host_wr){
		.wr_id = wr_id, .opcode = WEFT_WR_SEND, .flags = SIG, .num_sge = 1,
		.sge = { host_sge(w->rw, 0, 8) },
	};
}

/* Work of three Sends, number 2 of which is bad. */
static void one_good_goes_out(struct world *w)
{
	struct host_wr wr = good_send(w, 1);

	side_post(&w->p->s, &wr);
}

static void expect_failed(struct world *w, u8 status)
{
	struct host_wr wr = good_send(w, 3);

	side_post(&w->p->s, &wr);
	peer_run(w->p);
	assert_int_equal(peer_expect(w->p, P_L, P_SEND)->len, 8);
	/* RDM-61 */
	peer_expect_terminate(w->p, 0, 0, 0x00, NULL, false);
	expect_cqe(w->p->s.scq, 1, WEFT_WC_SUCCESS);
	expect_cqe(w->p->s.scq, 2, status);
	expect_cqe(w->p->s.scq, 3, WEFT_WC_FLUSH_ERR);
	expect_no_cqe(w->p->s.scq);
	assert_int_equal(host_qp_count_events(w->p->s.qp, WEFT_EV_LOCAL_ERROR), 1);
	world_expect_flushed(w, 0);
}

/* Posts @wr, encoded and then changed by @spoil if that is not NULL. */
static void refuse_spoiled(struct world *w, struct host_wr *wr, u8 status,
			   void (*spoil)(struct weft_sq_wqe *))
{
	struct host_wqe e;
	u32 n;

	one_good_goes_out(w);
	wr->wr_id = 2;
	n = host_wr_encode(wr, &e);
	if (spoil)
		spoil(&e.first);
	assert_true(host_post_raw(w->p->s.qp, &e, n));
	expect_failed(w, status);
}

static void refuse(struct world *w, struct host_wr *wr, u8 status)
{
	refuse_spoiled(w, wr, status, NULL);
}

static void refuse_opcode(struct world *w, u8 opcode)
{
	struct host_wr wr = good_send(w, 2);

	wr.opcode = opcode;
	refuse(w, &wr, WEFT_WC_LOC_QP_OP_ERR);
}

/* ---- the entry's content ---- */

static void unknown_opcode(struct world *w)
{
	refuse_opcode(w, WEFT_WR_NR);
}

static void opcode_of_all_ones(struct world *w)
{
	refuse_opcode(w, 0xFF);
}

static void atomics_are_refused_without_the_feature(struct world *w)
{
	refuse_opcode(w, WEFT_WR_FETCH_ADD);
}

static void reg_mr_is_not_for_users(struct world *w)
{
	struct host_wr wr = { .opcode = WEFT_WR_REG_MR, .reg = { .stag = w->fast->r.stag } };

	refuse(w, &wr, WEFT_WC_LOC_QP_OP_ERR);
}

static void have_33_sges(struct weft_sq_wqe *w)
{
	w->num_sge = WEFT_MAX_SGE + 1;
}

static void num_sge_33(struct world *w)
{
	struct host_wr wr = good_send(w, 2);
	u32 i;

	wr.num_sge = WEFT_MAX_SGE;
	for (i = 0; i < WEFT_MAX_SGE; i++)
		wr.sge[i] = host_sge(w->rw, i, 1);
	refuse_spoiled(w, &wr, WEFT_WC_LOC_QP_OP_ERR, have_33_sges);
}

static void have_255_sges(struct weft_sq_wqe *w)
{
	w->num_sge = 255;
}

static void num_sge_255(struct world *w)
{
	struct host_wr wr = good_send(w, 2);

	refuse_spoiled(w, &wr, WEFT_WC_LOC_QP_OP_ERR, have_255_sges);
}

static void have_3_sges(struct weft_sq_wqe *w)
{
	w->num_sge = 3;
}

static void more_sges_than_the_slots_hold(struct world *w)
{
	struct host_wr wr = good_send(w, 2);

	refuse_spoiled(w, &wr, WEFT_WC_LOC_QP_OP_ERR, have_3_sges);
}

static void read_into_two_sges(struct world *w)
{
	struct host_wr wr = good_send(w, 2);

	wr.opcode = WEFT_WR_READ;
	wr.num_sge = 2;
	wr.sge[1] = host_sge(w->rw, 8, 8);
	refuse(w, &wr, WEFT_WC_LOC_QP_OP_ERR);
}

static void inline_read(struct world *w)
{
	struct host_wr wr = good_send(w, 2);

	wr.opcode = WEFT_WR_READ;
	wr.inline_data = "12345678";
	wr.inline_len = 8;
	refuse(w, &wr, WEFT_WC_LOC_QP_OP_ERR);
}

static void claim_513_octets(struct weft_sq_wqe *w)
{
	((struct weft_sge *)(void *)w->data)->length = WEFT_MAX_INLINE + 1;
}

static void claim_two_sges(struct weft_sq_wqe *w)
{
	w->num_sge = 2;
}

static void inline_with_two_sges(struct world *w)
{
	struct host_wr wr = good_send(w, 2);

	wr.inline_data = "12345678";
	wr.inline_len = 8;
	refuse_spoiled(w, &wr, WEFT_WC_LOC_QP_OP_ERR, claim_two_sges);
}

static void inline_of_513_octets(struct world *w)
{
	static const u8 data[WEFT_MAX_INLINE];
	struct host_wr wr = good_send(w, 2);

	wr.inline_data = data;
	wr.inline_len = sizeof(data);
	refuse_spoiled(w, &wr, WEFT_WC_LOC_LEN_ERR, claim_513_octets);
}

static void claim_all_ones(struct weft_sq_wqe *w)
{
	((struct weft_sge *)(void *)w->data)->length = 0xFFFFFFFF;
}

static void inline_of_all_ones(struct world *w)
{
	struct host_wr wr = good_send(w, 2);

	wr.inline_data = "x";
	wr.inline_len = 1;
	refuse_spoiled(w, &wr, WEFT_WC_LOC_LEN_ERR, claim_all_ones);
}

static void claim_17_octets(struct weft_sq_wqe *w)
{
	((struct weft_sge *)(void *)w->data)->length = 17;
}

static void more_inline_than_the_slots_hold(struct world *w)
{
	struct host_wr wr = good_send(w, 2);

	wr.inline_data = "0123456789abcdef";
	wr.inline_len = 16;
	refuse_spoiled(w, &wr, WEFT_WC_LOC_LEN_ERR, claim_17_octets);
}

static void a_sum_above_2_gb(struct world *w)
{
	struct host_wr wr = good_send(w, 2);

	wr.num_sge = 2;
	wr.sge[0].length = 0x80000000;
	wr.sge[1] = wr.sge[0];
	wr.sge[1].length = 1;
	refuse(w, &wr, WEFT_WC_LOC_LEN_ERR);
}

static void a_sum_that_wraps_32_bits(struct world *w)
{
	struct host_wr wr = good_send(w, 2);

	wr.num_sge = 2;
	wr.sge[0].length = 0xFFFFFFFF;
	wr.sge[1] = wr.sge[0];
	wr.sge[1].length = 9;
	refuse(w, &wr, WEFT_WC_LOC_LEN_ERR);
}

/* ---- the memory that it names ---- */

static void refuse_sge(struct world *w, struct weft_sge sge)
{
	struct host_wr wr = good_send(w, 2);

	wr.sge[0] = sge;
	refuse(w, &wr, WEFT_WC_LOC_PROT_ERR);
}

static void unknown_lkey(struct world *w)
{
	refuse_sge(w, (struct weft_sge){ .addr = WORLD_BASE, .length = 8, .lkey = 0x12345600 });
}

static void lkey_0(struct world *w)
{
	refuse_sge(w, (struct weft_sge){ .addr = WORLD_BASE, .length = 8 });
}

static void lkey_with_a_wrong_key_byte(struct world *w)
{
	struct weft_sge sge = host_sge(w->rw, 0, 8);

	sge.lkey ^= 1;
	refuse_sge(w, sge);
}

static void lkey_of_another_pd(struct world *w)
{
	refuse_sge(w, host_sge(w->foreign, 0, 8));
}

static void lkey_of_another_qps_region_of_the_pd(struct world *w)
{
	w->fast->r.qp++;
	side_send(&w->p->s, 7, SIG, w->fast, 0, 8);
	peer_run(w->p);
	assert_memory_equal(peer_expect(w->p, P_L, P_SEND)->body, w->fast->mem, 8);
	expect_cqe(w->p->s.scq, 7, WEFT_WC_SUCCESS);
}

static void address_below_the_region(struct world *w)
{
	refuse_sge(w, host_sge(w->rw, -1, 8));
}

static void range_past_the_region(struct world *w)
{
	refuse_sge(w, host_sge(w->rw, WORLD_LEN - 7, 8));
}

static void range_across_the_wrap(struct world *w)
{
	struct weft_sge sge = host_sge(w->rw, 0, 16);

	sge.addr = ~0ull - 7;
	refuse_sge(w, sge);
}

static void a_long_message_with_a_bad_end_sends_nothing(struct world *w)
{
	struct host_wr wr = good_send(w, 2);

	wr.num_sge = 3;
	wr.sge[0] = host_sge(w->rw, 0, WORLD_LEN);
	wr.sge[1] = host_sge(w->rw, 0, WORLD_LEN);
	wr.sge[2] = host_sge(w->rw, 1, WORLD_LEN);
	refuse(w, &wr, WEFT_WC_LOC_PROT_ERR);
}

/* ---- memory that its user has unmapped ---- */

static void a_send_from_memory_that_is_gone(struct world *w)
{
	struct host_wr wr = good_send(w, 2);

	w->ronly->gone = true;
	wr.sge[0] = host_sge(w->ronly, 0, 8);
	refuse(w, &wr, WEFT_WC_LOC_PROT_ERR);
}

static void a_write_from_memory_that_is_gone(struct world *w)
{
	struct host_wr wr = good_send(w, 2);

	w->ronly->gone = true;
	wr.opcode = WEFT_WR_WRITE;
	wr.rkey = 0x12345600;
	wr.remote_addr = BASE;
	wr.sge[0] = host_sge(w->ronly, 0, WORLD_LEN);
	refuse(w, &wr, WEFT_WC_LOC_PROT_ERR);
}

/* Work that sends none of its octets needs no memory. */
static void a_send_of_no_octets_needs_no_memory(struct world *w)
{
	w->rw->gone = true;
	side_send(&w->p->s, 1, SIG, w->rw, 0, 0);
	peer_run(w->p);
	assert_int_equal(peer_expect(w->p, P_L, P_SEND)->len, 0);
	expect_cqe(w->p->s.scq, 1, WEFT_WC_SUCCESS);
}

/*
 * The accessible memory fills more than one FPDU, and the second FPDU, of the same batch, has some
 * of the other memory.
 */
#define THERE 2000

static void send_of_two_memories(struct world *w)
{
	struct host_wr wr = good_send(w, 2);

	w->p->s.link.cfg.batch = 1;
	wr.num_sge = 2;
	wr.sge[0] = host_sge(w->rw, 0, THERE);
	wr.sge[1] = host_sge(w->ronly, 0, WORLD_LEN);
	side_post(&w->p->s, &wr);
	w->ronly->gone = true;
	host_link_tx(&w->p->s.link);
}

static void fpdus_before_memory_that_is_gone_go_out_whole(struct world *w)
{
	const struct pdu *d;

	send_of_two_memories(w);
	peer_run(w->p);
	d = peer_expect(w->p, 0, P_SEND);
	assert_in_range(d->len, THERE / 2, THERE - 1);
	assert_memory_equal(d->body, w->rw->mem, d->len);
	peer_expect_terminate(w->p, 0, 0, 0x00, NULL, false);
	expect_cqe(w->p->s.scq, 2, WEFT_WC_LOC_PROT_ERR);
	expect_no_cqe(w->p->s.scq);
	assert_int_equal(host_qp_count_events(w->p->s.qp, WEFT_EV_LOCAL_ERROR), 1);
	world_expect_flushed(w, 0);
}

/* The FPDU that waits for those before it is cut again from the start. */
static void memory_that_is_back_in_time_is_sent(struct world *w)
{
	static u8 got[THERE + WORLD_LEN];
	struct pdu d;
	u32 n = 0;

	send_of_two_memories(w);
	w->ronly->gone = false;
	peer_run(w->p);
	while (peer_next(w->p, &d)) {
		assert_int_equal(d.rdmap, P_RV | P_SEND);
		assert_int_equal(d.mo, n);
		assert_true(d.len <= sizeof(got) - n);
		memcpy(got + n, d.body, d.len);
		n += d.len;
	}
	assert_int_equal(n, sizeof(got));
	assert_true(d.ddp & P_L);
	assert_memory_equal(got, w->rw->mem, THERE);
	assert_memory_equal(got + THERE, w->ronly->mem, WORLD_LEN);
	expect_cqe(w->p->s.scq, 2, WEFT_WC_SUCCESS);
	expect_state(&w->p->s, WEFT_QPS_RTS);
}

static void read_into_a_region_without_local_write(struct world *w)
{
	struct host_mr *mr = host_mr_new(&w->p->s.host, PD, BASE, 16, WEFT_ACCESS_REMOTE_READ);
	struct host_wr wr = good_send(w, 2);

	wr.opcode = WEFT_WR_READ;
	wr.sge[0] = host_sge(mr, 0, 8);
	refuse(w, &wr, WEFT_WC_LOC_PROT_ERR);
}

static void local_invalidate_of_an_unknown_stag(struct world *w)
{
	struct host_wr wr = { .opcode = WEFT_WR_LOCAL_INV, .inv_stag = 0x12345600 };

	refuse(w, &wr, WEFT_WC_LOC_PROT_ERR);
}

/* ---- unusual but valid ---- */

static void an_empty_sge_names_no_memory(struct world *w)
{
	struct host_wr wr = good_send(w, 1);
	struct pdu d;

	wr.num_sge = 3;
	wr.sge[0] = (struct weft_sge){ .addr = ~0ull, .lkey = 0x66 };
	wr.sge[1] = host_sge(w->rw, 3, 5);
	wr.sge[2] = (struct weft_sge){ .addr = 1, .lkey = 0 };
	side_post(&w->p->s, &wr);
	peer_run(w->p);
	assert_true(peer_next(w->p, &d));
	assert_int_equal(d.len, 5);
	assert_memory_equal(d.body, w->rw->mem + 3, 5);
	expect_cqe(w->p->s.scq, 1, WEFT_WC_SUCCESS);
}

static void thirty_two_sges_are_one_message(struct world *w)
{
	struct host_wr wr = good_send(w, 1);
	const struct pdu *d;
	u32 i;

	wr.num_sge = WEFT_MAX_SGE;
	for (i = 0; i < WEFT_MAX_SGE; i++)
		wr.sge[i] = host_sge(w->rw, 31 - i, 1);
	side_post(&w->p->s, &wr);
	peer_run(w->p);
	d = peer_expect(w->p, P_L, P_SEND);
	assert_int_equal(d->len, WEFT_MAX_SGE);
	for (i = 0; i < WEFT_MAX_SGE; i++)
		assert_int_equal(d->body[i], world_octet(31 - i));
}

static void inline_of_512_octets_is_one_message(struct world *w)
{
	struct host_wr wr = good_send(w, 1);
	u8 data[WEFT_MAX_INLINE];
	const struct pdu *d;

	memcpy(data, w->rw->mem, sizeof(data));
	wr.inline_data = data;
	wr.inline_len = sizeof(data);
	side_post(&w->p->s, &wr);
	memset(data, 0xEE, sizeof(data));
	peer_run(w->p);
	d = peer_expect(w->p, P_L, P_SEND);
	assert_int_equal(d->len, WEFT_MAX_INLINE);
	assert_memory_equal(d->body, w->rw->mem, WEFT_MAX_INLINE);
}

/* A Send of @len octets at @data, in any number of segments. */
static void expect_send(struct world *w, const u8 *data, u32 len)
{
	u32 at = 0;
	struct pdu d;

	do {
		assert_true(peer_next(w->p, &d));
		assert_int_equal(d.mo, at);
		assert_true(at + d.len <= len);
		assert_memory_equal(d.body, data + at, d.len);
		at += d.len;
	} while (!(d.ddp & P_L));
	assert_int_equal(at, len);
}

static void entries_wrap_around_the_rings_end(void **state)
{
	struct peer_cfg c;
	struct world w;
	u32 i;

	peer_cfg_init(&c);
	c.dut_initiates = true;
	c.side.qp.sq_slots = 16;
	world_init(&w, &c, WIRE_WHOLE);
	for (i = 0; i < 100; i++) {
		struct host_wr wr = good_send(&w, i);

		wr.inline_data = w.rw->mem + i;
		wr.inline_len = 300 + i;	/* 6 or 7 slots */
		side_post(&w.p->s, &wr);
		peer_run(w.p);
		expect_send(&w, w.rw->mem + i, 300 + i);
		expect_cqe(w.p->s.scq, i, WEFT_WC_SUCCESS);
	}
	world_fini(&w);
}

static void a_ring_asks_for_a_kick_while_its_reader_sleeps(void **state)
{
	struct weft_ring *ring = calloc(1, weft_ring_size(4));
	struct weft_ringq q;
	u32 i;

	weft_ringq_init(&q, ring, 4);
	assert_int_equal(ring->flags, 0);
	for (i = 0; i < 3; i++) {
		weft_ringq_sleep(&q);
		assert_int_equal(ring->flags, WEFT_RING_KICK);
		weft_ringq_sleep(&q);
		assert_int_equal(ring->flags, WEFT_RING_KICK);
		weft_ringq_wake(&q);
		assert_int_equal(ring->flags, 0);
	}
	free(ring);
}

static void a_queue_of_signalled_work_reports_all_of_it(void **state)
{
	struct peer_cfg c;
	struct world w;

	peer_cfg_init(&c);
	c.dut_initiates = true;
	c.side.qp.sig_all = true;
	world_init(&w, &c, WIRE_WHOLE);
	side_send(&w.p->s, 1, 0, w.rw, 0, 8);
	side_send(&w.p->s, 2, SIG, w.rw, 0, 8);
	peer_run(w.p);
	expect_cqe(w.p->s.scq, 1, WEFT_WC_SUCCESS);
	expect_cqe(w.p->s.scq, 2, WEFT_WC_SUCCESS);
	world_fini(&w);
}

/* ---- rings with invalid indices ---- */

/* The QP is in error; kicks and posts afterwards are harmless. */
static void expect_broken(struct world *w)
{
	u32 i;

	peer_run(w->p);
	peer_expect_terminate(w->p, 0, 0, 0x00, NULL, false);
	expect_state(&w->p->s, WEFT_QPS_ERROR);
	assert_int_equal(host_qp_count_events(w->p->s.qp, WEFT_EV_LOCAL_ERROR), 1);
	assert_int_equal(host_qp_count_events(w->p->s.qp, WEFT_EV_FLUSHED), 1);
	for (i = 0; i < 10; i++) {
		host_scribble_index(w->p->s.qp, false, i * 0x1234567);
		host_scribble_index(w->p->s.qp, true, i * 0x7654321);
		peer_run(w->p);
	}
	peer_expect_silence(w->p);
}

static void set_nslots(struct world *w, u8 nslots)
{
	struct host_wr wr = good_send(w, 2);
	struct host_wqe e;

	one_good_goes_out(w);
	host_wr_encode(&wr, &e);
	e.first.nslots = nslots;
	assert_true(host_post_raw(w->p->s.qp, &e, 1));
	peer_run(w->p);
	peer_expect(w->p, P_L, P_SEND);
	expect_cqe(w->p->s.scq, 1, WEFT_WC_SUCCESS);
	expect_broken(w);
	expect_no_cqe(w->p->s.scq);
}

static void nslots_0(struct world *w)
{
	set_nslots(w, 0);
}

static void nslots_beyond_what_is_posted(struct world *w)
{
	set_nslots(w, 2);
}

static void nslots_10(struct world *w)
{
	struct host_wr wr = good_send(w, 2);
	struct host_wqe e;

	host_wr_encode(&wr, &e);
	e.first.nslots = WEFT_SQ_MAX_SLOTS + 1;
	assert_true(host_post_raw(w->p->s.qp, &e, WEFT_SQ_MAX_SLOTS + 1));
	expect_broken(w);
}

static void nslots_255(struct world *w)
{
	set_nslots(w, 255);
}

static void nslots_above_the_queues_own_limit(void **state)
{
	struct peer_cfg c;
	struct world w;
	struct host_wr wr;
	u32 i;

	peer_cfg_init(&c);
	c.dut_initiates = true;
	c.side.qp.max_slots = 2;
	world_init(&w, &c, WIRE_WHOLE);
	wr = good_send(&w, 2);
	wr.num_sge = 7;
	for (i = 0; i < 7; i++)
		wr.sge[i] = host_sge(w.rw, 0, 1);
	side_post(&w.p->s, &wr);
	expect_broken(&w);
	world_fini(&w);
}

/*
 * The user's index of the send ring jumps by @by. The ring is full of entries that were good, so
 * that reading them again would show.
 */
static void jump(struct world *w, u32 by)
{
	u32 i;

	for (i = 0; i < w->p->s.qp->core.sq.q.slots; i++) {
		one_good_goes_out(w);
		peer_run(w->p);
		peer_expect(w->p, P_L, P_SEND);
		expect_cqe(w->p->s.scq, 1, WEFT_WC_SUCCESS);
	}
	host_scribble_index(w->p->s.qp, false, w->p->s.qp->sq_user + by);
	expect_broken(w);
}

static void index_goes_back(struct world *w)
{
	jump(w, -1);
}

static void index_jumps_past_the_ring(struct world *w)
{
	jump(w, w->p->s.qp->core.sq.q.slots + 1);
}

static void index_jumps_half_the_numbers(struct world *w)
{
	jump(w, 0x80000000);
}

/* Within the ring, but before the slots that the stack has copied already. */
static void index_goes_back_behind_a_waiting_entry(struct world *w)
{
	struct host_wr wr = good_send(w, 5);

	wr.opcode = WEFT_WR_READ;
	side_post(&w->p->s, &wr);
	wr.opcode = WEFT_WR_SEND;
	wr.flags |= WEFT_WR_FENCE;
	side_post(&w->p->s, &wr);
	peer_run(w->p);
	peer_expect(w->p, P_L, P_READ_REQ);
	host_scribble_index(w->p->s.qp, false, w->p->s.qp->sq_user - 2);
	/* The answer lets the fenced Send go, and then the ring is read. */
	peer_say(w->p, p_tagged(P_READ_RESP, true, w->rw->r.stag, WORLD_BASE, NULL, 8));
	peer_expect(w->p, P_L, P_SEND);
	expect_broken(w);
}

static void an_entry_changed_after_its_copy_is_the_copy(struct world *w)	/* lesson 32 */
{
	struct host_wr wr = good_send(w, 5);
	struct weft_sq_wqe *slot;
	const struct pdu *d;

	wr.opcode = WEFT_WR_READ;
	side_post(&w->p->s, &wr);
	wr = good_send(w, 6);
	wr.flags |= WEFT_WR_FENCE;
	side_post(&w->p->s, &wr);
	peer_run(w->p);
	peer_expect(w->p, P_L, P_READ_REQ);
	slot = weft_ringq_slot(&w->p->s.qp->core.sq.q, 1);
	memset(slot, 0xFF, sizeof(*slot));
	slot = weft_ringq_slot(&w->p->s.qp->core.sq.q, 0);
	memset(slot, 0xFF, sizeof(*slot));
	peer_say(w->p, p_tagged(P_READ_RESP, true, w->rw->r.stag, WORLD_BASE, "12345678", 8));
	d = peer_expect(w->p, P_L, P_SEND);
	assert_memory_equal(d->body, "12345678", 8);
	expect_cqe(w->p->s.scq, 5, WEFT_WC_SUCCESS);
	expect_cqe(w->p->s.scq, 6, WEFT_WC_SUCCESS);
}

/* ---- receives ---- */

/*
 * NRECV good receives are used up, the next is bad; it fails with @status, and the Terminate names
 * the Send.
 */
static void refuse_recv(struct world *w, const struct weft_sge *sge, u32 num_sge, u8 status)
{
	struct pdu *bad = p_send(P_SEND, true, NRECV + 1, 0, "bad", 3), copy = *bad;
	u32 i;

	assert_true(host_post_recv(w->p->s.qp, 77, sge, num_sge));
	for (i = 1; i <= NRECV; i++)
		peer_say(w->p, p_send(P_SEND, true, i, 0, NULL, 0));
	for (i = 0; i < NRECV; i++)
		expect_cqe(w->p->s.rcq, i, WEFT_WC_SUCCESS);
	peer_say(w->p, bad);
	peer_expect_terminate(w->p, 0, 2, 0x07, &copy, false);
	expect_cqe(w->p->s.rcq, 77, status);
	world_expect_untouched(w, NULL);
	world_expect_flushed(w, NRECV);
}

static void receive_with_too_many_sges(struct world *w)
{
	struct weft_sge sge[33] = { { 0 } };

	refuse_recv(w, sge, 33, WEFT_WC_LOC_QP_OP_ERR);
}

static void receive_with_one_sge_too_many_for_the_queue(struct world *w)
{
	struct weft_sge sge[5] = { { 0 } };

	refuse_recv(w, sge, 5, WEFT_WC_LOC_QP_OP_ERR);
}

static void receive_with_an_unknown_lkey(struct world *w)
{
	struct weft_sge sge = { .addr = WORLD_BASE, .length = 8, .lkey = 0x4444 };

	refuse_recv(w, &sge, 1, WEFT_WC_LOC_PROT_ERR);
}

static void receive_into_another_pd(struct world *w)
{
	struct weft_sge sge = host_sge(w->foreign, 0, 8);

	refuse_recv(w, &sge, 1, WEFT_WC_LOC_PROT_ERR);
}

static void receive_past_its_region(struct world *w)
{
	struct weft_sge sge = host_sge(w->inbox, WORLD_LEN - 2, 8);

	refuse_recv(w, &sge, 1, WEFT_WC_LOC_PROT_ERR);
}

static void receive_into_a_region_without_local_write(struct world *w)
{
	struct host_mr *mr = host_mr_new(&w->p->s.host, PD, BASE, 16, WEFT_ACCESS_REMOTE_READ);
	struct weft_sge sge = host_sge(mr, 0, 8);

	refuse_recv(w, &sge, 1, WEFT_WC_LOC_PROT_ERR);
	assert_int_equal(mr->mem[0], 0);
}

static void receive_into_memory_that_is_gone(struct world *w)
{
	struct weft_sge sge = host_sge(w->wonly, 0, 8);

	w->wonly->gone = true;
	refuse_recv(w, &sge, 1, WEFT_WC_LOC_PROT_ERR);
}

static void receive_whose_second_memory_is_gone(struct world *w)
{
	struct host_mr *mr = host_mr_new(&w->p->s.host, PD, BASE, 16, WEFT_ACCESS_LOCAL_WRITE);
	struct weft_sge sge[] = { host_sge(mr, 0, 2), host_sge(w->wonly, 0, 8) };

	w->wonly->gone = true;
	refuse_recv(w, sge, 2, WEFT_WC_LOC_PROT_ERR);
}

static void receive_index_jumps(struct world *w)
{
	host_scribble_index(w->p->s.qp, true, w->p->s.qp->rq_user + 0x10000);
	peer_add(w->p, p_send(P_SEND, true, 1, 0, "abc", 3));
	peer_deliver(w->p);
	expect_broken(w);
	world_expect_untouched(w, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE_INITIATOR(unknown_opcode),
		CASE_INITIATOR(opcode_of_all_ones),
		CASE_INITIATOR(atomics_are_refused_without_the_feature),
		CASE_INITIATOR(reg_mr_is_not_for_users),
		CASE_INITIATOR(num_sge_33),
		CASE_INITIATOR(num_sge_255),
		CASE_INITIATOR(more_sges_than_the_slots_hold),
		CASE_INITIATOR(read_into_two_sges),
		CASE_INITIATOR(inline_read),
		CASE_INITIATOR(inline_with_two_sges),
		CASE_INITIATOR(inline_of_513_octets),
		CASE_INITIATOR(inline_of_all_ones),
		CASE_INITIATOR(more_inline_than_the_slots_hold),
		CASE_INITIATOR(a_sum_above_2_gb),
		CASE_INITIATOR(a_sum_that_wraps_32_bits),
		CASE_INITIATOR(unknown_lkey),
		CASE_INITIATOR(lkey_0),
		CASE_INITIATOR(lkey_with_a_wrong_key_byte),
		CASE_INITIATOR(lkey_of_another_pd),
		CASE_INITIATOR(lkey_of_another_qps_region_of_the_pd),
		CASE_INITIATOR(address_below_the_region),
		CASE_INITIATOR(range_past_the_region),
		CASE_INITIATOR(range_across_the_wrap),
		CASE_INITIATOR(a_long_message_with_a_bad_end_sends_nothing),
		CASE_INITIATOR(a_send_from_memory_that_is_gone),
		CASE_INITIATOR(a_write_from_memory_that_is_gone),
		CASE_INITIATOR(a_send_of_no_octets_needs_no_memory),
		CASE_INITIATOR(fpdus_before_memory_that_is_gone_go_out_whole),
		CASE_INITIATOR(memory_that_is_back_in_time_is_sent),
		CASE_INITIATOR(read_into_a_region_without_local_write),
		CASE_INITIATOR(local_invalidate_of_an_unknown_stag),
		CASE_INITIATOR(an_empty_sge_names_no_memory),
		CASE_INITIATOR(thirty_two_sges_are_one_message),
		CASE_INITIATOR(inline_of_512_octets_is_one_message),
		cmocka_unit_test(entries_wrap_around_the_rings_end),
		cmocka_unit_test(a_ring_asks_for_a_kick_while_its_reader_sleeps),
		cmocka_unit_test(a_queue_of_signalled_work_reports_all_of_it),
		CASE_INITIATOR(nslots_0),
		CASE_INITIATOR(nslots_beyond_what_is_posted),
		CASE_INITIATOR(nslots_10),
		CASE_INITIATOR(nslots_255),
		cmocka_unit_test(nslots_above_the_queues_own_limit),
		CASE_INITIATOR(index_goes_back),
		CASE_INITIATOR(index_jumps_past_the_ring),
		CASE_INITIATOR(index_jumps_half_the_numbers),
		CASE_INITIATOR(index_goes_back_behind_a_waiting_entry),
		CASE_INITIATOR(an_entry_changed_after_its_copy_is_the_copy),
		CASE_INITIATOR(receive_with_too_many_sges),
		CASE_INITIATOR(receive_with_one_sge_too_many_for_the_queue),
		CASE_INITIATOR(receive_with_an_unknown_lkey),
		CASE_INITIATOR(receive_into_another_pd),
		CASE_INITIATOR(receive_past_its_region),
		CASE_INITIATOR(receive_into_a_region_without_local_write),
		CASE_INITIATOR(receive_into_memory_that_is_gone),
		CASE_INITIATOR(receive_whose_second_memory_is_gone),
		CASE_INITIATOR(receive_index_jumps),
	};

	return RUN_TESTS("stacks: work requests", tests);
}
