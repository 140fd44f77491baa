/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The provider is written for the newest rdma-core; this adapts it to older releases. Not part of
 * the series for rdma-core.
 */
#ifndef WEFT_PROVIDER_COMPAT_H
#define WEFT_PROVIDER_COMPAT_H

#include <string.h>

#include <infiniband/driver.h>
#include <infiniband/kern-abi.h>

/*
 * ibv_cmd_get_context() gained a list of file descriptors after PABI 34, which Debian 12 (44) and
 * 13 (56) have. scripts/build-provider.sh checks the source that it builds in.
 */
#ifdef WEFT_GET_CONTEXT_WITHOUT_FDS
#define ibv_cmd_get_context(ctx, cmd, cmd_size, fds, resp, resp_size) \
	ibv_cmd_get_context(ctx, cmd, cmd_size, resp, resp_size)
#endif

/*
 * ibv_cmd_create_cq_ex() gained flags after 33, and an argument that describes the CQ's memory
 * after 58.
 */
#if defined(WEFT_CREATE_CQ_EX_WITHOUT_FLAGS)
#define ibv_cmd_create_cq_ex(ctx, attr, prov, cq, cmd, cmd_size, resp, resp_size, flags) \
	ibv_cmd_create_cq_ex(ctx, attr, cq, cmd, cmd_size, resp, resp_size)
#elif defined(WEFT_CREATE_CQ_EX_WITHOUT_PROV)
#define ibv_cmd_create_cq_ex(ctx, attr, prov, cq, cmd, cmd_size, resp, resp_size, flags) \
	ibv_cmd_create_cq_ex(ctx, attr, cq, cmd, cmd_size, resp, resp_size, flags)
#endif

/*
 * ibv_cmd_query_device_any() came with 33. Before, libibverbs asks the provider for the shorter
 * answer, too, by an operation of its own.
 */
#ifdef WEFT_WITHOUT_QUERY_DEVICE_ANY
int ibv_cmd_query_device_ex(struct ibv_context *ctx, const struct ibv_query_device_ex_input *input,
			    struct ibv_device_attr_ex *attr, size_t attr_size, uint64_t *raw_fw_ver,
			    struct ibv_query_device_ex *cmd, size_t cmd_size,
			    struct ib_uverbs_ex_query_device_resp *resp, size_t resp_size);

static inline int weft_query_device_any(struct ibv_context *ctx,
					const struct ibv_query_device_ex_input *input,
					struct ibv_device_attr_ex *attr, size_t attr_size,
					struct ib_uverbs_ex_query_device_resp *resp,
					size_t *resp_size)
{
	struct ibv_query_device_ex cmd;
	uint64_t raw_fw_ver;

	memset(attr, 0, attr_size);
	return ibv_cmd_query_device_ex(ctx, input, attr, attr_size, &raw_fw_ver, &cmd, sizeof(cmd),
				       resp, *resp_size);
}
#define ibv_cmd_query_device_any weft_query_device_any

int weft_query_device(struct ibv_context *ctx, const struct ibv_query_device_ex_input *input,
		      struct ibv_device_attr_ex *attr, size_t attr_size);

static inline int weft_query_device_plain(struct ibv_context *ctx, struct ibv_device_attr *attr)
{
	struct ibv_device_attr_ex ex;
	int err = weft_query_device(ctx, NULL, &ex, sizeof(ex));

	if (!err)
		*attr = ex.orig_attr;
	return err;
}

static inline void weft_set_ops(struct verbs_context *vctx, const struct verbs_context_ops *ops)
{
	struct verbs_context_ops all = *ops;

	all.query_device = (void (*)(void))weft_query_device_plain;
	verbs_set_ops(vctx, &all);
}
#define verbs_set_ops weft_set_ops
#endif

/* Import came with 31. */
#ifdef WEFT_WITHOUT_IMPORT
#define ibv_cmd_query_context(ctx, driver) ((void)(ctx), (void)(driver), EOPNOTSUPP)
#define ibv_cmd_query_mr(pd, vmr, handle) ((void)(pd), (void)(vmr), (void)(handle), EOPNOTSUPP)
#endif

/* ibv_cmd_create_qp_ex() lost the size of the QP's structure with 30. */
#ifdef WEFT_CREATE_QP_EX_WITH_SIZE
#define ibv_cmd_create_qp_ex(ctx, qp, attr, cmd, cmd_size, resp, resp_size) \
	ibv_cmd_create_qp_ex(ctx, qp, sizeof(*(qp)), attr, cmd, cmd_size, resp, resp_size)
#endif

/* libibverbs exports what writes its log since 37. */
#ifdef WEFT_WITHOUT_LOG
#include <stdio.h>
#undef verbs_err
#define verbs_err(ctx, ...) ((void)(ctx), (void)fprintf(stderr, __VA_ARGS__))
#endif

/*
 * struct ibv_qp_ex grew (wr_flush, after 44) while the private ABI kept its number, and libibverbs
 * reads the field that follows it. If the provider is built in the source of another release than
 * the installed one, it must write where the installed one reads; build-provider.sh compares the
 * two.
 */
#ifdef WEFT_QP_EX_SIZE
#define weft_qp_comp_mask(vqp) ((uint32_t *)((char *)(vqp) + WEFT_QP_EX_SIZE))
#else
#define weft_qp_comp_mask(vqp) (&(vqp)->comp_mask)
#endif

#endif
