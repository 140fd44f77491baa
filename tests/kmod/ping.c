// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What does TCP itself cost a message, both ends in the kernel, on lo? Nobody
 * makes a system call or is woken: it is what an RNIC over TCP cannot be without.
 * Loading the module measures it; the answers are parameters, medians in ns:
 *
 *   insmod weft_kping.ko [octets=8]
 *   cat /sys/module/weft_kping/parameters/oneway_ns       half a round trip: each of two
 *       threads, on a CPU of its own, sends once its callback has seen the other's message
 *   cat /sys/module/weft_kping/parameters/answered_ns     a round trip: the answer is sent
 *       from the callback, as a Read Response is
 */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/in.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/version.h>
#include <net/tcp.h>

#define ROUNDS		20000
#define WARM_UP		1000
#define MAX_OCTETS	1024
#define SPINS		1024		/* between two looks at what else there is to do */
#define PATIENCE_NS	(5 * NSEC_PER_SEC)

static unsigned int octets = 8;
module_param(octets, uint, 0444);
MODULE_PARM_DESC(octets, "of a message");

static unsigned int oneway_ns, answered_ns;
module_param(oneway_ns, uint, 0444);
MODULE_PARM_DESC(oneway_ns, "half a round trip, two threads");
module_param(answered_ns, uint, 0444);
MODULE_PARM_DESC(answered_ns, "a round trip, answered from the callback");

struct end {
	struct socket *sock;
	bool answers;		/* from its callback */
	u32 got;		/* octets */
	void (*saved)(struct sock *sk);
};

static struct end ends[2];
static bool echoing;
static DECLARE_COMPLETION(measured);
static u8 message[MAX_OCTETS];

/* ---- the ends ---- */

static int take(read_descriptor_t *desc, struct sk_buff *skb, unsigned int off, size_t len)
{
	return len;
}

static int send_locked(struct sock *sk)
{
	struct kvec iov = { .iov_base = message, .iov_len = octets };
	struct msghdr msg = { .msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL };

	iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, &iov, 1, octets);
	return tcp_sendmsg_locked(sk, &msg, octets);
}

static void data_ready(struct sock *sk)
{
	read_descriptor_t desc = { .count = 1 };
	struct end *e;
	int n;

	read_lock_bh(&sk->sk_callback_lock);
	e = sk->sk_user_data;
	if (e) {
		n = tcp_read_sock(sk, &desc, take);
		if (n > 0 && e->answers)
			send_locked(sk);
		/* The answer has been sent; pairs with await(). */
		if (n > 0)
			smp_store_release(&e->got, e->got + n);
	}
	read_unlock_bh(&sk->sk_callback_lock);
}

static void hook(struct end *e)
{
	struct sock *sk = e->sock->sk;

	tcp_sock_set_nodelay(sk);
	sk->sk_allocation = GFP_ATOMIC;
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 2, 0)
	sk->sk_use_task_frag = false;
#endif
	write_lock_bh(&sk->sk_callback_lock);
	e->saved = sk->sk_data_ready;
	sk->sk_user_data = e;
	sk->sk_data_ready = data_ready;
	write_unlock_bh(&sk->sk_callback_lock);
}

static void close_end(struct end *e)
{
	struct sock *sk;

	if (!e->sock)
		return;
	sk = e->sock->sk;
	if (e->saved) {
		write_lock_bh(&sk->sk_callback_lock);
		sk->sk_data_ready = e->saved;
		sk->sk_user_data = NULL;
		write_unlock_bh(&sk->sk_callback_lock);
	}
	sock_no_linger(sk);
	sock_release(e->sock);
	memset(e, 0, sizeof(*e));
}

/* (void *): the type of their address changed. */
static int connect_ends(struct socket *listener)
{
	struct sockaddr_in a = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int err = kernel_bind(listener, (void *)&a, sizeof(a));

	if (!err)
		err = kernel_listen(listener, 1);
	if (err)
		return err;
	err = kernel_getsockname(listener, (void *)&a);
	if (err < 0)
		return err;
	err = sock_create_kern(&init_net, AF_INET, SOCK_STREAM, IPPROTO_TCP, &ends[0].sock);
	if (!err)
		err = kernel_connect(ends[0].sock, (void *)&a, sizeof(a), 0);
	if (!err)
		err = kernel_accept(listener, &ends[1].sock, 0);
	return err;
}

