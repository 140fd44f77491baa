// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * How connections end: graceful close, half-close, resets; which work is flushed, in which order,
 * and that no post is lost silently. QPs used again.
 */
#include "world.h"

/* ---- graceful close ---- */

struct two {
	struct pair p;
	struct host_mr *a, *b;		/* of the initiator, the responder */
};

#define TWO_LEN (1u << 20)

static void two_init(struct two *t, u64 seed)
{
	struct pair_cfg c;

	pair_cfg_init(&c);
	c.seed = seed;
	c.s[0].sndbuf = c.s[1].sndbuf = 20000;
	pair_init(&t->p, &c);
	t->a = host_mr_new(&t->p.s[0].host, PD, BASE, TWO_LEN, RW);
	t->b = host_mr_new(&t->p.s[1].host, PD, BASE, TWO_LEN, RW);
	rng_fill(&t->p.rng, t->a->mem, TWO_LEN);
	/* The first FPDU opens the responder's gate. */
	side_write(&t->p.s[0], 0, 0, t->a, 0, 0, t->b, 0);
	pair_run(&t->p);
}

static void two_fini(struct two *t)
{
	pair_fini(&t->p);
}

static void close_lets_posted_work_out_first(void **state)		/* RDM-60 */
{
	struct two t;
	u64 seed;

	for (seed = 1; seed < 20; seed++) {
		two_init(&t, seed);
		side_write(&t.p.s[0], 1, SIG, t.a, 0, TWO_LEN, t.b, 0);
		side_recv(&t.p.s[1], 3, t.b, 0, 0);
		side_send(&t.p.s[0], 2, SIG, t.a, 0, 0);
		host_link_close(&t.p.s[0].link);
		pair_run(&t.p);
		expect_cqe(t.p.s[0].scq, 1, WEFT_WC_SUCCESS);
		expect_cqe(t.p.s[0].scq, 2, WEFT_WC_SUCCESS);
		expect_cqe(t.p.s[1].rcq, 3, WEFT_WC_SUCCESS);
		assert_memory_equal(t.b->mem, t.a->mem, TWO_LEN);
		assert_true(t.p.s[0].link.rx_closed && t.p.s[1].link.rx_closed);
		assert_int_equal(host_qp_count_events(t.p.s[0].qp, WEFT_EV_TERM_SENT), 0);
		assert_int_equal(host_qp_count_events(t.p.s[1].qp, WEFT_EV_TERM_RECEIVED), 0);
		expect_state(&t.p.s[0], WEFT_QPS_ERROR);
		expect_state(&t.p.s[1], WEFT_QPS_ERROR);
		two_fini(&t);
	}
}

static void close_waits_for_the_reads_under_way(void **state)
{
	struct two t;
	u64 seed;

	for (seed = 1; seed < 20; seed++) {
		two_init(&t, seed);
		memset(t.b->mem, 0xB7, TWO_LEN);
		side_read(&t.p.s[0], 1, SIG, t.a, 0, TWO_LEN, t.b, 0);
		host_link_close(&t.p.s[0].link);
		pair_run(&t.p);
		expect_cqe(t.p.s[0].scq, 1, WEFT_WC_SUCCESS);
		assert_memory_equal(t.a->mem, t.b->mem, TWO_LEN);
		two_fini(&t);
	}
}

static void no_fin_goes_out_before_the_read_is_answered(struct world *w)
{
	side_read(&w->p->s, 1, SIG, w->rw, 0, 8, w->ronly, 0);
	host_link_close(&w->p->s.link);
	peer_run(w->p);
	peer_expect(w->p, P_L, P_READ_REQ);
	assert_false(w->p->fin);
	peer_say(w->p, p_tagged(P_READ_RESP, true, w->rw->r.stag, WORLD_BASE, NULL, 8));
	expect_cqe(w->p->s.scq, 1, WEFT_WC_SUCCESS);
	assert_true(w->p->fin);
}

