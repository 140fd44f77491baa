// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Simulates a memory shortage in which a netdev takes its packets from the reserve: marks packets
 * for one TCP port on their way up, before IP sees them. A socket that does not serve reclaim does
 * not get them.
 */
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <linux/tcp.h>
#include <net/net_namespace.h>

#include "kmod.h"

static __be16 from;

/* Seen from a tap, the data begins with IP's header. */
static bool is_ours(const struct sk_buff *skb)
{
	const struct iphdr *ip = (const struct iphdr *)skb->data;
	const struct tcphdr *tcp;

	if (skb->pkt_type == PACKET_OUTGOING || skb->protocol != htons(ETH_P_IP) ||
	    skb_headlen(skb) < sizeof(*ip) || ip->protocol != IPPROTO_TCP ||
	    skb_headlen(skb) < ip->ihl * 4 + sizeof(*tcp))
		return false;
	tcp = (const struct tcphdr *)(skb->data + ip->ihl * 4);
	return tcp->source == from;
}

static int mark(struct sk_buff *skb, struct net_device *dev, struct packet_type *pt,
		struct net_device *orig_dev)
{
	/* IP gets this same packet when we return. */
	if (is_ours(skb))
		skb->pfmemalloc = 1;
	kfree_skb(skb);
	return NET_RX_SUCCESS;
}

static struct packet_type tap = {
	.type = htons(ETH_P_ALL),
	.func = mark,
	/* Linux 7.2 refuses a tap of all namespaces at once. */
	.af_packet_net = &init_net,
};

void reserve_begin(u16 port)
{
	from = htons(port);
	dev_add_pack(&tap);
}

void reserve_end(void)
{
	dev_remove_pack(&tap);
}
