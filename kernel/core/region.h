/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What an STag stands for, whether an access is allowed, how long a region is
 * held, and who may register and invalidate it. The table of STags, the
 * references and the pages are the host's; the judgement is here.
 *
 * Locking: the fields of a region in the table are constant, but for those of a
 * fast region or window: stag, qp, access, base, len, valid, memory, start. They
 * change under the lock of the QP that registers, binds or invalidates it. A window
 * belongs to one QP from the bind on, and changes while none of its FPDUs uses it. A
 * fast region is for all QPs of its PD: it changes while nobody else holds it. Who
 * is to bind a window, or to take a fast region out of use, is decided by an exchange
 * of qp. A host takes any region out of use for good by weft_region_withdraw().
 */
#ifndef WEFT_CORE_REGION_H
#define WEFT_CORE_REGION_H

#include "../proto/port.h"

struct weft_cur;
struct weft_qpc;
struct weft_wr_bind;
struct weft_wr_reg;

/* The same bits as IB_ACCESS_*, which are uABI. */
enum {
	WEFT_ACCESS_LOCAL_WRITE	  = 1 << 0,
	WEFT_ACCESS_REMOTE_WRITE  = 1 << 1,
	WEFT_ACCESS_REMOTE_READ	  = 1 << 2,
	WEFT_ACCESS_REMOTE_ATOMIC = 1 << 3,
	WEFT_ACCESS_MW_BIND	  = 1 << 4,
	WEFT_ACCESS_ZERO_BASED	  = 1 << 5,
	/* Relaxed ordering and the like may be ignored. */
	WEFT_ACCESS_OPTIONAL	  = 0x3FF00000,
	WEFT_ACCESS_REMOTE	  = WEFT_ACCESS_REMOTE_WRITE | WEFT_ACCESS_REMOTE_READ |
				    WEFT_ACCESS_REMOTE_ATOMIC,
};

enum weft_region_kind {
	WEFT_REGION_USER,		/* reg_user_mr: never remotely invalidated */
	WEFT_REGION_FAST,		/* alloc_mr, REG_MR */
	WEFT_REGION_WINDOW_1,		/* memory window, type 1: bound anew while it is bound */
	WEFT_REGION_WINDOW_2,		/* type 2B: bound once, then invalidated */
	WEFT_REGION_NULL,		/* no memory: what is placed is dropped, and zeros are
					 * read; base 0, len ~0, WEFT_ACCESS_LOCAL_WRITE and
					 * nothing else */
	WEFT_REGION_DMA,		/* the kernel's all-memory region: base 0, len ~0,
					 * WEFT_ACCESS_LOCAL_WRITE and nothing else */
};

struct weft_region {
	u32 stag;			/* all 32 bits, key byte included */
	u32 pd;				/* protection domain */
	u32 qp;				/* of a window, the only QP that may use or invalidate
					 * it; of a fast region, the one that registered it. 0:
					 * none, or it is being invalidated */
	u32 access;			/* WEFT_ACCESS_ */
	u64 base;			/* first TO */
	u64 len;
	u8 kind;			/* enum weft_region_kind */
	bool valid;			/* false: invalidated, or not registered yet */
	bool gone;			/* out of use for good: weft_region_withdraw() */
	struct weft_region *memory;	/* a bound window's: the region that has its octets */
	u64 start;			/* and where in that they begin, as a TO */
};

/* A null region as @pd's, but for its STag. */
struct weft_region weft_region_null(u32 pd);

static inline bool weft_region_is_window(const struct weft_region *r)
{
	return unlikely(r->kind == WEFT_REGION_WINDOW_1 || r->kind == WEFT_REGION_WINDOW_2);
}

/* The region that has the memory of @r, in use, and in *@addr the place in it. */
static inline struct weft_region *weft_region_memory(struct weft_region *r, u64 *addr)
{
	if (likely(!r->memory))
		return r;
	*addr = *addr - r->base + r->start;
	return r->memory;
}

enum weft_denial {
	WEFT_GRANTED,
	WEFT_DENIED_STAG,		/* no such STag, or not valid, or wrong key byte */
	WEFT_DENIED_ASSOC,		/* another PD's, or another QP's window */
	WEFT_DENIED_ACCESS,		/* rights */
	WEFT_DENIED_WRAP,		/* addr + len exceeds 64 bits */
	WEFT_DENIED_BOUNDS,
	WEFT_DENIED_GONE,		/* granted, but the memory is not there: weft_host_is_there() */
	WEFT_DENIED_SHARED,		/* to register: others hold it, and weft_host_try_again()
					 * was called */
};

/*
 * May QP @qp of @pd use @len bytes at @addr of @r (NULL: none found) as
 * @access asks (0: local read)? Checked in the order of the enum.
 */
