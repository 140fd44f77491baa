// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "qp.h"
#include "shape.h"

static const enum weft_err denial_ddp[] = {
	[WEFT_GRANTED]		= WEFT_OK,
	[WEFT_DENIED_STAG]	= WEFT_E_DDP_STAG,
	[WEFT_DENIED_ASSOC]	= WEFT_E_DDP_ASSOC,
	/* RFC 5041 has no code for rights: RDMAP's, as RNICs in the field do. */
	[WEFT_DENIED_ACCESS]	= WEFT_E_RDMAP_ACCESS,
	[WEFT_DENIED_WRAP]	= WEFT_E_DDP_WRAP,
	[WEFT_DENIED_BOUNDS]	= WEFT_E_DDP_BOUNDS,
	[WEFT_DENIED_GONE]	= WEFT_E_RDMAP_STREAM,
};

static const enum weft_err denial_rdmap[] = {
	[WEFT_GRANTED]		= WEFT_OK,
	[WEFT_DENIED_STAG]	= WEFT_E_RDMAP_STAG,
	[WEFT_DENIED_ASSOC]	= WEFT_E_RDMAP_ASSOC,
	[WEFT_DENIED_ACCESS]	= WEFT_E_RDMAP_ACCESS,
	[WEFT_DENIED_WRAP]	= WEFT_E_RDMAP_WRAP,
	[WEFT_DENIED_BOUNDS]	= WEFT_E_RDMAP_BOUNDS,
	[WEFT_DENIED_GONE]	= WEFT_E_RDMAP_STREAM,
};

enum weft_err weft_denial_ddp(enum weft_denial d)
{
	return denial_ddp[d];
}

enum weft_err weft_denial_rdmap(enum weft_denial d)
{
	return denial_rdmap[d];
}

/* Ready for a connection: RFC 5041 §4.3, MSNs start at 1. */
static void start_over(struct weft_qpc *qp)
{
	WRITE_ONCE(qp->state, WEFT_QPS_IDLE);
	WRITE_ONCE(qp->st, NULL);
	qp->error = WEFT_OK;
	qp->tx_kind = WEFT_TXK_NONE;
	qp->tx_unsent = false;
	qp->tx_sq_turn = false;
	qp->orq_head = qp->orq_count = 0;
	qp->ack_reads_max = qp->ack_reads_out = 0;
	qp->unacked = qp->unacked_len = 0;
	qp->asides = 0;
	qp->ack_pending = false;
	qp->irq_head = qp->irq_count = 0;
	qp->rtr_out = 0;
	qp->rtr_await = qp->rtr_read_out = false;
	qp->msn_send = qp->msn_read = qp->msn_atomic = 1;
	qp->msn_in_send = qp->msn_in_read = qp->msn_in_atomic = 1;
	qp->tx_second = qp->tx_unsent_resp = false;
	qp->write_len = 0;
	qp->write_over = qp->imm_held = false;
	qp->peer_fin = qp->fin_out = false;
	qp->rx_seen = qp->recv_active = false;
	qp->patient = qp->rx_waits = qp->rx_overdue = false;
	qp->term_received = qp->flushed_event = false;
	qp->sq.failed = false;
	qp->itself = false;
}

void weft_qpc_init(struct weft_qpc *qp)
{
	start_over(qp);
	qp->recv_ahead = 0;
	/* As verbs have it of an RNIC, whose connection needs no more of them. */
	qp->named = WEFT_VS_INIT;
	qp->by_hand = qp->confirms = qp->in_order = qp->sq_held = false;
	qp->denied = 0;
	qp->sq.max_wqes = weft_shape_sq_wqes(qp->sq.q.slots, qp->sq.max_slots);
	weft_ringq_sleep(&qp->sq.q);
}

