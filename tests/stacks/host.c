// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <stdio.h>
#include <stdlib.h>

#include "host.h"
#include "../../kernel/core/atomic.h"
#include "../../kernel/core/place.h"

#define PIECE 600u

void host_panic(const char *file, int line, const char *what)
{
	fprintf(stderr, "%s:%d: broken promise: %s\n", file, line, what);
	abort();
}

static void *zalloc(size_t n)
{
	void *p = calloc(1, n ? n : 1);

	HOST_ASSERT(p);
	return p;
}

void host_init(struct host *h, u32 salt)
{
	memset(h, 0, sizeof(*h));
	h->salt = salt;
}

void host_fini(struct host *h)
{
	u32 i;

	for (i = 0; i < HOST_QPS; i++)
		if (h->qp[i])
			host_qp_free(h->qp[i]);
	for (i = 0; i < HOST_MRS; i++)
		if (h->mr[i].busy)
			host_mr_free(h, &h->mr[i]);
}

/* Holds of QPs on @mr between runs: they wait for its invalidation, or are amid a run. */
static u32 waits_or_amid(const struct host *h, const struct host_mr *mr)
{
	u32 i, n = 0;

	for (i = 0; i < HOST_QPS; i++) {
		const struct host_qp *qp = h->qp[i];

		if (!qp)
			continue;
		n += qp->core.tx_ends == &mr->r;
		n += qp->core.rx_ends == &mr->r;
		n += qp->core.hold.region == &mr->r;
		HOST_ASSERT(!qp->core.hold.region || qp->amid_run);
	}
	return n;
}

void host_assert_quiet(const struct host *h)
{
	u32 i;

	for (i = 0; i < HOST_QPS; i++)
		if (h->qp[i] && !h->qp[i]->amid_run)
			weft_region_end_run(&h->qp[i]->core);
	for (i = 0; i < HOST_MRS; i++)
		HOST_ASSERT(!h->mr[i].holders || h->mr[i].holders == waits_or_amid(h, &h->mr[i]));
}

/* ---- regions ---- */

/* Slot 0 is not used, so that the index is never 0. */
static u32 make_stag(const struct host *h, u32 slot, enum weft_region_kind kind)
{
	u32 salt = (h->salt ^ slot * 0x9E3779u) << (HOST_INDEX_SHIFT + 6);
	u32 stag = weft_region_new_stag(kind, salt | slot << HOST_INDEX_SHIFT | (0xA5 ^ slot));

	HOST_ASSERT(stag);
	return stag;
}

static struct host_mr *mr_by_stag(struct host *h, u32 stag)
{
	struct host_mr *mr = &h->mr[stag >> HOST_INDEX_SHIFT & (HOST_MRS - 1)];

	if (!mr->busy || (mr->r.stag ^ stag) >> HOST_INDEX_SHIFT)
		return NULL;
	return mr;
}

static struct host_mr *mr_alloc(struct host *h, enum weft_region_kind kind, u32 pd, u64 base,
				u64 len)
{
	struct host_mr *mr;
	u32 i;

	for (i = 1; i < HOST_MRS && h->mr[i].busy; i++)
		;
	if (i == HOST_MRS)
		return NULL;
	mr = &h->mr[i];
	*mr = (struct host_mr){
		.r = { .stag = make_stag(h, i, kind), .pd = pd, .base = base, .len = len,
		       .kind = kind },
		.host = h,
		.mem = zalloc(len),
		.busy = true,
	};
	return mr;
}

struct host_mr *host_mr_new(struct host *h, u32 pd, u64 base, u64 len, u32 access)
{
	struct host_mr *mr = mr_alloc(h, WEFT_REGION_USER, pd, base, len);

	if (mr) {
		mr->r.access = access;
		mr->r.valid = true;
	}
	return mr;
}

struct host_mr *host_mr_new_fast(struct host *h, u32 pd, u64 base, u64 len)
{
	return mr_alloc(h, WEFT_REGION_FAST, pd, base, len);
}

struct host_mr *host_window_new(struct host *h, u32 pd, enum weft_region_kind type)
{
	return mr_alloc(h, type, pd, 0, 0);
}

void host_mr_bind(struct host_mr *mr, struct host_qp *qp, u32 access)
{
	const struct weft_wr_reg reg = { .stag = mr->r.stag, .access = access };

	HOST_ASSERT(weft_region_register(&qp->core, &reg) == WEFT_GRANTED);
}

