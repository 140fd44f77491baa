// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "host.h"
#include "qp_types.h"
#include "region.h"

/*
 * A window that has no QP is on its way from one to another, whose lock is not ours: what the first
 * has left of it, and valid itself, may be read for a moment yet.
 */
static bool is_for(const struct weft_region *r, u32 pd, u32 qp)
{
	return r->pd == pd && (likely(!weft_region_is_window(r)) || READ_ONCE(r->qp) == qp);
}

static __always_inline enum weft_denial region_check(const struct weft_region *r, u32 stag,
						     u32 pd, u32 qp, u64 addr, u64 len,
						     u32 access)
{
	/* Acquire: what REG_MR wrote before it said so, over whichever QP. */
	if (!r || !smp_load_acquire(&r->valid) || r->stag != stag)
		return WEFT_DENIED_STAG;
	/* The DMA region is every PD's; its access never has a remote right. */
	if (r->kind != WEFT_REGION_DMA && !is_for(r, pd, qp))
		return WEFT_DENIED_ASSOC;
	if (access & ~r->access)
		return WEFT_DENIED_ACCESS;
	/* A window is a peer's alone. */
	if (unlikely(weft_region_is_window(r)) && !(access & WEFT_ACCESS_REMOTE))
		return WEFT_DENIED_ACCESS;
	/* The last octet counts: a range may end with the address space. */
	if (len && addr + (len - 1) < addr)
		return WEFT_DENIED_WRAP;
	/* Neither side can wrap: addr >= base, and len <= r->len before it is subtracted. */
	if (addr < r->base || len > r->len || addr - r->base > r->len - len)
		return WEFT_DENIED_BOUNDS;
	return WEFT_GRANTED;
}

enum weft_denial weft_region_check(const struct weft_region *r, u32 stag, u32 pd, u32 qp,
				   u64 addr, u64 len, u32 access)
{
	return region_check(r, stag, pd, qp, addr, len, access);
}

struct weft_region weft_region_null(u32 pd)
{
	return (struct weft_region) {
		.pd = pd,
		.access = WEFT_ACCESS_LOCAL_WRITE,
		.len = ~0ULL,
		.kind = WEFT_REGION_NULL,
		.valid = true,
	};
}

static bool adds_up(u64 start, u64 len)
{
	return start + len >= start;
}

int weft_region_check_request(u64 start, u64 len, u64 iova, u32 access)
{
	const u32 known = WEFT_ACCESS_LOCAL_WRITE | WEFT_ACCESS_REMOTE | WEFT_ACCESS_MW_BIND |
			  WEFT_ACCESS_ZERO_BASED | WEFT_ACCESS_OPTIONAL;

	if (access & ~known)
		return -EOPNOTSUPP;
	/* RFC 5040 §8.1.1: who lets a peer write lets the local side write. */
	if (access & (WEFT_ACCESS_REMOTE_WRITE | WEFT_ACCESS_REMOTE_ATOMIC) &&
	    !(access & WEFT_ACCESS_LOCAL_WRITE))
		return -EINVAL;
	if (!len || len > SIZE_MAX || start != (uintptr_t)start)
		return -EINVAL;
	return adds_up(start, len) && adds_up(iova, len) ? 0 : -EINVAL;
}

int weft_region_check_dmabuf(u64 offset, u64 len, u64 iova, u32 access)
{
	if (access & (WEFT_ACCESS_REMOTE_ATOMIC | WEFT_ACCESS_MW_BIND))
		return -EOPNOTSUPP;
	return weft_region_check_request(offset, len, iova, access);
}

u32 weft_region_new_stag(enum weft_region_kind kind, u32 random)
{
	const u32 key = (1u << WEFT_STAG_KEY_BITS) - 1;

	if (!(random >> WEFT_STAG_KEY_BITS))
		return 0;
	return kind == WEFT_REGION_FAST ? random & ~key : random;
}

void weft_region_withdraw(struct weft_region *r)
{
	WRITE_ONCE(r->gone, true);
	/* Pairs with that of fast_register(): the later of the two makes it invalid. */
	smp_mb();
	WRITE_ONCE(r->valid, false);
}

/* ---- in use ---- */

/* A region that its host has withdrawn is not found by way of the hold any more. */
static bool is_held(const struct weft_region_hold *hold, u32 stag)
{
	return hold->region && READ_ONCE(hold->region->stag) == stag &&
	       READ_ONCE(hold->region->valid);
}

