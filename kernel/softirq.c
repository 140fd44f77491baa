// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * How long softirq sends before the kernel looks whether that is enough.
 *
 * A list of tasklets is run to its end, however long that takes, and NAPI hands over a lot at
 * a time. So what TCP's callbacks and the tasklets send on a CPU has SHARE_NS together, all
 * connections. Once that is used up all of them put off what is due to the tasklets' next
 * pass, which the renewer opens. Between two passes the kernel decides whether to go on at
 * once or in ksoftirqd, which is scheduled, and charged, as a thread.
 *
 * What is put off too early, because the time was used up over seconds, waits for a pass that
 * comes at once. Small messages pay for no clock: it is read once WEFT_SOFTIRQ_FREE octets
 * have gone out.
 *
 * Where a softirq can be preempted by another the figures may be off, and nothing else.
 */
#include <linux/interrupt.h>
#include <linux/ktime.h>
#include <linux/percpu.h>

#include "softirq.h"

#define SHARE_NS	NSEC_PER_MSEC
/* What a run costs that sends next to nothing, and a work request in it. */
#define RUN_OCTETS	64
#define REQUEST_OCTETS	64

struct share {
	struct tasklet_struct renewer;
	u32 octets;			/* since the renewal; of those runs that were not timed */
	u64 spent;			/* ns since, of those that were */
};

static DEFINE_PER_CPU(struct share, share);

static void renew(struct tasklet_struct *t)
{
	struct share *s = from_tasklet(s, t, renewer);

	s->octets = 0;
	s->spent = 0;
}

bool weft_softirq_has_time(void)
{
	struct share *s = this_cpu_ptr(&share);

	if (s->spent < SHARE_NS)
		return true;
	/* In front of whoever asks, in the next pass. */
	tasklet_schedule(&s->renewer);
	return false;
}

u64 weft_softirq_begin(void)
{
	return this_cpu_ptr(&share)->octets < WEFT_SOFTIRQ_FREE ? 0 : ktime_get_ns();
}

void weft_softirq_end(u64 began, u32 octets, u32 requests)
{
	struct share *s = this_cpu_ptr(&share);

	if (began)
		s->spent += ktime_get_ns() - began;
	else
		s->octets += octets + RUN_OCTETS + requests * REQUEST_OCTETS;
}

void weft_softirq_init(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		tasklet_setup(&per_cpu_ptr(&share, cpu)->renewer, renew);
}

void weft_softirq_exit(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		tasklet_kill(&per_cpu_ptr(&share, cpu)->renewer);
}
