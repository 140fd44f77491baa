// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Sleeps of one thread, of which a handler begins another in the first. */
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../providers/sockets/overlay/sock.h"

static void *do_nothing(void *arg)
{
	return arg;
}

/* Bells are for several threads. */
static int become_several(void **state)
{
	pthread_t t;

	return pthread_create(&t, NULL, do_nothing, NULL) || pthread_join(t, NULL);
}

/* As a wait does it that has woken. */
static void get_up(struct rl_turn *t, int bell)
{
	rl_turn_wake(t);
	if (bell >= 0)
		rl_turn_silence(bell);
}

static bool rings(int bell)
{
	struct pollfd p = { .fd = bell, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

static void a_handler_that_waits_does_not_silence_its_threads_bell(void **state)
{
	static struct rl_sock sk, other;
	struct rl_turn outer, inner;
	char frames[2];
	int bell, of_handler;

	rl_turn_begin(&sk, &outer);
	bell = rl_turn_sleep(&sk, &outer, &frames[1]);
	assert_true(bell >= 0);
	rl_turn_begin(&other, &inner);
	of_handler = rl_turn_sleep(&other, &inner, &frames[0]);
	rl_sock_changed(&sk, 0);
	get_up(&inner, of_handler);
	assert_true(rings(bell));
	get_up(&outer, bell);
	assert_false(rings(bell));
}

static void sleeps_of_one_call_share_the_bell(void **state)
{
	static struct rl_sock sk, other;
	struct rl_turn first, second;
	char frame;
	int bell;

	rl_turn_begin(&sk, &first);
	rl_turn_begin(&other, &second);
	bell = rl_turn_sleep(&sk, &first, &frame);
	assert_true(bell >= 0);
	assert_int_equal(rl_turn_sleep(&other, &second, &frame), bell);
	rl_sock_changed(&other, 0);
	assert_true(rings(bell));
	rl_turn_wake(&first);
	get_up(&second, bell);
	assert_false(rings(bell));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_handler_that_waits_does_not_silence_its_threads_bell),
		cmocka_unit_test(sleeps_of_one_call_share_the_bell),
	};

	return cmocka_run_group_tests(tests, become_several, NULL);
}
