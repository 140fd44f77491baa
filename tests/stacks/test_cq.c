// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Completion queues: arming, overflow; shared receive queues. */
#include "world.h"

static struct weft_cqe entry(u64 wr_id, u8 status, u16 flags)
{
	return (struct weft_cqe){ .wr_id = wr_id, .status = status, .flags = flags };
}

static enum weft_cq_push push_entry(struct host_cq *cq, u64 wr_id, u8 status, u16 flags)
{
	const struct weft_cqe e = entry(wr_id, status, flags);

	return weft_cqc_push(&cq->core, &e);
}

/* ---- arming ---- */

static void an_unarmed_cq_wakes_no_waiter(void **state)
{
	struct host_cq *cq = host_cq_new(8);

	assert_int_equal(push_entry(cq, 1, WEFT_WC_SUCCESS, WEFT_CQE_SOLICITED), WEFT_CQ_QUIET);
	assert_int_equal(push_entry(cq, 2, WEFT_WC_FLUSH_ERR, 0), WEFT_CQ_QUIET);
	host_cq_free(cq);
}

static void armed_for_next_it_wakes_once(void **state)
{
	struct host_cq *cq = host_cq_new(8);

	host_cq_arm(cq, WEFT_ARM_NEXT);
	assert_int_equal(push_entry(cq, 1, WEFT_WC_SUCCESS, 0), WEFT_CQ_WAKE);
	assert_int_equal(cq->ring->arm, WEFT_ARM_NONE);
	assert_int_equal(push_entry(cq, 2, WEFT_WC_SUCCESS, 0), WEFT_CQ_QUIET);
	host_cq_arm(cq, WEFT_ARM_NEXT);
	assert_int_equal(push_entry(cq, 3, WEFT_WC_SUCCESS, 0), WEFT_CQ_WAKE);
	host_cq_free(cq);
}

static void armed_for_solicited_it_waits_for_one(void **state)		/* lesson 28 */
{
	struct host_cq *cq = host_cq_new(8);

	host_cq_arm(cq, WEFT_ARM_SOLICITED);
	assert_int_equal(push_entry(cq, 1, WEFT_WC_SUCCESS, 0), WEFT_CQ_QUIET);
	assert_int_equal(cq->ring->arm, WEFT_ARM_SOLICITED);
	assert_int_equal(push_entry(cq, 2, WEFT_WC_SUCCESS, WEFT_CQE_SOLICITED), WEFT_CQ_WAKE);
	assert_int_equal(push_entry(cq, 3, WEFT_WC_SUCCESS, WEFT_CQE_SOLICITED), WEFT_CQ_QUIET);
	host_cq_free(cq);
}

static void armed_for_solicited_an_error_counts(void **state)
{
	struct host_cq *cq = host_cq_new(8);

	host_cq_arm(cq, WEFT_ARM_SOLICITED);
	assert_int_equal(push_entry(cq, 1, WEFT_WC_FLUSH_ERR, 0), WEFT_CQ_WAKE);
	host_cq_free(cq);
}

/* Arming and then polling loses nothing, at whichever point the entry arrives. */
static void an_entry_before_the_arming_is_found_by_polling_again(void **state)
{
	u32 at;

	for (at = 0; at < 3; at++) {
		struct host_cq *cq = host_cq_new(8);
		bool woken = false, found;
		struct weft_cqe e;

		if (at == 0)
			woken |= push_entry(cq, 9, WEFT_WC_SUCCESS, 0) == WEFT_CQ_WAKE;
		host_cq_arm(cq, WEFT_ARM_NEXT);
		if (at == 1)
			woken |= push_entry(cq, 9, WEFT_WC_SUCCESS, 0) == WEFT_CQ_WAKE;
		found = host_cq_poll(cq, &e);
		if (at == 2)
			woken |= push_entry(cq, 9, WEFT_WC_SUCCESS, 0) == WEFT_CQ_WAKE;
		assert_true(woken || found);
		host_cq_free(cq);
	}
}