u32 host_mr_uses(const struct host_mr *mr)
{
	const struct host *h = mr->host;
	u32 n = mr->holders, qps = min_t(u32, h->nqp, HOST_QPS), i;

	/* Only the QPs created so far: the bench calls this for every access. */
	for (i = 0; i < qps; i++)
		if (h->qp[i] && h->qp[i]->core.hold.region == &mr->r)
			n += h->qp[i]->core.hold.uses - 1;
	return n;
}

void host_mr_free(struct host *h, struct host_mr *mr)
{
	HOST_ASSERT(mr->busy && !mr->holders);
	HOST_ASSERT(mr == &h->mr[mr - h->mr]);
	free(mr->mem);
	memset(mr, 0, sizeof(*mr));
}

u8 *host_mr_at(const struct host_mr *mr, u64 addr, u32 len)
{
	HOST_ASSERT(addr >= mr->r.base && len <= mr->r.len);
	HOST_ASSERT(addr - mr->r.base <= mr->r.len - len);
	return mr->mem + (addr - mr->r.base);
}

struct weft_region *weft_host_region_find(struct weft_qpc *qp, u32 stag)
{
	struct host_mr *mr = mr_by_stag(to_host_qp(qp)->host, stag);

	if (!mr)
		return NULL;
	mr->holders++;
	mr->finds++;
	mr->found_valid = mr->r.valid;
	return &mr->r;
}

/* A region of any host's table. */
static struct host_mr *held_mr(struct weft_region *r)
{
	struct host_mr *mr = to_host_mr(r);
	const struct host *h = mr->host;

	HOST_ASSERT(mr >= h->mr && mr < h->mr + ARRAY_SIZE(h->mr) && mr->holders);
	return mr;
}

static bool is_ending(const struct host_mr *mr)
{
	const struct host *h = mr->host;
	u32 i;

	for (i = 0; i < HOST_QPS; i++)
		if (h->qp[i] &&
		    (h->qp[i]->core.tx_ends == &mr->r || h->qp[i]->core.rx_ends == &mr->r))
			return true;
	return false;
}

void weft_host_region_hold(struct weft_region *r, u32 n)
{
	held_mr(r)->holders += n;
}

void weft_host_region_drop(struct weft_region *r)
{
	struct host_mr *mr = held_mr(r);

	mr->holders--;
	/*
	 * Invalidated since the lookup: no earlier use may still refer to it, unless a QP waits
	 * for those uses to end.
	 */
	HOST_ASSERT(r->valid || !mr->found_valid || !host_mr_uses(mr) || is_ending(mr));
}

/* The table's own reference is not counted in holders. */
u32 weft_host_region_holders(const struct weft_region *r)
{
	return held_mr((struct weft_region *)r)->holders + !r->gone;
}

void weft_host_try_again(struct weft_qpc *core)
{
	to_host_qp(core)->try_again = true;
}

bool weft_host_region_map(struct weft_region *r)
{
	/* Only the QP that registers it holds it. */
	HOST_ASSERT(held_mr(r)->holders == 1);
	return !to_host_mr(r)->unmapped;
}

/* Looked up, or the region of a window that was. */
static bool is_in_use(const struct host_mr *mr)
{
	return mr->windows || host_mr_uses(mr);
}

void weft_host_lock_windows(struct weft_qpc *qp)
{
	struct host *h = to_host_qp(qp)->host;

	HOST_ASSERT(!h->windows_locked);
	h->windows_locked = true;
}

void weft_host_unlock_windows(struct weft_qpc *qp)
{
	struct host *h = to_host_qp(qp)->host;

	HOST_ASSERT(h->windows_locked);
	h->windows_locked = false;
}

bool weft_host_window_hold(struct weft_region *r)
{
	struct host_mr *mr = held_mr(r);

	if (mr->closing)
		return false;
	mr->windows++;
	return true;
}

void weft_host_window_drop(struct weft_region *r)
{
	HOST_ASSERT(to_host_mr(r)->windows);
	to_host_mr(r)->windows--;
}

bool weft_host_place(struct weft_region *r, u64 addr, struct weft_cur *from, u32 len)
{
	struct host_mr *mr = to_host_mr(r);

	HOST_ASSERT(is_in_use(mr) && r->valid);
	if (mr->gone)
		return false;
	if (!len)
		return true;
	weft_place_begin();
	weft_place_piece(host_mr_at(mr, addr, len), from, len, 0);
	return true;
}

