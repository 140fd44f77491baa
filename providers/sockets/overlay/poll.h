/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* poll() and select() where a socket of ours is among what is waited for. Outside the gate. */
#ifndef RL_POLL_H
#define RL_POLL_H

#include <poll.h>
#include <stdbool.h>
#include <sys/select.h>
#include <time.h>

/* Is one of them ours? */
bool rl_sock_in_list(const struct pollfd *p, nfds_t n);
/* The same, and *@n is at most what the program can mean. */
bool rl_sock_in_sets(int *n, const fd_set *in, const fd_set *out, const fd_set *except);
int rl_sock_wait_list(struct pollfd *p, nfds_t n, const struct timespec *t, const sigset_t *mask);
/* *@left: of @t. */
int rl_sock_wait_sets(int n, fd_set *in, fd_set *out, fd_set *except, const struct timespec *t,
		      const sigset_t *mask, struct timespec *left);

#endif
