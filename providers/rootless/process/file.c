// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The table of descriptors. An entry is NULL (not one of ours), the file that the descriptor names,
 * or the mark of a hidden one.
 *
 * A look-up counts itself among the readers first; a thread that removes a file drops it only after
 * it has seen no readers. There is no lock, because a look-up may be interrupted by fork(), or by a
 * signal handler that looks up as well. One case is left: a handler that closes one of our
 * descriptors waits forever if it interrupted the few instructions of a look-up.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "above.h"
#include "api.h"

/*
 * Linux's own limit of descriptors, unless the administrator raised it (fs.nr_open). Pages of the
 * table that no descriptor reaches take no memory.
 */
#define PLACES (1 << 20)
/* Readers of different descriptors rarely share a cache line. */
#define READERS 64
#define MARK_SIZE 4096

static struct rl_file hidden_mark, inherited_mark;
#define HIDDEN (&hidden_mark)
/* One that was hidden before the last fork(). */
#define INHERITED (&inherited_mark)

static struct {
	struct rl_file *at[PLACES];		/* atomic */
	struct {
		u32 n;				/* atomic */
	} __attribute__((aligned(64))) readers[READERS];
	int top;				/* atomic: places from here on were never used */
	pid_t pid;				/* the process that owns these descriptors */
	volatile u32 *mark;			/* set; zero in a child with memory of its own */
	u32 forks;				/* forks between the first process and this one */
	u32 oldest;				/* atomic: files born before are the parent's */
	bool have_inherited;			/* atomic: the progress thread serves some */
	u64 limit;				/* atomic: the soft limit that charged is for */
	int charged;				/* atomic: hidden ones below it */
} t;

static pthread_once_t once = PTHREAD_ONCE_INIT;

/* ---- files ---- */

void rl_file_put(struct rl_file *f)
{
	if (__atomic_sub_fetch(&f->refs, 1, __ATOMIC_ACQ_REL) == 0 &&
	    (f->ops->is_shared || !rl_file_is_inherited(f)))
		f->ops->release(f);
}

bool rl_file_try_get(struct rl_file *f)
{
	u32 refs = __atomic_load_n(&f->refs, __ATOMIC_RELAXED);

	while (refs)
		if (__atomic_compare_exchange_n(&f->refs, &refs, refs + 1, true, __ATOMIC_ACQUIRE,
						__ATOMIC_RELAXED))
			return true;
	return false;
}

bool rl_file_is_inherited(const struct rl_file *f)
{
	return unlikely(f->born < __atomic_load_n(&t.oldest, __ATOMIC_RELAXED));
}

bool rl_fd_have_inherited(void)
{
	return unlikely(__atomic_load_n(&t.have_inherited, __ATOMIC_RELAXED));
}

void rl_fd_adopt(void)
{
	__atomic_store_n(&t.oldest, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&t.have_inherited, false, __ATOMIC_RELAXED);
}

/* ---- places ---- */

static bool is_mark(const struct rl_file *f)
{
	return f == HIDDEN || f == INHERITED;
}

/* Threads that waited in a call are not in the child: only descriptors hold references there. */
static void count_references(void)
{
	int i;

	for (i = 0; i < t.top; i++)
		if (t.at[i] && !is_mark(t.at[i]))
			t.at[i]->refs = 0;
	for (i = 0; i < t.top; i++)
		if (t.at[i] && !is_mark(t.at[i]))
			t.at[i]->refs++;
}

/*
 * Counts changes of hidden numbers: during one the kernel has the number and the table has not.
 * Both only grow.
 */
static u32 moves_begun, moves_over;	/* atomic */

/* Threads that were reading, or moving a number, do not exist in the child. */
static void forked(void)
{
	int i;

	if (!rl_gate_is_inside())
		count_references();

	for (i = 0; i < READERS; i++)
		__atomic_store_n(&t.readers[i].n, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&moves_over, __atomic_load_n(&moves_begun, __ATOMIC_RELAXED),
			 __ATOMIC_RELAXED);
	for (i = 0; i < t.top; i++) {
		if (t.at[i] == HIDDEN)
			t.at[i] = INHERITED;
		if (t.at[i] && !is_mark(t.at[i]) && !t.at[i]->ops->is_shared)
			t.have_inherited = true;
	}
	t.oldest = ++t.forks;
	t.pid = rl_raw(SYS_getpid);
	if (t.mark)
		*t.mark = 1;
}

