/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What hooks of socket calls do with a NETLINK_RDMA socket (a file whose operations have send).
 * Each returns 0 or a length, or -errno. Any thread.
 */
#ifndef RL_NETLINK_H
#define RL_NETLINK_H

#include <linux/netlink.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "process/file.h"

/* socket(AF_NETLINK, @type, NETLINK_RDMA): an installed descriptor (process/file.h), or -errno. */
int rl_netlink_open(int type);
/* Binds it to the address @a; nl_pid 0 stands for the process's number. */
int rl_netlink_bind(struct rl_file *f, const struct sockaddr *a, socklen_t len);
/* The result of getsockname(). */
void rl_netlink_name(struct rl_file *f, struct sockaddr_nl *name);
/* Passes a message in pieces to ops->send in one piece. */
ssize_t rl_netlink_gather(struct rl_file *f, int fd, const struct iovec *iov, size_t n);

#endif
