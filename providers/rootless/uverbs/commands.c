// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The commands of the command file, one by one. What they check is what ib_uverbs and the driver
 * check: a program sees no difference. All run with the context's lock.
 */
#include <fcntl.h>
#include <stdlib.h>

#include <infiniband/verbs.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>

#include "process/raw.h"
#include "process/options.h"
#include "roce/transport.h"
#include "roce/ud.h"
#include "host/verbs.h"

#define EX(cmd) (IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_##cmd)

/* ---- objects by handle ---- */

#define FIND(ctx, type, kind, handle) ({					\
	struct rl_object *found_ = rl_object_find(ctx, kind, handle);		\
	found_ ? container_of(found_, type, o) : NULL; })

static struct rl_pd *find_pd(struct rl_context *ctx, u32 handle)
{
	return FIND(ctx, struct rl_pd, RL_PD, handle);
}

static struct rl_cq *find_cq(struct rl_context *ctx, u32 handle)
{
	return FIND(ctx, struct rl_cq, RL_CQ, handle);
}

static struct rl_qp *find_qp(struct rl_context *ctx, u32 handle)
{
	return FIND(ctx, struct rl_qp, RL_QP, handle);
}

static struct rl_srq *find_srq(struct rl_context *ctx, u32 handle)
{
	return FIND(ctx, struct rl_srq, RL_SRQ, handle);
}

static struct rl_mr *find_mr(struct rl_context *ctx, u32 handle)
{
	return FIND(ctx, struct rl_mr, RL_MR, handle);
}

/* Beyond the @known octets of a driver's part, it must be zero. */
static bool is_zero_from(const struct rl_command *c, size_t known)
{
	const u8 *p = c->uhw_in.p;
	size_t i;

	for (i = known; i < c->uhw_in.len; i++)
		if (p[i])
			return false;
	return true;
}

static bool is_zero(const struct rl_command *c)
{
	return is_zero_from(c, 0);
}

static int answer_driver(struct rl_command *c, const void *resp, size_t len)
{
	if (c->uhw_out.len < len)
		return -EINVAL;
	memcpy(c->uhw_out.p, resp, len);
	c->uhw_out.len = len;
	return 0;
}

/* ---- contexts and queries ---- */

static int open_async(struct rl_context *ctx, u32 *fd)
{
	int efd, rv;

	ctx->async = rl_chan_new(O_CLOEXEC, &efd);
	if (!ctx->async)
		return -ENOMEM;
	rv = rl_chan_open(ctx->async, efd);
	if (rv < 0) {
		rl_chan_put(ctx->async);
		ctx->async = NULL;
		return rv;
	}
	*fd = rv;
	return 0;
}

void rl_context_describe(const struct rl_context *ctx, struct weft_alloc_ucontext_resp *resp)
{
	*resp = (struct weft_alloc_ucontext_resp){
		.features = ctx->features,
		.abi_version = WEFT_ABI_VERSION,
		.max_inline = WEFT_MAX_INLINE,
	};
}

static int get_context(struct rl_context *ctx, struct rl_command *c)
{
	const struct weft_alloc_ucontext_req *req = c->uhw_in.p;
	struct ib_uverbs_get_context_resp *resp = c->out;
	struct weft_alloc_ucontext_resp driver;
	int rv;

	if (ctx->ready)
		return -EINVAL;
	if (!is_zero_from(c, sizeof(*req)))
		return -EOPNOTSUPP;
	ctx->features = req->features & RL_FEATURES;
	if (!rl_options()->extensions)
		ctx->features &= ~WEFT_EXT_FEATURES;
	if (!rl_options()->roce)
		ctx->features &= ~(u64)WEFT_FEATURE_ROCE_TYPES;
	rl_context_describe(ctx, &driver);
	c->uhw_out.len = min_t(size_t, c->uhw_out.len, sizeof(driver));
	memcpy(c->uhw_out.p, &driver, c->uhw_out.len);
	rv = open_async(ctx, &resp->async_fd);
	if (rv)
		return rv;
	resp->num_comp_vectors = 1;
	ctx->ready = true;
	return 0;
}

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

