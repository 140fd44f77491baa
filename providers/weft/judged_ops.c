// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The functions of a context that is judged. They take the place of the usual ones when the context
 * is made, so that those have no test for it; objects are reported here, requests by judged.c. If
 * posts fail on demand (failing.c), objects are judged and requests are not.
 */
#include <errno.h>
#include <time.h>

#include "direct.h"
#include "weft.h"

static int report_deed(const struct ibv_context *ctx, enum weft_run_deed deed, const void *what)
{
	return weft_run_judge(ctx->cmd_fd, deed, what);
}

static void report_made(const struct ibv_context *ctx, const struct weft_run_object *o)
{
	report_deed(ctx, WEFT_RUN_MADE, o);
}

/* The call that was to destroy the object has returned @err: returns it, too. */
static int report_end(const struct ibv_context *ctx, const struct weft_run_object *o, int err)
{
	if (!err || err == EBUSY)
		report_deed(ctx, err ? WEFT_RUN_REFUSED : WEFT_RUN_GONE, o);
	return err;
}

/* ---- domains, regions, windows ---- */

static struct ibv_pd *judged_alloc_pd(struct ibv_context *ctx)
{
	struct ibv_pd *pd = weft_alloc_pd(ctx);
	struct weft_run_object o = { .kind = WEFT_RUN_PD };

	if (pd) {
		o.handle = pd->handle;
		report_made(ctx, &o);
	}
	return pd;
}

/* A parent domain has the handle of its protection domain, and none of its own. */
static int judged_dealloc_pd(struct ibv_pd *pd)
{
	const struct weft_run_object o = { .kind = WEFT_RUN_PD, .handle = pd->handle };
	struct ibv_context *ctx = pd->context;

	if (to_weft_pd(pd)->of)
		return weft_dealloc_pd(pd);
	report_deed(ctx, WEFT_RUN_ENDS, &o);
	return report_end(ctx, &o, weft_dealloc_pd(pd));
}

static struct ibv_mr *judged_reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				    int access)
{
	struct ibv_mr *mr = weft_reg_mr(pd, addr, length, iova, access);
	struct weft_run_object o = {
		.kind = WEFT_RUN_MR, .pd = pd->handle, .addr = (uintptr_t)addr, .length = length,
		.access = access,
	};

	if (mr) {
		o.handle = mr->handle;
		o.number = mr->lkey;
		report_made(pd->context, &o);
	}
	return mr;
}

static int judged_dereg_mr(struct verbs_mr *vmr)
{
	const struct weft_run_object o = {
		.kind = WEFT_RUN_MR, .handle = vmr->ibv_mr.handle, .number = vmr->ibv_mr.lkey,
	};
	struct ibv_context *ctx = vmr->ibv_mr.context;

	report_deed(ctx, WEFT_RUN_ENDS, &o);
	return report_end(ctx, &o, weft_dereg_mr(vmr));
}

static struct ibv_mw *judged_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct ibv_mw *mw = weft_alloc_mw(pd, type);
	struct weft_run_object o = { .kind = WEFT_RUN_MW, .pd = pd->handle };

	if (mw) {
		o.handle = mw->handle;
		o.number = mw->rkey;
		report_made(pd->context, &o);
	}
	return mw;
}

static int judged_dealloc_mw(struct ibv_mw *mw)
{
	const struct weft_run_object o = { .kind = WEFT_RUN_MW, .handle = mw->handle };
	struct ibv_context *ctx = mw->context;

	report_deed(ctx, WEFT_RUN_ENDS, &o);
	return report_end(ctx, &o, weft_dealloc_mw(mw));
}

/* ---- completion queues ---- */

static void report_cq(const struct ibv_context *ctx, const struct ibv_cq *cq)
{
	const struct weft_run_object o = {
		.kind = WEFT_RUN_CQ, .handle = cq->handle, .size = cq->cqe,
	};

	report_made(ctx, &o);
}

static struct ibv_cq *judged_create_cq(struct ibv_context *ctx, int entries,
				       struct ibv_comp_channel *channel, int comp_vector)
{
	struct ibv_cq *cq = weft_create_cq(ctx, entries, channel, comp_vector);

	if (cq)
		report_cq(ctx, cq);
	return cq;
}

static struct ibv_cq_ex *judged_create_cq_ex(struct ibv_context *ctx,
					     struct ibv_cq_init_attr_ex *attr)
{
	struct ibv_cq_ex *ex = weft_create_cq_ex(ctx, attr);

	if (ex)
		report_cq(ctx, ibv_cq_ex_to_cq(ex));
	return ex;
}

static int judged_resize_cq(struct ibv_cq *cq, int entries)
{
	int err = weft_resize_cq(cq, entries);

	if (!err)
		report_cq(cq->context, cq);
	return err;
}

#define LOOKS		100		/* a second in all */
#define LOOK_NS		10000000

/*
 * The program that destroys a CQ waits until all of its events are acknowledged, and another thread
 * may be about to do that.
 */
static void await_acknowledgement(const struct ibv_cq *cq, struct weft_run_object *o)
{
	const struct timespec pause = { .tv_nsec = LOOK_NS };
	int i;

	for (i = 0; i < LOOKS; i++) {
		o->number = __atomic_load_n(&cq->comp_events_completed, __ATOMIC_RELAXED);
		if (report_deed(cq->context, WEFT_RUN_ENDS, o) != EAGAIN)
			return;
		nanosleep(&pause, NULL);
	}
	report_deed(cq->context, WEFT_RUN_WAITS, o);
}

