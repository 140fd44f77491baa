// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory that the program frees (rule freed-under-way). dlsym() may allocate: what is freed while a
 * function is looked up is kept.
 */
#include <malloc.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "judge/calls.h"
#include "next.h"

#define LIBC "libc.so.6"

static __thread bool looks_up __attribute__((tls_model("initial-exec")));
static bool is_on;

__attribute__((constructor)) static void memory_begin(void)
{
	is_on = weft_run_judges_memory();
}

RL_HOOK void free(void *p)
{
	void (*next)(void *);

	if (!p || looks_up)
		return;
	looks_up = true;
	next = NEXT(LIBC, free);
	looks_up = false;
	if (is_on)
		weft_run_frees(p, malloc_usable_size(p), "free()");
	next(p);
}

/* The old place is no longer read: only its address is compared. */
RL_HOOK void *realloc(void *p, size_t len)
{
	void *(*next)(void *, size_t);
	size_t old;
	void *now;

	looks_up = true;
	next = NEXT(LIBC, realloc);
	looks_up = false;
	old = is_on && p ? malloc_usable_size(p) : 0;
	now = next(p, len);
	if (old && now != p && (now || !len))
		weft_run_frees(p, old, "realloc()");
	return now;
}

RL_HOOK int munmap(void *p, size_t len)
{
	if (is_on)
		weft_run_frees(p, len, "munmap()");
	return NEXT(LIBC, munmap)(p, len);
}
