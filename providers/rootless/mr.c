// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory regions: the table of STags of this process, and the memory behind them, which is the
 * program's and not pinned (guard.h).
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "raw.h"
#include "verbs.h"

#define BUCKETS 16384

static struct bucket {
	pthread_mutex_t lock;
	struct rl_mr *first;
} buckets[BUCKETS] = {
	/* Not by a constructor: those of the program's libraries may run before ours. */
	[0 ... BUCKETS - 1] = { .lock = PTHREAD_MUTEX_INITIALIZER },
};

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

	for (mr = b->first; mr; mr = mr->next)
		if (!((mr->region.stag ^ stag) >> WEFT_STAG_KEY_BITS))
			return mr;
	return NULL;
}

struct weft_region *rl_mr_find(u32 stag)
{
	struct bucket *b = bucket_of(stag);
	struct rl_mr *mr;

	pthread_mutex_lock(&b->lock);
	mr = find_in(b, stag);
	if (mr)
		__atomic_fetch_add(&mr->holders, 1, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&b->lock);
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

	pthread_mutex_lock(&b->lock);
	free = !find_in(b, stag);
	if (free) {
		mr->region.stag = stag;
		mr->next = b->first;
		b->first = mr;
	}
	pthread_mutex_unlock(&b->lock);
	return free;
}

static void remove_from_table(struct rl_mr *mr)
{
	struct bucket *b = bucket_of(mr->region.stag);
	struct rl_mr **p;

	pthread_mutex_lock(&b->lock);
	for (p = &b->first; *p != mr; p = &(*p)->next)
		;
	*p = mr->next;
	pthread_mutex_unlock(&b->lock);
}

/* Gives @mr, complete but for this, its STag and lets others find it. */
static int publish(struct rl_mr *mr)
{
	u32 random, stag;
	int try;

	for (try = 0; try < WEFT_STAG_TRIES; try++) {
		if (getrandom(&random, sizeof(random), 0) != sizeof(random))
			return -EIO;
		stag = weft_region_new_stag(WEFT_REGION_USER, random);
		if (stag && insert(mr, stag))
			return 0;
	}
	return -ENOSPC;
}

/* ---- life ---- */

/*
 * Is there memory at every page? Nothing keeps it there, but a mistake is told where it is made.
 * Of what is there MS_ASYNC does nothing.
 */
static bool is_mapped(u64 start, u64 len)
{
	u64 in_page = start & (sysconf(_SC_PAGESIZE) - 1);

	return !rl_raw(SYS_msync, start - in_page, len + in_page, MS_ASYNC);
}

static void free_mr(struct rl_mr *mr)
{
	__atomic_fetch_sub(&count, 1, __ATOMIC_RELAXED);
	free(mr);
}

int rl_mr_new(struct rl_pd *pd, u64 start, u64 len, u64 iova, u32 access, struct rl_mr **out)
{
	int rv = weft_region_check_request(start, len, iova, access);
	struct rl_mr *mr;

	if (rv)
		return rv;
	if (!is_mapped(start, len))
		return -EFAULT;
	if (__atomic_add_fetch(&count, 1, __ATOMIC_RELAXED) > RL_MAX_MR ||
	    !(mr = calloc(1, sizeof(*mr)))) {
		__atomic_fetch_sub(&count, 1, __ATOMIC_RELAXED);
		return -ENOMEM;
	}
	mr->o.kind = RL_MR;
	mr->pd = pd;
	mr->start = start;
	mr->access = access;
	mr->holders = 1;
	mr->region = (struct weft_region){
		.pd = pd->id,
		.access = access & (WEFT_ACCESS_LOCAL_WRITE | WEFT_ACCESS_REMOTE),
		.base = access & WEFT_ACCESS_ZERO_BASED ? 0 : iova,
		.len = len,
		.kind = WEFT_REGION_USER,
		.valid = true,
	};
	rv = publish(mr);
	if (rv) {
		free_mr(mr);
		return rv;
	}
	pd->o.users++;
	*out = mr;
	return 0;
}

/* Not a point of cancellation: locks are held, and dereg_mr is none with the kernel. */
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

/* From here on who still holds it refuses it: its STag may be given to another. */
void rl_mr_destroy(struct rl_mr *mr)
{
	WRITE_ONCE(mr->region.valid, false);
	remove_from_table(mr);
	rl_mr_drop(&mr->region);
	await_release(mr);
	mr->pd->o.users--;
	free_mr(mr);
}
