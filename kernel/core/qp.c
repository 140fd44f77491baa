// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "qp.h"

static const enum weft_err denial_ddp[] = {
	[WEFT_GRANTED]		= WEFT_OK,
	[WEFT_DENIED_STAG]	= WEFT_E_DDP_STAG,
	[WEFT_DENIED_ASSOC]	= WEFT_E_DDP_ASSOC,
	/* RFC 5041 has no code for rights: RDMAP's, as RNICs in the field do. */
	[WEFT_DENIED_ACCESS]	= WEFT_E_RDMAP_ACCESS,
	[WEFT_DENIED_WRAP]	= WEFT_E_DDP_WRAP,
	[WEFT_DENIED_BOUNDS]	= WEFT_E_DDP_BOUNDS,
	[WEFT_DENIED_GONE]	= WEFT_E_DDP_LOCAL,
};

static const enum weft_err denial_rdmap[] = {
	[WEFT_GRANTED]		= WEFT_OK,
	[WEFT_DENIED_STAG]	= WEFT_E_RDMAP_STAG,
	[WEFT_DENIED_ASSOC]	= WEFT_E_RDMAP_ASSOC,
	[WEFT_DENIED_ACCESS]	= WEFT_E_RDMAP_ACCESS,
	[WEFT_DENIED_WRAP]	= WEFT_E_RDMAP_WRAP,
	[WEFT_DENIED_BOUNDS]	= WEFT_E_RDMAP_BOUNDS,
	[WEFT_DENIED_GONE]	= WEFT_E_RDMAP_LOCAL,
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
	qp->state = WEFT_QPS_IDLE;
	qp->st = NULL;
	qp->error = WEFT_OK;
	qp->tx_kind = WEFT_TXK_NONE;
	qp->tx_unsent = false;
	qp->tx_sq_turn = false;
	qp->orq_head = qp->orq_count = 0;
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
	qp->term_received = qp->flushed_event = false;
}

void weft_qpc_init(struct weft_qpc *qp)
{
	start_over(qp);
	/* Born in IDLE, which verbs of RNICs call INIT. */
	qp->named = WEFT_VS_INIT;
	weft_ringq_sleep(&qp->sq.q);
}

void weft_qpc_start(struct weft_qpc *qp, struct weft_stream *st, u32 ord,
		    struct weft_orq_entry *orq, u32 ird, struct weft_irq_entry *irq,
		    u32 irq_slots)
{
	start_over(qp);
	qp->st = st;
	qp->ord = ord;
	qp->orq = orq;
	qp->ird = ird;
	qp->irq = irq;
	qp->irq_slots = irq_slots;
	if (st->agreed.p2p && st->initiator)
		qp->rtr_out = st->agreed.rtr;
	qp->rtr_await = st->agreed.p2p && !st->initiator;
	qp->state = WEFT_QPS_RTS;
}

void weft_qpc_close(struct weft_qpc *qp)
{
	if (qp->state != WEFT_QPS_RTS)
		return;
	qp->state = WEFT_QPS_CLOSING;
	weft_host_kick(qp);
}

/* Completes everything posted; says once that this has happened. */
static void enter_flushed(struct weft_qpc *qp, enum weft_qp_state state)
{
	qp->state = state;
	qp->tx_kind = WEFT_TXK_NONE;
	qp->orq_count = 0;
	qp->irq_count = 0;
	if (qp->st)
		weft_stream_stop(qp->st);
	weft_qpc_flush(qp);
	if (!qp->flushed_event) {
		qp->flushed_event = true;
		weft_host_event(qp, WEFT_EV_FLUSHED);
	}
}

void weft_qpc_flush(struct weft_qpc *qp)
{
	u32 round;

	if (qp->state != WEFT_QPS_ERROR && qp->state != WEFT_QPS_TERM)
		return;
	/*
	 * Twice: what is posted between the first flush and the user's sight of
	 * the kick flag is found by the second.
	 */
	for (round = 0; round < 2; round++) {
		weft_sq_flush(qp);
		weft_rq_flush(qp);
		weft_ringq_sleep(&qp->sq.q);
		if (!qp->srq && qp->rq.q.slots)
			weft_ringq_sleep(&qp->rq.q);
	}
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

/*
 * The oldest outstanding Read is the one that a Terminate for a Read Request
 * speaks of, if the copied MSN agrees or no header came along.
 */
static void blame_read(struct weft_qpc *qp)
{
	const struct weft_term *t = &qp->term_in;
	const struct weft_orq_entry *e;
	struct weft_wqe_info *info;

	if (!qp->orq_count || t->layer != 0 || (t->etype != 1 && t->etype != 2))
		return;
	e = &qp->orq[qp->orq_head];
	if (t->d) {
		struct weft_ddp_hdr h;

		weft_ddp_read(t->hdr, &h);
		if (h.tagged || h.qn != WEFT_QN_READ_REQUEST || h.msn != e->msn)
			return;
	}
	info = weft_sq_info_at(&qp->sq, e->wqe);
	info->state = WEFT_WQE_DONE;
	info->status = t->etype == 1 ? WEFT_WC_REM_ACCESS_ERR : WEFT_WC_REM_OP_ERR;
}

void weft_qpc_terminated(struct weft_qpc *qp)
{
	if (qp->state != WEFT_QPS_RTS && qp->state != WEFT_QPS_CLOSING)
		return;
	qp->term_received = true;
	blame_read(qp);
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

void weft_qpc_peer_fin(struct weft_qpc *qp)
{
	qp->peer_fin = true;
	weft_host_kick(qp);
}

void weft_qpc_reset(struct weft_qpc *qp)
{
	struct weft_sqq *sq = &qp->sq;

	weft_ringq_init(&sq->q, sq->q.ring, sq->q.slots);
	sq->pulled = sq->next = sq->sent = 0;
	sq->broken = false;
	if (!qp->srq && qp->rq.q.slots)
		weft_ringq_init(&qp->rq.q, qp->rq.q.ring, qp->rq.q.slots);
	weft_qpc_init(qp);
	qp->named = WEFT_VS_RESET;
}
