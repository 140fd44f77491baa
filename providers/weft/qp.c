// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Life of a queue pair. */
#include <errno.h>
#include <stdlib.h>

#include "abi.h"
#include "compat.h"
#include "weft.h"

static int set_up_sq(struct weft_sq *sq, int fd, const struct weft_ring_map *map,
		     const struct ibv_qp_cap *cap, uint64_t features, bool datagrams)
{
	int err;

	if (!map->stride || map->stride > WEFT_SQ_MAX_SLOTS || map->stride > map->slots)
		return EPROTO;
	err = weft_uring_map(&sq->ring, fd, map);
	if (err)
		return err;
	sq->features = features;
	sq->datagrams = datagrams;
	sq->max_slots = map->stride;
	sq->max_sge = cap->max_send_sge;
	sq->max_inline = cap->max_inline_data < WEFT_MAX_INLINE ? cap->max_inline_data :
								  WEFT_MAX_INLINE;
	return 0;
}

static int map_rings(struct weft_qp *qp, const struct weft_cmd_create_qp_resp *resp,
		     const struct ibv_qp_cap *cap, bool datagrams)
{
	struct ibv_context *ctx = qp->vqp.qp.context;
	int err;

	err = set_up_sq(&qp->sq, ctx->cmd_fd, &resp->sq, cap, to_weft_ctx(ctx)->features,
			datagrams);
	/* No receive ring: an SRQ serves, or the QP receives nothing. */
	if (err || !resp->rq.slots)
		return err;
	return weft_rq_set_up(&qp->rq, ctx->cmd_fd, &resp->rq, cap->max_recv_sge);
}

/* Releases the user's side; the kernel's QP is gone already. */
static void release_qp(struct weft_qp *qp)
{
	weft_uring_unmap(&qp->sq.ring);
	weft_uring_unmap(&qp->rq.ring);
	weft_lock_destroy(&qp->sq_lock);
	weft_lock_destroy(&qp->rq_lock);
}

static int create_qp(struct weft_qp *qp, struct ibv_context *ctx,
		     struct ibv_qp_init_attr_ex *attr)
{
	struct weft_cmd_create_qp cmd = {};
	struct weft_cmd_create_qp_resp resp = {};
	struct ibv_qp_init_attr_ex plain = *attr;
	int err;

	/* Not supported, and the command has no field for them. */
	plain.comp_mask &= ~IBV_QP_INIT_ATTR_CREATE_FLAGS;
	pthread_mutex_lock(&to_weft_ctx(ctx)->qp_mutex);
	err = ibv_cmd_create_qp_ex(ctx, &qp->vqp, &plain, &cmd.ibv_cmd, sizeof(cmd),
				   &resp.ibv_resp, sizeof(resp));
	pthread_mutex_unlock(&to_weft_ctx(ctx)->qp_mutex);
	if (err)
		return err;
	attr->cap = plain.cap;
	err = map_rings(qp, &resp, &attr->cap, attr->qp_type == IBV_QPT_UD);
	if (!err && attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		err = weft_wr_init(qp, attr->send_ops_flags);
	if (err)
		ibv_cmd_destroy_qp(&qp->vqp.qp);
	return err;
}

/*
 * A device with more types than RC checks the type itself; but XRC_RECV cannot be passed on: there
 * are no XRC domains.
 */
static bool may_be_type(struct ibv_context *ctx, enum ibv_qp_type type)
{
	return type == IBV_QPT_RC ||
	       (type != IBV_QPT_XRC_RECV && to_weft_ctx(ctx)->features & WEFT_FEATURE_ROCE_TYPES);
}

/* A PD; the flags may be present but must be zero. */
static bool is_supported(struct ibv_context *ctx, const struct ibv_qp_init_attr_ex *attr)
{
	const uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS |
			       IBV_QP_INIT_ATTR_CREATE_FLAGS;

	return may_be_type(ctx, attr->qp_type) && attr->comp_mask & IBV_QP_INIT_ATTR_PD &&
	       !(attr->comp_mask & ~known) &&
	       !(attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS && attr->create_flags);
}

struct ibv_qp *weft_create_qp_ex(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr)
{
	struct weft_qp *qp;
	int err;

