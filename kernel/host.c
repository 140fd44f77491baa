// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Implements core/host.h. All functions are called under the connection's socket lock or, without
 * a connection, under the QP's state_lock.
 */
#include <linux/cacheflush.h>
#include <linux/slab.h>

#include "core/atomic.h"
#include "core/place.h"
#include "tcp.h"
#include "trace.h"
#include "verbs.h"

static struct weft_qp *qp_of(struct weft_qpc *core)
{
	return container_of(core, struct weft_qp, core);
}

/* The core runs under its connection's lock, or has none. */
static struct weft_conn *conn_of_qp(struct weft_qp *qp)
{
	return rcu_dereference_protected(qp->conn, true);
}

/* ---- regions ---- */

struct weft_region *weft_host_region_find(struct weft_qpc *core, u32 stag)
{
	struct weft_mr *mr = weft_mr_find(qp_of(core)->dev, stag);

	return mr ? &mr->region : NULL;
}

static struct weft_mr *mr_of(struct weft_region *r)
{
	return container_of(r, struct weft_mr, region);
}

void weft_host_region_hold(struct weft_region *r, u32 n)
{
	refcount_add(n, &mr_of(r)->holders);
}

void weft_host_region_drop(struct weft_region *r)
{
	weft_mr_drop(mr_of(r));
}

u32 weft_host_region_holders(const struct weft_region *r)
{
	const struct weft_mr *mr = container_of(r, const struct weft_mr, region);

	/*
	 * Pairs with the release of weft_mr_drop(). The caller's later accesses depend on no branch
	 * here.
	 */
	return atomic_read_acquire(&mr->holders.refs);
}

void weft_host_try_again(struct weft_qpc *core)
{
	struct weft_conn *conn = conn_of_qp(qp_of(core));

	if (!conn)
		return;
	weft_count(conn, WEFT_CNT_REGION_WAITS, 1);
	weft_conn_try_again(conn);
}

bool weft_host_region_map(struct weft_region *r)
{
	struct weft_mr *mr = mr_of(r);

	/* It was not mapped again: keep its memory. */
	if (mr->mapped.nblocks) {
		swap(mr->pages, mr->mapped);
		mr->mapped.nblocks = 0;
	}
	if (!mr->pages.nblocks)
		return false;
	r->base = mr->ibmr.iova;
	r->len = mr->ibmr.length;
	return true;
}

bool weft_host_window_hold(struct weft_region *r)
{
	return atomic_inc_unless_negative(&mr_of(r)->windows);
}

void weft_host_window_drop(struct weft_region *r)
{
	atomic_dec(&mr_of(r)->windows);
}

static struct weft_pd *pd_of(struct weft_qpc *core)
{
	return to_weft_pd(qp_of(core)->ibqp.pd);
}

void weft_host_lock_windows(struct weft_qpc *core) __acquires(&pd_of(core)->windows_lock)
{
	spin_lock_bh(&pd_of(core)->windows_lock);
}

void weft_host_unlock_windows(struct weft_qpc *core) __releases(&pd_of(core)->windows_lock)
{
	spin_unlock_bh(&pd_of(core)->windows_lock);
}

bool weft_host_is_there(struct weft_region *r, u64 addr, u32 len)
{
	return true;
}

static struct page *page_of(const void *p)
{
	return is_vmalloc_addr(p) ? vmalloc_to_page(p) : virt_to_page(p);
}

/*
 * Programs may map the pages at other addresses, where caches need to know (cachetlb.rst). A piece
 * may have many pages.
 */
static void flush_pages(const void *p, u32 len)
{
	const void *end = p + len;

	if (!ARCH_IMPLEMENTS_FLUSH_DCACHE_PAGE)
		return;
	for (p = PTR_ALIGN_DOWN(p, PAGE_SIZE); p < end; p += PAGE_SIZE)
		flush_dcache_page(page_of(p));
}

/* As in weft_mr_piece(), the region of a PD has no weft_mr, and STag 0. */
static bool is_dmabuf(const struct weft_region *r)
{
	return r->stag && r->kind == WEFT_REGION_USER &&
	       container_of(r, const struct weft_mr, region)->dmabuf.buf;
}

/* A dmabuf may have no struct page. Its exporter flushes: weft reports the CPU's access. */
static void flush_region(const struct weft_region *r, const void *p, u32 len)
{
	if (ARCH_IMPLEMENTS_FLUSH_DCACHE_PAGE && !is_dmabuf(r))
		flush_pages(p, len);
}

void *weft_host_piece(struct weft_region *r, u64 addr, u32 len, u32 *got)
{
	void *p = weft_mr_piece(r, addr, len, got);

	/* The caller reads what a program may have written by another address. */
	flush_region(r, p, *got);
	return p;
}

bool weft_host_atomic(const struct weft_atomic_req *req, u64 *word, u64 *was)
{
	*was = weft_atomic_run(req, word);
	flush_pages(word, sizeof(*word));
	return true;
}

bool weft_host_place(struct weft_region *r, u64 addr, struct weft_cur *from, u32 len)
{
	weft_place_begin();
	while (len) {
		u32 n;
		void *p = weft_mr_piece(r, addr, len, &n);

		weft_place_piece(p, from, n, len - n);
		flush_region(r, p, n);
		addr += n;
		len -= n;
	}
	return true;
}

/* ---- receive entries and completions ---- */

int weft_host_srq_pop(struct weft_qpc *core, bool wait, struct weft_recv *recv)
{
	return weft_srq_pop(qp_of(core), wait, recv);
}

void weft_host_srq_leave(struct weft_qpc *core)
{
	weft_srq_leave(qp_of(core));
}

