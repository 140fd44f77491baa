// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "region.h"
#include "rq.h"
#include "sq.h"
#include "ud.h"
#include "wqe.h"

/* ---- sending ---- */

static void put_pieces(struct weft_qpc *qp, struct weft_ud_out *o)
{
	u32 i;

	for (i = 0; i < o->npieces; i++)
		if (o->piece[i].region)
			weft_region_put(qp, o->piece[i].region);
	o->npieces = 0;
}

static bool add_sge(struct weft_qpc *qp, const struct weft_sge *s, struct weft_ud_out *o)
{
	struct weft_region *r;

	if (!s->length)
		return true;
	r = weft_region_get(qp, qp->pd, s->lkey);
	if (weft_region_check(r, s->lkey, qp->pd, qp->id, s->addr, s->length, 0) != WEFT_GRANTED) {
		if (r)
			weft_region_put(qp, r);
		return false;
	}
	o->piece[o->npieces++] = (struct weft_piece) {
		.region = r, .addr = s->addr, .len = s->length,
	};
	return true;
}

static u8 gather(struct weft_qpc *qp, const struct weft_sq_wqe *w, struct weft_ud_out *o)
{
	u32 i;

	if (w->flags & WEFT_WR_INLINE) {
		o->piece[0] = (struct weft_piece) {
			.p = weft_wqe_datagram_sge(w, 1), .len = o->len,
		};
		o->npieces = !!o->len;
		return WEFT_WC_SUCCESS;
	}
	for (i = 0; i < w->num_sge; i++)
		if (!add_sge(qp, weft_wqe_datagram_sge(w, i), o)) {
			put_pieces(qp, o);
			return WEFT_WC_LOC_PROT_ERR;
		}
	return WEFT_WC_SUCCESS;
}

/* The entry at sq.next, copied and judged. */
static bool pull(struct weft_qpc *qp)
{
	struct weft_sqq *sq = &qp->sq;

	if (sq->next != sq->pulled || weft_sq_pull(qp) > 0)
		return true;
	weft_ringq_sleep(&sq->q);
	/* Posted before its poster could see that it is to kick. */
	return weft_sq_pull(qp) > 0;
}

bool weft_ud_next(struct weft_qpc *qp, u32 mtu, struct weft_ud_out *o)
{
	struct weft_sqq *sq = &qp->sq;
	const struct weft_wqe_info *info;
	const struct weft_sq_wqe *w;

	if (!pull(qp))
		return false;
	w = weft_sq_wqe_at(sq, sq->next);
	info = weft_sq_info_at(sq, sq->next);
	o->pos = sq->next;
	o->status = info->status;
	o->imm = w->opcode == WEFT_WR_SEND_IMM;
	o->imm_data = o->imm ? (u32)w->imm : 0;
	o->solicited = w->flags & WEFT_WR_SOLICITED;
	o->len = info->len;
	o->npieces = 0;
	memcpy(&o->to, w->data, sizeof(o->to));
	if (o->status == WEFT_WC_SUCCESS && o->len > mtu)
		o->status = WEFT_WC_LOC_LEN_ERR;
	if (o->status == WEFT_WC_SUCCESS)
		o->status = gather(qp, w, o);
	sq->next += info->nslots;
	return true;
}

void weft_ud_done(struct weft_qpc *qp, struct weft_ud_out *o, u8 status)
{
	put_pieces(qp, o);
	weft_sq_spoil(qp, o->pos, status);
	weft_sq_reap(qp);
}

void weft_ud_undo(struct weft_qpc *qp, struct weft_ud_out *o)
{
	put_pieces(qp, o);
	qp->sq.next = o->pos;
}

bool weft_ud_flush_sends(struct weft_qpc *qp)
{
	weft_ringq_sleep(&qp->sq.q);
	return weft_sq_flush(qp, WEFT_FLUSH_PIECE);
}

void weft_ud_resume(struct weft_qpc *qp)
{
	qp->sq.failed = false;
}

/* ---- receiving ---- */

static enum weft_ud_fate ud_refuse(struct weft_qpc *qp, u8 status)
{
	weft_rq_fail(qp, status);
	return WEFT_UD_BAD_RECEIVE;
}

static bool place(struct weft_qpc *qp, const struct weft_ud_in *in)
{
	const struct weft_seg seg[] = {
		{ .p = in->grh, .len = sizeof(in->grh) },
		{ .p = in->payload, .len = in->len },
	};
	struct weft_cur from;

	weft_cur_init(&from, seg, in->len ? 2 : 1);
	return weft_rq_place(qp, 0, &from, sizeof(in->grh) + in->len);
}

enum weft_ud_fate weft_ud_receive(struct weft_qpc *qp, const struct weft_ud_in *in)
{
	struct weft_cqe e = {
		.status = WEFT_WC_SUCCESS, .opcode = WEFT_WCO_RECV, .flags = WEFT_CQE_GRH,
		.src_qp = in->src_qpn,
	};
	int r = weft_rq_take(qp);

	/* A ring that is broken has no entry to complete. */
	if (r <= 0)
		return r ? WEFT_UD_BAD_RECEIVE : WEFT_UD_NO_RECEIVE;
	if (!weft_rq_judge(qp))
		return ud_refuse(qp, WEFT_WC_LOC_QP_OP_ERR);
	if (qp->recv_cap < sizeof(in->grh) + in->len)
		return ud_refuse(qp, WEFT_WC_LOC_LEN_ERR);
	if (!place(qp, in))
		return ud_refuse(qp, WEFT_WC_LOC_PROT_ERR);
	qp->recv_got = sizeof(in->grh) + in->len;
	if (in->grh[0] >> 4 != 6)
		e.flags |= WEFT_CQE_IPV4;
	if (in->imm) {
		e.flags |= WEFT_CQE_IMM;
		e.imm = in->imm_data;
	}
	if (in->solicited)
		e.flags |= WEFT_CQE_SOLICITED;
	weft_rq_complete(qp, &e);
	return WEFT_UD_DELIVERED;
}
