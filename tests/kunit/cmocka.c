// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* How a test fails, or is skipped. */
#include <kunit/test.h>
#include <kunit/test-bug.h>

#include <cmocka.h>

void weft_kunit_fail(const char *file, int line, const char *format, ...)
{
	struct kunit *test = kunit_get_current_test();
	struct va_format text = { .fmt = format };
	va_list args;

	va_start(args, format);
	text.va = &args;
	kunit_err(test, "%s:%d: %pV\n", kbasename(file), line, &text);
	va_end(args);
	KUNIT_ASSERT_TRUE_MSG(test, false, "%s:%d", kbasename(file), line);
	unreachable();
}

void weft_kunit_skip(const char *reason)
{
	kunit_skip(kunit_get_current_test(), "%s", reason);
	unreachable();
}

void weft_kunit_memory(const char *file, int line, const char *what, const void *a, const void *b,
		       size_t n, bool equal)
{
	const u8 *x = a, *y = b;
	size_t i;

	if (!memcmp(a, b, n) == equal)
		return;
	for (i = 0; i < n && x[i] == y[i]; i++)
		;
	if (i == n)
		weft_kunit_fail(file, line, "%s: %zu equal octets", what, n);
	weft_kunit_fail(file, line, "%s: octet %zu of %zu is %02x, had to be %02x", what, i, n,
			x[i], y[i]);
}