static void both_ends_may_close_at_once(void **state)
{
	struct two t;
	u64 seed;

	for (seed = 1; seed < 50; seed++) {
		two_init(&t, seed);
		side_write(&t.p.s[0], 1, SIG, t.a, 0, 5000, t.b, 0);
		side_write(&t.p.s[1], 2, SIG, t.b, 8000, 5000, t.a, 8000);
		host_link_close(&t.p.s[0].link);
		host_link_close(&t.p.s[1].link);
		pair_run(&t.p);
		assert_true(t.p.s[0].link.rx_closed && t.p.s[1].link.rx_closed);
		expect_state(&t.p.s[0], WEFT_QPS_ERROR);
		expect_state(&t.p.s[1], WEFT_QPS_ERROR);
		assert_int_equal(drain_cq(t.p.s[0].scq), 1);
		assert_int_equal(drain_cq(t.p.s[1].scq), 1);
		two_fini(&t);
	}
}

/* The gate holds FPDUs; a responder without any may close. */
static void a_responder_may_close_before_the_first_fpdu(struct world *w)
{
	host_link_close(&w->p->s.link);
	peer_run(w->p);
	peer_expect_silence(w->p);
	assert_true(w->p->fin);
	peer_close(w->p);
	world_expect_flushed(w, 0);
}

static void a_close_with_work_behind_the_gate_waits(struct world *w)
{
	side_send(&w->p->s, 1, SIG, w->rw, 0, 8);
	host_link_close(&w->p->s.link);
	peer_run(w->p);
	peer_expect_silence(w->p);
	assert_false(w->p->fin);
	peer_say(w->p, p_tagged(P_WRITE, true, 0, 0, NULL, 0));
	peer_expect(w->p, P_L, P_SEND);
	assert_true(w->p->fin);
	expect_cqe(w->p->s.scq, 1, WEFT_WC_SUCCESS);
}

static void a_broken_ring_behind_the_gate_is_an_error(struct world *w)
{
	host_scribble_index(w->p->s.qp, false, 0x10000);
	host_link_close(&w->p->s.link);
	peer_run(w->p);
	peer_expect_terminate(w->p, 0, 0, 0x00, NULL, false);
	world_expect_flushed(w, 0);
}

static void close_says_fin_once_and_nothing_behind_it(struct world *w)	/* RDM-60 */
{
	side_send(&w->p->s, 1, SIG, w->rw, 0, 8);
	host_link_close(&w->p->s.link);
	side_send(&w->p->s, 2, SIG, w->rw, 0, 8);
	peer_run(w->p);
	peer_expect(w->p, P_L, P_SEND);
	peer_expect(w->p, P_L, P_SEND);
	peer_expect_silence(w->p);
	assert_true(w->p->fin);
	side_send(&w->p->s, 3, SIG, w->rw, 0, 8);
	peer_run(w->p);
	peer_expect_silence(w->p);
	peer_close(w->p);
	expect_cqe(w->p->s.scq, 1, WEFT_WC_SUCCESS);
	expect_cqe(w->p->s.scq, 2, WEFT_WC_SUCCESS);
	expect_cqe(w->p->s.scq, 3, WEFT_WC_FLUSH_ERR);
	world_expect_flushed(w, 0);
}

/* After our FIN the peer may still send, until its own. */
static void what_comes_after_our_fin_is_still_taken(struct world *w)
{
	host_link_close(&w->p->s.link);
	peer_run(w->p);
	assert_true(w->p->fin);
	peer_say(w->p, p_send(P_SEND, true, 1, 0, "late", 4));
	expect_cqe(w->p->s.rcq, 0, WEFT_WC_SUCCESS);
	assert_memory_equal(w->inbox->mem, "late", 4);
	peer_close(w->p);
	world_expect_flushed(w, 1);
}

