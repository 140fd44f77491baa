/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Seeded choices: the only source of randomness in these tests (splitmix64). */
#ifndef STACKS_RNG_H
#define STACKS_RNG_H

#include "../../kernel/proto/port.h"

struct rng {
	u64 s;
};

static inline u64 rng_next(struct rng *r)
{
	u64 z = r->s += 0x9E3779B97F4A7C15ull;

	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
	z = (z ^ z >> 27) * 0x94D049BB133111EBull;
	return z ^ z >> 31;
}

/* 0 to @n - 1; @n > 0. */
static inline u32 rng_below(struct rng *r, u32 n)
{
	return (u32)(rng_next(r) % n);
}

/* 1 to @n. */
static inline u32 rng_upto(struct rng *r, u32 n)
{
	return 1 + rng_below(r, n);
}

static inline void rng_fill(struct rng *r, void *p, size_t n)
{
	u8 *b = p;
	size_t i;
	u64 v = 0;

	for (i = 0; i < n; i++, v >>= 8) {
		if (!(i & 7))
			v = rng_next(r);
		b[i] = (u8)v;
	}
}

#endif
