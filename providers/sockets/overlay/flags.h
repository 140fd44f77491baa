/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* O_NONBLOCK of sockets that go over iWARP. */
#ifndef RL_FLAGS_H
#define RL_FLAGS_H

#include <stdbool.h>

struct rl_sock;

/* Does no call wait? A system call only if the flag was not set, or may have changed. */
bool rl_sock_is_nonblocking(struct rl_sock *sk, int fd);
/* After a call that may have changed the flags of @fd. */
void rl_sock_flags_changed(int fd);
void rl_sock_flags_begin(void);

#endif
