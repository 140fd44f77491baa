/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The memories that stand for device memory, of all contexts of the process. */
#ifndef WEFT_PROVIDER_DM_MEM_H
#define WEFT_PROVIDER_DM_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* With a handle, and named once. NULL: out of memory. */
struct weft_dm_mem *weft_dm_mem_create(size_t length);
/* Named once more. NULL: no memory has that handle. */
struct weft_dm_mem *weft_dm_mem_open(uint32_t handle);
/* Named once less. */
void weft_dm_mem_close(struct weft_dm_mem *mem);
/* The same, and its handle is gone; EBUSY while a region keeps it. */
int weft_dm_mem_free(struct weft_dm_mem *mem);

/* A region of @mem more, and less (NULL: of none). */
void weft_dm_mem_hold(struct weft_dm_mem *mem);
void weft_dm_mem_release(struct weft_dm_mem *mem);

#endif
