// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A copy of a descriptor with a number that the program's soft limit forbids.
 *
 * Each process has limits of its own. A child that has the program's memory and descriptors raises
 * its own limit, makes the copy and ends. The program's limit never changes: no other thread, and
 * no child that it spawns meanwhile, can see or use a higher one.
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "above.h"
#include "raw.h"

/* The child makes three system calls. Sanitizers' frames are larger, so they leave it alone. */
#define STACK_SIZE 4096
#define MASK_SIZE 8

struct order {
	int fd, from;
	u64 until;
	int rv;
};

__attribute__((no_sanitize("address", "thread", "undefined")))
static int copy_in_child(void *arg)
{
	struct order *o = arg;
	struct rlimit lim;

	o->rv = (int)rl_raw(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, &lim);
	if (o->rv)
		return 0;
	lim.rlim_cur = o->until < lim.rlim_max ? o->until : lim.rlim_max;
	o->rv = (int)rl_raw(SYS_prlimit64, 0, RLIMIT_NOFILE, &lim, NULL);
	if (!o->rv)
		o->rv = (int)rl_raw(SYS_fcntl, o->fd, F_DUPFD_CLOEXEC, o->from);
	return 0;
}

int rl_fd_copy_above(int fd, int from, u64 until)
{
	struct order o = { .fd = fd, .from = from, .until = until, .rv = -EMFILE };
	u8 stack[STACK_SIZE] __attribute__((aligned(16)));
	u64 all = ~0ull, old;
	int saved = errno;
	pid_t pid;

	/* A handler would run in the child, too. */
	rl_raw(SYS_rt_sigprocmask, SIG_SETMASK, &all, &old, MASK_SIZE);
	/* Its end sends no signal, and the program's wait() does not see it. */
	pid = clone(copy_in_child, stack + sizeof(stack), CLONE_VM | CLONE_FILES | CLONE_VFORK, &o);
	if (pid > 0)
		while (rl_raw(SYS_wait4, pid, NULL, __WCLONE, NULL) == -EINTR)
			;
	rl_raw(SYS_rt_sigprocmask, SIG_SETMASK, &old, NULL, MASK_SIZE);
	errno = saved;
	return o.rv;
}
