/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The ways of x86, for crc32c.c. */
#ifndef WEFT_CRC32C_X86_H
#define WEFT_CRC32C_X86_H

#include <immintrin.h>

#include "crc32c.h"

#define SUM_TARGET __attribute__((target("sse4.2")))
#define MUL_TARGET __attribute__((target("sse4.2,pclmul")))

#define sum_8(crc, v) _mm_crc32_u64(crc, v)
#define sum_4(crc, v) _mm_crc32_u32((u32)(crc), v)
#define sum_2(crc, v) _mm_crc32_u16((u32)(crc), v)
#define sum_1(crc, v) _mm_crc32_u8((u32)(crc), v)

MUL_TARGET static __always_inline u64 multiply(u64 a, u64 b)
{
	__m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)a),
					       _mm_cvtsi64_si128((long long)b), 0);

	return (u64)_mm_cvtsi128_si64(product);
}

#include "crc32c_words.h"

#define WIDE		32
#define WIDE_TARGET	__attribute__((target("sse4.2,pclmul,avx2,vpclmulqdq")))
#define WIDE_NAME(name)	name##_32
#define WIDE_CLMUL(a, b, which) \
	((reg_32)_mm256_clmulepi64_epi128((__m256i)(a), (__m256i)(b), which))
#define WIDE_BROADCAST(v) ((reg_32)_mm256_broadcastsi128_si256(v))
#define WIDE_LANE(v, i)	_mm256_extracti128_si256((__m256i)(v), i)
#include "crc32c_wide.h"
#undef WIDE
#undef WIDE_TARGET
#undef WIDE_NAME
#undef WIDE_CLMUL
#undef WIDE_BROADCAST
#undef WIDE_LANE

#define WIDE		64
#define WIDE_TARGET	__attribute__((target("sse4.2,pclmul,avx2,avx512f,vpclmulqdq")))
#define WIDE_NAME(name)	name##_64
#define WIDE_CLMUL(a, b, which) \
	((reg_64)_mm512_clmulepi64_epi128((__m512i)(a), (__m512i)(b), which))
#define WIDE_BROADCAST(v) ((reg_64)_mm512_broadcast_i32x4(v))
#define WIDE_LANE(v, i)	_mm512_extracti32x4_epi32((__m512i)(v), i)
#include "crc32c_wide.h"

/* These may be called before the constructor that tells the compiler's library of the CPU. */
static bool prepare_words(void)
{
	__builtin_cpu_init();
	return __builtin_cpu_supports("sse4.2");
}

static bool prepare_streams(void)
{
	if (!prepare_words() || !__builtin_cpu_supports("pclmul"))
		return false;
	fill_over();
	return true;
}

static bool prepare_32(void)
{
	return prepare_streams() && __builtin_cpu_supports("avx2") &&
	       __builtin_cpu_supports("vpclmulqdq");
}

static bool prepare_64(void)
{
	return prepare_32() && __builtin_cpu_supports("avx512f");
}

#define MACHINE_WAYS							\
	{ "VPCLMULQDQ with AVX-512", prepare_64, sum_by_64, copy_by_64 },	\
	{ "VPCLMULQDQ with AVX2", prepare_32, sum_by_32, copy_by_32 },	\
	{ "PCLMULQDQ and crc32", prepare_streams, sum_by_streams, copy_by_streams }, \
	{ "crc32", prepare_words, sum_by_words, copy_by_words },

#endif
