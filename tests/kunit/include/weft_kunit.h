/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the headers beside this one are made of: cmocka and a C library for tests in the kernel. */
#ifndef WEFT_KUNIT_H
#define WEFT_KUNIT_H

#include <linux/compiler.h>
#include <linux/types.h>

/* ---- cmocka.c ---- */

/* The running test fails, or is skipped for @reason, at once. */
void weft_kunit_fail(const char *file, int line, const char *format, ...) __noreturn __printf(3, 4);
void weft_kunit_skip(const char *reason) __noreturn;

/* ---- libc.c ---- */

void *weft_kunit_alloc(size_t n, bool zeroed);
void *weft_kunit_realloc(void *p, size_t n);
void weft_kunit_free(void *p);
/* Frees every block that is left, and returns how many there were. */
u32 weft_kunit_free_all(void);

void *weft_kunit_map(size_t len);
int weft_kunit_guard(const void *p, size_t len);
void weft_kunit_unmap_all(void);

/* The module's parameter seed stands for WEFT_SEED. */
char *weft_kunit_getenv(const char *name);

#endif
