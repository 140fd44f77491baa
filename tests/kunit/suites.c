// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Makes a KUnit suite of each program of tests/engine and tests/stacks. Its main() hands over its
 * table of tests when this module is initialised, which is before KUnit looks at the suites.
 */
#include <kunit/test.h>
#include <linux/module.h>
#include <linux/slab.h>

#include <cmocka.h>

#include "suites.h"

/* PROGRAMS comes from Kbuild. */
#define PROGRAM(p) int weft_kunit_##p(void);	/* main() */
PROGRAMS
#undef PROGRAM

#define PROGRAM(p) program_##p,
enum { PROGRAMS nr_programs };
#undef PROGRAM

/* Copies: main() has its table on the stack. */
struct entry {
	struct CMUnitTest test;
	const char *name;
};

static struct program {
	int (*main)(void);
	struct entry *entry;
	size_t n;
} programs[] = {
#define PROGRAM(p) { .main = weft_kunit_##p },
	PROGRAMS
#undef PROGRAM
};

/* KUnit passes the name that its case has. */
static const struct CMUnitTest *find_test(const char *name)
{
	size_t i, k;

	for (i = 0; i < ARRAY_SIZE(programs); i++)
		for (k = 0; k < programs[i].n; k++)
			if (programs[i].entry[k].name == name)
				return &programs[i].entry[k].test;
	return NULL;
}

static void run(struct kunit *test)
{
	const struct CMUnitTest *t = find_test(test->name);
	void *state;

	KUNIT_ASSERT_NOT_NULL(test, t);
	state = t->initial_state;
	t->test_func(&state);
}

/* A test that was broken off may leave something. */
static void clean_up(struct kunit *test)
{
	u32 left = weft_kunit_free_all();

	if (left && READ_ONCE(test->status) == KUNIT_SUCCESS)
		KUNIT_FAIL(test, "%u blocks were not freed", left);
}

static struct kunit_suite suites[] = {
#define PROGRAM(p) { .name = "weft_" #p, .exit = clean_up },
	PROGRAMS
#undef PROGRAM
};

/* The program whose main() runs. */
static int current_program;

/* The next test of @p is @t, and KUnit's @c. */
static int add_test(struct program *p, struct kunit_case *c, const struct CMUnitTest *t)
{
	struct entry *e = &p->entry[p->n];

	if (t->setup_func || t->teardown_func)
		return -EOPNOTSUPP;
	e->test = *t;
	e->name = kstrdup(t->name, GFP_KERNEL);
	if (!e->name)
		return -ENOMEM;
	p->n++;
	*c = (struct kunit_case)KUNIT_CASE(run);
	c->name = e->name;
	return 0;
}

int weft_kunit_add(const struct CMUnitTest *tests, size_t n)
{
	struct program *p = &programs[current_program];
	struct kunit_case *cases = kcalloc(n + 1, sizeof(*cases), GFP_KERNEL);
	int rc = 0;
	size_t i;

	suites[current_program].test_cases = cases;
	p->entry = kcalloc(n, sizeof(*p->entry), GFP_KERNEL);
	if (!cases || !p->entry)
		return -ENOMEM;
	for (i = 0; i < n && !rc; i++)
		rc = add_test(p, &cases[i], &tests[i]);
	return rc;
}

static void remove_all(void)
{
	size_t i, k;

	for (i = 0; i < ARRAY_SIZE(programs); i++) {
		for (k = 0; k < programs[i].n; k++)
			kfree(programs[i].entry[k].name);
		kfree(programs[i].entry);
		kfree(suites[i].test_cases);
	}
	weft_kunit_unmap_all();
}

static int __init weft_kunit_init(void)
{
	int rc = 0;

	for (current_program = 0; current_program < nr_programs && !rc; current_program++) {
		rc = programs[current_program].main();
		if (!rc && !programs[current_program].n)
			rc = -ENOENT;
		if (rc)
			pr_err("%s: no tests: %d\n", suites[current_program].name, rc);
	}
	if (rc)
		remove_all();
	return rc;
}
module_init(weft_kunit_init);

static void __exit weft_kunit_exit(void)
{
	remove_all();
}
module_exit(weft_kunit_exit);

#define PROGRAM(p) &suites[program_##p],
kunit_test_suites(PROGRAMS &weft_kunit_left_out);

MODULE_DESCRIPTION("KUnit tests of weft's proto and core");
MODULE_LICENSE("Dual BSD/GPL");
