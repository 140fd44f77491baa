/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Epolls with sockets of ours. Outside the gate, unless said otherwise. */
#ifndef RL_EPOLL_H
#define RL_EPOLL_H

#include <signal.h>
#include <sys/epoll.h>
#include <time.h>

#include "process/port.h"

struct rl_sock;

bool rl_epoll_ctl(int epfd, int op, int fd, struct epoll_event *ev, int *rv);
bool rl_epoll_wait(int epfd, struct epoll_event *ev, int max, const struct timespec *t,
		   const sigset_t *mask, int *rv);
/*
 * A wait at @fd, which has no socket of ours yet, is the kernel's. Another thread may add the first
 * one meanwhile: so rl_epoll_wait() is asked again after the beginning.
 */
void rl_epoll_kernel_begin(int fd);
void rl_epoll_kernel_end(int fd);
/*
 * Events of such a wait, if @fd is ours now: the program's are left, *@rv of them, or -1 with
 * errno.
 */
bool rl_epoll_translate(int fd, struct epoll_event *ev, int n, int *rv);
/* For poll(): has the epoll @fd a socket of ours that is ready? */
bool rl_epoll_has_ready(int fd);

/* The kernel hears of all that was removed. */
void rl_epoll_before_fork(void);

#endif