/* By nature (process/guard.h): whatever moves octets finds the page, or makes the kernel find it. */
static void describe_odp(struct ib_uverbs_odp_caps *caps)
{
	caps->general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
	caps->per_transport_caps.rc_odp_caps = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV |
		IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_SRQ_RECV;
	if (rl_options()->extensions)
		caps->per_transport_caps.rc_odp_caps |= IBV_ODP_SUPPORT_ATOMIC;
}

static int query_device(struct rl_context *ctx, struct rl_command *c)
{
	describe_device(ctx->dev, c->out);
	return 0;
}

static int query_device_ex(struct rl_context *ctx, struct rl_command *c)
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

static int query_port(struct rl_context *ctx, struct rl_command *c)
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
	r->active_speed = 4;		/* QDR: nobody knows */
	r->link_layer = IBV_LINK_LAYER_ETHERNET;
	return 0;
}

/* ---- protection domains and regions ---- */

static int alloc_pd(struct rl_context *ctx, struct rl_command *c)
{
	static u32 last;
	struct ib_uverbs_alloc_pd_resp *resp = c->out;
	struct rl_pd *pd = calloc(1, sizeof(*pd));
	int rv;

	if (!pd)
		return -ENOMEM;
	pd->o.kind = RL_PD;
	pd->id = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
	rv = rl_object_add(ctx, &pd->o);
	if (rv) {
		free(pd);
		return rv;
	}
	resp->pd_handle = pd->o.handle;
	return 0;
}

static int dealloc_pd(struct rl_context *ctx, struct rl_command *c)
{
	const struct ib_uverbs_dealloc_pd *in = c->in;
	struct rl_pd *pd = find_pd(ctx, in->pd_handle);

	if (!pd || pd->o.users)
		return pd ? -EBUSY : -ENOENT;
	rl_object_replace(ctx, in->pd_handle, NULL);
	free(pd);
	return 0;
}

/* What the driver's part may ask for: the rest of it is zero. (It is padded with zeros, too.) */
static bool wants_null_mr(const struct rl_context *ctx, struct rl_command *c)
{
	struct weft_reg_mr_req *req = (void *)c->uhw_in.p;

	if (req->flags != WEFT_REG_MR_NULL || !(ctx->features & WEFT_FEATURE_NULL_MR))
		return false;
	req->flags = 0;
	return true;
}

static int reg_mr(struct rl_context *ctx, struct rl_command *c)
{
	const struct ib_uverbs_reg_mr *in = c->in;
	struct ib_uverbs_reg_mr_resp *resp = c->out;
	struct rl_pd *pd = find_pd(ctx, in->pd_handle);
	bool null = wants_null_mr(ctx, c);
	struct rl_mr *mr;
	int rv;

	/* The place in the page must be the same by both addresses. */
	if (!pd || !is_zero(c) || (in->start ^ in->hca_va) & 4095)
		return -EINVAL;
	rv = null ? rl_mr_new_null(pd, &mr) :
		    rl_mr_new(pd, in->start, in->length, in->hca_va, in->access_flags, &mr);
	if (rv)
		return rv;
	rv = rl_object_add(ctx, &mr->o);
	if (rv) {
		rl_mr_destroy(mr);
		return rv;
	}
	resp->mr_handle = mr->o.handle;
	resp->lkey = resp->rkey = mr->region.stag;
	return 0;
}

