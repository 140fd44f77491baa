/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* How long softirq sends before the kernel looks whether that is enough: softirq.c. */
#ifndef WEFT_SOFTIRQ_H
#define WEFT_SOFTIRQ_H

#include <linux/types.h>

/* So many octets are sent before the clock is looked at. */
#define WEFT_SOFTIRQ_FREE	(128 * 1024)

/*
 * Softirq. Has it time for a run on this CPU? If not, the caller puts it off to its tasklet,
 * in the next pass of which there is.
 */
bool weft_softirq_has_time(void);

/*
 * Softirq. Around a run; the end is told what the beginning said, the octets sent, and the work
 * requests looked at.
 */
u64 weft_softirq_begin(void);
void weft_softirq_end(u64 began, u32 octets, u32 requests);

void weft_softirq_init(void);		/* module init */
void weft_softirq_exit(void);		/* no connection is left */

#endif
