// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "dm_mem.h"

static pthread_mutex_t memories_lock = PTHREAD_MUTEX_INITIALIZER;
static struct weft_dm_mem *memories;
static uint32_t last_handle;

/* Shared, so that a child of fork() has the memory itself, not a copy. */
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

/* Frees memory that has neither users nor regions. memories_lock. */
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

struct weft_dm_mem *weft_dm_mem_create(size_t length)
{
	struct weft_dm_mem *mem = mem_new(length);

	if (!mem)
		return NULL;
	mem->dms = 1;
	mem_publish(mem);
	return mem;
}

struct weft_dm_mem *weft_dm_mem_open(uint32_t handle)
{
	struct weft_dm_mem *mem;

	pthread_mutex_lock(&memories_lock);
	mem = mem_find(handle);
	if (mem)
		mem->dms++;
	pthread_mutex_unlock(&memories_lock);
	return mem;
}

void weft_dm_mem_close(struct weft_dm_mem *mem)
{
	pthread_mutex_lock(&memories_lock);
	mem->dms--;
	mem_drop(mem);
	pthread_mutex_unlock(&memories_lock);
}

int weft_dm_mem_free(struct weft_dm_mem *mem)
{
	bool busy;

	pthread_mutex_lock(&memories_lock);
	busy = mem->regions;
	if (!busy) {
		mem->gone = true;
		mem->dms--;
		mem_drop(mem);
	}
	pthread_mutex_unlock(&memories_lock);
	return busy ? EBUSY : 0;
}

static void count_region(struct weft_dm_mem *mem, int n)
{
	pthread_mutex_lock(&memories_lock);
	mem->regions += n;
	mem_drop(mem);
	pthread_mutex_unlock(&memories_lock);
}

void weft_dm_mem_hold(struct weft_dm_mem *mem)
{
	count_region(mem, 1);
}

void weft_dm_mem_release(struct weft_dm_mem *mem)
{
	if (mem)
		count_region(mem, -1);
}
