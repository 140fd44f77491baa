/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* TAP on stdout, for programs that run their tests one after the other. */
#ifndef VERDICT_H
#define VERDICT_H

#include <stdbool.h>

/* Prints a test's line: "ok" if @why is NULL. */
void verdict(const char *name, const char *why);
void verdict_if(const char *name, bool ok);
/* Of the tests, only the one of this name runs; NULL: all of them. */
void verdict_only(const char *name);
bool verdict_wants(const char *name);
/* Prints the plan. Returns what main() returns: 0 if a test ran, and none failed. */
int verdict_end(void);

#endif
