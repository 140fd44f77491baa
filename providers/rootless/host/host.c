// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What the core needs of its host (core/host.h). The caller holds the connection's lock or, without
 * a connection, the QP's.
 */
#include <stdlib.h>
#include <sys/epoll.h>

#include <infiniband/verbs.h>

#include "judge/adverse.h"
#include "place_late.h"
#include "judge/judge.h"
#include "kernel/core/atomic.h"
#include "process/guard.h"
#include "process/pool.h"
#include "process/stats.h"
#include "conn.h"
#include "qp.h"

static struct rl_conn *conn_of_link(struct weft_link *l)
{
	return container_of(l, struct rl_conn, link);
}

/* ---- regions ---- */

struct weft_region *weft_host_region_find(struct weft_qpc *core, u32 stag)
{
	return rl_mr_find(stag);
}

void weft_host_region_hold(struct weft_region *r, u32 n)
{
	rl_mr_hold(r, n);
}

void weft_host_region_drop(struct weft_region *r)
{
	rl_mr_drop(r);
}

/* Only kernel consumers have fast regions. */
u32 weft_host_region_holders(const struct weft_region *r)
{
	return 0;
}

void weft_host_try_again(struct weft_qpc *core)
{
	weft_host_kick(core);
}

bool weft_host_region_map(struct weft_region *r)
{
	return false;
}

void weft_host_lock_windows(struct weft_qpc *core)
{
	rl_mr_lock_windows();
}

void weft_host_unlock_windows(struct weft_qpc *core)
{
	rl_mr_unlock_windows();
}

bool weft_host_window_hold(struct weft_region *r)
{
	return rl_mr_hold_for_window(r);
}

void weft_host_window_drop(struct weft_region *r)
{
	rl_mr_drop_for_window(r);
}

bool weft_host_is_there(struct weft_region *r, u64 addr, u32 len)
{
	return !len || rl_guard_readable(rl_mr_address(r, addr), len);
}

void *weft_host_piece(struct weft_region *r, u64 addr, u32 len, u32 *got)
{
	*got = len;
	return rl_mr_address(r, addr);
}

static bool place_pieces(u8 *to, struct weft_cur *from, u32 len)
{
	while (len) {
		u32 n;
		const u8 *p = weft_cur_piece(from, len, &n);

		if (!rl_guard_copy(to, p, n))
			return false;
		to += n;
		len -= n;
	}
	return true;
}

/* Gathered first, for an order of octets that is not theirs. */
static bool place_adversely(u8 *to, struct weft_cur *from, u32 len)
{
	u8 *all = malloc(len);
	u32 at, n;
	bool ok;

	if (!all)
		return place_pieces(to, from, len);
	for (at = 0; at < len; at += n) {
		const u8 *p = weft_cur_piece(from, len - at, &n);

		memcpy(all + at, p, n);
	}
	ok = rl_adverse_place(to, all, len);
	free(all);
	return ok;
}

/* Apart from the usual way, which has one test for it. */
static noinline bool place_apart(struct weft_region *r, u8 *to, struct weft_cur *from, u32 len)
{
	bool ok;

	if (rl_is_adverse && rl_place_late(r, to, from, len))
		return true;
	if (rl_judge_is_on)
		rl_judge_placing(to, len, true);
	ok = rl_is_adverse ? place_adversely(to, from, len) : place_pieces(to, from, len);
	if (rl_judge_is_on)
		rl_judge_placing(to, len, false);
	return ok;
}

bool weft_host_place(struct weft_region *r, u64 addr, struct weft_cur *from, u32 len)
{
	u8 *to = rl_mr_address(r, addr);

	if (unlikely(rl_place_apart))
		return place_apart(r, to, from, len);
	return place_pieces(to, from, len);
}

struct atomic_run {
	const struct weft_atomic_req *req;
	u64 *word, *was;
};

static void run_atomic(void *arg)
{
	const struct atomic_run *run = arg;

	*run->was = weft_atomic_run(run->req, run->word);
}

bool weft_host_atomic(const struct weft_atomic_req *req, u64 *word, u64 *was)
{
	struct atomic_run run = { req, word, was };
	bool ok;

	if (unlikely(rl_judge_is_on)) {
		rl_place_late_flush();
		rl_judge_placing(word, sizeof(*word), true);
	}
	ok = rl_guard_run(run_atomic, &run);
	if (unlikely(rl_judge_is_on))
		rl_judge_placing(word, sizeof(*word), false);
	return ok;
}

/* ---- receive entries and completions ---- */

int weft_host_srq_pop(struct weft_qpc *core, bool wait, struct weft_recv *recv)
{
	struct rl_qp *qp = rl_qp_of(core);

	return qp->consumer->pop(qp, wait, recv);
}

void weft_host_srq_leave(struct weft_qpc *core)
{
	rl_srq_leave(rl_qp_of(core));
}

void weft_host_complete(struct weft_qpc *core, bool recv, const struct weft_cqe *cqe)
{
	struct rl_qp *qp = rl_qp_of(core);

	qp->consumer->complete(qp, recv, cqe);
}

