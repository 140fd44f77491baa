/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef RL_ABOVE_H
#define RL_ABOVE_H

#include "port.h"

/*
 * A copy of @fd, close on exec, with a number of at least @from and below @until, whatever the
 * process's soft limit is; the hard limit holds. Or -errno. It costs as much as vfork(). Any
 * thread.
 */
int rl_fd_copy_above(int fd, int from, u64 until);

#endif
