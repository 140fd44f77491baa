/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Copying to and from memory of the program. */
#ifndef RL_COPY_H
#define RL_COPY_H

#include "port.h"

/*
 * Copies @n octets, which do not overlap, in ascending order. Whoever sees the last aligned 8 octets of
 * @dst, or an octet behind them, sees all before them; and all of an earlier call.
 */
void rl_copy_in_order(void *dst, const void *src, size_t n);

#endif
