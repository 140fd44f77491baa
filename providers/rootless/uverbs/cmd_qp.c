// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Queue pairs. */
#include "process/options.h"
#include "request.h"
#include "roce/transport.h"
#include "roce/ud.h"

/* The extended command's request begins with the plain one's fields, less its first. */
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

/* Types that the device lacks are refused by name; so are those that an older provider lacks. */
static bool is_type_of(const struct rl_context *ctx, u32 type)
{
	bool more = ctx->features & WEFT_FEATURE_ROCE_TYPES;

	if (type < 32 && ctx->dev->about->qp_types & 1u << type && (type == IBV_QPT_RC || more))
		return true;
	rl_trace("a QP of type %u (%s) is refused: there are none", type, name_of_type(type));
	return false;
}

static bool is_within_limits(const struct rl_profile *p, const struct ib_uverbs_ex_create_qp *in)
{
	return in->max_send_wr <= p->max_qp_wr && in->max_recv_wr <= p->max_qp_wr &&
	       in->max_send_sge <= p->max_sge && in->max_recv_sge <= p->max_sge &&
	       in->max_inline_data <= p->max_inline_data;
}

static int fill_qp_attr(struct rl_context *ctx, const struct ib_uverbs_ex_create_qp *in,
			struct rl_qp_attr *a)
{
	*a = (struct rl_qp_attr){
		.pd = rl_find_pd(ctx, in->pd_handle),
		.scq = rl_find_cq(ctx, in->send_cq_handle),
		.rcq = rl_find_cq(ctx, in->recv_cq_handle),
		.srq = in->is_srq ? rl_find_srq(ctx, in->srq_handle) : NULL,
		.sq = { in->max_send_wr, in->max_send_sge, in->max_inline_data,
			in->qp_type == IBV_QPT_UD },
		.rq = { in->max_recv_wr, in->max_recv_sge },
		.type = in->qp_type,
		.transport = ctx->dev->about->iwarp ? &rl_rnic_transport :
						      rl_roce_transport(in->qp_type),
		.sig_all = in->sq_sig_all,
	};
	if (!is_type_of(ctx, in->qp_type))
		return -EOPNOTSUPP;
	if (!is_within_limits(ctx->dev->about, in))
		return -EINVAL;
	return a->pd && a->scq && a->rcq && (a->srq || !in->is_srq) ? 0 : -EINVAL;
}

static int make_qp(struct rl_context *ctx, struct rl_command *c,
		   const struct ib_uverbs_ex_create_qp *in, struct ib_uverbs_create_qp_resp *resp)
{
	struct weft_create_qp_resp driver = {};
	struct rl_qp_attr a;
	struct rl_qp *qp;
	int rv = fill_qp_attr(ctx, in, &a);

	if (!rv && (c->uhw_out.len < sizeof(driver) || !rl_cmd_is_zero(c)))
		rv = -EINVAL;
	rv = rv ?: rl_qp_new(ctx, &a, &driver, &qp);
	if (rv)
		return rv;
	qp->o.user_handle = in->user_handle;
	rl_qp_may_be_adverse(qp);
	rl_qp_may_be_faulty(qp);
	rl_qp_may_be_recorded(qp);
	rv = rl_object_add(ctx, &qp->o);
	if (rv) {
		rl_qp_leave(qp);
		rl_qp_destroy(qp);
		return rv;
	}
	*resp = (struct ib_uverbs_create_qp_resp){
		.qp_handle = qp->o.handle,
		.qpn = qp->core.id,
		.max_send_wr = qp->sq_caps.wr,
		.max_recv_wr = qp->rq_caps.wr,
		.max_send_sge = qp->sq_caps.sge,
		.max_recv_sge = qp->rq_caps.sge,
		.max_inline_data = qp->sq_caps.inline_data,
	};
	return rl_cmd_answer_driver(c, &driver, sizeof(driver));
}

