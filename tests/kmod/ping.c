// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What does a message cost in TCP alone? Two kernel sockets on lo, and the least that a program
 * needs to send on one and see data arrive on the other: a device whose ioctl sends, and a page
 * with the count of received octets, to spin on. No software RNIC that is called for each message
 * can cost less. "weft-rate -K" measures it.
 *
 * A message can be answered from the callback in which it arrives, as a Read Response is. And
 * write() sends data from the program's memory, which the callback copies to its destination: the
 * work of both ends on the caller's CPU, with the two copies needed without sending by reference.
 */
#include <linux/in.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/uio.h>
#include <linux/version.h>
#include <linux/vmalloc.h>
#include <net/tcp.h>

#include "kping.h"

struct end {
	struct socket *sock;
	u32 *got;		/* octets */
	bool answers;		/* from its callback */
	u8 *sink;		/* where data is copied to */
	u32 size, at;		/* its size, 0 if data is not copied; and the next offset */
	void (*saved)(struct sock *sk);
};

static struct end ends[2];
static struct kping_page *page;

/* ---- messages ---- */

static int send_locked(struct sock *sk)
{
	u8 message[KPING_OCTETS] = {};
	struct kvec iov = { .iov_base = message, .iov_len = sizeof(message) };
	struct msghdr msg = { .msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL };

	iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, &iov, 1, sizeof(message));
	return tcp_sendmsg_locked(sk, &msg, sizeof(message));
}

static int say(struct end *e)
{
	struct sock *sk = e->sock->sk;
	int n;

	lock_sock(sk);
	n = send_locked(sk);
	release_sock(sk);
	if (n < 0)
		return n;
	return n == KPING_OCTETS ? 0 : -EAGAIN;
}

/* Sends a message from the program's memory. Returns how many octets TCP took, or -errno. */
static ssize_t ping_write_iter(struct kiocb *iocb, struct iov_iter *from)
{
	struct msghdr msg = { .msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL, .msg_iter = *from };
	struct sock *sk = ends[0].sock->sk;
	size_t size = iov_iter_count(from);
	int n;

	if (size > KPING_WRITE_MAX)
		return -EMSGSIZE;
	lock_sock(sk);
	WRITE_ONCE(ends[1].size, size);
	n = tcp_sendmsg_locked(sk, &msg, size);
	release_sock(sk);
	return n;
}

static int take_skb(read_descriptor_t *desc, struct sk_buff *skb, unsigned int off, size_t len)
{
	struct end *e = desc->arg.data;
	u32 size = READ_ONCE(e->size), n;

	if (!size)
		return len;
	e->at %= size;
	n = min_t(u32, len, size - e->at);
	if (skb_copy_bits(skb, off, e->sink + e->at, n))
		return -EFAULT;
	e->at += n;
	return n;
}

static void data_ready(struct sock *sk)
{
	read_descriptor_t desc = { .count = 1 };
	struct end *e;
	int n;

	read_lock_bh(&sk->sk_callback_lock);
	e = sk->sk_user_data;
	if (e) {
		desc.arg.data = e;
		n = tcp_read_sock(sk, &desc, take_skb);
		if (n > 0 && READ_ONCE(e->answers))
			send_locked(sk);
		if (n > 0)
			WRITE_ONCE(*e->got, *e->got + n);
	}
	read_unlock_bh(&sk->sk_callback_lock);
}

/* ---- the ends ---- */

static void hook(struct end *e, u32 *got)
{
	struct sock *sk = e->sock->sk;

	e->got = got;
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
	hook(&ends[0], &page->end[0].got);
	hook(&ends[1], &page->end[1].got);
	return 0;
}

/* ---- the device ---- */

static long ping_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	switch (cmd) {
	case KPING_SAY(0):
		return say(&ends[0]);
	case KPING_SAY(1):
		return say(&ends[1]);
	case KPING_ANSWER:
		WRITE_ONCE(ends[1].answers, arg);
		return 0;
	default:
		return -ENOTTY;
	}
}

static int ping_mmap(struct file *file, struct vm_area_struct *vma)
{
	if (vma->vm_end - vma->vm_start != PAGE_SIZE)
		return -EINVAL;
	return vm_insert_page(vma, vma->vm_start, virt_to_page(page));
}

static const struct file_operations ping_fops = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = ping_ioctl,
	.write_iter = ping_write_iter,
	.mmap = ping_mmap,
};

static struct miscdevice ping_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = KPING_DEVICE,
	.fops = &ping_fops,
};

static void close_all(void)
{
	close_end(&ends[0]);
	close_end(&ends[1]);
	vfree(ends[1].sink);
	free_page((unsigned long)page);
}

static int __init ping_init(void)
{
	int err;

	page = (void *)get_zeroed_page(GFP_KERNEL);
	if (!page)
		return -ENOMEM;
	ends[1].sink = vmalloc(KPING_WRITE_MAX);
	err = ends[1].sink ? open_ends() : -ENOMEM;
	if (!err)
		err = misc_register(&ping_device);
	if (err)
		close_all();
	return err;
}

static void __exit ping_exit(void)
{
	misc_deregister(&ping_device);
	close_all();
}

module_init(ping_init);
module_exit(ping_exit);
MODULE_DESCRIPTION("cost of a message over TCP alone");
MODULE_LICENSE("Dual BSD/GPL");
