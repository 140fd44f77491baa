// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * How connections begin: which end may send first, peer-to-peer in both roles and all three kinds,
 * refusals.
 */
#include "world.h"

/* ---- which end sends first ---- */

static void a_responders_send_waits_for_the_first_fpdu(struct world *w)	/* MPA-30, SIW-41 */
{
	side_send(&w->p->s, 1, SIG, w->rw, 0, 8);
	peer_run(w->p);
	peer_expect_silence(w->p);
	expect_no_cqe(w->p->s.scq);
	assert_int_equal(host_qp_count_events(w->p->s.qp, WEFT_EV_RTS), 0);
	peer_say(w->p, p_tagged(P_WRITE, true, 0, 0, NULL, 0));
	assert_int_equal(peer_expect(w->p, P_L, P_SEND)->len, 8);
	expect_cqe(w->p->s.scq, 1, WEFT_WC_SUCCESS);
	assert_int_equal(host_qp_count_events(w->p->s.qp, WEFT_EV_RTS), 1);
	peer_say(w->p, p_tagged(P_WRITE, true, 0, 0, NULL, 0));
	assert_int_equal(host_qp_count_events(w->p->s.qp, WEFT_EV_RTS), 1);
}

/* The FPDUs are counted in 32 bits: the gate must not close when they wrap. */
static void the_gate_stays_open_for_good(struct world *w)
{
	w->p->s.qp->core.st->rx_fpdus = ~0u;
	peer_say(w->p, p_tagged(P_WRITE, true, 0, 0, NULL, 0));
	side_send(&w->p->s, 1, SIG, w->rw, 0, 8);
	peer_run(w->p);
	assert_int_equal(peer_expect(w->p, P_L, P_SEND)->len, 8);
	expect_cqe(w->p->s.scq, 1, WEFT_WC_SUCCESS);
}

static void a_bad_first_fpdu_does_not_open_the_gate(struct world *w)	/* MPA-31 */
{
	side_send(&w->p->s, 1, SIG, w->rw, 0, 8);
	peer_run(w->p);
	peer_add_bad_crc(w->p, p_tagged(P_WRITE, true, 0, 0, NULL, 0));
	peer_flush(w->p);
	peer_expect_terminate(w->p, 2, 0, 0x02, NULL, false);
	expect_cqe(w->p->s.scq, 1, WEFT_WC_FLUSH_ERR);
}

static void half_a_first_fpdu_does_not_open_the_gate(struct world *w)	/* MPA-66 */
{
	side_send(&w->p->s, 1, SIG, w->rw, 0, 8);
	peer_add(w->p, p_tagged(P_WRITE, true, w->rw->r.stag, WORLD_BASE, NULL, 8));
	w->p->out_len--;
	peer_flush(w->p);
	peer_expect_silence(w->p);
	world_expect_untouched(w, NULL);
}

static void the_gate_stays_open_when_counts_wrap(struct world *w)
{
	peer_say(w->p, p_tagged(P_WRITE, true, 0, 0, NULL, 0));
	w->p->s.link.core.st.rx_fpdus = 0xFFFFFFFF;
	peer_say(w->p, p_tagged(P_WRITE, true, 0, 0, NULL, 0));
	side_send(&w->p->s, 1, SIG, w->rw, 0, 8);
	peer_run(w->p);
	peer_expect(w->p, P_L, P_SEND);
}

static void an_initiator_sends_at_once(struct world *w)
{
	side_send(&w->p->s, 1, SIG, w->rw, 0, 8);
	peer_run(w->p);
	peer_expect(w->p, P_L, P_SEND);
}

static void work_posted_before_the_connection_goes_out_with_it(void **state)
{
	struct pair_cfg c;
	struct host_mr *from, *to;
	struct pair p;

	pair_cfg_init(&c);
	pair_init(&p, &c);
	from = host_mr_new(&p.s[0].host, PD, BASE, 64, RW);
	to = host_mr_new(&p.s[1].host, PD, BASE, 64, RW);
	memcpy(from->mem, "early", 5);
	side_write(&p.s[0], 1, SIG, from, 0, 5, to, 3);
	side_recv(&p.s[1], 1, to, 32, 8);
	pair_run(&p);
	expect_cqe(p.s[0].scq, 1, WEFT_WC_SUCCESS);
	assert_memory_equal(to->mem + 3, "early", 5);
	pair_fini(&p);
}

