/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Options of a socket that mean something else for the TCP connection below its stream: the
 * library has them, and the kernel only as long as it may serve the socket. Outside the gate.
 */
#ifndef RL_SOCKET_OPTIONS_H
#define RL_SOCKET_OPTIONS_H

#include <stdbool.h>
#include <sys/socket.h>

#include "process/port.h"

struct rl_sock;
struct rl_stream;

/* Is the option one of these, or one that a stream cannot have? */
bool rl_sock_has_option(int level, int option);
/* setsockopt() of a descriptor that is or may become a stream's: true, and the result in *@rv. */
bool rl_sock_set_option(int fd, int level, int option, const void *value, socklen_t len, int *rv);
/* getsockopt(): the same. */
bool rl_sock_get_option(int fd, int level, int option, void *value, socklen_t *len, int *rv);

/* A listener may pass on what the kernel has: @sk was accepted as @fd. */
void rl_sock_inherit_options(struct rl_sock *sk, int fd);
/* The kernel's are those of the stream's connection from now on. With sk->lock. */
void rl_sock_take_options(struct rl_sock *sk, int fd);
/* It has become plain: the kernel gets those back that are set, or with @all each. */
void rl_sock_return_options(struct rl_sock *sk, int fd, bool all);

/*
 * @fd is about to be closed. SO_LINGER with time: a stream, for rl_sock_linger() after the close;
 * else NULL.
 */
struct rl_stream *rl_sock_begin_linger(int fd, u64 *until);
/* Waits until the peer's TCP has everything, a signal arrives, or the time is over. */
void rl_sock_linger(struct rl_stream *s, u64 until);

#endif
