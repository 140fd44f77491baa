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

/* ---- shares ---- */

/* Two users: the first with two listeners, the second with one. */
struct shares {
	struct weft_share all, user[2], listener[3];
};

static struct shares *shares_of(struct shares *s)
{
	u32 i;

	*s = (struct shares){};
	for (i = 0; i < 2; i++)
		s->user[i].above = &s->all;
	for (i = 0; i < 3; i++)
		s->listener[i].above = &s->user[i / 2];
	return s;
}

static void add(struct weft_share *s, u32 n)
{
	while (n--)
		weft_share_add(s);
}

static void remove_all(struct weft_share *s)
{
	while (s->n)
		weft_share_remove(s);
}

static void who_has_nothing_does_not_give_way(void **state)
{
	struct shares room, *s = shares_of(&room);

	assert_null(weft_share_largest(&s->all));
	add(&s->listener[2], 1);
	assert_ptr_equal(weft_share_largest(&s->all), &s->listener[2]);
	remove_all(&s->listener[2]);
	assert_null(weft_share_largest(&s->all));
	assert_int_equal(s->all.n, 0);
}

/* A user's many listeners are one user's. */
static void the_largest_user_gives_way_not_the_largest_listener(void **state)
{
	struct shares room, *s = shares_of(&room);

	add(&s->listener[0], 4);
	add(&s->listener[1], 3);
	add(&s->listener[2], 5);
	assert_int_equal(s->all.n, 12);
	assert_ptr_equal(weft_share_largest(&s->all), &s->listener[0]);
	weft_share_remove(&s->listener[0]);
	weft_share_remove(&s->listener[0]);
	weft_share_remove(&s->listener[0]);
	assert_ptr_equal(weft_share_largest(&s->all), &s->listener[2]);
}

static void within_a_user_the_largest_listener_gives_way(void **state)
{
	struct shares room, *s = shares_of(&room);

	add(&s->listener[0], 2);
	add(&s->listener[1], 9);
	add(&s->listener[2], 3);
	assert_ptr_equal(weft_share_largest(&s->all), &s->listener[1]);
	remove_all(&s->listener[1]);
	assert_ptr_equal(weft_share_largest(&s->all), &s->listener[2]);
	remove_all(&s->listener[2]);
	assert_ptr_equal(weft_share_largest(&s->all), &s->listener[0]);
	remove_all(&s->listener[0]);
	assert_null(weft_share_largest(&s->all));
}

/* One user fills the cap: however it goes on, another's few stay. */
static void the_few_of_another_user_stay(void **state)
{
	struct shares room, *s = shares_of(&room);
	u32 i;

	add(&s->listener[2], 10);
	add(&s->listener[0], 500);
	add(&s->listener[1], 490);
	for (i = 0; i < 5000; i++) {
		struct weft_share *out = weft_share_largest(&s->all);

		weft_share_remove(out);
		weft_share_add(&s->listener[i % 2]);
	}
	assert_int_equal(s->listener[2].n, 10);
	assert_int_equal(s->all.n, 1000);
}

#define CROWD	300

/* @crowd's parts are those of @all. */
static void begin_crowd(struct weft_share *all, struct weft_share *crowd)
{
	u32 i;

	*all = (struct weft_share){};
	for (i = 0; i < CROWD; i++)
		crowd[i] = (struct weft_share){ .above = all };
}

/* A look at any other would find a larger one. */
static void the_largest_is_found_without_a_search(void **state)
{
	static struct weft_share all, crowd[CROWD];
	u32 i;

	begin_crowd(&all, crowd);
	for (i = 0; i < CROWD; i++)
		add(&crowd[i], 1 + i * 7 % CROWD);
	for (i = 0; i < CROWD; i++)
		if (crowd[i].n != CROWD)
			crowd[i].n = 0xffffffff;
	assert_int_equal(weft_share_largest(&all)->n, CROWD);
}

static u32 most_of(const struct weft_share *crowd)
{
	u32 i, most = 0;

	for (i = 0; i < CROWD; i++)
		most = crowd[i].n > most ? crowd[i].n : most;
	return most;
}

/* It is no larger than the part over it, and the shorter way down is to the right. */
static void check_place(const struct weft_share *s)
{
	const struct weft_share *over = s->over;
	u32 left = s->left ? s->left->rank : 0, right = s->right ? s->right->rank : 0;

	assert_int_equal(s->rank, right + 1);
	assert_true(left >= right);
	if (!over) {
		assert_ptr_equal(s->above->parts, s);
		return;
	}
	assert_true(over->left == s || over->right == s);
	assert_true(over->n >= s->n);
}

static void check_crowd(const struct weft_share *all, const struct weft_share *crowd)
{
	const struct weft_share *top = all->parts;
	u32 i, linked = 0;

	for (i = 0; i < CROWD; i++) {
		if (!crowd[i].n)
			continue;
		linked++;
		check_place(&crowd[i]);
	}
	assert_int_equal(top ? top->n : 0, most_of(crowd));
	/* So few steps to the right. */
	assert_true(!top || (1u << top->rank) - 1 <= linked);
}

static void each_part_keeps_its_order_as_parts_grow_and_shrink(void **state)
{
	static struct weft_share all, crowd[CROWD];
	u32 i, at, seed = 1;

	begin_crowd(&all, crowd);
	for (i = 0; i < 20000; i++) {
		seed = seed * 1103515245 + 12345;
		at = (seed >> 16) % CROWD;
		/* They grow for some time, then shrink. */
		if (crowd[at].n && (seed >> 8) % 8 < (i / 2000 % 2 ? 5 : 3))
			weft_share_remove(&crowd[at]);
		else
			weft_share_add(&crowd[at]);
		if (i % 16 == 0)
			check_crowd(&all, crowd);
	}
	for (i = 0; i < CROWD; i++)
		remove_all(&crowd[i]);
	assert_null(weft_share_largest(&all));
	assert_int_equal(all.n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_full_ulp_gets_nothing_before_it_answers),
		cmocka_unit_test(a_ulp_that_does_not_say_gets_one_now_and_then),
		cmocka_unit_test(an_answer_ends_the_pause_if_there_is_room),
		cmocka_unit_test(places_are_given_in_order),
		cmocka_unit_test(a_cap_makes_one_go_then_lets_none_in),
		cmocka_unit_test(who_has_nothing_does_not_give_way),
		cmocka_unit_test(the_largest_user_gives_way_not_the_largest_listener),
		cmocka_unit_test(within_a_user_the_largest_listener_gives_way),
		cmocka_unit_test(the_few_of_another_user_stay),
		cmocka_unit_test(the_largest_is_found_without_a_search),
		cmocka_unit_test(each_part_keeps_its_order_as_parts_grow_and_shrink),
	};

	return RUN_TESTS("stacks: backlog", tests);
}
