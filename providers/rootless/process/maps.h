/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the program has mapped, as the kernel lists it. */
#ifndef RL_MAPS_H
#define RL_MAPS_H

#include "port.h"

/*
 * Is each page of the @len octets from @start mapped for reading, and with @write for writing?
 * Touches none of them. Where the list cannot be read, or is very long: are they mapped at all?
 * Any thread.
 */
bool rl_maps_allow(u64 start, u64 len, bool write);

#endif
