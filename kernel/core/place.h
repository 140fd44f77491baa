/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Copies received octets into a region's memory, for hosts that may write to it directly. Programs
 * poll the last octets of a peer's Write, so these are stored last.
 */
#ifndef WEFT_CORE_PLACE_H
#define WEFT_CORE_PLACE_H

#include "../proto/port.h"

struct weft_cur;

/* The octets at the end of an FPDU that a program may poll. */
#define WEFT_PLACE_TAIL	sizeof(u64)

/* Call before the first piece of an FPDU: all of it becomes visible after earlier FPDUs. */
static inline void weft_place_begin(void)
{
	/* Pairs with a poller's read barrier between two messages. */
	smp_wmb();
}

/*
 * Of the @n octets at @to, 1 or more but less than 8: the first that one aligned store takes, so
 * that no reader sees a part of a 4-octet flag.
 */
static inline u32 weft_place_unit(const void *to, u32 n)
{
	u32 unit = (uintptr_t)to & 1 ? 1 : (uintptr_t)to & 2 ? 2 : 4;

	return n >= unit ? unit : n >= 2 ? 2 : 1;
}

/*
 * Copies the next @n octets to @to; @behind more of the FPDU follow in other pieces. A piece that
 * others follow ends at a multiple of 8. The last aligned 8 octets of the FPDU, and those after
 * them, are stored after all others.
 */
void weft_place_piece(void *to, struct weft_cur *from, u32 n, u32 behind);

#endif
