/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The provider is written for the newest rdma-core; this adapts it to older releases. Not part of
 * the series for rdma-core.
 */
#ifndef WEFT_PROVIDER_COMPAT_H
#define WEFT_PROVIDER_COMPAT_H

#include <infiniband/driver.h>

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
