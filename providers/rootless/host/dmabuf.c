// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include <linux/dma-buf.h>

#include "dmabuf.h"
#include "process/file.h"
#include "process/raw.h"

/* Some exporters wait for a device, which a signal interrupts. -ENOTTY: it is not a dmabuf. */
static int sync_cpu(const struct rl_dmabuf *d, u64 what)
{
	struct dma_buf_sync s = { .flags = d->sync | what };
	int rv;

	do {
		rv = rl_raw(SYS_ioctl, d->fd, DMA_BUF_IOCTL_SYNC, &s);
	} while (rv == -EINTR || rv == -EAGAIN);
	return rv == -ENOTTY ? -EINVAL : rv;
}

/* A descriptor of our own: the program may close its. */
static int dmabuf_hold(struct rl_dmabuf *d, int fd)
{
	int own = rl_raw(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 0), rv;

	d->fd = own < 0 ? own : rl_fd_hide(own);
	if (d->fd < 0)
		return d->fd;
	rv = sync_cpu(d, DMA_BUF_SYNC_START);
	if (rv)
		rl_fd_close_hidden(d->fd);
	return rv;
}

static void dmabuf_release(struct rl_dmabuf *d)
{
	sync_cpu(d, DMA_BUF_SYNC_END);
	rl_fd_close_hidden(d->fd);
}

/* The kernel checks the bounds, and that a read-only file is not written. */
static long map(struct rl_dmabuf *d, u64 offset)
{
	int prot = PROT_READ | (d->sync & DMA_BUF_SYNC_WRITE ? PROT_WRITE : 0);

	return rl_raw(SYS_mmap, NULL, d->len, prot, MAP_SHARED, d->fd, offset);
}

int rl_dmabuf_get(struct rl_dmabuf *d, int fd, u64 offset, u64 len, bool write, u64 *start)
{
	u64 in_page = offset & (sysconf(_SC_PAGESIZE) - 1);
	long at;
	int rv;

	d->sync = DMA_BUF_SYNC_READ | (write ? DMA_BUF_SYNC_WRITE : 0);
	d->len = in_page + len;
	rv = dmabuf_hold(d, fd);
	if (rv)
		return rv;
	at = map(d, offset - in_page);
	if (at < 0 && at > -4096) {
		dmabuf_release(d);
		return at;
	}
	d->at = (void *)at;
	*start = at + in_page;
	return 0;
}

void rl_dmabuf_put(struct rl_dmabuf *d)
{
	if (!d->at)
		return;
	rl_raw(SYS_munmap, d->at, d->len);
	dmabuf_release(d);
}
