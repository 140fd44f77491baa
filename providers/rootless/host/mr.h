/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Protection domains, memory regions and windows. */
#ifndef RL_MR_H
#define RL_MR_H

#include "kernel/core/qp.h"
#include "context.h"
#include "dmabuf.h"
#include "process/list.h"

struct rl_pd {
	struct rl_object o;
	u32 id;				/* never 0; unique in the process */
};

struct rl_mr {
	struct rl_object o;
	struct rl_pd *pd;
	struct weft_region region;
	u64 start;			/* the address of region.base */
	struct rl_dmabuf dmabuf;	/* if that is a dmabuf's memory */
	u32 access;			/* IB_ACCESS_ as asked for */
	u32 holders;			/* atomic; the table's is one */
	bool released;			/* the last holder has dropped it */
	bool replaced;			/* by rl_mr_change() */
	s32 windows;			/* atomic; bound to it; negative: being destroyed */
	struct hlist_node node;		/* in the table */
};

/* Makes and publishes a region: 0, or -errno. */
int rl_mr_new(struct rl_pd *pd, u64 start, u64 len, u64 iova, u32 access, struct rl_mr **mr);
/*
 * A region of the same memory, with @pd and @access, replaces @old and keeps its STag, which peers
 * know. The caller destroys @old. 0, or -errno and nothing has changed.
 */
int rl_mr_change(struct rl_mr *old, struct rl_pd *pd, u32 access, struct rl_mr **mr);
/* A region of @len octets from @offset of the dmabuf @fd. */
int rl_mr_new_dmabuf(struct rl_pd *pd, int fd, u64 offset, u64 len, u64 iova, u32 access,
		     struct rl_mr **mr);
/* A memory window: a region of another one's memory. 0, or -errno. */
int rl_mw_new(struct rl_pd *pd, u8 type, struct rl_mr **mw);
/* Before rl_mr_destroy(): false, with no effect, if a window is bound to it. */
bool rl_mr_close(struct rl_mr *mr);
/* Undoes rl_mr_close(). */
void rl_mr_open_again(struct rl_mr *mr);
/* A null region: it has no memory. */
int rl_mr_new_null(struct rl_pd *pd, struct rl_mr **mr);
/* Takes it out of use, waits for its holders, frees it. Not with a connection's lock. */
void rl_mr_destroy(struct rl_mr *mr);
/* 0, or -errno: @sge is not in a region of @pd's, or must not be written. */
int rl_mr_advise(u32 pd, const struct weft_sge *sge, bool write);
/* For core/host.h. */
struct weft_region *rl_mr_find(u32 stag);
void rl_mr_hold(struct weft_region *r, u32 n);
void rl_mr_drop(struct weft_region *r);
bool rl_mr_hold_for_window(struct weft_region *r);
void rl_mr_drop_for_window(struct weft_region *r);
void rl_mr_lock_windows(void);
void rl_mr_unlock_windows(void);
void *rl_mr_address(const struct weft_region *r, u64 addr);

#endif
