// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory regions: the table of STags of this process, and their memory, which is the program's and
 * not pinned (process/guard.h).
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>

#include <infiniband/verbs.h>

#include "process/lock.h"
#include "process/maps.h"
#include "process/raw.h"
#include "devices/limits.h"
#include "ulp.h"

/* A STag is random, and so any page of the table is written sooner or later: 64 KiB. */
#define BUCKETS 4096

static struct bucket {
	struct rl_lock lock;
	struct hlist_head regions;
} buckets[BUCKETS];

static struct rl_lock windows_lock;	/* guards all QPs' lists of bound windows; innermost */
static u32 count;			/* atomic */
static pthread_mutex_t release_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t released = PTHREAD_COND_INITIALIZER;

static struct rl_mr *mr_of(const struct weft_region *r)
{
	return container_of(r, struct rl_mr, region);
}

/* ---- the table ---- */

static struct bucket *bucket_of(u32 stag)
{
	return &buckets[(stag >> WEFT_STAG_KEY_BITS) % BUCKETS];
}

static struct rl_mr *find_in(const struct bucket *b, u32 stag)
{
	struct rl_mr *mr;

	hlist_for_each_entry(mr, &b->regions, node)
		if (!((mr->region.stag ^ stag) >> WEFT_STAG_KEY_BITS))
			return mr;
	return NULL;
}

struct weft_region *rl_mr_find(u32 stag)
{
	struct bucket *b = bucket_of(stag);
	struct rl_mr *mr;

	rl_lock(&b->lock);
	mr = find_in(b, stag);
	if (mr)
		__atomic_fetch_add(&mr->holders, 1, __ATOMIC_RELAXED);
	/* Held, then looked at: core/host.h. */
	smp_mb__after_atomic();
	rl_unlock(&b->lock);
	return mr ? &mr->region : NULL;
}

void rl_mr_hold(struct weft_region *r, u32 n)
{
	__atomic_fetch_add(&mr_of(r)->holders, n, __ATOMIC_RELAXED);
}

void rl_mr_drop(struct weft_region *r)
{
	if (__atomic_sub_fetch(&mr_of(r)->holders, 1, __ATOMIC_ACQ_REL))
		return;
	pthread_mutex_lock(&release_lock);
	mr_of(r)->released = true;
	pthread_cond_broadcast(&released);
	pthread_mutex_unlock(&release_lock);
}

void *rl_mr_address(const struct weft_region *r, u64 addr)
{
	return (void *)(uintptr_t)(mr_of(r)->start + (addr - r->base));
}

static bool insert(struct rl_mr *mr, u32 stag)
{
	struct bucket *b = bucket_of(stag);
	bool free;

	rl_lock(&b->lock);
	free = !find_in(b, stag);
	if (free) {
		mr->region.stag = stag;
		hlist_add_head(&mr->node, &b->regions);
	}
	rl_unlock(&b->lock);
	return free;
}

static void remove_from_table(struct rl_mr *mr)
{
	struct bucket *b = bucket_of(mr->region.stag);

	rl_lock(&b->lock);
	hlist_del(&mr->node);
	rl_unlock(&b->lock);
}

/* @mr gets @old's STag. Holders of @old find it invalid soon. */
static void replace_in_table(struct rl_mr *mr, struct rl_mr *old)
{
	struct bucket *b = bucket_of(old->region.stag);

	mr->region.stag = old->region.stag;
	rl_lock(&b->lock);
	hlist_del(&old->node);
	hlist_add_head(&mr->node, &b->regions);
	rl_unlock(&b->lock);
	old->replaced = true;
}

/* Gives @mr, otherwise complete, its STag, and adds it to the table. */
static int publish(struct rl_mr *mr)
{
	u32 random, stag;
	int try;

	for (try = 0; try < WEFT_STAG_TRIES; try++) {
		if (getrandom(&random, sizeof(random), 0) != sizeof(random))
			return -EIO;
		stag = weft_region_new_stag(mr->region.kind, random);
		if (stag && insert(mr, stag))
			return 0;
	}
	return -ENOSPC;
}

