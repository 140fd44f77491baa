// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A Send that finds no receive waits for one, with everything after it (core/rx.c, rq.c); the time
 * limit of that wait (core/end.c).
 */
#include "peer.h"
#include "world.h"

#define RNR 1000u
#define LEN 64
#define ALL (WEFT_ACCESS_LOCAL_WRITE | WEFT_ACCESS_REMOTE_WRITE | WEFT_ACCESS_REMOTE_READ)

struct waiter {
	struct peer *p;
	struct host_mr *mr;
};

typedef void (*waiter_case)(struct waiter *w);

static void begin(struct waiter *w, struct peer_cfg *c, enum wire_cut cut)
{
	w->p = peer_new(c);
	w->p->cut = cut;
	w->mr = host_mr_new(&w->p->s.host, PD, BASE, 4096, ALL);
}

static void end(struct waiter *w)
{
	peer_free(w->p);
}

/* Each case with each way of cutting: in place, in the stage, with the stack's Markers. */
static void run(void **state)
{
	waiter_case fn = (waiter_case)*state;
	struct peer_cfg c;
	struct waiter w;
	u32 cut;

	for (cut = WIRE_WHOLE; cut <= WIRE_BYTES; cut++) {
		peer_cfg_init(&c);
		c.side.link.rnr_ms = RNR;
		c.side.link.lean = cut == WIRE_RANDOM;
		begin(&w, &c, cut);
		fn(&w);
		end(&w);
	}
}

#define CASE_WAITING(fn) { #fn, run, NULL, NULL, (void *)(fn) }

/* ---- what a case sends and expects ---- */

static void say_send(struct waiter *w, u32 msn, const char *text)
{
	peer_say(w->p, p_send(P_SEND, true, msn, 0, text, strlen(text)));
}

static void say_write(struct waiter *w, u32 off, const char *text)
{
	peer_say(w->p, p_tagged(P_WRITE, true, w->mr->r.stag, BASE + off, text, strlen(text)));
}

static void post(struct waiter *w, u64 id)
{
	side_recv(&w->p->s, id, w->mr, id * LEN, LEN);
	peer_run(w->p);
}

static void pass(struct waiter *w, u32 ms)
{
	host_link_set_time(&w->p->s.link, w->p->s.link.now + ms);
	peer_run(w->p);
}

static void expect_received(struct waiter *w, u64 id, const char *text)
{
	struct weft_cqe e;

	assert_true(host_cq_poll(w->p->s.rcq, &e));
	assert_int_equal(e.wr_id, id);
	assert_int_equal(e.status, WEFT_WC_SUCCESS);
	assert_int_equal(e.byte_len, strlen(text));
	assert_memory_equal(w->mr->mem + id * LEN, text, strlen(text));
}

static void expect_nothing(struct waiter *w)
{
	struct weft_cqe e;

	assert_false(host_cq_poll(w->p->s.rcq, &e));
	peer_expect_silence(w->p);
	assert_int_equal(w->p->s.qp->core.state, WEFT_QPS_RTS);
}

static void expect_no_buffer(struct waiter *w, u32 msn, const char *text)
{
	struct pdu *d = p_send(P_SEND, true, msn, 0, text, strlen(text));

	peer_expect_terminate(w->p, 1, 2, 0x02, d, false);
	free(d);
}

static u32 flags(const struct waiter *w)
{
	return w->p->s.qp->core.rq.q.ring->flags;
}

/* ---- a receive is posted ---- */

static void a_send_waits_for_a_receive(struct waiter *w)
{
	say_send(w, 1, "late");
	expect_nothing(w);
	post(w, 1);
	expect_received(w, 1, "late");
	/* The next one finds a receive, and does not wait. */
	post(w, 2);
	say_send(w, 2, "in time");
	expect_received(w, 2, "in time");
	pass(w, 10 * RNR);
	expect_nothing(w);
}

static void the_doorbell_is_asked_for_only_while_one_waits(struct waiter *w)
{
	u32 rung;

	assert_int_equal(flags(w), 0);
	say_send(w, 1, "a");
	assert_int_equal(flags(w), WEFT_RING_KICK);
	rung = w->p->s.qp->doorbells;
	post(w, 1);
	assert_int_equal(w->p->s.qp->doorbells, rung + 1);
	assert_int_equal(flags(w), 0);
	post(w, 2);
	assert_int_equal(w->p->s.qp->doorbells, rung + 1);
}

