// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Device memory, which is the host's: weft is software. It is the provider's alone, and regions of
 * it are regions of the program's memory. A handle means something to this process, and to
 * no other.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "weft.h"

/* As of others: offsets and lengths of copies. */
#define ALIGN 4
#define LOG_PAGE 12

/* What one or more struct weft_dm name. Guarded by memories_lock. */
struct weft_dm_mem {
	struct weft_dm_mem *next;
	uint32_t handle;
	bool gone;			/* freed: no handle any more */
	unsigned int dms;		/* that name it */
	unsigned int regions;
	uint8_t *at;
	size_t length;
};

struct weft_dm {
	struct ibv_dm dm;
	struct weft_dm_mem *mem;
};

static pthread_mutex_t memories_lock = PTHREAD_MUTEX_INITIALIZER;
static struct weft_dm_mem *memories;
static uint32_t last_handle;

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

/* Shared: a child of fork() has the device's memory, and no copy of it. */
static struct weft_dm_mem *mem_new(size_t length)
{
	struct weft_dm_mem *mem = calloc(1, sizeof(*mem));

	if (!mem)
		return NULL;
	mem->length = length;
	mem->at = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (mem->at != MAP_FAILED)
		return mem;
	free(mem);
	return NULL;
}

static void mem_free(struct weft_dm_mem *mem)
{
	munmap(mem->at, mem->length);
	free(mem);
}

/* memories_lock. */
static struct weft_dm_mem *mem_find(uint32_t handle)
{
	struct weft_dm_mem *mem = memories;

	while (mem && (mem->gone || mem->handle != handle))
		mem = mem->next;
	return mem;
}

static void mem_publish(struct weft_dm_mem *mem)
{
	pthread_mutex_lock(&memories_lock);
	do
		mem->handle = ++last_handle;
	while (mem_find(mem->handle));
	mem->next = memories;
	memories = mem;
	pthread_mutex_unlock(&memories_lock);
}

/* Memory without a name and without a region goes. memories_lock. */
static void mem_drop(struct weft_dm_mem *mem)
{
	struct weft_dm_mem **p;

	if (mem->dms || mem->regions)
		return;
	for (p = &memories; *p != mem; p = &(*p)->next)
		;
	*p = mem->next;
	mem_free(mem);
}

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
	mem = dm ? mem_new(attr->length) : NULL;
	if (!mem) {
		free(dm);
		errno = ENOMEM;
		return NULL;
	}
	mem->dms = 1;
	mem_publish(mem);
	return dm_fill(dm, ctx, mem);
}

/* A region of it keeps it; other names do not, but then it stays where it is. */
int weft_free_dm(struct ibv_dm *ibdm)
{
	struct weft_dm *dm = to_weft_dm(ibdm);
	bool busy;

	pthread_mutex_lock(&memories_lock);
	busy = dm->mem->regions;
	if (!busy) {
		dm->mem->gone = true;
		dm->mem->dms--;
		mem_drop(dm->mem);
	}
	pthread_mutex_unlock(&memories_lock);
	if (busy)
		return EBUSY;
	free(dm);
	return 0;
}

struct ibv_dm *weft_import_dm(struct ibv_context *ctx, uint32_t handle)
{
	struct weft_dm *dm = calloc(1, sizeof(*dm));
	struct weft_dm_mem *mem;

	if (!dm)
		return NULL;
	pthread_mutex_lock(&memories_lock);
	mem = mem_find(handle);
	if (mem)
		mem->dms++;
	pthread_mutex_unlock(&memories_lock);
	if (mem)
		return dm_fill(dm, ctx, mem);
	free(dm);
	errno = ENOENT;
	return NULL;
}

void weft_unimport_dm(struct ibv_dm *ibdm)
{
	struct weft_dm *dm = to_weft_dm(ibdm);

	pthread_mutex_lock(&memories_lock);
	dm->mem->dms--;
	mem_drop(dm->mem);
	pthread_mutex_unlock(&memories_lock);
	free(dm);
}

/* ---- regions ---- */

static void count_region(struct weft_dm_mem *mem, int n)
{
	pthread_mutex_lock(&memories_lock);
	mem->regions += n;
	mem_drop(mem);
	pthread_mutex_unlock(&memories_lock);
}

struct ibv_mr *weft_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *ibdm, uint64_t off, size_t len,
			      unsigned int access)
{
	struct weft_dm_mem *mem = to_weft_dm(ibdm)->mem;
	struct ibv_mr *mr;

	if (!is_within(mem, off, len) || !(access & IBV_ACCESS_ZERO_BASED)) {
		errno = EINVAL;
		return NULL;
	}
	/* The kernel registers no region without octets: one octet, then, that nobody may write. */
	if (!len)
		mr = weft_reg_mr(pd, mem->at, 1, (uintptr_t)mem->at, IBV_ACCESS_ZERO_BASED);
	else
		mr = weft_reg_mr(pd, mem->at + off, len, (uintptr_t)mem->at + off, access);
	if (!mr)
		return NULL;
	mr->pd = pd;
	mr->addr = NULL;
	mr->length = len;
	/* Not the program's memory: no rereg, and fork's ranges do not know it. */
	verbs_get_mr(mr)->mr_type = IBV_MR_TYPE_DMABUF_MR;
	to_weft_mr(mr)->dm = mem;
	count_region(mem, 1);
	return mr;
}

void weft_dm_region_gone(struct weft_dm_mem *mem)
{
	if (mem)
		count_region(mem, -1);
}
