/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Large blocks for short use: to receive into, to build a batch in. A few are kept, warm in the
 * cache, some of them by a thread each (own.h). Its lock is a leaf.
 */
#ifndef RL_POOL_H
#define RL_POOL_H

#define RL_POOL_BLOCK (256 * 1024)

/* A block of RL_POOL_BLOCK octets, not zeroed; NULL: no memory. */
void *rl_pool_take(void);
void rl_pool_give(void *block);
/* To all threads, in place of the caller, which ends. */
void rl_pool_give_shared(void *block);

#endif
