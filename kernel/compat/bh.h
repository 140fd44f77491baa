/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Work that runs in softirq on the CPU that queued it, once however often it was queued: a work of
 * the BH workqueues, and before 6.9 a tasklet. See probe/bh_workqueue.c.
 *
 * weft_bh_work_init(w, run)	void run(struct weft_bh_work *w); weft_bh_work_owner() finds
 *				the owner
 * weft_bh_work_queue(w)	any context, also from @run
 * weft_bh_work_queue_first(w)	likewise, but runs at the beginning of a pass over all softirqs
 * weft_bh_work_flush(w)	process: waits until @run is over and not queued
 * weft_bh_work_retire(w)	process: @run has done its work, and @w may be freed after this
 */
#ifndef WEFT_COMPAT_BH_H
#define WEFT_COMPAT_BH_H

#include "compat/have.h"

#ifdef WEFT_HAVE_BH_WORKQUEUE

#include <linux/workqueue.h>

#define weft_bh_work work_struct
#define weft_bh_work_owner(owner, w, field) container_of(w, typeof(*(owner)), field)
#define weft_bh_work_init(w, run) INIT_WORK(w, run)
#define weft_bh_work_queue(w) queue_work(system_bh_wq, w)
#define weft_bh_work_queue_first(w) queue_work(system_bh_highpri_wq, w)
#define weft_bh_work_flush(w) flush_work(w)
/* A work is not looked at after its function. */
#define weft_bh_work_retire(w) do { } while (0)

#else

#include <linux/interrupt.h>

#define weft_bh_work tasklet_struct
#define weft_bh_work_owner(owner, w, field) from_tasklet(owner, w, field)
#define weft_bh_work_init(w, run) tasklet_setup(w, run)
#define weft_bh_work_queue(w) tasklet_schedule(w)
#define weft_bh_work_queue_first(w) tasklet_hi_schedule(w)
#define weft_bh_work_flush(w) tasklet_kill(w)
#define weft_bh_work_retire(w) tasklet_kill(w)

#endif

#endif
