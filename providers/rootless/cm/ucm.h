/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* /dev/infiniband/rdma_cm. */
#ifndef RL_UCM_H
#define RL_UCM_H

/* @flags as of open(): an installed descriptor (process/file.h), or -errno. */
int rl_ucm_open(int flags);

#endif