void weft_host_complete(struct weft_qpc *core, bool recv, const struct weft_cqe *cqe)
{
	struct weft_qp *qp = qp_of(core);

	weft_cq_complete(recv ? qp->rcq : qp->scq, qp, cqe);
}

/* ---- the connection ---- */

void weft_host_kick(struct weft_qpc *core)
{
	struct weft_qp *qp = qp_of(core);
	struct weft_conn *conn = conn_of_qp(qp);

	/* The core's caller has the lock, and checks the flag before it drops the lock. */
	if (conn)
		set_bit(WEFT_CF_PENDING, &conn->flags);
	else
		weft_conn_flush_later(qp);
}

/* QPs of the driver do not confirm: no acknowledgement Reads arrive. */
void weft_host_answer(struct weft_qpc *core)
{
	weft_host_kick(core);
}

u8 *weft_host_chunk(struct weft_qpc *core)
{
	struct weft_conn *conn = conn_of_qp(qp_of(core));
	struct mem_cgroup *before = weft_conn_pays(conn);
	u8 *chunk = kmalloc(WEFT_STAGE_CHUNK,
			    conn->sk->sk_allocation | __GFP_NOWARN | __GFP_ACCOUNT);

	weft_conn_paid(before);
	if (unlikely(!chunk)) {
		weft_count(conn, WEFT_CNT_RX_NO_MEMORY, 1);
		weft_conn_read_later(conn);
	}
	return chunk;
}

void weft_host_chunk_free(struct weft_qpc *core, u8 *chunk)
{
	kfree(chunk);
}

void weft_host_wake(struct weft_link *l)
{
	weft_conn_wake_worker(to_weft_conn(l), WEFT_CEV_WAKE);
}

/* Reclaim may have to write over this very connection. */
bool weft_host_lend_depths(struct weft_link *l, u32 ord, u32 irq_slots)
{
	const gfp_t gfp = GFP_NOIO | __GFP_ACCOUNT;
	struct weft_conn *conn = to_weft_conn(l);
	struct mem_cgroup *before;

	/* An initiator has had what it offered since it was made. */
	if (ord <= conn->orq_room && irq_slots <= conn->irq_room)
		return true;
	before = weft_conn_pays(conn);
	kfree(l->orq);
	kfree(l->irq);
	l->orq = ord ? kcalloc(ord, sizeof(*l->orq), gfp) : NULL;
	l->irq = kcalloc(irq_slots, sizeof(*l->irq), gfp);
	weft_conn_paid(before);
	conn->orq_room = l->orq ? ord : 0;
	conn->irq_room = l->irq ? irq_slots : 0;
	return conn->irq_room && (conn->orq_room || !ord);
}

void weft_host_tcp_tail(struct weft_link *l, struct weft_tcp_tail *tail)
{
	struct sock *sk = to_weft_conn(l)->sk;

	weft_tcp_next_segment(sk, WEFT_BATCH_SEG_MIN, &tail->mss, &tail->seg_off);
	tail->room = weft_tcp_room(sk);
}

s32 weft_host_send(struct weft_link *l, const struct weft_iov *iov, u32 niov, u32 len, u32 flags)
{
	return weft_conn_send(to_weft_conn(l), iov, niov, len, flags);
}

/*
 * write_space will be called if an acknowledgement is to make room. If nothing is in flight, TCP
 * ran out of memory: the worker retries soon.
 */
void weft_host_await_room(struct weft_link *l)
{
	struct weft_conn *conn = to_weft_conn(l);

	conn->full = true;
	set_bit(SOCK_NOSPACE, &conn->sk->sk_socket->flags);
	if (weft_tcp_is_drained(conn->sk))
		weft_conn_try_again(conn);
}

void *weft_host_lend_batch(struct weft_link *l, u32 *size)
{
	return weft_conn_lend_batch(to_weft_conn(l), size);
}

void *weft_host_lend_rest(struct weft_link *l, u32 *size)
{
	return weft_conn_lend_rest(to_weft_conn(l), size);
}

void weft_host_reclaim_batch(struct weft_link *l, void *mem, u32 size)
{
	weft_conn_reclaim_batch(mem, size);
}

/* ---- events ---- */

/* @first: WEFT_CNT_TERM_IN or WEFT_CNT_TERM_OUT. A peer may say anything. */
static void count_term(struct weft_qp *qp, u32 first, const struct weft_term *t)
{
	enum weft_err e = weft_err_of_term(t->layer, t->etype, t->code);
	u32 nth = e == WEFT_OK ? 0 : e - WEFT_E_MPA_CRC + 1;

	atomic64_inc(&qp->dev->terms[first - WEFT_CNT_TERM_IN + nth]);
}

void weft_host_event(struct weft_qpc *core, enum weft_event ev)
{
	struct weft_qp *qp = qp_of(core);

	trace_weft_qp(core, ev);
	switch (ev) {
	case WEFT_EV_TERM_SENT:
		count_term(qp, WEFT_CNT_TERM_OUT, &core->term_out);
		if (core->error == WEFT_E_MPA_CRC)
			weft_count(conn_of_qp(qp), WEFT_CNT_CRC_ERRORS, 1);
		break;
	case WEFT_EV_TERM_RECEIVED:
		count_term(qp, WEFT_CNT_TERM_IN, &core->term_in);
		break;
	case WEFT_EV_FLUSHED:
		/* All transitions to error end here, and only here. */
		weft_qp_raise_flushed(qp);
		if (conn_of_qp(qp))
			weft_conn_wake_worker(conn_of_qp(qp), WEFT_CEV_WAKE);
		break;
	case WEFT_EV_LOCAL_ERROR:
	case WEFT_EV_RTS:
		break;
	}
}