/* Apart, so that the next use of the same region saves no registers. */
static noinline struct weft_region *get_anew(struct weft_qpc *qp, u32 pd, u32 stag)
{
	struct weft_region *found = weft_host_region_find(qp, stag);

	/* Another PD's owner waits for no run of ours: the put lets it go. */
	if (!found || unlikely(found->pd != pd))
		return found;
	weft_region_end_run(qp);
	qp->hold = (struct weft_region_hold) { .region = found, .uses = 1 };
	return found;
}

static __always_inline struct weft_region *region_get(struct weft_qpc *qp, u32 pd, u32 stag)
{
	struct weft_region_hold *hold = &qp->hold;

	if (!stag)
		return qp->dma;
	if (unlikely(!is_held(hold, stag)))
		return get_anew(qp, pd, stag);
	hold->uses++;
	return hold->region;
}

struct weft_region *weft_region_get(struct weft_qpc *qp, u32 pd, u32 stag)
{
	return region_get(qp, pd, stag);
}

static __always_inline void region_put(struct weft_qpc *qp, struct weft_region *r)
{
	struct weft_region_hold *hold = &qp->hold;

	/* The DMA region lives as long as the QP, and is not counted. */
	if (r == qp->dma)
		return;
	if (r == hold->region && hold->uses)
		hold->uses--;
	else
		weft_host_region_drop(r);
}

void weft_region_put(struct weft_qpc *qp, struct weft_region *r)
{
	region_put(qp, r);
}

void weft_region_end_run(struct weft_qpc *qp)
{
	const struct weft_region_hold was = qp->hold;

	if (!was.region)
		return;
	qp->hold = (struct weft_region_hold) {};
	/* Each use that goes on holds the region by itself; the first takes our hold over. */
	if (!was.uses)
		weft_host_region_drop(was.region);
	else if (was.uses > 1)
		weft_host_region_hold(was.region, was.uses - 1);
}

/* Granted: into the memory at @to of @r, if it is there. */
static bool put_octets(struct weft_region *r, u64 to, struct weft_cur *from, u32 len)
{
	struct weft_region *memory = weft_region_memory(r, &to);

	if (unlikely(memory->kind == WEFT_REGION_NULL)) {
		weft_cur_skip(from, len);
		return true;
	}
	return weft_host_place(memory, to, from, len);
}

static __always_inline enum weft_denial region_ask(struct weft_qpc *qp, u32 pd, u32 stag, u64 to,
						   u32 len, u32 access, struct weft_region **r)
{
	*r = region_get(qp, pd, stag);
	return region_check(*r, stag, pd, qp->id, to, len, access);
}

enum weft_denial weft_region_place(struct weft_qpc *qp, u32 pd, u32 stag, u64 to,
				   struct weft_cur *from, u32 len, u32 access)
{
	struct weft_region *r;
	enum weft_denial d = region_ask(qp, pd, stag, to, len, access, &r);

	if (d == WEFT_GRANTED && !put_octets(r, to, from, len))
		d = WEFT_DENIED_GONE;
	if (r)
		region_put(qp, r);
	return d;
}

bool weft_region_allows(struct weft_qpc *qp, u32 pd, u32 stag, u64 to, u32 len, u32 access)
{
	struct weft_region *r;
	enum weft_denial d = region_ask(qp, pd, stag, to, len, access, &r);

	if (r)
		region_put(qp, r);
	return d == WEFT_GRANTED;
}

/* ---- windows unbound ---- */

static void list_window(struct weft_qpc *qp, struct weft_region *window)
{
	window->next_window = qp->windows;
	if (qp->windows)
		qp->windows->prev_window = &window->next_window;
	window->prev_window = &qp->windows;
	qp->windows = window;
}

static void unlist_window(struct weft_region *window)
{
	*window->prev_window = window->next_window;
	if (window->next_window)
		window->next_window->prev_window = window->prev_window;
}

static void let_memory_go(struct weft_region *window)
{
	WRITE_ONCE(window->valid, false);
	if (!window->memory)
		return;
	unlist_window(window);
	weft_host_window_drop(window->memory);
	window->memory = NULL;
}

static void release(struct weft_region *window)
{
	/* Pairs with the exchange in claim(): the next binder finds the window as we left it. */
	smp_store_release(&window->qp, 0);
}

void weft_region_unbind(struct weft_region *window)
{
	let_memory_go(window);
	release(window);
}

static void unbind_over(struct weft_qpc *qp, struct weft_region *window)
{
	weft_host_lock_windows(qp);
	weft_region_unbind(window);
	weft_host_unlock_windows(qp);
}

/* The lock is dropped after each: there may be many. */
void weft_region_unbind_all(struct weft_qpc *qp)
{
	bool more = true;

	while (more) {
		weft_host_lock_windows(qp);
		if (qp->windows)
			weft_region_unbind(qp->windows);
		more = qp->windows;
		weft_host_unlock_windows(qp);
	}
}