/* A region of its own in the place of the old one. That of other memory has an STag of its own. */
static int rereg_mr(struct rl_context *ctx, struct rl_command *c)
{
	const struct ib_uverbs_rereg_mr *in = c->in;
	struct ib_uverbs_rereg_mr_resp *resp = c->out;
	struct rl_mr *old = find_mr(ctx, in->mr_handle), *mr;
	bool moves = in->flags & IBV_REREG_MR_CHANGE_TRANSLATION;
	struct rl_pd *pd = in->flags & IBV_REREG_MR_CHANGE_PD ? find_pd(ctx, in->pd_handle) :
			   old ? old->pd : NULL;
	u32 access;
	int rv;

	if (!old || old->region.kind != WEFT_REGION_USER || old->dmabuf.at || !pd || !in->flags ||
	    in->flags & ~7u || (moves && (in->start ^ in->hca_va) & 4095))
		return -EINVAL;
	if (!rl_mr_close(old))
		return -EBUSY;
	access = in->flags & IBV_REREG_MR_CHANGE_ACCESS ? in->access_flags : old->access;
	if (moves)
		rv = rl_mr_new(pd, in->start, in->length, in->hca_va, access, &mr);
	else
		rv = rl_mr_change(old, pd, access, &mr);
	if (rv) {
		rl_mr_open_again(old);
		return rv;
	}
	rl_object_replace(ctx, in->mr_handle, &mr->o);
	rl_mr_destroy(old);
	resp->lkey = resp->rkey = mr->region.stag;
	return 0;
}

static int dereg_mr(struct rl_context *ctx, struct rl_command *c)
{
	const struct ib_uverbs_dereg_mr *in = c->in;
	struct rl_mr *mr = find_mr(ctx, in->mr_handle);

	if (!mr || !rl_mr_close(mr))
		return mr ? -EBUSY : -ENOENT;
	rl_object_replace(ctx, in->mr_handle, NULL);
	rl_mr_destroy(mr);
	return 0;
}

static int alloc_mw(struct rl_context *ctx, struct rl_command *c)
{
	const struct ib_uverbs_alloc_mw *in = c->in;
	struct ib_uverbs_alloc_mw_resp *resp = c->out;
	struct rl_pd *pd = find_pd(ctx, in->pd_handle);
	struct rl_mr *mw;
	int rv;

	if (!pd || !is_zero(c))
		return -EINVAL;
	rv = rl_mw_new(pd, in->mw_type, &mw);
	if (rv)
		return rv;
	rv = rl_object_add(ctx, &mw->o);
	if (rv) {
		rl_mr_destroy(mw);
		return rv;
	}
	resp->mw_handle = mw->o.handle;
	resp->rkey = mw->region.stag;
	return 0;
}

static int dealloc_mw(struct rl_context *ctx, struct rl_command *c)
{
	const struct ib_uverbs_dealloc_mw *in = c->in;
	struct rl_mr *mw = FIND(ctx, struct rl_mr, RL_MW, in->mw_handle);

	if (!mw)
		return -ENOENT;
	rl_object_replace(ctx, in->mw_handle, NULL);
	rl_mr_destroy(mw);
	return 0;
}

/* ---- completion channels and queues ---- */

static int create_comp_channel(struct rl_context *ctx, struct rl_command *c)
{
	struct ib_uverbs_create_comp_channel_resp *resp = c->out;
	struct rl_chan *chan;
	int efd, fd;

	chan = rl_chan_new(O_CLOEXEC, &efd);
	if (!chan)
		return -ENOMEM;
	fd = rl_chan_open(chan, efd);
	rl_chan_put(chan);
	if (fd < 0)
		return fd;
	resp->fd = fd;
	return 0;
}

