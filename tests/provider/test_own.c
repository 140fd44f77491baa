// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What a thread of weft-run has to itself: providers/rootless/process/own.h. Also under TSan (make races). */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shared.h"
#include "../../providers/rootless/process/own.h"
#include "../../providers/rootless/process/pool.h"
#include "../../providers/rootless/process/stats.h"

#define THREADS	100		/* more than there are places */
#define ROUNDS	1000

u64 rl_stats[RL_STATS];

static u64 counted(enum rl_stat s)
{
	return rl_own_sum(s) + __atomic_load_n(&rl_stats[s], __ATOMIC_RELAXED);
}

static pthread_t begin(void *(*f)(void *arg), void *arg)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, f, arg), 0);
	return thread;
}

static void end(pthread_t thread)
{
	assert_int_equal(pthread_join(thread, NULL), 0);
}

/* ---- counters ---- */

static pthread_barrier_t all_count;

static void *count(void *arg)
{
	u32 i;

	rl_count(RL_POLLS, 1);
	pthread_barrier_wait(&all_count);
	for (i = 0; i < ROUNDS; i++)
		rl_count(RL_POLLS, 2);
	return NULL;
}

static void nothing_is_lost_if_there_are_more_threads_than_places(void **state)
{
	u64 before = counted(RL_POLLS), without_place = rl_stats[RL_POLLS];
	pthread_t thread[THREADS];
	u32 i;

	pthread_barrier_init(&all_count, NULL, THREADS);
	for (i = 0; i < THREADS; i++)
		thread[i] = begin(count, NULL);
	for (i = 0; i < THREADS; i++)
		end(thread[i]);
	pthread_barrier_destroy(&all_count);
	assert_int_equal(counted(RL_POLLS) - before, THREADS * (1 + 2 * ROUNDS));
	assert_true(rl_stats[RL_POLLS] > without_place);
}

static void *own_place(void *arg)
{
	struct rl_own **own = arg;

	rl_count(RL_WAKES, 1);
	*own = rl_own_get();
	return NULL;
}

static void a_thread_that_ends_leaves_its_place_and_its_counts(void **state)
{
	u64 before = counted(RL_WAKES);
	struct rl_own *own, *first = NULL;
	u32 i;

	for (i = 0; i < THREADS; i++) {
		end(begin(own_place, &own));
		assert_non_null(own);
		first = first ?: own;
		assert_ptr_equal(own, first);
	}
	assert_int_equal(counted(RL_WAKES) - before, THREADS);
}

/* ---- forks ---- */

static pthread_barrier_t has_place, may_end;

static void *keep_place(void *arg)
{
	rl_own_get();
	pthread_barrier_wait(&has_place);
	pthread_barrier_wait(&may_end);
	return NULL;
}

/* 0: it could give it to a thread, and its own is still its own. TSan starts no threads there. */
static int child_finds_the_place_free(const struct rl_own *of_thread)
{
	struct rl_own *own = rl_own_get(), *next;

	rl_own_forked();
	if (rl_own_get() != own)
		return 1;
	next = rl_own_take();
	return next == own || next != of_thread ? 2 : 0;
}

static void a_child_has_the_places_of_threads_that_it_has_not(void **state)
{
	struct rl_own *own = rl_own_get(), *free;
	pthread_t thread;
	int status;
	pid_t child;

	assert_non_null(own);
	end(begin(own_place, &free));
	pthread_barrier_init(&has_place, NULL, 2);
	pthread_barrier_init(&may_end, NULL, 2);
	thread = begin(keep_place, NULL);
	pthread_barrier_wait(&has_place);
	child = fork();
	assert_true(child >= 0);
	if (!child)
		_exit(child_finds_the_place_free(free));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	pthread_barrier_wait(&may_end);
	end(thread);
	pthread_barrier_destroy(&has_place);
	pthread_barrier_destroy(&may_end);
}

/* ---- blocks ---- */

static void a_thread_gets_the_block_again_that_it_gave_back(void **state)
{
	void *block = rl_pool_take(), *second;

	assert_non_null(block);
	second = rl_pool_take();
	assert_non_null(second);
	assert_ptr_not_equal(second, block);
	rl_pool_give(block);
	rl_pool_give(second);
	assert_ptr_equal(rl_pool_take(), block);
	assert_ptr_equal(rl_pool_take(), second);
	rl_pool_give(block);
	rl_pool_give(second);
}

static void *use_block(void *arg)
{
	void **block = arg;

	*block = rl_pool_take();
	rl_pool_give(*block);
	return NULL;
}

static void the_block_of_a_thread_that_ends_is_the_nexts(void **state)
{
	void *first, *next;

	end(begin(use_block, &first));
	assert_non_null(first);
	end(begin(use_block, &next));
	assert_ptr_equal(next, first);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_lost_if_there_are_more_threads_than_places),
		cmocka_unit_test(a_thread_that_ends_leaves_its_place_and_its_counts),
		cmocka_unit_test(a_child_has_the_places_of_threads_that_it_has_not),
		cmocka_unit_test(a_thread_gets_the_block_again_that_it_gave_back),
		cmocka_unit_test(the_block_of_a_thread_that_ends_is_the_nexts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