/*
 * A fork handler of the program may have run first, and closed something. Emulators of processors
 * (qemu-user before 8.0) accept MADV_WIPEONFORK and wipe nothing.
 */
static void file_in_child(void)
{
	if (!t.mark || !*t.mark || rl_raw(SYS_getpid) != t.pid)
		forked();
}

static volatile u32 *new_mark(void)
{
	u32 *mark = mmap(NULL, MARK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);

	if (mark == MAP_FAILED)
		return NULL;
	if (madvise(mark, MARK_SIZE, MADV_WIPEONFORK)) {
		munmap(mark, MARK_SIZE);
		return NULL;
	}
	*mark = 1;
	return mark;
}

static void file_table_start(void)
{
	t.pid = rl_raw(SYS_getpid);
	__atomic_store_n(&t.mark, new_mark(), __ATOMIC_RELEASE);
	pthread_atfork(NULL, NULL, file_in_child);
}

/*
 * A child of vfork() has its own descriptors but its parent's memory. A child of the bare system
 * call fork(), or of _Fork(), has its own memory, and no handler has run.
 */
static bool is_borrowed(void)
{
	if (rl_raw(SYS_getpid) == t.pid)
		return false;
	if (!t.mark || *t.mark)
		return true;
	forked();
	rl_gate_forked();
	return false;
}

static bool has_place(int fd)
{
	return fd >= 0 && fd < PLACES;
}

static struct rl_file *file_at(int fd)
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

/* @n more hidden descriptors have the number @fd. */
static void count_charged(int fd, int n)
{
	if (n && (u64)fd < __atomic_load_n(&t.limit, __ATOMIC_RELAXED))
		__atomic_fetch_add(&t.charged, n, __ATOMIC_RELAXED);
}

/* Whoever removes the mark closes the number. */
void rl_fd_close_inherited(int fd)
{
	struct rl_file *mark = INHERITED;

	if (!has_place(fd) ||
	    !__atomic_compare_exchange_n(&t.at[fd], &mark, NULL, false, __ATOMIC_SEQ_CST,
					 __ATOMIC_RELAXED))
		return;
	count_charged(fd, -1);
	rl_raw(SYS_close, fd);
}

/*
 * A child that has closed everything it inherited will never use the hidden descriptors that belong
 * to it; its sockets would stay open as long as the child runs.
 */
static void close_leftovers(void)
{
	struct rl_file *f;
	int fd;

	for (fd = 0; fd < t.top; fd++) {
		f = file_at(fd);
		if (f && !is_mark(f) && rl_file_is_inherited(f))
			return;
	}
	for (fd = 0; fd < t.top; fd++)
		rl_fd_close_inherited(fd);
}

/* @old was removed from the entry of @fd. */
static void file_let_go(int fd, struct rl_file *old)
{
	bool inherited;

	if (!old || is_mark(old))
		return;
	wait_for_readers(fd);
	inherited = rl_file_is_inherited(old);
	rl_file_put(old);
	if (inherited)
		close_leftovers();
}

/* Sets the entry of @fd to @f, with a reference, or to HIDDEN or NULL. */
static void replace(int fd, struct rl_file *f)
{
	struct rl_file *old;

	if (f)
		raise_top(fd);
	old = __atomic_exchange_n(&t.at[fd], f, __ATOMIC_SEQ_CST);
	count_charged(fd, is_mark(f) - is_mark(old));
	file_let_go(fd, old);
}

/* ---- descriptors of the program ---- */

int rl_fd_install(int fd, struct rl_file *f)
{
	pthread_once(&once, file_table_start);
	if (!has_place(fd) || is_borrowed()) {
		rl_raw(SYS_close, fd);
		rl_file_put(f);
		return -EMFILE;
	}
	replace(fd, f);
	return fd;
}

bool rl_fd_attach(int fd, struct rl_file *f)
{
	pthread_once(&once, file_table_start);
	if (!has_place(fd) || is_borrowed())
		return false;
	rl_file_get(f);
	replace(fd, f);
	return true;
}

bool rl_fd_is_borrowed(void)
{
	return is_borrowed();
}

bool rl_fd_is_used(int fd)
{
	return file_at(fd);
}