/* What the plain command and the extended one have in common. */
static int make_cq(struct rl_context *ctx, struct rl_command *c, u64 user_handle, u32 cqe,
		   s32 channel, bool stamps, struct ib_uverbs_create_cq_resp *resp)
{
	struct weft_create_cq_resp driver = {};
	struct rl_chan *chan = NULL;
	struct rl_cq *cq;
	u32 entries;
	int rv = weft_shape_cq(cqe, &entries);

	if (rv || !is_zero(c) || c->uhw_out.len < sizeof(driver))
		return -EINVAL;
	if (channel >= 0 && !(chan = rl_chan_of_fd(channel)))
		return -EINVAL;
	rv = rl_cq_new(ctx, entries, chan, &cq);
	if (chan)
		rl_chan_put(chan);
	if (rv)
		return rv;
	cq->o.user_handle = user_handle;
	cq->stamps = stamps;
	rv = rl_object_add(ctx, &cq->o);
	if (rv) {
		rl_cq_stop(cq);
		rl_cq_destroy(cq);
		return rv;
	}
	rl_ring_describe(&cq->ring, entries, 1, &driver.cq);
	driver.cq_id = cq->o.handle + 1;
	resp->cq_handle = cq->o.handle;
	resp->cqe = entries;
	return answer_driver(c, &driver, sizeof(driver));
}

static int create_cq(struct rl_context *ctx, struct rl_command *c)
{
	const struct ib_uverbs_create_cq *in = c->in;

	return in->comp_vector ? -EINVAL :
	       make_cq(ctx, c, in->user_handle, in->cqe, in->comp_channel, false, c->out);
}

static int create_cq_ex(struct rl_context *ctx, struct rl_command *c)
{
	const struct ib_uverbs_ex_create_cq *in = c->in;
	struct ib_uverbs_ex_create_cq_resp *resp = c->out;

	if (in->comp_mask || in->comp_vector)
		return -EINVAL;
	if (in->flags & ~IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION ||
	    (in->flags && !(ctx->features & WEFT_FEATURE_TIMESTAMP)))
		return -EOPNOTSUPP;
	resp->response_length = sizeof(*resp);
	return make_cq(ctx, c, in->user_handle, in->cqe, in->comp_channel, in->flags, &resp->base);
}

static int resize_cq(struct rl_context *ctx, struct rl_command *c)
{
	const struct ib_uverbs_resize_cq *in = c->in;
	struct ib_uverbs_resize_cq_resp *resp = c->out;
	struct rl_cq *cq = find_cq(ctx, in->cq_handle);
	struct weft_resize_cq_resp driver = {};
	u32 entries;
	int rv;

	if (!cq || c->uhw_out.len < sizeof(driver) || !is_zero(c))
		return -EINVAL;
	if (!(ctx->features & WEFT_FEATURE_RESIZE))
		return -EOPNOTSUPP;
	rv = weft_shape_cq(in->cqe, &entries) ?: rl_cq_resize(cq, entries, &driver);
	if (rv)
		return rv;
	resp->cqe = entries;
	return answer_driver(c, &driver, sizeof(driver));
}

static int destroy_cq(struct rl_context *ctx, struct rl_command *c)
{
	const struct ib_uverbs_destroy_cq *in = c->in;
	struct ib_uverbs_destroy_cq_resp *resp = c->out;
	struct rl_cq *cq = find_cq(ctx, in->cq_handle);

	if (!cq || cq->o.users)
		return cq ? -EBUSY : -ENOENT;
	rl_object_replace(ctx, in->cq_handle, NULL);
	rl_cq_stop(cq);
	resp->comp_events_reported = cq->comp_reported;
	resp->async_events_reported = cq->async_reported;
	rl_cq_destroy(cq);
	return 0;
}

/* ---- queue pairs ---- */

/* The plain command's request has the extended one's fields behind its first. */
static_assert(offsetof(struct ib_uverbs_create_qp, driver_data) -
	      offsetof(struct ib_uverbs_create_qp, user_handle) ==
	      offsetof(struct ib_uverbs_ex_create_qp, comp_mask), "one request for both");

static const char *name_of_type(u32 type)
{
	switch (type) {
	case IBV_QPT_UC:
		return "UC";
	case IBV_QPT_UD:
		return "UD";
	case IBV_QPT_RAW_PACKET:
		return "RAW_PACKET";
	case IBV_QPT_XRC_SEND:
		return "XRC_SEND";
	case IBV_QPT_DRIVER:
		return "a driver's own, such as DC";
	default:
		return "unknown";
	}
}