int rl_cmd_create_qp(struct rl_context *ctx, struct rl_command *c)
{
	struct ib_uverbs_ex_create_qp in = {};

	memcpy(&in, (const u8 *)c->in + offsetof(struct ib_uverbs_create_qp, user_handle),
	       offsetof(struct ib_uverbs_ex_create_qp, comp_mask));
	return make_qp(ctx, c, &in, c->out);
}

int rl_cmd_create_qp_ex(struct rl_context *ctx, struct rl_command *c)
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

int rl_cmd_query_qp(struct rl_context *ctx, struct rl_command *c)
{
	const struct ib_uverbs_query_qp *in = c->in;
	struct ib_uverbs_query_qp_resp *r = c->out;
	struct rl_qp *qp = rl_find_qp(ctx, in->qp_handle);

	if (!qp)
		return -EINVAL;
	rl_qp_query(qp, r);
	return 0;
}

/* Waits for the peer, with a reference: meanwhile other threads use the context. */
static void without_lock(struct rl_context *ctx, struct rl_qp *qp, void (*wait)(struct rl_qp *qp))
{
	pthread_mutex_unlock(&ctx->lock);
	wait(qp);
	pthread_mutex_lock(&ctx->lock);
}

static int change_qp(struct rl_context *ctx, const struct ib_uverbs_modify_qp *in)
{
	struct rl_qp *qp = rl_find_qp(ctx, in->qp_handle);
	bool ends = in->attr_mask & IBV_QP_STATE &&
		    (in->qp_state == IBV_QPS_ERR || in->qp_state == IBV_QPS_RESET);
	int rv = -EINVAL;

	if (!qp)
		return rv;
	rl_qp_get(qp);
	if (ends)
		without_lock(ctx, qp, rl_qp_drain_acks);
	/* Another thread may have destroyed it. */
	if (rl_find_qp(ctx, in->qp_handle) == qp)
		rv = rl_qp_modify(qp, in);
	rl_qp_put(qp);
	return rv;
}

int rl_cmd_modify_qp(struct rl_context *ctx, struct rl_command *c)
{
	return change_qp(ctx, c->in);
}

int rl_cmd_modify_qp_ex(struct rl_context *ctx, struct rl_command *c)
{
	const struct ib_uverbs_ex_modify_qp *in = c->in;
	struct ib_uverbs_ex_modify_qp_resp *resp = c->out;

	if (c->out_len >= sizeof(*resp))
		resp->response_length = sizeof(*resp);
	return change_qp(ctx, &in->base);
}

int rl_cmd_destroy_qp(struct rl_context *ctx, struct rl_command *c)
{
	const struct ib_uverbs_destroy_qp *in = c->in;
	struct ib_uverbs_destroy_qp_resp *resp = c->out;
	struct rl_qp *qp = rl_find_qp(ctx, in->qp_handle);

	if (!qp)
		return -ENOENT;
	if (qp->ud && !list_empty(&qp->ud->groups))
		return -EBUSY;
	rl_object_replace(ctx, in->qp_handle, NULL);
	rl_qp_get(qp);
	without_lock(ctx, qp, rl_qp_leave);
	rl_qp_destroy(qp);
	resp->events_reported = qp->async_reported;
	rl_qp_put(qp);
	return 0;
}

int rl_cmd_attach_mcast(struct rl_context *ctx, struct rl_command *c)
{
	const struct ib_uverbs_attach_mcast *in = c->in;
	struct rl_qp *qp = rl_find_qp(ctx, in->qp_handle);

	return qp && qp->ud ? rl_ud_attach(qp, in->gid) : -EINVAL;
}

int rl_cmd_detach_mcast(struct rl_context *ctx, struct rl_command *c)
{
	const struct ib_uverbs_detach_mcast *in = c->in;
	struct rl_qp *qp = rl_find_qp(ctx, in->qp_handle);

	return qp && qp->ud ? rl_ud_detach(qp, in->gid) : -EINVAL;
}

/* ---- ioctls ---- */

