// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * addr2line runs in a grandchild of this process. Its parent is a child without a signal of its
 * end, which only wait4(__WCLONE) finds: neither a handler of SIGCHLD nor a wait() of the program
 * notices it. Between clone and exec there are only system calls.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unwind.h>

#include "process/raw.h"
#include "stack.h"

/* The provider, and the library of calls. */
#define OWN	"/libweft-"
#define ANSWER_MS	10000

extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));

/* ---- taking ---- */

struct walk {
	struct rl_stack *s;
	bool is_outside;
};

static _Unwind_Reason_Code take_frame(struct _Unwind_Context *c, void *arg)
{
	struct walk *w = arg;
	int is_next = 0;
	const char *pc = (const char *)_Unwind_GetIPInfo(c, &is_next);

	w->is_outside |= pc < __ehdr_start || pc >= _end;
	if (!pc || w->s->n == RL_STACK_DEPTH)
		return _URC_END_OF_STACK;
	/* All are as addresses to return to; that of a signal is the instruction's own. */
	if (w->is_outside)
		w->s->pc[w->s->n++] = pc + is_next;
	return _URC_NO_REASON;
}

void rl_stack_take(struct rl_stack *s)
{
	struct walk w = { s, false };

	s->n = 0;
	_Unwind_Backtrace(take_frame, &w);
}

/* ---- names that the loader knows ---- */

/* The program's own name is that by which it was started. With the lock of reports. */
static const char *own_path(void)
{
	static char path[512];
	long len = *path ? 1 : rl_raw(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", path,
				      sizeof(path) - 1);

	return len > 0 ? path : "";
}

static void find_module(const void *pc, struct rl_frame *f)
{
	const char *call = (const char *)pc - 1;	/* pc is where it returns to */
	struct link_map *map = NULL;
	Dl_info info;

	*f = (struct rl_frame){ .module = "", .offset = (uintptr_t)call };
	if (!dladdr1(call, &info, (void **)&map, RTLD_DL_LINKMAP))
		return;
	f->module = map && !*map->l_name ? own_path() : info.dli_fname;
	f->offset = (uintptr_t)call - (map ? map->l_addr : 0);
	if (info.dli_sname)
		snprintf(f->function, sizeof(f->function), "%s", info.dli_sname);
}

static bool is_verbs(const void *pc)
{
	static const char *const libraries[] = { OWN, "/libibverbs.", "/librdmacm." };
	Dl_info info;
	u32 i;

	if (!dladdr((const char *)pc - 1, &info) || !info.dli_fname)
		return false;
	for (i = 0; i < ARRAY_SIZE(libraries); i++)
		if (strstr(info.dli_fname, libraries[i]))
			return true;
	return false;
}

const void *rl_stack_program(const struct rl_stack *s)
{
	u32 i;

	for (i = 0; i < s->n; i++)
		if (!is_verbs(s->pc[i]))
			return s->pc[i];
	return NULL;
}

/* ---- addr2line ---- */

static const char *tool(void)
{
	static const char *const places[] = { "/usr/bin/addr2line", "/usr/local/bin/addr2line" };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(places); i++)
		if (!rl_raw(SYS_faccessat, AT_FDCWD, places[i], X_OK))
			return places[i];
	return NULL;
}

static long child_of(u32 signal)
{
	return rl_raw(SYS_clone, signal, 0, 0, 0, 0);
}

static void __attribute__((noreturn)) end_child(int status)
{
	for (;;)
		rl_raw(SYS_exit_group, status);
}

/* In the child: waits for the grandchild, so that no zombie is left to init. */
static void __attribute__((noreturn)) run_tool(const char *const *argv, int out)
{
	static const char *const env[] = { "LC_ALL=C", NULL };
	long pid = child_of(SIGCHLD);
	int null;

	if (pid) {
		rl_raw(SYS_wait4, pid, NULL, 0, NULL);
		end_child(0);
	}
	null = (int)rl_raw(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR);
	rl_raw(SYS_dup3, null, 0, 0);
	rl_raw(SYS_dup3, null, 2, 0);
	rl_raw(SYS_dup3, out, 1, 0);
	rl_raw(SYS_execve, argv[0], argv, env);
	end_child(127);
}

/* What it prints, in @text of @room octets. */
static size_t read_answer(int fd, char *text, size_t room)
{
	const struct timespec patience = { .tv_sec = ANSWER_MS / 1000 };
	struct pollfd p = { .fd = fd, .events = POLLIN };
	size_t len = 0;
	long n;

	while (len < room - 1 && rl_raw(SYS_ppoll, &p, 1, &patience, NULL, 0) > 0) {
		n = rl_raw(SYS_read, fd, text + len, room - 1 - len);
		if (n <= 0)
			break;
		len += n;
	}
	text[len] = '\0';
	return len;
}

