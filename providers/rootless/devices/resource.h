/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* How many objects of each kind a device has in this process: for `rdma res`, and for its limits. */
#ifndef RL_RESOURCE_H
#define RL_RESOURCE_H

#include "device.h"

enum rl_kind { RL_CONTEXT, RL_PD, RL_MR, RL_CQ, RL_QP, RL_SRQ, RL_MW, RL_KINDS };

/* @n more (or fewer). Any thread. */
void rl_resource_add(const struct rl_device *d, enum rl_kind kind, int n);
u32 rl_resource_count(const struct rl_device *d, enum rl_kind kind);

#endif
