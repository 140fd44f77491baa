// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The send run: batch after batch, each in one call of TCP, until there is nothing to
 * send, TCP is full, or others are to have the lock.
 */
#include "qp.h"
#include "send.h"

/* What a call of TCP counts for, besides its octets. */
#define CALL 4096

static bool may_fill(const struct weft_link *l)
{
	return l->qp && l->mode == WEFT_MODE_FULL && !l->broken;
}

static bool get_memory(struct weft_link *l)
{
	u32 size;
	void *mem;

	if (l->batch.buf)
		return true;
	mem = weft_host_lend_batch(l, &size);
	if (mem)
		weft_batch_lend(&l->batch, mem, size);
	return mem;
}

/*
 * What is left of a batch may wait as long as the peer likes, and a batch's memory is large: it
 * moves to memory of its size, unless that is not much smaller.
 */
static void keep_rest(struct weft_link *l)
{
	struct weft_batch *b = &l->batch;
	u32 asked = weft_batch_rest_size(b), lent = b->lent, size = asked;
	void *mem;

	if (!asked)
		return;
	mem = weft_host_lend_rest(l, &size);
	if (mem)
		weft_host_reclaim_batch(l, weft_batch_move(b, mem, size, asked), lent);
}

static void give_memory_back(struct weft_link *l)
{
	void *mem = weft_batch_reclaim(&l->batch, false);

	if (mem)
		weft_host_reclaim_batch(l, mem, l->batch.lent);
	else if (l->batch.buf)
		keep_rest(l);
}

/* TCP has no connection any more: unsent requests fail, once TCP's received octets are read. */
static void refused(struct weft_link *l)
{
	l->broken = true;
	weft_host_wake(l);
}

/*
 * What waits in the batch goes to TCP. @more: this run sends on, and what does not fill a
 * large skb waits for that. True: TCP has taken all of it, and work that was in it completes.
 */
static bool hand_over(struct weft_link *l, bool more)
{
	struct weft_batch *b = &l->batch;
	u32 len = b->end - b->off, flags = b->eor ? WEFT_SEND_EOR : more ? WEFT_SEND_MORE : 0;
	const struct weft_iov *iov;
	u32 niov;
	s32 n;

	if (!len)
		return true;
	iov = weft_batch_list(b, &niov);
	if (b->fresh)
		flags |= WEFT_SEND_FRESH;
	b->fresh = false;
	n = weft_host_send(l, iov, niov, len, flags);
	weft_batch_taken(b, l->qp, max_t(s32, n, 0));
	if (n < 0)
		refused(l);
	else if (!weft_batch_is_sent(b))
		weft_host_await_room(l);
	else if (l->qp)
		weft_tx_sent(l->qp);
	return n >= 0 && weft_batch_is_sent(b);
}

/*
 * Will the next batch of this run follow the one in hand? Only if TCP seems to have
 * room for it: what waits for the next call is sent by that. If TCP then refuses, for
 * want of memory, the acknowledgement of a whole segment sends it: so there is one.
 */
static bool goes_on(const struct weft_link *l, u32 left, u32 room)
{
	u32 len = l->batch.end;

	return weft_tx_amid(l->qp) && len >= l->batch.mss && len + CALL < left &&
	       2 * len < room;
}

/*
 * RFC 5044 §3, §5.1: a sender SHOULD limit FPDUs to a segment, for receivers that place each
 * segment by itself, and MAY send up to 64768 octets. Those are cut as if a run of segments were
 * one; where little of a batch's memory is left, one ends earlier.
 */
static void begin_batch(struct weft_link *l, const struct weft_tcp_tail *tail)
{
	u32 cut = tail->mss;

	if (l->cfg.large_fpdus && cut < WEFT_LARGE_FPDU)
		cut *= WEFT_LARGE_FPDU / cut;
	weft_batch_begin(&l->batch, cut, tail->seg_off);
}

