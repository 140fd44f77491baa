/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Apart from cable.h for those that only read numbers. */
#ifndef RL_CABLE_LIMITS_H
#define RL_CABLE_LIMITS_H

#define RL_CABLE_MIN_BPS	1000ull
#define RL_CABLE_MAX_BPS	1000000000000ull
#define RL_CABLE_MAX_DELAY_US	10000000ull
#define RL_CABLE_CERTAIN	1000000ull	/* of a loss: each segment */

#endif