bool weft_host_is_there(struct weft_region *r, u64 addr, u32 len)
{
	struct host_mr *mr = to_host_mr(r);

	HOST_ASSERT(is_in_use(mr) && r->valid && host_mr_at(mr, addr, len));
	return !mr->gone;
}

bool weft_host_atomic(const struct weft_atomic_req *req, u64 *word, u64 *was)
{
	*was = weft_atomic_run(req, word);
	return true;
}

/* Regions of every other pair of slots are split into pieces of PIECE octets. */
void *weft_host_piece(struct weft_region *r, u64 addr, u32 len, u32 *got)
{
	struct host_mr *mr = to_host_mr(r);
	u32 left = PIECE - (u32)((addr - r->base) % PIECE);

	HOST_ASSERT(is_in_use(mr) && len);
	if (mr->leave && !mr->leave_at--)
		longjmp(*mr->leave, 1);
	*got = r->stag >> HOST_INDEX_SHIFT & 2 ? min_t(u32, len, left) : len;
	return host_mr_at(mr, addr, len);
}

/* ---- completions ---- */

struct host_cq *host_cq_new(u32 entries)
{
	struct host_cq *cq = zalloc(sizeof(*cq));

	HOST_ASSERT(!weft_shape_cq(entries, &cq->entries));
	cq->ring = zalloc(weft_ring_size(cq->entries));
	weft_cqc_init(&cq->core, cq->ring, cq->entries);
	return cq;
}

void host_cq_free(struct host_cq *cq)
{
	free(cq->ring);
	free(cq);
}

bool host_cq_poll(struct host_cq *cq, struct weft_cqe *e)
{
	/* Acquire: the entry is read after the index that announces it. */
	u32 prod = smp_load_acquire(&cq->ring->kern_idx);
	const u8 *slots = (const u8 *)cq->ring + WEFT_RING_DATA;

	if (prod == cq->user_idx)
		return false;
	memcpy(e, slots + (size_t)(cq->user_idx & (cq->entries - 1)) * sizeof(*e), sizeof(*e));
	smp_store_release(&cq->ring->user_idx, ++cq->user_idx);
	return true;
}

void host_cq_arm(struct host_cq *cq, u32 how)
{
	WRITE_ONCE(cq->ring->arm, how);
	/* Pairs with weft_cqc_push()'s: the caller polls once more after this. */
	smp_mb();
}

void weft_host_complete(struct weft_qpc *core, bool recv, const struct weft_cqe *e)
{
	struct host_qp *qp = to_host_qp(core);
	struct host_cq *cq = recv ? qp->rcq : qp->scq;
	u32 i;

	HOST_ASSERT(e->qp_num == core->id && e->status < WEFT_WC_NR && e->opcode < WEFT_WCO_NR);
	switch (weft_cqc_push(&cq->core, e)) {
	case WEFT_CQ_WAKE:
		cq->wakes++;
		break;
	case WEFT_CQ_OVERFLOW:
		cq->overflows++;
		for (i = 0; i < HOST_QPS; i++) {
			struct host_qp *user = qp->host->qp[i];

			if (user && weft_qpc_uses_cq(&user->core, &cq->core))
				user->cq_error = true;
		}
		return;
	case WEFT_CQ_DEAD:
		return;
	case WEFT_CQ_QUIET:
		break;
	}
	if (cq->on_cqe)
		cq->on_cqe(qp, recv, e, cq->arg);
}

/* ---- shared receive queues ---- */

struct host_srq *host_srq_new(u32 slots, u32 max_sge)
{
	struct host_srq *srq = zalloc(sizeof(*srq));

	weft_srqc_init(&srq->core, zalloc(weft_ring_size(slots)), slots, max_sge);
	return srq;
}

void host_srq_free(struct host_srq *srq)
{
	HOST_ASSERT(!srq->core.first);
	free(srq->core.rq.q.ring);
	free(srq);
}

static void give_turn(struct weft_qpc *core)
{
	/* It waits, so it must have a connection. */
	HOST_ASSERT(!core || (core->rx_waits && core->st));
	if (core)
		to_host_qp(core)->kicked = true;
}

int weft_host_srq_pop(struct weft_qpc *core, bool wait, struct weft_recv *recv)
{
	struct host_srq *srq = to_host_qp(core)->srq;
	struct weft_srq_news news;
	int got = weft_srqc_take(&srq->core, core, wait, recv, &news);

	HOST_ASSERT(got > 0 || !news.low);
	srq->limit_events += news.low;
	srq->broken |= got < 0;
	give_turn(news.turn);
	return got;
}