int rl_kick_qp(struct rl_context *ctx, u32 handle)
{
	struct rl_object *o = rl_object_find(ctx, RL_QP, handle);

	if (!o)
		return -ENOENT;
	rl_qp_kick(container_of(o, struct rl_qp, o));
	return 0;
}

int rl_ioctl_kick_qp(struct rl_context *ctx, struct rl_request *r)
{
	const struct ib_uverbs_attr *a = rl_attr_find(r, WEFT_ATTR_QP_KICK_HANDLE);

	return a ? rl_kick_qp(ctx, a->data) : -EINVAL;
}

static int read_cap(struct rl_request *r, struct ib_uverbs_qp_cap *cap)
{
	const struct ib_uverbs_attr *a = rl_attr_find(r, UVERBS_ATTR_CREATE_QP_CAP);

	if (!a || a->len != sizeof(*cap))
		return -EINVAL;
	return rl_guard_copy(cap, (const void *)(uintptr_t)a->data, sizeof(*cap)) ? 0 : -EFAULT;
}

static int answer_qp(struct rl_request *r, const struct ib_uverbs_create_qp_resp *out)
{
	const struct ib_uverbs_qp_cap cap = {
		out->max_send_wr, out->max_recv_wr, out->max_send_sge, out->max_recv_sge,
		out->max_inline_data,
	};

	return rl_attr_answer(r, UVERBS_ATTR_CREATE_QP_RESP_CAP, &cap, sizeof(cap)) ?:
	       rl_attr_answer(r, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, &out->qpn, sizeof(out->qpn)) ?:
	       rl_attr_answer_number(r, UVERBS_ATTR_CREATE_QP_HANDLE, out->qp_handle);
}

int rl_ioctl_create_qp(struct rl_context *ctx, struct rl_request *r)
{
	const struct ib_uverbs_attr *user = rl_attr_find(r, UVERBS_ATTR_CREATE_QP_USER_HANDLE);
	u32 flags = rl_attr_word(r, UVERBS_ATTR_CREATE_QP_FLAGS);
	struct ib_uverbs_ex_create_qp_resp out = {};
	struct ib_uverbs_ex_create_qp in;
	struct rl_command c = {
		.number = IB_USER_VERBS_CMD_CREATE_QP | IB_USER_VERBS_CMD_FLAG_EXTENDED,
		.in = &in, .out = &out, .out_len = sizeof(out),
	};
	struct ib_uverbs_qp_cap cap;
	int rv = read_cap(r, &cap);

	if (rv)
		return rv;
	in = (struct ib_uverbs_ex_create_qp){
		.user_handle = user ? user->data : 0,
		.pd_handle = rl_attr_word(r, UVERBS_ATTR_CREATE_QP_PD_HANDLE),
		.send_cq_handle = rl_attr_word(r, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE),
		.recv_cq_handle = rl_attr_word(r, UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE),
		.srq_handle = rl_attr_word(r, UVERBS_ATTR_CREATE_QP_SRQ_HANDLE),
		.is_srq = !!rl_attr_find(r, UVERBS_ATTR_CREATE_QP_SRQ_HANDLE),
		.max_send_wr = cap.max_send_wr, .max_recv_wr = cap.max_recv_wr,
		.max_send_sge = cap.max_send_sge, .max_recv_sge = cap.max_recv_sge,
		.max_inline_data = cap.max_inline_data,
		.sq_sig_all = !!(flags & IB_UVERBS_QP_CREATE_SQ_SIG_ALL),
		.qp_type = rl_attr_word(r, UVERBS_ATTR_CREATE_QP_TYPE),
		.create_flags = flags & ~IB_UVERBS_QP_CREATE_SQ_SIG_ALL,
	};
	return rl_ioctl_create(ctx, r, rl_cmd_create_qp_ex, &c, RL_QP,
			       UVERBS_ATTR_CREATE_QP_EVENT_FD) ?: answer_qp(r, &out.base);
}
