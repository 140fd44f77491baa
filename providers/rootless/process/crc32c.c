// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "crc32c.h"

#if defined(__x86_64__)
#include "crc32c_x86.h"
#elif defined(__AARCH64EL__)
#include "crc32c_arm64.h"
#else
#define MACHINE_WAYS
#endif

/* ---- by tables, on any machine ---- */

#define POLY 0x82F63B78u	/* 0x1EDC6F41 reflected */

/* slice[k][b]: the effect of octet b on the CRC when k more octets follow it. */
static u32 slice[8][256];

static u32 one_octet(u32 crc)
{
	for (int bit = 0; bit < 8; bit++)
		crc = crc >> 1 ^ (crc & 1 ? POLY : 0);
	return crc;
}

static bool prepare_table(void)
{
	for (u32 b = 0; b < 256; b++)
		slice[0][b] = one_octet(b);
	for (int k = 1; k < 8; k++)
		for (u32 b = 0; b < 256; b++)
			slice[k][b] = slice[k - 1][b] >> 8 ^ slice[0][slice[k - 1][b] & 0xFF];
	return true;
}

static u32 load32(const u8 *p)
{
	return (u32)p[3] << 24 | (u32)p[2] << 16 | (u32)p[1] << 8 | p[0];
}

static u32 slice_four(u32 v, int k)
{
	return slice[k + 3][v & 0xFF] ^ slice[k + 2][v >> 8 & 0xFF] ^
	       slice[k + 1][v >> 16 & 0xFF] ^ slice[k][v >> 24];
}

static u32 sum_by_table(u32 crc, const void *src, size_t n)
{
	const u8 *p = src;

	for (; n >= 8; n -= 8, p += 8)
		crc = slice_four(crc ^ load32(p), 4) ^ slice_four(load32(p + 4), 0);
	for (; n; n--, p++)
		crc = crc >> 8 ^ slice[0][(crc ^ *p) & 0xFF];
	return crc;
}

/* The source may change meanwhile. */
static u32 copy_by_table(u32 crc, void *to, const void *from, size_t n)
{
	memcpy(to, from, n);
	return sum_by_table(crc, to, n);
}

/* ---- the choice ---- */

const struct crc32c_way crc32c_ways[] = {
	MACHINE_WAYS
	{ "tables", prepare_table, sum_by_table, copy_by_table },
	{ NULL, NULL, NULL, NULL },
};

/* Not by a constructor: the program's may run before it, and sum. */
const struct crc32c_way *crc32c_way(void)
{
	static const struct crc32c_way *chosen;
	const struct crc32c_way *w = __atomic_load_n(&chosen, __ATOMIC_ACQUIRE);

	if (likely(w))
		return w;
	/* Threads that do this at the same time write the same values. */
	for (w = crc32c_ways; !w->prepare(); w++)
		;
	__atomic_store_n(&chosen, w, __ATOMIC_RELEASE);
	return w;
}

u32 weft_crc32c(u32 crc, const void *p, size_t n)
{
	return crc32c_way()->sum(crc, p, n);
}

u32 weft_crc32c_copy(u32 crc, void *to, const void *from, size_t n)
{
	return crc32c_way()->copy(crc, to, from, n);
}
