/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A receive queue that QPs share, with its limit. */
#ifndef WEFT_CORE_SRQ_H
#define WEFT_CORE_SRQ_H

#include "qp_types.h"

/* A receive queue that QPs share. Lock: the host's SRQ lock. */
struct weft_srqc {
	struct weft_rqq rq;
	u32 limit;			/* entries; 0: not armed */
	struct weft_qpc *first, **last;	/* QPs that wait for an entry, the oldest first */
};

void weft_srqc_init(struct weft_srqc *srq, void *mem, u32 slots, u32 max_sge);

/* How many entries the SRQ holds when it is full. */
static inline u32 weft_srqc_size(const struct weft_srqc *srq)
{
	return READ_ONCE(srq->rq.q.slots) / srq->rq.stride;
}

/*
 * As weft_rqq_pop(). Sets *@low if fewer entries wait now than the limit that is
 * armed, and disarms it: the host raises the limit event. It comes once an arming.
 */
int weft_srqc_pop(struct weft_srqc *srq, struct weft_recv *recv, bool *low);

/*
 * What the host does after dropping the SRQ's lock: it raises the limit event, and rings the
 * doorbell of a waiting QP that has an entry now. It holds that QP before it drops the lock.
 */
struct weft_srq_news {
	bool low;
	struct weft_qpc *turn;		/* or NULL */
};

/*
 * Takes the oldest entry for @qp: as weft_rqq_pop(). With @wait a QP that gets none is listed, and
 * the next post kicks. Listed QPs get entries in order: @qp keeps its place until it has got one,
 * or weft_srqc_leave().
 */
int weft_srqc_take(struct weft_srqc *srq, struct weft_qpc *qp, bool wait, struct weft_recv *recv,
		   struct weft_srq_news *news);
/* @qp, listed or not, wants no entry any more. */
void weft_srqc_leave(struct weft_srqc *srq, struct weft_qpc *qp, struct weft_srq_news *news);
/* The first of those listed, if there is an entry for it; else NULL. */
struct weft_qpc *weft_srqc_turn(const struct weft_srqc *srq);

/*
 * Arms the limit event; 0 disarms it. False, and nothing changed, if the SRQ holds
 * fewer entries than @limit. Sets *@low as above if so few wait already.
 */
bool weft_srqc_arm(struct weft_srqc *srq, u32 limit, bool *low);

/* As weft_ringq_move(); -EINVAL, too, if the limit that is armed does not fit. */
int weft_srqc_move(struct weft_srqc *srq, struct weft_ring_move *m);

#endif
