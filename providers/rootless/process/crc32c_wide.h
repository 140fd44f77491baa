/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * CRC32c by folding registers of WIDE octets, for crc32c_x86.h, which includes this once for each
 * width and defines
 *   WIDE, WIDE_TARGET		the width, and the instructions that it needs
 *   WIDE_NAME(name)		a name of this width
 *   WIDE_CLMUL(a, b, which)	carry-less products of 8-octet halves, one for each 16 octets
 *   WIDE_BROADCAST(v)		16 octets, repeated
 *   WIDE_LANE(v, i)		16 octets of a register
 *
 * 16 octets, F the first 8 and S the others, are F x^64 + S. F OVER(n + 8) + S OVER(n), read as 16
 * octets, is that times x^8n modulo P: a product of 64 and 32 bits, read so, is x^33 times itself
 * (crc32c_words.h). So 16 octets are moved over n more, and added to the 16 that lie there.
 */
typedef u64 WIDE_NAME(reg) __attribute__((vector_size(WIDE)));

WIDE_TARGET static __always_inline WIDE_NAME(reg)
WIDE_NAME(move)(u8 *to, const void *from, bool copy)
{
	typedef WIDE_NAME(reg) word __attribute__((aligned(1), may_alias));
	WIDE_NAME(reg) v = *(const word *)from;

	if (copy) {
		__asm__("" : "+v"(v));
		*(word *)to = v;
	}
	return v;
}

/* What moves each 16 octets of a register over the @n that follow. */
WIDE_TARGET static __always_inline WIDE_NAME(reg) WIDE_NAME(by)(size_t n)
{
	return WIDE_BROADCAST(_mm_loadu_si128((const __m128i *)&OVER(n + 8)));
}

WIDE_TARGET static __always_inline WIDE_NAME(reg)
WIDE_NAME(fold)(WIDE_NAME(reg) v, WIDE_NAME(reg) by)
{
	return WIDE_CLMUL(v, by, 0x00) ^ WIDE_CLMUL(v, by, 0x11);
}

/* The remainder of @v: each 16 octets but the last are moved over those that follow. */
WIDE_TARGET static __always_inline u32 WIDE_NAME(reduce)(WIDE_NAME(reg) v)
{
	WIDE_NAME(reg) moved = WIDE_NAME(fold)(v, WIDE_NAME(move)(NULL, &OVER(WIDE - 8), false));
	__m128i sum = WIDE_LANE(v, WIDE / 16 - 1) ^ WIDE_LANE(moved, 0);

#if WIDE == 64
	sum ^= WIDE_LANE(moved, 1) ^ WIDE_LANE(moved, 2);
#endif
	return (u32)sum_8(sum_8(0, (u64)sum[0]), (u64)sum[1]);
}

/* Four registers side by side, since a product takes some cycles; then one. */
WIDE_TARGET static __always_inline u32
WIDE_NAME(sum_all)(u32 crc, u8 *to, const u8 *from, size_t n, bool copy)
{
	WIDE_NAME(reg) by_one, by_four, a, b, c, d;
	size_t i;

	if (n < 4 * WIDE)
		return copy ? copy_by_streams(crc, to, from, n) : sum_by_streams(crc, from, n);
	a = WIDE_NAME(move)(to, from, copy) ^ (WIDE_NAME(reg)){ crc };
	b = WIDE_NAME(move)(to + WIDE, from + WIDE, copy);
	c = WIDE_NAME(move)(to + 2 * WIDE, from + 2 * WIDE, copy);
	d = WIDE_NAME(move)(to + 3 * WIDE, from + 3 * WIDE, copy);
	by_one = WIDE_NAME(by)(WIDE);
	by_four = WIDE_NAME(by)(4 * WIDE);
	for (i = 4 * WIDE; i + 4 * WIDE <= n; i += 4 * WIDE) {
		u8 *t = to + i;
		const u8 *f = from + i;

		a = WIDE_NAME(fold)(a, by_four) ^ WIDE_NAME(move)(t, f, copy);
		b = WIDE_NAME(fold)(b, by_four) ^ WIDE_NAME(move)(t + WIDE, f + WIDE, copy);
		c = WIDE_NAME(fold)(c, by_four) ^
		    WIDE_NAME(move)(t + 2 * WIDE, f + 2 * WIDE, copy);
		d = WIDE_NAME(fold)(d, by_four) ^
		    WIDE_NAME(move)(t + 3 * WIDE, f + 3 * WIDE, copy);
	}
	a = WIDE_NAME(fold)(a, WIDE_NAME(by)(3 * WIDE)) ^
	    WIDE_NAME(fold)(b, WIDE_NAME(by)(2 * WIDE)) ^ WIDE_NAME(fold)(c, by_one) ^ d;
	for (; i + WIDE <= n; i += WIDE)
		a = WIDE_NAME(fold)(a, by_one) ^ WIDE_NAME(move)(to + i, from + i, copy);
	return sum_words(WIDE_NAME(reduce)(a), to + i, from + i, n - i, copy);
}

WIDE_TARGET static u32 WIDE_NAME(sum_by)(u32 crc, const void *p, size_t n)
{
	return WIDE_NAME(sum_all)(crc, (u8 *)p, p, n, false);
}

WIDE_TARGET static u32 WIDE_NAME(copy_by)(u32 crc, void *to, const void *from, size_t n)
{
	return WIDE_NAME(sum_all)(crc, to, from, n, true);
}
