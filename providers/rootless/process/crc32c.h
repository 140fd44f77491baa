/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * CRC32c for the engine's user-space hosts: weft_crc32c() of port.h, and both implementations for
 * the test that compares them.
 */
#ifndef WEFT_CRC32C_H
#define WEFT_CRC32C_H

#include "port.h"

/* By eight tables; on any machine. */
u32 crc32c_slicing(u32 crc, const void *p, size_t len);

/* By the CPU's instruction, three streams at once. Only if crc32c_have_hw(). */
bool crc32c_have_hw(void);
u32 crc32c_hw(u32 crc, const void *p, size_t len);

#endif
