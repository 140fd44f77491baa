// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <stdlib.h>

#include "shared.h"

void ring_make(struct shared *s, uint32_t slots, uint32_t idx)
{
	/* Exactly as long as it must be: ASan sees the first byte beyond. */
	assert_int_equal(posix_memalign(&s->mem, 4096, weft_ring_size(slots)), 0);
	memset(s->mem, 0, weft_ring_size(slots));
	weft_uring_init(&s->user, s->mem, slots);
	weft_ringq_init(&s->kern, s->mem, slots);
	s->user.idx = idx;
	s->user.ring->user_idx = idx;
	s->kern.idx = idx;
	s->kern.ring->kern_idx = idx;
}

void ring_free(struct shared *s)
{
	free(s->mem);
}

void ring_fill_guard(struct shared *s)
{
	memset(s->user.entries, GUARD, (size_t)s->user.slots * WEFT_SLOT_SIZE);
}

void ring_check_guard(const struct shared *s, uint32_t idx, uint32_t n)
{
	uint32_t i, b;

	for (i = n; i < s->user.slots; i++) {
		const uint8_t *slot = weft_uring_slot(&s->user, idx + i);

		for (b = 0; b < WEFT_SLOT_SIZE; b++)
			assert_int_equal(slot[b], GUARD);
	}
}
