// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "own.h"
#include "pool.h"

#define KEPT 8

static struct {
	pthread_mutex_t lock;
	void *block[KEPT];
	int n;
} pool = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Threads that keep none take this block and give it back, each with one instruction. Atomic. */
static void *spare;

static noinline void *take_shared(void)
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

noinline void rl_pool_give_shared(void *block)
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

/* Most calls take the block that their thread keeps, and give it back. */
void *rl_pool_take(void)
{
	struct rl_own *own = rl_own_get();
	void *block = likely(own) ? own->block : NULL;

	if (unlikely(!block))
		return take_shared();
	own->block = NULL;
	return block;
}

void rl_pool_give(void *block)
{
	struct rl_own *own = rl_own_get();

	if (likely(own && own->keeps_block && !own->block))
		own->block = block;
	else
		rl_pool_give_shared(block);
}
