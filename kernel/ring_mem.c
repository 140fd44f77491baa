// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Rings that the kernel shares with a program, and what a command's own part may hold. */
#include <linux/vmalloc.h>

#include "verbs.h"

int weft_udata_check_unknown(struct ib_udata *udata)
{
	if (!udata || !udata->inlen || ib_is_udata_cleared(udata, 0, udata->inlen))
		return 0;
	return -EINVAL;
}

bool weft_udata_has(struct ib_udata *udata, u64 feature)
{
	struct weft_ucontext *uc = rdma_udata_to_drv_context(udata, struct weft_ucontext, ibuc);

	return uc && uc->features & feature;
}

/*
 * A user's rings are accounted to its memory cgroup. vmalloc_user(), whose memory
 * remap_vmalloc_range() would map, cannot do that: see map_pages(). A failure is
 * not logged: a user could fill the log.
 */
struct weft_ring_mem *weft_ring_mem_alloc(struct ib_udata *udata, u32 slots)
{
	const gfp_t gfp = udata ? GFP_KERNEL_ACCOUNT : GFP_KERNEL;
	struct weft_ring_mem *m = kzalloc(sizeof(*m), gfp);
	struct weft_ucontext *uc = rdma_udata_to_drv_context(udata, struct weft_ucontext, ibuc);

	if (!m)
		return NULL;
	m->size = PAGE_ALIGN(weft_ring_size(slots));
	m->user = udata;
	m->mem = __vmalloc(m->size, gfp | __GFP_ZERO | __GFP_NOWARN);
	if (!m->mem)
		goto no_mem;
	if (udata && rdma_user_mmap_entry_insert(&uc->ibuc, &m->entry, m->size))
		goto no_entry;
	return m;

no_entry:
	vfree(m->mem);
no_mem:
	kfree(m);
	return NULL;
}

static void ring_mem_destroy(struct weft_ring_mem *m)
{
	vfree(m->mem);
	kfree(m);
}

void weft_ring_mem_free(struct weft_ring_mem *m)
{
	if (!m)
		return;
	if (m->user)
		rdma_user_mmap_entry_remove(&m->entry);
	else
		ring_mem_destroy(m);
}

void weft_mmap_free(struct rdma_user_mmap_entry *entry)
{
	ring_mem_destroy(container_of(entry, struct weft_ring_mem, entry));
}

void weft_ring_mem_describe(const struct weft_ring_mem *m, u32 slots, u32 stride,
			    struct weft_ring_map *map)
{
	memset(map, 0, sizeof(*map));
	if (!m)
		return;
	map->offset = rdma_user_mmap_get_offset(&m->entry);
	map->size = m->size;
	map->slots = slots;
	map->stride = stride;
}

/* All of @m; the vma is as long. Each page is counted: the mapping may outlive the ring. */
static int map_pages(struct vm_area_struct *vma, const struct weft_ring_mem *m)
{
	size_t off;
	int rv = 0;

	vm_flags_set(vma, VM_DONTEXPAND | VM_DONTDUMP);
	for (off = 0; off < m->size && !rv; off += PAGE_SIZE)
		rv = vm_insert_page(vma, vma->vm_start + off, vmalloc_to_page(m->mem + off));
	return rv;
}

int weft_mmap(struct ib_ucontext *ibuc, struct vm_area_struct *vma)
{
	struct rdma_user_mmap_entry *entry = rdma_user_mmap_entry_get(ibuc, vma);
	struct weft_ring_mem *m;
	int rv;

	if (!entry)
		return -EINVAL;
	m = container_of(entry, struct weft_ring_mem, entry);
	rv = map_pages(vma, m);
	rdma_user_mmap_entry_put(entry);
	return rv;
}