/* An RNIC's QPs are RC. What asks for more than a RoCE device here has is refused by name. */
static bool is_type_of(const struct rl_context *ctx, u32 type)
{
	bool more = ctx->features & WEFT_FEATURE_ROCE_TYPES;

	if (type == IBV_QPT_RC || (more && (type == IBV_QPT_UC || type == IBV_QPT_UD)))
		return true;
	rl_trace("a QP of type %u (%s) is refused: there are none", type, name_of_type(type));
	return false;
}

static int fill_qp_attr(struct rl_context *ctx, const struct ib_uverbs_ex_create_qp *in,
			struct rl_qp_attr *a)
{
	*a = (struct rl_qp_attr){
		.pd = find_pd(ctx, in->pd_handle),
		.scq = find_cq(ctx, in->send_cq_handle),
		.rcq = find_cq(ctx, in->recv_cq_handle),
		.srq = in->is_srq ? find_srq(ctx, in->srq_handle) : NULL,
		.sq = { in->max_send_wr, in->max_send_sge, in->max_inline_data,
			in->qp_type == IBV_QPT_UD },
		.rq = { in->max_recv_wr, in->max_recv_sge },
		.type = in->qp_type,
		.transport = rl_options()->roce ? rl_roce_transport(in->qp_type) : &rl_rnic_transport,
		.sig_all = in->sq_sig_all,
	};
	if (!is_type_of(ctx, in->qp_type))
		return -EOPNOTSUPP;
	return a->pd && a->scq && a->rcq && (a->srq || !in->is_srq) ? 0 : -EINVAL;
}

static int make_qp(struct rl_context *ctx, struct rl_command *c,
		   const struct ib_uverbs_ex_create_qp *in, struct ib_uverbs_create_qp_resp *resp)
{
	struct weft_create_qp_resp driver = {};
	struct rl_qp_attr a;
	struct rl_qp *qp;
	int rv = fill_qp_attr(ctx, in, &a);

	if (!rv && (c->uhw_out.len < sizeof(driver) || !is_zero(c)))
		rv = -EINVAL;
	rv = rv ?: rl_qp_new(ctx, &a, &driver, &qp);
	if (rv)
		return rv;
	qp->o.user_handle = in->user_handle;
	rv = rl_object_add(ctx, &qp->o);
	if (rv) {
		rl_qp_destroy(qp);
		return rv;
	}
	*resp = (struct ib_uverbs_create_qp_resp){
		.qp_handle = qp->o.handle,
		.qpn = qp->core.id,
		.max_send_wr = a.sq.wr,
		.max_recv_wr = a.rq.wr,
		.max_send_sge = a.sq.sge,
		.max_recv_sge = a.rq.sge,
		.max_inline_data = a.sq.inline_data,
	};
	return answer_driver(c, &driver, sizeof(driver));
}

static int create_qp(struct rl_context *ctx, struct rl_command *c)
{
	struct ib_uverbs_ex_create_qp in = {};

	memcpy(&in, (const u8 *)c->in + offsetof(struct ib_uverbs_create_qp, user_handle),
	       offsetof(struct ib_uverbs_ex_create_qp, comp_mask));
	return make_qp(ctx, c, &in, c->out);
}

static int create_qp_ex(struct rl_context *ctx, struct rl_command *c)
{
	const struct ib_uverbs_ex_create_qp *in = c->in;
	struct ib_uverbs_ex_create_qp_resp *resp = c->out;

	if (in->comp_mask & ~IB_UVERBS_CREATE_QP_MASK_IND_TABLE || in->reserved)
		return -EINVAL;
	if (in->create_flags || in->comp_mask)
		return -EOPNOTSUPP;
	resp->response_length = sizeof(*resp);
	return make_qp(ctx, c, in, &resp->base);
}

