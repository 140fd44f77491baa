/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Rings that the program and the library share through the command file's descriptor. */
#ifndef RL_RING_H
#define RL_RING_H

#include "kernel/uapi/rdma/weft-abi.h"
#include "process/port.h"

/* A ring that the program maps by the command file's descriptor. */
struct rl_ring {
	void *mem;			/* our mapping of it, zeroed */
	u64 offset, size;		/* in the command file; whole pages */
};

struct rl_context;

/* @slots slots: 0 or -ENOMEM. Context's lock. */
int rl_ring_alloc(struct rl_context *ctx, struct rl_ring *r, u32 slots);
/* The program may still have it mapped. Context's lock. */
void rl_ring_free(struct rl_context *ctx, struct rl_ring *r);
void rl_ring_describe(const struct rl_ring *r, u32 slots, u32 stride, struct weft_ring_map *map);

#endif
