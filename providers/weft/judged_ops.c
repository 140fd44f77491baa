// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The functions of a context that is judged. They take the place of the usual ones when the context
 * is made, so that those have no test for it; objects are reported here, requests by judged.c. If
 * posts fail on demand (failing.c), objects are judged and requests are not.
 */
#include <errno.h>
#include <time.h>

#include "compat.h"
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

/* ---- objects that are gone ---- */

/* An object of the program's, whose handle is *@handle. */
static int end_object(const struct ibv_context *ctx, uint32_t kind, void *object, uint32_t *handle,
		      int (*destroy)(void *object))
{
	const struct weft_run_object o = {
		.kind = kind, .handle = *handle, .user = (uintptr_t)object,
	};
	int err;

	if (*handle == WEFT_GONE)
		return weft_judge_gone(ctx, kind, object);
	report_deed(ctx, WEFT_RUN_ENDS, &o);
	err = report_end(ctx, &o, destroy(object));
	if (!err)
		*handle = WEFT_GONE;
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
static int destroy_pd(void *pd)
{
	return weft_dealloc_pd(pd);
}

static int judged_dealloc_pd(struct ibv_pd *pd)
{
	if (to_weft_pd(pd)->of)
		return weft_dealloc_pd(pd);
	return end_object(pd->context, WEFT_RUN_PD, pd, &pd->handle, destroy_pd);
}

static void report_mr(enum weft_run_deed deed, const struct ibv_mr *mr,
		      struct weft_run_object *o)
{
	o->kind = WEFT_RUN_MR;
	o->handle = mr->handle;
	o->number = mr->lkey;
	o->pd = mr->pd->handle;
	o->length = mr->length;
	if (o->access & IBV_ACCESS_ZERO_BASED)
		o->iova = 0;
	report_deed(mr->context, deed, o);
}

static struct ibv_mr *judged_reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				    int access)
{
	struct ibv_mr *mr = weft_reg_mr(pd, addr, length, iova, access);
	struct weft_run_object o = {
		.addr = (uintptr_t)addr, .iova = iova, .access = access, .has_memory = true,
	};

	if (!mr)
		return NULL;
	/* libibverbs sets these later. */
	mr->pd = pd;
	mr->length = length;
	report_mr(WEFT_RUN_MADE, mr, &o);
	return mr;
}

/* libibverbs sets the region's fields later. */
static int judged_rereg_mr(struct verbs_mr *vmr, int flags, struct ibv_pd *pd, void *addr,
			   size_t length, int access)
{
	struct ibv_mr now = vmr->ibv_mr;
	struct weft_run_object o = {
		.access = flags & IBV_REREG_MR_CHANGE_ACCESS ? access : vmr->access,
		.has_memory = true,
	};
	int err = weft_rereg_mr(vmr, flags, pd, addr, length, access);

	if (err)
		return err;
	if (flags & IBV_REREG_MR_CHANGE_PD)
		now.pd = pd;
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		now.addr = addr;
		now.length = length;
	}
	now.lkey = vmr->ibv_mr.lkey;
	o.addr = o.iova = (uintptr_t)now.addr;
	report_mr(WEFT_RUN_CHANGED, &now, &o);
	return 0;
}

static struct ibv_mr *judged_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
					   uint64_t iova, int fd, int access)
{
	struct ibv_mr *mr = weft_reg_dmabuf_mr(pd, offset, length, iova, fd, access);
	struct weft_run_object o = { .iova = iova, .access = access };

	if (mr)
		report_mr(WEFT_RUN_MADE, mr, &o);
	return mr;
}

static struct ibv_mr *judged_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t off,
				       size_t len, unsigned int access)
{
	struct ibv_mr *mr = weft_reg_dm_mr(pd, dm, off, len, access);
	struct weft_run_object o = { .access = access };

	if (mr)
		report_mr(WEFT_RUN_MADE, mr, &o);
	return mr;
}

static int destroy_mr(void *mr)
{
	return weft_dereg_mr(verbs_get_mr(mr));
}

static int judged_dereg_mr(struct verbs_mr *vmr)
{
	return end_object(vmr->ibv_mr.context, WEFT_RUN_MR, &vmr->ibv_mr, &vmr->ibv_mr.handle,
			  destroy_mr);
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

static int destroy_mw(void *mw)
{
	return weft_dealloc_mw(mw);
}

static int judged_dealloc_mw(struct ibv_mw *mw)
{
	return end_object(mw->context, WEFT_RUN_MW, mw, &mw->handle, destroy_mw);
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

static int destroy_cq(void *cq)
{
	return weft_destroy_cq(cq);
}

static int judged_destroy_cq(struct ibv_cq *cq)
{
	struct weft_run_object o = { .kind = WEFT_RUN_CQ, .handle = cq->handle };

	if (cq->handle != WEFT_GONE)
		await_acknowledgement(cq, &o);
	return end_object(cq->context, WEFT_RUN_CQ, cq, &cq->handle, destroy_cq);
}

/* ---- shared receive queues, queue pairs ---- */

static struct ibv_srq *judged_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct ibv_srq *srq = weft_create_srq(pd, attr);
	struct weft_run_object o = { .kind = WEFT_RUN_SRQ, .pd = pd->handle };

	if (srq) {
		o.handle = srq->handle;
		o.size = attr->attr.max_wr;
		report_made(pd->context, &o);
	}
	return srq;
}

static int judged_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	struct weft_run_object o = {
		.kind = WEFT_RUN_SRQ, .handle = srq->handle, .pd = srq->pd->handle,
		.size = attr->max_wr,
	};
	int err = weft_modify_srq(srq, attr, mask);

	if (!err && mask & IBV_SRQ_MAX_WR)
		report_deed(srq->context, WEFT_RUN_CHANGED, &o);
	return err;
}

static int destroy_srq(void *srq)
{
	return weft_destroy_srq(srq);
}

static int judged_destroy_srq(struct ibv_srq *srq)
{
	return end_object(srq->context, WEFT_RUN_SRQ, srq, &srq->handle, destroy_srq);
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
	int err;

	if (qp->handle == WEFT_GONE)
		return weft_judge_gone(qp->context, WEFT_RUN_QP, qp);
	err = weft_modify_qp(qp, attr, mask);
	if (!err && mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RESET)
		report_deed(qp->context, WEFT_RUN_RESET, &o);
	if (!err && mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_ERR)
		report_deed(qp->context, WEFT_RUN_FAILED, &o);
	if (!err && mask & IBV_QP_AV && attr->ah_attr.is_global && !attr->ah_attr.grh.sgid_index)
		report_deed(qp->context, WEFT_RUN_GID_0, &o);
	return err;
}

static int destroy_qp(void *qp)
{
	return weft_destroy_qp(qp);
}

static int judged_destroy_qp(struct ibv_qp *qp)
{
	return end_object(qp->context, WEFT_RUN_QP, qp, &qp->handle, destroy_qp);
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
	.modify_srq = judged_modify_srq,
	.reg_dm_mr = judged_reg_dm_mr,
	.reg_dmabuf_mr = judged_reg_dmabuf_mr,
	.reg_mr = judged_reg_mr,
	.rereg_mr = judged_rereg_mr,
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
	    weft_run_judge(ctx->vctx.context.cmd_fd, WEFT_RUN_IS_JUDGED, &ctx->judging))
		return;
	verbs_set_ops(&ctx->vctx, &object_ops);
	ctx->has_judged_requests = !ctx->posts_may_fail;
	if (ctx->has_judged_requests)
		verbs_set_ops(&ctx->vctx, &request_ops);
}
