/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * One end of a connection in a test: an RNIC with two CQs, a QP, its link and the wire that it
 * sends on. And a pair of them back to back, with a clock that counts steps: in each step one end
 * does one thing, chosen by the seed.
 */
#ifndef STACKS_SIDE_H
#define STACKS_SIDE_H

#include "link.h"
#include "post.h"
#include "wire.h"

#define PD 7				/* the QP's protection domain */
#define OTHER_PD 8

struct side_cfg {
	struct host_link_cfg link;
	struct host_qp_attr qp;		/* 0 or NULL gets a usable value */
	u32 cq_entries;
	u32 mss, sndbuf;
};

/* The FPDUs on a wire, found by their length fields alone. */
struct watch {
	u64 pos;			/* octets of Full Operation */
	u32 len;			/* octets of this FPDU so far, Markers included */
	u32 field, field_len;		/* its ULPDU_Length, as far as it has arrived */
	u32 left;			/* octets after that, Markers not included */
	u32 fpdus, aligned;		/* begun; and begun with a segment */
	u32 longest;			/* octets */
};

struct side {
	struct host host;
	struct host_cq *scq, *rcq;
	struct host_qp *qp;
	struct host_link link;
	struct wire out;
	struct watch seen;		/* on out */
	bool aborted;			/* it has reset the connection */
};

/* Defaults for most tests: CRC on, no Markers, MSS 1460, long queues. */
void side_cfg_init(struct side_cfg *c);
void side_init(struct side *s, bool initiator, const struct side_cfg *c);
void side_fini(struct side *s);

/* True if a send run would do something. */
bool side_ready(const struct side *s);

/* Short forms for posting. Each asserts that the ring had room. */
void side_send(struct side *s, u64 wr_id, u8 flags, const struct host_mr *mr, u64 off, u32 len);
void side_write(struct side *s, u64 wr_id, u8 flags, const struct host_mr *mr, u64 off, u32 len,
		const struct host_mr *to, u64 to_off);
void side_read(struct side *s, u64 wr_id, u8 flags, const struct host_mr *sink, u64 off, u32 len,
	       const struct host_mr *from, u64 from_off);
void side_recv(struct side *s, u64 wr_id, const struct host_mr *mr, u64 off, u32 len);
void side_post(struct side *s, const struct host_wr *wr);

struct pair {
	struct side s[2];		/* [0] is the initiator */
	struct rng rng;
	enum wire_cut cut;
	u64 clock;			/* steps taken */
	u64 limit;			/* a run with more steps counts as hung */
};

struct pair_cfg {
	struct side_cfg s[2];
	enum wire_cut cut;
	u64 seed;
};

void pair_cfg_init(struct pair_cfg *c);
void pair_init(struct pair *p, const struct pair_cfg *c);
void pair_fini(struct pair *p);

/* One step; false when neither end has anything to do. */
bool pair_step(struct pair *p);
/* Steps until neither end has anything to do. */
void pair_run(struct pair *p);
/* The connection breaks: both ends see a reset, octets in flight are lost. */
void pair_drop(struct pair *p);

#endif
