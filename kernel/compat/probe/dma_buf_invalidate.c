// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* 7.2: dma_buf_attach_ops.move_notify is called invalidate_mappings, also for pinned importers. */
#include <linux/dma-buf.h>

void weft_probe(struct dma_buf_attach_ops *ops)
{
	ops->invalidate_mappings = NULL;
}