/* One batch of new FPDUs, to TCP; the run may send *@left octets. True: another may follow. */
static bool send_batch(struct weft_link *l, u32 *left)
{
	struct weft_batch *b = &l->batch;
	struct weft_tcp_tail tail;
	enum weft_tx_result r;
	bool on, idle;

	weft_host_tcp_tail(l, &tail);
	if (!tail.room) {
		weft_host_await_room(l);
		return false;
	}
	if (!get_memory(l))
		return false;
	begin_batch(l, &tail);
	/* TCP takes a segment whole; a run ends with a whole FPDU. */
	weft_batch_limit(b, max_t(u32, tail.room, tail.mss));
	weft_batch_limit(b, max_t(u32, *left, b->mss));
	r = weft_batch_fill(b, l->qp);
	if (r == WEFT_TX_FIN)
		l->fin_due = true;
	if (!b->end)
		return false;
	idle = r == WEFT_TX_IDLE && weft_tx_is_idle(l->qp);
	on = hand_over(l, goes_on(l, *left, tail.room));
	*left -= min_t(u32, b->end + CALL, *left);
	return on && !idle;
}

/* Everything is sent: wakes the host once, and weft_link_step() closes. */
static void tell_done(struct weft_link *l)
{
	/* Before start-up is over there is no QP either, and more to say. */
	bool said = l->qp ? l->fin_due || l->qp->state == WEFT_QPS_ERROR :
			    l->mode == WEFT_MODE_DISCARD;

	if (!said || l->told || !weft_send_is_done(l))
		return;
	l->told = true;
	weft_host_wake(l);
}

/* Apart, so that its instructions can be counted: tests/bench/instructions.sh. */
noinline void weft_send_run(struct weft_link *l, u32 most)
{
	u32 left = most;
	bool on;

	if (l->qp) {
		if (l->qp->sq.q.idx != l->qp->sq.next)
			weft_sq_reap(l->qp);
		if (weft_qpc_flush(l->qp))
			weft_host_kick(l->qp);
		/* Other QPs may wait for it, whether or not TCP has room for the next FPDU. */
		weft_region_has_ended(l->qp, &l->qp->tx_ends);
	}
	on = !l->broken && (weft_batch_is_sent(&l->batch) || hand_over(l, false));
	/* A rest had memory of its own size: too little for a batch. */
	if (on && l->batch.buf)
		give_memory_back(l);
	while (on && may_fill(l) && left)
		on = send_batch(l, &left);
	if (on && may_fill(l))
		weft_host_kick(l->qp);
	give_memory_back(l);
	tell_done(l);
}

void weft_send_last_words(struct weft_link *l)
{
	struct weft_tcp_tail tail;

	if (!may_fill(l) || !get_memory(l))
		return;
	if (weft_batch_is_sent(&l->batch)) {
		weft_host_tcp_tail(l, &tail);
		begin_batch(l, &tail);
	}
	if (weft_batch_append_terminate(&l->batch, l->qp))
		hand_over(l, false);
	give_memory_back(l);
}

static bool owes_answers_alone(const struct weft_qpc *qp)
{
	u32 i;

	for (i = 0; i < qp->irq_count; i++) {
		const struct weft_irq_entry *e = &qp->irq[(qp->irq_head + i) % qp->irq_slots];

		if (e->atomic || e->read.size)
			return false;
	}
	return i && qp->tx_kind == WEFT_TXK_NONE;
}

void weft_send_answers(struct weft_link *l)
{
	struct weft_qpc *qp = l->qp;
	bool held = qp->sq_held;

	if (!qp->ack_reads_max || !owes_answers_alone(qp))
		return;
	qp->sq_held = true;
	weft_send_run(l, WEFT_SLICE);
	qp->sq_held = held;
}

void weft_send_break_off(struct weft_link *l)
{
	weft_batch_break_off(&l->batch, l->qp);
	l->broken = true;
	if (l->qp)
		weft_qpc_fail(l->qp, WEFT_E_RDMAP_LOCAL, NULL);
	give_memory_back(l);
	weft_host_wake(l);
}
