// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <pthread.h>
#include <stdlib.h>

#include "pool.h"

#define KEPT 8

static struct {
	pthread_mutex_t lock;
	void *block[KEPT];
	int n;
} pool = { .lock = PTHREAD_MUTEX_INITIALIZER };

void *rl_pool_take(void)
{
	void *block = NULL;

	pthread_mutex_lock(&pool.lock);
	if (pool.n)
		block = pool.block[--pool.n];
	pthread_mutex_unlock(&pool.lock);
	return block ? block : aligned_alloc(4096, RL_POOL_BLOCK);
}

void rl_pool_give(void *block)
{
	pthread_mutex_lock(&pool.lock);
	if (pool.n < KEPT) {
		pool.block[pool.n++] = block;
		block = NULL;
	}
	pthread_mutex_unlock(&pool.lock);
	free(block);
}