void rl_fd_each(struct rl_file *f, void (*visit)(int fd, void *arg), void *arg)
{
	int top = __atomic_load_n(&t.top, __ATOMIC_ACQUIRE), fd;

	for (fd = 0; fd < top; fd++)
		if (file_at(fd) == f)
			visit(fd, arg);
}

void rl_fd_forget_all(struct rl_file *f)
{
	int top = __atomic_load_n(&t.top, __ATOMIC_ACQUIRE), fd;
	struct rl_file *here;

	if (is_borrowed())
		return;
	rl_gate_enter();
	for (fd = 0; fd < top; fd++) {
		here = f;
		if (__atomic_compare_exchange_n(&t.at[fd], &here, NULL, false, __ATOMIC_SEQ_CST,
						__ATOMIC_RELAXED))
			file_let_go(fd, f);
	}
	rl_gate_leave();
}

int rl_fd_name_of(const struct rl_file *f, int fd)
{
	int top;

	if (likely(file_at(fd) == f))
		return fd;
	top = __atomic_load_n(&t.top, __ATOMIC_ACQUIRE);
	for (fd = 0; fd < top; fd++)
		if (file_at(fd) == f)
			return fd;
	return -1;
}

struct rl_file *rl_fd_get(int fd)
{
	struct rl_file *f = file_at(fd);
	u32 *readers;

	if (likely(!f))
		return NULL;
	readers = &t.readers[fd % READERS].n;
	__atomic_fetch_add(readers, 1, __ATOMIC_SEQ_CST);
	f = file_at(fd);
	if (is_mark(f))
		f = NULL;
	if (f)
		rl_file_get(f);
	__atomic_fetch_sub(readers, 1, __ATOMIC_RELEASE);
	return f;
}

struct rl_file *rl_call_begin(int fd)
{
	struct rl_file *f;

	if (likely(!file_at(fd)))
		return NULL;
	rl_gate_enter();
	f = rl_fd_get(fd);
	if (!f)
		rl_gate_leave();
	return f;
}

void rl_call_end(struct rl_file *f)
{
	int saved = errno;

	rl_file_put(f);
	rl_gate_leave();
	errno = saved;
}

void rl_fd_leave(int fd)
{
	struct rl_file *f = rl_call_begin(fd);

	if (!f)
		return;
	if (f->ops->leave && !is_borrowed())
		f->ops->leave(f, fd);
	rl_call_end(f);
}

void rl_fd_forget(int fd)
{
	if (!file_at(fd) || is_borrowed())
		return;
	rl_gate_enter();
	replace(fd, NULL);
	rl_gate_leave();
}

void rl_fd_copy(int from, int to)
{
	struct rl_file *f;

	if (!file_at(from) && !file_at(to))
		return;
	rl_gate_enter();
	f = rl_fd_get(from);
	if (has_place(to) && !is_borrowed()) {
		if (f)
			rl_file_get(f);
		replace(to, f);
	}
	/* A child of vfork() has descriptors of its own. */
	if (f && f->ops->copied)
		f->ops->copied(f, to);
	if (f)
		rl_file_put(f);
	rl_gate_leave();
}

int rl_fd_next(int from)
{
	int top = __atomic_load_n(&t.top, __ATOMIC_ACQUIRE), fd;

	for (fd = from < 0 ? 0 : from; fd < top; fd++)
		if (file_at(fd))
			return fd;
	return -1;
}

/* ---- hidden descriptors ---- */

/*
 * Hidden descriptors take this share of the numbers that the soft limit allows. Further ones get
 * numbers at or above it, up to the hard limit.
 */
#define SHARE 8

static struct rlimit nofile_limit(void)
{
	struct rlimit lim = {};

	rl_raw(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, &lim);
	return lim;
}

/* The program has changed its limit. Threads that hide descriptors meanwhile may be missed. */
static void recount_charged(u64 limit)
{
	int top = __atomic_load_n(&t.top, __ATOMIC_ACQUIRE), n = 0, fd;

	__atomic_store_n(&t.limit, limit, __ATOMIC_RELAXED);
	for (fd = 0; fd < top && (u64)fd < limit; fd++)
		n += is_mark(file_at(fd));
	__atomic_store_n(&t.charged, n, __ATOMIC_RELAXED);
}

