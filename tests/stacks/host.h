/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A user-space host of the whole stack: implements core/host.h over plain memory. Tests, fuzzers
 * and the tester's self-peer link it. One struct host is one RNIC: an STag table, protection
 * domains, CQs, SRQs and QPs.
 *
 * Single-threaded, so "the connection's lock" is always held. The host asserts the contract: a
 * region is held from its check to the put and never between two runs, a placement stays inside
 * the region held, each chunk lent is returned, no one uses an invalidated region once its
 * invalidation is reported. A QP with amid_run set stands for one whose run is under way on
 * another CPU.
 */
#ifndef STACKS_HOST_H
#define STACKS_HOST_H

#include <setjmp.h>

#include "../../kernel/core/qp.h"
#include "../../kernel/core/shape.h"

/* The code under test broke its contract; not a failed check of a test. */
#define HOST_ASSERT(c) ((c) ? (void)0 : host_panic(__FILE__, __LINE__, #c))
void host_panic(const char *file, int line, const char *what) __attribute__((noreturn));

#define HOST_MRS	64
#define HOST_QPS	16
#define HOST_EVENTS	16
#define HOST_INDEX_SHIFT 8		/* the low byte of an STag is its key */

struct host_qp;

struct host_mr {
	struct weft_region r;
	u8 *mem;			/* r.len bytes, a heap block of its own */
	struct host *host;
	u32 holders;
	u32 windows;			/* bound to it */
	bool closing;			/* its deregistration is under way */
	u32 finds;			/* number of lookups */
	bool found_valid;		/* result of the last lookup */
	bool busy;			/* the slot is in use */
	bool gone;			/* its program has unmapped the memory */
	jmp_buf *leave;			/* longjmp target at piece leave_at, as after a fault */
	u32 leave_at;
	bool unmapped;			/* its consumer has not mapped memory to it yet */
};

struct host_cq {
	struct weft_cqc core;
	struct weft_ring *ring;
	u32 entries;
	u32 user_idx;			/* the consumer's own */
	u32 wakes;			/* consumer woken */
	u32 overflows;			/* CQ errors reported */
	/* Called for each completion when it is published, before any consumer. */
	void (*on_cqe)(struct host_qp *qp, bool recv, const struct weft_cqe *e, void *arg);
	void *arg;
};

struct host_srq {
	struct weft_srqc core;
	u32 pd;				/* 0: the PD of each of its QPs */
	u32 user_idx;			/* producer */
	u32 limit_events;
	u32 doorbells;
	bool broken;
};

struct host_qp_attr {
	u32 pd;
	struct host_cq *scq, *rcq;
	struct host_srq *srq;
	u32 sq_slots, rq_slots;		/* powers of two; 0 allowed */
	u32 max_slots;			/* longest WQE; 0: WEFT_SQ_MAX_SLOTS */
	u32 rq_sge;			/* SGEs of a receive; 0: 1 */
	bool sig_all;
	bool kernel;
	bool srq_silent;		/* its posters ring no doorbell */
	bool confirms;			/* connected by hand */
};

struct host_qp {
	struct weft_qpc core;
	struct host *host;
	struct host_cq *scq, *rcq;
	struct host_srq *srq;
	u32 sq_user, rq_user;		/* the producer's own indices */
	bool kicked;			/* doorbell or weft_host_kick(): the send side is due */
	u32 doorbells;			/* rung by the user */
	u32 kicks;			/* requested by the core */
	u32 answers;			/* those that answer an acknowledgement Read */
	bool try_again;			/* weft_host_try_again(): as soon as time has passed */
	bool amid_run;			/* its run keeps its holds */
	bool cq_error;			/* one of its CQs has overflowed: to be moved to error */
	enum weft_event event[HOST_EVENTS];
	u32 nevents;
	u32 chunks;			/* lent to its stream */
	s32 chunk_limit;		/* at most this many at once; -1: any number */
};

struct host {
	struct host_mr mr[HOST_MRS];
	struct host_qp *qp[HOST_QPS];
	u32 nqp;
	u32 salt;			/* makes the STags of two hosts differ */
	bool windows_locked;
};

void host_init(struct host *h, u32 salt);
/* Frees all QPs and regions. CQs and SRQs are freed by their owner. */
void host_fini(struct host *h);
/* The runs of all QPs without amid_run are over: drops their holds. Nothing else may be held. */
void host_assert_quiet(const struct host *h);

/*
 * Regions. @base is the first TO; the bytes are zero. Returns NULL when the table is full.
 * host_mr_free() asserts that the region is not held.
 */
struct host_mr *host_mr_new(struct host *h, u32 pd, u64 base, u64 len, u32 access);
/* alloc_mr: not valid before host_mr_bind() or a REG_MR. */
struct host_mr *host_mr_new_fast(struct host *h, u32 pd, u64 base, u64 len);
/* A memory window of @type, not bound. */
struct host_mr *host_window_new(struct host *h, u32 pd, enum weft_region_kind type);
/* Does what a REG_MR on @qp does. */
void host_mr_bind(struct host_mr *mr, struct host_qp *qp, u32 access);
/* Number of gets without a put yet. A run's own hold is not counted. */
u32 host_mr_uses(const struct host_mr *mr);
void host_mr_free(struct host *h, struct host_mr *mr);
/* Its memory at @addr, where @len bytes must be. */
u8 *host_mr_at(const struct host_mr *mr, u64 addr, u32 len);

static inline struct host_mr *to_host_mr(struct weft_region *r)
{
	return container_of(r, struct host_mr, r);
}

/* CQs of @entries, or the next power of two. The consumer is written like a provider's. */
struct host_cq *host_cq_new(u32 entries);
void host_cq_free(struct host_cq *cq);
bool host_cq_poll(struct host_cq *cq, struct weft_cqe *e);
void host_cq_arm(struct host_cq *cq, u32 how);

struct host_srq *host_srq_new(u32 slots, u32 max_sge);
void host_srq_free(struct host_srq *srq);
/* The doorbell. */
void host_srq_kick(struct host_srq *srq);

/* A QP in IDLE with its rings. host_qp_free() also frees what it lent. */
struct host_qp *host_qp_new(struct host *h, const struct host_qp_attr *attr);
void host_qp_free(struct host_qp *qp);
u32 host_qp_count_events(const struct host_qp *qp, enum weft_event ev);

static inline struct host_qp *to_host_qp(struct weft_qpc *core)
{
	return container_of(core, struct host_qp, core);
}

#endif
