// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Holds one thread of a program at the entry of a kernel function, with the locks that it has there,
 * as if its cgroup had no CPU time left. A kprobe sends it through a function of this module.
 *
 *   insmod weft_khold.ko symbol=FUNCTION comm=PROGRAM
 *   echo 1 >/sys/module/weft_khold/parameters/armed    the next one that may sleep there is held
 *   cat /sys/module/weft_khold/parameters/held         its number, or 0
 *   echo 0 >/sys/module/weft_khold/parameters/armed    it goes on
 *   rmmod weft_khold                                   once the program has ended
 */
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/string.h>

typedef long function_t(long, long, long, long, long, long);

static char *symbol, *comm;
module_param(symbol, charp, 0444);
module_param(comm, charp, 0444);
static bool armed;
module_param(armed, bool, 0644);
static int held;
module_param(held, int, 0444);

static struct task_struct *chosen;
static struct kprobe probe;

/* Functions whose arguments are in registers, six at most. */
static long hold(long a, long b, long c, long d, long e, long f)
{
	WRITE_ONCE(held, task_pid_nr(current));
	while (READ_ONCE(armed))
		schedule_timeout_uninterruptible(HZ / 50 + 1);
	/* The probe lets it pass now: armed is false. */
	WRITE_ONCE(held, 0);
	WRITE_ONCE(chosen, NULL);
	return ((function_t *)probe.addr)(a, b, c, d, e, f);
}

static int on_entry(struct kprobe *p, struct pt_regs *regs)
{
	if (!READ_ONCE(armed) || softirq_count() || strcmp(current->comm, comm) ||
	    cmpxchg(&chosen, NULL, current))
		return 0;
	instruction_pointer_set(regs, (unsigned long)hold);
	return 1;
}

static int __init hold_init(void)
{
	if (!symbol || !comm)
		return -EINVAL;
	probe.symbol_name = symbol;
	probe.pre_handler = on_entry;
	return register_kprobe(&probe);
}

static void __exit hold_exit(void)
{
	unregister_kprobe(&probe);
}

module_init(hold_init);
module_exit(hold_exit);
MODULE_DESCRIPTION("holds a program at the entry of a kernel function, for tests");
MODULE_LICENSE("GPL");