void weft_qpc_start(struct weft_qpc *qp, struct weft_stream *st, u32 ord,
		    struct weft_orq_entry *orq, u32 ird, struct weft_irq_entry *irq,
		    u32 irq_slots)
{
	start_over(qp);
	WRITE_ONCE(qp->st, st);
	if (qp->confirms)
		qp->ack_reads_max = min_t(u32, ord, WEFT_ACK_READS);
	WRITE_ONCE(qp->ord, ord - qp->ack_reads_max);
	qp->orq = orq;
	qp->orq_slots = ord;
	WRITE_ONCE(qp->ird, ird);
	qp->irq = irq;
	qp->irq_slots = irq_slots;
	if (st->agreed.p2p && st->initiator)
		qp->rtr_out = st->agreed.rtr;
	qp->rtr_await = st->agreed.p2p && !st->initiator;
	WRITE_ONCE(qp->state, WEFT_QPS_RTS);
}

void weft_qpc_close(struct weft_qpc *qp)
{
	if (qp->state != WEFT_QPS_RTS)
		return;
	WRITE_ONCE(qp->state, WEFT_QPS_CLOSING);
	weft_host_kick(qp);
}

/* Begins to complete everything posted; says once that this has happened. */
static void enter_flushed(struct weft_qpc *qp, enum weft_qp_state state)
{
	WRITE_ONCE(qp->state, state);
	qp->tx_kind = WEFT_TXK_NONE;
	qp->orq_count = qp->ack_reads_out = 0;
	qp->irq_count = 0;
	if (qp->st)
		weft_stream_stop(qp->st);
	weft_region_forget_ends(qp);
	weft_rq_wait_over(qp);
	if (weft_qpc_flush(qp))
		weft_host_kick(qp);
	if (!qp->flushed_event) {
		qp->flushed_event = true;
		weft_host_event(qp, WEFT_EV_FLUSHED);
	}
}

bool weft_qpc_flush(struct weft_qpc *qp)
{
	bool more;

	if (qp->state != WEFT_QPS_ERROR && qp->state != WEFT_QPS_TERM)
		return false;
	/* First: what is posted before the user's sight of the flag is found from here on. */
	weft_ringq_sleep(&qp->sq.q);
	if (!qp->srq && qp->rq.q.slots)
		weft_ringq_sleep(&qp->rq.q);
	more = weft_sq_flush(qp, WEFT_FLUSH_PIECE);
	return weft_rq_flush(qp, WEFT_FLUSH_PIECE) || more;
}

/* What a Terminate means for the Read whose Request it is about; SUCCESS: it is about none. */
static u8 read_status(const struct weft_term *t)
{
	if (weft_qpc_peer_has_failed(t))
		return WEFT_WC_RETRY_EXC_ERR;
	if (t->layer == 0 && t->etype == 1)
		return WEFT_WC_REM_ACCESS_ERR;
	if (t->layer == 0 && t->etype == 2)
		return WEFT_WC_REM_OP_ERR;
	/* DDP found no room for the Request, or its header wrong. */
	if (t->layer == 1 && t->etype == 2)
		return WEFT_WC_REM_INV_REQ_ERR;
	return WEFT_WC_SUCCESS;
}

static bool names_no_message(const struct weft_term *t)
{
	return !t->d || weft_qpc_peer_has_failed(t);
}

/*
 * The outstanding Read that a Terminate is about: that with the MSN copied. It need not be the
 * oldest, whose Response may have been on its way. Without a header RDMAP means the oldest.
 */
static const struct weft_orq_entry *blamed_read(const struct weft_qpc *qp)
{
	const struct weft_term *t = &qp->term_in;
	struct weft_ddp_hdr h;
	u32 i;

	if (names_no_message(t))
		return qp->orq_count && t->layer == 0 ? &qp->orq[qp->orq_head] : NULL;
	weft_ddp_read(t->hdr, &h);
	if (h.tagged || h.qn != WEFT_QN_READ_REQUEST)
		return NULL;
	for (i = 0; i < qp->orq_count; i++) {
		const struct weft_orq_entry *e = &qp->orq[(qp->orq_head + i) % qp->orq_slots];

		if (e->msn == h.msn)
			return e;
	}
	return NULL;
}

