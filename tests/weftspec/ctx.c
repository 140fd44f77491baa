/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ctx.h"

static void set(struct ctx *c, enum verdict v, const char *expected,
		const char *fmt, va_list ap)
{
	if (c->r->verdict >= v)
		return; /* the first finding of the worst kind stays */
	c->r->verdict = v;
	snprintf(c->r->expected, TEXT_MAX, "%s", expected);
	vsnprintf(c->r->actual, TEXT_MAX, fmt, ap);
}

void fail(struct ctx *c, const char *expected, const char *actual, ...)
{
	va_list ap;

	va_start(ap, actual);
	set(c, V_FAIL, expected, actual, ap);
	va_end(ap);
	longjmp(c->out, 1);
}

void skip(struct ctx *c, const char *why, ...)
{
	va_list ap;

	va_start(ap, why);
	set(c, V_SKIPPED, "", why, ap);
	va_end(ap);
	longjmp(c->out, 1);
}

void unreachable(struct ctx *c, const char *what, ...)
{
	va_list ap;

	va_start(ap, what);
	set(c, V_FAIL, "the peer can be reached", what, ap);
	va_end(ap);
	c->r->unreachable = true;
	longjmp(c->out, 1);
}

void divergent(struct ctx *c, const char *expected, const char *actual, ...)
{
	va_list ap;

	va_start(ap, actual);
	set(c, V_DIVERGENT, expected, actual, ap);
	va_end(ap);
}

void say(struct ctx *c, const char *fmt, ...)
{
	struct result *r = c->r;
	va_list ap;
	int n;

	if (r->tlen + 200 > TRANSCRIPT_MAX)
		return;
	va_start(ap, fmt);
	n = vsnprintf(r->transcript + r->tlen, 190, fmt, ap);
	va_end(ap);
	r->tlen += n < 190 ? n : 189;
	r->transcript[r->tlen++] = '\n';
}

uint32_t rnd(struct ctx *c)
{
	c->rnd ^= c->rnd << 13;
	c->rnd ^= c->rnd >> 17;
	c->rnd ^= c->rnd << 5;
	return c->rnd;
}

static struct lint *lint_slot(struct ctx *c, const char *row)
{
	for (int i = 0; i < c->nlint; i++)
		if (!strcmp(c->lint[i].row, row))
			return &c->lint[i];
	if (c->nlint == LINT_MAX)
		return NULL;
	c->lint[c->nlint].row = row;
	return &c->lint[c->nlint++];
}

void lint(struct ctx *c, const char *row, bool ok, const char *fmt, ...)
{
	struct lint *l = lint_slot(c, row);
	va_list ap;

	if (!l)
		return;
	l->seen++;
	if (ok)
		return;
	if (!l->bad++) {
		va_start(ap, fmt);
		vsnprintf(l->first, TEXT_MAX, fmt, ap);
		va_end(ap);
		say(c, "! %s: %s", row, l->first);
	}
}

void lint_verdict(struct ctx *c, const char *row)
{
	struct lint *l = lint_slot(c, row);

	if (!l || !l->seen)
		skip(c, "the peer sent nothing to judge this by");
	if (l->bad)
		fail(c, row_find(row)->text, "%u of %u seen break it; first: %s",
		     l->bad, l->seen, l->first);
}