static void what_is_behind_it_waits_too(struct waiter *w)
{
	say_send(w, 1, "first");
	say_write(w, 2048, "write");
	peer_say(w->p, p_read_req(1, 0xFFFF, 0, 4, w->mr->r.stag, BASE + 2048));
	say_send(w, 2, "second");
	expect_nothing(w);
	assert_int_equal(w->mr->mem[2048], 0);
	post(w, 1);
	expect_received(w, 1, "first");
	assert_memory_equal(w->mr->mem + 2048, "write", 5);
	assert_memory_equal(peer_expect(w->p, P_T | P_L, P_READ_RESP)->body, "writ", 4);
	expect_nothing(w);
	post(w, 2);
	expect_received(w, 2, "second");
}

static void only_the_first_segment_waits(struct waiter *w)
{
	peer_say(w->p, p_send(P_SEND, false, 1, 0, "abc", 3));
	peer_say(w->p, p_send(P_SEND, false, 1, 3, "def", 3));
	peer_say(w->p, p_send(P_SEND, true, 1, 6, "ghi", 3));
	expect_nothing(w);
	post(w, 1);
	expect_received(w, 1, "abcdefghi");
}

static void an_empty_send_waits(struct waiter *w)
{
	say_send(w, 1, "");
	expect_nothing(w);
	post(w, 1);
	expect_received(w, 1, "");
}

/* The stack still sends meanwhile. */
static void the_stack_sends_while_one_waits(struct waiter *w)
{
	say_send(w, 1, "wait");
	side_send(&w->p->s, 9, SIG, w->mr, 0, 4);
	peer_run(w->p);
	peer_expect(w->p, P_L, P_SEND);
	expect_cqe(w->p->s.scq, 9, WEFT_WC_SUCCESS);
	expect_nothing(w);
}

static void a_broken_ring_is_found_by_the_doorbell(struct waiter *w)
{
	say_send(w, 1, "wait");
	host_scribble_index(w->p->s.qp, true, 0x8000000);
	peer_run(w->p);
	peer_expect_terminate(w->p, 0, 0, 0x00, NULL, false);
	assert_int_equal(host_qp_count_events(w->p->s.qp, WEFT_EV_LOCAL_ERROR), 1);
}

/* ---- no receive is posted ---- */

static void its_time_ends_in_the_error_that_it_was(struct waiter *w)
{
	say_send(w, 1, "never");
	say_write(w, 2048, "behind");
	pass(w, RNR - 1);
	expect_nothing(w);
	pass(w, 1);
	expect_no_buffer(w, 1, "never");
	assert_int_equal(w->mr->mem[2048], 0);
	assert_int_equal(w->p->s.qp->core.state, WEFT_QPS_ERROR);
}

static void each_send_has_all_the_time(struct waiter *w)
{
	say_send(w, 1, "one");
	say_send(w, 2, "two");
	pass(w, RNR - 1);
	post(w, 1);
	expect_received(w, 1, "one");
	pass(w, RNR - 1);
	expect_nothing(w);
	pass(w, 1);
	expect_no_buffer(w, 2, "two");
}

/* A poster that rings no doorbell, like one that is stopped in between. */
static void a_receive_without_a_doorbell_is_found_in_the_end(struct waiter *w)
{
	say_send(w, 1, "found");
	side_recv(&w->p->s, 1, w->mr, LEN, LEN);
	w->p->s.qp->kicked = false;
	pass(w, RNR);
	expect_received(w, 1, "found");
	/* The next one has the full time again. */
	say_send(w, 2, "next");
	expect_nothing(w);
}

static void an_error_behind_it_waits(struct waiter *w)
{
	say_send(w, 1, "good");
	peer_add_bad_crc(w->p, p_send(P_SEND, true, 2, 0, "bad", 3));
	peer_flush(w->p);
	expect_nothing(w);
	post(w, 1);
	expect_received(w, 1, "good");
	peer_expect_terminate(w->p, 2, 0, 0x02, NULL, false);
}

