// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * O_NONBLOCK of sockets that go over iWARP. It is the kernel's, of the open file that processes
 * share, and a call that finds nothing has to know it. It changes by hooks, of this process or of
 * one that has forked from the same: each change counts in memory that all of these share. What the
 * kernel has said holds until the count moves, and until the socket goes to a program that may not
 * count.
 *
 * A flag that is not set is asked for each time: who is about to sleep can spare the call, and is
 * to hear of programs that share the file and not the count.
 */
#include <fcntl.h>
#include <sys/mman.h>

#include "flags.h"
#include "process/raw.h"
#include "sock.h"

static u64 *changes;			/* atomic, shared with children; NULL: nothing is known */

void rl_sock_flags_begin(void)
{
	void *p = mmap(NULL, sizeof(*changes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		     -1, 0);

	if (p == MAP_FAILED)
		return;
	changes = p;
	*changes = 1;
}

void rl_sock_flags_changed(int fd)
{
	if (rl_sock_is_candidate(fd) && changes)
		__atomic_fetch_add(changes, 1, __ATOMIC_SEQ_CST);
}

bool rl_sock_is_nonblocking(struct rl_sock *sk, int fd)
{
	u64 now = changes ? __atomic_load_n(changes, __ATOMIC_SEQ_CST) : 0;
	long flags;

	if (now && __atomic_load_n(&sk->no_wait, __ATOMIC_RELAXED) == now &&
	    !__atomic_load_n(&sk->strange, __ATOMIC_RELAXED))
		return true;
	flags = rl_raw(SYS_fcntl, fd, F_GETFL);
	if (flags < 0 || !(flags & O_NONBLOCK))
		return false;
	__atomic_store_n(&sk->no_wait, now, __ATOMIC_RELAXED);
	return true;
}
