// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "place.h"
#include "../proto/bytes.h"

static void store_unit(u8 *to, const u8 *from, u32 unit)
{
	u16 two;
	u32 four;

	switch (unit) {
	case 4:
		memcpy(&four, from, sizeof(four));
		WRITE_ONCE(*(u32 *)to, four);
		break;
	case 2:
		memcpy(&two, from, sizeof(two));
		WRITE_ONCE(*(u16 *)to, two);
		break;
	default:
		WRITE_ONCE(*to, *from);
	}
}

/* memcpy() may store the last octets first. */
static void copy_tail_last(void *to, struct weft_cur *from, u32 n)
{
	u32 tail = min_t(u32, n, (uintptr_t)(to + n) % WEFT_PLACE_TAIL + WEFT_PLACE_TAIL);
	u8 octets[2 * WEFT_PLACE_TAIL - 1], *end = to + n - tail;
	u32 i = 0, unit;
	u64 word;

	weft_cur_copy(from, to, n - tail);
	weft_cur_copy(from, octets, tail);
	/* Pairs with a poller's read barrier between the tail, a flag, and what precedes it. */
	smp_wmb();
	if (tail >= sizeof(u64) && (uintptr_t)end % sizeof(u64) == 0) {
		memcpy(&word, octets, sizeof(word));
		WRITE_ONCE(*(u64 *)end, word);
		i = sizeof(u64);
	}
	for (; i < tail; i += unit) {
		unit = weft_place_unit(end + i, tail - i);
		store_unit(end + i, octets + i, unit);
	}
}

void weft_place_piece(void *to, struct weft_cur *from, u32 n, u32 behind)
{
	/* The last aligned 8 octets may end this piece, and a few more begin the next. */
	if (behind >= WEFT_PLACE_TAIL)
		weft_cur_copy(from, to, n);
	else
		copy_tail_last(to, from, n);
}
