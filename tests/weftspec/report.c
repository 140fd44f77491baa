/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "report.h"

const char *verdict_name(enum verdict v)
{
	static const char *const name[] = {
		[V_NONE] = "none", [V_PASS] = "pass",
		[V_DIVERGENT] = "divergent", [V_SKIPPED] = "skipped",
		[V_FAIL] = "fail", [V_CRASH] = "crash",
	};

	return name[v];
}

static const char *color_of(const struct run *run, enum verdict v)
{
	static const char *const code[] = {
		[V_NONE] = "", [V_PASS] = "\033[32m",
		[V_DIVERGENT] = "\033[33m", [V_SKIPPED] = "\033[36m",
		[V_FAIL] = "\033[31m", [V_CRASH] = "\033[1;31m",
	};

	return run->o->color ? code[v] : "";
}

static const char *color_off(const struct run *run)
{
	return run->o->color ? "\033[0m" : "";
}

static void print_transcript(const struct job *j, const char *lead)
{
	const char *p = j->r->transcript, *end = p + j->r->tlen;

	while (p < end) {
		const char *nl = memchr(p, '\n', end - p);

		printf("%s%.*s\n", lead, (int)(nl - p), p);
		p = nl + 1;
	}
}

static void print_job(struct run *run, const struct job *j)
{
	const struct result *r = j->r;
	bool detail = r->verdict > V_SKIPPED || run->o->verbose ||
		      r->verdict == V_DIVERGENT;

	if (run->o->quiet && r->verdict <= V_SKIPPED)
		return;
	printf("%s%-9s%s %-28s %s%s\n", color_of(run, r->verdict),
	       verdict_name(r->verdict), color_off(run), j->id, j->row->text,
	       j->expected ? " [known to the profile]" : "");
	if (r->verdict == V_SKIPPED)
		printf("          %s\n", r->actual);
	else if (detail && *r->actual)
		printf("          RFC %d section %s, %s\n"
		       "          expected: %s\n          actual:   %s\n",
		       j->row->rfc, j->row->section,
		       severity_name(j->row->sev), r->expected, r->actual);
	if (run->o->verbose || r->verdict >= V_FAIL)
		print_transcript(j, "          ");
}

static void print_job_as_tap(struct run *run, const struct job *j)
{
	const struct result *r = j->r;
	bool bad = r->verdict >= V_FAIL && !j->expected;

	printf("%s %zu - %s %s%s%s\n", bad ? "not ok" : "ok",
	       (size_t)(j - run->jobs) + 1, j->id, j->row->text,
	       r->verdict == V_SKIPPED ? " # SKIP " : "",
	       r->verdict == V_SKIPPED ? r->actual : "");
	if (r->verdict == V_PASS || r->verdict == V_SKIPPED)
		return;
	printf("# %s: expected %s; actual %s\n", verdict_name(r->verdict),
	       r->expected, r->actual);
	print_transcript(j, "# ");
}

void report_begin(struct run *run)
{
	if (run->o->tap)
		printf("TAP version 13\n1..%zu\n", run->njobs);
}

void report_job(struct run *run, struct job *j)
{
	if (run->o->tap)
		print_job_as_tap(run, j);
	else
		print_job(run, j);
}

/* The worst of a row's cases, but a pass outweighs a skip beside it. */
static enum verdict row_verdict(const struct run *run, const struct row *row)
{
	enum verdict worst = V_NONE;

	for (size_t i = 0; i < run->njobs; i++) {
		enum verdict v = run->jobs[i].r->verdict;

		if (run->jobs[i].row != row)
			continue;
		if (v == V_SKIPPED && worst != V_NONE)
			continue;
		if (worst == V_SKIPPED || v > worst)
			worst = v;
	}
	return worst;
}

static void count_verdicts(const struct run *run, struct tally *t)
{
	memset(t, 0, sizeof(*t));
	for (size_t i = 0; i < run->njobs; i++) {
		const struct job *j = &run->jobs[i];

		t->cases[j->r->verdict]++;
		t->surprises += j->r->verdict >= V_FAIL && !j->expected;
	}
	for (size_t i = 0; i < nrows; i++)
		t->rows[row_verdict(run, &rows[i])]++;
}

