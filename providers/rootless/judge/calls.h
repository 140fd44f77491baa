/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What libweft-judge.so reports: calls of libc and librdmacm, which it has functions for, and which
 * no provider sees. weft-run loads it with --judge. Any thread, without a lock.
 */
#ifndef RL_JUDGE_CALLS_H
#define RL_JUDGE_CALLS_H

#include <stdbool.h>
#include <stddef.h>

#define RL_JUDGE_CALL __attribute__((visibility("default")))

/* Is memory that is freed to be reported? Constant. */
RL_JUDGE_CALL bool weft_run_judges_memory(void);
/* The program is about to free @len octets at @addr, by @how. */
RL_JUDGE_CALL void weft_run_frees(const void *addr, size_t len, const char *how);

/* The program is about to fork. @is_prepared: ibv_fork_init() was called. */
RL_JUDGE_CALL void weft_run_forks(bool is_prepared);

/* An id was made, or moved to another channel. */
RL_JUDGE_CALL void weft_run_cm_id(const void *id, const void *channel);
/* The program has got so many events more that count for @id; less: it has acknowledged them. */
RL_JUDGE_CALL void weft_run_cm_events(const void *id, int n);
/* How many events of @id are not acknowledged. */
RL_JUDGE_CALL unsigned int weft_run_cm_pending(const void *id);
/* @id is about to be destroyed; @waits: events were not acknowledged, and it has waited long. */
RL_JUDGE_CALL void weft_run_cm_ends(const void *id, bool waits);

RL_JUDGE_CALL void weft_run_cm_channel(const void *channel);
/* The channel is about to be destroyed. */
RL_JUDGE_CALL void weft_run_cm_channel_ends(const void *channel);

#endif
