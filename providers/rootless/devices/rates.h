/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A port's rate: megabits a second, and what verbs and sysfs make of it, a width and the speed of a
 * lane. One table for all, so that they agree.
 */
#ifndef RL_RATES_H
#define RL_RATES_H

#include "process/port.h"

struct rl_rate {
	u8 width;			/* as verbs number them */
	u8 speed;			/* of a lane, likewise */
};

/* The least rate that is not below @mbps, or the highest; @width: of this width; 0: of any. */
struct rl_rate rl_rate_of(u32 mbps, u8 width);
/* Does a port of @width, or of any (0), have exactly this rate? */
bool rl_rate_is(u32 mbps, u8 width);
/* The rate's megabits a second. */
u32 rl_rate_mbps(const struct rl_rate *r);
/* The number of a width of @lanes in verbs; 0: there is none. */
u8 rl_rate_width(u32 lanes);
/* As sysfs has it, such as "100 Gb/sec (4X EDR)". */
void rl_rate_format(const struct rl_rate *r, char *text, size_t size);
/* The number of the rate in verbs. */
u8 rl_rate_number(const struct rl_rate *r);

#endif
