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

/* An acknowledgement of what came, with the window as it is now. Socket lock. */
static inline void weft_sk_send_ack(struct sock *sk)
{
#ifdef WEFT_HAVE_SEND_ACK_FLAGS
	__tcp_send_ack(sk, tcp_sk(sk)->rcv_nxt, 0);
#else
	__tcp_send_ack(sk, tcp_sk(sk)->rcv_nxt);
#endif
}

#endif
