// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What a device can do, its port and its GIDs. */
#include "request.h"

static void describe_device(const struct rl_device *d, struct ib_uverbs_query_device_resp *r)
{
	const struct rl_profile *p = d->about;

	memcpy(&r->node_guid, d->guid, sizeof(r->node_guid));
	memcpy(&r->sys_image_guid, d->system_guid, sizeof(r->sys_image_guid));
	r->fw_ver = p->fw_number;
	r->max_mr_size = p->max_mr_size;
	r->page_size_cap = p->page_size_cap;
	r->vendor_id = p->vendor_id;
	r->vendor_part_id = p->vendor_part_id;
	r->hw_ver = p->hw_ver;
	r->max_qp = p->max_qp;
	r->max_qp_wr = p->max_qp_wr;
	r->device_cap_flags = (u32)p->device_cap_flags;
	r->atomic_cap = p->atomic_cap;
	r->max_sge = (u8)p->max_sge;
	r->max_sge_rd = p->max_sge_rd;
	r->max_cq = p->max_cq;
	r->max_cqe = p->max_cqe;
	r->max_mr = p->max_mr;
	r->max_mw = p->max_mw;
	r->max_pd = p->max_pd;
	r->max_qp_rd_atom = p->max_qp_rd_atom;
	r->max_res_rd_atom = p->max_res_rd_atom;
	r->max_qp_init_rd_atom = p->max_qp_init_rd_atom;
	r->max_srq = p->max_srq;
	r->max_srq_wr = p->max_srq_wr;
	r->max_srq_sge = p->max_srq_sge;
	r->max_ah = p->max_ah;
	r->max_mcast_grp = p->max_mcast_grp;
	r->max_mcast_qp_attach = p->max_mcast_qp_attach;
	r->max_total_mcast_qp_attach = p->max_total_mcast_qp_attach;
	r->max_pkeys = (u16)p->max_pkeys;
	r->local_ca_ack_delay = (u8)p->local_ca_ack_delay;
	r->phys_port_cnt = 1;
}

/* All regions are on demand (process/guard.h): a page is faulted in when octets are moved. */
static void describe_odp(const struct rl_profile *p, struct ib_uverbs_odp_caps *caps)
{
	if (!p->odp)
		return;
	caps->general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
	caps->per_transport_caps.rc_odp_caps = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV |
		IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_SRQ_RECV;
	if (p->atomic_cap != IBV_ATOMIC_NONE)
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
	describe_odp(ctx->dev->about, &r->odp_caps);
	r->timestamp_mask = UINT64_MAX;
	r->hca_core_clock = WEFT_CLOCK_KHZ;
	r->response_length = min_t(size_t, c->out_len, sizeof(*r));
	return 0;
}

int rl_cmd_query_port(struct rl_context *ctx, struct rl_command *c)
{
	const struct ib_uverbs_query_port *in = c->in;
	const struct rl_profile *p = ctx->dev->about;
	struct ib_uverbs_query_port_resp *r = c->out;
	struct rl_port_state s;

	if (in->port_num != RL_PORT)
		return -EINVAL;
	rl_device_read_port(ctx->dev, &s);
	r->gid_tbl_len = ctx->dev->ngids;
	r->flags = p->iwarp ? 0 : IB_UVERBS_QPF_GRH_REQUIRED;
	r->max_vl_num = 1;
	r->pkey_tbl_len = 1;
	r->max_msg_sz = p->max_msg_sz;
	r->port_cap_flags = 1 << 16;	/* a connection manager is there */
	r->max_mtu = p->max_mtu;
	r->active_mtu = s.mtu;
	r->lid = s.lid;
	r->state = s.up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
	r->phys_state = s.up ? 5 : 3;	/* LinkUp, Disabled */
	r->active_width = s.rate.width;
	r->active_speed = s.rate.speed;
	r->link_layer = p->link_layer;
	return 0;
}

/* ---- GIDs ---- */

static struct ib_uverbs_gid_entry gid_entry(const struct rl_device *d, u32 index)
{
	struct ib_uverbs_gid_entry e = {
		.gid_index = index,
		.port_num = RL_PORT,
		.gid_type = d->gid_is_v2[index] ? IB_UVERBS_GID_TYPE_ROCE_V2 :
			    d->about->iwarp ? IB_UVERBS_GID_TYPE_IB : IB_UVERBS_GID_TYPE_ROCE_V1,
		.netdev_ifindex = d->ifindex,
	};

	rl_device_gid(d, index, (u8 *)e.gid);
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
