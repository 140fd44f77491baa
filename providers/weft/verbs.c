// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Queries, protection domains and memory regions: all done by the kernel. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <infiniband/cmd_ioctl.h>

#include "abi.h"
#include "compat.h"
#include "dm_mem.h"
#include "weft.h"

int weft_query_device(struct ibv_context *ctx, const struct ibv_query_device_ex_input *input,
		      struct ibv_device_attr_ex *attr, size_t attr_size)
{
	struct ib_uverbs_ex_query_device_resp resp;
	size_t resp_size = sizeof(resp);
	uint64_t ver;
	int err;

	err = ibv_cmd_query_device_any(ctx, input, attr, attr_size, &resp, &resp_size);
	if (err)
		return err;
	if (attr_size >=
	    offsetof(struct ibv_device_attr_ex, max_dm_size) + sizeof(attr->max_dm_size))
		attr->max_dm_size = WEFT_MAX_DM;
	ver = resp.base.fw_ver;
	snprintf(attr->orig_attr.fw_ver, sizeof(attr->orig_attr.fw_ver), "%u.%u.%u",
		 (unsigned int)(ver >> 32), (unsigned int)(ver >> 16) & 0xffff,
		 (unsigned int)ver & 0xffff);
	return 0;
}

int weft_query_port(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr)
{
	struct ibv_query_port cmd;

	return ibv_cmd_query_port(ctx, port, attr, &cmd, sizeof(cmd));
}

/*
 * The clock of timestamps: CLOCK_MONOTONIC, in nanoseconds. All in tv_nsec, as other drivers do, so
 * that a program gets the same value with and without tv_sec.
 */
int weft_query_rt_values(struct ibv_context *ctx, struct ibv_values_ex *values)
{
	struct timespec t;

	if (!(to_weft_ctx(ctx)->features & WEFT_FEATURE_TIMESTAMP))
		return EOPNOTSUPP;
	if (values->comp_mask & ~IBV_VALUES_MASK_RAW_CLOCK)
		return EINVAL;
	if (values->comp_mask && clock_gettime(CLOCK_MONOTONIC, &t))
		return errno;
	if (values->comp_mask)
		values->raw_clock = (struct timespec){
			.tv_nsec = t.tv_sec * 1000000000L + t.tv_nsec,
		};
	return 0;
}

struct ibv_pd *weft_alloc_pd(struct ibv_context *ctx)
{
	struct ib_uverbs_alloc_pd_resp resp;
	struct ibv_alloc_pd cmd;
	struct weft_pd *pd;
	int err;

	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;
	err = ibv_cmd_alloc_pd(ctx, &pd->pd, &cmd, sizeof(cmd), &resp, sizeof(resp));
	if (err) {
		free(pd);
		errno = err;
		return NULL;
	}
	return &pd->pd;
}

int weft_dealloc_pd(struct ibv_pd *ibpd)
{
	struct weft_pd *pd = to_weft_pd(ibpd);
	int err;

	if (pd->of)
		return weft_dealloc_parent_domain(pd);
	if (atomic_load(&pd->users))
		return EBUSY;
	err = ibv_cmd_dealloc_pd(ibpd);
	if (!err)
		weft_free_object(ibpd->context, pd);
	return err;
}

struct ibv_mr *weft_reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access)
{
	struct ib_uverbs_reg_mr_resp resp;
	struct ibv_reg_mr cmd;
	struct weft_mr *mr;
	int err;

	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return NULL;
	err = ibv_cmd_reg_mr(pd, addr, length, iova, access, &mr->vmr, &cmd, sizeof(cmd), &resp,
			     sizeof(resp));
	if (err) {
		free(mr);
		errno = err;
		return NULL;
	}
	return &mr->vmr.ibv_mr;
}

/* Covers all addresses and has no memory. Start and length are ignored. */
struct ibv_mr *weft_alloc_null_mr(struct ibv_pd *pd)
{
	struct weft_cmd_reg_mr cmd = { .flags = WEFT_REG_MR_NULL };
	struct ib_uverbs_reg_mr_resp resp;
	struct weft_mr *mr;
	int err;

