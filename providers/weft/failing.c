// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Posting on a device on which it fails on demand (direct.h). These functions take the place of the
 * usual ones when the context is made, so that those have no test for it.
 */
#include <errno.h>

#include "direct.h"
#include "weft.h"

bool weft_posts_may_fail(int cmd_fd)
{
	const struct weft_run_request none = { .post = WEFT_RUN_NO_POST };

	return weft_run_fault && weft_run_fault(cmd_fd, &none) != ENOTTY;
}

/* A list beyond the limit is not read: the post refuses it. */
static uint64_t octets(const struct ibv_sge *sge, int n)
{
	uint64_t sum = 0;
	int i;

	for (i = 0; i < n && n <= WEFT_MAX_SGE; i++)
		sum += sge[i].length;
	return sum;
}

/* 0, an errno value, or one of WEFT_RUN_STATUS or WEFT_RUN_AFTER. */
static int ask(const struct ibv_context *ctx, const struct weft_run_request *r)
{
	int answer = weft_run_fault(ctx->cmd_fd, r);

	return answer == ENOTTY ? 0 : answer;
}

/* ---- requests to send ---- */

static int ask_about_wr(struct weft_qp *qp, const struct ibv_send_wr *wr)
{
	const struct ibv_qp *ibqp = &qp->vqp.qp;
	struct weft_run_request r = {
		.post = WEFT_RUN_POST_SEND, .handle = ibqp->handle,
		.size = octets(wr->sg_list, wr->num_sge),
	};
	bool in_memory = wr->num_sge > 0 && !(wr->send_flags & IBV_SEND_INLINE);
	int opcode = weft_sq_opcode(&qp->sq, wr->opcode);

	if (opcode >= 0 && !qp->sq.datagrams) {
		r.opcode = opcode;
		r.statuses = weft_sq_errors(r.opcode, in_memory);
	}
	return ask(ibqp->context, &r);
}

void weft_say_posted(const struct weft_qp *qp, int answer)
{
	const struct ibv_qp *ibqp = &qp->vqp.qp;
	const struct weft_run_request r = {
		.post = WEFT_RUN_AFTERWARDS, .handle = ibqp->handle, .statuses = answer,
	};

	ask(ibqp->context, &r);
}

/* As weft_post_send() of one request, which then fails. */
static int post_broken(struct weft_qp *qp, const struct ibv_send_wr *wr, int answer)
{
	bool kick = false, after = answer >= WEFT_RUN_AFTER;
	uint32_t at;
	int err;

	weft_lock(&qp->sq_lock);
	at = qp->sq.ring.idx;
	err = qp->reset ? EINVAL : weft_sq_add_wr(&qp->sq, wr);
	if (!err && !after)
		weft_sq_break_entry(&qp->sq, at, answer - WEFT_RUN_STATUS);
	if (!err)
		kick = weft_sq_publish(qp);
	weft_unlock(&qp->sq_lock);
	if (after)
		weft_say_posted(qp, answer);
	return kick ? weft_kick_qp(qp) : err;
}

static int post_one(struct weft_qp *qp, struct ibv_send_wr *wr)
{
	int answer = ask_about_wr(qp, wr);
	struct ibv_send_wr *bad;

	if (answer >= WEFT_RUN_STATUS)
		return post_broken(qp, wr, answer);
	return answer ?: weft_post_send(&qp->vqp.qp, wr, &bad);
}

/* One request at a time: those before a failed one are posted. */
int weft_failing_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	struct ibv_send_wr one;
	int err = 0;

	for (; wr; wr = wr->next) {
		one = *wr;
		one.next = NULL;
		err = post_one(to_weft_qp(qp), &one);
		if (err)
			break;
	}
	if (err)
		*bad_wr = wr;
	return err;
}

/* Several requests have no opcode in common, and none of them is made to fail. */
int weft_ask_about_batch(struct weft_qp *qp)
{
	const struct ibv_qp *ibqp = &qp->vqp.qp;
	struct weft_run_request r = { .post = WEFT_RUN_POST_SEND, .handle = ibqp->handle };
	const struct weft_sq_wqe *w = weft_uring_slot(&qp->sq.ring, qp->wr_first);
	uint32_t slots = qp->sq.ring.idx - qp->wr_first;
	int answer;

	if (!qp->wr_err)
		r.size = weft_sq_octets(&qp->sq, qp->wr_first);
	if (!qp->wr_err && slots && w->nslots == slots && !qp->sq.datagrams) {
		r.opcode = w->opcode;
		r.statuses = weft_sq_errors(w->opcode, w->num_sge && !(w->flags & WEFT_WR_INLINE));
	}
	answer = ask(ibqp->context, &r);
	if (answer < WEFT_RUN_STATUS || answer >= WEFT_RUN_AFTER)
		return answer;
	weft_sq_break_entry(&qp->sq, qp->wr_first, answer - WEFT_RUN_STATUS);
	return 0;
}

/* ---- receives ---- */

/* One receive, which may be made to complete in error. */
struct one_receive {
	struct ibv_recv_wr wr;
	struct ibv_sge list[WEFT_MAX_SGE];
};

/* Copies @wr, broken as a rule says: 0, or an errno value for the post to return. */
static int take_receive(struct one_receive *one, const struct ibv_context *ctx,
			enum weft_run_post post, uint32_t handle, const struct ibv_recv_wr *wr)
{
	const struct weft_run_request r = {
		.post = post, .handle = handle, .size = octets(wr->sg_list, wr->num_sge),
		.statuses = weft_rq_errors(wr),
	};
	int answer = ask(ctx, &r);

	one->wr = *wr;
	one->wr.next = NULL;
	if (answer < WEFT_RUN_STATUS)
		return answer;
	weft_rq_break_wr(&one->wr, one->list, answer - WEFT_RUN_STATUS);
	return 0;
}

int weft_failing_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct one_receive one;
	struct ibv_recv_wr *bad;
	int err = 0;

	for (; wr; wr = wr->next) {
		err = take_receive(&one, qp->context, WEFT_RUN_POST_RECV, qp->handle, wr) ?:
		      weft_post_recv(qp, &one.wr, &bad);
		if (err)
			break;
	}
	if (err)
		*bad_wr = wr;
	return err;
}

int weft_failing_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
			       struct ibv_recv_wr **bad_wr)
{
	struct one_receive one;
	struct ibv_recv_wr *bad;
	int err = 0;

	for (; wr; wr = wr->next) {
		err = take_receive(&one, srq->context, WEFT_RUN_POST_SRQ_RECV, srq->handle, wr) ?:
		      weft_post_srq_recv(srq, &one.wr, &bad);
		if (err)
			break;
	}
	if (err)
		*bad_wr = wr;
	return err;
}