static void arming_tells_a_kernel_consumer_of_missed_entries(void **state)
{
	struct host_cq *cq = host_cq_new(8);
	struct weft_cqe e;

	assert_false(weft_cqc_arm(&cq->core, WEFT_ARM_NEXT));
	assert_int_equal(push_entry(cq, 5, WEFT_WC_SUCCESS, 0), WEFT_CQ_WAKE);
	assert_true(weft_cqc_arm(&cq->core, WEFT_ARM_SOLICITED));
	assert_true(weft_cqc_poll(&cq->core, &e));
	assert_int_equal(e.wr_id, 5);
	assert_false(weft_cqc_poll(&cq->core, &e));
	assert_false(weft_cqc_arm(&cq->core, WEFT_ARM_NEXT));
	/* The weaker arming does not replace the stronger. */
	assert_false(weft_cqc_arm(&cq->core, WEFT_ARM_SOLICITED));
	assert_int_equal(push_entry(cq, 6, WEFT_WC_SUCCESS, 0), WEFT_CQ_WAKE);
	host_cq_free(cq);
}

static void a_solicited_send_wakes_the_receiver_only_for_it(struct world *w)
{
	struct side *s = &w->p->s;

	host_cq_arm(s->rcq, WEFT_ARM_SOLICITED);
	peer_say(w->p, p_send(P_SEND, true, 1, 0, NULL, 0));
	assert_int_equal(s->rcq->wakes, 0);
	peer_say(w->p, p_send(P_SEND_SE, true, 2, 0, NULL, 0));
	assert_int_equal(s->rcq->wakes, 1);
}

/* ---- overflow ---- */

static void entries_come_out_as_they_went_in(void **state)
{
	struct host_cq *cq = host_cq_new(4);
	u64 in = 0, out = 0;
	struct rng rng = { 3 };
	struct weft_cqe e;
	u32 i;

	/* Also across the wrap of the free-running indices. */
	cq->core.q.idx = cq->user_idx = cq->ring->user_idx = cq->ring->kern_idx = 0xFFFFFFF0;
	for (i = 0; i < 1000; i++) {
		if (in - out < 4 && rng_below(&rng, 2)) {
			assert_int_equal(push_entry(cq, in++, WEFT_WC_SUCCESS, 0), WEFT_CQ_QUIET);
			continue;
		}
		assert_int_equal(host_cq_poll(cq, &e), in != out);
		if (in != out)
			assert_int_equal(e.wr_id, out++);
	}
	host_cq_free(cq);
}

static void the_last_slot_is_used_and_the_next_entry_overflows(void **state)
{
	struct host_cq *cq = host_cq_new(4);
	struct weft_cqe e;
	u32 i;

	for (i = 0; i < 4; i++)
		assert_int_equal(push_entry(cq, i, WEFT_WC_SUCCESS, 0), WEFT_CQ_QUIET);
	assert_int_equal(push_entry(cq, 4, WEFT_WC_SUCCESS, 0), WEFT_CQ_OVERFLOW);
	assert_true(cq->ring->flags & WEFT_RING_OVERFLOW);
	for (i = 0; i < 4; i++) {
		assert_true(host_cq_poll(cq, &e));
		assert_int_equal(e.wr_id, i);
	}
	/* One was lost, so the next must not look as if it came in sequence. */
	assert_int_equal(push_entry(cq, 5, WEFT_WC_SUCCESS, 0), WEFT_CQ_DEAD);
	assert_false(host_cq_poll(cq, &e));
	host_cq_free(cq);
}

static void a_scribbled_consumer_index_hurts_only_its_owner(void **state)
{
	static const u32 wild[] = { 1, 5, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF };
	u32 i, n;

	for (i = 0; i < ARRAY_SIZE(wild); i++) {
		struct host_cq *cq = host_cq_new(4);

		cq->ring->user_idx = wild[i];
		/*
		 * The ring is a heap block of its exact size, so that the sanitizer sees an
		 * overrun.
		 */
		for (n = 0; n < 20; n++)
			push_entry(cq, n, WEFT_WC_SUCCESS, 0);
		host_cq_free(cq);
	}
}

static void an_overflow_ends_the_qps_of_that_cq_only(void **state)	/* SEC-06 */
{
	struct pair_cfg c;
	struct host_mr *from, *to;
	struct pair p, other;
	u32 i;

	pair_cfg_init(&c);
	pair_init(&other, &c);
	c.s[0].cq_entries = 4;
	pair_init(&p, &c);
	from = host_mr_new(&p.s[0].host, PD, BASE, 64, RW);
	to = host_mr_new(&p.s[1].host, PD, BASE, 64, RW);
	for (i = 0; i < 6; i++)
		side_write(&p.s[0], i, SIG, from, 0, 8, to, 0);
	pair_run(&p);
	assert_int_equal(p.s[0].scq->overflows, 1);
	expect_state(&p.s[0], WEFT_QPS_ERROR);
	expect_state(&p.s[1], WEFT_QPS_ERROR);
	assert_int_equal(drain_cq(p.s[0].scq), 4);
	pair_run(&other);
	expect_state(&other.s[0], WEFT_QPS_RTS);
	pair_fini(&other);
	pair_fini(&p);
}

