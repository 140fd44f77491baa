/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Completion queue: publishing an entry and deciding whether the consumer is
 * to be woken. No one else writes the words of the ring that are not the
 * consumer's. Locking: the host's CQ lock around every function.
 */
#ifndef WEFT_CORE_CQ_H
#define WEFT_CORE_CQ_H

#include "ring.h"

struct weft_cqc {
	struct weft_ringq q;		/* idx: our producer index */
	bool overflow;			/* an entry was lost: nothing is published any more */
	bool poll;			/* WEFT_RING_POLL is set */
};

enum weft_cq_push {
	WEFT_CQ_QUIET,			/* published */
	WEFT_CQ_WAKE,			/* published; wake the armed consumer */
	WEFT_CQ_OVERFLOW,		/* no room: first time; the host reports the CQ error
					 * and moves its QPs to error */
	WEFT_CQ_DEAD,			/* no room, known already */
};

void weft_cqc_init(struct weft_cqc *cq, void *mem, u32 entries);

/* Publishes *@e: entry, index (release), full barrier, test-and-clear of arm. */
enum weft_cq_push weft_cqc_push(struct weft_cqc *cq, const struct weft_cqe *e);

/* As if there had been no room: WEFT_CQ_OVERFLOW, or WEFT_CQ_DEAD. */
enum weft_cq_push weft_cqc_overflow(struct weft_cqc *cq);

/*
 * As weft_ringq_move(); -EINVAL, too, if the CQ is dead. Not beside weft_cqc_purge(), which puts
 * entries where others were copied.
 */
int weft_cqc_move(struct weft_cqc *cq, struct weft_ring_move *m);

/*
 * Sets or clears WEFT_RING_POLL: a consumer that finds nothing is to kick. The
 * flag moves along to another ring; an overflow clears it.
 */
void weft_cqc_say_poll(struct weft_cqc *cq, bool poll);

/* Kernel consumers: takes the oldest entry; false when empty. */
bool weft_cqc_poll(struct weft_cqc *cq, struct weft_cqe *e);

/* Kernel consumers: arms; true if entries wait already (missed events). */
bool weft_cqc_arm(struct weft_cqc *cq, u32 how);

/*
 * Kernel consumers: removes the entries for which @gone returns true; the others stay
 * in order. Not for a ring that a user can write to.
 */
void weft_cqc_purge(struct weft_cqc *cq, bool (*gone)(const struct weft_cqe *e, const void *arg),
		    const void *arg);

#endif