static int open_ends(void)
{
	struct socket *listener;
	int err = sock_create_kern(&init_net, AF_INET, SOCK_STREAM, IPPROTO_TCP, &listener);

	if (err)
		return err;
	err = connect_ends(listener);
	sock_release(listener);
	if (err)
		return err;
	hook(&ends[0]);
	hook(&ends[1]);
	return 0;
}

/* ---- round trips ---- */

static int say(struct end *e)
{
	struct sock *sk = e->sock->sk;
	int n;

	lock_sock(sk);
	n = send_locked(sk);
	release_sock(sk);
	return n == (int)octets ? 0 : -EIO;
}

/* Spins until @e has @n messages. */
static int await(struct end *e, u32 n)
{
	u64 until = ktime_get_ns() + PATIENCE_NS;
	u32 spins = 0;

	/* Pairs with data_ready(). */
	while (smp_load_acquire(&e->got) < n * octets) {
		cpu_relax();
		if (++spins % SPINS)
			continue;
		if (ktime_get_ns() > until || kthread_should_stop())
			return -ETIMEDOUT;
		cond_resched();
	}
	return 0;
}

/* The other thread: spins from the start, as perftest's server does, until it is stopped. */
static int echo(void *arg)
{
	struct end *e = arg;
	u32 n;

	/* Pairs with both(). */
	while (!smp_load_acquire(&echoing) && !kthread_should_stop()) {
		cpu_relax();
		cond_resched();
	}
	for (n = 1; !await(e, n) && !say(e); n++)
		;
	while (!kthread_should_stop())
		msleep(20);
	return 0;
}

static int by_value(const void *a, const void *b)
{
	u32 x = *(const u32 *)a, y = *(const u32 *)b;

	return x < y ? -1 : x > y;
}

static int rounds(u32 *ns, u32 *median)
{
	u32 from = ends[0].got / octets, i;
	u64 began;
	int err;

	for (i = 0; i < WARM_UP + ROUNDS; i++) {
		began = ktime_get_ns();
		err = say(&ends[0]);
		if (!err)
			err = await(&ends[0], from + i + 1);
		if (err)
			return err;
		if (i >= WARM_UP)
			ns[i - WARM_UP] = ktime_get_ns() - began;
	}
	sort(ns, ROUNDS, sizeof(*ns), by_value, NULL);
	*median = ns[ROUNDS / 2];
	return 0;
}

static int both(u32 *ns)
{
	int err;

	ends[1].answers = true;
	err = rounds(ns, &answered_ns);
	if (err)
		return err;
	ends[1].answers = false;
	ends[1].got = 0;
	/* All of that; pairs with echo(). */
	smp_store_release(&echoing, true);
	err = rounds(ns, &oneway_ns);
	oneway_ns /= 2;
	return err;
}

/* In a thread of its own, on CPU 0: whoever loads the module may be anywhere. */
static int measure(void *arg)
{
	struct task_struct *other = kthread_create(echo, &ends[1], "weft_kping1");
	u32 *ns = kvcalloc(ROUNDS, sizeof(*ns), GFP_KERNEL);
	int err = PTR_ERR_OR_ZERO(other);

	if (!err) {
		kthread_bind(other, cpumask_last(cpu_online_mask));
		wake_up_process(other);
		err = ns ? both(ns) : -ENOMEM;
		kthread_stop(other);
	}
	kvfree(ns);
	complete(&measured);
	while (!kthread_should_stop())
		msleep(20);
	return err;
}

static int run(void)
{
	struct task_struct *t = kthread_create(measure, NULL, "weft_kping0");

	if (IS_ERR(t))
		return PTR_ERR(t);
	kthread_bind(t, cpumask_first(cpu_online_mask));
	wake_up_process(t);
	wait_for_completion(&measured);
	return kthread_stop(t);
}

static int __init ping_init(void)
{
	int err;

	if (!octets || octets > MAX_OCTETS || num_online_cpus() < 2)
		return -EINVAL;
	err = open_ends();
	if (!err)
		err = run();
	close_end(&ends[0]);
	close_end(&ends[1]);
	return err;
}

static void __exit ping_exit(void)
{
}

module_init(ping_init);
module_exit(ping_exit);
MODULE_DESCRIPTION("cost of a message over TCP alone");
MODULE_LICENSE("Dual BSD/GPL");
