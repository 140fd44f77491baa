// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Shared receive queues. */
#include <errno.h>
#include <stdlib.h>

#include "abi.h"
#include "weft.h"

int weft_rq_set_up(struct weft_rq *rq, int fd, const struct weft_ring_map *map, uint32_t max_sge)
{
	size_t need = offsetof(struct weft_rq_wqe, data) + max_sge * sizeof(struct weft_sge);
	int err;

	/* An entry must hold what the kernel granted, and must not wrap. */
	if (!map->stride || map->slots % map->stride ||
	    (uint64_t)map->stride * WEFT_SLOT_SIZE < need)
		return EPROTO;
	err = weft_uring_map(&rq->ring, fd, map);
	if (err)
		return err;
	rq->stride = map->stride;
	rq->max_sge = max_sge;
	return 0;
}

struct ibv_srq *weft_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct weft_cmd_create_srq cmd = {};
	struct weft_cmd_create_srq_resp resp = {};
	struct weft_srq *srq;
	int err;

	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return NULL;
	weft_lock_init(&srq->lock, weft_pd_is_one_threads(pd));
	err = ibv_cmd_create_srq(pd, &srq->vsrq.srq, attr, &cmd.ibv_cmd, sizeof(cmd),
				 &resp.ibv_resp, sizeof(resp));
	if (err)
		goto free_srq;
	err = weft_rq_set_up(&srq->rq, pd->context->cmd_fd, &resp.srq, attr->attr.max_sge);
	if (err)
		goto destroy_srq;
	return &srq->vsrq.srq;

destroy_srq:
	ibv_cmd_destroy_srq(&srq->vsrq.srq);
free_srq:
	weft_lock_destroy(&srq->lock);
	free(srq);
	errno = err;
	return NULL;
}

/* The command of modify_srq has no answer that could describe the new ring. */
static int cmd_resize_srq(struct ibv_srq *ibsrq, uint32_t max_wr,
			  struct weft_modify_srq_resp *resp)
{
	DECLARE_COMMAND_BUFFER(cmd, UVERBS_OBJECT_SRQ, WEFT_METHOD_SRQ_RESIZE, 3);

	fill_attr_in_obj(cmd, WEFT_ATTR_SRQ_RESIZE_HANDLE, ibsrq->handle);
	fill_attr_in_uint32(cmd, WEFT_ATTR_SRQ_RESIZE_MAX_WR, max_wr);
	fill_attr_out(cmd, WEFT_ATTR_SRQ_RESIZE_RESP, resp, sizeof(*resp));
	return execute_ioctl(ibsrq->context, cmd);
}

/*
 * The kernel moves receives that no QP has taken to the new ring; posting is locked out meanwhile.
 * It frees the old ring before it answers, so if the new one cannot be mapped the SRQ is lost and
 * posts fail.
 */
static int resize_srq(struct weft_srq *srq, uint32_t max_wr)
{
	struct ibv_srq *ibsrq = &srq->vsrq.srq;
	struct weft_modify_srq_resp resp = {};
	struct weft_rq new = {};
	int err;

	if (!(to_weft_ctx(ibsrq->context)->features & WEFT_FEATURE_RESIZE))
		return EOPNOTSUPP;
	weft_lock(&srq->lock);
	err = cmd_resize_srq(ibsrq, max_wr, &resp);
	if (!err) {
		err = weft_rq_set_up(&new, ibsrq->context->cmd_fd, &resp.srq, srq->rq.max_sge);
		weft_uring_unmap(&srq->rq.ring);
		srq->rq = new;
		if (!err)
			srq->rq.ring.idx = srq->rq.ring.ring->user_idx;
	}
	weft_unlock(&srq->lock);
	return err;
}

int weft_modify_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr, int mask)
{
	struct ibv_modify_srq cmd = {};
	int err = 0;

	if (mask & IBV_SRQ_MAX_WR)
		err = resize_srq(to_weft_srq(ibsrq), attr->max_wr);
	mask &= ~IBV_SRQ_MAX_WR;
	if (err || !mask)
		return err;
	return ibv_cmd_modify_srq(ibsrq, attr, mask, &cmd, sizeof(cmd));
}

int weft_query_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr)
{
	struct ibv_query_srq cmd;

	return ibv_cmd_query_srq(ibsrq, attr, &cmd, sizeof(cmd));
}

int weft_destroy_srq(struct ibv_srq *ibsrq)
{
	struct weft_srq *srq = to_weft_srq(ibsrq);
	int err = ibv_cmd_destroy_srq(ibsrq);

	/* EBUSY while a QP uses it: nothing has changed. */
	if (err)
		return err;
	weft_uring_unmap(&srq->rq.ring);
	weft_lock_destroy(&srq->lock);
	weft_free_object(ibsrq->context, srq);
	return 0;
}

static int kick_srq(struct ibv_srq *ibsrq)
{
	int err;

	do {
		DECLARE_COMMAND_BUFFER(cmd, UVERBS_OBJECT_SRQ, WEFT_METHOD_SRQ_KICK, 1);

		fill_attr_in_obj(cmd, WEFT_ATTR_SRQ_KICK_HANDLE, ibsrq->handle);
		err = execute_ioctl(ibsrq->context, cmd);
	} while (err == EINTR);
	return err;
}

WEFT_JUDGE_INLINE int post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr,
				    struct ibv_recv_wr **bad_wr, const void *caller)
{
	struct weft_srq *srq = to_weft_srq(ibsrq);
	struct ibv_recv_wr *first = wr;
	int err = 0, kick_err;
	uint32_t at;
	bool kick;

	weft_lock(&srq->lock);
	if (!srq->rq.ring.slots) {
		weft_unlock(&srq->lock);
		*bad_wr = wr;
		return EIO;
	}
	at = srq->rq.ring.idx;
	for (; wr; wr = wr->next) {
		err = weft_rq_add_wr(&srq->rq, wr);
		if (err) {
			*bad_wr = wr;
			break;
		}
	}
	if (caller)
		weft_judge_receives(NULL, ibsrq, &srq->rq, at, caller);
	kick = weft_uring_publish(&srq->rq.ring);
	weft_unlock(&srq->lock);

	/* Set while a message waits for a receive, if WEFT_FEATURE_SRQ_KICK is in force. */
	kick_err = kick ? kick_srq(ibsrq) : 0;
	if (kick_err && !err) {
		*bad_wr = first;
		err = kick_err;
	}
	return err;
}

int weft_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	return post_srq_recv(ibsrq, wr, bad_wr, NULL);
}

int weft_judged_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr,
			      struct ibv_recv_wr **bad_wr)
{
	return post_srq_recv(ibsrq, wr, bad_wr, WEFT_CALLER);
}
