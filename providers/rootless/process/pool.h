/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Large blocks for a moment: what is received is read into one, a batch is built in one. A few
 * are kept, warm, for whoever is next. Locking: a leaf of its own.
 */
#ifndef RL_POOL_H
#define RL_POOL_H

#define RL_POOL_BLOCK (256 * 1024)

/* A block of RL_POOL_BLOCK octets, not zeroed; NULL: no memory. */
void *rl_pool_take(void);
void rl_pool_give(void *block);

#endif
