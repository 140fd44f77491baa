// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* 6.11: a device can tell udev that its user chose its name. */
#include <rdma/ib_verbs.h>

void weft_probe(struct ib_device *dev)
{
	ib_mark_name_assigned_by_user(dev);
}
