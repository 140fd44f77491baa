// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * QPs of a RoCE device. The program may connect them itself, by modify_qp, whose transitions are
 * checked against the InfiniBand specification's table (roce/byhand.h). dest_qp_num 0, which no QP
 * has, leaves that to rdma_cm. A QP's number names a port (roce/port_group.h).
 */
#include "byhand_conn.h"
#include "port_group.h"
#include "transport.h"
#include "ud.h"

#define NUMBERS		0xffffff	/* QP numbers, PSNs */

/* ---- attributes ---- */

static bool dest_is_valid(const struct rl_device *dev, const struct ib_uverbs_qp_dest *d)
{
	u8 gid[RL_GID_LEN];

	return d->is_global && rl_device_gid(dev, d->sgid_index, gid) &&
	       (!d->port_num || d->port_num == RL_PORT);
}

/* Are all given attributes in range? */
static bool attrs_are_valid(const struct rl_qp *qp, const struct ib_uverbs_modify_qp *in)
{
	const struct rl_device *dev = qp->ctx->dev;
	u32 m = in->attr_mask;

	return !(m & IBV_QP_PKEY_INDEX && in->pkey_index) &&
	       !(m & IBV_QP_AV && !dest_is_valid(dev, &in->dest)) &&
	       !(m & IBV_QP_PATH_MTU &&
		 (in->path_mtu < IBV_MTU_256 || in->path_mtu > rl_device_ib_mtu(dev))) &&
	       !(m & IBV_QP_TIMEOUT && in->timeout > 31) &&
	       !(m & IBV_QP_RETRY_CNT && in->retry_cnt > 7) &&
	       !(m & IBV_QP_RNR_RETRY && in->rnr_retry > 7) &&
	       !(m & IBV_QP_MIN_RNR_TIMER && in->min_rnr_timer > 31) &&
	       !(m & IBV_QP_MAX_QP_RD_ATOMIC &&
		 in->max_rd_atomic > dev->about->max_qp_init_rd_atom) &&
	       !(m & IBV_QP_MAX_DEST_RD_ATOMIC &&
		 in->max_dest_rd_atomic > dev->about->max_qp_rd_atom) &&
	       !(m & IBV_QP_ALT_PATH);
}

/* ---- connected by hand ---- */

static u32 verbs_state(struct rl_qp *qp)
{
	return weft_qpc_verbs_state(&qp->core);
}

/* Takes the core's lock and updates the core. */
static void update_core(struct rl_qp *qp, bool by_hand, u32 state)
{
	struct rl_conn *c = rl_qp_lock_core(qp);

	qp->core.by_hand = by_hand;
	/* UC does not wait for acknowledgements. */
	qp->core.confirms = by_hand && qp->type == IBV_QPT_RC;
	qp->core.denied = by_hand ? WEFT_ACCESS_REMOTE & ~qp->given.qp_access_flags : 0;
	if (weft_qpc_verbs_state(&qp->core) != WEFT_VS_ERR)
		WRITE_ONCE(qp->core.named, state);
	weft_qpc_hold(&qp->core, by_hand && state != WEFT_VS_RTS);
	qp->report_drained = state == WEFT_VS_SQD && qp->given.en_sqd_async_notify;
	rl_qp_report_drained(qp);
	rl_qp_unlock_core(qp, c);
}

static int enter_rtr(struct rl_qp *qp)
{
	const struct ib_uverbs_modify_qp *g = &qp->given;
	struct rl_byhand_path path = {
		.type = qp->type,
		.peer_qpn = g->dest_qp_num & NUMBERS,
		.rq_psn = g->rq_psn & NUMBERS,
		.traffic_class = g->dest.traffic_class,
		.ird = g->max_dest_rd_atomic,
		.min_rnr_timer = g->min_rnr_timer,
	};
	u8 own[RL_GID_LEN];
	int rv;

	rl_device_gid(qp->ctx->dev, g->dest.sgid_index, own);
	rl_gid_resolve(own, path.own_gid);
	rl_gid_resolve(g->dest.dgid, path.peer_gid);
	update_core(qp, true, WEFT_VS_RTR);
	rv = rl_byhand_qp_rtr(qp, &path);
	if (rv)
		update_core(qp, false, WEFT_VS_INIT);
	return rv;
}

static struct rl_byhand_send_attr send_attr(const struct rl_qp *qp)
{
	const struct ib_uverbs_modify_qp *g = &qp->given;