/* A Terminate can no longer be sent: the QP must not wait for it. */
static void an_error_after_our_fin_is_not_told(struct world *w)
{
	host_link_close(&w->p->s.link);
	peer_run(w->p);
	assert_true(w->p->fin);
	peer_say(w->p, p_tagged(P_WRITE, true, 0x12345600, WORLD_BASE, NULL, 8));
	peer_expect_silence(w->p);
	assert_int_equal(w->p->s.qp->core.error, WEFT_E_DDP_STAG);
	world_expect_untouched(w, NULL);
	world_expect_flushed(w, 0);
}

/* ---- the peer closes ---- */

static void a_read_is_answered_whole_after_the_peers_fin(void **state)	/* DDP-50, SIW-44 */
{
	struct peer_cfg c;
	struct world w;
	struct host_mr *mr;
	struct pdu d;
	u32 at = 0;

	peer_cfg_init(&c);
	c.side.sndbuf = 5000;
	world_init(&w, &c, WIRE_WHOLE);
	mr = host_mr_new(&w.p->s.host, PD, BASE, TWO_LEN, RW);
	rng_fill(&w.p->rng, mr->mem, TWO_LEN);
	peer_add(w.p, p_read_req(1, 5, 0, TWO_LEN, mr->r.stag, BASE));
	peer_deliver(w.p);
	host_link_tx(&w.p->s.link);
	peer_close(w.p);
	while (peer_next(w.p, &d)) {
		assert_int_equal(d.rdmap, P_RV | P_READ_RESP);
		assert_memory_equal(d.body, mr->mem + at, d.len);
		at += d.len;
	}
	assert_int_equal(at, TWO_LEN);
	assert_true(d.ddp & P_L);
	assert_true(w.p->fin);
	assert_false(w.p->s.aborted);
	world_expect_flushed(&w, 0);
	world_fini(&w);
}

static void work_posted_after_the_peers_fin_is_flushed(struct world *w)
{
	peer_close(w->p);
	assert_true(w->p->fin);
	side_send(&w->p->s, 1, SIG, w->rw, 0, 8);
	peer_run(w->p);
	peer_expect_silence(w->p);
	expect_cqe(w->p->s.scq, 1, WEFT_WC_FLUSH_ERR);
	world_expect_flushed(w, 0);
}

static void fin_within_an_fpdu_delivers_nothing(struct world *w)	/* MPA-78 */
{
	peer_add(w->p, p_send(P_SEND, true, 1, 0, "half", 4));
	w->p->out_len -= 4;
	peer_flush(w->p);
	peer_close(w->p);
	assert_true(w->p->fin);
	world_expect_untouched(w, NULL);
	world_expect_flushed(w, 0);
}

static void fin_before_the_first_fpdu_ends_a_responder(struct world *w)	/* MPA-42, ENH-28 */
{
	side_send(&w->p->s, 1, SIG, w->rw, 0, 8);
	peer_run(w->p);
	peer_close(w->p);
	peer_expect_silence(w->p);
	assert_true(w->p->fin);
	expect_cqe(w->p->s.scq, 1, WEFT_WC_FLUSH_ERR);
	world_expect_flushed(w, 0);
}

/* ---- resets ---- */

static void a_reset_flushes_in_order(struct world *w)
{
	u32 i;

	side_read(&w->p->s, 0, 0, w->rw, 0, 8, w->ronly, 0);
	for (i = 1; i < 5; i++)
		side_send(&w->p->s, i, i & 1 ? SIG : 0, w->rw, 0, 8);
	peer_run(w->p);
	host_link_reset(&w->p->s.link);
	for (i = 0; i < 5; i++)
		expect_cqe(w->p->s.scq, i, WEFT_WC_FLUSH_ERR);
	expect_no_cqe(w->p->s.scq);
	world_expect_flushed(w, 0);
	assert_int_equal(host_qp_count_events(w->p->s.qp, WEFT_EV_TERM_SENT), 0);
}

