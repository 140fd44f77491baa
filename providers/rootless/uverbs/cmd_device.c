// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What a device can do, its port and its GIDs. */
#include "process/options.h"
#include "request.h"
#include "roce/ud.h"

static void describe_device(const struct rl_device *d, struct ib_uverbs_query_device_resp *r)
{
	memcpy(&r->node_guid, d->guid, sizeof(r->node_guid));
	r->sys_image_guid = r->node_guid;
	r->max_mr_size = UINT64_MAX;
	r->page_size_cap = 4096;
	r->vendor_id = WEFT_VENDOR_ID;
	r->max_qp = RL_MAX_QP;
	r->max_qp_wr = WEFT_MAX_QP_WR;
	r->device_cap_flags = IBV_DEVICE_SRQ_RESIZE | IBV_DEVICE_MEM_WINDOW |
			      IBV_DEVICE_MEM_WINDOW_TYPE_2B;
	r->atomic_cap = rl_options()->extensions ? IBV_ATOMIC_GLOB : IBV_ATOMIC_NONE;
	r->max_sge = WEFT_MAX_SGE;
	r->max_sge_rd = 1;
	r->max_cq = RL_MAX_CQ;
	r->max_cqe = WEFT_MAX_CQE;
	r->max_mr = RL_MAX_MR;
	r->max_mw = RL_MAX_MR;
	r->max_pd = RL_MAX_PD;
	r->max_qp_rd_atom = RL_MAX_IRD;
	r->max_res_rd_atom = RL_MAX_QP * RL_MAX_IRD;
	r->max_qp_init_rd_atom = RL_MAX_ORD;
	r->max_srq = RL_MAX_SRQ;
	r->max_srq_wr = WEFT_MAX_QP_WR;
	r->max_srq_sge = WEFT_MAX_SGE;
	r->max_ah = rl_options()->roce ? INT32_MAX : 0;
	r->max_mcast_grp = rl_options()->roce ? RL_MAX_QP : 0;
	r->max_mcast_qp_attach = rl_options()->roce ? RL_GROUP_MEMBERS : 0;
	r->max_total_mcast_qp_attach = rl_options()->roce ? RL_MAX_QP : 0;
	r->max_pkeys = 1;
	r->phys_port_cnt = 1;
}

/* All regions are on demand (process/guard.h): a page is faulted in when octets are moved. */
static void describe_odp(struct ib_uverbs_odp_caps *caps)
{
	caps->general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
	caps->per_transport_caps.rc_odp_caps = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV |
		IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_SRQ_RECV;
	if (rl_options()->extensions)
		caps->per_transport_caps.rc_odp_caps |= IBV_ODP_SUPPORT_ATOMIC;
}

int rl_cmd_query_device(struct rl_context *ctx, struct rl_command *c)
{
	describe_device(ctx->dev, c->out);
	return 0;
}

int rl_cmd_query_device_ex(struct rl_context *ctx, struct rl_command *c)
{
	const struct ib_uverbs_ex_query_device *in = c->in;
	struct ib_uverbs_ex_query_device_resp *r = c->out;

	if (in->comp_mask || in->reserved)
		return -EINVAL;
	describe_device(ctx->dev, &r->base);
	r->device_cap_flags_ex = r->base.device_cap_flags;
	describe_odp(&r->odp_caps);
	r->timestamp_mask = UINT64_MAX;
	r->hca_core_clock = WEFT_CLOCK_KHZ;
	r->response_length = min_t(size_t, c->out_len, sizeof(*r));
	return 0;
}

int rl_cmd_query_port(struct rl_context *ctx, struct rl_command *c)
{
	const struct ib_uverbs_query_port *in = c->in;
	struct ib_uverbs_query_port_resp *r = c->out;

	if (in->port_num != RL_PORT)
		return -EINVAL;
	r->gid_tbl_len = ctx->dev->ngids;
	r->flags = rl_options()->roce ? IB_UVERBS_QPF_GRH_REQUIRED : 0;
	r->max_vl_num = 1;
	r->pkey_tbl_len = 1;
	r->max_msg_sz = 1u << 31;
	r->port_cap_flags = 1 << 16;	/* a connection manager is there */
	r->max_mtu = IBV_MTU_4096;
	r->active_mtu = rl_device_ib_mtu(ctx->dev);
	r->state = IBV_PORT_ACTIVE;
	r->phys_state = 5;		/* LinkUp */
	r->active_width = 2;		/* 4X */
	r->active_speed = 4;		/* QDR: the real speed is unknown */
	r->link_layer = IBV_LINK_LAYER_ETHERNET;
	return 0;
}

/* ---- GIDs ---- */

static struct ib_uverbs_gid_entry gid_entry(const struct rl_device *d, u32 index)
{
	struct ib_uverbs_gid_entry e = {
		.gid_index = index,
		.port_num = RL_PORT,
		.gid_type = rl_options()->roce ? IB_UVERBS_GID_TYPE_ROCE_V2 : IB_UVERBS_GID_TYPE_IB,
		.netdev_ifindex = d->ifindex,
	};

	memcpy(e.gid, d->gids[index], sizeof(e.gid));
	return e;
}

/* Copies to @size octets: a newer program's entry is longer, and the rest zero. */
static int copy_gid(void *to, size_t size, const struct rl_device *d, u32 index)
{
	const struct ib_uverbs_gid_entry e = gid_entry(d, index);
	u64 whole[RL_CMD_MAX_OUT / 8] = { 0 };

	memcpy(whole, &e, sizeof(e));
	return rl_copy_out(to, whole, size);
}

int rl_ioctl_query_gid_entry(struct rl_context *ctx, struct rl_request *r)
{
	const struct ib_uverbs_attr *out = rl_attr_find(r, UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY);
	u32 index = rl_attr_word(r, UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX);

	if (!out || rl_attr_word(r, UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS) ||
	    rl_attr_word(r, UVERBS_ATTR_QUERY_GID_ENTRY_PORT) != RL_PORT ||
	    index >= ctx->dev->ngids)
		return -EINVAL;
	return copy_gid((void *)(uintptr_t)out->data, min_t(u32, out->len, RL_CMD_MAX_OUT),
			ctx->dev, index);
}

/* All of them, or none: a program cannot ask for the rest. */
int rl_ioctl_query_gid_table(struct rl_context *ctx, struct rl_request *r)
{
	const struct ib_uverbs_attr *size = rl_attr_find(r, UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE);
	const struct ib_uverbs_attr *out =
		rl_attr_find(r, UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES);
	u64 each = size ? size->data : 0, n = ctx->dev->ngids;
	u32 i;
	int rv;

	if (!each || each > RL_CMD_MAX_OUT || !out ||
	    rl_attr_word(r, UVERBS_ATTR_QUERY_GID_TABLE_FLAGS) || out->len / each < n)
		return -EINVAL;
	for (i = 0; i < n; i++) {
		rv = copy_gid((u8 *)(uintptr_t)out->data + i * each, each, ctx->dev, i);
		if (rv)
			return rv;
	}
	return rl_attr_answer(r, UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, &n, sizeof(n));
}