/* ---- peer-to-peer ---- */

static void init_p2p(struct pair *p, u8 initiators, u8 responders)
{
	struct pair_cfg c;

	pair_cfg_init(&c);
	c.s[0].link.mpa.p2p = true;
	c.s[0].link.mpa.rtr = initiators;
	c.s[1].link.mpa.rtr = responders;
	pair_init(p, &c);
}

static void rtr_opens_the_responder(u8 kind)				/* ENH-21, 23 */
{
	struct host_mr *from, *to;
	struct weft_cqe e;
	struct pair p;

	init_p2p(&p, kind, WEFT_RTR_ALL);
	from = host_mr_new(&p.s[1].host, PD, BASE, 64, RW);
	to = host_mr_new(&p.s[0].host, PD, BASE, 64, RW);
	memcpy(from->mem, "server first", 12);
	side_recv(&p.s[0], 5, to, 0, 64);
	side_send(&p.s[1], 6, SIG, from, 0, 12);
	/* One that the RTR must not take. */
	side_recv(&p.s[1], 9, from, 0, 64);
	pair_run(&p);
	assert_int_equal(p.s[0].link.core.st.agreed.rtr, kind);
	expect_cqe(p.s[1].scq, 6, WEFT_WC_SUCCESS);
	e = expect_cqe(p.s[0].rcq, 5, WEFT_WC_SUCCESS);
	assert_int_equal(e.byte_len, 12);
	assert_memory_equal(to->mem, "server first", 12);
	expect_no_cqe(p.s[1].rcq);
	/* The RTR counts as a message: the first Send of the ULP still arrives. */
	side_send(&p.s[0], 7, SIG, to, 0, 12);
	pair_run(&p);
	expect_cqe(p.s[1].rcq, 9, WEFT_WC_SUCCESS);
	expect_state(&p.s[0], WEFT_QPS_RTS);
	expect_state(&p.s[1], WEFT_QPS_RTS);
	pair_fini(&p);
}

static void rtr_by_send(void **state)
{
	rtr_opens_the_responder(WEFT_RTR_SEND);
}

static void rtr_by_write(void **state)
{
	rtr_opens_the_responder(WEFT_RTR_WRITE);
}

static void rtr_by_read(void **state)
{
	rtr_opens_the_responder(WEFT_RTR_READ);
}

static void rtr_read_works_with_ird_0_and_ord_0(void **state)		/* ENH-25 */
{
	struct pair_cfg c;
	struct pair p;

	pair_cfg_init(&c);
	c.s[0].link.mpa.p2p = true;
	c.s[0].link.mpa.rtr = WEFT_RTR_READ;
	c.s[0].link.mpa.ord = 0;
	pair_init(&p, &c);
	pair_run(&p);
	expect_state(&p.s[0], WEFT_QPS_RTS);
	expect_state(&p.s[1], WEFT_QPS_RTS);
	assert_int_equal(host_qp_count_events(p.s[1].qp, WEFT_EV_RTS), 1);
	assert_false(p.s[0].qp->core.rtr_read_out);
	pair_fini(&p);
}

static void the_rtr_read_counts_against_ord(void **state)
{
	struct pair_cfg c;
	struct host_mr *mr, *from;
	struct pair p;
	u32 i;

	pair_cfg_init(&c);
	c.s[0].link.mpa.p2p = true;
	c.s[0].link.mpa.rtr = WEFT_RTR_READ;
	c.s[0].link.mpa.ord = 1;
	c.s[1].link.mpa.ird = 1;
	pair_init(&p, &c);
	mr = host_mr_new(&p.s[0].host, PD, BASE, 64, RW);
	from = host_mr_new(&p.s[1].host, PD, BASE, 64, RW);
	for (i = 0; i < 6; i++)
		side_read(&p.s[0], i, SIG, mr, 0, 8, from, 0);
	/* An overflow of the peer's one slot would end the connection. */
	pair_run(&p);
	for (i = 0; i < 6; i++)
		expect_cqe(p.s[0].scq, i, WEFT_WC_SUCCESS);
	pair_fini(&p);
}

