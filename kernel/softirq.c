// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Bottom halves, and a limit on the time that softirq sends before the kernel decides whether to
 * go on.
 *
 * The kernel processes softirqs in passes: the network, then whatever has queued itself to run in
 * softirq. It never stops a handler that takes long. Between two passes it decides whether to
 * continue at once or in ksoftirqd, which is scheduled and accounted as a thread. So sends by
 * TCP's callbacks and bottom halves share SHARE_NS of time on each CPU, for all connections
 * together, and each pass gets one new share.
 *
 * Each CPU has one list of due bottom halves, and one sender, which runs them in the order in
 * which they were queued. A run that finds the share used up is put on the list. If the sender
 * runs out of time, the rest stays at the head of the list, and the sender queues the opener. The
 * opener runs at the beginning of the next pass, and makes the sender run with a new share, mostly
 * in the pass after that.
 *
 * The opener does not renew the share itself: the network runs between the two, and could use up
 * share after share while the list makes no progress. Nor does the sender queue itself: the kernel
 * would run it again in the same pass.
 *
 * A run that is deferred too early, because the time was used up over seconds, waits for passes
 * that follow at once. Small messages do not pay for a clock: it is read once WEFT_SOFTIRQ_FREE
 * octets have been sent.
 *
 * A CPU that goes offline leaves its list to another, which runs it. Then, and where one softirq
 * can preempt another, only the figures may be off.
 */
#include <linux/bitops.h>
#include <linux/ktime.h>
#include <linux/percpu.h>
#include <linux/spinlock.h>

#include "compat/bh.h"
#include "softirq.h"

#define SHARE_NS	NSEC_PER_MSEC
/* The cost of a run that sends next to nothing, and of a work request in it. */
#define RUN_OCTETS	64
#define REQUEST_OCTETS	64

/* Of a bottom half's flags. */
#define QUEUED		0

struct softirq {
	spinlock_t lock;		/* irqsave; the kernel's own queues are below */
	struct list_head due;		/* lock: bottom halves, the next first */
	bool asked;			/* lock: for the sender, or the opener; or it runs */
	bool opened;			/* by the opener: the sender has a new share */
	struct weft_bh_work sender;
	struct weft_bh_work opener;
	u32 octets;			/* of the share; of those runs that were not timed */
	u64 spent;			/* ns of it, by those that were */
};

static DEFINE_PER_CPU(struct softirq, softirqs);

/* ---- the share ---- */

static bool has_time(const struct softirq *s)
{
	return s->spent < SHARE_NS;
}

bool weft_softirq_has_time(void)
{
	return has_time(this_cpu_ptr(&softirqs));
}

u64 weft_softirq_begin(void)
{
	return this_cpu_ptr(&softirqs)->octets < WEFT_SOFTIRQ_FREE ? 0 : ktime_get_ns();
}

void weft_softirq_end(u64 began, u32 octets, u32 requests)
{
	struct softirq *s = this_cpu_ptr(&softirqs);

	if (began)
		s->spent += ktime_get_ns() - began;
	else
		s->octets += octets + RUN_OCTETS + requests * REQUEST_OCTETS;
}

/* ---- bottom halves ---- */

bool weft_bh_queue(struct weft_bh *bh)
{
	struct softirq *s = this_cpu_ptr(&softirqs);
	unsigned long flags;

	if (test_and_set_bit(QUEUED, &bh->flags))
		return false;
	spin_lock_irqsave(&s->lock, flags);
	list_add_tail(&bh->node, &s->due);
	if (!s->asked) {
		s->asked = true;
		if (has_time(s))
			weft_bh_work_queue(&s->sender);
		else
			weft_bh_work_queue_first(&s->opener);
	}
	spin_unlock_irqrestore(&s->lock, flags);
	return true;
}

static void open_share(struct weft_bh_work *work)
{
	struct softirq *s = weft_bh_work_owner(s, work, opener);

	s->opened = true;
	weft_bh_work_queue(&s->sender);
}

static void run_next(struct list_head *turns)
{
	struct weft_bh *bh = list_first_entry(turns, struct weft_bh, node);

	list_del(&bh->node);
	bh->run(bh);
}

void weft_bh_over(struct weft_bh *bh)
{
	/*
	 * Ordered both ways, as in weft_bh_queue(): whoever queues it next finds the node free;
	 * whoever found it queued made its writes visible before.
	 */
	test_and_clear_bit(QUEUED, &bh->flags);
}

/* Those queued meanwhile, or again, run in another pass. */
static void send_in_turn(struct weft_bh_work *work)
{
	struct softirq *s = weft_bh_work_owner(s, work, sender);
	LIST_HEAD(turns);

	spin_lock_irq(&s->lock);
	list_splice_init(&s->due, &turns);
	spin_unlock_irq(&s->lock);
	if (s->opened) {
		s->opened = false;
		s->octets = 0;
		s->spent = 0;
	}
	while (!list_empty(&turns) && has_time(s))
		run_next(&turns);
	spin_lock_irq(&s->lock);
	list_splice(&turns, &s->due);
	s->asked = !list_empty(&s->due);
	if (s->asked)
		weft_bh_work_queue_first(&s->opener);
	spin_unlock_irq(&s->lock);
}

void weft_softirq_init(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		struct softirq *s = per_cpu_ptr(&softirqs, cpu);

		spin_lock_init(&s->lock);
		INIT_LIST_HEAD(&s->due);
		weft_bh_work_init(&s->sender, send_in_turn);
		weft_bh_work_init(&s->opener, open_share);
	}
}

void weft_softirq_exit(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		struct softirq *s = per_cpu_ptr(&softirqs, cpu);

		/* The opener queues the sender, which then need not queue anything. */
		weft_bh_work_flush(&s->opener);
		weft_bh_work_flush(&s->sender);
	}
}
