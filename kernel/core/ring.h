/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A shared ring as its owner in the stack sees it: the mapping, and the index
 * that belongs to us. Nothing that the other side can write is trusted: its
 * index is read once and judged, an entry is copied once and judged.
 */
#ifndef WEFT_CORE_RING_H
#define WEFT_CORE_RING_H

#include "../proto/port.h"
#include "../uapi/rdma/weft-abi.h"

struct weft_ringq {
	struct weft_ring *ring;		/* shared with the user, or private to a kernel consumer */
	u32 slots;			/* power of two, at least 1; 0: the queue does not exist */
	u32 idx;			/* ours: the truth of ring->kern_idx */
	bool asleep;			/* WEFT_RING_KICK is set */
};

/* @mem: zeroed, weft_ring_size(@slots) bytes. */
void weft_ringq_init(struct weft_ringq *q, void *mem, u32 slots);

static inline size_t weft_ring_size(u32 slots)
{
	return WEFT_RING_DATA + (size_t)slots * WEFT_SLOT_SIZE;
}

static inline void *weft_ringq_slot(const struct weft_ringq *q, u32 idx)
{
	return (u8 *)q->ring + WEFT_RING_DATA + (size_t)(idx & (q->slots - 1)) * WEFT_SLOT_SIZE;
}

/*
 * Slots that the user has filled beyond @from (acquire), or -1 if its index is
 * out of range: @from is our read position, between idx and the user's.
 */
s32 weft_ringq_filled(const struct weft_ringq *q, u32 from);

/* Copies @n slots from position @from on, across the wrap. */
void weft_ringq_copy(const struct weft_ringq *q, u32 from, void *dst, u32 n);

/*
 * To another ring, at @mem (zeroed, @slots of them): most entries are copied while the queue goes
 * on in the old one, so that its lock is never held for long. The rest is the queue's business.
 */
struct weft_ring_move {
	void *mem;
	u32 slots;
	struct weft_ringq old;		/* where weft_ring_move_copy() finds them */
	u32 from, next, to;		/* copied: [from, next); to be copied: [next, to) */
	u32 rounds;			/* of copying, so far */
};

/*
 * Goes on in the ring of *@m with the @n entries from @from on, the arm word, and @user_idx as the
 * user's index, and returns 0. -EAGAIN: weft_ring_move_copy() first, and again. -EINVAL, and
 * nothing changed: they do not fit, or make no sense. -EBUSY, likewise: they change faster than
 * they can be copied. The user keeps its hands off meanwhile; if it does not, it is the only one
 * that is hurt. Locking: the queue's.
 */
int weft_ringq_move(struct weft_ringq *q, struct weft_ring_move *m, u32 from, u32 n, u32 user_idx);

/* Without the queue's lock; the old ring stays as long as that. */
void weft_ring_move_copy(struct weft_ring_move *m);

/* Gives @n slots back to the user (release). */
void weft_ringq_free(struct weft_ringq *q, u32 n);

/*
 * Asks the user to kick when it adds to the ring: sets WEFT_RING_KICK, full
 * barrier (pairs with the one between the user's store to user_idx and its load
 * of flags). The caller looks at weft_ringq_filled() again afterwards, and wakes
 * if there is something.
 */
void weft_ringq_sleep(struct weft_ringq *q);
void weft_ringq_wake(struct weft_ringq *q);

#endif