/* A stack that initiates, with a Send posted before; the peer takes only @kind. */
static void init_p2p_world(struct world *w, u8 kind)
{
	struct peer_cfg c;

	peer_cfg_init(&c);
	c.dut_initiates = true;
	c.side.link.mpa.p2p = true;
	c.rtr = kind;
	world_init(w, &c, WIRE_WHOLE);
	side_send(&w->p->s, 1, SIG, w->rw, 0, 8);
	peer_run(w->p);
}

static void the_rtr_write_is_empty_and_first(void **state)		/* ENH-21 */
{
	struct world w;

	init_p2p_world(&w, WEFT_RTR_WRITE);
	assert_int_equal(peer_expect(w.p, P_T | P_L, P_WRITE)->len, 0);
	assert_int_equal(peer_expect(w.p, P_L, P_SEND)->msn, 1);
	expect_cqe(w.p->s.scq, 1, WEFT_WC_SUCCESS);
	world_fini(&w);
}

static void the_rtr_send_is_empty_and_first(void **state)		/* ENH-21 */
{
	const struct pdu *d;
	struct world w;

	init_p2p_world(&w, WEFT_RTR_SEND);
	d = peer_expect(w.p, P_L, P_SEND);
	assert_int_equal(d->len, 0);
	assert_int_equal(d->msn, 1);
	assert_int_equal(d->mo, 0);
	d = peer_expect(w.p, P_L, P_SEND);
	assert_int_equal(d->len, 8);
	assert_int_equal(d->msn, 2);
	expect_cqe(w.p->s.scq, 1, WEFT_WC_SUCCESS);
	expect_no_cqe(w.p->s.scq);
	world_fini(&w);
}

static void the_rtr_read_is_empty_and_first(void **state)		/* ENH-21 */
{
	const struct pdu *d;
	struct world w;
	u32 i;

	init_p2p_world(&w, WEFT_RTR_READ);
	d = peer_expect(w.p, P_L, P_READ_REQ);
	assert_int_equal(d->qn, 1);
	assert_int_equal(d->msn, 1);
	assert_int_equal(d->len, 28);
	for (i = 12; i < 16; i++)
		assert_int_equal(d->body[i], 0);
	peer_expect(w.p, P_L, P_SEND);
	peer_say(w.p, p_tagged(P_READ_RESP, true, 1, 0, NULL, 0));
	/* The next Read is number 2, and its Response is distinguished from the RTR's. */
	side_read(&w.p->s, 2, SIG, w.rw, 0, 4, w.ronly, 0);
	peer_run(w.p);
	assert_int_equal(peer_expect(w.p, P_L, P_READ_REQ)->msn, 2);
	peer_say(w.p, p_tagged(P_READ_RESP, true, w.rw->r.stag, WORLD_BASE, "read", 4));
	expect_cqe(w.p->s.scq, 1, WEFT_WC_SUCCESS);
	expect_cqe(w.p->s.scq, 2, WEFT_WC_SUCCESS);
	world_fini(&w);
}

static void an_rtr_read_answered_with_octets_is_refused(void **state)
{
	struct pdu *bad = p_tagged(P_READ_RESP, true, 1, 0, NULL, 4), copy = *bad;
	struct world w;

	init_p2p_world(&w, WEFT_RTR_READ);
	peer_expect(w.p, P_L, P_READ_REQ);
	peer_expect(w.p, P_L, P_SEND);
	peer_say(w.p, bad);
	peer_expect_terminate(w.p, 1, 1, 0x01, &copy, false);
	world_fini(&w);
}

