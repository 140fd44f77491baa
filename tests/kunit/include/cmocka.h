/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the tests use of cmocka. The way to a failure is a call, so that frames stay small. */
#ifndef WEFT_KUNIT_CMOCKA_H
#define WEFT_KUNIT_CMOCKA_H

#include <linux/kernel.h>
#include <linux/string.h>

#include "weft_kunit.h"

/* Names of the kernel's that a test has for its own. */
#undef READ
#undef WRITE

/* Of each program: Kbuild renames it. */
int main(void);

struct CMUnitTest {
	const char *name;
	void (*test_func)(void **state);
	int (*setup_func)(void **state);
	int (*teardown_func)(void **state);
	void *initial_state;
};

#define cmocka_unit_test(f) { .name = #f, .test_func = f }
/* Hands the table of the program over. */
int weft_kunit_add(const struct CMUnitTest *tests, size_t n);
/* No program here has a fixture of its own: @setup and @teardown must be NULL. */
#define cmocka_run_group_tests_name(group, tests, setup, teardown) ({	\
	BUILD_BUG_ON((setup) || (teardown));				\
	weft_kunit_add(tests, ARRAY_SIZE(tests));			\
})

#define fail_msg(format, ...) weft_kunit_fail(__FILE__, __LINE__, format, ##__VA_ARGS__)
#define fail() fail_msg("failed")
#define print_message(format, ...) printk(KERN_INFO format, ##__VA_ARGS__)

#define WEFT_KUNIT_CHECK(ok, format, ...) do {				\
	if (unlikely(!(ok)))						\
		fail_msg(format, ##__VA_ARGS__);			\
} while (0)
#define assert_true(c) WEFT_KUNIT_CHECK(c, "not true: %s", #c)
#define assert_false(c) WEFT_KUNIT_CHECK(!(c), "not false: %s", #c)
#define assert_null(p) WEFT_KUNIT_CHECK(!(p), "not NULL: %s", #p)
#define assert_non_null(p) WEFT_KUNIT_CHECK(p, "NULL: %s", #p)
#define assert_ptr_equal(a, b) \
	WEFT_KUNIT_CHECK((const void *)(a) == (const void *)(b), "%s is not %s", #a, #b)
#define assert_ptr_not_equal(a, b) \
	WEFT_KUNIT_CHECK((const void *)(a) != (const void *)(b), "%s is %s", #a, #b)
#define assert_string_equal(a, b) WEFT_KUNIT_CHECK(!strcmp(a, b), "%s is \"%s\"", #a, a)
#define assert_memory_equal(a, b, n) \
	weft_kunit_memory(__FILE__, __LINE__, #a, a, b, n, true)
#define assert_memory_not_equal(a, b, n) \
	weft_kunit_memory(__FILE__, __LINE__, #a, a, b, n, false)
#define assert_int_equal(a, b) \
	weft_kunit_numbers(__FILE__, __LINE__, #a, (u64)(a), (u64)(b), true)
#define assert_int_not_equal(a, b) \
	weft_kunit_numbers(__FILE__, __LINE__, #a, (u64)(a), (u64)(b), false)
#define assert_in_range(v, least, most)	\
	weft_kunit_range(__FILE__, __LINE__, #v, (u64)(v), (u64)(least), (u64)(most))

void weft_kunit_memory(const char *file, int line, const char *what, const void *a, const void *b,
		       size_t n, bool equal);

static inline void weft_kunit_numbers(const char *file, int line, const char *what, u64 a, u64 b,
				      bool equal)
{
	if (unlikely((a == b) != equal))
		weft_kunit_fail(file, line, "%s is %lld (%#llx), %s %lld (%#llx)", what, a, a,
				equal ? "had to be" : "must not be", b, b);
}

static inline void weft_kunit_range(const char *file, int line, const char *what, u64 v, u64 least,
				    u64 most)
{
	if (unlikely(v < least || v > most))
		weft_kunit_fail(file, line, "%s is %lld, not %lld to %lld", what, v, least, most);
}

#endif
