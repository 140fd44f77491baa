// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What does the kernel's crc32c cost by itself, in pieces of the length that a
 * full segment has? Loading the module measures it; the answer is a parameter:
 *
 *   insmod weft_ksum.ko [piece=OCTETS]
 *   cat /sys/module/weft_ksum/parameters/ps_per_octet
 */
#include <linux/crc32c.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/slab.h>

#define ROUNDS	50
#define PIECES	500		/* per round: about two milliseconds, octet by octet */

static unsigned int piece = 1444;
module_param(piece, uint, 0444);
MODULE_PARM_DESC(piece, "octets that are summed at once");

static unsigned int ps_per_octet;
module_param(ps_per_octet, uint, 0444);
MODULE_PARM_DESC(ps_per_octet, "picoseconds an octet, the median of some rounds");

static u32 sink;

static u64 one_round(const u8 *buf)
{
	u64 from = ktime_get_ns();
	int i;

	for (i = 0; i < PIECES; i++)
		sink = crc32c(sink, buf, piece);
	return ktime_get_ns() - from;
}

static void sort(u64 *ns, int n)
{
	int i, j;

	for (i = 1; i < n; i++)
		for (j = i; j && ns[j - 1] > ns[j]; j--)
			swap(ns[j - 1], ns[j]);
}

static int __init sum_init(void)
{
	u64 *ns = kcalloc(ROUNDS, sizeof(*ns), GFP_KERNEL);
	u8 *buf = piece && piece <= 65536 ? kmalloc(piece, GFP_KERNEL) : NULL;
	int i;

	if (!ns || !buf) {
		kfree(ns);
		kfree(buf);
		return -ENOMEM;
	}
	memset(buf, 0x5a, piece);
	for (i = 0; i < ROUNDS; i++) {
		ns[i] = one_round(buf);
		cond_resched();
	}
	sort(ns, ROUNDS);
	ps_per_octet = div_u64(ns[ROUNDS / 2] * 1000, PIECES * piece);
	kfree(ns);
	kfree(buf);
	return 0;
}

static void __exit sum_exit(void)
{
}

module_init(sum_init);
module_exit(sum_exit);
MODULE_DESCRIPTION("cost of crc32c");
MODULE_LICENSE("Dual BSD/GPL");
