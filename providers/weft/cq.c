// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Completion queues. */
#include <errno.h>
#include <stdlib.h>

#include "abi.h"
#include "weft.h"

struct ibv_cq *weft_create_cq(struct ibv_context *ctx, int entries,
			      struct ibv_comp_channel *channel, int comp_vector)
{
	struct weft_cmd_create_cq cmd = {};
	struct weft_cmd_create_cq_resp resp = {};
	struct weft_cq *cq;
	int err;

	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return NULL;
	pthread_spin_init(&cq->lock, PTHREAD_PROCESS_PRIVATE);
	err = ibv_cmd_create_cq(ctx, entries, channel, comp_vector, &cq->vcq.cq, &cmd.ibv_cmd,
				sizeof(cmd), &resp.ibv_resp, sizeof(resp));
	if (err)
		goto free_cq;
	err = weft_uring_map(&cq->ring, ctx->cmd_fd, &resp.cq);
	if (err)
		goto destroy_cq;
	return &cq->vcq.cq;

destroy_cq:
	ibv_cmd_destroy_cq(&cq->vcq.cq);
free_cq:
	pthread_spin_destroy(&cq->lock);
	free(cq);
	errno = err;
	return NULL;
}

/*
 * The kernel moves to its new ring what was not yet consumed, and the arm word.
 * Nobody may consume or arm meanwhile. It has let go of the old ring when it
 * answers; so if the new one cannot be mapped the CQ is lost, and polls fail.
 */
int weft_resize_cq(struct ibv_cq *ibcq, int entries)
{
	struct weft_cq *cq = to_weft_cq(ibcq);
	struct weft_cmd_resize_cq cmd = {};
	struct weft_cmd_resize_cq_resp resp = {};
	struct weft_uring new = {};
	int err;

	if (!(to_weft_ctx(ibcq->context)->features & WEFT_FEATURE_RESIZE))
		return EOPNOTSUPP;
	pthread_spin_lock(&cq->lock);
	err = ibv_cmd_resize_cq(ibcq, entries, &cmd.ibv_cmd, sizeof(cmd), &resp.ibv_resp,
				sizeof(resp));
	if (!err) {
		err = weft_uring_map(&new, ibcq->context->cmd_fd, &resp.cq);
		weft_uring_unmap(&cq->ring);
		cq->ring = new;
		if (!err)
			cq->ring.idx = cq->ring.ring->user_idx;
	}
	pthread_spin_unlock(&cq->lock);
	return err;
}

int weft_destroy_cq(struct ibv_cq *ibcq)
{
	struct weft_cq *cq = to_weft_cq(ibcq);
	int err = ibv_cmd_destroy_cq(ibcq);

	/* EBUSY while a QP uses it: then all stays as it is. */
	if (err)
		return err;
	weft_uring_unmap(&cq->ring);
	pthread_spin_destroy(&cq->lock);
	free(cq);
	return 0;
}

/* Nothing was found: does the kernel, or another host, wait to be told so? */
static bool wants_kick(struct weft_cq *cq)
{
	if (to_weft_ctx(cq->vcq.cq.context)->features & WEFT_FEATURE_POLL_KICK)
		return true;
	return __atomic_load_n(&cq->posted, __ATOMIC_RELAXED) &&
	       __atomic_exchange_n(&cq->posted, false, __ATOMIC_RELAXED) &&
	       weft_uring_says_poll(&cq->ring);
}

static int poll_ring(struct weft_cq *cq, int num, struct ibv_wc *wc, bool *kick)
{
	struct weft_uring *r = &cq->ring;
	int n = 0, left;

	pthread_spin_lock(&cq->lock);
	*kick = false;
	if (!r->slots) {
		pthread_spin_unlock(&cq->lock);
		return -EIO;
	}
	left = weft_uring_filled(r);
	while (n < num && left--)
		weft_cqe_decode(weft_uring_slot(r, r->idx++), &wc[n++]);
	if (n)
		weft_uring_release(r);
	/* What was published before the CQ died is taken first: look again behind the flag. */
	else if (num > 0 && weft_uring_overflown(r) && !weft_uring_filled(r))
		n = -EIO;
	*kick = !n && wants_kick(cq);
	pthread_spin_unlock(&cq->lock);
	return n;
}

/* The kernel, or another host of the stack, moves bytes in our context. */
static void kick_cq(struct weft_cq *cq)
{
	struct ibv_cq *ibcq = &cq->vcq.cq;
	DECLARE_COMMAND_BUFFER(cmd, UVERBS_OBJECT_CQ, WEFT_METHOD_CQ_KICK, 1);

	fill_attr_in_obj(cmd, WEFT_ATTR_CQ_KICK_HANDLE, ibcq->handle);
	execute_ioctl(ibcq->context, cmd);
}

int weft_poll_cq(struct ibv_cq *ibcq, int num, struct ibv_wc *wc)
{
	struct weft_cq *cq = to_weft_cq(ibcq);
	bool kick;
	int n = poll_ring(cq, num, wc, &kick);

	if (!kick)
		return n;
	kick_cq(cq);
	return poll_ring(cq, num, wc, &kick);
}

int weft_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	struct weft_cq *cq = to_weft_cq(ibcq);
	int err = 0;

	/* The lock keeps the ring where it is, against a resize. */
	pthread_spin_lock(&cq->lock);
	if (cq->ring.slots)
		weft_uring_arm(&cq->ring, solicited_only ? WEFT_ARM_SOLICITED : WEFT_ARM_NEXT);
	else
		err = EIO;
	pthread_spin_unlock(&cq->lock);
	return err;
}

void weft_cq_forget_qp(struct weft_cq *cq, uint32_t qp_num)
{
	pthread_spin_lock(&cq->lock);
	if (cq->ring.slots)
		weft_cq_clean(&cq->ring, qp_num);
	pthread_spin_unlock(&cq->lock);
}