/* ---- the connection ends meanwhile ---- */

#define ENDS (WEFT_ACT_DISCONNECTED | WEFT_ACT_ENDED)

static void a_fin_is_seen_behind_it(struct waiter *w)
{
	say_send(w, 1, "last words");
	peer_close(w->p);
	assert_int_equal(w->p->s.link.acts & ENDS, 0);
	expect_nothing(w);
	post(w, 1);
	expect_received(w, 1, "last words");
	assert_int_equal(w->p->s.link.acts & ENDS, ENDS);
}

static void behind_a_fin_it_has_its_time(struct waiter *w)
{
	say_send(w, 1, "last words");
	peer_close(w->p);
	pass(w, RNR);
	expect_no_buffer(w, 1, "last words");
	assert_int_equal(w->p->s.link.acts & WEFT_ACT_ENDED, WEFT_ACT_ENDED);
}

static void a_reset_is_seen_behind_it(struct waiter *w)
{
	say_send(w, 1, "last words");
	host_link_reset(&w->p->s.link);
	assert_int_equal(w->p->s.link.acts & ENDS, 0);
	post(w, 1);
	expect_received(w, 1, "last words");
	assert_int_equal(w->p->s.link.acts & ENDS, WEFT_ACT_ENDED);
}

static void a_close_meanwhile_is_graceful(struct waiter *w)
{
	say_send(w, 1, "wait");
	host_link_close(&w->p->s.link);
	peer_run(w->p);
	assert_true(w->p->fin);
	post(w, 1);
	expect_received(w, 1, "wait");
	peer_close(w->p);
	assert_int_equal(w->p->s.link.acts & ENDS, WEFT_ACT_ENDED);
}

/* Nothing is left of it: input is discarded, and posts are flushed. */
static void expect_forgotten(struct waiter *w)
{
	assert_false(w->p->s.qp->core.rx_waits);
	assert_int_equal(w->p->s.link.nunread, 0);
	assert_int_equal(w->p->s.link.core.rnr_deadline, 0);
	post(w, 1);
	expect_cqe(w->p->s.rcq, 1, WEFT_WC_FLUSH_ERR);
}

static void an_error_of_the_users_ends_it(struct waiter *w)
{
	say_send(w, 1, "wait");
	say_write(w, 2048, "behind");
	host_link_error(&w->p->s.link);
	peer_run(w->p);
	expect_forgotten(w);
	assert_int_equal(w->mr->mem[2048], 0);
}

static void destroying_the_qp_ends_it(struct waiter *w)
{
	say_send(w, 1, "wait");
	say_write(w, 2048, "behind");
	host_link_forget(&w->p->s.link);
	peer_run(w->p);
	expect_forgotten(w);
	assert_int_equal(w->mr->mem[2048], 0);
}

static void removing_the_device_ends_it(struct waiter *w)
{
	say_send(w, 1, "wait");
	host_link_abort(&w->p->s.link);
	assert_false(w->p->s.qp->core.rx_waits);
}

/* ---- errors without waiting ---- */

static void at_once(const struct peer_cfg *c)
{
	struct waiter w;
	struct pdu *d;

	begin(&w, (struct peer_cfg *)c, WIRE_WHOLE);
	say_send(&w, 1, "now");
	d = p_send(P_SEND, true, 1, 0, "now", 3);
	peer_expect_terminate(w.p, 1, 2, 0x02, d, false);
	free(d);
	end(&w);
}

static void without_patience_it_is_an_error_at_once(void **state)
{
	struct peer_cfg c;

	peer_cfg_init(&c);
	at_once(&c);
}

static void where_no_receive_can_be_posted_it_is_an_error_at_once(void **state)
{
	struct peer_cfg c;

	peer_cfg_init(&c);
	c.side.link.rnr_ms = RNR;
	c.side.qp.rq_slots = 0;
	at_once(&c);
}

static void a_wrong_msn_is_an_error_at_once(struct waiter *w)
{
	struct pdu *d = p_send(P_SEND, true, 2, 0, "now", 3);

	say_send(w, 2, "now");
	peer_expect_terminate(w->p, 1, 2, 0x03, d, false);
	free(d);
}

