// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Device memory is host memory: weft is software. Only the provider knows of it; to the kernel its
 * regions are regions of the program's memory. A handle is valid in this process only.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dm_mem.h"
#include "weft.h"

/* Of offsets and lengths of copies, as other drivers require. */
#define ALIGN 4
#define LOG_PAGE 12

struct weft_dm {
	struct ibv_dm dm;
	struct weft_dm_mem *mem;
};

static struct weft_dm *to_weft_dm(struct ibv_dm *dm)
{
	return container_of(dm, struct weft_dm, dm);
}

/* ---- copies ---- */

static bool is_within(const struct weft_dm_mem *mem, uint64_t off, size_t len)
{
	return off <= mem->length && len <= mem->length - off;
}

static bool may_copy(const struct weft_dm_mem *mem, uint64_t off, size_t len)
{
	return is_within(mem, off, len) && off % ALIGN == 0 && len % ALIGN == 0;
}

static int copy_to(struct ibv_dm *dm, uint64_t off, const void *from, size_t len)
{
	struct weft_dm_mem *mem = to_weft_dm(dm)->mem;

	if (!may_copy(mem, off, len))
		return EINVAL;
	memcpy(mem->at + off, from, len);
	return 0;
}

static int copy_from(void *to, struct ibv_dm *dm, uint64_t off, size_t len)
{
	struct weft_dm_mem *mem = to_weft_dm(dm)->mem;

	if (!may_copy(mem, off, len))
		return EINVAL;
	memcpy(to, mem->at + off, len);
	return 0;
}

/* ---- life ---- */

static struct ibv_dm *dm_fill(struct weft_dm *dm, struct ibv_context *ctx, struct weft_dm_mem *mem)
{
	dm->mem = mem;
	dm->dm = (struct ibv_dm){
		.context = ctx,
		.memcpy_to_dm = copy_to,
		.memcpy_from_dm = copy_from,
		.handle = mem->handle,
	};
	return &dm->dm;
}

struct ibv_dm *weft_alloc_dm(struct ibv_context *ctx, struct ibv_alloc_dm_attr *attr)
{
	struct weft_dm *dm;
	struct weft_dm_mem *mem;

	if (attr->comp_mask || !attr->length || attr->length > WEFT_MAX_DM ||
	    attr->log_align_req > LOG_PAGE) {
		errno = attr->comp_mask ? EOPNOTSUPP : EINVAL;
		return NULL;
	}
	dm = calloc(1, sizeof(*dm));
	mem = dm ? weft_dm_mem_create(attr->length) : NULL;
	if (!mem) {
		free(dm);
		errno = ENOMEM;
		return NULL;
	}
	return dm_fill(dm, ctx, mem);
}

/* Fails while a region uses it. If it was imported, the memory stays until the last unimport. */
int weft_free_dm(struct ibv_dm *ibdm)
{
	struct weft_dm *dm = to_weft_dm(ibdm);
	int err = weft_dm_mem_free(dm->mem);

	if (err)
		return err;
	free(dm);
	return 0;
}

struct ibv_dm *weft_import_dm(struct ibv_context *ctx, uint32_t handle)
{
	struct weft_dm *dm = calloc(1, sizeof(*dm));
	struct weft_dm_mem *mem;

	if (!dm)
		return NULL;
	mem = weft_dm_mem_open(handle);
	if (mem)
		return dm_fill(dm, ctx, mem);
	free(dm);
	errno = ENOENT;
	return NULL;
}

void weft_unimport_dm(struct ibv_dm *ibdm)
{
	struct weft_dm *dm = to_weft_dm(ibdm);

	weft_dm_mem_close(dm->mem);
	free(dm);
}

/* ---- regions ---- */

struct ibv_mr *weft_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *ibdm, uint64_t off, size_t len,
			      unsigned int access)
{
	struct weft_dm_mem *mem = to_weft_dm(ibdm)->mem;
	struct ibv_mr *mr;

	if (!is_within(mem, off, len) || !(access & IBV_ACCESS_ZERO_BASED)) {
		errno = EINVAL;
		return NULL;
	}
	/* The kernel refuses empty regions: register one octet, without the right to write. */
	if (!len)
		mr = weft_reg_mr(pd, mem->at, 1, (uintptr_t)mem->at, IBV_ACCESS_ZERO_BASED);
	else
		mr = weft_reg_mr(pd, mem->at + off, len, (uintptr_t)mem->at + off, access);
	if (!mr)
		return NULL;
	mr->pd = pd;
	mr->addr = NULL;
	mr->length = len;
	/* Not the program's memory: no rereg, and libibverbs does not track it for fork(). */
	verbs_get_mr(mr)->mr_type = IBV_MR_TYPE_DMABUF_MR;
	to_weft_mr(mr)->dm = mem;
	weft_dm_mem_hold(mem);
	return mr;
}
