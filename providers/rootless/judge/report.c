// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <fcntl.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "devices/profile.h"
#include "process/lock.h"
#include "process/options.h"
#include "process/raw.h"
#include "report.h"

#define MOST_KNOWN	1024
#define MOST_SUPPRESSED	256

bool rl_judge_is_on;

static struct {
	u32 rules;			/* bits by enum rl_judge_rule; constant */
	char *suppressions;		/* a file's text; constant */
	struct {
		const char *rule, *pattern;
	} suppressed[MOST_SUPPRESSED];
	u32 n_suppressed;
	struct rl_lock lock;		/* the rest */
	u64 known[MOST_KNOWN];
	u32 n_known, n, more;
} reports;

/* ---- options ---- */

/* Lines: RULE PATTERN, or a comment. */
static void read_suppressions(const char *name)
{
	struct rl_profile_error e = { 0 };
	char *line, *save = NULL, *word;
	size_t len;

	reports.suppressions = rl_profile_read(name, &len, &e);
	if (!reports.suppressions)
		rl_complain("%s is ignored: %s", name, e.why);
	for (line = reports.suppressions ? strtok_r(reports.suppressions, "\n", &save) : NULL;
	     line && reports.n_suppressed < MOST_SUPPRESSED; line = strtok_r(NULL, "\n", &save)) {
		line += strspn(line, " \t");
		word = line + strcspn(line, " \t");
		if (*line == '#' || !*word)
			continue;
		*word++ = '\0';
		reports.suppressed[reports.n_suppressed].rule = line;
		reports.suppressed[reports.n_suppressed++].pattern = word + strspn(word, " \t");
	}
}

void rl_report_begin(void)
{
	const struct rl_options *o = rl_options();
	const char *word;
	size_t len;

	if (!o->judge)
		return;
	if (!rl_judge_parse(o->judge, &reports.rules, &word, &len)) {
		rl_complain("WEFT_JUDGE=%s is ignored: %.*s is no rule", o->judge, (int)len, word);
		return;
	}
	if (o->judge_suppress)
		read_suppressions(o->judge_suppress);
	rl_judge_is_on = true;
}

bool rl_judge_has(enum rl_judge_rule rule)
{
	return reports.rules & 1u << rule;
}

/* ---- making one ---- */

void rl_report_init(struct rl_report *r, enum rl_judge_rule rule, const char *what, ...)
{
	va_list args;

	r->rule = rule;
	r->n = 0;
	va_start(args, what);
	vsnprintf(r->what, sizeof(r->what), what, args);
	va_end(args);
}

void rl_report_add(struct rl_report *r, const struct rl_stack *s, const char *title, ...)
{
	va_list args;

	if (r->n == RL_REPORT_STACKS)
		return;
	va_start(args, title);
	vsnprintf(r->stacks[r->n].title, sizeof(r->stacks[r->n].title), title, args);
	va_end(args);
	if (s)
		r->stacks[r->n].stack = *s;
	else
		rl_stack_take(&r->stacks[r->n].stack);
	r->n++;
}

/* ---- text ---- */

struct text {
	char *at;
	size_t room;
};

/* What does not fit is left out. */
static void __attribute__((format(printf, 2, 3))) put_text(struct text *t, const char *fmt, ...)
{
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(t->at, t->room, fmt, args);
	va_end(args);
	n = n < 0 ? 0 : min_t(int, n, (int)t->room - 1);
	t->at += n;
	t->room -= n;
}

static const char *name_in_path(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void put_frame(struct text *t, u32 i, const struct rl_frame *f)
{
	put_text(t, "      #%u %s", i, *f->function ? f->function : "?");
	if (*f->file)
		put_text(t, " %s:%u\n", f->file, f->line);
	else
		put_text(t, " (%s+%#llx)\n", f->module, (unsigned long long)f->offset);
}

typedef struct rl_frame frames[RL_STACK_DEPTH];

static void put_report(struct text *t, const struct rl_report *r, const frames *all, const u32 *n)
{
	const struct rl_judge_text *rule = &rl_judge_texts[r->rule];
	u32 i, k;

	/* The program may be in the middle of a line. */
	put_text(t, "\nweft-run: %s %s: %s\n", rule->number, rule->name, r->what);
	for (i = 0; i < r->n; i++) {
		put_text(t, "    %s:\n", r->stacks[i].title);
		for (k = 0; k < n[i]; k++)
			put_frame(t, k, &all[i][k]);
	}
	put_text(t, "    why: %s\n    do: %s\n    see: docs/checking.md#%s\n", rule->reason,
		 rule->fix, rule->name);
}

/* ---- JSON ---- */

static void put_quoted(struct text *t, const char *s)
{
	put_text(t, "\"");
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			put_text(t, "\\%c", *s);
		else if ((unsigned char)*s < ' ')
			put_text(t, "\\u%04x", *s);
		else
			put_text(t, "%c", *s);
	}
	put_text(t, "\"");
}

