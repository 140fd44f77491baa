/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Device memories of all contexts of the process. */
#ifndef WEFT_PROVIDER_DM_MEM_H
#define WEFT_PROVIDER_DM_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Used by one or more struct weft_dm. Guarded by memories_lock. */
struct weft_dm_mem {
	struct weft_dm_mem *next;
	uint32_t handle;
	bool gone;			/* freed: the handle is no longer valid */
	unsigned int dms;		/* that use it */
	unsigned int regions;
	uint8_t *at;
	size_t length;
};

/* With a handle and one user. NULL: out of memory. */
struct weft_dm_mem *weft_dm_mem_create(size_t length);
/* Adds a user. NULL: no memory has this handle. */
struct weft_dm_mem *weft_dm_mem_open(uint32_t handle);
/* Drops a user. */
void weft_dm_mem_close(struct weft_dm_mem *mem);
/* Drops a user and invalidates the handle; EBUSY while a region uses it. */
int weft_dm_mem_free(struct weft_dm_mem *mem);

/* Adds and drops a region; @mem may be NULL in the second. */
void weft_dm_mem_hold(struct weft_dm_mem *mem);
void weft_dm_mem_release(struct weft_dm_mem *mem);

#endif
