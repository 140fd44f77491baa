// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <linux/dma-buf.h>
#include <linux/dma-resv.h>
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

/* Required of those who pin; a pinned buffer stays where it is. */
static void on_move(struct dma_buf_attachment *attach)
{
}

static const struct dma_buf_attach_ops importer = {
	.move_notify = on_move,
};

static int pin(struct dma_buf_attachment *attach)
{
	int rv;

	dma_resv_lock(attach->dmabuf->resv, NULL);
	rv = dma_buf_pin(attach);
	dma_resv_unlock(attach->dmabuf->resv);
	return rv;
}

static void unpin(struct weft_dmabuf *d)
{
	if (!d->pinned)
		return;
	dma_resv_lock(d->buf->resv, NULL);
	dma_buf_unpin(d->pinned);
	dma_resv_unlock(d->buf->resv);
	dma_buf_detach(d->buf, d->pinned);
	d->pinned = NULL;
}

/* An exporter that can pin may move what is not pinned, also while it is mapped. */
static int keep_in_place(struct weft_dmabuf *d, struct device *dev)
{
	struct dma_buf_attachment *attach;
	int rv;

	if (!d->buf->ops->pin)
		return 0;
	attach = dma_buf_dynamic_attach(d->buf, dev, &importer, NULL);
	if (IS_ERR(attach))
		return PTR_ERR(attach);
	rv = pin(attach);
	if (rv)
		dma_buf_detach(d->buf, attach);
	else
		d->pinned = attach;
	return rv;
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

static int pin_and_map(struct weft_dmabuf *d, struct device *dev)
{
	int rv = keep_in_place(d, dev);

	if (rv)
		return rv;
	rv = map(d);
	if (rv)
		unpin(d);
	return rv;
}

int weft_dmabuf_get(struct weft_dmabuf *d, struct device *dev, int fd, u64 offset, u64 len,
		    bool write, void **at)
{
	struct dma_buf *buf = dma_buf_get(fd);
	int rv;

	if (IS_ERR(buf))
		return PTR_ERR(buf);
	d->buf = buf;
	d->dir = write ? DMA_BIDIRECTIONAL : DMA_FROM_DEVICE;
	rv = check(buf, offset, len, write) ?: pin_and_map(d, dev);
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
	unpin(d);
	dma_buf_put(d->buf);
}
