// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "ring.h"

#define WEFT_ASSERT_SIZE(type, size) static_assert(sizeof(struct type) == (size), #type);
#define WEFT_ASSERT_OFFSET(type, field, off) \
	static_assert(offsetof(struct type, field) == (off), #type "." #field);
WEFT_ABI_ASSERTS(WEFT_ASSERT_SIZE, WEFT_ASSERT_OFFSET)
static_assert(sizeof(struct weft_ring) <= WEFT_RING_DATA, "the header ends before the entries");

/* Entries that are moved under the queue's lock: some microseconds' worth. */
#define MOVED_AT_ONCE	256
/* Copying outruns whoever adds entries: the second is short, the third has nothing to do. */
#define MOVE_ROUNDS	8

void weft_ringq_init(struct weft_ringq *q, void *mem, u32 slots)
{
	q->ring = mem;
	q->slots = slots;
	q->idx = 0;
	q->asleep = false;
}

s32 weft_ringq_filled(const struct weft_ringq *q, u32 from)
{
	/* Acquire pairs with the user's release of user_idx: entries first. */
	u32 prod = smp_load_acquire(&q->ring->user_idx);
	u32 ahead = prod - q->idx;

	if (ahead > q->slots || prod - from > ahead)
		return -1;
	return (s32)(prod - from);
}

void weft_ringq_copy(const struct weft_ringq *q, u32 from, void *dst, u32 n)
{
	u32 to_end = q->slots - (from & (q->slots - 1));
	u32 first = min_t(u32, n, to_end);

	/* As nearly all entries are. */
	if (likely(n == 1)) {
		memcpy(dst, weft_ringq_slot(q, from), WEFT_SLOT_SIZE);
		return;
	}
	memcpy(dst, weft_ringq_slot(q, from), (size_t)first * WEFT_SLOT_SIZE);
	if (first < n)
		memcpy((u8 *)dst + (size_t)first * WEFT_SLOT_SIZE, weft_ringq_slot(q, 0),
		       (size_t)(n - first) * WEFT_SLOT_SIZE);
}

void weft_ring_move_copy(struct weft_ring_move *m)
{
	const struct weft_ringq new = { .ring = m->mem, .slots = m->slots };

	for (; m->next != m->to; m->next++)
		memcpy(weft_ringq_slot(&new, m->next), weft_ringq_slot(&m->old, m->next),
		       WEFT_SLOT_SIZE);
}

/* The first of @n entries from @from on that is not copied yet. */
static u32 first_left(const struct weft_ring_move *m, u32 from, u32 n)
{
	/* The consumer may have passed some since, the producer added some. */
	return from - m->from <= m->next - m->from && m->next - from <= n ? m->next : from;
}

int weft_ringq_move(struct weft_ringq *q, struct weft_ring_move *m, u32 from, u32 n, u32 user_idx)
{
	u32 next;

	if (n > q->slots || n > m->slots)
		return -EINVAL;
	next = first_left(m, from, n);
	m->old = *q;
	m->from = from;
	m->next = next;
	m->to = from + n;
	if (m->to - next > MOVED_AT_ONCE)
		return m->rounds++ < MOVE_ROUNDS ? -EAGAIN : -EBUSY;
	weft_ring_move_copy(m);
	q->ring = m->mem;
	q->slots = m->slots;
	q->ring->user_idx = user_idx;
	q->ring->arm = READ_ONCE(m->old.ring->arm);
	q->ring->kern_idx = q->idx;
	if (q->asleep)
		WRITE_ONCE(q->ring->flags, WEFT_RING_KICK);
	return 0;
}

void weft_ringq_free(struct weft_ringq *q, u32 n)
{
	q->idx += n;
	/* Pairs with the producer's acquire of kern_idx before it reuses slots. */
	smp_store_release(&q->ring->kern_idx, q->idx);
}

void weft_ringq_sleep(struct weft_ringq *q)
{
	if (!q->asleep)
		WRITE_ONCE(q->ring->flags, WEFT_RING_KICK);
	q->asleep = true;
	/* Pairs with the producer's barrier between user_idx and the look at the flag. */
	smp_mb();
}

void weft_ringq_wake(struct weft_ringq *q)
{
	if (q->asleep)
		WRITE_ONCE(q->ring->flags, 0);
	q->asleep = false;
}
