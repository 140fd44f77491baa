// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The send queue: three positions run through one ring, head (q.idx, oldest
 * entry not completed) <= next (being sent) <= pulled (copied) <= the user's.
 */
#include "host.h"
#include "region.h"
#include "sq.h"
#include "verbs.h"
#include "wqe.h"

static const u8 wc_opcode[WEFT_WR_NR] = {
	[WEFT_WR_WRITE]		= WEFT_WCO_WRITE,
	[WEFT_WR_WRITE_IMM]	= WEFT_WCO_WRITE,
	[WEFT_WR_SEND]		= WEFT_WCO_SEND,
	[WEFT_WR_SEND_IMM]	= WEFT_WCO_SEND,
	[WEFT_WR_SEND_INV]	= WEFT_WCO_SEND,
	[WEFT_WR_READ]		= WEFT_WCO_READ,
	[WEFT_WR_READ_INV]	= WEFT_WCO_READ,
	[WEFT_WR_LOCAL_INV]	= WEFT_WCO_LOCAL_INV,
	[WEFT_WR_REG_MR]	= WEFT_WCO_REG_MR,
	[WEFT_WR_BIND_MW]	= WEFT_WCO_BIND_MW,
	[WEFT_WR_CMP_SWAP]	= WEFT_WCO_CMP_SWAP,
	[WEFT_WR_FETCH_ADD]	= WEFT_WCO_FETCH_ADD,
};

int weft_sq_pull(struct weft_qpc *qp)
{
	struct weft_sqq *sq = &qp->sq;
	struct weft_wqe_info *info;
	struct weft_sq_wqe *w;
	s32 filled;

	if (sq->broken)
		return -1;
	if (weft_sq_is_full(sq))
		return 0;
	filled = weft_ringq_filled(&sq->q, sq->pulled);
	if (!filled)
		return 0;
	w = weft_sq_wqe_at(sq, sq->pulled);
	info = weft_sq_info_at(sq, sq->pulled);
	if (filled > 0)
		weft_ringq_copy(&sq->q, sq->pulled, w, 1);
	/* Without a plausible length the next entries cannot be found. */
	if (filled < 0 || !w->nslots || w->nslots > (u32)filled || w->nslots > sq->max_slots) {
		sq->broken = true;
		return -1;
	}
	info->nslots = w->nslots;
	if (info->nslots > 1)
		weft_ringq_copy(&sq->q, sq->pulled + 1, w + 1, info->nslots - 1);
	info->state = WEFT_WQE_QUEUED;
	info->status = qp->datagrams ?
		       weft_wqe_check_datagram(w, info->nslots, &info->len) :
		       weft_wqe_check(w, info->nslots, qp->kernel, &info->len);
	sq->pulled += info->nslots;
	sq->taken++;
	sq->held++;
	return 1;
}

static u32 octets_left(const struct weft_sq_wqe *w, u32 sge, u32 off)
{
	u32 left = 0, i;

	for (i = sge; i < w->num_sge; i++)
		left += weft_wqe_sge(w, i)->length;
	return left - off;
}

/* Copies SGE @s from its octet @off on, and lets it go: the octets copied. */
static u32 keep_sge(struct weft_qpc *qp, const struct weft_sge *s, u32 off, u8 *to)
{
	struct weft_region *r = weft_region_get(qp, qp->pd, s->lkey);
	u32 len = s->length - off, done, n;

	for (done = 0; r && done < len; done += n) {
		u64 addr = s->addr + off + done;
		struct weft_region *memory = weft_region_memory(r, &addr);
		const void *p = weft_host_piece(memory, addr, len - done, &n);

		memcpy(to + done, p, n);
	}
	if (r)
		weft_region_put(qp, r);
	return done;
}

