/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What there is of each kind on a device, and its counters: for `rdma res` and `rdma stat`. */
#ifndef RL_RES_H
#define RL_RES_H

#include "port.h"

struct rl_res_counts {
	u32 pd, cq, qp, cm_id, mr, ctx, srq;
};

/* @device: struct rl_device.index. */
void rl_res_count(u32 device, struct rl_res_counts *out);

extern const char *const rl_stat_names[];
extern const u32 rl_stat_count;

/* The first @n of the values, in the order of the names. */
void rl_stat_get(u32 device, u64 *values, u32 n);

#endif
