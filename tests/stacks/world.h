/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A stack with memory: regions of every kind with known contents, posted receives, a peer made of
 * octets. Each case runs with the peer's octets whole, in random portions and one by one.
 */
#ifndef STACKS_WORLD_H
#define STACKS_WORLD_H

#include "peer.h"

#define NRECV 4
#define RECV_LEN 256

struct world {
	struct peer *p;
	struct host_mr *rw;		/* all rights */
	struct host_mr *ronly, *wonly;	/* one remote right */
	struct host_mr *foreign;	/* another PD's */
	struct host_mr *fast;		/* registered over this QP */
	struct host_mr *inbox;		/* NRECV receives of RECV_LEN octets */
};

#define WORLD_LEN 4096
/* Regions start at an odd address, so that "one before" is no special address. */
#define WORLD_BASE (BASE + 100)

typedef void (*world_case)(struct world *w);

/* A cmocka test that runs @fn with each way of cutting. */
#define CASE(fn) { #fn, world_run, NULL, NULL, (void *)(fn) }
void world_run(void **state);
/* The same with the stack as initiator, so that it may send at once. */
#define CASE_INITIATOR(fn) { #fn, world_run_initiator, NULL, NULL, (void *)(fn) }
void world_run_initiator(void **state);

/* The same, with the operations of RFC 7306. */
#define CASE_EXT(fn) { #fn, world_run_ext, NULL, NULL, (void *)(fn) }
void world_run_ext(void **state);

/* Without cmocka's loop: for cases that need their own peer. */
void world_init(struct world *w, const struct peer_cfg *c, enum wire_cut cut);
void world_fini(struct world *w);

/* The octet at @off of a region before anything is placed. */
u8 world_octet(u32 off);
/* No region was written, except @but (may be NULL). */
void world_expect_untouched(struct world *w, const struct host_mr *but);
/* The QP is in ERROR and reported it once; receives from number @first on are flushed. */
void world_expect_flushed(struct world *w, u32 first);

/*
 * @bad is answered by this Terminate, nothing is placed, and the good Write right after it is not
 * placed either (DDP-38).
 */
void world_refuses(struct world *w, struct pdu *bad, u8 layer, u8 etype, u8 code);
/* The same for a Read Request whose header is returned, too. */
void world_refuses_read(struct world *w, struct pdu *bad, u8 code);
/* The same with @first receives used and @but written before. */
void world_refuses_after(struct world *w, struct pdu *bad, u8 layer, u8 etype, u8 code,
			 u32 first, const struct host_mr *but);
/* A Send for the first receive, which must fail. */
void world_refuses_too_long(struct world *w, struct pdu *bad, const struct host_mr *but);

#endif
