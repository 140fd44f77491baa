// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Programs that Kbuild leaves out, each with its reason, so that they are seen as skipped. */
#include <kunit/test.h>

#include "suites.h"

static void crc(struct kunit *test)
{
	kunit_skip(test, "tests/engine/test_crc.c tests the CRC of rootless; this is the kernel's");
}

static void data(struct kunit *test)
{
	kunit_skip(test, "tests/stacks/test_data.c outlasts the five minutes that KUnit gives");
}

static void races(struct kunit *test)
{
	kunit_skip(test, "tests/stacks/test_races.c acts in a handler of SIGSEGV");
}

static void holders(struct kunit *test)
{
	kunit_skip(test, "tests/stacks/test_holders.c runs QPs on threads, over a host of its own");
}

static void rings(struct kunit *test)
{
	kunit_skip(test, "tests/stacks/test_rings.c has user and stack on two threads that sleep");
}

static struct kunit_case cases[] = {
	KUNIT_CASE(crc),
	KUNIT_CASE(data),
	KUNIT_CASE(races),
	KUNIT_CASE(holders),
	KUNIT_CASE(rings),
	{}
};

struct kunit_suite weft_kunit_left_out = { .name = "weft_left_out", .test_cases = cases };
