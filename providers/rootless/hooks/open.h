/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the hooks open. Each returns an installed descriptor (file.h), or -errno. */
#ifndef RL_OPEN_H
#define RL_OPEN_H

#include "cm/ucm.h"
#include "uverbs/uverbs.h"

/* socket(AF_NETLINK, @type, NETLINK_RDMA) */
int rl_netlink_open(int type);

#endif
