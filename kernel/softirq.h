/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Bottom halves, and how long softirq sends before the kernel looks whether that is enough: softirq.c. */
#ifndef WEFT_SOFTIRQ_H
#define WEFT_SOFTIRQ_H

#include <linux/list.h>
#include <linux/types.h>

/* So many octets are sent before the clock is looked at. */
#define WEFT_SOFTIRQ_FREE	(128 * 1024)

/* What is to run in softirq, on the CPU where it was queued. */
struct weft_bh {
	struct list_head node;		/* the CPU's, while it is queued */
	unsigned long flags;
	void (*run)(struct weft_bh *bh);
};

static inline void weft_bh_init(struct weft_bh *bh, void (*run)(struct weft_bh *bh))
{
	bh->flags = 0;
	bh->run = run;
}

/*
 * Any context, under a spinlock: the CPU stays. @bh runs once, behind what is queued on this CPU. False:
 * it is queued already, or runs, and sees after weft_bh_over() what was written before.
 */
bool weft_bh_queue(struct weft_bh *bh);

/* Each run calls it once, before it looks for the last time whether there is more to do. */
void weft_bh_over(struct weft_bh *bh);

/*
 * Softirq. Has it time for a run on this CPU? If not, the caller puts it off to a bottom half, which
 * runs in a later pass.
 */
bool weft_softirq_has_time(void);

/*
 * Softirq. Around a run; the end gets the beginning's return value, the octets sent, and the work
 * requests handled.
 */
u64 weft_softirq_begin(void);
void weft_softirq_end(u64 began, u32 octets, u32 requests);

void weft_softirq_init(void);		/* module init */
void weft_softirq_exit(void);		/* nothing is queued any more */

#endif
