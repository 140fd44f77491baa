/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef SELF_PEER_FAULT_FPDU_H
#define SELF_PEER_FAULT_FPDU_H

#include "fault.h"

/* One FPDU of the stack, or for it: what becomes of it, at dst. */
size_t fpdu_out(struct fault_dir *d, const struct fpdu *f, uint8_t *dst);
size_t fpdu_in(struct fault_dir *d, const struct fpdu *f, uint8_t *dst);

/* Where the session's memory is, for faults that place on their own. */
uint8_t *fault_memory(struct fault_dir *d, uint64_t to, size_t len);
void fault_region(struct fault_dir *d, uint32_t *stag, uint64_t *base,
		  uint64_t *len);
/* The ULP gets a completion of a receive that it never posted. */
void fault_event(struct fault_dir *d);
void fault_invalidate(struct fault_dir *d);
uint8_t *fault_receive(struct fault_dir *d, size_t *room);

#endif
