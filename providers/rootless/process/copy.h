/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Copying to and from memory of the program. */
#ifndef RL_COPY_H
#define RL_COPY_H

#include "port.h"

/*
 * Copies @n octets, which do not overlap, in ascending order. A reader who sees the last aligned 8
 * octets of @dst, or an octet after them, sees all octets before them, and all of earlier calls.
 */
void rl_copy_in_order(void *dst, const void *src, size_t n);

#endif
