// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* 6.11: create_cq takes the attribute bundle (NULL from a kernel consumer) for ib_udata. */
#include <rdma/ib_verbs.h>

static int probe(struct ib_cq *cq, const struct ib_cq_init_attr *attr,
		 struct uverbs_attr_bundle *attrs)
{
	return 0;
}

const struct ib_device_ops weft_probe = { .create_cq = probe };
