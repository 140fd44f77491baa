/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Shared by the fuzz targets. */
#ifndef WEFT_FUZZ_H
#define WEFT_FUZZ_H

#include <stdio.h>
#include <stdlib.h>
#include "../../kernel/proto/port.h"

#define FUZZ_ASSERT(x) do {						\
	if (!(x)) {							\
		fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #x); \
		abort();						\
	}								\
} while (0)

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

/* The helpers are not fuzzed: no coverage, no checks, full speed. */
#define FUZZ_HELPER							\
	__attribute__((no_sanitize("address", "undefined", "coverage"), __noinline__, unused))

/* For a target's own loops: checked, but without coverage feedback. */
#define FUZZ_HOST __attribute__((no_sanitize("coverage")))

/* CRC32c, small and slow. */
FUZZ_HELPER static u32 fuzz_crc32c(u32 crc, const void *src, size_t len)
{
	const u8 *p = src;

	while (len--) {
		crc ^= *p++;
		for (int i = 0; i < 8; i++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78u : 0);
	}
	return crc;
}

FUZZ_HELPER static u64 fuzz_hash(u64 h, const void *src, size_t len)
{
	const u8 *p = src;

	while (len--)
		h = (h ^ *p++) * 0x100000001B3ull;
	return h;
}

/* Lengths of pieces: one octet each if @cut is 0, else a mix around @cut. */
FUZZ_HELPER static u32 fuzz_step(u32 *state, u32 cut)
{
	*state = *state * 1664525 + 1013904223;
	if (!cut)
		return 1;
	return (*state >> 16) % (cut < 128 ? cut + 1 : cut * 16);
}

#endif
