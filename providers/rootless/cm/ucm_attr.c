// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The attributes that a program modifies its QP with. */
#include <infiniband/verbs.h>

#include "devices/limits.h"
#include "host/qp.h"
#include "process/options.h"
#include "sidr.h"
#include "ucm_request.h"

/*
 * librdmacm, or the program, modifies its QP by these. They decide nothing: the connection enables
 * a QP to receive and to send, and an unconnected QP gets no rights. An RNIC's are those of the
 * kernel's iw_cm.
 */
static int init_rnic_attr(const struct rl_cmid *id, u32 state, struct ib_uverbs_qp_attr *a)
{
	a->qp_attr_mask = IBV_QP_PORT;
	if (id->phase < RL_CM_CONNECT) {
		a->qp_attr_mask |= IBV_QP_STATE | IBV_QP_ACCESS_FLAGS;
	} else if (state == IBV_QPS_INIT || state == IBV_QPS_RTR) {
		a->qp_attr_mask |= IBV_QP_STATE | IBV_QP_ACCESS_FLAGS;
		a->qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	} else if (state != IBV_QPS_RTS) {
		return -EINVAL;
	}
	return 0;
}

/*
 * A RoCE device's QP goes through the states of one that is connected by hand; dest_qp_num 0, which
 * is reserved, marks it as rdma_cm's. Once it is connected there is nothing to modify.
 */
static int init_roce_attr(const struct rl_cmid *id, u32 state, struct ib_uverbs_qp_attr *a)
{
	a->qp_attr_mask = IBV_QP_PORT;
	a->path_mtu = rl_device_ib_mtu(id->dev);
	a->max_rd_atomic = (u8)id->dev->about->max_qp_init_rd_atom;
	a->max_dest_rd_atomic = (u8)id->dev->about->max_qp_rd_atom;
	a->qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	rl_cm_put_path(id, &a->ah_attr);
	if (id->phase == RL_CM_CONNECT || id->phase == RL_CM_ANSWERED)
		return 0;
	if (state == IBV_QPS_INIT) {
		a->qp_attr_mask |= IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS;
		if (id->phase < RL_CM_CONNECT)
			a->qp_access_flags = 0;
	} else if (state == IBV_QPS_RTR) {
		a->qp_attr_mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	} else if (state != IBV_QPS_RTS) {
		return -EINVAL;
	}
	return 0;
}

/* For datagrams: the program moves its QP itself. */
static int init_ud_attr(struct ib_uverbs_qp_attr *a)
{
	a->qp_attr_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
	a->qkey = RL_CM_QKEY;
	return 0;
}

int rl_ucm_init_qp_attr(struct rl_ucm_request *r)
{
	const struct rdma_ucm_init_qp_attr *in = &r->in.init_qp_attr;
	struct ib_uverbs_qp_attr resp = { .qp_state = in->qp_state, .port_num = RL_PORT };
	struct rl_cmid *id;
	int err;

	id = rl_ucm_find(r, in->id, &err);
	if (!id)
		return err;
	if (!id->dev || in->qp_state > IBV_QPS_ERR)
		return -EINVAL;
	if (id->qp_type == IBV_QPT_UD)
		err = init_ud_attr(&resp);
	else
		err = rl_options()->roce ? init_roce_attr(id, in->qp_state, &resp) :
					   init_rnic_attr(id, in->qp_state, &resp);
	return err ? err : rl_ucm_answer(r, in->response, &resp, sizeof(resp));
}
