// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The progress thread's timers: providers/rootless/process/timers.c. */
#include <stdlib.h>

#include "shared.h"
#include "../../providers/rootless/process/timers.h"

#define MANY 300

static struct rl_timers make_heap(u32 most)
{
	struct rl_timers h = { 0 };

	assert_true(rl_timers_reserve(&h, most));
	return h;
}

static void expect_earliest_first(const struct rl_timers *h)
{
	u32 i;

	for (i = 1; i <= h->n; i++) {
		assert_int_equal(h->at[i]->place, i);
		assert_true(i == 1 || h->at[i / 2]->due <= h->at[i]->due);
	}
}

static void timers_expire_in_the_order_of_their_time(void **state)
{
	struct rl_timers h = make_heap(MANY);
	struct rl_timer t[MANY] = { 0 }, *first;
	u64 last = 0;
	u32 i;

	srand(1);
	for (i = 0; i < MANY; i++) {
		rl_timers_start(&h, &t[i], rand() % 100);
		expect_earliest_first(&h);
	}
	while ((first = rl_timers_first(&h))) {
		assert_true(first->due >= last);
		last = first->due;
		rl_timers_stop(&h, first);
		expect_earliest_first(&h);
		i--;
	}
	assert_int_equal(i, 0);
	free(h.at);
}

/* As connections do: a timer is stopped in the middle, and started anew, sooner or later. */
static void timers_are_stopped_and_started_anew_in_any_order(void **state)
{
	struct rl_timers h = make_heap(MANY);
	struct rl_timer t[MANY] = { 0 };
	u32 runs = 0, turn, i;

	srand(2);
	for (turn = 0; turn < 100 * MANY; turn++) {
		i = rand() % MANY;
		runs -= !!t[i].place;
		rl_timers_stop(&h, &t[i]);
		assert_int_equal(t[i].place, 0);
		if (rand() % 4) {
			rl_timers_start(&h, &t[i], rand() % 1000);
			runs++;
		}
		assert_int_equal(h.n, runs);
		expect_earliest_first(&h);
	}
	free(h.at);
}

static void a_timer_that_does_not_run_may_be_stopped(void **state)
{
	struct rl_timers h = make_heap(1);
	struct rl_timer t = { 0 };

	rl_timers_stop(&h, &t);
	assert_null(rl_timers_first(&h));
	rl_timers_start(&h, &t, 5);
	rl_timers_stop(&h, &t);
	rl_timers_stop(&h, &t);
	assert_null(rl_timers_first(&h));
	free(h.at);
}

static void room_for_more_timers_keeps_those_that_run(void **state)
{
	struct rl_timers h = make_heap(2);
	struct rl_timer t[4] = { 0 };
	u32 i;

	rl_timers_start(&h, &t[0], 3);
	rl_timers_start(&h, &t[1], 2);
	assert_true(rl_timers_reserve(&h, 4));
	rl_timers_start(&h, &t[2], 1);
	rl_timers_start(&h, &t[3], 4);
	for (i = 1; i <= 4; i++) {
		assert_int_equal(rl_timers_first(&h)->due, i);
		rl_timers_stop(&h, rl_timers_first(&h));
	}
	free(h.at);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(timers_expire_in_the_order_of_their_time),
		cmocka_unit_test(timers_are_stopped_and_started_anew_in_any_order),
		cmocka_unit_test(a_timer_that_does_not_run_may_be_stopped),
		cmocka_unit_test(room_for_more_timers_keeps_those_that_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