static void put_json_frame(struct text *t, const struct rl_frame *f)
{
	put_text(t, "{\"function\":");
	put_quoted(t, f->function);
	put_text(t, ",\"file\":");
	put_quoted(t, f->file);
	put_text(t, ",\"line\":%u,\"module\":", f->line);
	put_quoted(t, f->module);
	put_text(t, ",\"offset\":%llu}", (unsigned long long)f->offset);
}

static void put_json(struct text *t, const struct rl_report *r, const frames *all, const u32 *n)
{
	u32 i, k;

	put_text(t, "{\"number\":\"%s\",\"rule\":\"%s\",\"pid\":%ld,\"thread\":%ld,\"what\":",
	    rl_judge_texts[r->rule].number, rl_judge_texts[r->rule].name, rl_raw(SYS_getpid),
	    rl_raw(SYS_gettid));
	put_quoted(t, r->what);
	put_text(t, ",\"stacks\":[");
	for (i = 0; i < r->n; i++) {
		put_text(t, "%s{\"title\":", i ? "," : "");
		put_quoted(t, r->stacks[i].title);
		put_text(t, ",\"frames\":[");
		for (k = 0; k < n[i]; k++) {
			put_text(t, "%s", k ? "," : "");
			put_json_frame(t, &all[i][k]);
		}
		put_text(t, "]}");
	}
	put_text(t, "]}\n");
}

/* As the log of faults: opened anew, so that the program cannot close it. */
static void write_json(const char *text, size_t len)
{
	const char *name = rl_options()->judge_log;
	long fd = rl_raw(SYS_openat, AT_FDCWD, name,
			 O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0644);

	if (fd < 0 || rl_raw(SYS_write, fd, text, len) != (long)len)
		rl_complain("the judge's log %s cannot be written", name);
	if (fd >= 0)
		rl_raw(SYS_close, fd);
}

/* ---- which are said ---- */

static bool is_known(const struct rl_report *r)
{
	u64 hash = (r->rule + 1) * 0x9e3779b97f4a7c15ull;
	u32 i;

	for (i = 0; r->n && i < r->stacks[0].stack.n; i++)
		hash = (hash ^ (uintptr_t)r->stacks[0].stack.pc[i]) * 0x100000001b3ull;
	for (i = 0; i < reports.n_known; i++)
		if (reports.known[i] == hash)
			return true;
	if (reports.n_known == MOST_KNOWN)
		return true;
	reports.known[reports.n_known++] = hash;
	return false;
}

static bool frame_matches(const struct rl_frame *f, const char *pattern)
{
	return !fnmatch(pattern, f->function, 0) || !fnmatch(pattern, f->file, 0) ||
	       !fnmatch(pattern, name_in_path(f->file), 0) || !fnmatch(pattern, f->module, 0) ||
	       !fnmatch(pattern, name_in_path(f->module), 0);
}

static bool is_suppressed(const struct rl_report *r, const frames *all, const u32 *n)
{
	const struct rl_judge_text *rule = &rl_judge_texts[r->rule];
	u32 s, i, k;

	for (s = 0; s < reports.n_suppressed; s++) {
		const char *of = reports.suppressed[s].rule;

		if (strcmp(of, "*") && strcmp(of, rule->name) && strcmp(of, rule->number))
			continue;
		for (i = 0; i < r->n; i++)
			for (k = 0; k < n[i]; k++)
				if (frame_matches(&all[i][k], reports.suppressed[s].pattern))
					return true;
	}
	return false;
}

#define TEXT_ROOM 32768

static void make_report(const struct rl_report *r, const frames *all, const u32 *n, char *room)
{
	struct text t = { room, TEXT_ROOM };

	reports.n++;
	put_report(&t, r, all, n);
	rl_raw(SYS_write, STDERR_FILENO, room, t.at - room);
	if (rl_options()->judge_log) {
		t = (struct text){ room, TEXT_ROOM };
		put_json(&t, r, all, n);
		write_json(room, t.at - room);
	}
	if (rl_options()->judge_fatal)
		rl_raw(SYS_exit_group, RL_EXIT_REPORTED);
}

void rl_report_emit(const struct rl_report *r)
{
	frames *all = malloc(RL_REPORT_STACKS * sizeof(*all) + TEXT_ROOM);
	u32 i, n[RL_REPORT_STACKS];
	int saved = errno;

	rl_lock(&reports.lock);
	if (!all || is_known(r)) {
		reports.more++;
	} else {
		for (i = 0; i < r->n; i++)
			n[i] = rl_stack_resolve(&r->stacks[i].stack, all[i]);
		if (!is_suppressed(r, all, n))
			make_report(r, all, n, (char *)(all + RL_REPORT_STACKS));
	}
	rl_unlock(&reports.lock);
	free(all);
	errno = saved;
}

u32 rl_report_count(void)
{
	return READ_ONCE(reports.n);
}

void rl_report_forked(void)
{
	reports.n = reports.more = reports.n_known = 0;
	reports.lock = (struct rl_lock){ 0 };
}