/* RFC 7306 has no code for it; InfiniBand's responder looks at this first. */
static bool is_unaligned_atomic(const struct weft_sq_wqe *w)
{
	return weft_wqe_is_atomic(w) && w->remote_addr % sizeof(u64);
}

static void blame_read(struct weft_qpc *qp)
{
	u8 status = read_status(&qp->term_in);
	const struct weft_orq_entry *e = blamed_read(qp);

	if (!e || e->ask || status == WEFT_WC_SUCCESS)
		return;
	if (is_unaligned_atomic(weft_sq_wqe_at(&qp->sq, e->wqe)))
		status = WEFT_WC_REM_INV_REQ_ERR;
	weft_sq_confirm(qp, e->wqe);
	weft_sq_spoil(qp, e->wqe, status);
}

static bool is_said_by(const struct weft_term *t, enum weft_err e)
{
	const struct weft_term_code *c = weft_err_term(e);

	return t->layer == c->layer && t->etype == c->etype && t->code == c->code;
}

/* What it means for a Write or Send, as InfiniBand has it; SUCCESS: it is about none. */
static u8 sent_status(const struct weft_term *t)
{
	/* On InfiniBand it would not answer. */
	if (weft_qpc_peer_has_failed(t))
		return WEFT_WC_RETRY_EXC_ERR;
	/* Its own trouble: a receive that cannot be filled, memory that is gone. */
	if ((t->layer < 2 && t->etype == 0) || is_said_by(t, WEFT_E_RDMAP_STREAM) ||
	    is_said_by(t, WEFT_E_RDMAP_GLOBAL))
		return WEFT_WC_REM_OP_ERR;
	if (t->layer == 0)
		return t->etype == 1 ? WEFT_WC_REM_ACCESS_ERR : WEFT_WC_REM_INV_REQ_ERR;
	if (t->layer > 1)
		return WEFT_WC_SUCCESS;
	if (t->etype == 1)
		return WEFT_WC_REM_ACCESS_ERR;
	return is_said_by(t, WEFT_E_DDP_NO_BUFFER) ? WEFT_WC_RNR_RETRY_EXC_ERR :
						     WEFT_WC_REM_INV_REQ_ERR;
}

/* Is it about this one, of which something has been sent? Without a header, about the oldest. */
static bool is_blamed(const struct weft_qpc *qp, u32 pos)
{
	const struct weft_term *t = &qp->term_in;
	const struct weft_wqe_info *info = weft_sq_info_at(&qp->sq, pos);
	const struct weft_sq_wqe *w = weft_sq_wqe_at(&qp->sq, pos);
	struct weft_ddp_hdr h;

	/* A Read or atomic that the peer names has been found before (blame_read()). */
	if (info->state == WEFT_WQE_AWAIT)
		return names_no_message(t) && t->etype == 0;
	if (info->state != WEFT_WQE_SENT && info->state != WEFT_WQE_QUEUED)
		return false;
	if (names_no_message(t))
		return true;
	weft_ddp_read(t->hdr, &h);
	if (h.tagged)
		return (w->opcode == WEFT_WR_WRITE || w->opcode == WEFT_WR_WRITE_IMM) &&
		       w->rkey == h.stag && h.to - w->remote_addr < info->len;
	return h.qn == WEFT_QN_SEND && info->msn == h.msn;
}

/* The peer had taken in all before it. */
static void blame_sent(struct weft_qpc *qp)
{
	u8 status = sent_status(&qp->term_in);
	const struct weft_sqq *sq = &qp->sq;
	u32 end = sq->next, pos;

	if (qp->tx_kind == WEFT_TXK_WQE)
		end += weft_sq_info_at(sq, end)->nslots;
	for (pos = sq->q.idx; pos != end && !is_blamed(qp, pos);)
		pos += weft_sq_info_at(sq, pos)->nslots;
	if (pos == end || status == WEFT_WC_SUCCESS)
		return;
	weft_sq_confirm(qp, pos);
	weft_sq_spoil(qp, pos, status);
}

