// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "pool.h"

#define KEPT 8

static struct {
	pthread_mutex_t lock;
	void *block[KEPT];
	int n;
} pool = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Most calls take this block and give it back, each with one instruction. Atomic. */
static void *spare;

void *rl_pool_take(void)
{
	void *block = __atomic_exchange_n(&spare, NULL, __ATOMIC_ACQ_REL);

	if (block)
		return block;
	pthread_mutex_lock(&pool.lock);
	if (pool.n)
		block = pool.block[--pool.n];
	pthread_mutex_unlock(&pool.lock);
	return block ? block : aligned_alloc(4096, RL_POOL_BLOCK);
}

void rl_pool_give(void *block)
{
	void *none = NULL;

	if (__atomic_compare_exchange_n(&spare, &none, block, false, __ATOMIC_ACQ_REL,
					__ATOMIC_RELAXED))
		return;
	pthread_mutex_lock(&pool.lock);
	if (pool.n < KEPT) {
		pool.block[pool.n++] = block;
		block = NULL;
	}
	pthread_mutex_unlock(&pool.lock);
	free(block);
}