static void an_overflow_of_the_receive_cq_ends_its_qps(void **state)
{
	struct pair_cfg c;
	struct host_mr *from;
	struct pair p;
	u32 i;

	pair_cfg_init(&c);
	c.s[1].cq_entries = 4;
	pair_init(&p, &c);
	from = host_mr_new(&p.s[0].host, PD, BASE, 64, RW);
	for (i = 0; i < 6; i++) {
		side_recv(&p.s[1], i, NULL, 0, 0);
		side_send(&p.s[0], i, SIG, from, 0, 0);
	}
	pair_run(&p);
	assert_int_equal(p.s[1].rcq->overflows, 1);
	expect_state(&p.s[1], WEFT_QPS_ERROR);
	pair_fini(&p);
}

/* ---- another ring ---- */

/* Moves the CQ, and its consumer, to a ring of @entries. */
static bool resize(struct host_cq *cq, u32 entries)
{
	struct weft_ring *ring = calloc(1, weft_ring_size(entries));
	struct weft_ring_move move = { .mem = ring, .slots = entries };

	if (weft_cqc_move(&cq->core, &move)) {
		free(ring);
		return false;
	}
	free(cq->ring);
	cq->ring = ring;
	cq->entries = entries;
	cq->user_idx = ring->user_idx;
	return true;
}

/* All sizes, from every position in the old ring, with 0 to all of its entries waiting. */
static void what_waits_moves_along_in_order(void **state)
{
	u32 start, waiting, to, i;

	for (start = 0xFFFFFFFC; start != 4; start++) {
		for (waiting = 0; waiting <= 4; waiting++) {
			for (to = 1; to <= 16; to *= 2) {
				struct host_cq *cq = host_cq_new(4);
				struct weft_cqe e;

				cq->core.q.idx = cq->user_idx = cq->ring->user_idx = start;
				for (i = 0; i < waiting; i++)
					push_entry(cq, i, WEFT_WC_SUCCESS, 0);
				assert_int_equal(resize(cq, to), waiting <= to);
				for (; i < cq->entries; i++)
					assert_int_equal(push_entry(cq, i, WEFT_WC_SUCCESS, 0),
							 WEFT_CQ_QUIET);
				assert_int_equal(push_entry(cq, i, WEFT_WC_SUCCESS, 0),
						 WEFT_CQ_OVERFLOW);
				for (i = 0; i < cq->entries; i++) {
					assert_true(host_cq_poll(cq, &e));
					assert_int_equal(e.wr_id, i);
				}
				host_cq_free(cq);
			}
		}
	}
}

static void an_armed_cq_stays_armed_in_its_new_ring(void **state)
{
	struct host_cq *cq = host_cq_new(4);

	host_cq_arm(cq, WEFT_ARM_SOLICITED);
	assert_true(resize(cq, 8));
	assert_int_equal(push_entry(cq, 1, WEFT_WC_SUCCESS, 0), WEFT_CQ_QUIET);
	assert_int_equal(push_entry(cq, 2, WEFT_WC_SUCCESS, WEFT_CQE_SOLICITED), WEFT_CQ_WAKE);
	host_cq_free(cq);
}

static void a_dead_or_scribbled_cq_is_not_moved(void **state)
{
	static const u32 wild[] = { 1, 5, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFB };
	struct host_cq *cq;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(wild); i++) {
		cq = host_cq_new(4);
		cq->ring->user_idx = wild[i];
		assert_false(resize(cq, 8));
		host_cq_free(cq);
	}
	cq = host_cq_new(1);
	push_entry(cq, 1, WEFT_WC_SUCCESS, 0);
	assert_int_equal(push_entry(cq, 2, WEFT_WC_SUCCESS, 0), WEFT_CQ_OVERFLOW);
	assert_false(resize(cq, 8));
	host_cq_free(cq);
}

static void let_in(struct host_cq *cq, u32 from, u32 to)
{
	u32 i;

	for (i = from; i < to; i++)
		assert_int_equal(push_entry(cq, i, WEFT_WC_SUCCESS, 0), WEFT_CQ_QUIET);
}

