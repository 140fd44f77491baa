// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Reporting requests and completions to weft-run's judge (direct.h). */
#include "direct.h"
#include "weft.h"

static void report(const struct ibv_context *ctx, enum weft_run_deed deed, const void *what)
{
	weft_run_judge(ctx->cmd_fd, deed, what);
}

/* ---- requests ---- */

/* The entry's list, which may wrap at the ring's end. */
static void copy_sges(const struct weft_qp *qp, uint32_t at, const struct weft_sq_wqe *w,
		      struct weft_sge *list)
{
	const struct weft_uring *r = &qp->sq.ring;
	size_t bytes = (size_t)r->slots * WEFT_SLOT_SIZE, n = w->num_sge * sizeof(*list);
	size_t from = (size_t)at * WEFT_SLOT_SIZE + (qp->sq.datagrams ? WEFT_SLOT_SIZE :
						      offsetof(struct weft_sq_wqe, data));
	size_t to_end;

	from &= bytes - 1;
	to_end = bytes - from < n ? bytes - from : n;
	memcpy(list, r->entries + from, to_end);
	memcpy((uint8_t *)list + to_end, r->entries, n - to_end);
}

void weft_judge_sends(const struct weft_qp *qp, uint32_t at, const void *caller)
{
	const struct weft_sq_wqe *w;
	struct weft_sge list[WEFT_MAX_SGE];

	for (; at != qp->sq.ring.idx; at += w->nslots) {
		struct weft_run_posted p = {
			.post = WEFT_RUN_POST_SEND, .handle = qp->vqp.qp.handle, .caller = caller,
			.sge = list,
		};

		w = weft_uring_slot(&qp->sq.ring, at);
		p.opcode = w->opcode;
		p.signaled = w->flags & WEFT_WR_SIGNALED;
		p.in_line = w->flags & WEFT_WR_INLINE;
		p.datagram = qp->sq.datagrams;
		p.wr_id = w->wr_id;
		p.num_sge = p.in_line ? 0 : w->num_sge;
		copy_sges(qp, at, w, list);
		report(qp->vqp.qp.context, WEFT_RUN_POSTED, &p);
	}
}

void weft_judge_receives(const struct ibv_qp *qp, const struct ibv_srq *srq,
			 const struct weft_rq *rq, uint32_t at, const void *caller)
{
	const struct ibv_context *ctx = qp ? qp->context : srq->context;

	for (; at != rq->ring.idx; at += rq->stride) {
		const struct weft_rq_wqe *w = weft_uring_slot(&rq->ring, at);
		const struct weft_run_posted p = {
			.post = qp ? WEFT_RUN_POST_RECV : WEFT_RUN_POST_SRQ_RECV, .signaled = true,
			.handle = qp ? qp->handle : srq->handle, .wr_id = w->wr_id,
			.num_sge = w->num_sge, .sge = w->data, .caller = caller,
		};

		report(ctx, WEFT_RUN_POSTED, &p);
	}
}

/* ---- completions ---- */

static struct weft_run_polled polled_of(const struct ibv_cq *cq, const struct ibv_wc *wc)
{
	return (struct weft_run_polled){
		.cq = cq->handle, .qp_num = wc->qp_num, .wr_id = wc->wr_id, .status = wc->status,
		.is_recv = wc->opcode & IBV_WC_RECV,
	};
}

#define UNDEFINED 0x0bad0bad

/* What verbs define of an error: wr_id, status, qp_num and vendor_err. */
static void overwrite_fields(struct ibv_wc *wc)
{
	wc->opcode = UNDEFINED;
	wc->byte_len = UNDEFINED;
	wc->imm_data = UNDEFINED;
	wc->src_qp = UNDEFINED;
	wc->wc_flags = UNDEFINED;
	wc->pkey_index = (uint16_t)UNDEFINED;
	wc->slid = (uint16_t)UNDEFINED;
	wc->sl = wc->dlid_path_bits = (uint8_t)UNDEFINED;
}

void weft_judge_completion(const struct ibv_cq *cq, struct ibv_wc *wc)
{
	const struct weft_run_polled p = polled_of(cq, wc);

	report(cq->context, WEFT_RUN_POLLED, &p);
	if (wc->status != IBV_WC_SUCCESS && to_weft_ctx(cq->context)->overwrites_fields)
		overwrite_fields(wc);
}

void weft_judge_read(const struct ibv_cq *cq, const struct ibv_wc *wc, const char *field)
{
	struct weft_run_polled p = polled_of(cq, wc);

	p.field = field;
	if (wc->status != IBV_WC_SUCCESS)
		report(cq->context, WEFT_RUN_READ_FIELD, &p);
}
