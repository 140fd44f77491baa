/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What hooks of one file ask of another's. */
#ifndef RL_HOOKS_H
#define RL_HOOKS_H

#include <sys/types.h>

/* Is @fd ours, with a mode of its own? Then what stat says of it. */
int rl_fd_stat_fix(int fd, mode_t *mode, dev_t *rdev);

#endif
