// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The table of descriptors. A place holds NULL (a descriptor that is none of ours), the file
 * that the descriptor names, or the mark of a hidden one.
 *
 * Whoever looks a file up counts himself among the readers first; whoever takes one out of the
 * table lets it go only after he has seen no readers. There is no lock, for a look-up may be
 * interrupted by a signal handler that looks up in its turn, and by fork(). One case is left: a
 * handler that closes one of ours waits for ever if it interrupted the few instructions of a
 * look-up.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>

#include "file.h"
#include "raw.h"

/*
 * Linux's own limit of descriptors, unless the administrator raised it (fs.nr_open). Pages of the
 * table that no descriptor reaches take no memory.
 */
#define PLACES (1 << 20)
/* Readers of different descriptors rarely meet in a cache line. */
#define READERS 64

static struct rl_file hidden_mark;
#define HIDDEN (&hidden_mark)

static struct {
	struct rl_file *at[PLACES];		/* atomic */
	struct {
		u32 n;				/* atomic */
	} __attribute__((aligned(64))) readers[READERS];
	int top;				/* atomic: places from here on were never used */
	pid_t pid;				/* whose descriptors these are */
} t;

static pthread_once_t once = PTHREAD_ONCE_INIT;

/* ---- files ---- */

void rl_file_init(struct rl_file *f, const struct rl_file_ops *ops, dev_t rdev)
{
	f->ops = ops;
	f->rdev = rdev;
	f->maker = rl_raw(SYS_getpid);
	f->refs = 1;
}

void rl_file_get(struct rl_file *f)
{
	__atomic_fetch_add(&f->refs, 1, __ATOMIC_RELAXED);
}

void rl_file_put(struct rl_file *f)
{
	if (__atomic_sub_fetch(&f->refs, 1, __ATOMIC_ACQ_REL) == 0)
		f->ops->release(f);
}

/* ---- places ---- */

/* The threads that were reading are not in the child. */
static void forked(void)
{
	int i;

	for (i = 0; i < READERS; i++)
		__atomic_store_n(&t.readers[i].n, 0, __ATOMIC_RELAXED);
	t.pid = rl_raw(SYS_getpid);
}

static void start(void)
{
	t.pid = rl_raw(SYS_getpid);
	pthread_atfork(NULL, NULL, forked);
}

/* A child of vfork() has descriptors of its own, but this memory is its parent's. */
static bool is_borrowed(void)
{
	return rl_raw(SYS_getpid) != t.pid;
}

static bool has_place(int fd)
{
	return fd >= 0 && fd < PLACES;
}

static struct rl_file *look(int fd)
{
	return has_place(fd) ? __atomic_load_n(&t.at[fd], __ATOMIC_SEQ_CST) : NULL;
}

static void wait_for_readers(int fd)
{
	while (__atomic_load_n(&t.readers[fd % READERS].n, __ATOMIC_SEQ_CST))
		sched_yield();
}

static void raise_top(int fd)
{
	int top = __atomic_load_n(&t.top, __ATOMIC_RELAXED);

	while (fd >= top &&
	       !__atomic_compare_exchange_n(&t.top, &top, fd + 1, false, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED))
		;
}

/*
 * A descriptor names @f no more. One that was inherited is never the last: the parent has it, too,
 * and a child that closes what it does not need must not end the parent's connections.
 */
static void let_go(struct rl_file *f)
{
	if (f->maker == t.pid)
		rl_file_put(f);
}

/* Puts @f, with a reference, or HIDDEN or NULL into the place of @fd. */
static void replace(int fd, struct rl_file *f)
{
	struct rl_file *old;

	if (f)
		raise_top(fd);
	old = __atomic_exchange_n(&t.at[fd], f, __ATOMIC_SEQ_CST);
	if (!old || old == HIDDEN)
		return;
	wait_for_readers(fd);
	let_go(old);
}

/* ---- descriptors of the program ---- */

int rl_fd_install(int fd, struct rl_file *f)
{
	pthread_once(&once, start);
	if (!has_place(fd) || is_borrowed()) {
		rl_raw(SYS_close, fd);
		rl_file_put(f);
		return -EMFILE;
	}
	replace(fd, f);
	return fd;
}

struct rl_file *rl_fd_get(int fd)
{
	struct rl_file *f = look(fd);
	u32 *readers;

	if (likely(!f))
		return NULL;
	readers = &t.readers[fd % READERS].n;
	__atomic_fetch_add(readers, 1, __ATOMIC_SEQ_CST);
	f = look(fd);
	if (f == HIDDEN)
		f = NULL;
	if (f)
		rl_file_get(f);
	__atomic_fetch_sub(readers, 1, __ATOMIC_RELEASE);
	return f;
}

void rl_fd_forget(int fd)
{
	if (look(fd) && !is_borrowed())
		replace(fd, NULL);
}

void rl_fd_copy(int from, int to)
{
	struct rl_file *f;

	if (!look(from) && !look(to))
		return;
	if (!has_place(to) || is_borrowed())
		return;
	f = rl_fd_get(from);
	replace(to, f);
}

int rl_fd_next(int from)
{
	int top = __atomic_load_n(&t.top, __ATOMIC_ACQUIRE), fd;

	for (fd = from < 0 ? 0 : from; fd < top; fd++)
		if (look(fd))
			return fd;
	return -1;
}

/* ---- hidden descriptors ---- */

/* Programs that expect small numbers, or that select(), shall find those free. */
static int high_number(void)
{
	struct rlimit lim;

	if (rl_raw(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, &lim) < 0)
		return 0;
	return lim.rlim_cur / 2 < 4096 ? (int)(lim.rlim_cur / 2) : 4096;
}

static int move_up(int fd)
{
	int from, rv = -EMFILE;

	for (from = high_number(); rv < 0 && from > 2; from /= 2)
		rv = rl_raw(SYS_fcntl, fd, F_DUPFD_CLOEXEC, from);
	return rv < 0 ? (int)rl_raw(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 0) : rv;
}

int rl_fd_hide(int fd)
{
	int rv = move_up(fd);

	rl_raw(SYS_close, fd);
	pthread_once(&once, start);
	if (rv >= 0 && !has_place(rv)) {
		rl_raw(SYS_close, rv);
		return -EMFILE;
	}
	if (rv >= 0)
		replace(rv, HIDDEN);
	return rv;
}

bool rl_fd_is_hidden(int fd)
{
	return look(fd) == HIDDEN;
}

void rl_fd_close_hidden(int fd)
{
	if (rl_fd_is_hidden(fd))
		replace(fd, NULL);
	rl_raw(SYS_close, fd);
}
