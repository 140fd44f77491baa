/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The size of queues: what a user asks for, rounded up to what rings hold, or
 * refused. Pure functions, no lock. Each returns 0, or -EINVAL with nothing
 * changed. The limits keep every product of slots in 32 bits.
 */
#ifndef WEFT_CORE_SHAPE_H
#define WEFT_CORE_SHAPE_H

#include "../proto/port.h"

#define WEFT_MAX_QP_WR		(16 * 1024)	/* entries of an SQ, an RQ or an SRQ */
#define WEFT_MAX_CQE		(256 * 1024)

struct weft_sq_caps {
	u32 wr;				/* work requests of the longest kind */
	u32 sge;			/* SGEs of one */
	u32 inline_data;		/* octets of one */
	bool datagrams;			/* of a UD QP; as asked for */
};

struct weft_sq_shape {
	u32 slots;			/* of the ring: a power of two */
	u32 wqe_slots;			/* of the longest WQE */
};

/*
 * Turns *@caps, as asked for, into what is granted, and says in *@s what ring
 * that takes. A send queue has at least one entry.
 */
int weft_shape_sq(struct weft_sq_caps *caps, struct weft_sq_shape *s);

/* Work requests that a send queue of @slots takes at a time, whose longest WQE has @wqe_slots. */
u32 weft_shape_sq_wqes(u32 slots, u32 wqe_slots);

struct weft_rq_caps {
	u32 wr;
	u32 sge;
};

struct weft_rq_shape {
	u32 slots;			/* of the ring: a power of two; 0: there is none */
	u32 stride;			/* slots of an entry */
};

/* The same for receives: a QP's own, of which there may be none. */
int weft_shape_rq(struct weft_rq_caps *caps, struct weft_rq_shape *s);

/* The same for an SRQ, which must have entries. */
int weft_shape_srq(struct weft_rq_caps *caps, struct weft_rq_shape *s);

/* The slots of an SRQ that is to have @wr entries of s->stride slots from now on. */
int weft_shape_srq_anew(u32 wr, struct weft_rq_shape *s);

/* The entries of a CQ that is asked for with @cqe of them: a power of two. */
int weft_shape_cq(u32 cqe, u32 *entries);

#endif
