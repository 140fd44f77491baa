/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Receiving and sending, and what else is asked of a connected socket. Outside the gate. Each
 * returns whether the call was for a stream, and its result, with errno, in *@rv.
 */
#ifndef RL_IO_H
#define RL_IO_H

#include <netinet/in.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>

#include "process/port.h"

/* @iov is the program's, and may not be there. */
bool rl_sock_recv(int fd, const struct iovec *iov, size_t n, int flags, ssize_t *rv);
bool rl_sock_send(int fd, const struct iovec *iov, size_t n, int flags, ssize_t *rv);
/* The same of one piece. */
bool rl_sock_recv_one(int fd, void *buf, size_t len, int flags, ssize_t *rv);
bool rl_sock_send_one(int fd, const void *buf, size_t len, int flags, ssize_t *rv);
bool rl_sock_sendfile(int fd, int in, off_t *at, size_t len, ssize_t *rv);
bool rl_sock_shutdown(int fd, int how, int *rv);
bool rl_sock_inq(int fd, int *n);
bool rl_sock_error(int fd, int *error);
/* The kernel has forgotten the peer, which has closed: the name, as getpeername() has it. */
bool rl_sock_peer(int fd, struct sockaddr_in6 *peer);

#endif
