/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* CRC32c (Castagnoli), as RFC 5044 section 4.4 takes it from iSCSI. */
#ifndef WEFTSPEC_CRC32C_H
#define WEFTSPEC_CRC32C_H

#include <stdint.h>
#include <stddef.h>

#define CRC32C_INIT 0xffffffffu

/* Folds more bytes into a running remainder that began as CRC32C_INIT. */
uint32_t crc32c_update(uint32_t crc, const void *buf, size_t len);

/* The value of a whole buffer: its wire form is least significant byte first. */
uint32_t crc32c(const void *buf, size_t len);

#endif