/* ---- registering and invalidating ---- */

/* By others than the caller, who holds it once, and the table. */
static bool is_shared(const struct weft_region *r)
{
	u32 holders = weft_host_region_holders(r);

	/* Read after that acquire: if the table's hold was dropped, gone is set. */
	return holders > (READ_ONCE(r->gone) ? 1 : 2);
}

/*
 * Is @qp's the only hold of the region? Then no other QP can begin to use it while it is not valid.
 */
static bool is_alone_with(struct weft_qpc *qp, const struct weft_region *r)
{
	if (qp->hold.region == r)
		weft_region_end_run(qp);
	/*
	 * Pairs with the barrier of weft_host_region_find(): who finds it after our look at its
	 * holders sees that it is not valid.
	 */
	smp_mb();
	if (!is_shared(r))
		return true;
	weft_host_try_again(qp);
	return false;
}

/* @owner: r->qp, as it was before anything else was looked at. */
static enum weft_denial may_invalidate(const struct weft_qpc *qp, const struct weft_region *r,
				       u32 stag, u32 owner, bool peer)
{
	/* Pairs with the release that made it valid. */
	if (!smp_load_acquire(&r->valid) || r->stag != stag)
		return WEFT_DENIED_STAG;
	if (!is_for(r, qp->pd, qp->id))
		return WEFT_DENIED_ASSOC;
	if (r->kind == WEFT_REGION_FAST && peer && owner != qp->id)
		return WEFT_DENIED_ASSOC;
	/* A user's registration ends by dereg_mr alone, a window of type 1 by a bind. */
	return r->kind == WEFT_REGION_FAST || r->kind == WEFT_REGION_WINDOW_2 ?
	       WEFT_GRANTED : WEFT_DENIED_ACCESS;
}

/* Of two QPs that take a fast region out of use one does, and not what was registered meanwhile. */
static bool take_out(struct weft_region *r, u32 owner)
{
	if (!owner || cmpxchg(&r->qp, owner, 0) != owner)
		return false;
	WRITE_ONCE(r->valid, false);
	return true;
}

/*
 * This QP's own uses run under the lock that we are called with, and none is under way: what
 * was handed out was copied before a LOCAL_INV has its turn, and a host receives nothing while
 * it sends. So a window is out of use at once. A fast region may be in use over other QPs.
 */
enum weft_denial weft_region_invalidate(struct weft_qpc *qp, u32 stag, bool peer,
					struct weft_region **ends)
{
	struct weft_region *r = weft_host_region_find(qp, stag);
	enum weft_denial d;
	u32 owner;

	if (!r)
		return WEFT_DENIED_STAG;
	/* Acquire: before whatever else is looked at, so that what take_out() claims is that. */
	owner = smp_load_acquire(&r->qp);
	d = may_invalidate(qp, r, stag, owner, peer);
	if (d == WEFT_GRANTED && r->kind == WEFT_REGION_WINDOW_2) {
		unbind_over(qp, r);
	} else if (d == WEFT_GRANTED && take_out(r, owner)) {
		*ends = r;
		return d;
	} else if (d == WEFT_GRANTED) {
		d = WEFT_DENIED_STAG;
	}
	weft_host_region_drop(r);
	return d;
}

bool weft_region_try_end(struct weft_qpc *qp, struct weft_region **ends)
{
	if (!is_alone_with(qp, *ends))
		return false;
	weft_host_region_drop(*ends);
	*ends = NULL;
	return true;
}

static void forget(struct weft_region **ends)
{
	if (*ends)
		weft_host_region_drop(*ends);
	*ends = NULL;
}

void weft_region_forget_ends(struct weft_qpc *qp)
{
	forget(&qp->tx_ends);
	forget(&qp->rx_ends);
	qp->tx_inv_begun = false;
}

/* Who holds a region alone registers it alone: another QP that would waits, and finds it valid. */
static enum weft_denial fast_register(struct weft_qpc *qp, struct weft_region *r,
				      const struct weft_wr_reg *reg)
{
	if (r->kind != WEFT_REGION_FAST || READ_ONCE(r->valid))
		return WEFT_DENIED_STAG;
	if (r->pd != qp->pd)
		return WEFT_DENIED_ASSOC;
	if (!is_alone_with(qp, r))
		return WEFT_DENIED_SHARED;
	if (!weft_host_region_map(r))
		return WEFT_DENIED_BOUNDS;
	WRITE_ONCE(r->stag, reg->stag);
	WRITE_ONCE(r->qp, qp->id);
	r->access = reg->access;
	/* Pairs with the acquire of weft_region_check(), over any QP of the PD. */
	smp_store_release(&r->valid, true);
	/* Pairs with that of weft_region_withdraw(). */
	smp_mb();
	if (likely(!READ_ONCE(r->gone)))
		return WEFT_GRANTED;
	WRITE_ONCE(r->valid, false);
	return WEFT_DENIED_STAG;
}

