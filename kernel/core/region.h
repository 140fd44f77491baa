/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What an STag stands for, and whether an access is allowed. The table of
 * STags, the references and the pages are the host's; the judgement is here.
 * Locking: the fields of a region in the table are constant but for state,
 * base, len, access, stag (fast registration), which its host changes only
 * while no FPDU uses the region.
 */
#ifndef WEFT_CORE_REGION_H
#define WEFT_CORE_REGION_H

#include "../proto/port.h"

/* The same bits as IB_ACCESS_*, which are uABI. */
enum {
	WEFT_ACCESS_LOCAL_WRITE	  = 1 << 0,
	WEFT_ACCESS_REMOTE_WRITE  = 1 << 1,
	WEFT_ACCESS_REMOTE_READ	  = 1 << 2,
	WEFT_ACCESS_REMOTE_ATOMIC = 1 << 3,
	WEFT_ACCESS_MW_BIND	  = 1 << 4,
	WEFT_ACCESS_ZERO_BASED	  = 1 << 5,
	WEFT_ACCESS_REMOTE	  = WEFT_ACCESS_REMOTE_WRITE | WEFT_ACCESS_REMOTE_READ |
				    WEFT_ACCESS_REMOTE_ATOMIC,
};

enum weft_region_kind {
	WEFT_REGION_USER,		/* reg_user_mr: never remotely invalidated */
	WEFT_REGION_FAST,		/* alloc_mr, REG_MR */
	WEFT_REGION_WINDOW,		/* memory window */
	WEFT_REGION_DMA,		/* the kernel's all-memory region: base 0, len ~0,
					 * WEFT_ACCESS_LOCAL_WRITE and nothing else */
};

struct weft_region {
	u32 stag;			/* all 32 bits, key byte included */
	u32 pd;				/* protection domain */
	u32 qp;				/* 0, or the only QP that may use it or invalidate it */
	u32 access;			/* WEFT_ACCESS_ */
	u64 base;			/* first TO */
	u64 len;
	u8 kind;			/* enum weft_region_kind */
	bool valid;			/* false: invalidated, or not registered yet */
};

enum weft_denial {
	WEFT_GRANTED,
	WEFT_DENIED_STAG,		/* no such STag, or not valid, or wrong key byte */
	WEFT_DENIED_ASSOC,		/* another PD's or QP's */
	WEFT_DENIED_ACCESS,		/* rights */
	WEFT_DENIED_WRAP,		/* addr + len exceeds 64 bits */
	WEFT_DENIED_BOUNDS,
};

/*
 * May QP @qp of @pd use @len bytes at @addr of @r (NULL: none found) as
 * @access asks (0: local read)? Checked in the order of the enum.
 */
enum weft_denial weft_region_check(const struct weft_region *r, u32 stag, u32 pd, u32 qp,
				   u64 addr, u64 len, u32 access);

#endif
