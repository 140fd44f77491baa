/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Descriptors that behave like the kernel's RDMA files.
 *
 * Each is a real descriptor (a memfd, an eventfd, a socket), so that poll, dup, fork and exec are
 * the kernel's own. struct rl_file adds the rest: the open file that one or more descriptors name.
 * hooks/fd.c and hooks/net.c look the descriptor up and call the file's operations first.
 *
 * Descriptors that the library needs for itself are hidden: the program cannot close them.
 *
 * No lock: a look-up counts itself, and a thread that removes a file waits for the count. Any
 * thread.
 */
#ifndef RL_FILE_H
#define RL_FILE_H

#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "port.h"
#include "raw.h"

struct rl_file;
struct weft_run_request;

/*
 * Each is a system call on descriptor @fd, which names @f: its result, or -errno. NULL: the kernel
 * does it, on the real descriptor.
 */
struct rl_file_ops {
	ssize_t (*read)(struct rl_file *f, int fd, void *buf, size_t len);
	ssize_t (*write)(struct rl_file *f, int fd, const void *buf, size_t len);
	int (*ioctl)(struct rl_file *f, int fd, unsigned long request, void *arg);
	/* As the ioctl that kicks: providers/weft/direct.h. 0 or -errno. */
	int (*kick)(struct rl_file *f, u16 object, u32 handle);
	/* As weft_run_fault() there, but negative. NULL: no post ever fails. */
	int (*fault)(struct rl_file *f, const struct weft_run_request *r);
	/* As weft_run_judge() there, but negative. NULL: there is no judge. */
	int (*judge)(struct rl_file *f, u32 deed, const void *what);
	/* A message of a NETLINK_RDMA socket, in one piece. */
	ssize_t (*send)(struct rl_file *f, int fd, const void *buf, size_t len);
	/* NULL: nothing. @fd is about to be closed, or to name another file. */
	void (*leave)(struct rl_file *f, int fd);
	/* NULL: nothing. @fd is a copy, and names @f too. */
	void (*copied)(struct rl_file *f, int fd);
	/* The last descriptor was closed: frees @f. Without any lock. */
	void (*release)(struct rl_file *f);
	/*
	 * A kernel socket, which each process that has it may use or close: it needs no progress
	 * thread.
	 */
	bool is_shared;
	mode_t mode;			/* st_mode that stat reports, with rdev; 0: the kernel's */
};

struct rl_file {
	const struct rl_file_ops *ops;
	dev_t rdev;
	u32 refs;			/* descriptors, and calls under way; atomic */
	u32 born;			/* number of forks before it was opened */
};

/* How many forks lie between the first process and this one. */
u32 rl_fd_forks(void);

/* One reference, for the descriptor to be installed. */
static inline void rl_file_init(struct rl_file *f, const struct rl_file_ops *ops, dev_t rdev)
{
	*f = (struct rl_file){ .ops = ops, .rdev = rdev, .refs = 1, .born = rl_fd_forks() };
}
static inline void rl_file_get(struct rl_file *f)
{
	__atomic_fetch_add(&f->refs, 1, __ATOMIC_RELAXED);
}
void rl_file_put(struct rl_file *f);
/* For who finds it without a reference: false if its last one is gone, and it is being released. */
bool rl_file_try_get(struct rl_file *f);

/*
 * Was @f opened before a fork() that created this process, and not used here yet? Then it belongs
 * to the other process: releasing it here does nothing.
 */
bool rl_file_is_inherited(const struct rl_file *f);
/* Is there such a file that the progress thread serves? One load. */
bool rl_fd_have_inherited(void);
/* This process takes over everything that it inherited. */
void rl_fd_adopt(void);

/* @fd names @f from now on, with the caller's reference: @fd; or -EMFILE, and both are released. */
int rl_fd_install(int fd, struct rl_file *f);

/* @fd names @f from now on, with a reference of its own. False: it cannot, and nothing changed. */
bool rl_fd_attach(int fd, struct rl_file *f);

/* Is the caller a child of vfork(), whose memory is its parent's? */
bool rl_fd_is_borrowed(void);

/* Is @fd ours, or hidden? One load. */
bool rl_fd_is_used(int fd);

/* Calls @visit for each number that names @f now. */
void rl_fd_each(struct rl_file *f, void (*visit)(int fd, void *arg), void *arg);

/* The file that @fd names, referenced; NULL if @fd is not ours: one load. */
struct rl_file *rl_fd_get(int fd);

/*
 * The program's call on @fd begins: as rl_fd_get(), and the caller is inside the gate
 * (process/gate.h) until rl_call_end(), which preserves errno.
 */
struct rl_file *rl_call_begin(int fd);
void rl_call_end(struct rl_file *f);

/* @fd is about to be closed, or to name another file: its file's leave() is called. */
void rl_fd_leave(int fd);
/* @fd names no file any more. */
void rl_fd_forget(int fd);
/* Removes every number that names @f; the caller has a reference. */
void rl_fd_forget_all(struct rl_file *f);
/* @fd, if it names @f (one load), or another number that does; -1: none. */
int rl_fd_name_of(const struct rl_file *f, int fd);

/* After a dup: @to names the file that @from names, whose copied() is called, or none. */
void rl_fd_copy(int from, int to);

/* The first number from @from on that is ours or hidden; -1: none. */
int rl_fd_next(int from);

/* Is @fd the library's own? Then the program's close() must not reach it. */
bool rl_fd_is_hidden(int fd);
/*
 * One of the library's own descriptors, out of the program's way: a copy of @fd, close on exec. It
 * never gets a low number, which another thread may be about to close. Or -errno.
 *
 * They take at most rl_fd_share() of the numbers that RLIMIT_NOFILE's soft limit allows the
 * program. Further ones lie above it, up to the hard limit; where that is as low, or no child can
 * be had, the numbers below are all there are.
 */
int rl_fd_copy_hidden(int fd);
/* The same, and @fd is closed in any case. A descriptor that is hidden already stays as it is. */
static inline int rl_fd_hide(int fd)
{
	int rv;

	if (rl_fd_is_hidden(fd))
		return fd;
	rv = rl_fd_copy_hidden(fd);
	rl_raw(SYS_close, fd);
	return rv;
}
/*
 * Between two calls with the same *@moves: was every number that /proc/self/fd lists and the
 * library owns hidden all the time? The first call's result is meaningless.
 */
bool rl_fd_hidden_were_still(u32 *moves);
/* An eighth of the soft limit. */
u32 rl_fd_share(void);
/* Will further hidden descriptors lie above it? */
bool rl_fd_has_above(void);
/* Not so, and half of the share is taken. */
bool rl_fd_are_short(void);
/* Is @fd below the soft limit? Then the program has one descriptor less. */
bool rl_fd_is_charged(int fd);
/* Closes a hidden descriptor. */
void rl_fd_close_hidden(int fd);
/*
 * The same for one that was hidden before the last fork(). Does nothing if this process has closed
 * it already, with the last file that it inherited: the number may be another's now.
 */
void rl_fd_close_inherited(int fd);

#endif
