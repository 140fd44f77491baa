/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The memory of a dmabuf, as the exporter maps it for the CPU. weft does no DMA, so it asks for no
 * bus addresses. It attaches only to an exporter that may move its memory, to pin that.
 */
#ifndef WEFT_DMABUF_H
#define WEFT_DMABUF_H

#include <linux/dma-direction.h>
#include <linux/iosys-map.h>

struct device;
struct dma_buf;
struct dma_buf_attachment;

struct weft_dmabuf {
	struct dma_buf *buf;		/* referenced; NULL: none */
	struct dma_buf_attachment *pinned;	/* NULL: the exporter never moves it */
	struct iosys_map map;
	enum dma_data_direction dir;	/* of the CPU access in progress */
};

/*
 * Holds @len octets at @offset of the dmabuf @fd for reading and, if @write, writing by the CPU,
 * for @dev, until weft_dmabuf_put(). Returns 0 with their address in *@at, or -errno.
 */
int weft_dmabuf_get(struct weft_dmabuf *d, struct device *dev, int fd, u64 offset, u64 len,
		    bool write, void **at);
/* A no-op if nothing is held. */
void weft_dmabuf_put(struct weft_dmabuf *d);

#endif
