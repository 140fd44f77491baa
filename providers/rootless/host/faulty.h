/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Completions and SRQs that fail on demand: a QP has this consumer from the start if a rule of the
 * fault file is about them, so that others have no test for it.
 *
 * A late completion waits in its CQ's list; those after it wait behind it, so they arrive in order,
 * and in a burst. The CQ's lock guards the list.
 */
#ifndef RL_FAULTY_H
#define RL_FAULTY_H

#include "qp.h"

/* The consumer of a new QP of verbs whose usual one is @usual. */
const struct rl_consumer *rl_faulty_consumer(const struct rl_consumer *usual);

/* In the progress thread: those that are due. */
void rl_faulty_release_due(struct rl_cq *cq);
/* The CQ is being destroyed. */
void rl_faulty_drop(struct rl_cq *cq);

#endif
