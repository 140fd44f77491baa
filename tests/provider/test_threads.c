// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The provider in one thread, the kernel's queue logic in another: no entry may
 * be lost, and no wake-up. One entry is under way at a time, so that nothing
 * but its own wake-up can save it: without the full barrier between one's own
 * store and the load of the other's word a test hangs within seconds on a
 * machine with two CPUs, and times out. (Tried, by taking the
 * barrier out of weft_uring_publish(). On x86 the exchange of the arm word is a
 * full barrier by itself.)
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <time.h>

#include "shared.h"

#define SLOTS	16
#define ROUNDS	100000
#define PATIENCE 60	/* seconds: far more than any schedule takes */

static bool wait_for(sem_t *sem)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	ts.tv_sec += PATIENCE;
	return !sem_clockwait(sem, CLOCK_MONOTONIC, &ts);
}

/* ---- the send ring: the kernel sleeps when it is empty, and must be kicked ---- */

static struct shared sq_ring;
static sem_t doorbell;
static uint64_t kicks;
static volatile bool lost;

static void take_entries(struct weft_ringq *q, uint64_t *expected)
{
	s32 n;

	while ((n = weft_ringq_filled(q, q->idx)) > 0) {
		struct weft_sq_wqe w;

		weft_ringq_copy(q, q->idx, &w, 1);
		if (w.wr_id != (*expected)++)
			abort();
		weft_ringq_free(q, w.nslots);
	}
}

static void *kernel_of_sends(void *arg)
{
	uint64_t expected = 0;

	while (expected < ROUNDS) {
		take_entries(&sq_ring.kern, &expected);
		weft_ringq_sleep(&sq_ring.kern);
		if (weft_ringq_filled(&sq_ring.kern, sq_ring.kern.idx) > 0) {
			weft_ringq_wake(&sq_ring.kern);
			continue;
		}
		if (expected < ROUNDS && !wait_for(&doorbell)) {
			lost = true;
			return NULL;
		}
		weft_ringq_wake(&sq_ring.kern);
	}
	return NULL;
}

/* Posts one, and the next when the kernel has taken it, be that ever so late on a busy machine. */
static void post_all(void)
{
	struct weft_sq sq = { .ring = sq_ring.user, .max_slots = 1, .max_sge = 2 };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND };

	for (; wr.wr_id < ROUNDS && !lost; wr.wr_id++) {
		assert_int_equal(weft_sq_add_wr(&sq, &wr), 0);
		if (weft_uring_publish(&sq.ring)) {
			kicks++;
			sem_post(&doorbell);
		}
		while (weft_uring_room(&sq.ring) < SLOTS && !lost)
			;
	}
}

static void no_kick_is_lost(void **state)
{
	pthread_t kernel;

	ring_make(&sq_ring, SLOTS, 0xffffff00);
	sem_init(&doorbell, 0, 0);
	pthread_create(&kernel, NULL, kernel_of_sends, NULL);
	post_all();
	pthread_join(kernel, NULL);
	assert_false(lost);
	print_message("%d posts, %llu kicks\n", ROUNDS, (unsigned long long)kicks);
	ring_free(&sq_ring);
}

/* ---- the completion ring: the user sleeps when it is empty, armed ---- */

static struct shared cq_ring;
static sem_t event, consumed;

static void *kernel_of_completions(void *arg)
{
	struct weft_cqc cqc = { .q = cq_ring.kern };
	struct weft_cqe cqe = {};

	for (; cqe.wr_id < ROUNDS; cqe.wr_id++) {
		if (!wait_for(&consumed))
			break;
		if (weft_cqc_push(&cqc, &cqe) == WEFT_CQ_WAKE)
			sem_post(&event);
	}
	return NULL;
}

/* Polls until the ring is empty; returns how many came. */
static uint32_t poll_all(struct weft_uring *r, uint64_t *expected)
{
	uint32_t n = weft_uring_filled(r), i;

	for (i = 0; i < n; i++) {
		struct ibv_wc wc;

		weft_cqe_decode(weft_uring_slot(r, r->idx++), &wc);
		assert_true(wc.wr_id == (*expected)++);
	}
	weft_uring_release(r);
	for (i = 0; i < n; i++)
		sem_post(&consumed);
	return n;
}

static void no_event_is_lost(void **state)
{
	struct weft_uring *r;
	uint64_t expected = 0, sleeps = 0;
	pthread_t kernel;

	ring_make(&cq_ring, SLOTS, 0xffffff00);
	r = &cq_ring.user;
	sem_init(&event, 0, 0);
	sem_init(&consumed, 0, 1);
	pthread_create(&kernel, NULL, kernel_of_completions, NULL);
	while (expected < ROUNDS) {
		weft_uring_arm(r, WEFT_ARM_NEXT);
		if (poll_all(r, &expected))
			continue;
		sleeps++;
		assert_true(wait_for(&event));
	}
	pthread_join(kernel, NULL);
	print_message("%d completions, %llu sleeps\n", ROUNDS, (unsigned long long)sleeps);
	ring_free(&cq_ring);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_kick_is_lost),
		cmocka_unit_test(no_event_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
