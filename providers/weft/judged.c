// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Reporting requests and completions to weft-run's judge and its record (direct.h). */
#include <errno.h>
#include <stdlib.h>

#include "direct.h"
#include "weft.h"

static void report_posted(struct ibv_context *ctx, const struct weft_run_posted *p)
{
	const struct weft_run_judging *j = &to_weft_ctx(ctx)->judging;

	if (j->record_posted)
		j->record_posted(j->owner, p);
	if (j->is_judged)
		weft_run_judge(ctx->cmd_fd, WEFT_RUN_POSTED, p);
}

/* ---- requests ---- */

static int ask_for_room(const struct weft_qp *qp, uint32_t n)
{
	const struct ibv_qp *ibqp = &qp->vqp.qp;
	const struct weft_run_object o = {
		.kind = WEFT_RUN_QP, .handle = ibqp->handle, .size = n,
	};

	if (!to_weft_ctx(ibqp->context)->judging.is_cramped)
		return 0;
	return weft_run_judge(ibqp->context->cmd_fd, WEFT_RUN_ROOM, &o) == ENOMEM ? ENOMEM : 0;
}

int weft_judge_room(const struct weft_qp *qp, uint32_t at)
{
	const struct weft_sq_wqe *w;
	uint32_t n = 0;

	for (; at != qp->sq.ring.idx; at += w->nslots, n++)
		w = weft_uring_slot(&qp->sq.ring, at);
	return ask_for_room(qp, n);
}

int weft_judge_sends(struct weft_qp *qp, uint32_t at, const void *caller, uint32_t *reported)
{
	const struct weft_sq_wqe *w;
	struct weft_sge list[WEFT_MAX_SGE];
	uint32_t n;

	for (*reported = 0; at != qp->sq.ring.idx; at += w->nslots, ++*reported) {
		struct weft_run_posted p = {
			.post = WEFT_RUN_POST_SEND, .handle = qp->vqp.qp.handle, .caller = caller,
			.sge = list,
		};

		if (ask_for_room(qp, 1)) {
			qp->sq.ring.idx = at;
			return ENOMEM;
		}
		w = weft_uring_slot(&qp->sq.ring, at);
		p.opcode = w->opcode;
		p.signaled = w->flags & WEFT_WR_SIGNALED;
		p.in_line = w->flags & WEFT_WR_INLINE;
		p.rkey = w->rkey;
		p.remote_addr = w->remote_addr;
		p.datagram = qp->sq.datagrams;
		p.wr_id = w->wr_id;
		/* The program could have written there. */
		n = w->num_sge < WEFT_MAX_SGE ? w->num_sge : WEFT_MAX_SGE;
		weft_sq_copy_sges(&qp->sq, at, n, list);
		p.num_sge = p.in_line ? 0 : n;
		p.length = p.in_line && n ? list[0].length : 0;
		report_posted(qp->vqp.qp.context, &p);
	}
	return 0;
}

void weft_judge_receives(const struct ibv_qp *qp, const struct ibv_srq *srq,
			 const struct weft_rq *rq, uint32_t at, const void *caller)
{
	struct ibv_context *ctx = qp ? qp->context : srq->context;

	for (; at != rq->ring.idx; at += rq->stride) {
		const struct weft_rq_wqe *w = weft_uring_slot(&rq->ring, at);
		const struct weft_run_posted p = {
			.post = qp ? WEFT_RUN_POST_RECV : WEFT_RUN_POST_SRQ_RECV, .signaled = true,
			.handle = qp ? qp->handle : srq->handle, .wr_id = w->wr_id,
			.num_sge = w->num_sge, .sge = w->data, .caller = caller,
		};

		report_posted(ctx, &p);
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
	const struct weft_run_judging *j = &to_weft_ctx(cq->context)->judging;
	const struct weft_run_polled p = polled_of(cq, wc);

	if (j->record_polled)
		j->record_polled(j->owner, &p);
	if (j->is_judged)
		weft_run_judge(cq->context->cmd_fd, WEFT_RUN_POLLED, &p);
	if (wc->status != IBV_WC_SUCCESS && j->overwrites_fields)
		overwrite_fields(wc);
}

void weft_judge_read(const struct ibv_cq *cq, const struct ibv_wc *wc, const char *field)
{
	struct weft_run_polled p = polled_of(cq, wc);

	p.field = field;
	if (wc->status != IBV_WC_SUCCESS && to_weft_ctx(cq->context)->judging.is_judged)
		weft_run_judge(cq->context->cmd_fd, WEFT_RUN_READ_FIELD, &p);
}

/* ---- objects that are gone ---- */

/*
 * The memory of the latest that were destroyed: a program that uses one again still finds its
 * functions, and WEFT_GONE in place of its handle.
 */
#define KEPT		1024

static struct {
	pthread_mutex_t lock;
	void *objects[KEPT];
	uint32_t n;
} kept = { .lock = PTHREAD_MUTEX_INITIALIZER };

void weft_free_object(const struct ibv_context *ctx, void *object)
{
	void *oldest = object;

	if (container_of(ctx, struct weft_context, vctx.context)->judging.is_judged) {
		pthread_mutex_lock(&kept.lock);
		oldest = kept.objects[kept.n % KEPT];
		kept.objects[kept.n++ % KEPT] = object;
		pthread_mutex_unlock(&kept.lock);
	}
	free(oldest);
}

int weft_judge_gone(const struct ibv_context *ctx, uint32_t kind, const void *object)
{
	const struct weft_run_object o = { .kind = kind, .user = (uintptr_t)object };

	weft_run_judge(ctx->cmd_fd, WEFT_RUN_TWICE, &o);
	return EINVAL;
}
