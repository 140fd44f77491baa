/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The verbs commands, each followed by the driver's part from weft-abi.h. */
#ifndef WEFT_PROVIDER_ABI_H
#define WEFT_PROVIDER_ABI_H

#include <infiniband/kern-abi.h>
#include <rdma/weft-abi.h>
#include <kernel-abi/weft-abi.h>

#define WEFT_ASSERT_SIZE(type, size) \
	static_assert(sizeof(struct type) == (size), "size of " #type);
#define WEFT_ASSERT_OFFSET(type, field, off) \
	static_assert(offsetof(struct type, field) == (off), "offset of " #type "." #field);
WEFT_ABI_ASSERTS(WEFT_ASSERT_SIZE, WEFT_ASSERT_OFFSET)

DECLARE_DRV_CMD(weft_get_context, IB_USER_VERBS_CMD_GET_CONTEXT, weft_alloc_ucontext_req,
		weft_alloc_ucontext_resp);
DECLARE_DRV_CMD(weft_cmd_reg_mr, IB_USER_VERBS_CMD_REG_MR, weft_reg_mr_req, empty);
DECLARE_DRV_CMD(weft_cmd_create_cq, IB_USER_VERBS_CMD_CREATE_CQ, empty, weft_create_cq_resp);
DECLARE_DRV_CMD(weft_cmd_create_cq_ex, IB_USER_VERBS_EX_CMD_CREATE_CQ, empty, weft_create_cq_resp);
DECLARE_DRV_CMD(weft_cmd_resize_cq, IB_USER_VERBS_CMD_RESIZE_CQ, empty, weft_resize_cq_resp);
DECLARE_DRV_CMD(weft_cmd_create_srq, IB_USER_VERBS_CMD_CREATE_SRQ, empty, weft_create_srq_resp);
DECLARE_DRV_CMD(weft_cmd_create_qp, IB_USER_VERBS_CMD_CREATE_QP, empty, weft_create_qp_resp);

#endif
