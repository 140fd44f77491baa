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
	return weft_run_fault && weft_run_fault(cmd_fd, WEFT_RUN_NO_POST, 0, 0) != ENOTTY;
}

/* A count beyond the limit, which the post refuses, is not followed. */
static uint64_t octets(const struct ibv_sge *sge, int n)
{
	uint64_t sum = 0;
	int i;

	for (i = 0; i < n && n <= WEFT_MAX_SGE; i++)
		sum += sge[i].length;
	return sum;
}

static int ask(const struct ibv_context *ctx, enum weft_run_post post, uint32_t handle,
	       uint64_t size)
{
	int err = weft_run_fault(ctx->cmd_fd, post, handle, size);

	return err == ENOTTY ? 0 : err;
}

/* One request at a time: those before a failed one are posted. */
int weft_failing_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	struct ibv_send_wr one, *bad;
	int err = 0;

	for (; wr; wr = wr->next) {
		one = *wr;
		one.next = NULL;
		err = ask(qp->context, WEFT_RUN_POST_SEND, qp->handle,
			  octets(wr->sg_list, wr->num_sge)) ?: weft_post_send(qp, &one, &bad);
		if (err)
			break;
	}
	if (err)
		*bad_wr = wr;
	return err;
}

int weft_failing_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct ibv_recv_wr one, *bad;
	int err = 0;

	for (; wr; wr = wr->next) {
		one = *wr;
		one.next = NULL;
		err = ask(qp->context, WEFT_RUN_POST_RECV, qp->handle,
			  octets(wr->sg_list, wr->num_sge)) ?: weft_post_recv(qp, &one, &bad);
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
	struct ibv_recv_wr one, *bad;
	int err = 0;

	for (; wr; wr = wr->next) {
		one = *wr;
		one.next = NULL;
		err = ask(srq->context, WEFT_RUN_POST_SRQ_RECV, srq->handle,
			  octets(wr->sg_list, wr->num_sge)) ?: weft_post_srq_recv(srq, &one, &bad);
		if (err)
			break;
	}
	if (err)
		*bad_wr = wr;
	return err;
}

int weft_ask_about_batch(const struct weft_qp *qp)
{
	const struct ibv_qp *ibqp = &qp->vqp.qp;

	return ask(ibqp->context, WEFT_RUN_POST_SEND, ibqp->handle, 0);
}
