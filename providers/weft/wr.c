// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Posting by ibv_wr_*: wr_start takes the send queue's lock; each builder stores the request's
 * head; the setter of its data, or the builder of a request without data, appends it to the ring;
 * wr_complete publishes all of them, or none if any failed.
 */
#include <endian.h>
#include <errno.h>

#include "compat.h"
#include "direct.h"
#include "weft.h"

#define BASE_OPS (IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_READ | \
		  IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_SEND_WITH_INV)
#define IMM_OPS (IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND_WITH_IMM)
#define ATOMIC_OPS (IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)

static struct weft_qp *to_qp(struct ibv_qp_ex *ex)
{
	return container_of(ex, struct weft_qp, vqp.qp_ex);
}

/* wr_complete returns the first error. */
static void note(struct weft_qp *qp, int err)
{
	if (!qp->wr_err)
		qp->wr_err = err;
}

static void wr_start(struct ibv_qp_ex *ex)
{
	struct weft_qp *qp = to_qp(ex);

	weft_lock(&qp->sq_lock);
	qp->wr_first = qp->sq.ring.idx;
	qp->wr_err = qp->reset ? EINVAL : 0;
}

static int wr_complete(struct ibv_qp_ex *ex)
{
	struct weft_qp *qp = to_qp(ex);
	int err = qp->wr_err;
	bool kick = false;

	if (err)
		qp->sq.ring.idx = qp->wr_first;
	else if (qp->sq.ring.idx != qp->wr_first)
		kick = weft_sq_publish(qp);
	weft_unlock(&qp->sq_lock);
	return kick ? weft_kick_qp(qp) : err;
}

static void wr_abort(struct ibv_qp_ex *ex)
{
	struct weft_qp *qp = to_qp(ex);

	qp->sq.ring.idx = qp->wr_first;
	weft_unlock(&qp->sq_lock);
}

/* In place of wr_complete() if it is reported to a judge. */
static int wr_complete_judged(struct ibv_qp_ex *ex)
{
	struct weft_qp *qp = to_qp(ex);
	uint32_t n;

	if (!qp->wr_err)
		qp->wr_err = weft_judge_room(qp, qp->wr_first);
	if (!qp->wr_err)
		weft_judge_sends(qp, qp->wr_first, WEFT_CALLER, &n);
	return wr_complete(ex);
}

/* And on a device on which posts fail on demand. */
static int wr_complete_or_fail(struct ibv_qp_ex *ex)
{
	int answer = weft_ask_about_batch(to_qp(ex)), err;

	if (answer && answer < WEFT_RUN_AFTER) {
		wr_abort(ex);
		return answer;
	}
	err = wr_complete(ex);
	if (answer)
		weft_say_posted(to_qp(ex), answer);
	return err;
}

static struct weft_sq_head *begin(struct weft_qp *qp, uint8_t opcode)
{
	qp->wr_at = qp->sq.ring.idx;
	qp->wr_head = (struct weft_sq_head){
		.wr_id = qp->vqp.qp_ex.wr_id,
		.opcode = opcode,
		.flags = weft_wr_flags(qp->vqp.qp_ex.wr_flags),
	};
	return &qp->wr_head;
}

static struct weft_sq_head *begin_remote(struct weft_qp *qp, uint8_t opcode, uint32_t rkey,
					 uint64_t remote_addr)
{
	struct weft_sq_head *h = begin(qp, opcode);

	h->rkey = rkey;
	h->remote_addr = remote_addr;
	return h;
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	begin_remote(to_qp(ex), WEFT_WR_WRITE, rkey, remote_addr);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
			      __be32 imm)
{
	begin_remote(to_qp(ex), WEFT_WR_WRITE_IMM, rkey, remote_addr)->imm = be32toh(imm);
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	begin_remote(to_qp(ex), WEFT_WR_READ, rkey, remote_addr);
}

static void wr_send(struct ibv_qp_ex *ex)
{
	begin(to_qp(ex), WEFT_WR_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm)
{
	begin(to_qp(ex), WEFT_WR_SEND_IMM)->imm = be32toh(imm);
}

static void wr_send_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	begin(to_qp(ex), WEFT_WR_SEND_INV)->inv_stag = rkey;
}

static void wr_local_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	struct weft_qp *qp = to_qp(ex);

	begin(qp, WEFT_WR_LOCAL_INV)->inv_stag = rkey;
	note(qp, weft_sq_add_none(&qp->sq, &qp->wr_head));
}

