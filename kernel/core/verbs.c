// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "verbs.h"

/* The connection leads; before it comes, and after a reset, the verbs do. */
enum weft_verbs_state weft_qpc_verbs_state(const struct weft_qpc *qp)
{
	switch (READ_ONCE(qp->state)) {
	case WEFT_QPS_IDLE:
		return READ_ONCE(qp->named);
	case WEFT_QPS_RTS:
		return qp->by_hand ? READ_ONCE(qp->named) : WEFT_VS_RTS;
	case WEFT_QPS_CLOSING:
		return WEFT_VS_SQD;
	default:
		return WEFT_VS_ERR;
	}
}

/* By the state to go to, then the one that the QP is in. A zero entry is refused. */
static const u8 moves[WEFT_VS_NR][WEFT_VS_NR] = {
	[WEFT_VS_RESET] = {
		[WEFT_VS_RESET] = WEFT_QP_RESET, [WEFT_VS_INIT] = WEFT_QP_RESET,
		[WEFT_VS_RTR] = WEFT_QP_RESET, [WEFT_VS_ERR] = WEFT_QP_RESET,
	},
	[WEFT_VS_INIT] = {
		[WEFT_VS_RESET] = WEFT_QP_DONE, [WEFT_VS_INIT] = WEFT_QP_DONE,
	},
	[WEFT_VS_RTR] = {
		[WEFT_VS_INIT] = WEFT_QP_DONE, [WEFT_VS_RTR] = WEFT_QP_DONE,
	},
	[WEFT_VS_RTS] = {
		[WEFT_VS_RTS] = WEFT_QP_DONE,
	},
	[WEFT_VS_SQD] = {
		[WEFT_VS_RTS] = WEFT_QP_CLOSE,
		[WEFT_VS_SQD] = WEFT_QP_DONE, [WEFT_VS_ERR] = WEFT_QP_DONE,
	},
	[WEFT_VS_ERR] = {
		[WEFT_VS_RESET] = WEFT_QP_FAIL, [WEFT_VS_INIT] = WEFT_QP_FAIL,
		[WEFT_VS_RTR] = WEFT_QP_FAIL, [WEFT_VS_RTS] = WEFT_QP_FAIL,
		[WEFT_VS_SQD] = WEFT_QP_FAIL, [WEFT_VS_SQE] = WEFT_QP_FAIL,
		[WEFT_VS_ERR] = WEFT_QP_FAIL,
	},
};

enum weft_qp_move weft_qpc_move(struct weft_qpc *qp, u32 to)
{
	enum weft_qp_move move;

	if (to >= WEFT_VS_NR)
		return WEFT_QP_REFUSED;
	move = moves[to][weft_qpc_verbs_state(qp)];
	if (move == WEFT_QP_DONE && (to == WEFT_VS_INIT || to == WEFT_VS_RTR))
		WRITE_ONCE(qp->named, to);
	return move;
}

static enum weft_qp_fault fault_of(u8 layer, u8 etype)
{
	if (layer < 2 && etype == 1)
		return WEFT_FAULT_ACCESS;
	if (layer == 1 || (layer == 0 && etype == 2))
		return WEFT_FAULT_REQUEST;
	return WEFT_FAULT_FATAL;
}

/* The queue pair of a stream has no CQ. */
static bool has_overflowed(const struct weft_cqc *cq)
{
	return cq && READ_ONCE(cq->overflow);
}

static bool has_lost_completion(const struct weft_qpc *qp)
{
	return has_overflowed(qp->scq) || has_overflowed(qp->rcq);
}

bool weft_qpc_peer_has_failed(const struct weft_term *t)
{
	const struct weft_term_code *c = weft_err_term(WEFT_E_RDMAP_STREAM);

	return t->m && !t->seg_len && t->layer == c->layer && t->etype == c->etype &&
	       t->code == c->code;
}

enum weft_qp_fault weft_qpc_fault(const struct weft_qpc *qp)
{
	const struct weft_term_code *own;

	if (qp->term_received && weft_qpc_peer_has_failed(&qp->term_in))
		return WEFT_FAULT_NONE;
	if (qp->term_received)
		return fault_of(qp->term_in.layer, qp->term_in.etype);
	if (qp->error == WEFT_OK)
		return has_lost_completion(qp) ? WEFT_FAULT_FATAL : WEFT_FAULT_NONE;
	own = weft_err_term(qp->error);
	return fault_of(own->layer, own->etype);
}

static u32 term_number(u8 layer, u8 etype, u8 code)
{
	return (u32)layer << 12 | (u32)etype << 8 | code;
}

u32 weft_qpc_vendor_err(const struct weft_qpc *qp)
{
	const struct weft_term_code *own = weft_err_term(qp->error);

	if (qp->term_received)
		return term_number(qp->term_in.layer, qp->term_in.etype, qp->term_in.code);
	return qp->error == WEFT_OK ? 0 : term_number(own->layer, own->etype, own->code);
}
