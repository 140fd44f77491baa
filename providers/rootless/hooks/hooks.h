/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What hooks of one file ask of another's. */
#ifndef RL_HOOKS_H
#define RL_HOOKS_H

#include <stdbool.h>
#include <sys/types.h>

struct msghdr;

/* Does @m carry a stream's descriptor, which is not to come to another process? */
bool rl_sock_hands_over(const struct msghdr *m);
/* Copies @m. False: it is not there, which the kernel is to say. */
bool rl_sock_read_message(struct msghdr *copy, const struct msghdr *m);

/* Is @fd ours, with a mode of its own? Then what stat says of it. */
int rl_fd_stat_fix(int fd, mode_t *mode, dev_t *rdev);

#endif
