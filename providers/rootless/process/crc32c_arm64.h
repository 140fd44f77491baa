/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The ways of 64-bit ARM, for crc32c.c. */
#ifndef WEFT_CRC32C_ARM64_H
#define WEFT_CRC32C_ARM64_H

#include <arm_acle.h>
#include <arm_neon.h>
#include <sys/auxv.h>

#include "crc32c.h"

#define SUM_TARGET __attribute__((target("+crc")))
#define MUL_TARGET __attribute__((target("+crc+crypto")))

#define sum_8(crc, v) __crc32cd((u32)(crc), v)
#define sum_4(crc, v) __crc32cw((u32)(crc), v)
#define sum_2(crc, v) __crc32ch((u32)(crc), v)
#define sum_1(crc, v) __crc32cb((u32)(crc), v)

MUL_TARGET static __always_inline u64 multiply(u64 a, u64 b)
{
	return vgetq_lane_u64(vreinterpretq_u64_p128(vmull_p64(a, b)), 0);
}

#include "crc32c_words.h"

static bool prepare_words(void)
{
	return getauxval(AT_HWCAP) & HWCAP_CRC32;
}

static bool prepare_streams(void)
{
	if (!prepare_words() || !(getauxval(AT_HWCAP) & HWCAP_PMULL))
		return false;
	fill_over();
	return true;
}

#define MACHINE_WAYS							\
	{ "PMULL and crc32c", prepare_streams, sum_by_streams, copy_by_streams }, \
	{ "crc32c", prepare_words, sum_by_words, copy_by_words },

#endif
