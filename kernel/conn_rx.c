// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Receiving: passes the octets of TCP's receive queue to the link. */
#include <net/tcp.h>

#include "compat/net.h"
#include "tcp.h"
#include "trace.h"

/* Pieces listed at a time: the linear part, 17 fragments, and as many again. */
#define SEGS 40

/* weft's devices do virtual DMA, and INFINIBAND_VIRT_DMA means that all pages have an address. */
#ifdef CONFIG_HIGHMEM
#error "octets are read by the address of their pages"
#endif

/* Octets of an skb on their way to the link. */
struct pieces {
	struct weft_conn *conn;
	u32 skip;			/* octets before the first piece */
	u32 want;			/* octets not listed yet */
	u32 left;			/* octets that the link did not take: the end */
	u32 nseg;
	struct weft_seg seg[SEGS];
};

static void give_to_link(struct pieces *p)
{
	struct weft_conn *conn = p->conn;
	struct weft_cur in;

	weft_cur_init(&in, p->seg, p->nseg);
	p->nseg = 0;
	if (conn->link.mode == WEFT_MODE_DISCARD)
		weft_count(conn, WEFT_CNT_RX_DROPPED, in.left);
	weft_link_rx(&conn->link, &in);
	p->left = in.left;
}

/* Lists those of the @len octets at @at that the link is to get. True: it is to get more. */
static bool list_piece(struct pieces *p, const u8 *at, u32 len)
{
	u32 off = min(p->skip, len), n = min(len - off, p->want);

	p->skip -= off;
	p->want -= n;
	if (n)
		p->seg[p->nseg++] = (struct weft_seg) { .p = at + off, .len = n };
	if (p->nseg == SEGS)
		give_to_link(p);
	return p->want && !p->left;
}

static bool list_skb(struct pieces *p, const struct sk_buff *skb)
{
	const struct skb_shared_info *info = skb_shinfo(skb);
	bool more = list_piece(p, skb->data, skb_headlen(skb));
	u32 i;

	/* Fragments may be a device's memory. */
	if (info->nr_frags && !skb_frags_readable(skb))
		return false;
	for (i = 0; i < info->nr_frags && more; i++)
		more = list_piece(p, skb_frag_address(&info->frags[i]),
				  skb_frag_size(&info->frags[i]));
	return more;
}

/* Returns the octets consumed. The skbs that GRO lists below another have none below them. */
static int read_skb(struct weft_conn *conn, struct sk_buff *skb, unsigned int off, size_t len)
{
	struct pieces p __uninitialized;
	struct sk_buff *below;
	bool more;

	p.conn = conn;
	p.skip = off;
	p.want = len;
	p.left = 0;
	p.nseg = 0;
	more = list_skb(&p, skb);
	skb_walk_frags(skb, below) {
		if (!more)
			break;
		more = list_skb(&p, below);
	}
	if (p.nseg)
		give_to_link(&p);
	if (p.want && !p.left) {
		weft_link_rx_unreadable(&conn->link);
		return len;
	}
	return len - p.want - p.left;
}

/* The actor of tcp_read_sock(), which ends when count is 0. */
static int recv_skb(read_descriptor_t *desc, struct sk_buff *skb, unsigned int off, size_t len)
{
	int used = read_skb(desc->arg.data, skb, off, len);

	desc->count -= min_t(size_t, desc->count, used);
	return used;
}

void weft_conn_receive(struct weft_conn *conn, size_t most)
{
	read_descriptor_t desc = { .arg.data = conn, .count = most };
	u32 fpdus = conn->link.st.rx_fpdus;
	int n = tcp_read_sock(conn->sk, &desc, recv_skb);

	/* Urgent data would stop tcp_read_sock() for good; iWARP does not use it. */
	if (unlikely(weft_tcp_has_urgent_data(conn->sk)))
		weft_link_rx_unreadable(&conn->link);
	if (tcp_window_is_stale(conn->sk))
		set_bit(WEFT_CF_WINDOW, &conn->flags);
	fpdus = conn->link.st.rx_fpdus - fpdus;
	if (fpdus)
		weft_count(conn, WEFT_CNT_RX_FPDUS, fpdus);
	if (conn->link.qp) {
		weft_region_end_run(conn->link.qp);
		if (n > 0)
			trace_weft_rx(conn->link.qp->id, fpdus, n);
	}
	if (!desc.count && !skb_queue_empty_lockless(&conn->sk->sk_receive_queue)) {
		conn->unread = true;
		weft_conn_pend(conn);
	}
}
