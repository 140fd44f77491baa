// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* modify_qp and query_qp. The transport carries out changes of state. */
#include "devices/limits.h"
#include "qp.h"

/* The bits of plain verbs: up to IBV_QP_DEST_QPN. */
#define MASK		(2u * IBV_QP_DEST_QPN - 1)

#define ATTR(bit, field) \
	if (in->attr_mask & (bit)) \
		qp->given.field = in->field

/* ---- attributes ---- */

void rl_qp_keep_attributes(struct rl_qp *qp, const struct ib_uverbs_modify_qp *in)
{
	ATTR(IBV_QP_ACCESS_FLAGS, qp_access_flags);
	ATTR(IBV_QP_PKEY_INDEX, pkey_index);
	ATTR(IBV_QP_PORT, port_num);
	ATTR(IBV_QP_QKEY, qkey);
	ATTR(IBV_QP_AV, dest);
	ATTR(IBV_QP_PATH_MTU, path_mtu);
	ATTR(IBV_QP_TIMEOUT, timeout);
	ATTR(IBV_QP_RETRY_CNT, retry_cnt);
	ATTR(IBV_QP_RNR_RETRY, rnr_retry);
	ATTR(IBV_QP_RQ_PSN, rq_psn);
	ATTR(IBV_QP_SQ_PSN, sq_psn);
	ATTR(IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic);
	ATTR(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
	ATTR(IBV_QP_MIN_RNR_TIMER, min_rnr_timer);
	ATTR(IBV_QP_DEST_QPN, dest_qp_num);
	ATTR(IBV_QP_EN_SQD_ASYNC_NOTIFY, en_sqd_async_notify);
}

/* ---- modify_qp ---- */

int rl_qp_modify_rnic(struct rl_qp *qp, const struct ib_uverbs_modify_qp *in)
{
	int rv = in->attr_mask & IBV_QP_STATE ? rl_qp_move(qp, in->qp_state) : 0;

	if (!rv)
		rl_qp_keep_attributes(qp, in);
	return rv;
}

int rl_qp_modify(struct rl_qp *qp, const struct ib_uverbs_modify_qp *in)
{
	if (in->attr_mask & ~MASK)
		return -EOPNOTSUPP;
	if (in->attr_mask & IBV_QP_PORT && in->port_num != RL_PORT)
		return -EINVAL;
	return qp->transport->modify(qp, in);
}

void rl_qp_silence(struct rl_qp *qp)
{
	const struct ib_uverbs_modify_qp to_error = {
		.attr_mask = IBV_QP_STATE, .qp_state = IBV_QPS_ERR,
	};
	u32 state = weft_qpc_verbs_state(&qp->core);

	if (state != WEFT_VS_RESET && state != WEFT_VS_ERR)
		rl_qp_modify(qp, &to_error);
}

const struct rl_transport rl_rnic_transport = {
	.modify = rl_qp_modify_rnic,
	.kick = rl_qp_ring_doorbell,
};

/* ---- query_qp ---- */

void rl_qp_query(struct rl_qp *qp, struct ib_uverbs_query_qp_resp *r)
{
	const struct ib_uverbs_modify_qp *g = &qp->given;
	bool connected = READ_ONCE(qp->core.st) && !qp->core.by_hand;
	struct rl_conn *c;

	r->qp_state = r->cur_qp_state = weft_qpc_verbs_state(&qp->core);
	r->dest = g->dest;
	r->qkey = g->qkey;
	r->rq_psn = g->rq_psn;
	r->sq_psn = g->sq_psn;
	r->dest_qp_num = g->dest_qp_num;
	r->qp_access_flags = g->qp_access_flags;
	r->max_rd_atomic = connected ? READ_ONCE(qp->core.ord) : g->max_rd_atomic;
	r->max_dest_rd_atomic = connected ? READ_ONCE(qp->core.ird) : g->max_dest_rd_atomic;
	r->path_mtu = g->path_mtu ? g->path_mtu : rl_device_ib_mtu(qp->ctx->dev);
	r->min_rnr_timer = g->min_rnr_timer;
	r->timeout = g->timeout;
	r->retry_cnt = g->retry_cnt;
	r->rnr_retry = g->rnr_retry;
	r->port_num = RL_PORT;
	r->max_send_wr = qp->sq_caps.wr;
	r->max_send_sge = qp->sq_caps.sge;
	r->max_inline_data = qp->sq_caps.inline_data;
	r->max_recv_wr = qp->rq_caps.wr;
	r->max_recv_sge = qp->rq_caps.sge;
	r->sq_sig_all = qp->core.sig_all;
	if (r->qp_state != IBV_QPS_SQD || !qp->core.by_hand)
		return;
	c = rl_qp_lock_core(qp);
	r->sq_draining = !weft_qpc_is_drained(&qp->core);
	rl_qp_unlock_core(qp, c);
}