enum weft_denial weft_region_register(struct weft_qpc *qp, const struct weft_wr_reg *reg)
{
	struct weft_region *r = weft_host_region_find(qp, reg->stag);
	enum weft_denial d;

	if (!r)
		return WEFT_DENIED_STAG;
	d = fast_register(qp, r, reg);
	weft_host_region_drop(r);
	return d;
}

/* ---- windows bound ---- */

/* Is @r a window that this QP may bind, and free, or of type 1 and its own? Then it is its own. */
static enum weft_denial claim(struct weft_qpc *qp, struct weft_region *r)
{
	if (!weft_region_is_window(r))
		return WEFT_DENIED_STAG;
	if (r->pd != qp->pd)
		return WEFT_DENIED_ASSOC;
	if (READ_ONCE(r->qp) == qp->id)
		return r->kind == WEFT_REGION_WINDOW_1 ? WEFT_GRANTED : WEFT_DENIED_STAG;
	return cmpxchg(&r->qp, 0, qp->id) ? WEFT_DENIED_ASSOC : WEFT_GRANTED;
}

/* May a window be bound to what @bind names of @memory (NULL: none found)? */
static enum weft_denial may_bind(struct weft_qpc *qp, const struct weft_region *memory,
				 const struct weft_wr_bind *bind)
{
	u32 writes = bind->access & (WEFT_ACCESS_REMOTE_WRITE | WEFT_ACCESS_REMOTE_ATOMIC);

	/* A local right is nothing that a window could give: programs name it all the same. */
	if (bind->access & ~(WEFT_ACCESS_LOCAL_WRITE | WEFT_ACCESS_REMOTE | WEFT_ACCESS_ZERO_BASED))
		return WEFT_DENIED_ACCESS;
	/* RFC 5040 §8.1.1: who lets a peer write lets the local side write. */
	return weft_region_check(memory, bind->mr_lkey, qp->pd, qp->id, bind->addr, bind->length,
				 WEFT_ACCESS_MW_BIND | (writes ? WEFT_ACCESS_LOCAL_WRITE : 0));
}

static void set_window(struct weft_qpc *qp, struct weft_region *w, struct weft_region *memory,
		       const struct weft_wr_bind *bind)
{
	w->stag = bind->mw_stag;
	w->access = bind->access & WEFT_ACCESS_REMOTE;
	w->base = bind->access & WEFT_ACCESS_ZERO_BASED ? 0 : bind->addr;
	w->len = bind->length;
	w->start = bind->addr;
	w->memory = memory;
	list_window(qp, w);
	/* Pairs with the acquire of a lookup by another QP, which is refused by w->qp. */
	smp_store_release(&w->valid, true);
}

/* @w is claimed. If it cannot be as @bind says, it is not bound, and free. */
static enum weft_denial bind_claimed(struct weft_qpc *qp, struct weft_region *w,
				     const struct weft_wr_bind *bind)
{
	struct weft_region *memory = weft_host_region_find(qp, bind->mr_lkey);
	enum weft_denial d = may_bind(qp, memory, bind);

	weft_host_lock_windows(qp);
	let_memory_go(w);
	if (d == WEFT_GRANTED && !weft_host_window_hold(memory))
		d = WEFT_DENIED_STAG;
	if (d == WEFT_GRANTED)
		set_window(qp, w, memory, bind);
	else
		release(w);
	weft_host_unlock_windows(qp);
	if (memory)
		weft_host_region_drop(memory);
	return d;
}

enum weft_denial weft_region_bind(struct weft_qpc *qp, const struct weft_wr_bind *bind)
{
	struct weft_region *w = weft_host_region_find(qp, bind->mw_stag);
	enum weft_denial d;

	if (!w)
		return WEFT_DENIED_STAG;
	d = claim(qp, w);
	if (d == WEFT_GRANTED && bind->length) {
		d = bind_claimed(qp, w, bind);
	} else if (d == WEFT_GRANTED) {
		unbind_over(qp, w);
		d = w->kind == WEFT_REGION_WINDOW_1 ? WEFT_GRANTED : WEFT_DENIED_BOUNDS;
	}
	weft_host_region_drop(w);
	return d;
}
