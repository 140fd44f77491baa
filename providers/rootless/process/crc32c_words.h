/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * CRC32c by an instruction that sums 8 octets, for crc32c_x86.h and crc32c_arm64.h. They define
 *   SUM_TARGET, sum_8(), sum_4(), sum_2(), sum_1()	the instruction, and what it needs
 *   MUL_TARGET, multiply()				a carry-less product of 32 and 32 bits
 *
 * Octets are a polynomial over GF(2), its highest power first; P is CRC32c's. A remainder
 * modulo P is reflected: bit i is the coefficient of x^(31 - i). 8 octets W are reflected, too: bit
 * i is that of x^(63 - i). sum_8(c, W) is (c x^32 + W) x^32 mod P.
 *
 * multiply(a, b), read as 8 octets, is a b x, and sum_8(0, that) is a b x^33 mod P. So to multiply
 * by OVER(n) = x^(8n - 33) mod P is to multiply by x^8n: to move a remainder over n more octets.
 */
#ifndef WEFT_CRC32C_WORDS_H
#define WEFT_CRC32C_WORDS_H

#include "crc32c.h"

/*
 * The instruction takes three cycles, but one can start in each: three streams of octets are summed
 * side by side. With few octets, joining the streams takes longer than they save.
 */
#define STREAM_MAX	1024
#define STREAMS_MIN	96

/* The multipliers, from that of the largest n down to n = 0, which is not used. */
static u64 over[2 * STREAM_MAX / 8 + 1];
#define OVER(n) over[ARRAY_SIZE(over) - 1 - (n) / 8]

/*
 * Copies octets and returns them. The program may change them at any time, so they are read once:
 * the asm keeps the compiler from reading them again. @copy is a constant; if false, nothing is
 * written.
 */
#define DEFINE_MOVE(n, type)						\
static __always_inline type move_##n(u8 *to, const u8 *from, bool copy)	\
{									\
	typedef type word __attribute__((aligned(1), may_alias));	\
	type v = *(const word *)from;					\
									\
	if (copy) {							\
		__asm__("" : "+r"(v));					\
		*(word *)to = v;					\
	}								\
	return v;							\
}
DEFINE_MOVE(8, u64)
DEFINE_MOVE(4, u32)
DEFINE_MOVE(2, u16)
DEFINE_MOVE(1, u8)

SUM_TARGET static __always_inline u32 sum_words(u64 crc, u8 *to, const u8 *from, size_t n,
						bool copy)
{
	size_t i;

	for (i = 0; i + 8 <= n; i += 8)
		crc = sum_8(crc, move_8(to + i, from + i, copy));
	if (n & 4) {
		crc = sum_4(crc, move_4(to + i, from + i, copy));
		i += 4;
	}
	if (n & 2) {
		crc = sum_2(crc, move_2(to + i, from + i, copy));
		i += 2;
	}
	if (n & 1)
		crc = sum_1(crc, move_1(to + i, from + i, copy));
	return (u32)crc;
}

SUM_TARGET static u32 sum_by_words(u32 crc, const void *p, size_t n)
{
	return sum_words(crc, (u8 *)p, p, n, false);
}

SUM_TARGET static u32 copy_by_words(u32 crc, void *to, const void *from, size_t n)
{
	return sum_words(crc, to, from, n, true);
}

/* OVER(8) is x^31, and 8 octets of zeros multiply by x^64. */
SUM_TARGET static void fill_over(void)
{
	size_t n;

	OVER(8) = 1;
	for (n = 16; n <= 2 * STREAM_MAX; n += 8)
		OVER(n) = sum_8(OVER(n - 8), 0);
}

/* Three streams of @n octets, a multiple of 8 up to STREAM_MAX. */
MUL_TARGET static __always_inline u32 sum_streams(u32 crc, u8 *to, const u8 *from, size_t n,
						  bool copy)
{
	u64 a = crc, b = 0, c = 0;
	size_t i;

#pragma GCC unroll 4
	for (i = 0; i < n; i += 8) {
		a = sum_8(a, move_8(to + i, from + i, copy));
		b = sum_8(b, move_8(to + n + i, from + n + i, copy));
		c = sum_8(c, move_8(to + 2 * n + i, from + 2 * n + i, copy));
	}
	a = multiply(a, OVER(2 * n)) ^ multiply(b, OVER(n));
	return (u32)(sum_8(0, a) ^ c);
}

MUL_TARGET static __always_inline u32 sum_thirds(u32 crc, u8 *to, const u8 *from, size_t n,
						 bool copy)
{
	size_t i, each;

	for (i = 0; n - i >= STREAMS_MIN; i += 3 * each) {
		each = min_t(size_t, (n - i) / 24 * 8, STREAM_MAX);
		crc = sum_streams(crc, to + i, from + i, each, copy);
	}
	return sum_words(crc, to + i, from + i, n - i, copy);
}

/* Apart, so that a few octets are summed without saving registers. */
MUL_TARGET static noinline u32 sum_many(u32 crc, const void *p, size_t n)
{
	return sum_thirds(crc, (u8 *)p, p, n, false);
}

MUL_TARGET static u32 sum_by_streams(u32 crc, const void *p, size_t n)
{
	return n < STREAMS_MIN ? sum_words(crc, (u8 *)p, p, n, false) : sum_many(crc, p, n);
}

MUL_TARGET static u32 copy_by_streams(u32 crc, void *to, const void *from, size_t n)
{
	return n < STREAMS_MIN ? copy_by_words(crc, to, from, n) :
				 sum_thirds(crc, to, from, n, true);
}

#endif
