/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef WEFT_KUNIT_STDLIB_H
#define WEFT_KUNIT_STDLIB_H

#include <linux/bug.h>
#include <linux/kernel.h>

#include "weft_kunit.h"

#define malloc(n) weft_kunit_alloc(n, false)
#define calloc(n, size) weft_kunit_alloc(array_size(n, size), true)
#define realloc(p, n) weft_kunit_realloc(p, n)
#define free(p) weft_kunit_free(p)
#define getenv(name) weft_kunit_getenv(name)
#define strtoull(s, end, base) simple_strtoull(s, end, base)

/* Not "abort()": a structure of ../stacks has a member of this name, which is renamed along. */
#define abort weft_kunit_abort
static inline void __noreturn weft_kunit_abort(void)
{
	weft_kunit_fail("libc", 0, "abort()");
}

#endif
