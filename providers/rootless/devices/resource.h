/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The number of objects of each kind, by device, in this process: for `rdma res`, and for limits.
 */
#ifndef RL_RESOURCE_H
#define RL_RESOURCE_H

#include "device.h"

enum rl_kind { RL_CONTEXT, RL_PD, RL_MR, RL_CQ, RL_QP, RL_SRQ, RL_MW, RL_KINDS };

/* Adds @n, which may be negative. Any thread. */
void rl_resource_add(const struct rl_device *d, enum rl_kind kind, int n);
u32 rl_resource_count(const struct rl_device *d, enum rl_kind kind);

#endif
