// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The library's lock: providers/rootless/process/lock.h. Also under TSan (make races). */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "shared.h"
#include "../../providers/rootless/process/lock.h"

#define THREADS	4
#define ROUNDS	20000
#define PATIENCE 60	/* seconds: far more than any schedule takes */

static void join(pthread_t thread)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += PATIENCE;
	assert_int_equal(pthread_timedjoin_np(thread, NULL, &until), 0);
}

static void a_held_lock_is_not_taken_by_a_try(void **state)
{
	struct rl_lock l = { 0 };

	assert_true(rl_lock_try(&l));
	assert_false(rl_lock_try(&l));
	rl_unlock(&l);
	assert_true(rl_lock_try(&l));
	rl_unlock(&l);
	rl_lock(&l);
	assert_false(rl_lock_try(&l));
	rl_unlock(&l);
}

/* ---- exclusion ---- */

static struct counted {
	struct rl_lock lock;
	u32 n;				/* lock */
	u32 tries;			/* lock: of n, those by rl_lock_try() */
} counted;

/* Some of them lose the CPU while they hold the lock, so that others sleep. */
static void count_one(u32 round, u32 tries)
{
	u32 was = counted.n;

	if (!(round % 16))
		sched_yield();
	counted.n = was + 1;
	counted.tries += tries;
}

static void *count_rounds(void *arg)
{
	u32 i;

	for (i = 0; i < ROUNDS; i++) {
		bool tries = !(i % 3) && rl_lock_try(&counted.lock);

		if (!tries)
			rl_lock(&counted.lock);
		count_one(i, tries);
		rl_unlock(&counted.lock);
	}
	return NULL;
}

static void a_lock_is_held_by_one_thread_at_a_time(void **state)
{
	pthread_t thread[THREADS];
	u32 i;

	for (i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, count_rounds, NULL);
	for (i = 0; i < THREADS; i++)
		join(thread[i]);
	assert_int_equal(counted.n, THREADS * ROUNDS);
	print_message("%u of %u by a try\n", counted.tries, counted.n);
}

/* ---- waiting ---- */

struct waiter {
	struct rl_lock *lock;
	pthread_t thread;
	pid_t tid;			/* atomic; 0: has not begun */
};

static void *wait_for_lock(void *arg)
{
	struct waiter *w = arg;

	__atomic_store_n(&w->tid, gettid(), __ATOMIC_RELEASE);
	rl_lock(w->lock);
	rl_unlock(w->lock);
	return NULL;
}

/* By /proc, which calls a thread that sleeps S. */
static bool sleeps(pid_t tid)
{
	char path[64], run = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	f = fopen(path, "re");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%*d (%*[^)]) %c", &run), 1);
	fclose(f);
	return run == 'S';
}

static void await_sleep(struct waiter *w)
{
	pid_t tid;

	while (!(tid = __atomic_load_n(&w->tid, __ATOMIC_ACQUIRE)) ||
	       __atomic_load_n(&w->lock->state, __ATOMIC_RELAXED) != 2 || !sleeps(tid))
		sched_yield();
}

static void each_thread_that_sleeps_at_a_lock_gets_it(void **state)
{
	struct rl_lock lock = { 0 };
	struct waiter w[THREADS];
	u32 i;

	rl_lock(&lock);
	for (i = 0; i < THREADS; i++) {
		w[i] = (struct waiter){ .lock = &lock };
		pthread_create(&w[i].thread, NULL, wait_for_lock, &w[i]);
	}
	for (i = 0; i < THREADS; i++)
		await_sleep(&w[i]);
	rl_unlock(&lock);
	for (i = 0; i < THREADS; i++)
		join(w[i].thread);
	assert_true(rl_lock_try(&lock));
}

/* ---- the end of its memory ---- */

struct shared_thing {
	struct rl_lock lock;
	u32 refs;			/* lock */
};

static struct shared_thing *offered;	/* atomic */

static void let_thing_go(struct shared_thing *t)
{
	bool last;

	rl_lock(&t->lock);
	last = !--t->refs;
	rl_unlock(&t->lock);
	if (last)
		free(t);
}

static void *let_all_go(void *arg)
{
	struct shared_thing *t;
	u32 i;

	for (i = 0; i < ROUNDS; i++) {
		while (!(t = __atomic_exchange_n(&offered, NULL, __ATOMIC_ACQUIRE)))
			sched_yield();
		let_thing_go(t);
	}
	return NULL;
}

/* The thread before has dropped the lock, but may not have returned from it. */
static void the_last_thread_to_take_a_lock_may_free_its_memory(void **state)
{
	pthread_t thread;
	u32 i;

	pthread_create(&thread, NULL, let_all_go, NULL);
	for (i = 0; i < ROUNDS; i++) {
		struct shared_thing *t = calloc(1, sizeof(*t));

		t->refs = 2;
		__atomic_store_n(&offered, t, __ATOMIC_RELEASE);
		let_thing_go(t);
		while (__atomic_load_n(&offered, __ATOMIC_RELAXED))
			sched_yield();
	}
	join(thread);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_held_lock_is_not_taken_by_a_try),
		cmocka_unit_test(a_lock_is_held_by_one_thread_at_a_time),
		cmocka_unit_test(each_thread_that_sleeps_at_a_lock_gets_it),
		cmocka_unit_test(the_last_thread_to_take_a_lock_may_free_its_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
