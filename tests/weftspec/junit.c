/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "report.h"

static void write_escaped(FILE *f, const char *s, size_t n)
{
	for (; n && *s; s++, n--) {
		unsigned char ch = *s;

		if (ch == '<')
			fputs("&lt;", f);
		else if (ch == '>')
			fputs("&gt;", f);
		else if (ch == '&')
			fputs("&amp;", f);
		else if (ch == '"')
			fputs("&quot;", f);
		else if (ch >= 0x20 || ch == '\n')
			fputc(ch, f);
		else
			fputc('?', f); /* XML 1.0 has no other controls */
	}
}

static void write_text(FILE *f, const char *s)
{
	write_escaped(f, s, strlen(s));
}

static void write_outcome(FILE *f, const struct job *j)
{
	const struct result *r = j->r;
	const char *tag = r->verdict == V_SKIPPED ? "skipped" :
			  r->unreachable ? "error" : "failure";

	if (r->verdict == V_PASS || r->verdict == V_DIVERGENT)
		return;
	fprintf(f, "   <%s type=\"%s\" message=\"", tag,
		verdict_name(r->verdict));
	if (r->verdict != V_SKIPPED) {
		fputs("expected: ", f);
		write_text(f, r->expected);
		fputs("; actual: ", f);
	}
	write_text(f, r->actual);
	fprintf(f, "\"/>\n");
}

static void write_testcase(FILE *f, const struct job *j)
{
	const struct result *r = j->r;

	fprintf(f, "  <testcase classname=\"%s\" name=\"", j->row->id);
	write_text(f, j->id);
	fprintf(f, "\" time=\"%.3f\">\n", r->seconds);
	if (r->verdict == V_DIVERGENT)
		fprintf(f, "   <properties><property name=\"verdict\" "
			"value=\"divergent\"/></properties>\n");
	write_outcome(f, j);
	if (r->tlen || r->verdict == V_DIVERGENT) {
		fputs("   <system-out>", f);
		if (r->verdict == V_DIVERGENT) {
			fputs("divergent: expected ", f);
			write_text(f, r->expected);
			fputs("; actual ", f);
			write_text(f, r->actual);
			fputc('\n', f);
		}
		write_escaped(f, r->transcript, r->tlen);
		fputs("</system-out>\n", f);
	}
	fprintf(f, "  </testcase>\n");
}

static void write_testsuite(FILE *f, const struct run *run, const char *group)
{
	size_t n = 0, bad = 0, err = 0, skipped = 0;

	for (size_t i = 0; i < run->njobs; i++) {
		const struct result *r = run->jobs[i].r;

		if (strncmp(run->jobs[i].id, group, 3))
			continue;
		n++;
		err += r->verdict >= V_FAIL && r->unreachable;
		bad += r->verdict >= V_FAIL && !r->unreachable;
		skipped += r->verdict == V_SKIPPED;
	}
	if (!n)
		return;
	fprintf(f, " <testsuite name=\"%s\" tests=\"%zu\" failures=\"%zu\" "
		"errors=\"%zu\" skipped=\"%zu\">\n", group, n, bad, err, skipped);
	for (size_t i = 0; i < run->njobs; i++)
		if (!strncmp(run->jobs[i].id, group, 3))
			write_testcase(f, &run->jobs[i]);
	fprintf(f, " </testsuite>\n");
}

int junit_write(const char *path, const struct run *run, double seconds)
{
	static const char *const groups[] = {
		"MPA", "ENH", "DDP", "RDM", "EXT", "SEC",
	};
	FILE *f = fopen(path, "w");
	int bad;

	if (!f)
		return -1;
	fprintf(f, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<testsuites name=\"weftspec\" time=\"%.3f\">\n", seconds);
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
		write_testsuite(f, run, groups[i]);
	fprintf(f, "</testsuites>\n");
	bad = fflush(f) || ferror(f);
	return fclose(f) || bad ? -1 : 0;
}
