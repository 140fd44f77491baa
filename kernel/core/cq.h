/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Completion queue: publishing an entry and deciding whether the consumer is
 * to be woken. Locking: the host's CQ lock around every function.
 */
#ifndef WEFT_CORE_CQ_H
#define WEFT_CORE_CQ_H

#include "ring.h"

struct weft_cqc {
	struct weft_ringq q;		/* idx: our producer index */
	bool overflow;			/* an entry was lost: nothing is published any more */
};

enum weft_cq_push {
	WEFT_CQ_QUIET,			/* published */
	WEFT_CQ_WAKE,			/* published, and the armed consumer is to be told */
	WEFT_CQ_OVERFLOW,		/* no room: first time; the host reports the CQ error
					 * and moves its QPs to error */
	WEFT_CQ_DEAD,			/* no room, known already */
};

void weft_cqc_init(struct weft_cqc *cq, void *mem, u32 entries);

/* Publishes *@e: entry, index (release), full barrier, test-and-clear of arm. */
enum weft_cq_push weft_cqc_push(struct weft_cqc *cq, const struct weft_cqe *e);

/*
 * Goes on in the ring at @mem, zeroed, of @entries: false, and all is as before,
 * if what waits does not fit, or the CQ is dead.
 */
bool weft_cqc_move(struct weft_cqc *cq, void *mem, u32 entries);

/* Kernel consumers: takes the oldest entry; false when empty. */
bool weft_cqc_poll(struct weft_cqc *cq, struct weft_cqe *e);

/* Kernel consumers: arms; true if entries wait already (missed events). */
bool weft_cqc_arm(struct weft_cqc *cq, u32 how);

#endif