static int judged_destroy_cq(struct ibv_cq *cq)
{
	struct weft_run_object o = { .kind = WEFT_RUN_CQ, .handle = cq->handle };
	struct ibv_context *ctx = cq->context;

	await_acknowledgement(cq, &o);
	return report_end(ctx, &o, weft_destroy_cq(cq));
}

/* ---- shared receive queues, queue pairs ---- */

static struct ibv_srq *judged_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct ibv_srq *srq = weft_create_srq(pd, attr);
	struct weft_run_object o = { .kind = WEFT_RUN_SRQ, .pd = pd->handle };

	if (srq) {
		o.handle = srq->handle;
		report_made(pd->context, &o);
	}
	return srq;
}

static int judged_destroy_srq(struct ibv_srq *srq)
{
	const struct weft_run_object o = { .kind = WEFT_RUN_SRQ, .handle = srq->handle };
	struct ibv_context *ctx = srq->context;

	report_deed(ctx, WEFT_RUN_ENDS, &o);
	return report_end(ctx, &o, weft_destroy_srq(srq));
}

static void report_qp(const struct ibv_context *ctx, const struct ibv_qp *qp,
		      const struct ibv_qp_init_attr_ex *attr)
{
	const struct weft_run_object o = {
		.kind = WEFT_RUN_QP, .handle = qp->handle, .number = qp->qp_num,
		.pd = attr->pd->handle, .send_cq = attr->send_cq->handle,
		.recv_cq = attr->recv_cq->handle, .has_srq = attr->srq,
		.srq = attr->srq ? attr->srq->handle : 0, .size = attr->cap.max_send_wr,
		.all_signaled = attr->sq_sig_all,
	};

	report_made(ctx, &o);
}

static struct ibv_qp *judged_create_qp_ex(struct ibv_context *ctx,
					  struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp *qp = weft_create_qp_ex(ctx, attr);

	if (qp)
		report_qp(ctx, qp, attr);
	return qp;
}

static struct ibv_qp *judged_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp *qp = weft_create_qp(pd, attr);
	const struct ibv_qp_init_attr_ex ex = {
		.send_cq = attr->send_cq, .recv_cq = attr->recv_cq, .srq = attr->srq,
		.cap = attr->cap, .sq_sig_all = attr->sq_sig_all, .pd = pd,
	};

	if (qp)
		report_qp(pd->context, qp, &ex);
	return qp;
}

static int judged_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	const struct weft_run_object o = { .kind = WEFT_RUN_QP, .handle = qp->handle };
	int err = weft_modify_qp(qp, attr, mask);

	if (!err && mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RESET)
		report_deed(qp->context, WEFT_RUN_RESET, &o);
	if (!err && mask & IBV_QP_AV && attr->ah_attr.is_global && !attr->ah_attr.grh.sgid_index)
		report_deed(qp->context, WEFT_RUN_GID_0, &o);
	return err;
}

static int judged_destroy_qp(struct ibv_qp *qp)
{
	const struct weft_run_object o = { .kind = WEFT_RUN_QP, .handle = qp->handle };
	struct ibv_context *ctx = qp->context;

	report_deed(ctx, WEFT_RUN_ENDS, &o);
	return report_end(ctx, &o, weft_destroy_qp(qp));
}

/* ---- contexts ---- */

static void judged_free_context(struct ibv_context *ctx)
{
	report_deed(ctx, WEFT_RUN_CLOSES, NULL);
	weft_free_context(ctx);
}

static const struct verbs_context_ops object_ops = {
	.alloc_mw = judged_alloc_mw,
	.alloc_pd = judged_alloc_pd,
	.create_cq = judged_create_cq,
	.create_cq_ex = judged_create_cq_ex,
	.create_qp = judged_create_qp,
	.create_qp_ex = judged_create_qp_ex,
	.create_srq = judged_create_srq,
	.dealloc_mw = judged_dealloc_mw,
	.dealloc_pd = judged_dealloc_pd,
	.dereg_mr = judged_dereg_mr,
	.destroy_cq = judged_destroy_cq,
	.destroy_qp = judged_destroy_qp,
	.destroy_srq = judged_destroy_srq,
	.free_context = judged_free_context,
	.modify_qp = judged_modify_qp,
	.reg_mr = judged_reg_mr,
	.resize_cq = judged_resize_cq,
};

static const struct verbs_context_ops request_ops = {
	.poll_cq = weft_judged_poll_cq,
	.post_recv = weft_judged_post_recv,
	.post_send = weft_judged_post_send,
	.post_srq_recv = weft_judged_post_srq_recv,
};

void weft_judge_context(struct weft_context *ctx)
{
	if (!weft_run_judge ||
	    weft_run_judge(ctx->vctx.context.cmd_fd, WEFT_RUN_IS_JUDGED, &ctx->overwrites_fields))
		return;
	verbs_set_ops(&ctx->vctx, &object_ops);
	ctx->has_judged_requests = !ctx->posts_may_fail;
	if (ctx->has_judged_requests)
		verbs_set_ops(&ctx->vctx, &request_ops);
}
