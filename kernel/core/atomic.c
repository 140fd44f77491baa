// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "atomic.h"

/*
 * Adds field by field: a bit of @boundaries ends a field, and the carry out of that bit is lost.
 * The sum without the fields' top bits carries nothing beyond a field; the top bits are added
 * without a carry.
 */
static u64 add_fields(u64 a, u64 b, u64 boundaries)
{
	u64 low = (a & ~boundaries) + (b & ~boundaries);

	return low ^ ((a ^ b) & boundaries);
}

u64 weft_atomic_result(const struct weft_atomic_req *r, u64 was)
{
	if (r->code == WEFT_ATOMIC_FETCH_ADD)
		return add_fields(was, r->operand, r->operand_mask);
	if ((was ^ r->compare) & r->compare_mask)
		return was;
	return (was & ~r->operand_mask) | (r->operand & r->operand_mask);
}

u64 weft_atomic_run(const struct weft_atomic_req *r, u64 *word)
{
	u64 was = READ_ONCE(*word);

	while (!try_cmpxchg64(word, &was, weft_atomic_result(r, was)))
		;
	return was;
}