/* ---- a shared receive queue ---- */

#define QPS 3

struct shared {
	struct host_srq *srq;
	struct peer *p[QPS];
	u32 msn[QPS];
};

static void share_of(struct shared *t, u32 pd)
{
	struct peer_cfg c;
	u32 i;

	t->srq = host_srq_new(8, 1);
	t->srq->pd = pd;
	peer_cfg_init(&c);
	c.side.link.rnr_ms = RNR;
	c.side.qp.rq_slots = 0;
	c.side.qp.srq = t->srq;
	for (i = 0; i < QPS; i++) {
		t->p[i] = peer_new(&c);
		t->msn[i] = 0;
	}
}

static void share(struct shared *t) { share_of(t, PD); }

static void unshare(struct shared *t)
{
	u32 i;

	for (i = 0; i < QPS; i++)
		peer_free(t->p[i]);
	host_srq_free(t->srq);
}

/* Delivers without a run of any QP afterwards. */
static void deliver_to(struct shared *t, u32 i)
{
	peer_add(t->p[i], p_send(P_SEND, true, ++t->msn[i], 0, NULL, 0));
	peer_deliver(t->p[i]);
}

static void post_shared(struct shared *t, u64 id)
{
	const struct weft_sge none = { 0 };

	assert_true(host_post_srq(t->srq, id, &none, 0));
}

static void run_all(struct shared *t)
{
	u32 round, i;

	for (round = 0; round < QPS; round++)
		for (i = 0; i < QPS; i++)
			peer_run(t->p[QPS - 1 - i]);
}

static void expect_shared(struct shared *t, u32 i, u64 id)
{
	expect_cqe(t->p[i]->s.rcq, id, WEFT_WC_SUCCESS);
}

static void expect_none(struct shared *t, u32 i)
{
	struct weft_cqe e;

	assert_false(host_cq_poll(t->p[i]->s.rcq, &e));
	assert_int_equal(t->p[i]->s.qp->core.state, WEFT_QPS_RTS);
}

static void a_shared_queue_serves_in_the_order_of_waiting(void **state)
{
	static const u32 order[QPS] = { 1, 2, 0 };
	struct shared t;
	u32 n;

	share(&t);
	for (n = 0; n < QPS; n++)
		deliver_to(&t, order[n]);
	run_all(&t);
	for (n = 0; n < QPS; n++) {
		assert_int_equal(t.srq->core.rq.q.ring->flags, WEFT_RING_KICK);
		post_shared(&t, n);
		run_all(&t);
		expect_shared(&t, order[n], n);
		expect_none(&t, order[(n + 1) % QPS]);
	}
	/* No QP waits: no doorbell is needed. */
	assert_int_equal(t.srq->core.rq.q.ring->flags, 0);
	n = t.srq->doorbells;
	post_shared(&t, 7);
	assert_int_equal(t.srq->doorbells, n);
	deliver_to(&t, 0);
	expect_shared(&t, 0, 7);
	unshare(&t);
}

/* At once, though the QP is patient: a broken ring will never have a receive. */
static void a_broken_shared_queue_ends_a_waiting_qp(void **state)
{
	struct shared t;

	share(&t);
	t.srq->core.rq.q.ring->user_idx = 0x1000;
	deliver_to(&t, 0);
	assert_true(t.srq->broken);
	assert_false(t.p[0]->s.qp->core.rx_waits);
	assert_int_equal(t.p[0]->s.qp->core.state, WEFT_QPS_TERM);
	unshare(&t);
}

static void a_later_qp_gets_what_is_left(void **state)
{
	struct shared t;

	share(&t);
	deliver_to(&t, 0);
	run_all(&t);
	post_shared(&t, 1);
	/* There is an entry, but it is reserved for another QP. */
	deliver_to(&t, 1);
	expect_none(&t, 1);
	run_all(&t);
	expect_shared(&t, 0, 1);
	expect_none(&t, 1);
	post_shared(&t, 2);
	run_all(&t);
	expect_shared(&t, 1, 2);
	unshare(&t);
}