static size_t ask_tool(const char *const *argv, char *text, size_t room)
{
	u64 all = ~0ull, mask = 0;
	int pipe[2];
	size_t len;
	long pid;

	if (rl_raw(SYS_pipe2, pipe, O_CLOEXEC) < 0)
		return 0;
	/* The child has the program's handlers, and must not run them. */
	rl_raw(SYS_rt_sigprocmask, SIG_SETMASK, &all, &mask, sizeof(mask));
	pid = child_of(0);
	if (!pid)
		run_tool(argv, pipe[1]);
	rl_raw(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, sizeof(mask));
	rl_raw(SYS_close, pipe[1]);
	len = pid < 0 ? 0 : read_answer(pipe[0], text, room);
	rl_raw(SYS_close, pipe[0]);
	/* If it is still at work: SIGPIPE or the end of its input ends it. */
	if (pid > 0)
		rl_raw(SYS_wait4, pid, NULL, __WCLONE, NULL);
	return len;
}

static void take_place(struct rl_frame *f, const char *name, char *place)
{
	char *colon = strrchr(place, ':');

	/* Without lines the name is that of the symbol before, whose size is not asked. */
	if (*place == '?' || !colon)
		return;
	snprintf(f->function, sizeof(f->function), "%s", name);
	*colon = '\0';
	snprintf(f->file, sizeof(f->file), "%s", place);
	f->line = (u32)strtoul(colon + 1, NULL, 10);
}

/*
 * A line with the address, then two for each function that is inlined there, the innermost first:
 * its name, and FILE:LINE. A frame is the first that is not verbs' own.
 */
static void take_answer_lines(char *text, struct rl_frame **asked, u32 n)
{
	char *save = NULL, *line, *place;
	u32 i = 0;
	bool has_place = true;

	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (!strncmp(line, "0x", 2)) {
			if (++i > n)
				return;
			has_place = false;
			continue;
		}
		place = strtok_r(NULL, "\n", &save);
		if (!i || !place)
			return;
		if (!has_place)
			take_place(asked[i - 1], line, place);
		has_place = !strstr(asked[i - 1]->file, "infiniband/verbs.h");
	}
}

/* All of the frames from @first on that are of its module. */
static void ask_about_module(struct rl_frame *frames, u32 first, u32 n)
{
	const char *argv[5 + RL_STACK_DEPTH] = { tool(), "-afiC", "-e", frames[first].module };
	char offsets[RL_STACK_DEPTH][20], *text;
	struct rl_frame *asked[RL_STACK_DEPTH];
	u32 i, k = 0;

	if (!argv[0])
		return;
	for (i = first; i < n; i++)
		if (frames[i].module == frames[first].module && !frames[i].is_known) {
			snprintf(offsets[k], sizeof(offsets[k]), "%#llx",
				 (unsigned long long)frames[i].offset);
			argv[4 + k] = offsets[k];
			asked[k++] = &frames[i];
		}
	text = malloc(8192);
	if (text && ask_tool(argv, text, 8192))
		take_answer_lines(text, asked, k);
	free(text);
}

static bool is_asked_before(const struct rl_frame *frames, u32 i)
{
	u32 k;

	for (k = 0; k < i; k++)
		if (frames[k].module == frames[i].module && !frames[k].is_known)
			return true;
	return false;
}

/* Stacks have most frames in common, and the tool takes long. */
#define MEMORIES 512

static struct {
	const void *pc;
	struct rl_frame frame;
} memories[MEMORIES];

static u32 memory_of(const void *pc)
{
	return ((uintptr_t)pc * 0x9e3779b97f4a7c15ull >> 32) % MEMORIES;
}

static void recall(const void *pc, struct rl_frame *f)
{
	u32 i = memory_of(pc);

	if (memories[i].pc == pc && memories[i].frame.module == f->module)
		*f = memories[i].frame;
}

static void remember(const void *pc, const struct rl_frame *f)
{
	u32 i = memory_of(pc);

	memories[i].pc = pc;
	memories[i].frame = *f;
	memories[i].frame.is_known = true;
}

u32 rl_stack_resolve(const struct rl_stack *s, struct rl_frame *frames)
{
	const void *pc[RL_STACK_DEPTH];
	u32 i, n = 0;

	for (i = 0; i < s->n; i++) {
		pc[n] = s->pc[i];
		find_module(pc[n], &frames[n]);
		recall(pc[n], &frames[n]);
		if (n || !strstr(frames[n].module, OWN))
			n++;
	}
	for (i = 0; i < n; i++)
		if (*frames[i].module && !frames[i].is_known && !is_asked_before(frames, i))
			ask_about_module(frames, i, n);
	for (i = 0; i < n; i++)
		remember(pc[i], &frames[i]);
	for (i = 0; i < n; i++)
		if (!strcmp(frames[i].function, "main"))
			return i + 1;
	return n;
}
