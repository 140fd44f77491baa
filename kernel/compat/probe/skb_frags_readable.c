// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* 6.12: fragments may be a device's memory, which the CPU must not read (devmem TCP). */
#include <linux/skbuff.h>

bool weft_probe(const struct sk_buff *skb)
{
	return skb_frags_readable(skb);
}