/* Receives of an SRQ belong to its own protection domain, whatever the QP's is. */
static void what_a_shared_queue_names_is_of_its_own_domain(void **state)
{
	static const u32 pds[] = { PD, OTHER_PD };
	u32 i;

	for (i = 0; i < 2; i++) {
		struct shared t;
		struct host_mr *mr;
		struct weft_sge s = { .length = 4 };

		share_of(&t, OTHER_PD);
		mr = host_mr_new(&t.p[0]->s.host, pds[i], BASE, 4096, ALL);
		s.addr = BASE;
		s.lkey = mr->r.stag;
		assert_true(host_post_srq(t.srq, 1, &s, 1));
		peer_add(t.p[0], p_send(P_SEND, true, 1, 0, "abcd", 4));
		peer_deliver(t.p[0]);
		run_all(&t);
		expect_cqe(t.p[0]->s.rcq, 1, pds[i] == OTHER_PD ? WEFT_WC_SUCCESS : WEFT_WC_LOC_PROT_ERR);
		unshare(&t);
	}
}

static void each_that_is_served_calls_the_next(void **state)
{
	struct shared t;
	u32 i;

	share(&t);
	for (i = 0; i < QPS; i++)
		deliver_to(&t, i);
	run_all(&t);
	for (i = 0; i < QPS; i++)
		post_shared(&t, i);
	/* One doorbell wakes one QP. */
	for (i = 0; i < QPS; i++)
		assert_int_equal(t.p[i]->s.qp->kicked, !i);
	run_all(&t);
	for (i = 0; i < QPS; i++)
		expect_shared(&t, i, i);
	unshare(&t);
}

static void a_qp_that_ends_passes_its_turn_on(void **state)
{
	struct shared t;

	share(&t);
	deliver_to(&t, 0);
	deliver_to(&t, 1);
	deliver_to(&t, 2);
	run_all(&t);
	/* The QP in the middle: nothing changes for the others. */
	host_link_error(&t.p[1]->s.link);
	post_shared(&t, 1);
	host_link_forget(&t.p[0]->s.link);
	run_all(&t);
	expect_shared(&t, 2, 1);
	unshare(&t);
}

static void time_that_ends_for_one_goes_on_for_others(void **state)
{
	struct shared t;

	share(&t);
	deliver_to(&t, 0);
	deliver_to(&t, 1);
	run_all(&t);
	host_link_set_time(&t.p[0]->s.link, RNR);
	run_all(&t);
	assert_int_equal(t.p[0]->s.qp->core.state, WEFT_QPS_ERROR);
	post_shared(&t, 1);
	run_all(&t);
	expect_shared(&t, 1, 1);
	unshare(&t);
}

static void a_resized_shared_queue_still_asks_for_the_doorbell(void **state)
{
	struct shared t;
	struct weft_ring_move m = { .mem = calloc(1, weft_ring_size(16)), .slots = 16 };
	void *old;

	share(&t);
	deliver_to(&t, 0);
	run_all(&t);
	old = t.srq->core.rq.q.ring;
	assert_int_equal(weft_srqc_move(&t.srq->core, &m), 0);
	free(old);
	post_shared(&t, 1);
	run_all(&t);
	expect_shared(&t, 0, 1);
	unshare(&t);
}

static void a_silent_shared_queue_is_an_error_at_once(void **state)
{
	struct peer_cfg c;

	peer_cfg_init(&c);
	c.side.link.rnr_ms = RNR;
	c.side.qp.rq_slots = 0;
	c.side.qp.srq_silent = true;
	c.side.qp.srq = host_srq_new(8, 1);
	at_once(&c);
	host_srq_free(c.side.qp.srq);
}

/* ---- two ends ---- */

/* Both send more than TCP holds, and post nothing: time ends it. */
static void two_ends_that_wait_for_each_other_end_by_time(void **state)
{
	struct host_mr *mr[2];
	struct pair_cfg c;
	struct pair p;
	u32 i, n;

	pair_cfg_init(&c);
	for (i = 0; i < 2; i++) {
		c.s[i].link.rnr_ms = RNR;
		c.s[i].sndbuf = 8000;
	}
	pair_init(&p, &c);
	for (i = 0; i < 2; i++) {
		mr[i] = host_mr_new(&p.s[i].host, PD, BASE, 4096, ALL);
		for (n = 0; n < 16; n++)
			side_send(&p.s[i], n, SIG, mr[i], 0, 4096);
	}
	pair_run(&p);
	for (i = 0; i < 2; i++)
		assert_int_equal(p.s[i].qp->core.state, WEFT_QPS_RTS);
	for (i = 0; i < 2; i++)
		host_link_set_time(&p.s[i].link, RNR);
	pair_run(&p);
	for (i = 0; i < 2; i++)
		assert_true(host_link_is_over(&p.s[i].link));
	pair_fini(&p);
}

