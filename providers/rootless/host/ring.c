// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Rings: ranges of the command file's memory. A range is used once, so that an old mapping of the
 * program's never shows a newer ring. Its memory is freed with the ring.
 */
#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include "process/raw.h"
#include "kernel/core/ring.h"
#include "context.h"
#include "ring.h"

static u64 whole_pages(u64 size)
{
	u64 page = sysconf(_SC_PAGESIZE);

	return (size + page - 1) & ~(page - 1);
}

int rl_ring_alloc(struct rl_context *ctx, struct rl_ring *r, u32 slots)
{
	u64 size = whole_pages(weft_ring_size(slots));
	void *mem;

	*r = (struct rl_ring){ .offset = ctx->end, .size = size };
	if (rl_raw(SYS_ftruncate, ctx->memfd, ctx->end + size))
		return -ENOMEM;
	mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, ctx->memfd, ctx->end);
	if (mem == MAP_FAILED)
		return -ENOMEM;
	ctx->end += size;
	r->mem = mem;
	return 0;
}

void rl_ring_free(struct rl_context *ctx, struct rl_ring *r)
{
	if (!r->mem)
		return;
	munmap(r->mem, r->size);
	rl_raw(SYS_fallocate, ctx->memfd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, r->offset,
	       r->size);
	r->mem = NULL;
}

void rl_ring_describe(const struct rl_ring *r, u32 slots, u32 stride, struct weft_ring_map *map)
{
	*map = (struct weft_ring_map){
		.offset = r->offset,
		.size = r->size,
		.slots = slots,
		.stride = stride,
	};
}
