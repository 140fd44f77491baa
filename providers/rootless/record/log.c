// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Threads reserve their places in the ring by compare-and-swap, and write an entry's mark last: a
 * reader skips an entry that was not finished when the process died.
 *
 * An entry has the ticks of the CPU, at half the cost of a time. Now and then an entry says what
 * time it is.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "log.h"
#include "process/file.h"
#include "process/gate.h"
#include "process/lock.h"
#include "process/raw.h"

#define MOST_FILES	1000		/* of one program and process number */
#define AHEAD		768		/* octets between an entry and what is fetched */
#define CLOCK_TICKS	(1 << 20)	/* between entries that say the time */

static struct {
	struct rl_lock opening;
	struct weft_record_file *file;	/* NULL: none yet */
	u64 ring_len;
	u32 forks;			/* rl_fd_forks() of its process */
	bool failed;
	u64 clock_at;			/* ticks of the last CLOCK */
	struct rl_lock callers;
} rec;

static __thread struct {
	u32 id, forks;
} record_thread __attribute__((tls_model("initial-exec")));

/* ---- the file ---- */

static void read_first_line(const char *name, char *to, size_t len)
{
	int fd = (int)rl_raw(SYS_openat, AT_FDCWD, name, O_RDONLY | O_CLOEXEC);
	long n = fd < 0 ? 0 : rl_raw(SYS_read, fd, to, len - 1);

	if (fd >= 0)
		rl_raw(SYS_close, fd);
	to[n > 0 ? n : 0] = '\0';
	to[strcspn(to, "\n")] = '\0';
}

#define CLOCK_TRIES	8
#define CLOCK_GAP	2048		/* ticks: a thread that has not lost its CPU takes fewer */

/* The ticks at which it is *@ns. Between two calls the thread may lose its CPU: that is seen. */
static u64 read_clock(u64 *ns)
{
	u64 best = 0, gap = ~0ull, before, now, after;
	u32 i;

	for (i = 0; i < CLOCK_TRIES && gap > CLOCK_GAP; i++) {
		before = rl_ticks();
		now = rl_now_ns();
		after = rl_ticks();
		if (after - before >= gap)
			continue;
		gap = after - before;
		best = before + gap / 2;
		*ns = now;
	}
	return best;
}

/* When the record began: before its file was made, so that the first CLOCK is some time later. */
struct start {
	u64 ticks, ns, real_ns;
};

static u64 real_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (u64)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static void fill_header(struct weft_record_file *f, u64 ring_len, const struct start *start)
{
	f->version = WEFT_RECORD_VERSION;
	f->order = WEFT_RECORD_ORDER;
	f->header_len = sizeof(*f);
	f->segment = WEFT_RECORD_SEGMENT;
	f->ring_len = ring_len;
	f->start_ticks = start->ticks;
	f->start_ns = start->ns;
	f->start_real_ns = start->real_ns;
	f->pid = (u32)rl_raw(SYS_getpid);
	f->parent = (u32)rl_raw(SYS_getppid);
	snprintf(f->program, sizeof(f->program), "%s", program_invocation_short_name);
	read_first_line("/proc/sys/kernel/hostname", f->host, sizeof(f->host));
	read_first_line("/proc/sys/kernel/random/boot_id", f->boot, sizeof(f->boot));
	memcpy(f->magic, WEFT_RECORD_MAGIC, sizeof(f->magic));
}

