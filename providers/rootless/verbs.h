/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Verbs objects, as the kernel has them, and what the files of this host ask of each other.
 *
 * Files: uverbs.c (the command file, handles), commands.c (its commands, one by one), mr.c, cq.c,
 * srq.c, qp.c.
 */
#ifndef RL_VERBS_H
#define RL_VERBS_H

#include <pthread.h>

#include "../../kernel/core/qp.h"
#include "../../kernel/core/shape.h"
#include "chan.h"
#include "conn.h"

#define RL_MAX_IRD	128
#define RL_MAX_ORD	128
#define RL_FEATURES	(WEFT_FEATURE_RESIZE | WEFT_FEATURE_POLL_KICK | WEFT_FEATURE_LINGER)

struct rl_qp;

/* A QP by its number, in this process; referenced, or NULL. Any thread, leaf locks only. */
struct rl_qp *rl_qp_find(u32 qpn);
void rl_qp_get(struct rl_qp *qp);
void rl_qp_put(struct rl_qp *qp);
/* Has the QP an SRQ? */
bool rl_qp_has_srq(const struct rl_qp *qp);

#endif
