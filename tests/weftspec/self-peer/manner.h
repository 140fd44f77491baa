/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Manners of hardware: how RNICs and their drivers set a connection up where weft's stack does
 * otherwise. They stand where faults do, between stack and socket. The facts are those of
 * Linux 6.12's drivers; ../profiles has them as deviations, with their reasons.
 */
#ifndef SELF_PEER_MANNER_H
#define SELF_PEER_MANNER_H

#include "fault.h"

enum manner {
	MANNER_NONE,
	MANNER_IRDMA, /* Intel: MPA v2 is peer-to-peer or nothing, a frame is a segment */
	MANNER_CXGB4, /* Chelsio: RTR is a Read, private data ends at 256 octets */
	MANNER_MPA1,  /* Windows, old Chelsio: Rev 1, IRD and ORD in the private data */
	MANNER_CIFS,  /* Linux' SMB client (6.12's): these in the CPU's order, and in Rev 2, too */
	MANNER_WINDOWS2, /* Windows over Rev 2: no private data at all */
};

bool manner_is(enum manner m);
/* Sets self_cfg as the manner wants it, too.  0, or -1: no such manner. */
int manner_choose(const char *name);

/* IRD and ORD in the private data, if it puts them there; the end of what it wrote. */
uint8_t *manner_depths(uint8_t *pd);
/* The stack's own start-up frame, before it goes out. */
void manner_speak(const struct fault_dir *in, bool is_reply, uint8_t *frame);
/*
 * The peer's start-up frame of *len octets, with so many behind it; it may be made one that the
 * stack takes in the manner's way.  NULL, or why it is refused, with a reset.
 */
const char *manner_refuses(struct fault_dir *in, uint8_t *frame, size_t *len, size_t behind);
/* An FPDU of the stack, or for it: what becomes of it, at dst. */
size_t manner_fpdu(struct fault_dir *d, bool out, const struct fpdu *f, uint8_t *dst);

#endif
