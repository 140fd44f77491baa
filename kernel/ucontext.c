// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* User contexts, and the driver's own methods. */
#include <linux/module.h>

#include "trace.h"
#include "verbs.h"

#define UVERBS_MODULE_NAME weft
#include <rdma/uverbs_named_ioctl.h>

/* ---- contexts ---- */

/*
 * Fields beyond a shorter request count as 0; a longer request must be zero in fields we do not
 * know.
 */
static int read_request(struct ib_udata *udata, struct weft_alloc_ucontext_req *req)
{
	size_t n = min(udata->inlen, sizeof(*req));

	memset(req, 0, sizeof(*req));
	if (udata->inlen > n && !ib_is_udata_cleared(udata, n, udata->inlen - n))
		return -EOPNOTSUPP;
	return n ? ib_copy_from_udata(req, udata, n) : 0;
}

static struct weft_alloc_ucontext_resp describe(const struct weft_ucontext *uc)
{
	return (struct weft_alloc_ucontext_resp) {
		.features = uc->features,
		.abi_version = WEFT_ABI_VERSION,
		.max_inline = WEFT_MAX_INLINE,
	};
}

int weft_alloc_ucontext(struct ib_ucontext *ibuc, struct ib_udata *udata)
{
	struct weft_device *dev = to_weft_dev(ibuc->device);
	struct weft_ucontext *uc = container_of(ibuc, struct weft_ucontext, ibuc);
	struct weft_alloc_ucontext_resp resp;
	struct weft_alloc_ucontext_req req;
	int rv = read_request(udata, &req);

	if (rv)
		return rv;
	uc->features = req.features & WEFT_FEATURES;
	if (!READ_ONCE(dev->extensions))
		uc->features &= ~WEFT_EXT_FEATURES;
	resp = describe(uc);
	if (udata->outlen) {
		rv = ib_copy_to_udata(udata, &resp, min(udata->outlen, sizeof(resp)));
		if (rv)
			return rv;
	}
	weft_users_init(uc);
	atomic_inc(&dev->num_ctx);
	return 0;
}

/* A program that was passed another's command file queries which features are in force. */
int weft_query_ucontext(struct ib_ucontext *ibuc, struct uverbs_attr_bundle *attrs)
{
	struct weft_ucontext *uc = container_of(ibuc, struct weft_ucontext, ibuc);
	struct weft_alloc_ucontext_resp resp = describe(uc);

	weft_users_record(uc);
	return uverbs_copy_to_struct_or_zero(attrs, WEFT_ATTR_QUERY_CONTEXT_RESP, &resp,
					     sizeof(resp));
}

void weft_dealloc_ucontext(struct ib_ucontext *ibuc)
{
	weft_users_exit(container_of(ibuc, struct weft_ucontext, ibuc));
	atomic_dec(&to_weft_dev(ibuc->device)->num_ctx);
}

/*
 * Nothing of the device is mapped: what user space has are pages of rings, and
 * they live on as long as it maps them. That the operation exists lets the
 * core take the device down under open files.
 */
void weft_disassociate_ucontext(struct ib_ucontext *ibuc)
{
}

/* ---- driver methods ---- */

static int UVERBS_HANDLER(WEFT_METHOD_QP_KICK)(struct uverbs_attr_bundle *attrs)
{
	struct ib_qp *ibqp = uverbs_attr_get_obj(attrs, WEFT_ATTR_QP_KICK_HANDLE);

	if (IS_ERR(ibqp))
		return PTR_ERR(ibqp);
	trace_weft_kick(ibqp->qp_num);
	if (unlikely(current->mm != to_weft_qp(ibqp)->owner))
		weft_users_record(to_weft_qp(ibqp)->uc);
	weft_conn_kick(to_weft_qp(ibqp));
	return 0;
}

static int UVERBS_HANDLER(WEFT_METHOD_CQ_KICK)(struct uverbs_attr_bundle *attrs)
{
	struct ib_cq *ibcq = uverbs_attr_get_obj(attrs, WEFT_ATTR_CQ_KICK_HANDLE);
	struct weft_qp *qp;

	if (IS_ERR(ibcq))
		return PTR_ERR(ibcq);
	qp = weft_cq_lingerer(to_weft_cq(ibcq));
	if (qp) {
		weft_conn_kick(qp);
		weft_qp_drop(qp);
	}
	return 0;
}

