// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>

#include "process/api.h"
#include "process/raw.h"
#include "stand_in.h"

/*
 * One for all streams: its state and flags mean nothing. A child makes its own, since it may close
 * what it inherited.
 */
static struct {
	pthread_mutex_t lock;		/* a leaf */
	int fd;				/* hidden; -1: none yet */
	u32 forks;			/* rl_fd_forks() of the process that made it */
} stand_in = { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1 };

static int get_stand_in(void)
{
	u32 forks = rl_fd_forks();
	long fd;

	pthread_mutex_lock(&stand_in.lock);
	fd = stand_in.forks == forks ? stand_in.fd : -1;
	/* The descriptors of a child of vfork() are not those of the memory that it has. */
	if (fd < 0 && !rl_fd_is_borrowed()) {
		fd = rl_raw(SYS_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP);
		fd = fd < 0 ? -1 : rl_fd_hide((int)fd);
		stand_in.fd = (int)fd;
		stand_in.forks = forks;
	}
	pthread_mutex_unlock(&stand_in.lock);
	return (int)fd;
}

bool rl_stand_in(int fd)
{
	int from = get_stand_in();

	return from >= 0 && rl_raw(SYS_dup3, from, fd, O_CLOEXEC) >= 0;
}

void rl_stand_aside(int fd, int socket)
{
	long flags = rl_raw(SYS_fcntl, fd, F_GETFD);

	if (flags >= 0)
		rl_raw(SYS_dup3, socket, fd, flags & FD_CLOEXEC ? O_CLOEXEC : 0);
}