static int query_qp(struct rl_context *ctx, struct rl_command *c)
{
	const struct ib_uverbs_query_qp *in = c->in;
	struct ib_uverbs_query_qp_resp *r = c->out;
	struct rl_qp *qp = find_qp(ctx, in->qp_handle);

	if (!qp)
		return -EINVAL;
	rl_qp_query(qp, r);
	return 0;
}

static int change_qp(struct rl_context *ctx, const struct ib_uverbs_modify_qp *in)
{
	struct rl_qp *qp = find_qp(ctx, in->qp_handle);

	return qp ? rl_qp_modify(qp, in) : -EINVAL;
}

static int modify_qp(struct rl_context *ctx, struct rl_command *c)
{
	return change_qp(ctx, c->in);
}

static int modify_qp_ex(struct rl_context *ctx, struct rl_command *c)
{
	const struct ib_uverbs_ex_modify_qp *in = c->in;
	struct ib_uverbs_ex_modify_qp_resp *resp = c->out;

	if (c->out_len >= sizeof(*resp))
		resp->response_length = sizeof(*resp);
	return change_qp(ctx, &in->base);
}

static int destroy_qp(struct rl_context *ctx, struct rl_command *c)
{
	const struct ib_uverbs_destroy_qp *in = c->in;
	struct ib_uverbs_destroy_qp_resp *resp = c->out;
	struct rl_qp *qp = find_qp(ctx, in->qp_handle);

	if (!qp)
		return -ENOENT;
	if (qp->ud && qp->ud->groups)
		return -EBUSY;
	rl_object_replace(ctx, in->qp_handle, NULL);
	rl_qp_get(qp);
	rl_qp_destroy(qp);
	resp->events_reported = qp->async_reported;
	rl_qp_put(qp);
	return 0;
}

static int attach_mcast(struct rl_context *ctx, struct rl_command *c)
{
	const struct ib_uverbs_attach_mcast *in = c->in;
	struct rl_qp *qp = find_qp(ctx, in->qp_handle);

	return qp && qp->ud ? rl_ud_attach(qp, in->gid) : -EINVAL;
}

static int detach_mcast(struct rl_context *ctx, struct rl_command *c)
{
	const struct ib_uverbs_detach_mcast *in = c->in;
	struct rl_qp *qp = find_qp(ctx, in->qp_handle);

	return qp && qp->ud ? rl_ud_detach(qp, in->gid) : -EINVAL;
}

/* ---- shared receive queues ---- */

static int create_srq(struct rl_context *ctx, struct rl_command *c)
{
	const struct ib_uverbs_create_srq *in = c->in;
	struct ib_uverbs_create_srq_resp *resp = c->out;
	struct weft_rq_caps caps = { in->max_wr, in->max_sge };
	struct rl_pd *pd = find_pd(ctx, in->pd_handle);
	struct weft_create_srq_resp driver = {};
	struct rl_srq *srq;
	int rv;

	if (!pd || c->uhw_out.len < sizeof(driver) || !is_zero(c))
		return -EINVAL;
	rv = rl_srq_new(pd, ctx, &caps, &srq);
	if (rv)
		return rv;
	srq->o.user_handle = in->user_handle;
	rv = rl_object_add(ctx, &srq->o);
	if (rv) {
		rl_srq_destroy(srq);
		return rv;
	}
	rl_ring_describe(&srq->ring, srq->core.rq.q.slots, srq->core.rq.stride, &driver.srq);
	driver.srq_id = resp->srqn = srq->o.handle + 1;
	resp->srq_handle = srq->o.handle;
	resp->max_wr = caps.wr;
	resp->max_sge = caps.sge;
	return answer_driver(c, &driver, sizeof(driver));
}

/* A new size is asked for by WEFT_METHOD_SRQ_RESIZE. */
static int modify_srq(struct rl_context *ctx, struct rl_command *c)
{
	const struct ib_uverbs_modify_srq *in = c->in;
	struct rl_srq *srq = find_srq(ctx, in->srq_handle);

	if (!srq)
		return -EINVAL;
	if (in->attr_mask & IBV_SRQ_MAX_WR)
		return -EOPNOTSUPP;
	return in->attr_mask & IBV_SRQ_LIMIT ? rl_srq_arm(srq, in->srq_limit) : 0;
}

