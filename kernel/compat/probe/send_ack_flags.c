// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* 6.15: __tcp_send_ack() takes the header flags to set (AccECN). */
#include <net/tcp.h>

void weft_probe(struct sock *sk)
{
	__tcp_send_ack(sk, 0, (u16)0);
}