void weft_host_srq_leave(struct weft_qpc *core)
{
	struct weft_srq_news news;

	weft_srqc_leave(&to_host_qp(core)->srq->core, core, &news);
	give_turn(news.turn);
}

void host_srq_kick(struct host_srq *srq)
{
	srq->doorbells++;
	give_turn(weft_srqc_turn(&srq->core));
}

/* ---- QPs ---- */

static void init_queues(struct host_qp *qp, const struct host_qp_attr *a)
{
	struct weft_qpc *c = &qp->core;

	weft_ringq_init(&c->sq.q, a->sq_slots ? zalloc(weft_ring_size(a->sq_slots)) : NULL,
			a->sq_slots);
	c->sq.max_slots = a->max_slots ? a->max_slots : WEFT_SQ_MAX_SLOTS;
	if (a->sq_slots) {
		c->sq.copy = zalloc(weft_sq_copy_size(a->sq_slots, c->sq.max_slots));
		c->sq.info = zalloc(a->sq_slots * sizeof(*c->sq.info));
	}
	if (a->rq_slots)
		weft_rqq_init(&c->rq, zalloc(weft_ring_size(a->rq_slots)), a->rq_slots,
			      a->rq_sge ? a->rq_sge : 1);
}

struct host_qp *host_qp_new(struct host *h, const struct host_qp_attr *a)
{
	struct host_qp *qp = zalloc(sizeof(*qp));
	u32 i;

	for (i = 0; i < HOST_QPS && h->qp[i]; i++)
		;
	HOST_ASSERT(i < HOST_QPS);
	h->qp[i] = qp;
	qp->host = h;
	qp->scq = a->scq;
	qp->rcq = a->rcq;
	qp->srq = a->srq;
	qp->chunk_limit = -1;
	qp->core.id = 0x100 + ++h->nqp;
	qp->core.pd = a->pd;
	qp->core.recv_pd = a->srq && a->srq->pd ? a->srq->pd : a->pd;
	qp->core.kernel = a->kernel;
	qp->core.srq = a->srq;
	qp->core.srq_tells = !a->srq_silent;
	qp->core.sig_all = a->sig_all;
	qp->core.scq = &a->scq->core;
	qp->core.rcq = &a->rcq->core;
	init_queues(qp, a);
	weft_qpc_init(&qp->core);
	qp->core.by_hand = qp->core.confirms = a->confirms;
	if (a->confirms)
		qp->core.named = WEFT_VS_RTS;
	return qp;
}

void host_qp_free(struct host_qp *qp)
{
	u32 i;

	HOST_ASSERT(!qp->chunks);
	weft_region_end_run(&qp->core);
	weft_region_unbind_all(&qp->core);
	for (i = 0; i < HOST_QPS; i++)
		if (qp->host->qp[i] == qp)
			qp->host->qp[i] = NULL;
	free(qp->core.sq.q.ring);
	free(qp->core.sq.copy);
	free(qp->core.sq.info);
	free(qp->core.rq.q.ring);
	free(qp);
}

u8 *weft_host_chunk(struct weft_qpc *core)
{
	struct host_qp *qp = to_host_qp(core);

	if (qp->chunk_limit >= 0 && qp->chunks >= (u32)qp->chunk_limit)
		return NULL;
	qp->chunks++;
	return zalloc(WEFT_STAGE_CHUNK);
}

void weft_host_chunk_free(struct weft_qpc *core, u8 *chunk)
{
	struct host_qp *qp = to_host_qp(core);

	HOST_ASSERT(qp->chunks);
	qp->chunks--;
	free(chunk);
}

void weft_host_kick(struct weft_qpc *core)
{
	to_host_qp(core)->kicked = true;
	to_host_qp(core)->kicks++;
}

void weft_host_answer(struct weft_qpc *core)
{
	to_host_qp(core)->answers++;
	weft_host_kick(core);
}

void weft_host_event(struct weft_qpc *core, enum weft_event ev)
{
	struct host_qp *qp = to_host_qp(core);

	HOST_ASSERT(qp->nevents < HOST_EVENTS);
	qp->event[qp->nevents++] = ev;
}

u32 host_qp_count_events(const struct host_qp *qp, enum weft_event ev)
{
	u32 i, n = 0;

	for (i = 0; i < qp->nevents; i++)
		n += qp->event[i] == ev;
	return n;
}