DECLARE_UVERBS_NAMED_METHOD(WEFT_METHOD_QP_KICK,
			    UVERBS_ATTR_IDR(WEFT_ATTR_QP_KICK_HANDLE, UVERBS_OBJECT_QP,
					    UVERBS_ACCESS_READ, UA_MANDATORY));

DECLARE_UVERBS_NAMED_METHOD(WEFT_METHOD_CQ_KICK,
			    UVERBS_ATTR_IDR(WEFT_ATTR_CQ_KICK_HANDLE, UVERBS_OBJECT_CQ,
					    UVERBS_ACCESS_READ, UA_MANDATORY));

static int UVERBS_HANDLER(WEFT_METHOD_SRQ_RESIZE)(struct uverbs_attr_bundle *attrs)
{
	struct ib_srq *ibsrq = uverbs_attr_get_obj(attrs, WEFT_ATTR_SRQ_RESIZE_HANDLE);
	u32 max_wr;
	int rv;

	if (IS_ERR(ibsrq))
		return PTR_ERR(ibsrq);
	rv = uverbs_copy_from(&max_wr, attrs, WEFT_ATTR_SRQ_RESIZE_MAX_WR);
	return rv ?: weft_resize_user_srq(ibsrq, max_wr, attrs);
}

/* A method, since modify_srq's command has no answer that could name the new ring. */
DECLARE_UVERBS_NAMED_METHOD(WEFT_METHOD_SRQ_RESIZE,
			    UVERBS_ATTR_IDR(WEFT_ATTR_SRQ_RESIZE_HANDLE, UVERBS_OBJECT_SRQ,
					    UVERBS_ACCESS_READ, UA_MANDATORY),
			    UVERBS_ATTR_PTR_IN(WEFT_ATTR_SRQ_RESIZE_MAX_WR,
					       UVERBS_ATTR_TYPE(u32), UA_MANDATORY),
			    UVERBS_ATTR_PTR_OUT(WEFT_ATTR_SRQ_RESIZE_RESP,
						UVERBS_ATTR_STRUCT(struct weft_modify_srq_resp,
								   srq),
						UA_MANDATORY));

static int UVERBS_HANDLER(WEFT_METHOD_SRQ_KICK)(struct uverbs_attr_bundle *attrs)
{
	struct ib_srq *ibsrq = uverbs_attr_get_obj(attrs, WEFT_ATTR_SRQ_KICK_HANDLE);

	if (IS_ERR(ibsrq))
		return PTR_ERR(ibsrq);
	weft_srq_kick(to_weft_srq(ibsrq));
	return 0;
}

DECLARE_UVERBS_NAMED_METHOD(WEFT_METHOD_SRQ_KICK,
			    UVERBS_ATTR_IDR(WEFT_ATTR_SRQ_KICK_HANDLE, UVERBS_OBJECT_SRQ,
					    UVERBS_ACCESS_READ, UA_MANDATORY));

ADD_UVERBS_ATTRIBUTES_SIMPLE(weft_query_context, UVERBS_OBJECT_DEVICE,
			     UVERBS_METHOD_QUERY_CONTEXT,
			     UVERBS_ATTR_PTR_OUT(WEFT_ATTR_QUERY_CONTEXT_RESP,
						 UVERBS_ATTR_STRUCT(struct weft_alloc_ucontext_resp,
								    max_inline),
						 UA_MANDATORY));

ADD_UVERBS_METHODS(weft_qp_methods, UVERBS_OBJECT_QP, &UVERBS_METHOD(WEFT_METHOD_QP_KICK));
ADD_UVERBS_METHODS(weft_cq_methods, UVERBS_OBJECT_CQ, &UVERBS_METHOD(WEFT_METHOD_CQ_KICK));
ADD_UVERBS_METHODS(weft_srq_methods, UVERBS_OBJECT_SRQ, &UVERBS_METHOD(WEFT_METHOD_SRQ_RESIZE),
		   &UVERBS_METHOD(WEFT_METHOD_SRQ_KICK));

const struct uapi_definition weft_uapi_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DEVICE, &weft_query_context),
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_QP, &weft_qp_methods),
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_CQ, &weft_cq_methods),
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_SRQ, &weft_srq_methods),
	{},
};
