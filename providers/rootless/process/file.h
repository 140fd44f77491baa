/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Descriptors that answer as the kernel's RDMA files would.
 *
 * Each is a real descriptor (a memfd, an eventfd, a socket), so that poll, dup, fork and exec
 * are the kernel's own. What is more is a struct rl_file: the open file that one or more
 * descriptors name. hooks/fd.c and hooks/net.c look the descriptor up and ask the file's operations
 * first.
 *
 * Descriptors that the library needs for itself are hidden: the program cannot close them.
 *
 * No lock: a look-up counts itself, and whoever takes a file out of the table waits for the count.
 * Any thread.
 */
#ifndef RL_FILE_H
#define RL_FILE_H

#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "port.h"
#include "raw.h"

struct rl_file;

/*
 * Each is a system call on descriptor @fd, which names @f: what it returns, or -errno. NULL: the
 * kernel does it, on the real descriptor.
 */
struct rl_file_ops {
	ssize_t (*read)(struct rl_file *f, int fd, void *buf, size_t len);
	ssize_t (*write)(struct rl_file *f, int fd, const void *buf, size_t len);
	int (*ioctl)(struct rl_file *f, int fd, unsigned long request, void *arg);
	/* A message of a NETLINK_RDMA socket, in one piece. */
	ssize_t (*send)(struct rl_file *f, int fd, const void *buf, size_t len);
	/* NULL: nothing. @fd is about to be closed, or to name another file. */
	void (*leave)(struct rl_file *f, int fd);
	/* NULL: nothing. @fd is a copy, and names @f too. */
	void (*copied)(struct rl_file *f, int fd);
	/* The last descriptor has gone: frees @f. Not with any lock. */
	void (*release)(struct rl_file *f);
	/*
	 * A socket of the kernel's, which each process that has it may go on with or close: it wants no
	 * progress thread.
	 */
	bool is_shared;
	mode_t mode;			/* what stat says, with rdev; 0: as the kernel says */
};

struct rl_file {
	const struct rl_file_ops *ops;
	dev_t rdev;
	u32 refs;			/* descriptors, and calls under way; atomic */
	u32 born;			/* after how many forks */
};

/* How many forks this process comes from. */
u32 rl_fd_forks(void);

/* One reference: that of the descriptor to come. */
static inline void rl_file_init(struct rl_file *f, const struct rl_file_ops *ops, dev_t rdev)
{
	*f = (struct rl_file){ .ops = ops, .rdev = rdev, .refs = 1, .born = rl_fd_forks() };
}
static inline void rl_file_get(struct rl_file *f)
{
	__atomic_fetch_add(&f->refs, 1, __ATOMIC_RELAXED);
}
void rl_file_put(struct rl_file *f);

/*
 * Was @f opened before a fork() of which this is the child, and not used in the child yet? Then it
 * is the other process's: letting it go here does nothing.
 */
bool rl_file_is_inherited(const struct rl_file *f);
/* Is there any such that the progress thread moves? One load. */
bool rl_fd_have_inherited(void);
/* All that was inherited is this process's from now on. */
void rl_fd_adopt(void);

/* @fd names @f from now on, and has the caller's reference: @fd; or -EMFILE, both given back. */
int rl_fd_install(int fd, struct rl_file *f);

/* @fd names @f from now on, with a reference of its own; false: it cannot, and stays as it is. */
bool rl_fd_attach(int fd, struct rl_file *f);

/* Is the caller a child of vfork(), whose memory is its parent's? */
bool rl_fd_is_borrowed(void);

/* Is @fd ours, or hidden? One load. */
bool rl_fd_is_used(int fd);

/* Each number that names @f now. */
void rl_fd_each(struct rl_file *f, void (*visit)(int fd));

/* The file that @fd names, referenced; NULL if it is none of ours: one load. */
struct rl_file *rl_fd_get(int fd);

/*
 * A call of the program's on @fd: as rl_fd_get(), and the caller is inside the gate (process/gate.h) until
 * rl_call_end(), which leaves errno as it is.
 */
struct rl_file *rl_call_begin(int fd);
void rl_call_end(struct rl_file *f);

/* @fd is about to be closed, or to name another file: its file's leave() is called. */
void rl_fd_leave(int fd);
/* @fd names nothing any more. */
void rl_fd_forget(int fd);
/* No number names @f any more, to which the caller has a reference. */
void rl_fd_forget_all(struct rl_file *f);
/* @fd, if it names @f (one load), or another number that does; -1: there is none. */
int rl_fd_name_of(const struct rl_file *f, int fd);

/* @to names what @from names, whose copied() is called, or nothing: after a dup. */
void rl_fd_copy(int from, int to);

/* The first number from @from on that is ours or hidden; -1: there is none. */
int rl_fd_next(int from);

/* Is @fd the library's own? Then the program's close() must not reach it. */
bool rl_fd_is_hidden(int fd);
/*
 * A descriptor of the library's own, out of the program's way: a copy of @fd, close on exec, which never has a low
 * number: that may be what another thread is about to close. Or -errno.
 */
int rl_fd_copy_hidden(int fd);
/* The same, and @fd is closed, whatever happens. One that is hidden already stays it. */
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
 * Between two calls with the same *@moves: has every number that /proc/self/fd names and the library hid been hidden all
 * the time? The first call's answer means nothing.
 */
bool rl_fd_hidden_were_still(u32 *moves);
/* Closes a hidden one. */
void rl_fd_close_hidden(int fd);

#endif
