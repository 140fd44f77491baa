/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Bottom halves, and their limit on sending in softirq: softirq.c. */
#ifndef WEFT_SOFTIRQ_H
#define WEFT_SOFTIRQ_H

#include <linux/list.h>
#include <linux/types.h>

/* Octets that may be sent before the clock is read. */
#define WEFT_SOFTIRQ_FREE	(128 * 1024)

/* A work that runs in softirq, on the CPU that queued it. */
struct weft_bh {
	struct list_head node;		/* on the CPU's list while queued */
	unsigned long flags;
	void (*run)(struct weft_bh *bh);
};

static inline void weft_bh_init(struct weft_bh *bh, void (*run)(struct weft_bh *bh))
{
	bh->flags = 0;
	bh->run = run;
}

/*
 * Queues @bh on this CPU, to run once. False: it is queued already, or it is running and will see
 * the caller's earlier writes after weft_bh_over(). Any context, but with a spinlock held, so that
 * the task does not migrate.
 */
bool weft_bh_queue(struct weft_bh *bh);

/* Each run calls this once, before its last check for more work. */
void weft_bh_over(struct weft_bh *bh);

/*
 * Softirq. Is there time for a run on this CPU? If not, the caller must defer it to a bottom half,
 * which runs in a later pass.
 */
bool weft_softirq_has_time(void);

/*
 * Softirq. Brackets a run. The end gets the begin's return value, the number of octets sent, and
 * the number of work requests handled.
 */
u64 weft_softirq_begin(void);
void weft_softirq_end(u64 began, u32 octets, u32 requests);

void weft_softirq_init(void);		/* module init */
void weft_softirq_exit(void);		/* module exit; nothing is queued */

#endif
