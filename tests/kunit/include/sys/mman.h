/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Of mappings: those that end with a page which faults, as vmalloc() has them. */
#ifndef WEFT_KUNIT_MMAN_H
#define WEFT_KUNIT_MMAN_H

#include "weft_kunit.h"

#define PROT_NONE 0
#define PROT_READ 1
#define PROT_WRITE 2
#define MAP_PRIVATE 0
#define MAP_ANONYMOUS 0
#define MAP_FAILED NULL

#define mmap(at, len, prot, flags, file, offset) weft_kunit_map(len)

static inline int mprotect(const void *p, size_t len, int prot)
{
	if (prot != PROT_NONE)
		weft_kunit_skip("needs a page that can be read only");
	return weft_kunit_guard(p, len);
}

#define munmap(p, len) ((void)(p))

#endif