static void posts_in_error_are_flushed(struct world *w)			/* lesson 23 */
{
	struct host_wr bad = { .wr_id = 12, .opcode = 99 };
	u32 i;

	host_link_reset(&w->p->s.link);
	world_expect_flushed(w, 0);
	for (i = 0; i < 600; i++) {
		side_send(&w->p->s, 10, 0, w->rw, 0, 8);
		side_recv(&w->p->s, 11, w->inbox, 0, 8);
		side_post(&w->p->s, &bad);
		/* The doorbell must have been asked for. */
		assert_true(w->p->s.qp->kicked);
		peer_run(w->p);
		expect_cqe(w->p->s.scq, 10, WEFT_WC_FLUSH_ERR);
		expect_cqe(w->p->s.scq, 12, WEFT_WC_FLUSH_ERR);
		expect_cqe(w->p->s.rcq, 11, WEFT_WC_FLUSH_ERR);
		expect_no_cqe(w->p->s.rcq);
	}
}

static void the_user_may_end_it(struct world *w)
{
	side_send(&w->p->s, 1, SIG, w->rw, 0, 8);
	host_link_abort(&w->p->s.link);
	assert_true(w->p->s.aborted);
	expect_cqe(w->p->s.scq, 1, WEFT_WC_FLUSH_ERR);
	world_expect_flushed(w, 0);
	peer_say(w->p, p_tagged(P_WRITE, true, w->rw->r.stag, WORLD_BASE, NULL, 8));
	world_expect_untouched(w, NULL);
}

static void a_reset_in_mid_message_leaves_no_holder(void **state)
{
	struct two t;
	u64 seed;

	for (seed = 1; seed < 60; seed++) {
		u32 n;

		two_init(&t, seed);
		side_write(&t.p.s[0], 1, SIG, t.a, 0, TWO_LEN, t.b, 0);
		side_read(&t.p.s[0], 2, SIG, t.a, 0, TWO_LEN, t.b, 0);
		side_write(&t.p.s[1], 3, SIG, t.b, 0, TWO_LEN, t.a, 0);
		for (n = rng_below(&t.p.rng, 300); n && pair_step(&t.p); n--)
			;
		pair_drop(&t.p);
		pair_run(&t.p);
		assert_int_equal(drain_cq(t.p.s[0].scq), 2);
		assert_int_equal(drain_cq(t.p.s[1].scq), 1);
		/* host_mr_free() asserts that no QP holds them. */
		host_mr_free(&t.p.s[0].host, t.a);
		host_mr_free(&t.p.s[1].host, t.b);
		two_fini(&t);
	}
}

/* ---- a QP used again ---- */

static void a_qp_works_again_after_reset(void **state)
{
	struct side_cfg c;
	struct side s;
	struct host_mr *mr;
	u32 slots;

	side_cfg_init(&c);
	side_init(&s, false, &c);
	mr = host_mr_new(&s.host, PD, BASE, 64, RW);
	side_send(&s, 1, SIG, mr, 0, 8);
	side_recv(&s, 2, mr, 0, 8);
	weft_qpc_error(&s.qp->core);
	expect_cqe(s.scq, 1, WEFT_WC_FLUSH_ERR);
	expect_cqe(s.rcq, 2, WEFT_WC_FLUSH_ERR);
	slots = s.qp->core.sq.q.slots;
	memset(s.qp->core.sq.q.ring, 0, weft_ring_size(slots));
	memset(s.qp->core.rq.q.ring, 0, weft_ring_size(s.qp->core.rq.q.slots));
	s.qp->sq_user = s.qp->rq_user = 0;
	s.qp->kicked = false;
	weft_qpc_reset(&s.qp->core);
	expect_state(&s, WEFT_QPS_IDLE);
	side_send(&s, 3, SIG, mr, 0, 8);
	/* Without a doorbell request, a provider would wait for ever. */
	assert_true(s.qp->kicked);
	weft_qpc_error(&s.qp->core);
	expect_cqe(s.scq, 3, WEFT_WC_FLUSH_ERR);
	expect_no_cqe(s.rcq);
	side_fini(&s);
}