static void blame(struct weft_qpc *qp)
{
	blame_read(qp);
	if (qp->ack_reads_max)
		blame_sent(qp);
}

/* Some work request has failed for a reason of its own. */
static bool has_verdict(const struct weft_sqq *sq)
{
	u32 pos;

	for (pos = sq->q.idx; pos != sq->next; pos += weft_sq_info_at(sq, pos)->nslots)
		if (weft_sq_info_at(sq, pos)->status != WEFT_WC_SUCCESS)
			return true;
	return false;
}

/* The peer, which this is, too, hears what the Terminate will say, before all is flushed. */
static void hear_oneself(struct weft_qpc *qp)
{
	if (has_verdict(&qp->sq))
		return;
	qp->term_in = qp->term_out;
	blame(qp);
}

void weft_qpc_fail_raw(struct weft_qpc *qp, enum weft_err e, const u8 *hdr, u32 hdr_len,
		       u16 seg_len)
{
	if (qp->state != WEFT_QPS_RTS && qp->state != WEFT_QPS_CLOSING)
		return;
	qp->error = e;
	if (e == WEFT_E_MPA_STARTUP) {
		enter_flushed(qp, WEFT_QPS_ERROR);
		return;
	}
	weft_term_make(&qp->term_out, e, hdr, hdr_len, seg_len);
	if (unlikely(qp->itself))
		hear_oneself(qp);
	weft_host_event(qp, WEFT_EV_TERM_SENT);
	/* Behind our FIN there is no way to say it. */
	enter_flushed(qp, qp->fin_out ? WEFT_QPS_ERROR : WEFT_QPS_TERM);
	weft_host_kick(qp);
}

void weft_qpc_fail(struct weft_qpc *qp, enum weft_err e, const struct weft_fpdu *fpdu)
{
	if (fpdu && fpdu->raw_len)
		weft_qpc_fail_raw(qp, e, fpdu->raw, fpdu->raw_len, fpdu->ulpdu_len);
	else
		weft_qpc_fail_raw(qp, e, NULL, 0, 0);
}

static void break_by(struct weft_qpc *qp, enum weft_err e)
{
	if (qp->state != WEFT_QPS_IDLE) {
		weft_qpc_fail(qp, e, NULL);
		return;
	}
	qp->error = e;
	enter_flushed(qp, WEFT_QPS_ERROR);
}

void weft_qpc_break(struct weft_qpc *qp)
{
	break_by(qp, WEFT_E_RDMAP_LOCAL);
}

void weft_qpc_terminated(struct weft_qpc *qp)
{
	if (qp->state != WEFT_QPS_RTS && qp->state != WEFT_QPS_CLOSING)
		return;
	qp->term_received = true;
	blame(qp);
	weft_host_event(qp, WEFT_EV_TERM_RECEIVED);
	enter_flushed(qp, WEFT_QPS_ERROR);
	weft_host_kick(qp);
}

void weft_qpc_error(struct weft_qpc *qp)
{
	if (qp->state == WEFT_QPS_ERROR || qp->state == WEFT_QPS_TERM)
		return;
	enter_flushed(qp, WEFT_QPS_ERROR);
}

void weft_qpc_tell_peer_of_error(struct weft_qpc *qp)
{
	static const u8 none[WEFT_DDP_UNTAGGED_LEN];

	if (qp->state != WEFT_QPS_ERROR || qp->term_received)
		return;
	qp->fin_out = false;
	/* No segment has such a header, or no octets: weft_qpc_peer_has_failed(). */
	weft_term_make(&qp->term_out, WEFT_E_RDMAP_STREAM, none, sizeof(none), 0);
	weft_host_event(qp, WEFT_EV_TERM_SENT);
	WRITE_ONCE(qp->state, WEFT_QPS_TERM);
}

