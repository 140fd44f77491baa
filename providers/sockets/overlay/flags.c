// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * O_NONBLOCK of sockets that go over iWARP. The kernel has it, in the open file that processes
 * share, and a call that finds nothing must know it. Hooks see changes, here and in forked
 * processes, and count them in memory that these processes share. The kernel's answer holds until
 * the count changes, or the socket is sent to a program that may not count.
 *
 * If the flag is not set the kernel is asked each time: a thread that is about to sleep can afford
 * the call, and programs that share the file but not the count are noticed.
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