/* Under the lock, only entries that arrived or changed since it was released are moved. */
static void a_large_cq_goes_on_while_it_is_copied(void **state)
{
	struct weft_ring_move m = { .mem = calloc(1, weft_ring_size(2048)), .slots = 2048 };
	struct host_cq *cq = host_cq_new(4096);
	struct weft_ring *old = cq->ring;
	struct weft_cqe e;
	u32 i;

	cq->core.q.idx = cq->user_idx = cq->ring->user_idx = 0xFFFFFC00;
	let_in(cq, 0, 2000);
	assert_int_equal(weft_cqc_move(&cq->core, &m), -EAGAIN);
	assert_ptr_equal(cq->core.q.ring, old);
	let_in(cq, 2000, 2010);
	for (i = 0; i < 1500; i++)
		assert_true(host_cq_poll(cq, &e));
	weft_ring_move_copy(&m);
	memset((u8 *)old + WEFT_RING_DATA, 0xEE, 300 * WEFT_SLOT_SIZE);
	assert_int_equal(weft_cqc_move(&cq->core, &m), 0);
	assert_ptr_equal(cq->core.q.ring, m.mem);
	free(old);
	cq->ring = m.mem;
	cq->entries = 2048;
	cq->user_idx = cq->ring->user_idx;
	for (; i < 2010; i++)
		assert_int_equal(expect_cqe(cq, i, WEFT_WC_SUCCESS).wr_id, i);
	expect_no_cqe(cq);
	host_cq_free(cq);
}

/* Each time, more entries arrive than are moved under the lock. */
static void a_cq_that_never_stands_still_is_not_moved(void **state)
{
	struct weft_ring_move m = { .mem = calloc(1, weft_ring_size(4096)), .slots = 4096 };
	struct host_cq *cq = host_cq_new(4096);
	u32 calls = 0, i;
	struct weft_cqe e;
	int rv;

	let_in(cq, 0, 4000);
	do {
		rv = weft_cqc_move(&cq->core, &m);
		weft_ring_move_copy(&m);
		for (i = 0; i < 300; i++)
			assert_true(host_cq_poll(cq, &e));
		let_in(cq, 4000 + calls * 300, 4300 + calls * 300);
		calls++;
	} while (rv == -EAGAIN);
	assert_int_equal(rv, -EBUSY);
	assert_in_range(calls, 2, 10);
	assert_int_equal(cq->core.q.slots, 4096);
	free(m.mem);
	host_cq_free(cq);
}

/* ---- the ring's flags ---- */

static void a_cq_says_poll_until_it_is_told_not_to(void **state)
{
	struct host_cq *cq = host_cq_new(4);

	weft_cqc_say_poll(&cq->core, true);
	assert_int_equal(cq->ring->flags, WEFT_RING_POLL);
	weft_cqc_say_poll(&cq->core, false);
	assert_int_equal(cq->ring->flags, 0);
	host_cq_free(cq);
}

static void a_cq_says_poll_in_its_new_ring_too(void **state)
{
	struct host_cq *cq = host_cq_new(4);

	weft_cqc_say_poll(&cq->core, true);
	assert_true(resize(cq, 8));
	assert_int_equal(cq->ring->flags, WEFT_RING_POLL);
	host_cq_free(cq);
}

static void a_dead_cq_stays_dead_whatever_is_said_of_polling(void **state)
{
	struct host_cq *cq = host_cq_new(1);

	weft_cqc_say_poll(&cq->core, true);
	push_entry(cq, 1, WEFT_WC_SUCCESS, 0);
	assert_int_equal(push_entry(cq, 2, WEFT_WC_SUCCESS, 0), WEFT_CQ_OVERFLOW);
	assert_int_equal(cq->ring->flags, WEFT_RING_OVERFLOW);
	weft_cqc_say_poll(&cq->core, true);
	assert_int_equal(cq->ring->flags, WEFT_RING_OVERFLOW | WEFT_RING_POLL);
	weft_cqc_say_poll(&cq->core, false);
	assert_int_equal(cq->ring->flags, WEFT_RING_OVERFLOW);
	host_cq_free(cq);
}

/* ---- entries of a destroyed QP ---- */

static bool is_of_qp(const struct weft_cqe *e, const void *qp_num)
{
	return e->qp_num == *(const u32 *)qp_num;
}

