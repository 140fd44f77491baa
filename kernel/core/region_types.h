/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What an STag stands for: its fields, kinds and rights.
 *
 * Locking: the fields of a region in the table are constant, but for those of a
 * fast region or window: stag, qp, access, base, len, valid, memory, start. They
 * change under the lock of the QP that registers, binds or invalidates it. A window
 * belongs to one QP from the bind on, and changes while none of its FPDUs uses it. A
 * fast region is for all QPs of its PD: it changes while no other QP holds it. An
 * exchange of qp decides which QP binds a window, or takes a fast region out of use. The lists
 * of bound windows have a lock of the host's: weft_host_lock_windows(). A
 * host takes any region out of use for good by weft_region_withdraw().
 */
#ifndef WEFT_CORE_REGION_TYPES_H
#define WEFT_CORE_REGION_TYPES_H

#include "../proto/port.h"

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
	struct weft_region *next_window, **prev_window; /* of its QP, while it has memory */
};

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
	WEFT_DENIED_GONE,		/* granted, but the memory is not there:
					 * weft_host_is_there() */
	WEFT_DENIED_SHARED,		/* to register: others hold it, and weft_host_try_again()
					 * was called */
};

/* Most FPDUs of a run use one region: it is held once for all of them. */
struct weft_region_hold {
	struct weft_region *region;	/* held once, by the lookup; NULL: none */
	u32 uses;			/* got and not yet put, beyond that */
};

#endif