static int query_srq(struct rl_context *ctx, struct rl_command *c)
{
	const struct ib_uverbs_query_srq *in = c->in;
	struct ib_uverbs_query_srq_resp *resp = c->out;
	struct rl_srq *srq = find_srq(ctx, in->srq_handle);

	if (!srq)
		return -EINVAL;
	resp->max_wr = weft_srqc_size(&srq->core);
	resp->max_sge = srq->core.rq.max_sge;
	resp->srq_limit = READ_ONCE(srq->core.limit);
	return 0;
}

static int destroy_srq(struct rl_context *ctx, struct rl_command *c)
{
	const struct ib_uverbs_destroy_srq *in = c->in;
	struct ib_uverbs_destroy_srq_resp *resp = c->out;
	struct rl_srq *srq = find_srq(ctx, in->srq_handle);

	if (!srq || srq->o.users)
		return srq ? -EBUSY : -ENOENT;
	rl_object_replace(ctx, in->srq_handle, NULL);
	rl_context_forget(ctx, &srq->o);
	resp->events_reported = srq->async_reported;
	rl_srq_destroy(srq);
	return 0;
}

/* ---- the table ---- */

#define PLAIN(name, req, resp, fn) { IB_USER_VERBS_CMD_##name, sizeof(struct req), resp, fn }
#define EXT(name, req, resp, fn) { EX(name), sizeof(struct req), resp, fn }
#define R(s) sizeof(struct s)

static const struct command {
	u32 number;
	size_t in, out;			/* octets of the core's parts, at least */
	int (*run)(struct rl_context *ctx, struct rl_command *c);
} commands[] = {
	PLAIN(GET_CONTEXT, ib_uverbs_get_context, R(ib_uverbs_get_context_resp), get_context),
	PLAIN(QUERY_DEVICE, ib_uverbs_query_device, R(ib_uverbs_query_device_resp), query_device),
	EXT(QUERY_DEVICE, ib_uverbs_ex_query_device,
	    offsetof(struct ib_uverbs_ex_query_device_resp, odp_caps), query_device_ex),
	PLAIN(QUERY_PORT, ib_uverbs_query_port, R(ib_uverbs_query_port_resp), query_port),
	PLAIN(ALLOC_PD, ib_uverbs_alloc_pd, R(ib_uverbs_alloc_pd_resp), alloc_pd),
	PLAIN(DEALLOC_PD, ib_uverbs_dealloc_pd, 0, dealloc_pd),
	PLAIN(REG_MR, ib_uverbs_reg_mr, R(ib_uverbs_reg_mr_resp), reg_mr),
	PLAIN(REREG_MR, ib_uverbs_rereg_mr, R(ib_uverbs_rereg_mr_resp), rereg_mr),
	PLAIN(DEREG_MR, ib_uverbs_dereg_mr, 0, dereg_mr),
	PLAIN(ALLOC_MW, ib_uverbs_alloc_mw, R(ib_uverbs_alloc_mw_resp), alloc_mw),
	PLAIN(DEALLOC_MW, ib_uverbs_dealloc_mw, 0, dealloc_mw),
	PLAIN(CREATE_COMP_CHANNEL, ib_uverbs_create_comp_channel,
	      R(ib_uverbs_create_comp_channel_resp), create_comp_channel),
	PLAIN(CREATE_CQ, ib_uverbs_create_cq, R(ib_uverbs_create_cq_resp), create_cq),
	EXT(CREATE_CQ, ib_uverbs_ex_create_cq, R(ib_uverbs_ex_create_cq_resp), create_cq_ex),
	PLAIN(RESIZE_CQ, ib_uverbs_resize_cq, R(ib_uverbs_resize_cq_resp), resize_cq),
	PLAIN(DESTROY_CQ, ib_uverbs_destroy_cq, R(ib_uverbs_destroy_cq_resp), destroy_cq),
	PLAIN(CREATE_QP, ib_uverbs_create_qp, R(ib_uverbs_create_qp_resp), create_qp),
	EXT(CREATE_QP, ib_uverbs_ex_create_qp, R(ib_uverbs_ex_create_qp_resp), create_qp_ex),
	PLAIN(QUERY_QP, ib_uverbs_query_qp, R(ib_uverbs_query_qp_resp), query_qp),
	PLAIN(MODIFY_QP, ib_uverbs_modify_qp, 0, modify_qp),
	EXT(MODIFY_QP, ib_uverbs_modify_qp, 0, modify_qp_ex),
	PLAIN(DESTROY_QP, ib_uverbs_destroy_qp, R(ib_uverbs_destroy_qp_resp), destroy_qp),
	PLAIN(ATTACH_MCAST, ib_uverbs_attach_mcast, 0, attach_mcast),
	PLAIN(DETACH_MCAST, ib_uverbs_detach_mcast, 0, detach_mcast),
	PLAIN(CREATE_SRQ, ib_uverbs_create_srq, R(ib_uverbs_create_srq_resp), create_srq),
	PLAIN(MODIFY_SRQ, ib_uverbs_modify_srq, 0, modify_srq),
	PLAIN(QUERY_SRQ, ib_uverbs_query_srq, R(ib_uverbs_query_srq_resp), query_srq),
	PLAIN(DESTROY_SRQ, ib_uverbs_destroy_srq, R(ib_uverbs_destroy_srq_resp), destroy_srq),
};

