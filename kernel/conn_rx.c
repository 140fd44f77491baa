// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Receiving: passes the octets of TCP's receive queue to the link. */
#include <net/tcp.h>

#include "tcp.h"
#include "trace.h"

/* Pieces of an skb listed at a time: the linear part, 17 fragments, and as many again. */
#define SEGS 40

/* Passes the pieces to the link; returns the number of octets left over. */
static u32 give_to_link(struct weft_conn *conn, const struct weft_seg *seg, u32 nseg)
{
	struct weft_cur in;

	weft_cur_init(&in, seg, nseg);
	if (conn->link.mode == WEFT_MODE_DISCARD)
		weft_count(conn, WEFT_CNT_RX_DROPPED, in.left);
	weft_link_rx(&conn->link, &in);
	return in.left;
}

/* Lists the pieces of an skb. Returns the octets consumed. */
static int read_skb(struct weft_conn *conn, struct sk_buff *skb, unsigned int off, size_t len)
{
	struct weft_seg seg[SEGS] __uninitialized;
	struct skb_seq_state seq;
	u32 nseg = 0, done = 0, n, left;
	const u8 *p;

	skb_prepare_seq_read(skb, off, off + (u32)len, &seq);
	while ((n = skb_seq_read(done, &p, &seq))) {
		seg[nseg++] = (struct weft_seg) { .p = p, .len = n };
		done += n;
		if (nseg < SEGS)
			continue;
		left = give_to_link(conn, seg, nseg);
		nseg = 0;
		if (left) {
			skb_abort_seq_read(&seq);
			return done - left;
		}
	}
	left = nseg ? give_to_link(conn, seg, nseg) : 0;
	if (left)
		return done - left;
	if (done < len)
		weft_link_rx_unreadable(&conn->link);
	return len;
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
	if (weft_tcp_window_is_stale(conn->sk))
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
