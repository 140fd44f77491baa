/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A process's record (weft-run --record): a file that is mapped, so that it outlives the process
 * however that ends. It is made with the first entry.
 *
 * Any thread, with any lock; no lock is waited for.
 */
#ifndef RL_RECORD_LOG_H
#define RL_RECORD_LOG_H

#include "format.h"
#include "process/clock.h"
#include "process/options.h"

/* Not for the data path, which has tables for both cases. */
static inline bool rl_record_is_on(void)
{
	return rl_options()->record;
}

struct rl_record_entry {
	enum weft_record_type type;
	u8 flags;
	u32 qpn;
	u64 ticks;			/* 0: now */
	const void *body;
	u32 len;
	const void *more;		/* follows the body */
	u32 more_len;
};

void rl_record_put(const struct rl_record_entry *e);

/* Where an instruction lies is kept, if there is room for it. */
void rl_record_caller(const void *pc);

/* May the entry at *@at soon be gone, so much was written since? Then *@at is now. */
bool rl_record_is_old(u64 *at);

#endif
