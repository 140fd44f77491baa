/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * CRC32c for the engine's user-space hosts: weft_crc32c() and weft_crc32c_copy() of port.h, by the
 * fastest way that the CPU has, and all ways for the test that compares them.
 */
#ifndef WEFT_CRC32C_H
#define WEFT_CRC32C_H

#include "port.h"

struct crc32c_way {
	const char *name;		/* NULL ends the list */
	bool (*prepare)(void);		/* false: the CPU lacks it; called before the others */
	u32 (*sum)(u32 crc, const void *p, size_t n);
	u32 (*copy)(u32 crc, void *to, const void *from, size_t n);
};

/* Of this architecture, the fastest first. Every CPU has the last one. */
extern const struct crc32c_way crc32c_ways[];

/* The first of them that the CPU has. */
const struct crc32c_way *crc32c_way(void);

#endif
