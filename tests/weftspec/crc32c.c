/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "crc32c.h"

#define POLY_REFLECTED 0x82f63b78u

static uint32_t table[256];

static void fill_table(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t c = i;

		for (int bit = 0; bit < 8; bit++)
			c = c & 1 ? c >> 1 ^ POLY_REFLECTED : c >> 1;
		table[i] = c;
	}
}

uint32_t crc32c_update(uint32_t crc, const void *buf, size_t len)
{
	const uint8_t *p = buf;

	if (!table[1])
		fill_table();
	while (len--)
		crc = crc >> 8 ^ table[(crc ^ *p++) & 0xff];
	return crc;
}

uint32_t crc32c(const void *buf, size_t len)
{
	return ~crc32c_update(CRC32C_INIT, buf, len);
}