/* Every mix of two QPs' entries, from every position in the ring. */
static void purged_entries_vanish_and_the_rest_stays_in_order(void **state)
{
	const u32 gone = 7;
	u32 start, waiting, mix, i;

	for (start = 0xFFFFFFFC; start != 4; start++) {
		for (waiting = 0; waiting <= 4; waiting++) {
			for (mix = 0; mix < 1u << waiting; mix++) {
				struct host_cq *cq = host_cq_new(4);
				struct weft_cqe e = {};

				cq->core.q.idx = cq->ring->user_idx = start;
				for (i = 0; i < waiting; i++) {
					e.wr_id = i;
					e.qp_num = mix >> i & 1 ? gone : 8;
					weft_cqc_push(&cq->core, &e);
				}
				weft_cqc_purge(&cq->core, is_of_qp, &gone);
				for (i = 0; i < waiting; i++) {
					if (mix >> i & 1)
						continue;
					assert_true(weft_cqc_poll(&cq->core, &e));
					assert_int_equal(e.wr_id, i);
					assert_int_equal(e.qp_num, 8);
				}
				assert_false(weft_cqc_poll(&cq->core, &e));
				for (i = 0; i < 4; i++)
					assert_int_equal(push_entry(cq, i, WEFT_WC_SUCCESS, 0),
							 WEFT_CQ_QUIET);
				host_cq_free(cq);
			}
		}
	}
}

/* ---- shared receive queues ---- */

struct shared {
	struct world w;
	struct host_srq *srq;
};

static void shared_init(struct shared *s, u32 receives)
{
	struct peer_cfg c;
	u32 i;

	peer_cfg_init(&c);
	s->srq = host_srq_new(16, 2);
	c.side.qp.srq = s->srq;
	c.side.qp.rq_slots = 0;
	s->w.p = peer_new(&c);
	s->w.inbox = host_mr_new(&s->w.p->s.host, PD, BASE, 4096, WEFT_ACCESS_LOCAL_WRITE);
	for (i = 0; i < receives; i++) {
		struct weft_sge sge = host_sge(s->w.inbox, 64 * i, 64);

		assert_true(host_post_srq(s->srq, 100 + i, &sge, 1));
	}
}

static void shared_fini(struct shared *s)
{
	peer_free(s->w.p);
	host_srq_free(s->srq);
}

static void sends_take_their_receives_from_the_srq(void **state)
{
	struct shared s;
	u32 i;

	shared_init(&s, 3);
	for (i = 0; i < 3; i++) {
		struct weft_cqe e;

		peer_say(s.w.p, p_send(P_SEND, true, i + 1, 0, "shared", 6));
		e = expect_cqe(s.w.p->s.rcq, 100 + i, WEFT_WC_SUCCESS);
		assert_int_equal(e.byte_len, 6);
		assert_memory_equal(s.w.inbox->mem + 64 * i, "shared", 6);
	}
	peer_say(s.w.p, p_send(P_SEND, true, 4, 0, NULL, 0));
	peer_expect_terminate(s.w.p, 1, 2, 0x02, &(struct pdu){ .ddp = P_L | P_DV,
			      .rdmap = P_RV | P_SEND, .msn = 4 }, false);
	shared_fini(&s);
}

static void on_error_only_the_popped_receive_is_flushed(void **state)
{
	struct shared s;

	shared_init(&s, 3);
	peer_say(s.w.p, p_send(P_SEND, false, 1, 0, "half", 4));
	host_link_reset(&s.w.p->s.link);
	expect_cqe(s.w.p->s.rcq, 100, WEFT_WC_FLUSH_ERR);
	expect_no_cqe(s.w.p->s.rcq);
	assert_int_equal(host_qp_count_events(s.w.p->s.qp, WEFT_EV_FLUSHED), 1);
	/* The others remain for any QP. */
	assert_int_equal(s.srq->core.rq.q.idx, 1);
	shared_fini(&s);
}

