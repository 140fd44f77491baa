// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* 6.2: dma_buf_vmap() wants the buffer's reservation locked, dma_buf_vmap_unlocked() locks it. */
#include <linux/dma-buf.h>

int weft_probe(struct dma_buf *buf, struct iosys_map *map)
{
	dma_buf_vunmap_unlocked(buf, map);
	return dma_buf_vmap_unlocked(buf, map);
}
