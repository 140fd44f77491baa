/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The memory of a dmabuf, as the exporter maps it for the CPU. weft does no DMA, so it asks for no
 * bus addresses. It attaches so that the exporter does not move the memory, unless it revokes it.
 */
#ifndef WEFT_DMABUF_H
#define WEFT_DMABUF_H

#include <linux/dma-direction.h>
#include <linux/iosys-map.h>
#include <linux/workqueue.h>

struct device;
struct dma_buf;
struct dma_buf_attachment;

struct weft_dmabuf {
	struct dma_buf *buf;		/* referenced; NULL: none */
	struct dma_buf_attachment *attach;	/* keeps the memory in place */
	struct iosys_map map;
	enum dma_data_direction dir;	/* of the CPU access */
	bool mapped;			/* and the access is in progress */
	/* The reservation's lock: */
	bool pinned;
	bool revoked;			/* the exporter wants the memory back */
	void (*on_revoke)(struct weft_dmabuf *d);
	struct delayed_work work;	/* the watcher's: releases the memory */
};

/*
 * Holds @len octets at @offset of the dmabuf @fd for reading and, if @write, writing by the CPU,
 * for @dev, until weft_dmabuf_put(). Returns 0 with their address in *@at, or -errno.
 */
int weft_dmabuf_get(struct weft_dmabuf *d, struct device *dev, int fd, u64 offset, u64 len,
		    bool write, void **at);
/*
 * From now on @on_revoke is called, once and under the reservation's lock, when the exporter
 * revokes the memory. It must queue d->work, which runs @release: that calls
 * weft_dmabuf_release() soon, when no access is left. -ENODEV: it is revoked already.
 */
int weft_dmabuf_watch(struct weft_dmabuf *d, void (*on_revoke)(struct weft_dmabuf *d),
		      work_func_t release);
/* Unmaps and unpins the memory. */
void weft_dmabuf_release(struct weft_dmabuf *d);
/* Releases the memory if that is left to do. A no-op if nothing is held. */
void weft_dmabuf_put(struct weft_dmabuf *d);

#endif
