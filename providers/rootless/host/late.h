/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Completions that are late on demand: each waits in its CQ's list, and so do those after it. They
 * arrive in order, and in a burst. The CQ's lock guards the list. The caller may hold a QP's lock.
 */
#ifndef RL_LATE_H
#define RL_LATE_H

#include "cq.h"

/* As rl_cq_complete(), after @delay_ms, which may be 0. */
void rl_late_complete(struct rl_cq *cq, const struct weft_cqe *cqe, u32 delay_ms);
/* In the progress thread: those that are due. */
void rl_late_release_due(struct rl_cq *cq);
/* QP @qpn was reset or is destroyed. */
void rl_late_forget(struct rl_cq *cq, u32 qpn);
/* The CQ is being destroyed. */
void rl_late_drop(struct rl_cq *cq);

#endif