static const struct command *find_command(u32 number)
{
	const struct command *c;

	for (c = commands; c < commands + ARRAY_SIZE(commands); c++)
		if (c->number == number)
			return c;
	return NULL;
}

bool rl_command_sizes(u32 number, size_t *in, size_t *out)
{
	const struct command *c = find_command(number);

	if (!c)
		return false;
	*in = c->in;
	*out = c->out;
	return true;
}

int rl_command_run(struct rl_context *ctx, struct rl_command *c)
{
	if (!ctx->ready && c->number != IB_USER_VERBS_CMD_GET_CONTEXT)
		return -EINVAL;
	return find_command(c->number)->run(ctx, c);
}

/* ---- the end ---- */

static void destroy(struct rl_object *o)
{
	switch (o->kind) {
	case RL_QP:
		rl_qp_destroy(container_of(o, struct rl_qp, o));
		break;
	case RL_SRQ:
		rl_srq_destroy(container_of(o, struct rl_srq, o));
		break;
	case RL_CQ:
		rl_cq_stop(container_of(o, struct rl_cq, o));
		rl_cq_destroy(container_of(o, struct rl_cq, o));
		break;
	case RL_MW:
	case RL_MR:
		rl_mr_destroy(container_of(o, struct rl_mr, o));
		break;
	case RL_PD:
		free(container_of(o, struct rl_pd, o));
		break;
	case RL_CONTEXT:
	case RL_KINDS:
		break;
	}
}

/* What is made of others goes before them. */
void rl_command_clean_up(struct rl_context *ctx)
{
	static const enum rl_kind order[] = { RL_QP, RL_SRQ, RL_CQ, RL_MW, RL_MR, RL_PD };
	struct rl_object *o;
	u32 i, h;

	for (i = 0; i < ARRAY_SIZE(order); i++)
		for (h = 0; h < RL_CHUNK * RL_CHUNKS; h++) {
			if (!ctx->chunks[h / RL_CHUNK]) {
				h |= RL_CHUNK - 1;
				continue;
			}
			o = rl_object_find(ctx, order[i], h);
			if (!o)
				continue;
			rl_object_replace(ctx, h, NULL);
			destroy(o);
		}
}