/* ---- life ---- */

static void free_mr(struct rl_mr *mr)
{
	__atomic_fetch_sub(&count, 1, __ATOMIC_RELAXED);
	rl_dmabuf_put(&mr->dmabuf);
	free(mr);
}

/* A new one of @kind with a copy of @region, which has no STag yet: 0, or -errno. */
static int alloc_mr(struct rl_pd *pd, enum rl_kind kind, const struct weft_region *region,
		struct rl_mr **out)
{
	struct rl_mr *mr;

	if (__atomic_add_fetch(&count, 1, __ATOMIC_RELAXED) > RL_MAX_MR ||
	    !(mr = calloc(1, sizeof(*mr)))) {
		__atomic_fetch_sub(&count, 1, __ATOMIC_RELAXED);
		return -ENOMEM;
	}
	mr->o.kind = kind;
	mr->pd = pd;
	mr->holders = 1;
	mr->region = *region;
	*out = mr;
	return 0;
}

/* Publishes it, or frees it. */
static int finish_mr(struct rl_mr *mr)
{
	int rv = publish(mr);

	if (rv)
		free_mr(mr);
	else
		mr->pd->o.users++;
	return rv;
}

static struct weft_region of_program(const struct rl_pd *pd, u64 len, u64 iova, u32 access)
{
	return (struct weft_region){
		.pd = pd->id,
		.access = access & (WEFT_ACCESS_LOCAL_WRITE | WEFT_ACCESS_REMOTE |
				    WEFT_ACCESS_MW_BIND),
		.base = access & WEFT_ACCESS_ZERO_BASED ? 0 : iova,
		.len = len,
		.kind = WEFT_REGION_USER,
		.valid = true,
	};
}

/*
 * No region is pinned, so any may be on demand; such a region need not be mapped yet. A request for
 * the whole address space begins at 0 and has all octets but the last.
 */
static int begin_mr(struct rl_pd *pd, u64 start, u64 len, u64 iova, u32 access, struct rl_mr **out)
{
	const struct weft_region region = of_program(pd, len, iova, access);
	const u32 odp = access & IBV_ACCESS_ON_DEMAND ?
			IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB : 0;
	int rv = weft_region_check_request(start, len, iova, access & ~odp);

	/* Nothing keeps the memory there, but a mistake is reported where it is made. */
	if (!rv && !odp && !rl_maps_allow(start, len, access & WEFT_ACCESS_LOCAL_WRITE))
		rv = -EFAULT;
	rv = rv ?: alloc_mr(pd, RL_MR, &region, out);
	if (rv)
		return rv;
	(*out)->start = start;
	(*out)->access = access;
	return 0;
}

int rl_mr_new(struct rl_pd *pd, u64 start, u64 len, u64 iova, u32 access, struct rl_mr **out)
{
	return begin_mr(pd, start, len, iova, access, out) ?: finish_mr(*out);
}

int rl_mr_change(struct rl_mr *old, struct rl_pd *pd, u32 access, struct rl_mr **out)
{
	int rv = begin_mr(pd, old->start, old->region.len, old->region.base, access, out);

	if (rv)
		return rv;
	replace_in_table(*out, old);
	pd->o.users++;
	return 0;
}

int rl_mr_new_dmabuf(struct rl_pd *pd, int fd, u64 offset, u64 len, u64 iova, u32 access,
		     struct rl_mr **out)
{
	const struct weft_region region = of_program(pd, len, iova, access);
	int rv = weft_region_check_dmabuf(offset, len, iova, access) ?:
		 alloc_mr(pd, RL_MR, &region, out);

	if (rv)
		return rv;
	/* The check has seen that remote write comes with local write. */
	rv = rl_dmabuf_get(&(*out)->dmabuf, fd, offset, len, access & WEFT_ACCESS_LOCAL_WRITE,
			   &(*out)->start);
	if (rv) {
		free_mr(*out);
		return rv;
	}
	(*out)->access = access;
	return finish_mr(*out);
}