/* A stack that accepts; its own Send waits for the RTR, @rtr. */
static void accept_rtr(struct world *w, u8 kind, struct pdu *rtr)
{
	struct peer_cfg c;

	peer_cfg_init(&c);
	c.rtr = kind;
	c.ird = 1;
	c.ord = 0;
	world_init(w, &c, WIRE_WHOLE);
	side_send(&w->p->s, 1, SIG, w->rw, 0, 8);
	peer_run(w->p);
	peer_expect_silence(w->p);
	peer_say(w->p, rtr);
}

static void an_rtr_write_to_any_stag_is_taken(void **state)		/* ENH-24 */
{
	static const u32 stag[] = { 0, 1, 0xDEADBEEF };
	struct world w;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(stag); i++) {
		accept_rtr(&w, WEFT_RTR_WRITE,
			   p_tagged(P_WRITE, true, stag[i], ~0ull, NULL, 0));
		assert_int_equal(peer_expect(w.p, P_L, P_SEND)->len, 8);
		world_fini(&w);
	}
}

static void an_rtr_read_of_any_stag_is_answered(void **state)		/* ENH-24, ENH-25 */
{
	static const u32 stag[] = { 0, 1, 0xDEADBEEF };
	const struct pdu *d;
	struct world w;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(stag); i++) {
		accept_rtr(&w, WEFT_RTR_READ, p_read_req(1, 55, 66, 0, stag[i], ~0ull));
		d = peer_expect(w.p, P_T | P_L, P_READ_RESP);
		assert_int_equal(d->stag, 55);
		assert_int_equal(d->len, 0);
		assert_int_equal(peer_expect(w.p, P_L, P_SEND)->len, 8);
		world_fini(&w);
	}
}

static void an_rtr_send_takes_no_receive(void **state)
{
	struct world w;

	accept_rtr(&w, WEFT_RTR_SEND, p_send(P_SEND, true, 1, 0, NULL, 0));
	peer_expect(w.p, P_L, P_SEND);
	expect_no_cqe(w.p->s.rcq);
	/* Only the first message can be the RTR. */
	peer_say(w.p, p_send(P_SEND, true, 2, 0, NULL, 0));
	expect_cqe(w.p->s.rcq, 0, WEFT_WC_SUCCESS);
	world_fini(&w);
}

static void a_send_in_place_of_the_rtr_is_delivered(void **state)	/* ENH-30 */
{
	struct world w;

	accept_rtr(&w, WEFT_RTR_READ, p_send(P_SEND, true, 1, 0, "hello", 5));
	peer_expect(w.p, P_L, P_SEND);
	assert_int_equal(expect_cqe(w.p->s.rcq, 0, WEFT_WC_SUCCESS).byte_len, 5);
	world_fini(&w);
}

/* IRD is 0, and only Writes were offered: a Read exceeds it, first or not. */
static void an_rtr_read_that_was_not_offered_is_refused(void **state)
{
	struct pdu *d = p_read_req(1, 55, 66, 0, 0, 0);
	struct peer_cfg c;
	struct world w;

	peer_cfg_init(&c);
	c.side.link.mpa.p2p = true;
	c.side.link.mpa.rtr = WEFT_RTR_WRITE;
	c.side.link.mpa.ird = 0;
	c.rtr = WEFT_RTR_WRITE;
	world_init(&w, &c, WIRE_WHOLE);
	peer_say(w.p, p_read_req(1, 55, 66, 0, 0, 0));
	peer_expect_terminate(w.p, 1, 2, 0x02, d, false);
	free(d);
	world_fini(&w);
}

static void a_bad_rtr_is_a_clean_error(void **state)			/* ENH-28, SIW-01 */
{
	struct pdu *bad = p_send(14, true, 1, 0, NULL, 0), copy = *bad;
	struct world w;

	accept_rtr(&w, WEFT_RTR_WRITE, bad);
	peer_expect_terminate(w.p, 0, 2, 0x06, &copy, false);
	expect_cqe(w.p->s.scq, 1, WEFT_WC_FLUSH_ERR);
	world_expect_flushed(&w, 0);
	world_fini(&w);
}

