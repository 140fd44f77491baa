/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What poll() reports of a socket, and what to ask of the kernel. Inside the gate. */
#ifndef RL_EVENTS_H
#define RL_EVENTS_H

#include <poll.h>

#include "process/port.h"

struct rl_sock;

/* POLL bits of @events, and in *@awaits what to ask of the descriptor; or RL_SOCK_IS_PLAIN. */
int rl_sock_poll(struct rl_sock *sk, int fd, unsigned int events, unsigned int *awaits);
/* The same without a system call, if the caller asks the kernel for *@awaits next. */
int rl_sock_poll_cached(struct rl_sock *sk, int fd, unsigned int events, unsigned int *awaits);
/*
 * The same; but if the socket is ready, and not for octets of the peer, which the caller wants,
 * too, TCP is asked for these: the caller will not wait.
 */
int rl_sock_poll_tcp(struct rl_sock *sk, int fd, unsigned int events, unsigned int *awaits);
/* When a wait for @events ends at the latest, in ms; 0: never. */
u64 rl_sock_deadline(const struct rl_sock *sk, unsigned int events);

/*
 * What to poll for one of @events, after a look that found none: fd is -1 if the kernel has nothing
 * to report. A stream has a descriptor of its own: another thread may close @fd, and its number may
 * become another file's.
 */
struct pollfd rl_sock_awaits(struct rl_sock *sk, int fd, unsigned int events);
/* Where to ask for what the program has set on @fd; -1: all its numbers are closed. */
int rl_sock_fd(const struct rl_sock *sk, int fd);

#endif
