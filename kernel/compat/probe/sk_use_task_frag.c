// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * 6.2, and stable kernels since: sockets that send in softirq clear this flag, else TCP
 * would use the interrupted task's page fragment. Before, sk_allocation alone decided.
 */
#include <net/sock.h>

void weft_probe(struct sock *sk)
{
	sk->sk_use_task_frag = false;
}