static void no_common_rtr_ends_with_a_terminate(void **state)		/* ENH-22 */
{
	struct pair p;

	init_p2p(&p, WEFT_RTR_READ, WEFT_RTR_WRITE);
	pair_run(&p);
	expect_state(&p.s[0], WEFT_QPS_ERROR);
	expect_state(&p.s[1], WEFT_QPS_ERROR);
	assert_int_equal(p.s[1].qp->core.term_in.layer, 2);
	assert_int_equal(p.s[1].qp->core.term_in.etype, 0);
	assert_int_equal(p.s[1].qp->core.term_in.code, 7);
	pair_fini(&p);
}

/* ---- start-up that fails ---- */

static void a_rejected_connection_sends_nothing_more(void **state)	/* MPA-28, MPA-34 */
{
	struct pair_cfg c;
	struct pair p;
	struct host_mr *mr;

	pair_cfg_init(&c);
	c.s[1].link.reject = true;
	c.s[1].link.pd = "because";
	c.s[1].link.pd_len = 7;
	pair_init(&p, &c);
	mr = host_mr_new(&p.s[0].host, PD, BASE, 64, RW);
	side_send(&p.s[0], 1, SIG, mr, 0, 8);
	pair_run(&p);
	assert_int_equal(p.s[0].link.core.status, -ECONNREFUSED);
	assert_int_equal(p.s[0].link.core.st.frame.pd_len, 7);
	assert_int_equal(p.s[0].seen.fpdus, 0);
	expect_state(&p.s[0], WEFT_QPS_IDLE);
	expect_state(&p.s[1], WEFT_QPS_IDLE);
	pair_fini(&p);
}

static void a_late_accept_is_an_accept(void **state)
{
	struct pair_cfg c;
	struct pair p;

	pair_cfg_init(&c);
	c.s[1].link.hold_accept = true;
	pair_init(&p, &c);
	pair_run(&p);
	expect_state(&p.s[0], WEFT_QPS_IDLE);
	host_link_accept(&p.s[1].link);
	pair_run(&p);
	expect_state(&p.s[0], WEFT_QPS_RTS);
	expect_state(&p.s[1], WEFT_QPS_RTS);
	pair_fini(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_responders_send_waits_for_the_first_fpdu),
		CASE(the_gate_stays_open_for_good),
		CASE(a_bad_first_fpdu_does_not_open_the_gate),
		CASE(half_a_first_fpdu_does_not_open_the_gate),
		CASE(the_gate_stays_open_when_counts_wrap),
		CASE_INITIATOR(an_initiator_sends_at_once),
		cmocka_unit_test(work_posted_before_the_connection_goes_out_with_it),
		cmocka_unit_test(rtr_by_send),
		cmocka_unit_test(rtr_by_write),
		cmocka_unit_test(rtr_by_read),
		cmocka_unit_test(rtr_read_works_with_ird_0_and_ord_0),
		cmocka_unit_test(the_rtr_read_counts_against_ord),
		cmocka_unit_test(the_rtr_write_is_empty_and_first),
		cmocka_unit_test(the_rtr_send_is_empty_and_first),
		cmocka_unit_test(the_rtr_read_is_empty_and_first),
		cmocka_unit_test(an_rtr_read_answered_with_octets_is_refused),
		cmocka_unit_test(an_rtr_write_to_any_stag_is_taken),
		cmocka_unit_test(an_rtr_read_of_any_stag_is_answered),
		cmocka_unit_test(an_rtr_read_that_was_not_offered_is_refused),
		cmocka_unit_test(an_rtr_send_takes_no_receive),
		cmocka_unit_test(a_send_in_place_of_the_rtr_is_delivered),
		cmocka_unit_test(a_bad_rtr_is_a_clean_error),
		cmocka_unit_test(no_common_rtr_ends_with_a_terminate),
		cmocka_unit_test(a_rejected_connection_sends_nothing_more),
		cmocka_unit_test(a_late_accept_is_an_accept),
	};

	return RUN_TESTS("stacks: beginnings", tests);
}