static void print_totals(const char *lead, const char *what, const size_t *n)
{
	printf("%s%s: %zu pass, %zu divergent, %zu fail, %zu crash, %zu skipped\n",
	       lead, what, n[V_PASS], n[V_DIVERGENT], n[V_FAIL], n[V_CRASH],
	       n[V_SKIPPED]);
}

void report_end(struct run *run, struct tally *t, double seconds)
{
	const char *lead = run->o->tap ? "# " : "";

	count_verdicts(run, t);
	print_totals(lead, "cases", t->cases);
	print_totals(lead, "rows", t->rows);
	printf("%s%.1f s, seed %u%s\n", lead, seconds, run->o->seed,
	       run->facts->quirk == TERM_SIW_BITORDER ?
	       "; quirk siw-bitorder: Terminates were read bit-reversed" : "");
}

void table_rows(const struct run *run)
{
	printf("| row | RFC | severity | verdict | requirement |\n"
	       "|---|---|---|---|---|\n");
	for (size_t i = 0; i < nrows; i++) {
		enum verdict v = row_verdict(run, &rows[i]);

		printf("| %s | %d §%s | %s | %s | %s |\n", rows[i].id,
		       rows[i].rfc, rows[i].section, severity_name(rows[i].sev),
		       v == V_NONE ? rows[i].reason ? "no case" : "not run" :
		       verdict_name(v), rows[i].text);
	}
}

static void print_needs(unsigned int n)
{
	static const struct {
		unsigned int bit;
		const char *name;
	} all[] = {
		{ N_ULP, "reflector" }, { N_ATOMIC, "atomics" },
		{ N_IMM, "immediate" }, { N_INV, "invalidation" },
		{ N_V2, "v2" }, { N_IRD, "ird" }, { N_RTR, "rtr" },
		{ N_SRQ, "srq" }, { N_ONE, "window" },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (n & all[i].bit)
			printf(" %s", all[i].name);
}

static void list_row(const struct row *row, const struct options *o)
{
	unsigned int needs = 0, flags = 0;
	size_t n = 0;

	for (const struct wcase *const *t = case_tables; *t; t++)
		for (const struct wcase *w = *t; w->row; w++)
			if (!strcmp(w->row, row->id)) {
				needs |= w->needs;
				flags |= w->flags;
				n++;
			}
	printf("%s  RFC %d %s  %s  %s  %zu case%s%s", row->id, row->rfc,
	       row->section, severity_name(row->sev), role_name(row->role), n,
	       n == 1 ? "" : "s", flags & CASE_X ? "  destructive" : "");
	if (needs) {
		printf("  needs:");
		print_needs(needs);
	}
	printf("\n    %s\n", row->text);
	if (row->reason)
		printf("    no case: %s\n", row->reason);
}

void list_rows(const struct options *o)
{
	size_t with = 0;

	for (size_t i = 0; i < nrows; i++) {
		bool hit = !o->nwanted;

		for (int k = 0; k < o->nwanted; k++)
			hit |= !strncmp(rows[i].id, o->wanted[k],
					strlen(o->wanted[k]));
		with += cases_of(&rows[i]) > 0;
		if (hit)
			list_row(&rows[i], o);
	}
	printf("%zu rows, %zu with a case, %zu with a reason why not\n", nrows,
	       with, nrows - with);
}

int check_table(void)
{
	int bad = 0;

	for (size_t i = 0; i < nrows; i++) {
		bool has = cases_of(&rows[i]) > 0;

		if (has == !!rows[i].reason) {
			printf("%s has %s\n", rows[i].id, has ?
			       "a case and a reason for none" :
			       "neither a case nor a reason");
			bad++;
		}
		for (size_t k = 0; k < i; k++)
			if (!strcmp(rows[i].id, rows[k].id)) {
				printf("%s stands twice\n", rows[i].id);
				bad++;
			}
	}
	for (const struct wcase *const *t = case_tables; *t; t++)
		for (const struct wcase *w = *t; w->row; w++) {
			const struct row *row = row_find(w->row);

			if (row && w->role & row->role)
				continue;
			printf("case %s/%s has no row in that role\n", w->row,
			       w->label ? w->label : "");
			bad++;
		}
	if (!bad)
		printf("%zu rows, each with a case or a reason why not\n", nrows);
	return bad;
}
