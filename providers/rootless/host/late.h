/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Completions that are late on demand. One that is late by a time waits in its CQ's list, and so
 * do those after it: they arrive in order, and in a burst. One that is to be the latest waits until
 * the program can tell (late.c), and so do those after it of its QP's queue; others pass it, as
 * verbs allow. The CQ's lock guards the list. The caller may hold a QP's lock.
 */
#ifndef RL_LATE_H
#define RL_LATE_H

#include "cq.h"

/* How late a completion is, and the queue that it is of. */
struct rl_lateness {
	u32 delay_ms;			/* 0: none of its own */
	bool latest;
	bool scattered;			/* those of other queues may pass it */
	bool recv;
	u32 queue_wr;			/* entries of the queue, as promised */
};

/* As rl_cq_complete(), but so late. */
void rl_late_complete(struct rl_cq *cq, const struct weft_cqe *cqe, const struct rl_lateness *how);
/* In the progress thread: those that are due. */
void rl_late_release_due(struct rl_cq *cq);
/* QP @qpn was reset or is destroyed. */
void rl_late_forget(struct rl_cq *cq, u32 qpn);
/* The CQ is being destroyed. */
void rl_late_drop(struct rl_cq *cq);

#endif
