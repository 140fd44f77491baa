// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Devices and contexts. */
#include <errno.h>
#include <stdlib.h>

#include "abi.h"
#include "compat.h"
#include "weft.h"

static const struct verbs_context_ops weft_ctx_ops;

/* Besides, and on top of those. */
static const struct verbs_context_ops failing_ops = {
	.post_recv = weft_failing_post_recv,
	.post_send = weft_failing_post_send,
	.post_srq_recv = weft_failing_post_srq_recv,
};

void weft_free_context(struct ibv_context *ibctx)
{
	struct weft_context *ctx = to_weft_ctx(ibctx);

	verbs_uninit_context(&ctx->vctx);
	pthread_mutex_destroy(&ctx->qp_mutex);
	free(ctx);
}

static int take_answer(struct weft_context *ctx, const struct weft_alloc_ucontext_resp *resp)
{
	if (resp->abi_version != WEFT_ABI_VERSION) {
		verbs_err(&ctx->vctx, "weft: the kernel speaks ABI %u, this is %u\n",
			  resp->abi_version, WEFT_ABI_VERSION);
		return EPROTO;
	}
	ctx->features = resp->features & WEFT_FEATURES;
	ctx->max_inline = resp->max_inline;
	return 0;
}

/* Offers features; the answer has those in force. */
static int get_context(struct weft_context *ctx)
{
	struct weft_get_context cmd = { .features = WEFT_FEATURES };
	struct weft_get_context_resp resp = {};
	int err;

	err = ibv_cmd_get_context(&ctx->vctx, &cmd.ibv_cmd, sizeof(cmd), NULL, &resp.ibv_resp,
				  sizeof(resp));
	if (err)
		return err;
	return take_answer(ctx, &resp.drv_payload);
}

/* For an imported context, which shares another's file. */
static int query_context(struct weft_context *ctx)
{
	DECLARE_COMMAND_BUFFER(driver, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_CONTEXT, 1);
	struct weft_alloc_ucontext_resp resp = {};
	int err;

	fill_attr_out(driver, WEFT_ATTR_QUERY_CONTEXT_RESP, &resp, sizeof(resp));
	err = ibv_cmd_query_context(&ctx->vctx.context, driver);
	return err ? err : take_answer(ctx, &resp);
}

static struct verbs_context *new_context(struct ibv_device *ibdev, int cmd_fd,
					 int (*ask)(struct weft_context *ctx))
{
	struct weft_context *ctx;
	int err;

	/* The id is part of every ioctl, and the kernel checks it. */
	ctx = verbs_init_and_alloc_context(ibdev, cmd_fd, ctx, vctx,
					   to_weft_dev(ibdev)->driver_id);
	if (!ctx)
		return NULL;
	err = ask(ctx);
	if (err) {
		verbs_uninit_context(&ctx->vctx);
		free(ctx);
		errno = err;
		return NULL;
	}
	pthread_mutex_init(&ctx->qp_mutex, NULL);
	verbs_set_ops(&ctx->vctx, &weft_ctx_ops);
	ctx->posts_may_fail = weft_posts_may_fail(cmd_fd);
	if (ctx->posts_may_fail)
		verbs_set_ops(&ctx->vctx, &failing_ops);
	weft_judge_context(ctx);
	return &ctx->vctx;
}

static struct verbs_context *weft_alloc_context(struct ibv_device *ibdev, int cmd_fd,
						void *private_data)
{
	(void)private_data;
	return new_context(ibdev, cmd_fd, get_context);
}

static struct verbs_context *weft_import_context(struct ibv_device *ibdev, int cmd_fd)
{
	return new_context(ibdev, cmd_fd, query_context);
}

static struct verbs_device *weft_alloc_device(struct verbs_sysfs_dev *sysfs_dev)
{
	struct weft_device *dev = calloc(1, sizeof(*dev));

	if (!dev)
		return NULL;
	dev->driver_id = sysfs_dev->match->u.driver_id;
	return &dev->vdev;
}

static void weft_uninit_device(struct verbs_device *vdev)
{
	free(to_weft_dev(&vdev->device));
}

/*
 * Match by driver id only: a name does not identify the driver, and udev renames software devices.
 * Upstream will assign another id; the private one stays valid.
 */
static const struct verbs_match_ent weft_matches[] = {
	VERBS_DRIVER_ID(WEFT_DRIVER_ID),
	{},
};

/* In the order of struct verbs_context_ops. */
static const struct verbs_context_ops weft_ctx_ops = {
	.advise_mr = weft_advise_mr,
	.alloc_dm = weft_alloc_dm,
	.alloc_mw = weft_alloc_mw,
	.alloc_null_mr = weft_alloc_null_mr,
	.alloc_parent_domain = weft_alloc_parent_domain,
	.alloc_pd = weft_alloc_pd,
	.alloc_td = weft_alloc_td,
	.bind_mw = weft_bind_mw,
	.attach_mcast = weft_attach_mcast,
	.detach_mcast = weft_detach_mcast,
	.create_ah = weft_create_ah,
	.create_cq = weft_create_cq,
	.create_cq_ex = weft_create_cq_ex,
	.create_qp = weft_create_qp,
	.create_qp_ex = weft_create_qp_ex,
	.create_srq = weft_create_srq,
	.dealloc_mw = weft_dealloc_mw,
	.dealloc_pd = weft_dealloc_pd,
	.dealloc_td = weft_dealloc_td,
	.dereg_mr = weft_dereg_mr,
	.destroy_ah = weft_destroy_ah,
	.destroy_cq = weft_destroy_cq,
	.destroy_qp = weft_destroy_qp,
	.destroy_srq = weft_destroy_srq,
	.free_context = weft_free_context,
	.free_dm = weft_free_dm,
	.import_dm = weft_import_dm,
	.import_mr = weft_import_mr,
	.import_pd = weft_import_pd,
	.modify_qp = weft_modify_qp,
	.modify_srq = weft_modify_srq,
	.poll_cq = weft_poll_cq,
	.post_recv = weft_post_recv,
	.post_send = weft_post_send,
	.post_srq_recv = weft_post_srq_recv,
	.query_device_ex = weft_query_device,
	.query_port = weft_query_port,
	.query_qp = weft_query_qp,
	.query_rt_values = weft_query_rt_values,
	.query_srq = weft_query_srq,
	.reg_dm_mr = weft_reg_dm_mr,
	.reg_dmabuf_mr = weft_reg_dmabuf_mr,
	.reg_mr = weft_reg_mr,
	.req_notify_cq = weft_req_notify_cq,
	.rereg_mr = weft_rereg_mr,
	.resize_cq = weft_resize_cq,
	.unimport_dm = weft_unimport_dm,
	.unimport_mr = weft_unimport_mr,
	.unimport_pd = weft_unimport_pd,
};

static const struct verbs_device_ops weft_dev_ops = {
	.name = "weft",
	.match_min_abi_version = WEFT_ABI_VERSION,
	.match_max_abi_version = WEFT_ABI_VERSION,
	.match_table = weft_matches,
	.alloc_device = weft_alloc_device,
	.uninit_device = weft_uninit_device,
	.alloc_context = weft_alloc_context,
	.import_context = weft_import_context,
};

PROVIDER_DRIVER(weft, weft_dev_ops);
