// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Completion queues. */
#include <errno.h>
#include <stdlib.h>

#include "abi.h"
#include "compat.h"
#include "weft.h"

#define WC_FLAGS (IBV_WC_STANDARD_FLAGS | WC_STAMPS)
#define WC_STAMPS ((uint64_t)(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | \
			      IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK))

static struct weft_cq *alloc_cq(bool left_out)
{
	struct weft_cq *cq = calloc(1, sizeof(*cq));

	if (cq)
		weft_lock_init(&cq->lock, left_out);
	return cq;
}

static void release_cq(struct weft_cq *cq)
{
	weft_uring_unmap(&cq->ring);
	weft_lock_destroy(&cq->lock);
}

/* The kernel has made @cq (@err: has not): maps its ring, or frees it and sets errno. */
static struct weft_cq *finish_cq(struct weft_cq *cq, int err, const struct weft_ring_map *map)
{
	if (!err) {
		err = weft_uring_map(&cq->ring, cq->vcq.cq.context->cmd_fd, map);
		if (err)
			ibv_cmd_destroy_cq(&cq->vcq.cq);
	}
	if (!err)
		return cq;
	release_cq(cq);
	free(cq);
	errno = err;
	return NULL;
}

struct ibv_cq *weft_create_cq(struct ibv_context *ctx, int entries,
			      struct ibv_comp_channel *channel, int comp_vector)
{
	struct weft_cmd_create_cq cmd = {};
	struct weft_cmd_create_cq_resp resp = {};
	struct weft_cq *cq = alloc_cq(false);
	int err;

	if (!cq)
		return NULL;
	err = ibv_cmd_create_cq(ctx, entries, channel, comp_vector, &cq->vcq.cq, &cmd.ibv_cmd,
				sizeof(cmd), &resp.ibv_resp, sizeof(resp));
	cq = finish_cq(cq, err, &resp.cq);
	return cq ? &cq->vcq.cq : NULL;
}

/*
 * An errno value. IGNORE_OVERRUN is refused: the kernel does not overwrite completions that were
 * not polled, so a full CQ drops new ones and reports an overflow.
 */
static int check_cq_ex(struct ibv_context *ctx, const struct ibv_cq_init_attr_ex *attr)
{
	if (attr->comp_mask & ~(IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD) ||
	    attr->wc_flags & ~WC_FLAGS)
		return EOPNOTSUPP;
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS &&
	    attr->flags & ~IBV_CREATE_CQ_ATTR_SINGLE_THREADED)
		return EOPNOTSUPP;
	/* Only a parent domain has settings for a CQ. */
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD &&
	    (!attr->parent_domain || !to_weft_pd(attr->parent_domain)->of))
		return EINVAL;
	if (attr->wc_flags & WC_STAMPS &&
	    !(to_weft_ctx(ctx)->features & WEFT_FEATURE_TIMESTAMP))
		return EOPNOTSUPP;
	return 0;
}

static bool is_one_threads(const struct ibv_cq_init_attr_ex *attr)
{
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS &&
	    attr->flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED)
		return true;
	return attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD &&
	       weft_pd_is_one_threads(attr->parent_domain);
}

struct ibv_cq_ex *weft_create_cq_ex(struct ibv_context *ctx, struct ibv_cq_init_attr_ex *attr)
{
	struct weft_cmd_create_cq_ex cmd = {};
	struct weft_cmd_create_cq_ex_resp resp = {};
	struct weft_cq *cq;
	int err = check_cq_ex(ctx, attr);

	if (err) {
		errno = err;
		return NULL;
	}
	cq = alloc_cq(is_one_threads(attr));
	if (!cq)
		return NULL;
	err = ibv_cmd_create_cq_ex(ctx, attr, NULL, &cq->vcq, &cmd.ibv_cmd, sizeof(cmd),
				   &resp.ibv_resp, sizeof(resp), 0);
	cq = finish_cq(cq, err, &resp.cq);
	if (!cq)
		return NULL;
	weft_cq_poll_init(cq, attr->wc_flags);
	return &cq->vcq.cq_ex;
}

