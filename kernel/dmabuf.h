/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The memory of a dmabuf, as the CPU sees it: the exporter maps it for the kernel. A device without
 * DMA has no use for what attaching to it gives, which are addresses on a bus.
 */
#ifndef WEFT_DMABUF_H
#define WEFT_DMABUF_H

#include <linux/dma-direction.h>
#include <linux/iosys-map.h>

struct dma_buf;

struct weft_dmabuf {
	struct dma_buf *buf;		/* referenced; NULL: none */
	struct iosys_map map;
	enum dma_data_direction dir;	/* of the access that has begun */
};

/*
 * Holds @len octets from @offset of the dmabuf that @fd is, to be read and, if @write, written by the
 * CPU until weft_dmabuf_put(). 0, with their address in *@at, or -errno, with nothing held.
 */
int weft_dmabuf_get(struct weft_dmabuf *d, int fd, u64 offset, u64 len, bool write, void **at);
/* Nothing if nothing is held. */
void weft_dmabuf_put(struct weft_dmabuf *d);

#endif
