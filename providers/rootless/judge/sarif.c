// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "process/options.h"
#include "process/raw.h"
#include "sarif.h"
#include "text.h"

#define TRAILER		"\n]}]}\n"

/* ---- a result ---- */

/* A path may have what no URI has. */
static void put_uri(struct rl_text *t, const char *path)
{
	rl_text_put(t, "\"");
	for (; *path; path++) {
		char c = *path;

		if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		    strchr("/._-~+", c))
			rl_text_put(t, "%c", c);
		else
			rl_text_put(t, "%%%02X", (unsigned char)c);
	}
	rl_text_put(t, "\"");
}

static void put_location(struct rl_text *t, const struct rl_frame *f)
{
	rl_text_put(t, "{\"physicalLocation\":{\"artifactLocation\":{\"uri\":");
	put_uri(t, *f->file ? f->file : f->module);
	rl_text_put(t, "}");
	if (f->line)
		rl_text_put(t, ",\"region\":{\"startLine\":%u}", f->line);
	rl_text_put(t, "},\"logicalLocations\":[{\"name\":");
	rl_text_quote(t, *f->function ? f->function : "?");
	rl_text_put(t, "}]}");
}

/* Where the report is shown: the first frame that has a line. */
static const struct rl_frame *main_frame(const struct rl_report *r, const rl_frames *all,
					 const u32 *n)
{
	u32 i, k;

	for (i = 0; i < r->n; i++)
		for (k = 0; k < n[i]; k++)
			if (all[i][k].line)
				return &all[i][k];
	return NULL;
}

static void put_stack(struct rl_text *t, const char *title, const struct rl_frame *frames, u32 n)
{
	u32 i;

	rl_text_put(t, "{\"message\":{\"text\":");
	rl_text_quote(t, title);
	rl_text_put(t, "},\"frames\":[");
	for (i = 0; i < n; i++) {
		rl_text_put(t, "%s{\"location\":", i ? "," : "");
		put_location(t, &frames[i]);
		rl_text_put(t, "}");
	}
	rl_text_put(t, "]}");
}

static void put_result(struct rl_text *t, const struct rl_report *r, const rl_frames *all,
		       const u32 *n)
{
	const struct rl_judge_text *rule = &rl_judge_texts[r->rule];
	const struct rl_frame *at = main_frame(r, all, n);
	u32 i;

	rl_text_put(t, "{\"ruleId\":\"%s\",\"level\":\"%s\",\"message\":{\"text\":", rule->number,
		    rule->is_off ? "warning" : "error");
	rl_text_quote(t, r->what);
	rl_text_put(t, "}");
	if (at) {
		rl_text_put(t, ",\"locations\":[");
		put_location(t, at);
		rl_text_put(t, "]");
	}
	rl_text_put(t, ",\"stacks\":[");
	for (i = 0; i < r->n; i++) {
		rl_text_put(t, "%s", i ? "," : "");
		put_stack(t, r->stacks[i].title, all[i], n[i]);
	}
	rl_text_put(t, "]}");
}

/* ---- the document ---- */

static void put_header(struct rl_text *t)
{
	u32 i;

	rl_text_put(t, "{\"version\":\"2.1.0\",\"runs\":[{\"tool\":{\"driver\":{"
		    "\"name\":\"weft-run\",\"rules\":[");
	for (i = 0; i < RL_JUDGE_RULES; i++) {
		const struct rl_judge_text *rule = &rl_judge_texts[i];

		rl_text_put(t, "%s\n{\"id\":\"%s\",\"name\":\"%s\",\"shortDescription\":"
			    "{\"text\":", i ? "," : "", rule->number, rule->name);
		rl_text_quote(t, rule->reason);
		rl_text_put(t, "},\"help\":{\"text\":");
		rl_text_quote(t, rule->fix);
		rl_text_put(t, "}}");
	}
	rl_text_put(t, "]}},\"results\":[\n");
}

static bool ends_as_ours(long fd, long size)
{
	const long len = strlen(TRAILER);
	char end[sizeof(TRAILER)] = "";

	return size >= len && rl_raw(SYS_pread64, fd, end, len, size - len) == len &&
	       !memcmp(end, TRAILER, len);
}

#define LOOKS		100		/* two seconds in all */
#define LOOK_NS		20000000

/* Another process may be at it; one that was stopped must not hold this one up. */
static bool lock_document(long fd)
{
	const struct timespec pause = { .tv_nsec = LOOK_NS };
	int i;

	for (i = 0; i < LOOKS; i++) {
		if (!rl_raw(SYS_flock, fd, LOCK_EX | LOCK_NB))
			return true;
		rl_raw(SYS_nanosleep, &pause, NULL);
	}
	return false;
}

static bool add_result(long fd, const struct rl_report *r, const rl_frames *all, const u32 *n,
		       char *room, size_t size)
{
	struct rl_text t = { room, size };
	struct stat st = { 0 };
	struct rl_report brief = *r;
	long at;

	if (!lock_document(fd) || rl_raw(SYS_newfstatat, fd, "", &st, AT_EMPTY_PATH))
		return false;
	if (st.st_size && !ends_as_ours(fd, st.st_size))
		return false;
	at = st.st_size ? st.st_size - (long)strlen(TRAILER) : 0;
	for (;; brief.n = 0) {
		t = (struct rl_text){ room, size };
		if (at)
			rl_text_put(&t, ",\n");
		else
			put_header(&t);
		put_result(&t, &brief, all, n);
		rl_text_put(&t, TRAILER);
		if (t.room > 1 || !brief.n)
			break;
	}
	return rl_raw(SYS_pwrite64, fd, room, t.at - room, at) == t.at - room;
}

void rl_sarif_add(const char *name, const struct rl_report *r, const rl_frames *all, const u32 *n,
		  char *room, size_t size)
{
	long fd = rl_raw(SYS_openat, AT_FDCWD, name,
			 O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0644);

	if (fd < 0 || !add_result(fd, r, all, n, room, size))
		rl_complain("the judge's log %s cannot be written", name);
	if (fd >= 0)
		rl_raw(SYS_close, fd);
}
