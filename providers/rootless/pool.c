// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <pthread.h>
#include <stdlib.h>

#include "pool.h"

#define KEPT 8

static struct {
	pthread_spinlock_t lock;
	void *block[KEPT];
	int n;
} pool;

__attribute__((constructor)) static void init_pool(void)
{
	pthread_spin_init(&pool.lock, PTHREAD_PROCESS_PRIVATE);
}

void *rl_pool_take(void)
{
	void *block = NULL;

	pthread_spin_lock(&pool.lock);
	if (pool.n)
		block = pool.block[--pool.n];
	pthread_spin_unlock(&pool.lock);
	return block ? block : aligned_alloc(4096, RL_POOL_BLOCK);
}

void rl_pool_give(void *block)
{
	pthread_spin_lock(&pool.lock);
	if (pool.n < KEPT) {
		pool.block[pool.n++] = block;
		block = NULL;
	}
	pthread_spin_unlock(&pool.lock);
	free(block);
}