/* Two connections: each takes the next receive, and returns none at its end. */
static void connections_share_the_receives(void **state)		/* SEC-08 */
{
	struct peer *other;
	struct peer_cfg c;
	struct shared s;

	shared_init(&s, 4);
	peer_cfg_init(&c);
	c.side.qp.srq = s.srq;
	c.side.qp.rq_slots = 0;
	other = peer_new(&c);
	/* The same STag on the other host, so that an entry serves both. */
	assert_int_equal(host_mr_new(&other->s.host, PD, BASE, 4096,
				     WEFT_ACCESS_LOCAL_WRITE)->r.stag, s.w.inbox->r.stag);
	peer_say(s.w.p, p_send(P_SEND, false, 1, 0, "a", 1));
	peer_say(other, p_send(P_SEND, true, 1, 0, "b", 1));
	expect_cqe(other->s.rcq, 101, WEFT_WC_SUCCESS);
	host_link_reset(&s.w.p->s.link);
	expect_cqe(s.w.p->s.rcq, 100, WEFT_WC_FLUSH_ERR);
	expect_no_cqe(s.w.p->s.rcq);
	peer_say(other, p_send(P_SEND, true, 2, 0, "c", 1));
	expect_cqe(other->s.rcq, 102, WEFT_WC_SUCCESS);
	peer_free(other);
	shared_fini(&s);
}

static void the_limit_event_comes_once(void **state)
{
	struct shared s;
	bool low;

	shared_init(&s, 4);
	assert_true(weft_srqc_arm(&s.srq->core, 3, &low));
	assert_false(low);
	peer_say(s.w.p, p_send(P_SEND, true, 1, 0, NULL, 0));
	assert_int_equal(s.srq->limit_events, 0);
	peer_say(s.w.p, p_send(P_SEND, true, 2, 0, NULL, 0));
	assert_int_equal(s.srq->limit_events, 1);
	peer_say(s.w.p, p_send(P_SEND, true, 3, 0, NULL, 0));
	assert_int_equal(s.srq->limit_events, 1);
	shared_fini(&s);
}

static void an_srq_that_was_never_armed_raises_no_limit_event(void **state)
{
	struct shared s;
	bool low;

	shared_init(&s, 2);
	peer_say(s.w.p, p_send(P_SEND, true, 1, 0, NULL, 0));
	assert_true(weft_srqc_arm(&s.srq->core, 1, &low));
	assert_true(weft_srqc_arm(&s.srq->core, 0, &low));
	peer_say(s.w.p, p_send(P_SEND, true, 2, 0, NULL, 0));
	assert_int_equal(s.srq->limit_events, 0);
	shared_fini(&s);
}

static void arming_a_limit_that_is_reached_already_says_so_once(void **state)
{
	struct shared s;
	bool low;

	shared_init(&s, 2);
	assert_true(weft_srqc_arm(&s.srq->core, 2, &low));
	assert_false(low);
	assert_true(weft_srqc_arm(&s.srq->core, 3, &low));
	assert_true(low);
	peer_say(s.w.p, p_send(P_SEND, true, 1, 0, NULL, 0));
	assert_int_equal(s.srq->limit_events, 0);
	shared_fini(&s);
}

/* Entries of 1, 2 and 16 slots: the limit counts entries. */
static void a_limit_beyond_the_srqs_size_is_refused(void **state)
{
	static const u32 sges[] = { 3, 7, 32 };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(sges); i++) {
		struct host_srq *srq = host_srq_new(4 * weft_rq_stride(sges[i]), sges[i]);
		bool low;

		assert_int_equal(weft_srqc_size(&srq->core), 4);
		assert_true(weft_srqc_arm(&srq->core, 4, &low));
		assert_true(low);
		assert_false(weft_srqc_arm(&srq->core, 5, &low));
		assert_false(low);
		assert_int_equal(srq->core.limit, 0);
		host_srq_free(srq);
	}
}

/* Entries of two slots. */
static void a_limit_counts_receives_and_not_slots(void **state)
{
	struct host_srq *srq = host_srq_new(16, 7);
	const struct weft_sge none = {};
	struct weft_recv recv;
	u32 i;
	bool low;

	for (i = 0; i < 4; i++)
		assert_true(host_post_srq(srq, i, &none, 0));
	assert_true(weft_srqc_arm(&srq->core, 3, &low));
	assert_int_equal(weft_srqc_pop(&srq->core, &recv, &low), 1);
	assert_false(low);
	assert_int_equal(weft_srqc_pop(&srq->core, &recv, &low), 1);
	assert_true(low);
	host_srq_free(srq);
}

