// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* 6.7: a driver may add to the attributes of an SRQ. */
#include <rdma/ib_verbs.h>

static int probe(struct sk_buff *msg, struct ib_srq *srq)
{
	return 0;
}

const struct ib_device_ops weft_probe = { .fill_res_srq_entry = probe };
