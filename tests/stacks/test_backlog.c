// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A listener's backlog and the caps on connections that no program has taken (core/backlog.h). */
#include "../../kernel/core/backlog.h"
#include "test.h"

#define SIZE	3
#define RETRY	10

static void report_all(struct weft_backlog *b)
{
	u32 i;

	for (i = 0; i < SIZE; i++) {
		assert_true(weft_backlog_may_report(b, 0));
		assert_false(weft_backlog_report(b));
	}
}

static void a_full_ulp_gets_nothing_before_it_answers(void **state)
{
	struct weft_backlog b;

	weft_backlog_init(&b, SIZE, 0);
	report_all(&b);
	assert_false(weft_backlog_may_report(&b, 1000000));
	weft_backlog_answered(&b);
	assert_true(weft_backlog_may_report(&b, 0));
	assert_false(weft_backlog_report(&b));
	assert_false(weft_backlog_may_report(&b, 0));
}

static void a_ulp_that_does_not_say_gets_one_now_and_then(void **state)
{
	struct weft_backlog b;

	weft_backlog_init(&b, SIZE, RETRY);
	report_all(&b);
	assert_true(weft_backlog_may_report(&b, 100));
	assert_true(weft_backlog_report(&b));
	weft_backlog_pause(&b, 100);
	assert_false(weft_backlog_may_report(&b, 100 + RETRY - 1));
	assert_true(weft_backlog_may_report(&b, 100 + RETRY));
}

static void an_answer_ends_the_pause_if_there_is_room(void **state)
{
	struct weft_backlog b;

	weft_backlog_init(&b, SIZE, RETRY);
	report_all(&b);
	weft_backlog_report(&b);
	weft_backlog_pause(&b, 100);
	weft_backlog_answered(&b);
	assert_false(weft_backlog_may_report(&b, 100));
	weft_backlog_answered(&b);
	assert_true(weft_backlog_may_report(&b, 100));
}

static void places_are_given_in_order(void **state)
{
	struct weft_backlog b;
	u64 first;

	weft_backlog_init(&b, SIZE, 0);
	first = weft_backlog_place(&b);
	assert_true(first);
	assert_true(weft_backlog_place(&b) > first);
	/* As after 2^32 requests. */
	b.places = 0xffffffff;
	assert_true(weft_backlog_place(&b) > 0xffffffff);
}

static void a_cap_makes_one_go_then_lets_none_in(void **state)
{
	struct weft_cap c = { .most = 4, .leaving = 2 };

	c.n = 3;
	assert_false(weft_cap_is_reached(&c));
	c.n = 4;
	assert_true(weft_cap_is_reached(&c));
	c.n = 5;
	assert_false(weft_cap_is_full(&c));
	c.n = 6;
	assert_true(weft_cap_is_full(&c));
	c.n = 8;
	assert_false(weft_cap_is_doubled(&c));
	c.n = 9;
	assert_true(weft_cap_is_doubled(&c));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_full_ulp_gets_nothing_before_it_answers),
		cmocka_unit_test(a_ulp_that_does_not_say_gets_one_now_and_then),
		cmocka_unit_test(an_answer_ends_the_pause_if_there_is_room),
		cmocka_unit_test(places_are_given_in_order),
		cmocka_unit_test(a_cap_makes_one_go_then_lets_none_in),
	};

	return RUN_TESTS("stacks: backlog", tests);
}