/* Do hidden ones take an @part-th of the numbers below the limit? */
static bool takes_part(const struct rlimit *lim, u32 part)
{
	if (unlikely(lim->rlim_cur != __atomic_load_n(&t.limit, __ATOMIC_RELAXED)))
		recount_charged(lim->rlim_cur);
	return (u64)max_t(int, __atomic_load_n(&t.charged, __ATOMIC_RELAXED), 0) >=
	       lim->rlim_cur / part;
}

u32 rl_fd_share(void)
{
	return (u32)min_t(u64, nofile_limit().rlim_cur / SHARE, PLACES);
}

bool rl_fd_is_charged(int fd)
{
	return (u64)fd < nofile_limit().rlim_cur;
}

/* Low numbers stay free for programs that expect small numbers, or that use select(). */
static int copy_up(int fd, const struct rlimit *lim)
{
	int from = (int)min_t(u64, lim->rlim_cur / 2, 4096), rv = -EMFILE;

	for (; rv < 0 && from > 2; from /= 2)
		rv = rl_raw(SYS_fcntl, fd, F_DUPFD_CLOEXEC, from);
	return rv < 0 ? (int)rl_raw(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 0) : rv;
}

static bool has_above(const struct rlimit *lim)
{
	return lim->rlim_max > lim->rlim_cur && lim->rlim_cur < PLACES;
}

static bool above_failed;	/* atomic: the last attempt at it */

bool rl_fd_has_above(void)
{
	const struct rlimit lim = nofile_limit();

	return has_above(&lim) && !__atomic_load_n(&above_failed, __ATOMIC_RELAXED);
}

bool rl_fd_are_short(void)
{
	const struct rlimit lim = nofile_limit();

	return !has_above(&lim) && takes_part(&lim, 2 * SHARE);
}

static int copy_above(int fd, const struct rlimit *lim)
{
	int rv;

	if (!has_above(lim))
		return -EMFILE;
	rv = rl_fd_copy_above(fd, (int)lim->rlim_cur, PLACES);
	__atomic_store_n(&above_failed, rv < 0, __ATOMIC_RELAXED);
	return rv;
}

/* Above the limit if the share is taken or the program has used all numbers below it. */
static int copy_away(int fd)
{
	const struct rlimit lim = nofile_limit();
	int rv = takes_part(&lim, SHARE) ? copy_above(fd, &lim) : -EMFILE;

	if (rv == -EBADF)
		return rv;
	if (rv < 0)
		rv = copy_up(fd, &lim);
	return rv == -EMFILE ? copy_above(fd, &lim) : rv;
}

static void move_begins(void)
{
	__atomic_fetch_add(&moves_begun, 1, __ATOMIC_SEQ_CST);
}

static void move_is_over(void)
{
	__atomic_fetch_add(&moves_over, 1, __ATOMIC_SEQ_CST);
}

bool rl_fd_hidden_were_still(u32 *moves)
{
	bool still = __atomic_load_n(&moves_begun, __ATOMIC_SEQ_CST) == *moves;

	*moves = __atomic_load_n(&moves_over, __ATOMIC_SEQ_CST);
	return still;
}

static int copy_hidden(int fd)
{
	int rv = copy_away(fd);

	pthread_once(&once, file_table_start);
	if (rv >= 0 && !has_place(rv)) {
		rl_raw(SYS_close, rv);
		return -EMFILE;
	}
	if (rv >= 0)
		replace(rv, HIDDEN);
	return rv;
}

int rl_fd_copy_hidden(int fd)
{
	int rv;

	move_begins();
	rv = copy_hidden(fd);
	move_is_over();
	return rv;
}

u32 rl_fd_forks(void)
{
	volatile u32 *mark = __atomic_load_n(&t.mark, __ATOMIC_ACQUIRE);

	if (unlikely(!mark || !*mark)) {
		pthread_once(&once, file_table_start);
		/* The child of a bare system call fork(): no handler has run. */
		if (t.mark && !*t.mark)
			is_borrowed();
	}
	return __atomic_load_n(&t.forks, __ATOMIC_RELAXED);
}

bool rl_fd_is_hidden(int fd)
{
	return is_mark(file_at(fd));
}

void rl_fd_close_hidden(int fd)
{
	move_begins();
	if (rl_fd_is_hidden(fd))
		replace(fd, NULL);
	rl_raw(SYS_close, fd);
	move_is_over();
}