/* A program that is executed, and a later process of this number, have files of their own. */
static long open_new(void)
{
	char name[512];
	long fd = -EEXIST;
	u32 i;

	for (i = 0; i < MOST_FILES && fd == -EEXIST; i++) {
		snprintf(name, sizeof(name), i ? "%s/%.64s.%u.%u.weft" : "%s/%.64s.%u.weft",
			 rl_options()->record, program_invocation_short_name,
			 (u32)rl_raw(SYS_getpid), i + 1);
		fd = rl_raw(SYS_openat, AT_FDCWD, name,
			    O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	}
	return fd;
}

/*
 * Its room is reserved: a full disk would be a fault of the program else. Its pages are mapped now:
 * that costs some milliseconds, and a message a third more if each page waits for its first entry.
 */
static struct weft_record_file *map_file(u64 ring_len, long *err)
{
	const u64 len = sizeof(struct weft_record_file) + ring_len;
	long fd = open_new(), at;

	if (fd < 0) {
		*err = fd;
		return NULL;
	}
	*err = rl_raw(SYS_fallocate, (int)fd, 0, 0L, len);
	if (*err == -EOPNOTSUPP)
		*err = rl_raw(SYS_ftruncate, (int)fd, len);
	at = *err ? *err : rl_raw(SYS_mmap, NULL, len, PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_POPULATE, (int)fd, 0L);
	rl_raw(SYS_close, (int)fd);
	if (at < 0 && at > -4096) {
		*err = at;
		return NULL;
	}
	return (void *)at;
}

static void open_record_file(void)
{
	const u64 ring_len = (u64)rl_options()->record_mib << 20;
	struct start start = { .real_ns = real_ns() };
	struct weft_record_file *f;
	long err;

	start.ticks = read_clock(&start.ns);
	/* The parent's. */
	if (rec.file)
		rl_raw(SYS_munmap, rec.file, sizeof(*f) + rec.ring_len);
	rec.forks = rl_fd_forks();
	rec.ring_len = ring_len;
	f = map_file(ring_len, &err);
	rec.failed = !f;
	rec.clock_at = 0;
	rec.callers = (struct rl_lock){};
	if (f)
		fill_header(f, ring_len, &start);
	else
		rl_complain("%s: nothing is recorded: %s", rl_options()->record,
			    strerror((int)-err));
	__atomic_store_n(&rec.file, f, __ATOMIC_RELEASE);
}

static bool record_is_open(void)
{
	return READ_ONCE(rec.forks) == rl_fd_forks() &&
	       (__atomic_load_n(&rec.file, __ATOMIC_ACQUIRE) || READ_ONCE(rec.failed));
}

/* A child of vfork() has its parent's memory, and ends soon. */
static noinline bool make_record(void)
{
	bool is_mine;

	if (rl_fd_is_borrowed() || !rl_record_is_on())
		return false;
	/* Inside: a child finds the lock free. */
	rl_gate_enter();
	is_mine = rl_lock_try(&rec.opening);
	if (is_mine && !record_is_open())
		open_record_file();
	if (is_mine)
		rl_unlock(&rec.opening);
	rl_gate_leave();
	return is_mine;
}

/* NULL: no record. */
static struct weft_record_file *record_file(void)
{
	if (unlikely(!record_is_open()) && !make_record())
		return NULL;
	return __atomic_load_n(&rec.file, __ATOMIC_ACQUIRE);
}

/* ---- entries ---- */

static u32 thread_id(void)
{
	if (unlikely(!record_thread.id || record_thread.forks != rec.forks)) {
		record_thread.id = (u32)rl_raw(SYS_gettid);
		record_thread.forks = rec.forks;
	}
	return record_thread.id;
}

static struct weft_record *entry_place(struct weft_record_file *f, u64 at)
{
	return (void *)((u8 *)f + sizeof(*f) + at % rec.ring_len);
}

/* @skip: what is left of the segment, if the entry does not fit. */
static u64 reserve(struct weft_record_file *f, u32 size, u32 *skip)
{
	u64 at = __atomic_load_n(&f->head, __ATOMIC_RELAXED);
	u32 left;

	do {
		left = WEFT_RECORD_SEGMENT - at % WEFT_RECORD_SEGMENT;
		*skip = left < size ? left : 0;
	} while (!__atomic_compare_exchange_n(&f->head, &at, at + *skip + size, false,
					      __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	return at;
}

static void publish_entry(struct weft_record *r, u64 at)
{
	__atomic_store_n(&r->mark, (u32)(at / 8), __ATOMIC_RELEASE);
}

static void pad(struct weft_record_file *f, u64 at, u32 len)
{
	struct weft_record *r = entry_place(f, at);

	/* A rest that is shorter than a head has none: a reader knows. */
	if (len < sizeof(*r))
		return;
	*r = (struct weft_record){ .mark = ~(u32)(at / 8), .len8 = len / 8 };
	publish_entry(r, at);
}

static void write_entry(struct weft_record_file *f, const struct rl_record_entry *e, u64 ticks)
{
	const u32 size = (sizeof(struct weft_record) + e->len + e->more_len + 7) & ~7u;
	struct weft_record *r;
	u32 skip;
	u64 at;

	if (size > WEFT_RECORD_SEGMENT)
		return;
	at = reserve(f, size, &skip);
	if (unlikely(skip))
		pad(f, at, skip);
	at += skip;
	r = entry_place(f, at);
	/* What was here is no entry any more. */
	__atomic_store_n(&r->mark, ~(u32)(at / 8), __ATOMIC_RELAXED);
	r->len8 = (u16)(size / 8);
	r->type = e->type;
	r->flags = e->flags;
	r->ticks = ticks;
	r->thread = thread_id();
	r->qpn = e->qpn;
	memcpy(r + 1, e->body, e->len);
	if (e->more_len)
		memcpy((u8 *)(r + 1) + e->len, e->more, e->more_len);
	publish_entry(r, at);
	/* The ring is larger than the caches that a message uses: its next entries find theirs. */
	__builtin_prefetch((u8 *)r + AHEAD, 1);
	__builtin_prefetch((u8 *)r + AHEAD + 64, 1);
}

static noinline void write_clock(struct weft_record_file *f)
{
	struct weft_record_clock body;
	u64 ticks = read_clock(&body.ns);

	WRITE_ONCE(rec.clock_at, ticks);
	write_entry(f, &(struct rl_record_entry){
		.type = WEFT_RECORD_CLOCK, .body = &body, .len = sizeof(body),
	}, ticks);
}

void rl_record_put(const struct rl_record_entry *e)
{
	struct weft_record_file *f = record_file();
	/* Reading them costs as much as all the rest. */
	u64 ticks = e->ticks ?: rl_ticks();

	if (unlikely(!f))
		return;
	/* As a signed number: another CPU may be a little behind. */
	if (unlikely((s64)(ticks - READ_ONCE(rec.clock_at)) > CLOCK_TICKS))
		write_clock(f);
	write_entry(f, e, ticks);
}

bool rl_record_is_old(u64 *at)
{
	const struct weft_record_file *f = record_file();
	u64 head = f ? __atomic_load_n(&f->head, __ATOMIC_RELAXED) : 0;

	if (!f || (*at && head - *at < rec.ring_len / 2))
		return false;
	*at = head ?: 1;
	return true;
}

/* ---- callers ---- */

static void describe_caller(struct weft_record_caller *c, const void *pc)
{
	const char *call = (const char *)pc - 1;	/* pc is where it returns to */
	struct link_map *map = NULL;
	Dl_info info;
	long len;

	c->offset = (uintptr_t)call;
	if (dladdr1(call, &info, (void **)&map, RTLD_DL_LINKMAP)) {
		c->offset -= map ? map->l_addr : 0;
		if (info.dli_sname)
			snprintf(c->function, sizeof(c->function), "%s", info.dli_sname);
		/* The program's own name may be a relative path. */
		len = map && !*map->l_name ?
		      rl_raw(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", c->module,
			     sizeof(c->module) - 1) : 0;
		if (len <= 0)
			snprintf(c->module, sizeof(c->module), "%s", info.dli_fname);
	}
	__atomic_store_n(&c->pc, (uintptr_t)pc, __ATOMIC_RELEASE);
}

static u32 caller_hash(const void *pc)
{
	return (u32)((uintptr_t)pc * 0x9e3779b97f4a7c15ull >> 57);
}
static_assert(WEFT_RECORD_CALLERS == 1 << (64 - 57), "caller_hash() gives a place");

void rl_record_caller(const void *pc)
{
	struct weft_record_file *f = record_file();
	u32 at = caller_hash(pc), i;
	struct weft_record_caller *c;
	u64 here;

	if (!f)
		return;
	for (i = 0; i < WEFT_RECORD_CALLERS; i++) {
		c = &f->caller[(at + i) % WEFT_RECORD_CALLERS];
		here = __atomic_load_n(&c->pc, __ATOMIC_ACQUIRE);
		if (here == (uintptr_t)pc)
			return;
		if (here)
			continue;
		if (!rl_lock_try(&rec.callers))
			return;
		if (!READ_ONCE(c->pc))
			describe_caller(c, pc);
		rl_unlock(&rec.callers);
		return;
	}
}

/* ---- notes: what --trace prints ---- */

static void record_note(const char *line, size_t len)
{
	rl_record_put(&(struct rl_record_entry){
		.type = WEFT_RECORD_NOTE, .body = line, .len = (u32)len,
	});
}

__attribute__((constructor)) static void record_begin(void)
{
	if (rl_record_is_on())
		rl_trace_sink = record_note;
}
