// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <stdio.h>
#include <string.h>

#include "verdict.h"

static const char *only;
static int ran, failed;

static void print_verdict(const char *name, bool ok, const char *separator, const char *why)
{
	failed += !ok;
	printf("%sok %d - %s%s%s\n", ok ? "" : "not ", ++ran, name, separator, why);
	/* The next test may crash the machine, and a child must not print this line again. */
	fflush(stdout);
}

void verdict(const char *name, const char *why)
{
	print_verdict(name, !why, why ? ": " : "", why ? why : "");
}

void verdict_if(const char *name, bool ok)
{
	print_verdict(name, ok, "", "");
}

void verdict_only(const char *name)
{
	only = name;
}

bool verdict_wants(const char *name)
{
	return !only || !strcmp(only, name);
}

int verdict_end(void)
{
	printf("1..%d\n", ran);
	if (!ran)
		fprintf(stderr, "no test is called %s\n", only);
	return failed || !ran;
}