static void a_ring_of_one_slot_works(void **state)
{
	struct peer_cfg c;
	struct world w;

	peer_cfg_init(&c);
	c.side.qp.sq_slots = 1;
	world_init(&w, &c, WIRE_WHOLE);
	peer_expect_alive(w.p, 1, w.rw);
	side_send(&w.p->s, 1, SIG, w.rw, 0, 8);
	assert_false(host_post_raw(w.p->s.qp, w.rw->mem, 1));
	peer_run(w.p);
	peer_expect(w.p, P_L, P_SEND);
	expect_cqe(w.p->s.scq, 1, WEFT_WC_SUCCESS);
	world_fini(&w);
}

static void without_a_receive_queue_a_send_is_refused(void **state)	/* lesson 26 */
{
	struct peer *p;
	struct peer_cfg c;
	struct pdu *bad = p_send(P_SEND, true, 1, 0, NULL, 0), copy = *bad;

	peer_cfg_init(&c);
	c.side.qp.rq_slots = 0;
	p = peer_new(&c);
	peer_say(p, p_tagged(P_WRITE, true, 0, 0, NULL, 0));
	peer_say(p, bad);
	peer_expect_terminate(p, 1, 2, 0x02, &copy, false);
	peer_free(p);
}

static void fpdus_start_segments(void **state)				/* MPA-80 */
{
	struct pair_cfg c;
	struct pair p;
	struct host_mr *from, *to;
	u32 i;

	pair_cfg_init(&c);
	c.s[0].mss = c.s[1].mss = 1448;
	pair_init(&p, &c);
	from = host_mr_new(&p.s[0].host, PD, BASE, 4096, RW);
	to = host_mr_new(&p.s[1].host, PD, BASE, 4096, RW);
	pair_run(&p);
	for (i = 0; i < 200; i++)
		side_write(&p.s[0], i, SIG, from, 0, 4096, to, 0);
	pair_run(&p);
	assert_int_equal(drain_cq(p.s[0].scq), 200);
	assert_true(p.s[0].seen.longest <= 1448);
	assert_true(p.s[0].seen.aligned * 10 >= p.s[0].out.segments * 9);
	/* The segments are full: at most a tenth more of them than the octets need. */
	assert_true((u64)p.s[0].out.segments * 1448 * 9 <= p.s[0].out.sent * 10 + 14480);
	pair_fini(&p);
}

/* Each is as long as there is, and ends where a segment does. */
static void large_fpdus_start_segments(void **state)			/* MPA-53, MPA-80 */
{
	const u32 len = 1 << 20;
	struct pair_cfg c;
	struct pair p;
	struct host_mr *from, *to;
	u32 i;

	pair_cfg_init(&c);
	c.s[0].mss = c.s[1].mss = 1448;
	c.s[0].sndbuf = 8 * len;
	c.s[0].link.large_fpdus = true;
	c.s[0].link.batch = 70;
	pair_init(&p, &c);
	from = host_mr_new(&p.s[0].host, PD, BASE, len, RW);
	to = host_mr_new(&p.s[1].host, PD, BASE, len, RW);
	pair_run(&p);
	for (i = 0; i < 6; i++)
		side_write(&p.s[0], i, SIG, from, 0, len, to, 0);
	pair_run(&p);
	assert_int_equal(drain_cq(p.s[0].scq), 6);
	assert_int_equal(p.s[0].seen.longest, WEFT_LARGE_FPDU / 1448 * 1448);
	assert_true(p.s[0].seen.fpdus <= 6 * (len / 60000 + 2));
	/* But for those that follow the end of a message. */
	assert_true(p.s[0].seen.aligned >= p.s[0].seen.fpdus - 8);
	assert_true((u64)p.s[0].out.segments * 1448 * 9 <= p.s[0].out.sent * 10 + 14480);
	/* The other end has said nothing of it. */
	side_write(&p.s[1], 0, SIG, to, 0, len, from, 0);
	pair_run(&p);
	expect_cqe(p.s[1].scq, 0, WEFT_WC_SUCCESS);
	assert_true(p.s[1].seen.longest <= 1448);
	pair_fini(&p);
}

