// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * modify_qp and query_qp. On an RNIC a connection moves a QP, and modify_qp gives names to what
 * rdma_cm does. On a RoCE device the program may connect its QP by hand, and then it leads: the
 * InfiniBand specification's table is checked (roce/byhand.h). dest_qp_num 0, which is no QP's, says that
 * rdma_cm connects it after all.
 */
#include "roce/byhand_conn.h"
#include "process/options.h"
#include "roce/ud.h"
#include "verbs.h"

/* Bits behind those of plain verbs. */
#define MASK		(2u * IBV_QP_DEST_QPN - 1)
#define NUMBERS		0xffffff	/* QP numbers, PSNs */

#define ATTR(bit, field) \
	if (in->attr_mask & (bit)) \
		qp->given.field = in->field

/* ---- attributes ---- */

static void keep(struct rl_qp *qp, const struct ib_uverbs_modify_qp *in)
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

static bool address_is_sane(const struct rl_device *dev, const struct ib_uverbs_qp_dest *d)
{
	return d->is_global && d->sgid_index < dev->ngids && (!d->port_num || d->port_num == RL_PORT);
}

/* Is each that is given in its range? */
static bool is_sane(const struct rl_qp *qp, const struct ib_uverbs_modify_qp *in)
{
	const struct rl_device *dev = qp->ctx->dev;
	u32 m = in->attr_mask;

	return !(m & IBV_QP_PKEY_INDEX && in->pkey_index) &&
	       !(m & IBV_QP_AV && !address_is_sane(dev, &in->dest)) &&
	       !(m & IBV_QP_PATH_MTU &&
		 (in->path_mtu < IBV_MTU_256 || in->path_mtu > rl_device_ib_mtu(dev))) &&
	       !(m & IBV_QP_TIMEOUT && in->timeout > 31) &&
	       !(m & IBV_QP_RETRY_CNT && in->retry_cnt > 7) &&
	       !(m & IBV_QP_RNR_RETRY && in->rnr_retry > 7) &&
	       !(m & IBV_QP_MIN_RNR_TIMER && in->min_rnr_timer > 31) &&
	       !(m & IBV_QP_MAX_QP_RD_ATOMIC && in->max_rd_atomic > RL_MAX_ORD) &&
	       !(m & IBV_QP_MAX_DEST_RD_ATOMIC && in->max_dest_rd_atomic > RL_MAX_IRD) &&
	       !(m & IBV_QP_ALT_PATH);
}

/* ---- by hand ---- */

static u32 verbs_state(struct rl_qp *qp)
{
	return weft_qpc_verbs_state(&qp->core);
}

/* What only the core needs, with its lock. */
static void tell_core(struct rl_qp *qp, bool by_hand, u32 state)
{
	struct rl_conn *c = rl_qp_lock_core(qp);

	qp->core.by_hand = by_hand;
	/* UC promises nothing of the peer. */
	qp->core.confirms = by_hand && qp->type == IBV_QPT_RC;
	qp->core.denied = by_hand ? WEFT_ACCESS_REMOTE & ~qp->given.qp_access_flags : 0;
	if (weft_qpc_verbs_state(&qp->core) != WEFT_VS_ERR)
		WRITE_ONCE(qp->core.named, state);
	weft_qpc_hold(&qp->core, by_hand && state != WEFT_VS_RTS);
	qp->tell_drained = state == WEFT_VS_SQD && qp->given.en_sqd_async_notify;
	rl_qp_tell_drained(qp);
	rl_qp_unlock_core(qp, c);
}

void rl_qp_tell_drained(struct rl_qp *qp)
{
	if (likely(!qp->tell_drained) || !weft_qpc_is_drained(&qp->core))
		return;
	qp->tell_drained = false;
	rl_context_say(qp->ctx, &qp->o, IBV_EVENT_SQ_DRAINED, &qp->async_reported);
}

static int become_able_to_receive(struct rl_qp *qp)
{
	const struct ib_uverbs_modify_qp *g = &qp->given;
	struct rl_hand_path path = {
		.type = qp->type,
		.peer_qpn = g->dest_qp_num & NUMBERS,
		.rq_psn = g->rq_psn & NUMBERS,
		.traffic_class = g->dest.traffic_class,
		.ird = g->max_dest_rd_atomic,
		.min_rnr_timer = g->min_rnr_timer,
	};
	int rv;

	memcpy(path.own_gid, qp->ctx->dev->gids[g->dest.sgid_index], sizeof(path.own_gid));
	memcpy(path.peer_gid, g->dest.dgid, sizeof(path.peer_gid));
	tell_core(qp, true, WEFT_VS_RTR);
	rv = rl_hand_start_qp(qp, &path);
	if (rv)
		tell_core(qp, false, WEFT_VS_INIT);
	return rv;
}

