// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Sockets hold no reference on their network namespace, which would never end: its end waits for
 * them instead. By then it has no netdevs, and the notifier has asked all connections to end. The
 * notifier itself must not wait: it runs with the rtnl, and a connection's worker may wait for a
 * program that gets no CPU. TCP's part of the namespace ends later, since it began earlier.
 *
 * The wait has no bound. A program inside tcp_sendmsg_locked() uses the namespace until it returns,
 * however long it is not scheduled. ib_core waits in the same way before it gives up the netdev:
 * uverbs_disassociate_api_pre() for all running calls of the device, then netdev_run_todo() for the
 * netdev. Only a program that has left the namespace can be waited for: one in it keeps it alive.
 * Since Linux 6.18 cpu.max stops no thread before it returns to user mode.
 */
#include <net/net_namespace.h>
#include <net/netns/generic.h>

#include "conn.h"

struct weft_net {
	atomic_t conns;
};

static unsigned int net_id;

static struct weft_net *weft_net(const struct net *net)
{
	return net_generic(net, net_id);
}

void weft_netns_enter(const struct net *net)
{
	atomic_inc(&weft_net(net)->conns);
}

void weft_netns_leave(const struct net *net)
{
	/* Pairs with the acquire in await_conns(): the namespace outlives all uses of it. */
	atomic_dec_return_release(&weft_net(net)->conns);
	/* The namespace may be gone now. */
	wake_up_all(&weft_conns_gone);
}

static void __net_exit await_conns(struct net *net)
{
	wait_event(weft_conns_gone, !atomic_read_acquire(&weft_net(net)->conns));
}

static struct pernet_operations net_ops = {
	.exit = await_conns,
	.id = &net_id,
	.size = sizeof(struct weft_net),
};

/* A subsystem's end follows that of the namespace's netdevs; a device's would precede it. */
int weft_netns_init(void)
{
	return register_pernet_subsys(&net_ops);
}

void weft_netns_exit(void)
{
	unregister_pernet_subsys(&net_ops);
}
