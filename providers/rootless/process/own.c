// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <pthread.h>

#include "own.h"
#include "pool.h"

#define PLACES		64
#define KEEPERS		8

static struct rl_own places[PLACES];

__thread struct rl_own *rl_own_place;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool has_key;

/* Other destructors of the thread may need a place yet: they take another, and this runs again. */
static void leave_place(void *arg)
{
	struct rl_own *own = arg;
	void *block = own->block;

	rl_own_place = NULL;
	own->block = NULL;
	__atomic_store_n(&own->taken, 0, __ATOMIC_RELEASE);
	if (block)
		rl_pool_give_shared(block);
}

static void make_own_key(void)
{
	has_key = !pthread_key_create(&key, leave_place);
}

static bool try_place(struct rl_own *own)
{
	u32 free = 0;

	return !__atomic_load_n(&own->taken, __ATOMIC_RELAXED) &&
	       __atomic_compare_exchange_n(&own->taken, &free, 1, false, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED);
}

/* Without a key no place could be left. */
noinline __attribute__((cold)) struct rl_own *rl_own_take(void)
{
	u32 i;

	pthread_once(&once, make_own_key);
	for (i = 0; i < PLACES && has_key; i++) {
		if (!try_place(&places[i]))
			continue;
		if (pthread_setspecific(key, &places[i])) {
			__atomic_store_n(&places[i].taken, 0, __ATOMIC_RELEASE);
			return NULL;
		}
		places[i].keeps_block = i < KEEPERS;
		rl_own_place = &places[i];
		return rl_own_place;
	}
	return NULL;
}

u64 rl_own_sum(u32 at)
{
	u64 sum = 0;
	u32 i;

	for (i = 0; i < PLACES; i++)
		sum += __atomic_load_n(&places[i].counts[at], __ATOMIC_RELAXED);
	return sum;
}

void rl_own_forked(void)
{
	u32 i;

	for (i = 0; i < PLACES; i++)
		if (&places[i] != rl_own_place)
			__atomic_store_n(&places[i].taken, 0, __ATOMIC_RELAXED);
}
