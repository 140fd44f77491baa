// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* CRC32c by the x86 instruction if the CPU has it, else by slicing by eight. */
#include "crc32c.h"

#define POLY 0x82F63B78u	/* 0x1EDC6F41 reflected */

/* slice[k][b]: the effect of octet b on the CRC when k more octets follow it. */
static u32 slice[8][256];

static bool have_hw;

static u32 load32(const u8 *p)
{
	return (u32)p[3] << 24 | (u32)p[2] << 16 | (u32)p[1] << 8 | p[0];
}

static u32 one_octet(u32 crc)
{
	for (int bit = 0; bit < 8; bit++)
		crc = crc >> 1 ^ (crc & 1 ? POLY : 0);
	return crc;
}

static void init_slices(void)
{
	for (u32 b = 0; b < 256; b++)
		slice[0][b] = one_octet(b);
	for (int k = 1; k < 8; k++)
		for (u32 b = 0; b < 256; b++)
			slice[k][b] = slice[k - 1][b] >> 8 ^ slice[0][slice[k - 1][b] & 0xFF];
}

static u32 slice_four(u32 v, int k)
{
	return slice[k + 3][v & 0xFF] ^ slice[k + 2][v >> 8 & 0xFF] ^
	       slice[k + 1][v >> 16 & 0xFF] ^ slice[k][v >> 24];
}

static u32 slicing(u32 crc, const void *src, size_t len)
{
	const u8 *p = src;

	for (; len >= 8; len -= 8, p += 8)
		crc = slice_four(crc ^ load32(p), 4) ^ slice_four(load32(p + 4), 0);
	for (; len; len--, p++)
		crc = crc >> 8 ^ slice[0][(crc ^ *p) & 0xFF];
	return crc;
}

#ifdef __x86_64__
#include <nmmintrin.h>

/*
 * The instruction takes three cycles, but one can start in each: three streams run side by side,
 * and are joined by moving the earlier ones over the octets that follow.
 */
#define LONG	1024
#define SHORT	128

struct shift {
	u32 t[4][256];
};

static struct shift over_long, over_short;

static u32 shift_over(const struct shift *s, u32 crc)
{
	return s->t[0][crc & 0xFF] ^ s->t[1][crc >> 8 & 0xFF] ^
	       s->t[2][crc >> 16 & 0xFF] ^ s->t[3][crc >> 24];
}

/*
 * Maps each octet to its CRC after @n zero octets. CRCs are linear: those of values with several
 * bits follow from others. Each process that the library is preloaded into computes this.
 */
static void init_shift(struct shift *s, size_t n)
{
	static const u8 zeros[LONG];

	for (int k = 0; k < 4; k++)
		for (u32 b = 1; b < 256; b++) {
			u32 low = b & -b;

			s->t[k][b] = b == low ? slicing(b << 8 * k, zeros, n) :
						s->t[k][b ^ low] ^ s->t[k][low];
		}
}

static u64 load64(const u8 *p)
{
	u64 v;

	memcpy(&v, p, sizeof(v));
	return v;
}

__attribute__((target("sse4.2")))
static u32 three_streams(u32 crc, const u8 *p, size_t n, const struct shift *s)
{
	u64 a = crc, b = 0, c = 0;

	for (size_t i = 0; i < n; i += 8) {
		a = _mm_crc32_u64(a, load64(p + i));
		b = _mm_crc32_u64(b, load64(p + n + i));
		c = _mm_crc32_u64(c, load64(p + 2 * n + i));
	}
	b ^= shift_over(s, (u32)a);
	return shift_over(s, (u32)b) ^ (u32)c;
}

__attribute__((target("sse4.2")))
u32 crc32c_hw(u32 crc, const void *src, size_t len)
{
	const u8 *p = src;
	u64 c;

	for (; len >= 3 * LONG; len -= 3 * LONG, p += 3 * LONG)
		crc = three_streams(crc, p, LONG, &over_long);
	for (; len >= 3 * SHORT; len -= 3 * SHORT, p += 3 * SHORT)
		crc = three_streams(crc, p, SHORT, &over_short);
	for (c = crc; len >= 8; len -= 8, p += 8)
		c = _mm_crc32_u64(c, load64(p));
	for (crc = (u32)c; len; len--, p++)
		crc = _mm_crc32_u8(crc, *p);
	return crc;
}

static void init_hw(void)
{
	__builtin_cpu_init();
	have_hw = __builtin_cpu_supports("sse4.2");
	init_shift(&over_long, LONG);
	init_shift(&over_short, SHORT);
}

#else
static void init_hw(void)
{
}

u32 crc32c_hw(u32 crc, const void *p, size_t len)
{
	return crc32c_slicing(crc, p, len);
}
#endif

/* The program's constructors may run before ours, and need the tables. */
static void init(void)
{
	static bool done;

	if (likely(__atomic_load_n(&done, __ATOMIC_ACQUIRE)))
		return;
	/* Threads that do this at the same time write the same values. */
	init_slices();
	init_hw();
	__atomic_store_n(&done, true, __ATOMIC_RELEASE);
}

bool crc32c_have_hw(void)
{
	init();
	return have_hw;
}

u32 crc32c_slicing(u32 crc, const void *p, size_t len)
{
	init();
	return slicing(crc, p, len);
}

u32 weft_crc32c(u32 crc, const void *p, size_t len)
{
	return crc32c_have_hw() ? crc32c_hw(crc, p, len) : crc32c_slicing(crc, p, len);
}
