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

/* A pinned buffer stays where it is: its exporter takes it back for good. */
static void on_invalidate(struct dma_buf_attachment *attach)
{
	struct weft_dmabuf *d = attach->importer_priv;

	if (!d->pinned || d->revoked)
		return;
	d->revoked = true;
	if (d->on_revoke)
		d->on_revoke(d);
}

static const struct dma_buf_attach_ops importer = {
	.invalidate_mappings = on_invalidate,
};

static int pin(struct weft_dmabuf *d)
{
	int rv;

	dma_resv_lock(d->buf->resv, NULL);
	rv = dma_buf_pin(d->attach);
	dma_resv_unlock(d->buf->resv);
	d->pinned = !rv;
	return rv;
}

static void unpin(struct weft_dmabuf *d)
{
	dma_resv_lock(d->buf->resv, NULL);
	if (d->pinned)
		dma_buf_unpin(d->attach);
	d->pinned = false;
	dma_resv_unlock(d->buf->resv);
}

static void let_go(struct weft_dmabuf *d)
{
	unpin(d);
	dma_buf_detach(d->buf, d->attach);
}

/*
 * An exporter that can pin may move what is not pinned, also while the CPU maps it. Others, such as
 * GEM, pin for each that attaches.
 */
static int keep_in_place(struct weft_dmabuf *d, struct device *dev)
{
	bool pins = d->buf->ops->pin;
	int rv = 0;

	d->attach = dma_buf_dynamic_attach(d->buf, dev, pins ? &importer : NULL, d);
	if (IS_ERR(d->attach))
		return PTR_ERR(d->attach);
	if (pins)
		rv = pin(d);
	if (rv)
		let_go(d);
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
	d->mapped = !rv;
	return rv;
}

static int pin_and_map(struct weft_dmabuf *d, struct device *dev)
{
	int rv = keep_in_place(d, dev);

	if (rv)
		return rv;
	rv = map(d);
	if (rv)
		let_go(d);
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

int weft_dmabuf_watch(struct weft_dmabuf *d, void (*on_revoke)(struct weft_dmabuf *d),
		      work_func_t release)
{
	bool revoked;

	INIT_DELAYED_WORK(&d->work, release);
	dma_resv_lock(d->buf->resv, NULL);
	revoked = d->revoked;
	d->on_revoke = on_revoke;
	dma_resv_unlock(d->buf->resv);
	return revoked ? -ENODEV : 0;
}

void weft_dmabuf_release(struct weft_dmabuf *d)
{
	if (d->mapped) {
		dma_buf_end_cpu_access(d->buf, d->dir);
		dma_buf_vunmap_unlocked(d->buf, &d->map);
	}
	d->mapped = false;
	unpin(d);
}

/* After it nothing queues the work. */
static void stop_watching(struct weft_dmabuf *d)
{
	bool watched;

	dma_resv_lock(d->buf->resv, NULL);
	watched = d->on_revoke;
	d->on_revoke = NULL;
	dma_resv_unlock(d->buf->resv);
	if (watched)
		cancel_delayed_work_sync(&d->work);
}

void weft_dmabuf_put(struct weft_dmabuf *d)
{
	if (!d->buf)
		return;
	stop_watching(d);
	weft_dmabuf_release(d);
	dma_buf_detach(d->buf, d->attach);
	dma_buf_put(d->buf);
}
