/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a peer's atomic operation does to a word of this host's memory, RFC 7306 §5.1.
 *
 * The word is changed by the CPU's own compare-and-exchange of 64 bits (cmpxchg with lock on
 * x86). So an operation is atomic against every other one of any QP, device or CPU that changes
 * the word by an atomic instruction: IBV_ATOMIC_GLOB.
 */
#ifndef WEFT_CORE_ATOMIC_H
#define WEFT_CORE_ATOMIC_H

#include "../proto/rdmap.h"

static inline bool weft_atomic_is_known(u8 code)
{
	return code == WEFT_ATOMIC_FETCH_ADD || code == WEFT_ATOMIC_CMP_SWAP;
}

/* What @r, of a known code, makes of a word that is @was. */
u64 weft_atomic_result(const struct weft_atomic_req *r, u64 was);

/*
 * Does @r, of a known code, to *@word, which is aligned to 64 bits, writable, and may change at
 * any moment. Returns what the word was. No lock; any context.
 */
u64 weft_atomic_run(const struct weft_atomic_req *r, u64 *word);

#endif
