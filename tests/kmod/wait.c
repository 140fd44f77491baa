// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * How long does a tasklet that others schedule wait for its turn, while softirq keeps the
 * CPU? While the module is loaded, each CPU schedules one every millisecond and counts by
 * its timer: a tick counts if it finds softirq at work. Time in which the scheduler had a
 * say, or this machine did not run, is none. The answers are parameters:
 *
 *   insmod weft_kwait.ko [limit=MS]
 *   cat /sys/module/weft_kwait/parameters/{waits,long_waits,longest}
 */
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/smp.h>
#include <linux/version.h>

/* Ticks are of a millisecond. */
static unsigned int limit = 4;
module_param(limit, uint, 0444);
MODULE_PARM_DESC(limit, "what is longer, in ms, is a long wait");
static unsigned int waits, long_waits, longest;
module_param(waits, uint, 0444);
module_param(long_waits, uint, 0444);
MODULE_PARM_DESC(long_waits, "those longer than the limit");
module_param(longest, uint, 0444);
MODULE_PARM_DESC(longest, "ms");

struct probe {
	struct hrtimer timer;
	struct tasklet_struct tasklet;
	bool waiting;
	unsigned int ticks;
};

static DEFINE_PER_CPU(struct probe, probes);
static DEFINE_SPINLOCK(lock);

static void turn(struct tasklet_struct *t)
{
	struct probe *p = from_tasklet(p, t, tasklet);

	spin_lock(&lock);
	waits++;
	long_waits += p->ticks > limit;
	longest = max(longest, p->ticks);
	spin_unlock(&lock);
	WRITE_ONCE(p->waiting, false);
}

static enum hrtimer_restart tick(struct hrtimer *timer)
{
	struct probe *p = container_of(timer, struct probe, timer);

	if (!READ_ONCE(p->waiting)) {
		p->waiting = true;
		p->ticks = 0;
		tasklet_schedule(&p->tasklet);
	} else if (in_serving_softirq()) {
		p->ticks++;
	}
	hrtimer_forward_now(timer, ms_to_ktime(1));
	return HRTIMER_RESTART;
}

static void start(void *none)
{
	hrtimer_start(&this_cpu_ptr(&probes)->timer, ms_to_ktime(1), HRTIMER_MODE_REL_PINNED_HARD);
}

static int __init wait_init(void)
{
	struct probe *p;
	int cpu;

	for_each_possible_cpu(cpu) {
		p = per_cpu_ptr(&probes, cpu);
		tasklet_setup(&p->tasklet, turn);
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
		hrtimer_setup(&p->timer, tick, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
#else
		hrtimer_init(&p->timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
		p->timer.function = tick;
#endif
	}
	on_each_cpu(start, NULL, 1);
	return 0;
}

static void __exit wait_exit(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		hrtimer_cancel(&per_cpu_ptr(&probes, cpu)->timer);
		tasklet_kill(&per_cpu_ptr(&probes, cpu)->tasklet);
	}
}

module_init(wait_init);
module_exit(wait_exit);
MODULE_DESCRIPTION("how long tasklets wait for others");
MODULE_LICENSE("Dual BSD/GPL");