	if (!(to_weft_ctx(pd->context)->features & WEFT_FEATURE_NULL_MR)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return NULL;
	err = ibv_cmd_reg_mr(pd, NULL, 1, 0, IBV_ACCESS_LOCAL_WRITE, &mr->vmr, &cmd.ibv_cmd,
			     sizeof(cmd), &resp, sizeof(resp));
	if (err) {
		free(mr);
		errno = err;
		return NULL;
	}
	mr->vmr.ibv_mr.pd = pd;
	mr->vmr.ibv_mr.rkey = 0;
	mr->vmr.mr_type = IBV_MR_TYPE_NULL_MR;
	return &mr->vmr.ibv_mr;
}

/*
 * The ioctl itself: libibverbs' function has one more argument since 54, under the same private
 * ABI, and the provider may be built in another release than the one that loads it.
 */
static int reg_dmabuf(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd,
		      int access, struct ibv_mr *mr)
{
	DECLARE_COMMAND_BUFFER(cmd, UVERBS_OBJECT_MR, UVERBS_METHOD_REG_DMABUF_MR, 9);
	struct ib_uverbs_attr *handle = fill_attr_out_obj(cmd, UVERBS_ATTR_REG_DMABUF_MR_HANDLE);
	int err;

	fill_attr_in_obj(cmd, UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE, pd->handle);
	fill_attr_in_uint64(cmd, UVERBS_ATTR_REG_DMABUF_MR_OFFSET, offset);
	fill_attr_in_uint64(cmd, UVERBS_ATTR_REG_DMABUF_MR_LENGTH, length);
	fill_attr_in_uint64(cmd, UVERBS_ATTR_REG_DMABUF_MR_IOVA, iova);
	fill_attr_in_uint32(cmd, UVERBS_ATTR_REG_DMABUF_MR_FD, fd);
	fill_attr_in_uint32(cmd, UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS, access);
	fill_attr_out(cmd, UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY, &mr->lkey, sizeof(mr->lkey));
	fill_attr_out(cmd, UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY, &mr->rkey, sizeof(mr->rkey));
	err = execute_ioctl(pd->context, cmd);
	if (!err)
		mr->handle = read_attr_obj(UVERBS_ATTR_REG_DMABUF_MR_HANDLE, handle);
	return err;
}

/* Its address is the offset in the dmabuf, as in libibverbs. */
struct ibv_mr *weft_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
				  int fd, int access)
{
	struct weft_mr *mr = calloc(1, sizeof(*mr));
	int err;

	if (!mr)
		return NULL;
	err = reg_dmabuf(pd, offset, length, iova, fd, access, &mr->vmr.ibv_mr);
	if (err) {
		free(mr);
		errno = err;
		return NULL;
	}
	mr->vmr.ibv_mr.context = pd->context;
	mr->vmr.ibv_mr.pd = pd;
	mr->vmr.ibv_mr.addr = (void *)(uintptr_t)offset;
	mr->vmr.ibv_mr.length = length;
	mr->vmr.mr_type = IBV_MR_TYPE_DMABUF_MR;
	return &mr->vmr.ibv_mr;
}

int weft_rereg_mr(struct verbs_mr *vmr, int flags, struct ibv_pd *pd, void *addr, size_t length,
		  int access)
{
	struct ib_uverbs_rereg_mr_resp resp;
	struct ibv_rereg_mr cmd;

	return ibv_cmd_rereg_mr(vmr, flags, addr, length, (uintptr_t)addr, access, pd, &cmd,
				sizeof(cmd), &resp, sizeof(resp));
}

int weft_dereg_mr(struct verbs_mr *vmr)
{
	struct weft_mr *mr = to_weft_mr(&vmr->ibv_mr);
	int err = ibv_cmd_dereg_mr(vmr);

	if (err)
		return err;
	weft_dm_mem_release(mr->dm);
	weft_free_object(vmr->ibv_mr.context, mr);
	return 0;
}

int weft_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		   struct ibv_sge *sgl, uint32_t num_sge)
{
	return ibv_cmd_advise_mr(pd, advice, flags, sgl, num_sge);
}

/* ---- imported objects ---- */

struct ibv_pd *weft_import_pd(struct ibv_context *ctx, uint32_t handle)
{
	struct weft_pd *pd = calloc(1, sizeof(*pd));

	if (!pd)
		return NULL;
	pd->pd.context = ctx;
	pd->pd.handle = handle;
	return &pd->pd;
}

void weft_unimport_pd(struct ibv_pd *pd)
{
	free(to_weft_pd(pd));
}

struct ibv_mr *weft_import_mr(struct ibv_pd *pd, uint32_t handle)
{
	struct weft_mr *mr = calloc(1, sizeof(*mr));
	int err;

	if (!mr)
		return NULL;
	err = ibv_cmd_query_mr(pd, &mr->vmr, handle);
	if (err) {
		free(mr);
		errno = err;
		return NULL;
	}
	return &mr->vmr.ibv_mr;
}

void weft_unimport_mr(struct ibv_mr *mr)
{
	free(to_weft_mr(mr));
}

struct ibv_mw *weft_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct ib_uverbs_alloc_mw_resp resp;
	struct ibv_alloc_mw cmd;
	struct ibv_mw *mw = calloc(1, sizeof(*mw));
	int err;

	if (!mw)
		return NULL;
	err = ibv_cmd_alloc_mw(pd, type, mw, &cmd, sizeof(cmd), &resp, sizeof(resp));
	if (err) {
		free(mw);
		errno = err;
		return NULL;
	}
	return mw;
}

int weft_dealloc_mw(struct ibv_mw *mw)
{
	int err = ibv_cmd_dealloc_mw(mw);

	if (!err)
		weft_free_object(mw->context, mw);
	return err;
}