bool weft_sq_keep(struct weft_qpc *qp, void *mem, u32 room, u32 lkey)
{
	struct weft_sqq *sq = &qp->sq;
	bool amid = qp->tx_kind == WEFT_TXK_WQE;
	u32 sge = amid ? qp->sge : 0, off = amid ? qp->sge_off : 0, done = 0, i;
	struct weft_sq_wqe *w;

	if (sq->next == sq->pulled && weft_sq_pull(qp) <= 0)
		return false;
	w = weft_sq_wqe_at(sq, sq->next);
	if (w->flags & WEFT_WR_INLINE)
		return true;
	if (weft_sq_info_at(sq, sq->next)->status != WEFT_WC_SUCCESS ||
	    octets_left(w, sge, off) > room)
		return false;
	for (i = sge; i < w->num_sge; i++) {
		struct weft_sge *s = (struct weft_sge *)weft_wqe_sge(w, i);
		u32 from = i == sge ? off : 0, n = keep_sge(qp, s, from, (u8 *)mem + done);

		if (n != s->length - from)
			return false;
		s->lkey = lkey;
		s->addr = (uintptr_t)mem + done - from;
		done += n;
	}
	return true;
}

/* Completes the oldest entry and gives its slots back. */
static void sq_complete(struct weft_qpc *qp, u8 status)
{
	struct weft_sqq *sq = &qp->sq;
	const struct weft_sq_wqe *w = weft_sq_wqe_at(sq, sq->q.idx);
	const struct weft_wqe_info *info = weft_sq_info_at(sq, sq->q.idx);
	struct weft_cqe cqe = {
		.wr_id = w->wr_id,
		.qp_num = qp->id,
		.status = status,
		.opcode = w->opcode < WEFT_WR_NR ? wc_opcode[w->opcode] : WEFT_WCO_SEND,
		.byte_len = info->len,
	};
	bool report = qp->sig_all || w->flags & WEFT_WR_SIGNALED || status != WEFT_WC_SUCCESS;

	if (status != WEFT_WC_SUCCESS)
		cqe.vendor_err = weft_qpc_vendor_err(qp);
	sq->held--;
	/* The slots first: the poller of the completion may fill them at once. */
	weft_ringq_free(&sq->q, info->nslots);
	if (report)
		weft_host_complete(qp, false, &cqe);
}

void weft_sq_spoil(struct weft_qpc *qp, u32 pos, u8 status)
{
	struct weft_wqe_info *info = weft_sq_info_at(&qp->sq, pos);

	info->state = WEFT_WQE_DONE;
	info->status = status;
}

void weft_sq_confirm(struct weft_qpc *qp, u32 pos)
{
	struct weft_sqq *sq = &qp->sq;
	u32 at = sq->q.idx;

	while (at != pos) {
		struct weft_wqe_info *info = weft_sq_info_at(sq, at);

		if (info->state == WEFT_WQE_SENT)
			info->state = WEFT_WQE_DONE;
		at += info->nslots;
	}
}

void weft_sq_reap(struct weft_qpc *qp)
{
	struct weft_sqq *sq = &qp->sq;
	u32 n;

	for (n = 0; sq->q.idx != sq->next; n++) {
		const struct weft_wqe_info *info = weft_sq_info_at(sq, sq->q.idx);

		if (info->state != WEFT_WQE_DONE)
			return;
		if (n == WEFT_FLUSH_PIECE) {
			weft_host_kick(qp);
			return;
		}
		sq_complete(qp, info->status);
	}
}

/*
 * What a flushed entry completes with: its own verdict if it has a bad one;
 * success only while nothing before it has failed.
 */
static u8 flush_status(const struct weft_wqe_info *info, bool failed)
{
	if (info->state != WEFT_WQE_DONE)
		return WEFT_WC_FLUSH_ERR;
	if (failed && info->status == WEFT_WC_SUCCESS)
		return WEFT_WC_FLUSH_ERR;
	return info->status;
}

bool weft_sq_flush(struct weft_qpc *qp, u32 most)
{
	struct weft_sqq *sq = &qp->sq;
	u32 n;

	for (n = 0; n < most; n++) {
		u8 status;

		if (sq->q.idx == sq->pulled && weft_sq_pull(qp) <= 0)
			break;
		status = flush_status(weft_sq_info_at(sq, sq->q.idx), sq->failed);
		sq->failed |= status != WEFT_WC_SUCCESS;
		sq_complete(qp, status);
	}
	/* Entries left for the next piece are neither sent nor reaped. */
	sq->next = sq->sent = sq->q.idx;
	return n == most;
}
