/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Results for people, for TAP, for JUnit, and the tables of --list and docs. */
#ifndef WEFTSPEC_REPORT_H
#define WEFTSPEC_REPORT_H

#include "run.h"

struct tally {
	size_t cases[V_CRASH + 1];
	size_t rows[V_CRASH + 1]; /* a row counts as its worst case */
	size_t surprises;
};

void report_job(struct run *run, struct job *j);
void report_begin(struct run *run);
void report_end(struct run *run, struct tally *t, double seconds);
/* 0, or -1 with errno. */
int junit_write(const char *path, const struct run *run, double seconds);
void list_rows(const struct options *o);
/* Every row has a case or a reason, every case a row.  Number of faults. */
int check_table(void);
/* Markdown: one line a row with its verdict. */
void table_rows(const struct run *run);

#endif
