/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* weft-socket.h's options. Outside the gate. 0 or -errno. */
#ifndef RL_MODE_H
#define RL_MODE_H

#include <sys/socket.h>

int rl_sock_set_mode(int fd, int option, const void *value, socklen_t len);
int rl_sock_get_mode(int fd, int option, void *value, socklen_t *len);

#endif
