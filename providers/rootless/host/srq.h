/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Shared receive queues. */
#ifndef RL_SRQ_H
#define RL_SRQ_H

#include <pthread.h>

#include "kernel/core/qp.h"
#include "kernel/core/shape.h"
#include "mr.h"
#include "ring.h"

struct rl_qp;

struct rl_srq {
	struct rl_object o;
	struct rl_context *ctx;
	struct rl_pd *pd;
	pthread_mutex_t lock;
	struct weft_srqc core;		/* lock */
	struct rl_ring ring;		/* lock */
	bool failed;			/* on demand: QPs that take from it fail */
	u32 async_reported;		/* the channel's lock */
};

int rl_srq_new(struct rl_pd *pd, struct rl_context *ctx, struct weft_rq_caps *caps,
	       struct rl_srq **srq);
void rl_srq_destroy(struct rl_srq *srq);
int rl_srq_resize(struct rl_srq *srq, u32 max_wr, struct weft_modify_srq_resp *resp);
int rl_srq_arm(struct rl_srq *srq, u32 limit);
/* Is the limit armed? Then rl_srq_reach_limit() reports it. */
bool rl_srq_is_armed(struct rl_srq *srq);
void rl_srq_reach_limit(struct rl_srq *srq);
/* A fault of the device: SRQ_ERR; its QPs fail when they take from it. */
void rl_srq_fail(struct rl_srq *srq);
/* For core/host.h. Connection's lock. */
int rl_srq_pop(struct rl_qp *qp, bool wait, struct weft_recv *recv);
void rl_srq_leave(struct rl_qp *qp);
/* The doorbell: the first QP that waits may go on. */
void rl_srq_kick(struct rl_srq *srq);

#endif