/* The limit event needs a receive that is taken, whatever the user's index is meanwhile. */
static void a_pop_that_finds_nothing_raises_no_limit_event(void **state)
{
	struct host_srq *srq = host_srq_new(4, 1);
	const struct weft_sge none = {};
	struct weft_recv recv;
	bool low;

	assert_true(host_post_srq(srq, 1, &none, 0));
	assert_true(weft_srqc_arm(&srq->core, 1, &low));
	assert_false(low);
	srq->core.rq.q.ring->user_idx = 0;
	assert_int_equal(weft_srqc_pop(&srq->core, &recv, &low), 0);
	assert_false(low);
	srq->core.rq.q.ring->user_idx = 77;
	assert_int_equal(weft_srqc_pop(&srq->core, &recv, &low), -1);
	assert_false(low);
	srq->core.rq.q.ring->user_idx = 1;
	assert_int_equal(weft_srqc_pop(&srq->core, &recv, &low), 1);
	assert_true(low);
	host_srq_free(srq);
}

/* The first slot of an entry of two is there, the second is not. */
static void half_an_entry_is_none(void **state)
{
	struct host_srq *srq = host_srq_new(8, 7);
	struct weft_recv recv;
	bool low;

	srq->core.rq.q.ring->user_idx = 1;
	assert_int_equal(weft_srqc_pop(&srq->core, &recv, &low), 0);
	assert_int_equal(srq->core.rq.q.idx, 0);
	srq->core.rq.q.ring->user_idx = 2;
	assert_int_equal(weft_srqc_pop(&srq->core, &recv, &low), 1);
	assert_int_equal(srq->core.rq.q.idx, 2);
	host_srq_free(srq);
}

/* Entries of three slots, in a ring of four. */
static void receives_stand_a_stride_apart(void **state)
{
	struct host_srq *srq = host_srq_new(16, 8);
	const struct weft_sge none = {};
	struct weft_recv recv;
	bool low;
	u32 i;

	for (i = 0; i < 4; i++)
		assert_true(host_post_srq(srq, 100 + i, &none, 0));
	for (i = 0; i < 4; i++) {
		assert_int_equal(weft_srqc_pop(&srq->core, &recv, &low), 1);
		assert_int_equal(recv.wr_id, 100 + i);
	}
	assert_int_equal(weft_srqc_pop(&srq->core, &recv, &low), 0);
	host_srq_free(srq);
}

/* Moves the SRQ to a ring of @slots; its producer goes on at the same index. */
static bool resize_srq(struct host_srq *srq, u32 slots)
{
	void *old = srq->core.rq.q.ring, *ring = calloc(1, weft_ring_size(slots));
	struct weft_ring_move m = { .mem = ring, .slots = slots };
	bool moved = !weft_srqc_move(&srq->core, &m);

	free(moved ? old : ring);
	return moved;
}

static void an_srqs_receives_move_along_in_order(void **state)
{
	struct shared s;
	u32 i;

	shared_init(&s, 10);
	assert_false(resize_srq(s.srq, 8));
	peer_say(s.w.p, p_send(P_SEND, true, 1, 0, "a", 1));
	peer_say(s.w.p, p_send(P_SEND, true, 2, 0, "b", 1));
	assert_true(resize_srq(s.srq, 8));
	for (i = 2; i < 10; i++)
		peer_say(s.w.p, p_send(P_SEND, true, i + 1, 0, "c", 1));
	for (i = 0; i < 10; i++)
		expect_cqe(s.w.p->s.rcq, 100 + i, WEFT_WC_SUCCESS);
	shared_fini(&s);
}

/* The user takes receives back behind the stack's back: those that wait would fit. */
static void an_srq_is_not_moved_to_a_ring_below_its_limit(void **state)
{
	struct shared s;
	bool low;

	shared_init(&s, 3);
	assert_true(weft_srqc_arm(&s.srq->core, 3, &low));
	assert_false(low);
	s.srq->core.rq.q.ring->user_idx -= 2;
	assert_false(resize_srq(s.srq, 2));
	assert_true(resize_srq(s.srq, 4));
	shared_fini(&s);
}

static void a_broken_srq_is_not_moved(void **state)
{
	struct shared s;

	shared_init(&s, 2);
	s.srq->core.rq.q.ring->user_idx = 0x1000;
	assert_false(resize_srq(s.srq, 64));
	assert_int_equal(s.srq->core.rq.q.slots, 16);
	shared_fini(&s);
}

static void a_broken_srq_ends_the_connection(void **state)
{
	struct shared s;

	shared_init(&s, 1);
	s.srq->core.rq.q.ring->user_idx = 0x1000;
	peer_say(s.w.p, p_send(P_SEND, true, 1, 0, "abc", 3));
	assert_true(s.srq->broken);
	assert_int_equal(s.w.inbox->mem[0], 0);
	peer_expect(s.w.p, P_L, P_TERM);
	shared_fini(&s);
}