/* A region without memory, with @mr's STag. */
static void make_null(struct host_mr *mr)
{
	const u32 stag = mr->r.stag;

	mr->r = weft_region_null(PD);
	mr->r.stag = stag;
}

/* Over several FPDUs, at any address; and the peer has no access to it. */
static void a_null_region_drops_and_is_read_as_zeros(void **state)
{
	struct host_mr *from, *to, *in, *out;
	const u32 len = 5000;
	struct pair_cfg c;
	struct pair p;
	u32 i;

	pair_cfg_init(&c);
	pair_init(&p, &c);
	from = host_mr_new(&p.s[0].host, PD, BASE, len, RW);
	to = host_mr_new(&p.s[1].host, PD, BASE, len, RW);
	make_null(out = host_mr_new(&p.s[0].host, PD, 0, 1, RW));
	make_null(in = host_mr_new(&p.s[1].host, PD, 0, 1, RW));
	memset(to->mem, 0xff, len);
	side_recv(&p.s[1], 1, in, 0xdead0000, len);
	side_send(&p.s[0], 2, SIG, from, 0, len);
	side_recv(&p.s[1], 3, to, 0, len);
	side_send(&p.s[0], 4, SIG, out, ~0ULL - len, len);
	pair_run(&p);
	assert_int_equal(drain_cq(p.s[0].scq), 2);
	assert_int_equal(drain_cq(p.s[1].rcq), 2);
	for (i = 0; i < len; i++)
		assert_int_equal(to->mem[i], 0);
	side_write(&p.s[0], 5, SIG, from, 0, 16, in, 0);
	pair_run(&p);
	expect_state(&p.s[1], WEFT_QPS_ERROR);
	pair_fini(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(close_lets_posted_work_out_first),
		cmocka_unit_test(close_waits_for_the_reads_under_way),
		CASE_INITIATOR(no_fin_goes_out_before_the_read_is_answered),
		cmocka_unit_test(both_ends_may_close_at_once),
		CASE(a_responder_may_close_before_the_first_fpdu),
		CASE(a_close_with_work_behind_the_gate_waits),
		CASE(a_broken_ring_behind_the_gate_is_an_error),
		CASE_INITIATOR(close_says_fin_once_and_nothing_behind_it),
		CASE_INITIATOR(what_comes_after_our_fin_is_still_taken),
		CASE_INITIATOR(an_error_after_our_fin_is_not_told),
		cmocka_unit_test(a_read_is_answered_whole_after_the_peers_fin),
		CASE(work_posted_after_the_peers_fin_is_flushed),
		CASE(fin_within_an_fpdu_delivers_nothing),
		CASE(fin_before_the_first_fpdu_ends_a_responder),
		CASE_INITIATOR(a_reset_flushes_in_order),
		CASE_INITIATOR(posts_in_error_are_flushed),
		CASE_INITIATOR(the_user_may_end_it),
		cmocka_unit_test(a_reset_in_mid_message_leaves_no_holder),
		cmocka_unit_test(a_qp_works_again_after_reset),
		cmocka_unit_test(a_ring_of_one_slot_works),
		cmocka_unit_test(without_a_receive_queue_a_send_is_refused),
		cmocka_unit_test(fpdus_start_segments),
		cmocka_unit_test(large_fpdus_start_segments),
		cmocka_unit_test(a_null_region_drops_and_is_read_as_zeros),
	};

	return RUN_TESTS("stacks: connections", tests);
}
