/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A ring shared with the kernel: the user's side. It does not depend on verbs, so that tests can
 * drive it without a device.
 *
 * Each barrier pairs with one on the kernel's side (docs/abi.md has the whole protocol):
 *   user_idx  release here, acquire there: entries before the index;
 *   kern_idx  release there, acquire here: the same the other way;
 *   sleep     full barrier on both sides between one's own store (user_idx
 *             here, WEFT_RING_KICK there) and the load of the other's;
 *   arm       full barrier on both sides between one's own store (arm here,
 *             kern_idx there) and the load of the other's.
 */
#ifndef WEFT_PROVIDER_RING_H
#define WEFT_PROVIDER_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <rdma/weft-abi.h>

struct weft_uring {
	struct weft_ring *ring;
	uint8_t *entries;
	uint32_t slots;		/* power of two; 0: the ring does not exist */
	uint32_t idx;		/* ours: user_idx is set to it when published */
	size_t size;		/* of the mapping */
};

/* Initialises @r for the ring of @slots slots in @mem. */
void weft_uring_init(struct weft_uring *r, void *mem, uint32_t slots);

/* Maps the ring that the kernel described; an errno value if the description is invalid. */
int weft_uring_map(struct weft_uring *r, int fd, const struct weft_ring_map *map);
void weft_uring_unmap(struct weft_uring *r);

static inline void *weft_uring_slot(const struct weft_uring *r, uint32_t idx)
{
	return r->entries + (size_t)(idx & (r->slots - 1)) * WEFT_SLOT_SIZE;
}

/* Producer: slots that may be filled from idx on. */
static inline uint32_t weft_uring_room(const struct weft_uring *r)
{
	uint32_t used = r->idx - __atomic_load_n(&r->ring->kern_idx, __ATOMIC_ACQUIRE);

	return used < r->slots ? r->slots - used : 0;
}

/* Consumer: entries that may be read from idx on. */
static inline uint32_t weft_uring_filled(const struct weft_uring *r)
{
	uint32_t n = __atomic_load_n(&r->ring->kern_idx, __ATOMIC_ACQUIRE) - r->idx;

	return n <= r->slots ? n : 0;
}

/* Producer: hands over everything before idx. True if the kernel must be kicked. */
static inline bool weft_uring_publish(struct weft_uring *r)
{
	__atomic_store_n(&r->ring->user_idx, r->idx, __ATOMIC_RELEASE);
	/* Pairs with the kernel's: set KICK, full barrier, read user_idx again. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return __atomic_load_n(&r->ring->flags, __ATOMIC_RELAXED) & WEFT_RING_KICK;
}

/* Consumer: returns everything before idx to the kernel. */
static inline void weft_uring_release(struct weft_uring *r)
{
	__atomic_store_n(&r->ring->user_idx, r->idx, __ATOMIC_RELEASE);
}

static inline bool weft_uring_overflown(const struct weft_uring *r)
{
	/* Acquire: if the flag is seen, so are the entries published before it. */
	return __atomic_load_n(&r->ring->flags, __ATOMIC_ACQUIRE) & WEFT_RING_OVERFLOW;
}

/* Consumer: does the kernel want a kick when the ring is empty? */
static inline bool weft_uring_says_poll(const struct weft_uring *r)
{
	return __atomic_load_n(&r->ring->flags, __ATOMIC_RELAXED) & WEFT_RING_POLL;
}

/*
 * Consumer: asks for an event, WEFT_ARM_*. Completions that are in the ring already raise none: the
 * caller polls again afterwards.
 */
void weft_uring_arm(struct weft_uring *r, uint32_t how);

/*
 * Writes @len bytes of the entry that starts at slot @idx, from byte @off of it
 * on, across the ring's end.
 */
static inline void weft_uring_write(struct weft_uring *r, uint32_t idx, size_t off,
				    const void *src, size_t len)
{
	size_t bytes = (size_t)r->slots * WEFT_SLOT_SIZE;
	size_t at = ((size_t)idx * WEFT_SLOT_SIZE + off) & (bytes - 1);
	size_t to_end = bytes - at;

	if (len <= to_end) {
		memcpy(r->entries + at, src, len);
		return;
	}
	memcpy(r->entries + at, src, to_end);
	memcpy(r->entries, (const uint8_t *)src + to_end, len - to_end);
}

#endif
