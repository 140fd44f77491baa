// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <sys/mman.h>

#include "ring.h"

void weft_uring_init(struct weft_uring *r, void *mem, uint32_t slots)
{
	r->ring = mem;
	r->entries = (uint8_t *)mem + WEFT_RING_DATA;
	r->slots = slots;
	r->idx = 0;
	r->size = 0;
}

/* Slot arithmetic relies on these; any other answer is of another ABI. */
static bool map_is_sane(const struct weft_ring_map *map)
{
	return map->slots && !(map->slots & (map->slots - 1)) &&
	       map->size >= WEFT_RING_DATA + (uint64_t)map->slots * WEFT_SLOT_SIZE &&
	       map->size <= SIZE_MAX;
}

int weft_uring_map(struct weft_uring *r, int fd, const struct weft_ring_map *map)
{
	void *mem;

	if (!map_is_sane(map))
		return EPROTO;
	mem = mmap(NULL, map->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, map->offset);
	if (mem == MAP_FAILED)
		return errno;
	weft_uring_init(r, mem, map->slots);
	r->size = map->size;
	return 0;
}

void weft_uring_unmap(struct weft_uring *r)
{
	if (r->size)
		munmap(r->ring, r->size);
	memset(r, 0, sizeof(*r));
}

void weft_uring_arm(struct weft_uring *r, uint32_t how)
{
	uint32_t old = __atomic_load_n(&r->ring->arm, __ATOMIC_RELAXED);

	/* A request for solicited completions does not cancel one for any completion. */
	while (old < how &&
	       !__atomic_compare_exchange_n(&r->ring->arm, &old, how, true, __ATOMIC_SEQ_CST,
					    __ATOMIC_RELAXED))
		;
	/* Pairs with the kernel's: publish the CQE, full barrier, read arm. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}
