// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What every kernel that weft supports has (6.1 on). */
#include <linux/module.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>
#include <rdma/iw_cm.h>
#include <rdma/uverbs_ioctl.h>

#if !IS_ENABLED(CONFIG_INFINIBAND_VIRT_DMA)
#error "CONFIG_INFINIBAND_VIRT_DMA is not set: no software RNIC can work"
#endif

int weft_probe(struct ib_device *dev)
{
	return ib_register_device(dev, "weft", NULL);
}
