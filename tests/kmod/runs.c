// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * How long does softirq run, and how much does weft send, before the kernel checks whether to
 * stop? A run is what the kernel processes of one kind of softirq at a time: the waiting bottom
 * halves, or everything that the network has received. For both kinds this keeps the longest run,
 * and the one that sent most, from weft's tracepoint. weft's share of one is
 *
 *   WEFT_SOFTIRQ_FREE octets without a clock, SHARE_NS by the clock (kernel/softirq.c), and after
 *   either one run of a connection that has just begun: WEFT_SLICE_SHORT octets
 *   (kernel/core/send.h).
 *
 * So octets are judged by the speed measured here: how many are sent in SHARE_NS. What NET_RX
 * receives is the network's share, not weft's.
 *
 * Time is this CPU's. In user-mode Linux it is the CPU time that the host gave this kernel, so a
 * busy host does not distort it. Elsewhere it is the clock's, and includes time that a host took
 * away.
 *
 *   insmod weft_kruns.ko           while weft is loaded, which then stays until rmmod
 *   cat /sys/module/weft_kruns/parameters/NAME
 */
#include <linux/interrupt.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/smp.h>
#include <linux/tracepoint.h>

/* Runs that send less are too short to measure the speed. */
#define SPEED_FROM	(64 * 1024)

static unsigned int runs, sending_runs;
module_param(runs, uint, 0444);
module_param(sending_runs, uint, 0444);
static unsigned int longest_us, longest_octets, longest_kind, over_2ms;
module_param(longest_us, uint, 0444);
module_param(longest_octets, uint, 0444);
MODULE_PARM_DESC(longest_octets, "what the longest run sent");
module_param(longest_kind, uint, 0444);
MODULE_PARM_DESC(longest_kind, "3: NET_RX, 6: bottom halves");
module_param(over_2ms, uint, 0444);
static unsigned int most_octets, most_us;
module_param(most_octets, uint, 0444);
module_param(most_us, uint, 0444);
MODULE_PARM_DESC(most_us, "how long the run took that sent most");
static unsigned int octets_a_ms;
module_param(octets_a_ms, uint, 0444);
MODULE_PARM_DESC(octets_a_ms, "the highest speed of a run");

struct run {
	u64 since;			/* 0: not measured */
	u32 octets;
};

static DEFINE_PER_CPU(struct run, current_run);
static DEFINE_SPINLOCK(lock);

#ifdef CONFIG_UML
/*
 * This kernel is a process of its host, and each CPU a thread. So its CPU time comes from the
 * host: clock_gettime(), its call 228, of the thread's clock, which is 3.
 */
static u64 cpu_time(void)
{
	struct { long sec, nsec; } ts;
	long rv;

	asm volatile("syscall" : "=a" (rv)
		     : "0" (228L), "D" (3L), "S" (&ts)
		     : "rcx", "r11", "memory");
	return rv ? 0 : ts.sec * NSEC_PER_SEC + ts.nsec;
}
#else
static u64 cpu_time(void)
{
	return ktime_get_mono_fast_ns();
}
#endif

static bool counts(unsigned int kind)
{
	return kind == TASKLET_SOFTIRQ || kind == NET_RX_SOFTIRQ;
}

static void entered(void *data, unsigned int kind)
{
	struct run *r = this_cpu_ptr(&current_run);

	if (!counts(kind))
		return;
	r->octets = 0;
	r->since = cpu_time();
}

static void judge(unsigned int kind, u32 us, u32 octets)
{
	unsigned long flags;

	spin_lock_irqsave(&lock, flags);
	runs++;
	sending_runs += octets > 0;
	over_2ms += us > 2000;
	if (us > longest_us) {
		longest_us = us;
		longest_octets = octets;
		longest_kind = kind;
	}
	if (octets > most_octets) {
		most_octets = octets;
		most_us = us;
	}
	if (octets >= SPEED_FROM && us)
		octets_a_ms = max_t(u64, octets_a_ms, octets * 1000ULL / us);
	spin_unlock_irqrestore(&lock, flags);
}

static void left(void *data, unsigned int kind)
{
	struct run *r = this_cpu_ptr(&current_run);

	if (!counts(kind) || !r->since)
		return;
	judge(kind, (u32)((cpu_time() - r->since) / 1000), r->octets);
	r->since = 0;
}

static void sent(void *data, u32 qpn, u32 fpdus, u32 octets)
{
	if (in_serving_softirq())
		this_cpu_ptr(&current_run)->octets += octets;
}

static const struct probe {
	const char *name;
	void *function;
} probes[] = {
	{ "softirq_entry", entered },
	{ "softirq_exit", left },
	{ "weft_tx", sent },
};

static struct tracepoint *points[ARRAY_SIZE(probes)];

static void look_at(struct tracepoint *tp, void *unused)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(probes); i++)
		if (!strcmp(tp->name, probes[i].name))
			points[i] = tp;
}

static int look_into(struct notifier_block *nb, unsigned long state, void *data)
{
	struct tp_module *m = data;
	int i;

	if (state != MODULE_STATE_COMING || strcmp(m->mod->name, "weft"))
		return NOTIFY_OK;
	for (i = 0; i < m->mod->num_tracepoints; i++)
		look_at(tracepoint_ptr_deref(&m->mod->tracepoints_ptrs[i]), NULL);
	return NOTIFY_OK;
}

static struct notifier_block modules = { .notifier_call = look_into };

static void let_go(int n)
{
	while (n--)
		tracepoint_probe_unregister(points[n], probes[n].function, NULL);
	tracepoint_synchronize_unregister();
}

static int __init runs_init(void)
{
	int i, err;

	for_each_kernel_tracepoint(look_at, NULL);
	/* It is also called for modules that are loaded already. */
	err = register_tracepoint_module_notifier(&modules);
	if (err)
		return err;
	unregister_tracepoint_module_notifier(&modules);
	for (i = 0; i < ARRAY_SIZE(probes); i++) {
		err = points[i] ? tracepoint_probe_register(points[i], probes[i].function, NULL) : -ENOENT;
		if (err) {
			let_go(i);
			return err;
		}
	}
	return 0;
}

static void __exit runs_exit(void)
{
	let_go(ARRAY_SIZE(probes));
}

module_init(runs_init);
module_exit(runs_exit);
MODULE_DESCRIPTION("how long softirq runs, and how much weft sends meanwhile");
MODULE_LICENSE("Dual BSD/GPL");
