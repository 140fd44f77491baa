// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <linux/dma-buf.h>
#include <linux/err.h>
#include <linux/fs.h>

#include "compat/compat.h"
#include "dmabuf.h"

/* Checks the file's access mode, as mmap() would, and the bounds. */
static int check(const struct dma_buf *buf, u64 offset, u64 len, bool write)
{
	if (write && !(buf->file->f_mode & FMODE_WRITE))
		return -EACCES;
	if (len > buf->size || offset > buf->size - len)
		return -EINVAL;
	return buf->ops->vmap ? 0 : -EOPNOTSUPP;
}

/* memcpy() must not be used on I/O memory. */
static int map(struct weft_dmabuf *d)
{
	int rv = dma_buf_vmap_unlocked(d->buf, &d->map);

	if (rv)
		return rv;
	rv = d->map.is_iomem ? -EOPNOTSUPP : dma_buf_begin_cpu_access(d->buf, d->dir);
	if (rv)
		dma_buf_vunmap_unlocked(d->buf, &d->map);
	return rv;
}

int weft_dmabuf_get(struct weft_dmabuf *d, int fd, u64 offset, u64 len, bool write, void **at)
{
	struct dma_buf *buf = dma_buf_get(fd);
	int rv;

	if (IS_ERR(buf))
		return PTR_ERR(buf);
	d->buf = buf;
	d->dir = write ? DMA_BIDIRECTIONAL : DMA_FROM_DEVICE;
	rv = check(buf, offset, len, write) ?: map(d);
	if (rv) {
		d->buf = NULL;
		dma_buf_put(buf);
		return rv;
	}
	*at = d->map.vaddr + offset;
	return 0;
}

void weft_dmabuf_put(struct weft_dmabuf *d)
{
	if (!d->buf)
		return;
	dma_buf_end_cpu_access(d->buf, d->dir);
	dma_buf_vunmap_unlocked(d->buf, &d->map);
	dma_buf_put(d->buf);
}
