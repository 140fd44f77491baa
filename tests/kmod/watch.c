// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Is the callback lock of a socket free when weft answers a peer from TCP's callback? Counts the answers in
 * softirq of the kernel's own TCP sockets by a kprobe; a machine of the lab has none but weft's.
 *
 *   insmod weft_kwatch.ko
 *   cat /sys/module/weft_kwatch/parameters/{free,taken}
 */
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/preempt.h>
#include <net/sock.h>

static int unlocked, locked;
module_param_named(free, unlocked, int, 0444);
module_param_named(taken, locked, int, 0444);

/* Softirqs of one socket run on one CPU at a time: a reader can only be this one. */
static int on_send(struct kprobe *p, struct pt_regs *regs)
{
	struct sock *sk = (struct sock *)regs_get_kernel_argument(regs, 0);

	if (!in_serving_softirq())
		return 0;
	if (write_trylock(&sk->sk_callback_lock)) {
		write_unlock(&sk->sk_callback_lock);
		unlocked++;
	} else {
		locked++;
	}
	return 0;
}

static struct kprobe probe = {
	.symbol_name	= "tcp_sendmsg_locked",
	.pre_handler	= on_send,
};

static int __init watch_init(void)
{
	return register_kprobe(&probe);
}

static void __exit watch_exit(void)
{
	unregister_kprobe(&probe);
}

module_init(watch_init);
module_exit(watch_exit);
MODULE_DESCRIPTION("watches the callback lock of sockets that answer in softirq, for tests");
MODULE_LICENSE("GPL");
