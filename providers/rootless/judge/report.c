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
#include "sarif.h"
#include "text.h"

#define MOST_KNOWN	1024
#define MOST_SUPPRESSED	256

bool rl_judge_is_on, rl_place_apart;

static struct {
	u32 rules;			/* bits by enum rl_judge_rule; constant */
	char *suppressions;		/* a file's text; constant */
	struct {
		const char *rule, *pattern;
	} suppressed[MOST_SUPPRESSED];
	u32 n_suppressed;
	struct rl_lock lock;		/* the rest */
	u64 known[MOST_KNOWN];
	u32 n_known, n;
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

	/* Without rules: send queues are cramped by what is noted. */
	rl_judge_is_on = o->adverse;
	if (!o->judge)
		return;
	if (!rl_judge_parse(o->judge, &reports.rules, &word, &len)) {
		rl_complain("WEFT_JUDGE=%s is ignored: %.*s is no rule", o->judge, (int)len, word);
		return;
	}
	if (o->judge_suppress)
		read_suppressions(o->judge_suppress);
	rl_judge_is_on = rl_place_apart = true;
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

static const char *name_in_path(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void put_frame(struct rl_text *t, u32 i, const struct rl_frame *f)
{
	rl_text_put(t, "      #%u %s", i, *f->function ? f->function : "?");
	if (*f->file)
		rl_text_put(t, " %s:%u\n", f->file, f->line);
	else
		rl_text_put(t, " (%s+%#llx)\n", f->module, (unsigned long long)f->offset);
}

/* Rules of one family, which is their number's first digit, share a page. */
static const char *page_of(const struct rl_judge_text *rule)
{
	switch (rule->number[1]) {
	case '1': return "objects";
	case '2': return "memory";
	default: return "queues";
	}
}

static void put_report(struct rl_text *t, const struct rl_report *r, const rl_frames *all,
		       const u32 *n)
{
	const struct rl_judge_text *rule = &rl_judge_texts[r->rule];
	u32 i, k;

	/* The program may be in the middle of a line. */
	rl_text_put(t, "\nweft-run: %s %s: %s\n", rule->number, rule->name, r->what);
	for (i = 0; i < r->n; i++) {
		rl_text_put(t, "    %s:\n", r->stacks[i].title);
		for (k = 0; k < n[i]; k++)
			put_frame(t, k, &all[i][k]);
	}
	rl_text_put(t, "    why: %s\n    do: %s\n    see: docs/checking-%s.md#%s\n",
		    rule->reason, rule->fix, page_of(rule), rule->name);
}

/* ---- JSON ---- */

static void put_json_frame(struct rl_text *t, const struct rl_frame *f)
{
	rl_text_put(t, "{\"function\":");
	rl_text_quote(t, f->function);
	rl_text_put(t, ",\"file\":");
	rl_text_quote(t, f->file);
	rl_text_put(t, ",\"line\":%u,\"module\":", f->line);
	rl_text_quote(t, f->module);
	rl_text_put(t, ",\"offset\":%llu}", (unsigned long long)f->offset);
}

static void put_json(struct rl_text *t, const struct rl_report *r, const rl_frames *all,
		     const u32 *n)
{
	u32 i, k;

	rl_text_put(t, "{\"number\":\"%s\",\"rule\":\"%s\",\"pid\":%ld,\"thread\":%ld,\"what\":",
	    rl_judge_texts[r->rule].number, rl_judge_texts[r->rule].name, rl_raw(SYS_getpid),
	    rl_raw(SYS_gettid));
	rl_text_quote(t, r->what);
	rl_text_put(t, ",\"stacks\":[");
	for (i = 0; i < r->n; i++) {
		rl_text_put(t, "%s{\"title\":", i ? "," : "");
		rl_text_quote(t, r->stacks[i].title);
		rl_text_put(t, ",\"frames\":[");
		for (k = 0; k < n[i]; k++) {
			rl_text_put(t, "%s", k ? "," : "");
			put_json_frame(t, &all[i][k]);
		}
		rl_text_put(t, "]}");
	}
	rl_text_put(t, "]}\n");
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

static bool ends_with(const char *s, const char *end)
{
	size_t len = strlen(s), n = strlen(end);

	return len >= n && !strcmp(s + len - n, end);
}

#define TEXT_ROOM 32768

static void add_to_log(const struct rl_report *r, const rl_frames *all, const u32 *n, char *room)
{
	const char *name = rl_options()->judge_log;
	struct rl_text t = { room, TEXT_ROOM };

	if (ends_with(name, ".sarif")) {
		rl_sarif_add(name, r, all, n, room, TEXT_ROOM);
		return;
	}
	put_json(&t, r, all, n);
	/* Half a line would spoil the whole log. */
	if (t.room <= 1) {
		t = (struct rl_text){ room, TEXT_ROOM };
		rl_text_put(&t, "{\"number\":\"%s\",\"rule\":\"%s\",\"stacks\":[]}\n",
			    rl_judge_texts[r->rule].number, rl_judge_texts[r->rule].name);
	}
	write_json(room, t.at - room);
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
	if (reports.n_known == MOST_KNOWN)
		rl_complain("the judge has reported %u lines: further ones are left out",
			    MOST_KNOWN);
	return false;
}

static bool frame_matches(const struct rl_frame *f, const char *pattern)
{
	return !fnmatch(pattern, f->function, 0) || !fnmatch(pattern, f->file, 0) ||
	       !fnmatch(pattern, name_in_path(f->file), 0) || !fnmatch(pattern, f->module, 0) ||
	       !fnmatch(pattern, name_in_path(f->module), 0);
}

static bool is_suppressed(const struct rl_report *r, const rl_frames *all, const u32 *n)
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

static void make_report(const struct rl_report *r, const rl_frames *all, const u32 *n, char *room)
{
	struct rl_text t = { room, TEXT_ROOM };

	reports.n++;
	put_report(&t, r, all, n);
	rl_raw(SYS_write, STDERR_FILENO, room, t.at - room);
	if (rl_options()->judge_log)
		add_to_log(r, all, n, room);
	if (rl_options()->judge_fatal)
		rl_raw(SYS_exit_group, RL_EXIT_REPORTED);
}

void rl_report_emit(const struct rl_report *r)
{
	u32 i, n[RL_REPORT_STACKS];
	rl_frames *all = NULL;
	int saved = errno;

	rl_lock(&reports.lock);
	if (!is_known(r))
		all = malloc(RL_REPORT_STACKS * sizeof(*all) + TEXT_ROOM);
	if (all) {
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
	reports.n = reports.n_known = 0;
	reports.lock = (struct rl_lock){ 0 };
}
