// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Posting by the plain verbs, and the doorbell. */
#include <errno.h>

#include "direct.h"
#include "weft.h"

int weft_kick(struct ibv_context *ctx, uint16_t object, uint32_t handle)
{
	return weft_run_kick ? weft_run_kick(ctx->cmd_fd, object, handle) : ENOTTY;
}

int weft_kick_qp(struct weft_qp *qp)
{
	struct ibv_qp *ibqp = &qp->vqp.qp;
	int err = weft_kick(ibqp->context, UVERBS_OBJECT_QP, ibqp->handle);

	if (err != ENOTTY)
		return err;
	do {
		DECLARE_COMMAND_BUFFER(cmd, UVERBS_OBJECT_QP, WEFT_METHOD_QP_KICK, 1);

		fill_attr_in_obj(cmd, WEFT_ATTR_QP_KICK_HANDLE, ibqp->handle);
		err = execute_ioctl(ibqp->context, cmd);
	} while (err == EINTR);
	return err;
}

/* The judge refuses *@wr, and what follows: 0 if it does not. */
static int judge_posted(struct weft_qp *qp, uint32_t at, const void *caller,
			struct ibv_send_wr *first, struct ibv_send_wr **wr)
{
	uint32_t n;
	int err = weft_judge_sends(qp, at, caller, &n);

	if (err)
		for (*wr = first; n; n--)
			*wr = (*wr)->next;
	return err;
}

/* @caller: NULL, or the program's instruction, for the judge. */
WEFT_JUDGE_INLINE int post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr,
				struct ibv_send_wr **bad_wr, const void *caller)
{
	struct weft_qp *qp = to_weft_qp(ibqp);
	struct ibv_send_wr *first = wr;
	uint32_t at;
	bool kick = false;
	int err, kick_err;

	weft_lock(&qp->sq_lock);
	at = qp->sq.ring.idx;
	err = qp->reset ? EINVAL : 0;
	for (; wr && !err; wr = wr->next) {
		err = weft_sq_add_wr(&qp->sq, wr);
		if (err)
			break;
	}
	if (caller)
		err = judge_posted(qp, at, caller, first, &wr) ?: err;
	if (wr != first)
		kick = weft_sq_publish(qp);
	weft_unlock(&qp->sq_lock);
	if (err)
		*bad_wr = wr;

	/* Without the lock: the kernel may send for a while in this context. */
	kick_err = kick ? weft_kick_qp(qp) : 0;
	if (kick_err && !err) {
		/* The device is gone: none of these will ever complete. */
		*bad_wr = first;
		err = kick_err;
	}
	return err;
}

int weft_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	return post_send(ibqp, wr, bad_wr, NULL);
}

int weft_judged_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	if (ibqp->handle == WEFT_GONE) {
		*bad_wr = wr;
		return weft_judge_gone(ibqp->context, WEFT_RUN_QP, ibqp);
	}
	return post_send(ibqp, wr, bad_wr, WEFT_CALLER);
}

int weft_bind_mw(struct ibv_qp *ibqp, struct ibv_mw *mw, struct ibv_mw_bind *how)
{
	struct weft_qp *qp = to_weft_qp(ibqp);
	uint32_t rkey = ibv_inc_rkey(mw->rkey);
	const struct weft_sq_head h = {
		.wr_id = how->wr_id,
		.opcode = WEFT_WR_BIND_MW,
		.flags = weft_wr_flags(how->send_flags),
	};
	bool kick = false;
	uint32_t at, n;
	int err;

	if (!(qp->sq.features & WEFT_FEATURE_MW))
		return EOPNOTSUPP;
	weft_lock(&qp->sq_lock);
	at = qp->sq.ring.idx;
	err = weft_sq_add_bind(&qp->sq, &h, rkey, &how->bind_info);
	if (to_weft_ctx(ibqp->context)->has_judged_requests)
		err = weft_judge_sends(qp, at, WEFT_CALLER, &n) ?: err;
	if (!err)
		kick = weft_sq_publish(qp);
	weft_unlock(&qp->sq_lock);
	if (kick)
		err = weft_kick_qp(qp);
	if (!err)
		mw->rkey = rkey;
	return err;
}

WEFT_JUDGE_INLINE int post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr,
				struct ibv_recv_wr **bad_wr, const void *caller)
{
	struct weft_qp *qp = to_weft_qp(ibqp);
	struct ibv_recv_wr *first = wr;
	uint32_t at;
	bool kick = false;
	int err, kick_err;

	if (!qp->rq.ring.slots) {
		*bad_wr = wr;
		return EINVAL;
	}
	weft_lock(&qp->rq_lock);
	at = qp->rq.ring.idx;
	err = qp->reset ? EINVAL : 0;
	for (; wr && !err; wr = wr->next) {
		err = weft_rq_add_wr(&qp->rq, wr);
		if (err)
			break;
	}
	if (caller)
		weft_judge_receives(ibqp, NULL, &qp->rq, at, caller);
	if (wr != first)
		kick = weft_uring_publish(&qp->rq.ring);
	weft_unlock(&qp->rq_lock);
	if (err)
		*bad_wr = wr;

	/* Set once the QP takes no more receives: the kernel flushes these. */
	kick_err = kick ? weft_kick_qp(qp) : 0;
	if (kick_err && !err) {
		*bad_wr = first;
		err = kick_err;
	}
	return err;
}

int weft_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	return post_recv(ibqp, wr, bad_wr, NULL);
}

int weft_judged_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	if (ibqp->handle == WEFT_GONE) {
		*bad_wr = wr;
		return weft_judge_gone(ibqp->context, WEFT_RUN_QP, ibqp);
	}
	return post_recv(ibqp, wr, bad_wr, WEFT_CALLER);
}