static void wr_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *info)
{
	struct weft_qp *qp = to_qp(ex);

	begin(qp, WEFT_WR_BIND_MW);
	note(qp, weft_sq_add_bind_2(&qp->sq, &qp->wr_head, mw, rkey, info));
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
			      uint64_t compare, uint64_t swap)
{
	struct weft_qp *qp = to_qp(ex);

	begin_remote(qp, WEFT_WR_CMP_SWAP, rkey, remote_addr);
	qp->wr_atomic = (struct weft_wr_atomic){ .compare = compare, .swap_add = swap };
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
				uint64_t add)
{
	struct weft_qp *qp = to_qp(ex);

	begin_remote(qp, WEFT_WR_FETCH_ADD, rkey, remote_addr);
	qp->wr_atomic = (struct weft_wr_atomic){ .swap_add = add };
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t num_sge, const struct ibv_sge *sgl)
{
	struct weft_qp *qp = to_qp(ex);

	switch (qp->wr_head.opcode) {
	case WEFT_WR_CMP_SWAP:
	case WEFT_WR_FETCH_ADD:
		note(qp, num_sge == 1 ? weft_sq_add_atomic(&qp->sq, &qp->wr_head, &qp->wr_atomic,
							   sgl) : EINVAL);
		return;
	case WEFT_WR_READ:
		if (num_sge > 1) {
			note(qp, EINVAL);
			return;
		}
		break;
	default:
		break;
	}
	note(qp, weft_sq_add_sges(&qp->sq, &qp->wr_head, sgl, num_sge));
}

static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
	struct ibv_sge sge = { .addr = addr, .length = length, .lkey = lkey };

	wr_set_sge_list(ex, 1, &sge);
}

/* May be called before or after the data is set. */
static void wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	struct weft_qp *qp = to_qp(ex);

	if (!qp->sq.datagrams) {
		note(qp, EINVAL);
		return;
	}
	qp->wr_head.ud = weft_ah_address(ah, qpn, qkey);
	if (qp->sq.ring.idx != qp->wr_at)
		weft_sq_readdress(&qp->sq, qp->wr_at, &qp->wr_head.ud);
}

static bool takes_inline(uint8_t opcode)
{
	switch (opcode) {
	case WEFT_WR_WRITE:
	case WEFT_WR_WRITE_IMM:
	case WEFT_WR_SEND:
	case WEFT_WR_SEND_IMM:
	case WEFT_WR_SEND_INV:
		return true;
	default:
		return false;
	}
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t num_buf,
				    const struct ibv_data_buf *bufs)
{
	struct weft_qp *qp = to_qp(ex);

	if (!takes_inline(qp->wr_head.opcode)) {
		note(qp, EINVAL);
		return;
	}
	qp->wr_head.flags |= WEFT_WR_INLINE;
	note(qp, weft_sq_add_inline(&qp->sq, &qp->wr_head, bufs, num_buf));
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	struct ibv_data_buf buf = { .addr = addr, .length = length };

	wr_set_inline_data_list(ex, 1, &buf);
}

static uint64_t supported_ops(const struct weft_sq *sq)
{
	uint64_t features = sq->features, ops = BASE_OPS;

	if (sq->datagrams)
		return IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
	if (features & WEFT_FEATURE_IMM)
		ops |= IMM_OPS;
	if (features & WEFT_FEATURE_ATOMICS)
		ops |= ATOMIC_OPS;
	if (features & WEFT_FEATURE_MW)
		ops |= IBV_QP_EX_WITH_BIND_MW;
	return ops;
}

int weft_wr_init(struct weft_qp *qp, uint64_t ops)
{
	const struct weft_context *ctx = to_weft_ctx(qp->vqp.qp.context);
	struct ibv_qp_ex *ex = &qp->vqp.qp_ex;

	if (ops & ~supported_ops(&qp->sq))
		return EOPNOTSUPP;
	*weft_qp_comp_mask(&qp->vqp) |= VERBS_QP_EX;
	ex->wr_start = wr_start;
	ex->wr_complete = ctx->posts_may_fail ? wr_complete_or_fail :
			  ctx->has_judged_requests ? wr_complete_judged : wr_complete;
	ex->wr_abort = wr_abort;
	ex->wr_rdma_write = wr_rdma_write;
	ex->wr_rdma_write_imm = wr_rdma_write_imm;
	ex->wr_rdma_read = wr_rdma_read;
	ex->wr_send = wr_send;
	ex->wr_send_imm = wr_send_imm;
	ex->wr_send_inv = wr_send_inv;
	ex->wr_local_inv = wr_local_inv;
	ex->wr_bind_mw = wr_bind_mw;
	ex->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	ex->wr_atomic_fetch_add = wr_atomic_fetch_add;
	ex->wr_set_sge = wr_set_sge;
	ex->wr_set_sge_list = wr_set_sge_list;
	ex->wr_set_inline_data = wr_set_inline_data;
	ex->wr_set_inline_data_list = wr_set_inline_data_list;
	ex->wr_set_ud_addr = wr_set_ud_addr;
	return 0;
}