static void srq_entries_wrap_around_the_rings_end(void **state)
{
	struct shared s;
	u32 i;

	shared_init(&s, 0);
	for (i = 0; i < 50; i++) {
		struct weft_sge sge[2] = {
			host_sge(s.w.inbox, 2 * i, 1), host_sge(s.w.inbox, 2 * i + 1, 1),
		};

		assert_true(host_post_srq(s.srq, i, sge, 2));
		peer_say(s.w.p, p_send(P_SEND, true, i + 1, 0, "ab", 2));
		expect_cqe(s.w.p->s.rcq, i, WEFT_WC_SUCCESS);
		assert_memory_equal(s.w.inbox->mem + 2 * i, "ab", 2);
	}
	shared_fini(&s);
}

/* ---- receives of a QP's own ---- */

static void a_failed_receive_says_no_length(struct world *w)
{
	struct weft_cqe e;

	peer_say(w->p, p_send(P_SEND, false, 1, 0, "half", 4));
	host_link_reset(&w->p->s.link);
	assert_true(host_cq_poll(w->p->s.rcq, &e));
	assert_int_equal(e.status, WEFT_WC_FLUSH_ERR);
	assert_int_equal(e.byte_len, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_unarmed_cq_wakes_no_waiter),
		cmocka_unit_test(armed_for_next_it_wakes_once),
		cmocka_unit_test(armed_for_solicited_it_waits_for_one),
		cmocka_unit_test(armed_for_solicited_an_error_counts),
		cmocka_unit_test(an_entry_before_the_arming_is_found_by_polling_again),
		cmocka_unit_test(arming_tells_a_kernel_consumer_of_missed_entries),
		CASE(a_solicited_send_wakes_the_receiver_only_for_it),
		cmocka_unit_test(entries_come_out_as_they_went_in),
		cmocka_unit_test(the_last_slot_is_used_and_the_next_entry_overflows),
		cmocka_unit_test(a_scribbled_consumer_index_hurts_only_its_owner),
		cmocka_unit_test(an_overflow_ends_the_qps_of_that_cq_only),
		cmocka_unit_test(an_overflow_of_the_receive_cq_ends_its_qps),
		cmocka_unit_test(what_waits_moves_along_in_order),
		cmocka_unit_test(an_armed_cq_stays_armed_in_its_new_ring),
		cmocka_unit_test(a_dead_or_scribbled_cq_is_not_moved),
		cmocka_unit_test(a_large_cq_goes_on_while_it_is_copied),
		cmocka_unit_test(a_cq_that_never_stands_still_is_not_moved),
		cmocka_unit_test(a_cq_says_poll_until_it_is_told_not_to),
		cmocka_unit_test(a_cq_says_poll_in_its_new_ring_too),
		cmocka_unit_test(a_dead_cq_stays_dead_whatever_is_said_of_polling),
		cmocka_unit_test(purged_entries_vanish_and_the_rest_stays_in_order),
		cmocka_unit_test(sends_take_their_receives_from_the_srq),
		cmocka_unit_test(on_error_only_the_popped_receive_is_flushed),
		cmocka_unit_test(connections_share_the_receives),
		cmocka_unit_test(the_limit_event_comes_once),
		cmocka_unit_test(an_srq_that_was_never_armed_raises_no_limit_event),
		cmocka_unit_test(arming_a_limit_that_is_reached_already_says_so_once),
		cmocka_unit_test(a_limit_beyond_the_srqs_size_is_refused),
		cmocka_unit_test(a_limit_counts_receives_and_not_slots),
		cmocka_unit_test(a_pop_that_finds_nothing_raises_no_limit_event),
		cmocka_unit_test(half_an_entry_is_none),
		cmocka_unit_test(receives_stand_a_stride_apart),
		cmocka_unit_test(an_srqs_receives_move_along_in_order),
		cmocka_unit_test(an_srq_is_not_moved_to_a_ring_below_its_limit),
		cmocka_unit_test(a_broken_srq_is_not_moved),
		CASE(a_failed_receive_says_no_length),
		cmocka_unit_test(a_broken_srq_ends_the_connection),
		cmocka_unit_test(srq_entries_wrap_around_the_rings_end),
	};

	return RUN_TESTS("stacks: CQ and SRQ", tests);
}