/* ---- the connection ---- */

/* The core's caller checks this before it drops the lock. */
void weft_host_kick(struct weft_qpc *core)
{
	struct rl_conn *c = rl_qp_of(core)->conn;

	if (c)
		c->tx_due = true;
}

void weft_host_answer(struct weft_qpc *core)
{
	struct rl_conn *c = rl_qp_of(core)->conn;

	if (c)
		rl_conn_answer(c);
}

u8 *weft_host_chunk(struct weft_qpc *core)
{
	return malloc(WEFT_STAGE_CHUNK);
}

void weft_host_chunk_free(struct weft_qpc *core, u8 *chunk)
{
	free(chunk);
}

void weft_host_wake(struct weft_link *l)
{
	conn_of_link(l)->step_due = true;
}

bool weft_host_lend_depths(struct weft_link *l, u32 ord, u32 irq_slots)
{
	if (ord)
		l->orq = calloc(ord, sizeof(*l->orq));
	l->irq = calloc(irq_slots, sizeof(*l->irq));
	return l->irq && (l->orq || !ord);
}

/*
 * Linux does not report how full the last segment in TCP's queue is. An FPDU is no longer than a
 * segment; its alignment to segments is only a statistic. TCP's room is known after a send.
 *
 * One large segment is enough for a call: on lo, calls of one segment moved 64 KB messages 1.45
 * times as fast as calls of three. A stream's message of that size goes in one call: cut to
 * segments it took two, and 1.5 times the CPU time.
 */
#define LARGE_SEGMENT 16384

void weft_host_tcp_tail(struct weft_link *l, struct weft_tcp_tail *tail)
{
	struct rl_conn *c = conn_of_link(l);
	u32 mss = rl_conn_mss(c);
	bool large = mss > LARGE_SEGMENT || l->cfg.large_fpdus;

	*tail = (struct weft_tcp_tail){
		.mss = mss,
		.seg_off = large && !c->ulp->one_call ? 0 : WEFT_SEG_UNKNOWN,
		.room = c->full ? 0 : RL_POOL_BLOCK * 4,
	};
}

s32 weft_host_send(struct weft_link *l, const struct weft_iov *iov, u32 niov, u32 len, u32 flags)
{
	return rl_conn_send(conn_of_link(l), iov, niov, flags);
}

/*
 * EPOLLOUT is requested anew each time (change_events()): if TCP lacked memory for a moment it took
 * a part and is not full, and an earlier request would bring no event.
 */
void weft_host_await_room(struct weft_link *l)
{
	struct rl_conn *c = conn_of_link(l);

	c->full = true;
	c->events &= ~EPOLLOUT;
	if (!c->retry_ms)
		return;
	/* The cable has a clock of its own. */
	if (c->cable)
		c->full = false;
	else
		c->linger_until = rl_now_ms() + c->retry_ms;
}

void *weft_host_lend_batch(struct weft_link *l, u32 *size)
{
	void *mem = rl_pool_take();

	*size = RL_POOL_BLOCK;
	/* The progress thread retries soon. */
	if (!mem)
		conn_of_link(l)->tx_due = true;
	return mem;
}

void *weft_host_lend_rest(struct weft_link *l, u32 *size)
{
	return malloc(*size);
}

/* A rest is smaller than a block. */
void weft_host_reclaim_batch(struct weft_link *l, void *mem, u32 size)
{
	if (size == RL_POOL_BLOCK)
		rl_pool_give(mem);
	else
		free(mem);
}

/* ---- events ---- */

/* If the core has found a fault. */
static void raise_error_event(struct rl_qp *qp)
{
	static const u32 events[] = {
		[WEFT_FAULT_ACCESS]	= IBV_EVENT_QP_ACCESS_ERR,
		[WEFT_FAULT_REQUEST]	= IBV_EVENT_QP_REQ_ERR,
		[WEFT_FAULT_FATAL]	= IBV_EVENT_QP_FATAL,
	};
	enum weft_qp_fault fault = weft_qpc_fault(&qp->core);

	if (fault != WEFT_FAULT_NONE)
		qp->consumer->fault(qp, events[fault]);
}

void weft_host_event(struct weft_qpc *core, enum weft_event ev)
{
	struct rl_qp *qp = rl_qp_of(core);

	switch (ev) {
	case WEFT_EV_TERM_SENT:
		rl_stats_count_term(RL_TERM_OUT, &core->term_out);
		break;
	case WEFT_EV_TERM_RECEIVED:
		rl_stats_count_term(RL_TERM_IN, &core->term_in);
		break;
	case WEFT_EV_FLUSHED:
		/* Every way into error ends here. */
		raise_error_event(qp);
		if (qp->srq)
			rl_context_report(qp->ctx, &qp->o, IBV_EVENT_QP_LAST_WQE_REACHED,
				       &qp->async_reported);
		if (qp->conn)
			qp->conn->step_due = true;
		break;
	case WEFT_EV_LOCAL_ERROR:
	case WEFT_EV_RTS:
		break;
	}
}
