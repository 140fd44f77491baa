// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* When the doorbell may stay silent (core/linger.h): a clock, a ring's index, and decisions. */
#include "test.h"

#define RUN 100u			/* ns that the doorbell's run takes */
#define STREAK 8u			/* quick doorbells before a QP first lingers */

struct ringer {
	struct side s;
	struct weft_linger l;
	struct weft_qpc *qp;
	u64 now;
};

static void ringer_init(struct ringer *r)
{
	struct side_cfg c;

	side_cfg_init(&c);
	side_init(&r->s, false, &c);
	r->qp = &r->s.qp->core;
	r->qp->state = WEFT_QPS_RTS;
	r->now = 1000000;
	weft_linger_init(&r->l);
}

static void ringer_fini(struct ringer *r)
{
	side_fini(&r->s);
}

/* The doorbell rings @gap after the end of its last run. */
static bool ring(struct ringer *r, u32 gap)
{
	bool linger;

	r->now += gap;
	linger = weft_linger_doorbell_begins(&r->l, r->qp, r->now);
	r->now += RUN;
	weft_linger_doorbell_ends(&r->l, r->now);
	return linger;
}

/* The number of quick doorbells it takes, at most @max. */
static u32 quick_ones(struct ringer *r, u32 max)
{
	u32 n = 1;

	while (n <= max && !ring(r, RUN - 1))
		n++;
	return n;
}

static void post(struct ringer *r, u32 slots)
{
	r->qp->sq.q.ring->user_idx += slots;
}

static void a_streak_of_quick_doorbells_makes_a_qp_linger(void **state)
{
	struct ringer r;

	ringer_init(&r);
	assert_false(ring(&r, 0));
	assert_int_equal(quick_ones(&r, 100), STREAK);
	ringer_fini(&r);
}

static void a_doorbell_as_late_as_its_run_is_long_is_slow(void **state)
{
	struct ringer r;
	u32 i;

	ringer_init(&r);
	for (i = 0; i < 100; i++)
		assert_false(ring(&r, RUN));
	assert_int_equal(quick_ones(&r, 100), STREAK);
	ringer_fini(&r);
}

static void a_slow_doorbell_takes_one_off_the_streak(void **state)
{
	struct ringer r;
	u32 i;

	ringer_init(&r);
	ring(&r, 0);
	for (i = 1; i < STREAK; i++)
		assert_false(ring(&r, 0));
	assert_false(ring(&r, 5 * RUN));
	assert_int_equal(quick_ones(&r, 100), 2);
	ringer_fini(&r);
}

static void a_qp_lingers_in_rts_alone(void **state)
{
	enum weft_qp_state s;
	struct ringer r;

	for (s = WEFT_QPS_IDLE; s <= WEFT_QPS_ERROR; s++) {
		ringer_init(&r);
		r.qp->state = s;
		ring(&r, 0);
		assert_int_equal(quick_ones(&r, 20), s == WEFT_QPS_RTS ? STREAK : 21);
		ringer_fini(&r);
	}
}

static void a_lingering_qp_is_not_asked_again(void **state)
{
	struct ringer r;

	ringer_init(&r);
	ring(&r, 0);
	weft_linger_start(&r.l, r.qp);
	assert_true(r.qp->linger);
	assert_int_equal(quick_ones(&r, 20), 21);
	ringer_fini(&r);
}

static void more_than_four_slots_for_a_call_are_worth_it(void **state)
{
	struct ringer r;

	ringer_init(&r);
	post(&r, 1000);
	weft_linger_start(&r.l, r.qp);
	post(&r, 5);
	assert_true(weft_linger_is_worth_it(&r.l, r.qp));
	assert_true(r.qp->linger);
	/* The count starts again. */
	post(&r, 4);
	assert_false(weft_linger_is_worth_it(&r.l, r.qp));
	assert_false(r.qp->linger);
	ringer_fini(&r);
}

static void a_doorbell_meanwhile_counts_as_a_call(void **state)
{
	struct ringer r;
	u32 i;

	for (i = 0; i < 2; i++) {
		ringer_init(&r);
		weft_linger_start(&r.l, r.qp);
		ring(&r, 0);
		post(&r, 8 + i);
		assert_int_equal(weft_linger_is_worth_it(&r.l, r.qp), i);
		ringer_fini(&r);
	}
}

static void each_failure_makes_the_next_streak_longer_up_to_a_bound(void **state)
{
	u32 needed = STREAK, i;
	struct ringer r;

	ringer_init(&r);
	ring(&r, 0);
	for (i = 0; i < 10; i++) {
		assert_int_equal(quick_ones(&r, 2000), needed);
		weft_linger_start(&r.l, r.qp);
		assert_false(weft_linger_is_worth_it(&r.l, r.qp));
		needed = min_t(u32, 2 * needed, 1024);
	}
	assert_int_equal(needed, 1024);
	ringer_fini(&r);
}

static void success_makes_the_next_streak_short_again(void **state)
{
	struct ringer r;
	u32 i;

	ringer_init(&r);
	ring(&r, 0);
	for (i = 0; i < 3; i++) {
		weft_linger_start(&r.l, r.qp);
		assert_false(weft_linger_is_worth_it(&r.l, r.qp));
	}
	weft_linger_start(&r.l, r.qp);
	post(&r, 5);
	assert_true(weft_linger_is_worth_it(&r.l, r.qp));
	assert_false(weft_linger_is_worth_it(&r.l, r.qp));
	/* One failure since: twice the first streak. */
	assert_int_equal(quick_ones(&r, 100), 2 * STREAK);
	ringer_fini(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_streak_of_quick_doorbells_makes_a_qp_linger),
		cmocka_unit_test(a_doorbell_as_late_as_its_run_is_long_is_slow),
		cmocka_unit_test(a_slow_doorbell_takes_one_off_the_streak),
		cmocka_unit_test(a_qp_lingers_in_rts_alone),
		cmocka_unit_test(a_lingering_qp_is_not_asked_again),
		cmocka_unit_test(more_than_four_slots_for_a_call_are_worth_it),
		cmocka_unit_test(a_doorbell_meanwhile_counts_as_a_call),
		cmocka_unit_test(each_failure_makes_the_next_streak_longer_up_to_a_bound),
		cmocka_unit_test(success_makes_the_next_streak_short_again),
	};

	return RUN_TESTS("stacks: lingering", tests);
}
