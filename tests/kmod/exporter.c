// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * An exporter of dmabufs that may move its memory, as a graphics driver does, when it is asked to.
 * tests/progs/verbs/weft-exporter.c asks.
 */
#include <linux/delay.h>
#include <linux/dma-buf.h>
#include <linux/dma-resv.h>
#include <linux/fs.h>
#include <linux/iosys-map.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "exporter.h"

struct memory {
	void *now;
	enum exporter_kind kind;
	/* The reservation's lock: */
	u32 pins;
	bool revoked;
};

#ifndef EXPORTER_INVALIDATES
#define dma_buf_invalidate_mappings dma_buf_move_notify
#endif

#define REVOKE_MS	10000

/* ---- the dmabuf ---- */

static int pin(struct dma_buf_attachment *attach)
{
	struct memory *m = attach->dmabuf->priv;

	if (m->revoked)
		return -ENODEV;
	m->pins++;
	return 0;
}

static void unpin(struct dma_buf_attachment *attach)
{
	struct memory *m = attach->dmabuf->priv;

	m->pins--;
}

static int pin_in_attach(struct dma_buf *buf, struct dma_buf_attachment *attach)
{
	return pin(attach);
}

static void unpin_in_detach(struct dma_buf *buf, struct dma_buf_attachment *attach)
{
	unpin(attach);
}

/* No importer does DMA here. */
static struct sg_table *map_for_dma(struct dma_buf_attachment *attach, enum dma_data_direction dir)
{
	return ERR_PTR(-EOPNOTSUPP);
}

static void unmap_for_dma(struct dma_buf_attachment *attach, struct sg_table *sgt,
			  enum dma_data_direction dir)
{
}

static int map_for_cpu(struct dma_buf *buf, struct iosys_map *map)
{
	struct memory *m = buf->priv;

	if (m->kind == EXPORTER_IO)
		iosys_map_set_vaddr_iomem(map, (void __iomem *)m->now);
	else
		iosys_map_set_vaddr(map, m->now);
	return 0;
}

static void free_memory(struct memory *m)
{
	vfree(m->now);
	kfree(m);
}

static void release(struct dma_buf *buf)
{
	struct memory *m = buf->priv;

	WARN_ON(m->pins);
	free_memory(m);
}

static const struct dma_buf_ops ops = {
	.pin		= pin,
	.unpin		= unpin,
	.map_dma_buf	= map_for_dma,
	.unmap_dma_buf	= unmap_for_dma,
	.vmap		= map_for_cpu,
	.release	= release,
};

static const struct dma_buf_ops attach_ops = {
	.attach		= pin_in_attach,
	.detach		= unpin_in_detach,
	.map_dma_buf	= map_for_dma,
	.unmap_dma_buf	= unmap_for_dma,
	.vmap		= map_for_cpu,
	.release	= release,
};

/* ---- the device: a file has one dmabuf, which it holds ---- */

static struct dma_buf *make(enum exporter_kind kind)
{
	DEFINE_DMA_BUF_EXPORT_INFO(info);
	struct memory *m = kzalloc(sizeof(*m), GFP_KERNEL);
	struct dma_buf *buf;

	if (!m)
		return ERR_PTR(-ENOMEM);
	m->kind = kind;
	m->now = vzalloc(EXPORTER_SIZE);
	if (!m->now) {
		kfree(m);
		return ERR_PTR(-ENOMEM);
	}
	info.ops = kind == EXPORTER_PINS ? &attach_ops : &ops;
	info.size = EXPORTER_SIZE;
	info.flags = O_RDWR;
	info.priv = m;
	buf = dma_buf_export(&info);
	if (IS_ERR(buf))
		free_memory(m);
	return buf;
}

static long make_for(struct file *file, unsigned long kind)
{
	struct dma_buf *buf;
	int fd;

	if (file->private_data)
		return -EEXIST;
	buf = make(kind);
	if (IS_ERR(buf))
		return PTR_ERR(buf);
	get_dma_buf(buf);
	fd = dma_buf_fd(buf, O_CLOEXEC);
	if (fd < 0) {
		dma_buf_put(buf);
		dma_buf_put(buf);
		return fd;
	}
	file->private_data = buf;
	return fd;
}

static long move(struct dma_buf *buf)
{
	void *next = vmalloc(EXPORTER_SIZE);
	struct memory *m;
	int rv = 0;

	if (!buf || !next) {
		vfree(next);
		return buf ? -ENOMEM : -ENOENT;
	}
	m = buf->priv;
	dma_resv_lock(buf->resv, NULL);
	if (m->pins) {
		rv = -EBUSY;
	} else {
		memcpy(next, m->now, EXPORTER_SIZE);
		memset(m->now, 0xee, EXPORTER_SIZE);
		swap(m->now, next);
	}
	dma_resv_unlock(buf->resv);
	vfree(next);
	return rv;
}

static u32 pins(struct dma_buf *buf)
{
	const struct memory *m = buf->priv;
	u32 n;

	dma_resv_lock(buf->resv, NULL);
	n = m->pins;
	dma_resv_unlock(buf->resv);
	return n;
}

static long revoke(struct dma_buf *buf)
{
	struct memory *m;
	int ms;

	if (!buf)
		return -ENOENT;
	m = buf->priv;
	dma_resv_lock(buf->resv, NULL);
	m->revoked = true;
	dma_buf_invalidate_mappings(buf);
	dma_resv_unlock(buf->resv);
	for (ms = 0; pins(buf); ms++) {
		if (ms == REVOKE_MS)
			return -ETIMEDOUT;
		msleep(1);
	}
	memset(m->now, 0xee, EXPORTER_SIZE);
	return 0;
}

/* Is all of it as it was filled? 1: yes. */
static long is_untouched(struct dma_buf *buf)
{
	const struct memory *m = buf->priv;

	return !memchr_inv(m->now, 0xee, EXPORTER_SIZE);
}

/* The file comes with the device here. */
static int exporter_open(struct inode *inode, struct file *file)
{
	file->private_data = NULL;
	return 0;
}

static long exporter_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	switch (cmd) {
	case EXPORTER_MAKE:
		return make_for(file, arg);
	case EXPORTER_MOVE:
		return move(file->private_data);
	case EXPORTER_REVOKE:
		return revoke(file->private_data);
	case EXPORTER_UNTOUCHED:
		return file->private_data ? is_untouched(file->private_data) : -ENOENT;
	default:
		return -ENOTTY;
	}
}

static int exporter_release(struct inode *inode, struct file *file)
{
	if (file->private_data)
		dma_buf_put(file->private_data);
	return 0;
}

static const struct file_operations exporter_fops = {
	.owner		= THIS_MODULE,
	.open		= exporter_open,
	.unlocked_ioctl	= exporter_ioctl,
	.release	= exporter_release,
};

static struct miscdevice exporter = {
	.minor	= MISC_DYNAMIC_MINOR,
	.name	= "weft-exporter",
	.fops	= &exporter_fops,
};

module_misc_device(exporter);
MODULE_DESCRIPTION("an exporter of dmabufs whose memory moves, for tests");
MODULE_LICENSE("Dual BSD/GPL");
/* As MODULE_IMPORT_NS(), whose argument became a string in 6.13. */
MODULE_INFO(import_ns, "DMA_BUF");
