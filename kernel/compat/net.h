/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The newest kernel's socket interfaces for the older ones: see compat.h. */
#ifndef WEFT_COMPAT_NET_H
#define WEFT_COMPAT_NET_H

#include <net/tcp.h>

#include "compat/have.h"

/* Never the interrupted task's page fragment: weft sends in softirq too. */
static inline void weft_sk_no_task_frag(struct sock *sk)
{
#ifdef WEFT_HAVE_SK_USE_TASK_FRAG
	sk->sk_use_task_frag = false;
#endif
}

/* Before, no skb had fragments in a device's memory. */
#ifndef WEFT_HAVE_SKB_FRAGS_READABLE
static inline bool skb_frags_readable(const struct sk_buff *skb)
{
	return true;
}
#endif

/*
 * What follows would stand in net/ under these names if weft were part of Linux: the first patches
 * of its series add it from here (scripts/kernel-series/net.py).
 */

/**
 * bh_trylock_sock - bh_lock_sock() that does not wait
 * @sk: socket
 *
 * For callers that have softirqs off and something else to do while another CPU holds the
 * spinlock. As after bh_lock_sock(), the socket may have an owner.
 *
 * Return: true if the spinlock is held now, to be released by bh_unlock_sock().
 */
static inline bool bh_trylock_sock(struct sock *sk)
{
	return spin_trylock(&sk->sk_lock.slock);
}

/**
 * sk_give_page_frag - lend a page fragment to a socket that has none
 * @sk: socket, locked, that does not use the task's fragment
 * @frag: fragment; without a page afterwards
 *
 * What is copied into the socket's buffers goes there first. Callers with many idle sockets share
 * a fragment among these, instead of the 32 KB that each would keep.
 */
static inline void sk_give_page_frag(struct sock *sk, struct page_frag *frag)
{
	sk->sk_frag = *frag;
	frag->page = NULL;
}

/**
 * sk_take_page_frag - take a socket's page fragment, perhaps another than it was given
 * @sk: socket, locked; without a page afterwards
 * @frag: set to the fragment; the caller owns its page, if there is one
 */
static inline void sk_take_page_frag(struct sock *sk, struct page_frag *frag)
{
	*frag = sk->sk_frag;
	sk->sk_frag.page = NULL;
}

/**
 * tcp_mark_tail_eor - let the next octet begin a segment
 * @sk: socket, locked
 *
 * MSG_EOR does so for the octets of a call; this does it for those that are queued already.
 */
static inline void tcp_mark_tail_eor(struct sock *sk)
{
	struct sk_buff *tail = tcp_write_queue_tail(sk);

	if (tail)
		TCP_SKB_CB(tail)->eor = 1;
}

/* Exported by the series. This is what it returns unless the route or the options changed. */
#define tcp_current_mss(sk) (tcp_sk(sk)->mss_cache)

/**
 * tcp_window_is_stale - is there room for twice the advertised window?
 * @sk: socket, locked
 *
 * TCP advertises a larger window as data is read. But data that arrived while the socket had an
 * owner counts as memory in use until the backlog is empty, and by then everything may have been
 * read: then the peer would wait for its own window probe.
 *
 * Return: true if tcp_send_window_update() is worth a segment.
 */
static inline bool tcp_window_is_stale(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 told = tcp_receive_window(tp);
	int room;

	if (2 * told > tp->window_clamp ||
	    !((1 << sk->sk_state) & (TCPF_ESTABLISHED | TCPF_FIN_WAIT1 | TCPF_FIN_WAIT2)))
		return false;
	room = tcp_win_from_space(sk, READ_ONCE(sk->sk_rcvbuf) - atomic_read(&sk->sk_rmem_alloc));
	return room > tcp_full_space(sk) / 16 && room > inet_csk(sk)->icsk_ack.rcv_mss &&
	       min_t(u32, room, tp->rcv_ssthresh) >= 2 * told;
}

/**
 * tcp_send_window_update - acknowledge what arrived, with the window as it is now
 * @sk: socket, locked, with softirqs off and an empty backlog
 */
static inline void tcp_send_window_update(struct sock *sk)
{
#ifdef WEFT_HAVE_SEND_ACK_FLAGS
	__tcp_send_ack(sk, tcp_sk(sk)->rcv_nxt, 0);
#else
	__tcp_send_ack(sk, tcp_sk(sk)->rcv_nxt);
#endif
}

#endif