int rl_mr_new_null(struct rl_pd *pd, struct rl_mr **out)
{
	const struct weft_region region = weft_region_null(pd->id);
	int rv = alloc_mr(pd, RL_MR, &region, out);

	return rv ?: finish_mr(*out);
}

int rl_mw_new(struct rl_pd *pd, u8 type, struct rl_mr **out)
{
	const struct weft_region region = {
		.pd = pd->id,
		.kind = type == IBV_MW_TYPE_1 ? WEFT_REGION_WINDOW_1 : WEFT_REGION_WINDOW_2,
	};
	int rv = type == IBV_MW_TYPE_1 || type == IBV_MW_TYPE_2 ? 0 : -EINVAL;

	rv = rv ?: alloc_mr(pd, RL_MW, &region, out);
	return rv ?: finish_mr(*out);
}

/*
 * The program will soon write (@write) or read the octets of @sge. Best effort: pages that cannot
 * be populated are not reported.
 */
int rl_mr_advise(u32 pd, const struct weft_sge *sge, bool write)
{
	struct weft_region *r = rl_mr_find(sge->lkey);
	enum weft_denial d = weft_region_check(r, sge->lkey, pd, 0, sge->addr, sge->length,
					       write ? WEFT_ACCESS_LOCAL_WRITE : 0);
	u64 start, in_page;

	if (d == WEFT_GRANTED && sge->length && r->kind == WEFT_REGION_USER) {
		start = (uintptr_t)rl_mr_address(r, sge->addr);
		in_page = start & (sysconf(_SC_PAGESIZE) - 1);
		rl_raw(SYS_madvise, start - in_page, sge->length + in_page,
		       write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
	}
	if (r)
		rl_mr_drop(r);
	if (d == WEFT_DENIED_ACCESS)
		return -EPERM;
	return d == WEFT_GRANTED ? 0 : -EINVAL;
}

/* Not a point of cancellation: locks are held, and dereg_mr is not one with the kernel either. */
static void await_release(struct rl_mr *mr)
{
	int old;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	pthread_mutex_lock(&release_lock);
	while (!mr->released)
		pthread_cond_wait(&released, &release_lock);
	pthread_mutex_unlock(&release_lock);
	pthread_setcancelstate(old, NULL);
}

void rl_mr_lock_windows(void)
{
	rl_lock(&windows_lock);
}

void rl_mr_unlock_windows(void)
{
	rl_unlock(&windows_lock);
}

/* From here on its holders find it invalid: another region may get its STag. */
void rl_mr_destroy(struct rl_mr *mr)
{
	weft_region_withdraw(&mr->region);
	if (!mr->replaced)
		remove_from_table(mr);
	rl_mr_drop(&mr->region);
	await_release(mr);
	if (mr->o.kind == RL_MW) {
		rl_mr_lock_windows();
		weft_region_unbind(&mr->region);
		rl_mr_unlock_windows();
	}
	mr->pd->o.users--;
	free_mr(mr);
}

/* ---- windows ---- */

bool rl_mr_close(struct rl_mr *mr)
{
	s32 none = 0;

	return __atomic_compare_exchange_n(&mr->windows, &none, INT32_MIN, false, __ATOMIC_SEQ_CST,
					   __ATOMIC_SEQ_CST);
}

void rl_mr_open_again(struct rl_mr *mr)
{
	__atomic_store_n(&mr->windows, 0, __ATOMIC_SEQ_CST);
}

bool rl_mr_hold_for_window(struct weft_region *r)
{
	s32 *windows = &mr_of(r)->windows;
	s32 n = __atomic_load_n(windows, __ATOMIC_RELAXED);

	while (n >= 0)
		if (__atomic_compare_exchange_n(windows, &n, n + 1, false, __ATOMIC_SEQ_CST,
						__ATOMIC_RELAXED))
			return true;
	return false;
}

void rl_mr_drop_for_window(struct weft_region *r)
{
	__atomic_fetch_sub(&mr_of(r)->windows, 1, __ATOMIC_SEQ_CST);
}
