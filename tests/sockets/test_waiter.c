// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Waits of one thread, one of them in a signal handler that interrupted the other. */
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../providers/sockets/overlay/sock.h"
#include "../../providers/sockets/overlay/waiter.h"

static void *do_nothing(void *arg)
{
	return arg;
}

/* A single thread has no eventfd. */
static int become_several(void **state)
{
	pthread_t t;

	return pthread_create(&t, NULL, do_nothing, NULL) || pthread_join(t, NULL);
}

static void init_sock(struct rl_sock *sk)
{
	*sk = (struct rl_sock){ .sleepers_lock = PTHREAD_MUTEX_INITIALIZER };
	INIT_LIST_HEAD(&sk->sleepers);
}

/* Like a wait after it has slept. */
static void finish_wait(struct rl_waiter *w, int eventfd)
{
	rl_waiter_wake(w);
	if (eventfd >= 0)
		rl_waiter_clear(eventfd);
}

static bool is_readable(int eventfd)
{
	struct pollfd p = { .fd = eventfd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

static void a_handler_that_waits_does_not_clear_its_threads_eventfd(void **state)
{
	static struct rl_sock sk, other;
	struct rl_waiter outer, inner;
	char frames[2];
	int eventfd, of_handler;

	init_sock(&sk);
	init_sock(&other);
	rl_waiter_begin(&sk, &outer);
	eventfd = rl_waiter_sleep(&sk, &outer, &frames[1]);
	assert_true(eventfd >= 0);
	rl_waiter_begin(&other, &inner);
	of_handler = rl_waiter_sleep(&other, &inner, &frames[0]);
	rl_sock_changed(&sk, 0);
	finish_wait(&inner, of_handler);
	assert_true(is_readable(eventfd));
	finish_wait(&outer, eventfd);
	assert_false(is_readable(eventfd));
}

static void sleeps_of_one_call_share_the_eventfd(void **state)
{
	static struct rl_sock sk, other;
	struct rl_waiter first, second;
	char frame;
	int eventfd;

	init_sock(&sk);
	init_sock(&other);
	rl_waiter_begin(&sk, &first);
	rl_waiter_begin(&other, &second);
	eventfd = rl_waiter_sleep(&sk, &first, &frame);
	assert_true(eventfd >= 0);
	assert_int_equal(rl_waiter_sleep(&other, &second, &frame), eventfd);
	rl_sock_changed(&other, 0);
	assert_true(is_readable(eventfd));
	rl_waiter_wake(&first);
	finish_wait(&second, eventfd);
	assert_false(is_readable(eventfd));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_handler_that_waits_does_not_clear_its_threads_eventfd),
		cmocka_unit_test(sleeps_of_one_call_share_the_eventfd),
	};

	return cmocka_run_group_tests(tests, become_several, NULL);
}
