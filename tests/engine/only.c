// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Lets every cmocka program run a subset of its tests: TEST_ONLY="name pattern*". Linked with
 * --wrap=_cmocka_run_group_tests, so the programs need no change.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Exit status if no test matches: another program of the folder may have it (tap.awk). */
#define NONE_MATCHES 77

int __real__cmocka_run_group_tests(const char *group, const struct CMUnitTest *tests, size_t n,
				   CMFixtureFunction setup, CMFixtureFunction teardown);
int __wrap__cmocka_run_group_tests(const char *group, const struct CMUnitTest *tests, size_t n,
				   CMFixtureFunction setup, CMFixtureFunction teardown);

static const char *wanted(void)
{
	static const char *const variables[] = { "TEST_ONLY", "STACKS_ONLY", "SOCKETS_ONLY" };
	const char *value;
	size_t i;

	for (i = 0; i < sizeof(variables) / sizeof(*variables); i++) {
		value = getenv(variables[i]);
		if (value)
			return value;
	}
	return NULL;
}

static bool matches(const char *name, const char *patterns)
{
	char *copy = strdup(patterns), *rest = copy, *pattern;
	bool found = false;

	if (!copy)
		abort();
	while (!found && (pattern = strsep(&rest, " ")))
		found = !fnmatch(pattern, name, 0);
	free(copy);
	return found;
}

int __wrap__cmocka_run_group_tests(const char *group, const struct CMUnitTest *tests, size_t n,
				   CMFixtureFunction setup, CMFixtureFunction teardown)
{
	const char *patterns = wanted();
	struct CMUnitTest *some;
	size_t i, found = 0;
	int failed;

	if (!patterns)
		return __real__cmocka_run_group_tests(group, tests, n, setup, teardown);
	some = calloc(n, sizeof(*some));
	if (!some)
		abort();
	for (i = 0; i < n; i++)
		if (matches(tests[i].name, patterns))
			some[found++] = tests[i];
	if (found) {
		failed = __real__cmocka_run_group_tests(group, some, found, setup, teardown);
	} else {
		fprintf(stderr, "no test here is called %s\n", patterns);
		failed = NONE_MATCHES;
	}
	free(some);
	return failed;
}
