// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "conn.h"

static const char *only;
static int ran, failed;

const char *cases_begin(int argc, char **argv, const char *program)
{
	conn_program = program;
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc < 2 || argc > 3) {
		fprintf(stderr, "%s ADDR [CASE]    ADDR: of a device of this machine\n", program);
		exit(2);
	}
	only = argv[2];
	return argv[1];
}

static void run_case(const struct cases *c, const struct a_case *one, const char *suffix)
{
	bool ok;

	c->open(one->setting);
	ok = one->run();
	c->close();
	failed += !ok;
	printf("%sok %d - %s%s\n", ok ? "" : "not ", ++ran, one->name, suffix);
}

void cases_run(const struct cases *c, const char *suffix)
{
	unsigned int i;

	for (i = 0; i < c->n; i++)
		if (!only || !strcmp(only, c->list[i].name))
			run_case(c, &c->list[i], suffix);
}

int cases_end(void)
{
	if (!ran)
		fail("no case %s", only);
	printf("1..%d\n", ran);
	return !!failed;
}