	if (!is_supported(ctx, attr)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return NULL;
	weft_lock_init(&qp->sq_lock, weft_pd_is_one_threads(attr->pd));
	weft_lock_init(&qp->rq_lock, weft_pd_is_one_threads(attr->pd));
	err = create_qp(qp, ctx, attr);
	if (err) {
		release_qp(qp);
		free(qp);
		errno = err;
		return NULL;
	}
	return &qp->vqp.qp;
}

struct ibv_qp *weft_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ex = {
		.qp_context = attr->qp_context,
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.srq = attr->srq,
		.cap = attr->cap,
		.qp_type = attr->qp_type,
		.sq_sig_all = attr->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
	};
	struct ibv_qp *qp = weft_create_qp_ex(pd->context, &ex);

	if (qp)
		attr->cap = ex.cap;
	return qp;
}

int weft_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask,
		  struct ibv_qp_init_attr *init_attr)
{
	struct ibv_query_qp cmd;

	return ibv_cmd_query_qp(ibqp, attr, mask, init_attr, &cmd, sizeof(cmd));
}

static void forget_completions(struct weft_qp *qp)
{
	struct ibv_qp *ibqp = &qp->vqp.qp;

	weft_cq_forget_qp(to_weft_cq(ibqp->recv_cq), ibqp->qp_num);
	if (ibqp->send_cq != ibqp->recv_cq)
		weft_cq_forget_qp(to_weft_cq(ibqp->send_cq), ibqp->qp_num);
}

static void set_reset(struct weft_qp *qp, bool reset)
{
	weft_lock(&qp->sq_lock);
	weft_lock(&qp->rq_lock);
	qp->reset = reset;
	weft_unlock(&qp->rq_lock);
	weft_unlock(&qp->sq_lock);
}

/* The kernel has cleared its rings: start from slot 0, too. */
static int reset_qp(struct weft_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	struct ibv_modify_qp cmd = {};
	int err;

	weft_lock(&qp->sq_lock);
	weft_lock(&qp->rq_lock);
	err = ibv_cmd_modify_qp(&qp->vqp.qp, attr, mask, &cmd, sizeof(cmd));
	if (!err) {
		qp->sq.ring.idx = 0;
		qp->rq.ring.idx = 0;
		/* In RESET an RNIC's QP accepts work for the next connection, as RDMA verbs do. */
		qp->reset = qp->vqp.qp.context->device->transport_type == IBV_TRANSPORT_IB;
		forget_completions(qp);
	}
	weft_unlock(&qp->rq_lock);
	weft_unlock(&qp->sq_lock);
	return err;
}

int weft_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask)
{
	struct weft_qp *qp = to_weft_qp(ibqp);
	struct ibv_modify_qp cmd = {};
	int err;

	if (mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RESET)
		return reset_qp(qp, attr, mask);
	err = ibv_cmd_modify_qp(ibqp, attr, mask, &cmd, sizeof(cmd));
	if (!err && mask & IBV_QP_STATE)
		set_reset(qp, false);
	return err;
}

int weft_destroy_qp(struct ibv_qp *ibqp)
{
	struct weft_context *ctx = to_weft_ctx(ibqp->context);
	struct weft_qp *qp = to_weft_qp(ibqp);
	int err;

	pthread_mutex_lock(&ctx->qp_mutex);
	err = ibv_cmd_destroy_qp(ibqp);
	if (!err)
		forget_completions(qp);
	pthread_mutex_unlock(&ctx->qp_mutex);
	if (err)
		return err;
	release_qp(qp);
	weft_free_object(&ctx->vctx.context, qp);
	return 0;
}
