/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Bytes that a key determines: to be filled in on one side and checked on the other. */
#ifndef PATTERN_H
#define PATTERN_H

#include <stddef.h>
#include <stdint.h>

/* A well-mixed number out of any other (splitmix64's output function). */
uint64_t pattern_mix(uint64_t x);

void pattern_fill(uint8_t *p, size_t len, uint64_t key);

/* Returns the offset of the first byte that is wrong, @len if there is none. */
size_t pattern_check(const uint8_t *p, size_t len, uint64_t key);

/* The byte that belongs at @offset. */
uint8_t pattern_byte(uint64_t key, size_t offset);

#endif