/*
 * The kernel moves completions that were not consumed, and the arm word, to the new ring; polling
 * and arming are locked out meanwhile. It frees the old ring before it answers, so if the new one
 * cannot be mapped the CQ is lost and polls fail.
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
	weft_lock(&cq->lock);
	err = ibv_cmd_resize_cq(ibcq, entries, &cmd.ibv_cmd, sizeof(cmd), &resp.ibv_resp,
				sizeof(resp));
	if (!err) {
		err = weft_uring_map(&new, ibcq->context->cmd_fd, &resp.cq);
		weft_uring_unmap(&cq->ring);
		cq->ring = new;
		if (!err)
			cq->ring.idx = cq->ring.ring->user_idx;
	}
	weft_unlock(&cq->lock);
	return err;
}

int weft_destroy_cq(struct ibv_cq *ibcq)
{
	struct weft_cq *cq = to_weft_cq(ibcq);
	int err = ibv_cmd_destroy_cq(ibcq);

	/* EBUSY while a QP uses it: nothing has changed. */
	if (err)
		return err;
	release_cq(cq);
	weft_free_object(ibcq->context, cq);
	return 0;
}

WEFT_JUDGE_INLINE int poll_ring(struct weft_cq *cq, int num, struct ibv_wc *wc, bool *kick,
				bool is_judged)
{
	struct weft_uring *r = &cq->ring;
	int n = 0, left, i;

	weft_lock(&cq->lock);
	*kick = false;
	if (!r->slots) {
		weft_unlock(&cq->lock);
		return -EIO;
	}
	left = weft_uring_filled(r);
	while (n < num && left--)
		weft_cqe_decode(weft_uring_slot(r, r->idx++), &wc[n++]);
	for (i = 0; is_judged && i < n; i++)
		weft_judge_completion(&cq->vcq.cq, &wc[i]);
	if (n)
		weft_uring_release(r);
	/*
	 * Completions published before the overflow are still delivered: check again after the
	 * flag.
	 */
	else if (num > 0 && weft_uring_overflown(r) && !weft_uring_filled(r))
		n = -EIO;
	*kick = !n && weft_cq_wants_kick(cq);
	weft_unlock(&cq->lock);
	return n;
}

WEFT_JUDGE_INLINE int poll_cq(struct ibv_cq *ibcq, int num, struct ibv_wc *wc, bool is_judged)
{
	struct weft_cq *cq = to_weft_cq(ibcq);
	bool kick;
	int n = poll_ring(cq, num, wc, &kick, is_judged);

	if (!kick)
		return n;
	weft_cq_kick(cq);
	return poll_ring(cq, num, wc, &kick, is_judged);
}

int weft_poll_cq(struct ibv_cq *ibcq, int num, struct ibv_wc *wc)
{
	return poll_cq(ibcq, num, wc, false);
}

int weft_judged_poll_cq(struct ibv_cq *ibcq, int num, struct ibv_wc *wc)
{
	return poll_cq(ibcq, num, wc, true);
}

int weft_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	struct weft_cq *cq = to_weft_cq(ibcq);
	int err = 0;

	/* Under the lock no resize replaces the ring. */
	weft_lock(&cq->lock);
	if (cq->ring.slots)
		weft_uring_arm(&cq->ring, solicited_only ? WEFT_ARM_SOLICITED : WEFT_ARM_NEXT);
	else
		err = EIO;
	weft_unlock(&cq->lock);
	return err;
}

void weft_cq_forget_qp(struct weft_cq *cq, uint32_t qp_num)
{
	weft_lock(&cq->lock);
	if (cq->ring.slots)
		weft_cq_clean(&cq->ring, qp_num);
	weft_unlock(&cq->lock);
}
