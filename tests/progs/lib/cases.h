/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * PROGRAM ADDR [CASE]: a program of cases, each with a connection of its own, both ends in this
 * process, over the device of this machine that has ADDR. TAP on stdout.
 */
#ifndef CASES_H
#define CASES_H

#include <stdbool.h>

struct a_case {
	const char *name;
	bool (*run)(void);
	const void *setting;		/* for open() */
};

struct cases {
	void (*open)(const void *setting);
	void (*close)(void);
	const struct a_case *list;
	unsigned int n;
};

#define CASES(open_, close_, list_) \
	{ open_, close_, list_, sizeof(list_) / sizeof((list_)[0]) }

/* Reads the arguments, or ends the program. Returns ADDR. */
const char *cases_begin(int argc, char **argv, const char *program);
/* Runs each case, or the one that was asked for. What is printed of it is its name and @suffix. */
void cases_run(const struct cases *c, const char *suffix);
/* What main() returns: 0 if a case ran, and none failed. */
int cases_end(void);

#endif