static void become_able_to_send(struct rl_qp *qp)
{
	const struct ib_uverbs_modify_qp *g = &qp->given;
	const struct rl_hand_sending s = {
		.sq_psn = g->sq_psn & NUMBERS,
		.timeout = g->timeout,
		.retry_cnt = g->retry_cnt,
		.rnr_retry = g->rnr_retry,
		.ord = g->max_rd_atomic,
	};

	rl_hand_go_qp(qp, &s);
	tell_core(qp, true, WEFT_VS_RTS);
}

static int move_by_hand(struct rl_qp *qp, u32 from, u32 to)
{
	switch (to) {
	case IBV_QPS_RTR:
		return become_able_to_receive(qp);
	case IBV_QPS_RTS:
		if (from == IBV_QPS_RTR)
			become_able_to_send(qp);
		else
			tell_core(qp, true, WEFT_VS_RTS);
		/* What was posted in SQD waits from now on. */
		rl_hand_post(qp);
		return 0;
	case IBV_QPS_SQD:
		tell_core(qp, true, WEFT_VS_SQD);
		return 0;
	case IBV_QPS_RESET:
		rl_qp_reset(qp);
		return 0;
	default:
		rl_qp_drain_acks(qp);
		rl_hand_stop_qp(qp);
		return rl_qp_move(qp, to);
	}
}

/* ---- modify_qp ---- */

static int modify_rnic(struct rl_qp *qp, const struct ib_uverbs_modify_qp *in)
{
	int rv = in->attr_mask & IBV_QP_STATE ? rl_qp_move(qp, in->qp_state) : 0;

	if (!rv)
		keep(qp, in);
	return rv;
}

static bool leads_to_cm(const struct ib_uverbs_modify_qp *in)
{
	return in->attr_mask & IBV_QP_STATE && in->qp_state == IBV_QPS_RTR &&
	       in->attr_mask & IBV_QP_DEST_QPN && !in->dest_qp_num;
}

static int modify_roce(struct rl_qp *qp, const struct ib_uverbs_modify_qp *in)
{
	u32 from = verbs_state(qp), to = in->attr_mask & IBV_QP_STATE ? in->qp_state : from;
	bool by_hand = qp->core.by_hand || (to == IBV_QPS_RTR && qp->type != IBV_QPT_UD);
	struct ib_uverbs_modify_qp before = qp->given;
	int rv = 0;

	if (in->attr_mask & IBV_QP_CUR_STATE && in->cur_qp_state != from)
		return -EINVAL;
	if (!rl_hand_may_modify(qp->type, from, to, in->attr_mask & ~IBV_QP_STATE) || !is_sane(qp, in))
		return -EINVAL;
	keep(qp, in);
	if (to == IBV_QPS_SQD && to != from && !(in->attr_mask & IBV_QP_EN_SQD_ASYNC_NOTIFY))
		qp->given.en_sqd_async_notify = 0;
	if (qp->ud)
		rl_ud_move(qp, from, to);
	else
		rv = by_hand ? move_by_hand(qp, from, to) : rl_qp_move(qp, to);
	if (rv)
		qp->given = before;
	return rv;
}

/* A connection of rdma_cm's leads, once it is there; and before, once the program has said so. */
static bool is_cms(struct rl_qp *qp, const struct ib_uverbs_modify_qp *in)
{
	bool connected = READ_ONCE(qp->core.state) != WEFT_QPS_IDLE && !qp->core.by_hand;

	if (leads_to_cm(in))
		qp->by_cm = true;
	if (in->attr_mask & IBV_QP_STATE && in->qp_state == IBV_QPS_RESET)
		qp->by_cm = false;
	return qp->by_cm || connected;
}

int rl_qp_modify(struct rl_qp *qp, const struct ib_uverbs_modify_qp *in)
{
	if (in->attr_mask & ~MASK)
		return -EOPNOTSUPP;
	if (in->attr_mask & IBV_QP_PORT && in->port_num != RL_PORT)
		return -EINVAL;
	if (!rl_options()->roce || is_cms(qp, in))
		return modify_rnic(qp, in);
	return modify_roce(qp, in);
}

/* ---- query_qp ---- */

void rl_qp_query(struct rl_qp *qp, struct ib_uverbs_query_qp_resp *r)
{
	const struct ib_uverbs_modify_qp *g = &qp->given;
	bool connected = READ_ONCE(qp->core.st) && !qp->core.by_hand;
	struct rl_conn *c;

	r->qp_state = r->cur_qp_state = verbs_state(qp);
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
