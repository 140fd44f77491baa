/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The memory of a dmabuf, mapped in this process and held for the CPU. */
#ifndef RL_DMABUF_H
#define RL_DMABUF_H

#include "process/port.h"

struct rl_dmabuf {
	int fd;				/* hidden */
	void *at;			/* the mapping: whole pages; NULL: none */
	size_t len;
	u64 sync;			/* DMA_BUF_SYNC_READ, _WRITE: the access it is held for */
};

/*
 * Holds @len octets from @offset of the dmabuf @fd, for reading and, if @write, writing, until
 * rl_dmabuf_put(). 0, with their address in *@start, or -errno, with nothing held.
 */
int rl_dmabuf_get(struct rl_dmabuf *d, int fd, u64 offset, u64 len, bool write, u64 *start);
/* Nothing if nothing is held. */
void rl_dmabuf_put(struct rl_dmabuf *d);

#endif