/* A receiver that posts each receive late, over TCP with a small buffer. */
static void late_receives_lose_nothing(void **state)
{
	struct host_mr *mr[2];
	struct pair_cfg c;
	struct weft_cqe e;
	struct pair p;
	u32 n, i;

	pair_cfg_init(&c);
	c.s[1].link.rnr_ms = RNR;
	c.s[0].sndbuf = 3000;
	pair_init(&p, &c);
	for (i = 0; i < 2; i++)
		mr[i] = host_mr_new(&p.s[i].host, PD, BASE, 4096, ALL);
	for (n = 0; n < 100; n++)
		side_send(&p.s[0], n, SIG, mr[0], 0, n * 40);
	for (n = 0; n < 100; n++) {
		pair_run(&p);
		assert_false(host_cq_poll(p.s[1].rcq, &e));
		side_recv(&p.s[1], n, mr[1], 0, 4096);
		pair_run(&p);
		assert_true(host_cq_poll(p.s[1].rcq, &e));
		assert_int_equal(e.wr_id, n);
		assert_int_equal(e.byte_len, n * 40);
		host_link_set_time(&p.s[1].link, p.s[1].link.now + RNR - 1);
	}
	pair_fini(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE_WAITING(a_send_waits_for_a_receive),
		CASE_WAITING(the_doorbell_is_asked_for_only_while_one_waits),
		CASE_WAITING(what_is_behind_it_waits_too),
		CASE_WAITING(only_the_first_segment_waits),
		CASE_WAITING(an_empty_send_waits),
		CASE_WAITING(the_stack_sends_while_one_waits),
		CASE_WAITING(a_broken_ring_is_found_by_the_doorbell),
		CASE_WAITING(its_time_ends_in_the_error_that_it_was),
		CASE_WAITING(each_send_has_all_the_time),
		CASE_WAITING(a_receive_without_a_doorbell_is_found_in_the_end),
		CASE_WAITING(an_error_behind_it_waits),
		CASE_WAITING(a_fin_is_seen_behind_it),
		CASE_WAITING(behind_a_fin_it_has_its_time),
		CASE_WAITING(a_reset_is_seen_behind_it),
		CASE_WAITING(a_close_meanwhile_is_graceful),
		CASE_WAITING(an_error_of_the_users_ends_it),
		CASE_WAITING(destroying_the_qp_ends_it),
		CASE_WAITING(removing_the_device_ends_it),
		cmocka_unit_test(without_patience_it_is_an_error_at_once),
		cmocka_unit_test(where_no_receive_can_be_posted_it_is_an_error_at_once),
		CASE_WAITING(a_wrong_msn_is_an_error_at_once),
		cmocka_unit_test(a_shared_queue_serves_in_the_order_of_waiting),
		cmocka_unit_test(a_broken_shared_queue_ends_a_waiting_qp),
		cmocka_unit_test(what_a_shared_queue_names_is_of_its_own_domain),
		cmocka_unit_test(a_later_qp_gets_what_is_left),
		cmocka_unit_test(each_that_is_served_calls_the_next),
		cmocka_unit_test(a_qp_that_ends_passes_its_turn_on),
		cmocka_unit_test(time_that_ends_for_one_goes_on_for_others),
		cmocka_unit_test(a_resized_shared_queue_still_asks_for_the_doorbell),
		cmocka_unit_test(a_silent_shared_queue_is_an_error_at_once),
		cmocka_unit_test(two_ends_that_wait_for_each_other_end_by_time),
		cmocka_unit_test(late_receives_lose_nothing),
	};

	return RUN_TESTS("stacks: waiting for a receive", tests);
}