/* ---- by hand ---- */

void weft_qpc_unplug(struct weft_qpc *qp)
{
	WRITE_ONCE(qp->state, WEFT_QPS_IDLE);
	qp->tx_kind = WEFT_TXK_NONE;
	qp->orq_count = qp->ack_reads_out = 0;
	qp->irq_count = 0;
	weft_stream_stop(qp->st);
	weft_rq_wait_over(qp);
	/* Its queue has it no more: it is flushed with the others. */
	if (qp->recv_active)
		qp->recv_ahead = 1;
	qp->recv_active = false;
	weft_ringq_sleep(&qp->sq.q);
}

bool weft_qpc_has_sends(const struct weft_qpc *qp)
{
	return qp->sq.q.idx != qp->sq.pulled || weft_ringq_filled(&qp->sq.q, qp->sq.pulled);
}

/* Only what is answered has a wrong response. */
static bool may_end_by(const struct weft_sq_wqe *w, u8 status)
{
	return status != WEFT_WC_BAD_RESP_ERR || w->opcode == WEFT_WR_READ ||
	       w->opcode == WEFT_WR_READ_INV || weft_wqe_is_atomic(w);
}

static void spoil_oldest(struct weft_qpc *qp, u8 status)
{
	struct weft_sqq *sq = &qp->sq;
	u32 pos = sq->q.idx;

	while (pos != sq->pulled || weft_sq_pull(qp) > 0) {
		if (weft_sq_info_at(sq, pos)->state != WEFT_WQE_DONE &&
		    may_end_by(weft_sq_wqe_at(sq, pos), status)) {
			weft_sq_spoil(qp, pos, status);
			return;
		}
		pos += weft_sq_info_at(sq, pos)->nslots;
	}
}

void weft_qpc_give_up(struct weft_qpc *qp, u8 status)
{
	spoil_oldest(qp, status);
	enter_flushed(qp, WEFT_QPS_ERROR);
}

void weft_qpc_break_request(struct weft_qpc *qp, u8 status)
{
	spoil_oldest(qp, status);
	/* As rx_read_resp() does for a Response to no sink of this Request. */
	break_by(qp, status == WEFT_WC_BAD_RESP_ERR ? WEFT_E_DDP_STAG : WEFT_E_RDMAP_LOCAL);
}

bool weft_qpc_is_ack_pending(const struct weft_qpc *qp)
{
	return qp->ack_reads_max && qp->ack_pending && qp->state == WEFT_QPS_RTS && !qp->itself &&
	       !qp->recv_active && !qp->rx_waits;
}

void weft_qpc_hold(struct weft_qpc *qp, bool on)
{
	qp->sq_held = on;
	if (!on)
		weft_host_kick(qp);
}

bool weft_qpc_is_drained(const struct weft_qpc *qp)
{
	return qp->sq_held && qp->tx_kind != WEFT_TXK_WQE && !qp->tx_second && !qp->tx_unsent &&
	       qp->sq.q.idx == qp->sq.next;
}

void weft_qpc_peer_fin(struct weft_qpc *qp)
{
	qp->peer_fin = true;
	weft_host_kick(qp);
}

void weft_qpc_reset(struct weft_qpc *qp)
{
	struct weft_sqq *sq = &qp->sq;

	weft_region_unbind_all(qp);
	weft_ringq_init(&sq->q, sq->q.ring, sq->q.slots);
	sq->pulled = sq->next = sq->sent = sq->held = 0;
	sq->broken = false;
	if (!qp->srq && qp->rq.q.slots)
		weft_ringq_init(&qp->rq.q, qp->rq.q.ring, qp->rq.q.slots);
	weft_qpc_init(qp);
	qp->named = WEFT_VS_RESET;
}
