// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <endian.h>
#include <string.h>

#include "pattern.h"

uint64_t pattern_mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ULL;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

/* Both sides must agree, whatever their byte order. */
static uint64_t word(uint64_t key, size_t n)
{
	return htole64(pattern_mix(key + n * 0xd1342543de82ef95ULL));
}

void pattern_fill(uint8_t *p, size_t len, uint64_t key)
{
	size_t n = 0;
	uint64_t w;

	for (; len >= sizeof(w); len -= sizeof(w), p += sizeof(w)) {
		w = word(key, n++);
		memcpy(p, &w, sizeof(w));
	}
	w = word(key, n);
	memcpy(p, &w, len);
}

uint8_t pattern_byte(uint64_t key, size_t offset)
{
	uint64_t w = word(key, offset / sizeof(w));

	return ((const uint8_t *)&w)[offset % sizeof(w)];
}

size_t pattern_check(const uint8_t *p, size_t len, uint64_t key)
{
	size_t at = 0;
	uint64_t w, got;

	for (; len - at >= sizeof(w); at += sizeof(w)) {
		w = word(key, at / sizeof(w));
		memcpy(&got, p + at, sizeof(got));
		if (got != w)
			break;
	}
	while (at < len && p[at] == pattern_byte(key, at))
		at++;
	return at;
}
