/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What runs in softirq on the CPU that asked for it, once however often it was asked: a work of a
 * BH workqueue, and before 6.9 a tasklet. See probe/bh_workqueue.c.
 */
#ifndef WEFT_COMPAT_BH_H
#define WEFT_COMPAT_BH_H

#include <linux/interrupt.h>
#include <linux/workqueue.h>

#include "compat/have.h"

/*
 * weft_bh_setup(bh, run)	void run(struct weft_bh *bh), which bh_of() finds the owner by
 * weft_bh_queue(bh)		any context; @run may do it, and comes again
 * weft_bh_queue_next(bh)	softirq: @run comes in the next pass over all softirqs, as the first
 * weft_bh_flush(bh)		process: @run has been, if it was asked for; nobody asks any more
 * WEFT_BH_ROUNDS		what @run may do at a time. The kernel runs ten works of a queue in a pass,
 *				again the one that asks for it, and each tasklet once.
 */
#ifdef WEFT_HAVE_BH_WORKQUEUE

#define weft_bh work_struct
#define bh_of(owner, bh, field) container_of(bh, typeof(*(owner)), field)
#define weft_bh_setup(bh, run) INIT_WORK(bh, run)
#define weft_bh_queue(bh) queue_work(system_bh_wq, bh)
#define weft_bh_queue_next(bh) queue_work(system_bh_highpri_wq, bh)
#define WEFT_BH_ROUNDS 1

/* A worker that is there for memory to be had may not wait for other works: they are cancelled. */
static inline void weft_bh_flush(struct work_struct *bh)
{
	if (!cancel_work_sync(bh))
		return;
	local_bh_disable();
	bh->func(bh);
	local_bh_enable();
}

#else

#define weft_bh tasklet_struct
#define bh_of(owner, bh, field) from_tasklet(owner, bh, field)
#define weft_bh_setup(bh, run) tasklet_setup(bh, run)
#define weft_bh_queue(bh) tasklet_schedule(bh)
#define weft_bh_queue_next(bh) tasklet_schedule(bh)
#define weft_bh_flush(bh) tasklet_kill(bh)
#define WEFT_BH_ROUNDS 4

#endif

#endif