enum weft_denial weft_region_check(const struct weft_region *r, u32 stag, u32 pd, u32 qp,
				   u64 addr, u64 len, u32 access);

/*
 * A user asks for a region of @len octets at @start, known as @iova, with IB_ACCESS_ bits
 * @access: 0; -EINVAL: no such range, or rights that contradict each other; -EOPNOTSUPP: a
 * right that is not known, and not one of those that may be ignored.
 */
int weft_region_check_request(u64 start, u64 len, u64 iova, u32 access);

/* ---- STag numbers ---- */

/* An STag is the region's index in the host's table, and below that a key. */
#define WEFT_STAG_KEY_BITS	8
#define WEFT_STAG_INDEX_MAX	(0xFFFFFFFFu >> WEFT_STAG_KEY_BITS)
/* A table a sixteenth full hits a free place in one try of 1.07. */
#define WEFT_STAG_TRIES		64

/*
 * An STag for a new region of @kind, made of 32 random bits, so that a peer can
 * count on nothing; 0: draw again. The key of a fast region is its consumer's, and
 * 0 at first. Index 0 is no region's: STag 0 is the local DMA lkey. A host whose
 * table has no free place after WEFT_STAG_TRIES draws gives up.
 */
u32 weft_region_new_stag(enum weft_region_kind kind, u32 random);

/*
 * The host's: @r is out of use for good, though some may hold it yet, and REG_MR be under way. The
 * host waits for them. Before it takes the region out of its table, and drops the table's hold; no
 * lock.
 */
void weft_region_withdraw(struct weft_region *r);

/* ---- in use. Lock: the connection's, as in qp.h ---- */

/* Most FPDUs of a run use one region: it is held once for all of them. */
struct weft_region_hold {
	struct weft_region *region;	/* held once, by whom it was found; NULL: none */
	u32 uses;			/* got and not yet put, beyond that */
};

/*
 * The region that @stag names, to be put once used, or NULL. The key byte is not
 * compared: weft_region_check() does. A region may be kept from its check to the last
 * byte of one FPDU, or of the FPDUs that go out together; each run looks it up anew.
 * One that is not @pd's is kept from here to the put alone.
 */
struct weft_region *weft_region_get(struct weft_qpc *qp, u32 pd, u32 stag);
void weft_region_put(struct weft_qpc *qp, struct weft_region *r);

/* Checks as weft_region_check() does, then copies @len octets from the cursor. */
enum weft_denial weft_region_place(struct weft_qpc *qp, u32 pd, u32 stag, u64 to,
				   struct weft_cur *from, u32 len, u32 access);

/*
 * A run of receiving or sending is over: nothing is held any more but what was got
 * and is not yet put.
 */
void weft_region_end_run(struct weft_qpc *qp);

/*
 * LOCAL_INV, READ_INV, and a Send with Invalidate from the peer (@peer): takes a region
 * out of use, a fast-registered one or a window of type 2B. A window, only over the QP
 * that bound it. A fast region, over any QP of its PD; but RFC 5040 §8.1.1 (7): the peer
 * only over the QP that registered it. Returns WEFT_GRANTED, or why not. If granted,
 * nothing new uses the region; *@ends, NULL before, is that which others may still use.
 */
enum weft_denial weft_region_invalidate(struct weft_qpc *qp, u32 stag, bool peer,
					struct weft_region **ends);

/* Has everybody let go of *@ends? Then it is NULL. False: weft_host_try_again() was called. */
bool weft_region_try_end(struct weft_qpc *qp, struct weft_region **ends);

/* The same, of one or none: its consumer may do with the memory what it likes. */
static inline bool weft_region_has_ended(struct weft_qpc *qp, struct weft_region **ends)
{
	return likely(!*ends) || weft_region_try_end(qp, ends);
}

/* The QP is in error: it waits for nobody to let go. weft_rq_wait_over() follows, for rx_waits. */
void weft_region_forget_ends(struct weft_qpc *qp);

/*
 * BIND_MW: from now on bind->mw_stag stands for a part of a region, over this QP alone: as
 * iWARP's verbs have it, for both types. Length 0 unbinds a window of type 1. The rights are
 * remote ones and ZERO_BASED.
 */
enum weft_denial weft_region_bind(struct weft_qpc *qp, const struct weft_wr_bind *bind);

/*
 * The host's, for a window of @qp that goes, or whose QP goes: it is bound no more. The lock of
 * @qp; a window that nobody finds any more needs none, and then @qp is NULL.
 */
void weft_region_unbind(struct weft_qpc *qp, struct weft_region *window);

/* REG_MR of a kernel consumer: from now on reg->stag is valid, for all QPs of the PD. */
enum weft_denial weft_region_register(struct weft_qpc *qp, const struct weft_wr_reg *reg);

#endif