	return (struct rl_byhand_send_attr){
		.sq_psn = g->sq_psn & NUMBERS,
		.timeout = g->timeout,
		.retry_cnt = g->retry_cnt,
		.rnr_retry = g->rnr_retry,
		.ord = g->max_rd_atomic,
	};
}

static void enter_rts(struct rl_qp *qp)
{
	const struct rl_byhand_send_attr s = send_attr(qp);

	rl_byhand_qp_rts(qp, &s);
	update_core(qp, true, WEFT_VS_RTS);
}

/* In SQD, attributes may change. */
static void enter_sqd(struct rl_qp *qp)
{
	const struct rl_byhand_send_attr s = send_attr(qp);

	rl_byhand_qp_sqd(qp, &s);
	update_core(qp, true, WEFT_VS_SQD);
}

static int move_by_hand(struct rl_qp *qp, u32 from, u32 to)
{
	switch (to) {
	case IBV_QPS_RTR:
		return enter_rtr(qp);
	case IBV_QPS_RTS:
		if (from == IBV_QPS_RTR)
			enter_rts(qp);
		else
			update_core(qp, true, WEFT_VS_RTS);
		/* Work requests posted in SQD have a deadline from now on. */
		rl_byhand_qp_posted(qp);
		return 0;
	case IBV_QPS_SQD:
		enter_sqd(qp);
		return 0;
	case IBV_QPS_RESET:
		rl_qp_reset(qp);
		return 0;
	default:
		rl_byhand_qp_stop(qp);
		return rl_qp_move(qp, to);
	}
}

/* ---- modify_qp ---- */

static bool chooses_cm(const struct ib_uverbs_modify_qp *in)
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
	if (!rl_byhand_may_modify(qp->type, from, to, in->attr_mask & ~IBV_QP_STATE) ||
	    !attrs_are_valid(qp, in))
		return -EINVAL;
	rl_qp_keep_attributes(qp, in);
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

/* rdma_cm owns the states once it has connected the QP, or modify_qp has left that to it. */
static bool belongs_to_cm(struct rl_qp *qp, const struct ib_uverbs_modify_qp *in)
{
	bool connected = READ_ONCE(qp->core.state) != WEFT_QPS_IDLE && !qp->core.by_hand;

	if (chooses_cm(in))
		qp->by_cm = true;
	if (in->attr_mask & IBV_QP_STATE && in->qp_state == IBV_QPS_RESET)
		qp->by_cm = false;
	return qp->by_cm || connected;
}

static int modify_by_owner(struct rl_qp *qp, const struct ib_uverbs_modify_qp *in)
{
	return belongs_to_cm(qp, in) ? rl_qp_modify_rnic(qp, in) : modify_roce(qp, in);
}

/* ---- the transports ---- */

/* rdma_cm or modify_qp may connect it: not known yet. */
static int roce_begin(struct rl_qp *qp)
{
	qp->core.named = WEFT_VS_RESET;
	return rl_port_group_take(&qp->core.id);
}

static void end_byhand(struct rl_qp *qp)
{
	rl_byhand_qp_destroy(qp);
	rl_port_group_give(qp->core.id);
}

static void kick_byhand(struct rl_qp *qp)
{
	if (unlikely(qp->core.by_hand && READ_ONCE(qp->core.state) == WEFT_QPS_IDLE))
		rl_byhand_qp_posted(qp);
	rl_qp_ring_doorbell(qp);
}

static const struct rl_transport byhand_transport = {
	.begin = roce_begin,
	.stop = rl_byhand_qp_stop,
	.end = end_byhand,
	.modify = modify_by_owner,
	.kick = kick_byhand,
};

static int begin_ud(struct rl_qp *qp)
{
	int rv = roce_begin(qp);

	if (rv)
		return rv;
	rv = rl_ud_begin(qp);
	if (rv)
		rl_port_group_give(qp->core.id);
	return rv;
}

static void end_ud(struct rl_qp *qp)
{
	rl_ud_end(qp);
	rl_port_group_give(qp->core.id);
}

static const struct rl_transport ud_transport = {
	.begin = begin_ud,
	.end = end_ud,
	.modify = modify_by_owner,
	.kick = rl_ud_kick,
};

const struct rl_transport *rl_roce_transport(u8 type)
{
	return type == IBV_QPT_UD ? &ud_transport : &byhand_transport;
}
