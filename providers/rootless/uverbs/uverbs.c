// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The command file, /dev/infiniband/uverbsN: handles, and the two ways that a command comes,
 * write() and ioctl(). Newer libraries send the same commands by an ioctl (INVOKE_WRITE); what other
 * ioctls ask for is mostly answered as a kernel does that has only the commands, and libibverbs then
 * uses those. Pointers are the program's and may point anywhere: what they name is copied under
 * guard.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#include "process/guard.h"
#include "hooks/open.h"
#include "process/options.h"
#include "process/raw.h"
#include "host/verbs.h"

#define MAX_IN		512		/* octets of a command's core part, and of a driver's */
#define MAX_OUT		512
#define MAX_ATTRS	20

/* ---- event channels as files ---- */

struct chan_file {
	struct rl_file file;
	struct rl_chan *chan;
};

static struct chan_file *chan_file_of(struct rl_file *f)
{
	return container_of(f, struct chan_file, file);
}

static ssize_t chan_read(struct rl_file *f, int fd, void *buf, size_t len)
{
	rl_thread_revive(f);
	return rl_chan_read(chan_file_of(f)->chan, buf, len);
}

static void chan_release(struct rl_file *f)
{
	rl_chan_put(chan_file_of(f)->chan);
	free(chan_file_of(f));
}

static const struct rl_file_ops chan_ops = {
	.read = chan_read,
	.release = chan_release,
};

int rl_chan_open(struct rl_chan *c, int fd)
{
	struct chan_file *f = calloc(1, sizeof(*f));

	if (!f) {
		rl_raw(SYS_close, fd);
		return -ENOMEM;
	}
	rl_file_init(&f->file, &chan_ops, 0);
	rl_chan_get(c);
	f->chan = c;
	return rl_fd_install(fd, &f->file);
}

struct rl_chan *rl_chan_of_fd(int fd)
{
	struct rl_file *f = rl_fd_get(fd);
	struct rl_chan *c = NULL;

	if (!f)
		return NULL;
	if (f->ops == &chan_ops) {
		c = chan_file_of(f)->chan;
		rl_chan_get(c);
	}
	rl_file_put(f);
	return c;
}

/* ---- commands ---- */

static struct rl_context *context_of(struct rl_file *f)
{
	return container_of(f, struct rl_context, file);
}

/* A command as it came: pointers and lengths of the program's. */
struct call {
	u32 number;
	const void *in, *uhw_in;
	void *out, *uhw_out;
	size_t in_len, uhw_in_len, out_len, uhw_out_len;
};

/* Copies what is there, at most what there is room for; the rest is zero. */
static int copy_in(void *to, size_t room, const void *from, size_t len)
{
	memset(to, 0, room);
	return rl_guard_copy(to, from, min_t(size_t, room, len)) ? 0 : -EFAULT;
}

static int copy_out(void *to, const void *from, size_t len)
{
	return !len || rl_guard_copy(to, from, len) ? 0 : -EFAULT;
}

static int run_with_lock(struct rl_context *ctx, struct rl_command *c)
{
	int rv;

	pthread_mutex_lock(&ctx->lock);
	rv = rl_command_run(ctx, c);
	pthread_mutex_unlock(&ctx->lock);
	return rv;
}

static int run(struct rl_context *ctx, const struct call *call)
{
	u64 in[MAX_IN / 8], out[MAX_OUT / 8] = { 0 }, uhw_in[MAX_IN / 8], uhw_out[MAX_OUT / 8] = { 0 };
	struct rl_command c = {
		.number = call->number, .in = in, .out = out, .out_len = call->out_len,
		.uhw_in = { uhw_in, call->uhw_in_len }, .uhw_out = { uhw_out, call->uhw_out_len },
	};
	size_t in_size, out_size;
	int rv;

	if (!rl_command_sizes(call->number, &in_size, &out_size))
		return -EOPNOTSUPP;
	if (call->in_len < in_size || call->in_len > sizeof(in) ||
	    call->uhw_in_len > sizeof(uhw_in))
		return -EINVAL;
	if (call->out_len < out_size)
		return -ENOSPC;
	c.uhw_out.len = min_t(size_t, c.uhw_out.len, sizeof(uhw_out));
	rv = copy_in(in, sizeof(in), call->in, call->in_len) ?:
	     copy_in(uhw_in, sizeof(uhw_in), call->uhw_in, call->uhw_in_len) ?:
	     run_with_lock(ctx, &c);
	if (rv)
		return rv;
	/* Newer structures may be longer than ours: the program asked for zeros there. */
	return copy_out(call->out, out, min_t(size_t, call->out_len, sizeof(out))) ?:
	       copy_out(call->uhw_out, uhw_out, c.uhw_out.len);
}

/* The core's part, then the driver's; and so does the answer. */
static int split_plain(struct call *call, const u8 *p, size_t len, size_t out_len)
{
	size_t in_size, out_size;
	u64 response = 0;

	if (!rl_command_sizes(call->number, &in_size, &out_size))
		return -EOPNOTSUPP;
	if (len < in_size || out_len < out_size)
		return len < in_size ? -EINVAL : -ENOSPC;
	if (out_size && !rl_guard_copy(&response, p, sizeof(response)))
		return -EFAULT;
	call->in = p;
	call->in_len = in_size;
	call->uhw_in = p + in_size;
	call->uhw_in_len = len - in_size;
	call->out = (void *)(uintptr_t)response;
	call->out_len = out_size;
	call->uhw_out = (u8 *)call->out + out_size;
	call->uhw_out_len = out_len - out_size;
	return 0;
}

static int split_extended(struct call *call, const u8 *p, size_t len, size_t in_len, size_t out_len)
{
	struct ib_uverbs_ex_cmd_hdr ex;

	if (len < sizeof(ex))
		return -EINVAL;
	if (!rl_guard_copy(&ex, p, sizeof(ex)))
		return -EFAULT;
	if (ex.cmd_hdr_reserved || len - sizeof(ex) != in_len + ex.provider_in_words * 8u)
		return -EINVAL;
	call->in = p + sizeof(ex);
	call->in_len = in_len;
	call->uhw_in = p + sizeof(ex) + in_len;
	call->uhw_in_len = ex.provider_in_words * 8u;
	call->out = (void *)(uintptr_t)ex.response;
	call->out_len = out_len;
	call->uhw_out = (u8 *)call->out + out_len;
	call->uhw_out_len = ex.provider_out_words * 8u;
	return 0;
}

static ssize_t uverbs_write(struct rl_file *f, int fd, const void *buf, size_t len)
{
	struct ib_uverbs_cmd_hdr hdr;
	struct call call = {};
	const u8 *p = buf;
	int rv;

	rl_thread_revive(f);
	if (len < sizeof(hdr))
		return -EINVAL;
	if (!rl_guard_copy(&hdr, buf, sizeof(hdr)))
		return -EFAULT;
	call.number = hdr.command;
	if (hdr.command & IB_USER_VERBS_CMD_FLAG_EXTENDED)
		rv = split_extended(&call, p + sizeof(hdr), len - sizeof(hdr), hdr.in_words * 8u,
				    hdr.out_words * 8u);
	else
		rv = hdr.in_words * 4u != len ? -EINVAL :
		     split_plain(&call, p + sizeof(hdr), len - sizeof(hdr), hdr.out_words * 4u);
	rv = rv ?: run(context_of(f), &call);
	return rv ?: (ssize_t)len;
}

/* ---- ioctl ---- */

struct request {
	struct ib_uverbs_ioctl_hdr hdr;
	struct ib_uverbs_attr attr[MAX_ATTRS];
	struct ib_uverbs_attr *at;	/* the program's, of which attr is a copy */
};

static struct ib_uverbs_attr *find_attr(struct request *r, u16 id)
{
	u32 i;

	for (i = 0; i < r->hdr.num_attrs; i++)
		if (r->attr[i].attr_id == id)
			return &r->attr[i];
	return NULL;
}

/* Short input stands in the attribute itself. */
static const void *input(const struct ib_uverbs_attr *a, size_t *len)
{
	*len = a ? a->len : 0;
	if (!a)
		return NULL;
	return a->len <= sizeof(a->data) ? &a->data : (const void *)(uintptr_t)a->data;
}

static void *output(const struct ib_uverbs_attr *a, size_t *len)
{
	*len = a ? a->len : 0;
	return a ? (void *)(uintptr_t)a->data : NULL;
}

/* Copies *@from to what the attribute names; there need not be one. */
static int answer(struct request *r, u16 id, const void *from, size_t len)
{
	const struct ib_uverbs_attr *a = find_attr(r, id);

	if (!a)
		return 0;
	return a->len < len ? -ENOSPC : copy_out((void *)(uintptr_t)a->data, from, len);
}

/* A new descriptor's number, or handle, stands in the attribute itself. */
static int answer_number(struct request *r, u16 id, s64 number)
{
	const struct ib_uverbs_attr *a = find_attr(r, id);

	return a ? copy_out(&r->at[a - r->attr].data_s64, &number, sizeof(number)) : -EINVAL;
}

static int invoke_write(struct rl_context *ctx, struct request *r)
{
	const struct ib_uverbs_attr *number = find_attr(r, UVERBS_ATTR_WRITE_CMD);
	struct call call = {};

	if (!number)
		return -EINVAL;
	call.number = number->data;
	call.in = input(find_attr(r, UVERBS_ATTR_CORE_IN), &call.in_len);
	call.uhw_in = input(find_attr(r, UVERBS_ATTR_UHW_IN), &call.uhw_in_len);
	call.out = output(find_attr(r, UVERBS_ATTR_CORE_OUT), &call.out_len);
	call.uhw_out = output(find_attr(r, UVERBS_ATTR_UHW_OUT), &call.uhw_out_len);
	return run(ctx, &call);
}

static int kick_qp(struct rl_context *ctx, struct request *r)
{
	const struct ib_uverbs_attr *a = find_attr(r, WEFT_ATTR_QP_KICK_HANDLE);
	struct rl_object *o = a ? rl_object_find(ctx, RL_QP, a->data) : NULL;

	if (!o)
		return a ? -ENOENT : -EINVAL;
	rl_qp_kick(container_of(o, struct rl_qp, o));
	return 0;
}

static int kick_cq(struct rl_context *ctx, struct request *r)
{
	const struct ib_uverbs_attr *a = find_attr(r, WEFT_ATTR_CQ_KICK_HANDLE);
	struct rl_object *o = a ? rl_object_find(ctx, RL_CQ, a->data) : NULL;

	if (!o)
		return a ? -ENOENT : -EINVAL;
	rl_cq_kick(container_of(o, struct rl_cq, o));
	return 0;
}

/* The context's lock keeps the SRQ from being destroyed. */
static int kick_srq(struct rl_context *ctx, struct request *r)
{
	const struct ib_uverbs_attr *a = find_attr(r, WEFT_ATTR_SRQ_KICK_HANDLE);
	struct rl_object *o;

	if (!a)
		return -EINVAL;
	pthread_mutex_lock(&ctx->lock);
	o = rl_object_find(ctx, RL_SRQ, a->data);
	if (o)
		rl_srq_kick(container_of(o, struct rl_srq, o));
	pthread_mutex_unlock(&ctx->lock);
	return o ? 0 : -ENOENT;
}

static int resize_srq(struct rl_context *ctx, struct request *r)
{
	const struct ib_uverbs_attr *handle = find_attr(r, WEFT_ATTR_SRQ_RESIZE_HANDLE);
	const struct ib_uverbs_attr *max_wr = find_attr(r, WEFT_ATTR_SRQ_RESIZE_MAX_WR);
	const struct ib_uverbs_attr *out = find_attr(r, WEFT_ATTR_SRQ_RESIZE_RESP);
	struct weft_modify_srq_resp resp;
	struct rl_object *o;
	int rv = -ENOENT;

	if (!handle || !max_wr || max_wr->len != sizeof(u32) || !out || out->len < sizeof(resp))
		return -EINVAL;
	if (!(ctx->features & WEFT_FEATURE_RESIZE))
		return -EOPNOTSUPP;
	pthread_mutex_lock(&ctx->lock);
	o = rl_object_find(ctx, RL_SRQ, handle->data);
	if (o)
		rv = rl_srq_resize(container_of(o, struct rl_srq, o), max_wr->data, &resp);
	pthread_mutex_unlock(&ctx->lock);
	return rv ?: copy_out((void *)(uintptr_t)out->data, &resp, sizeof(resp));
}

static u32 word(struct request *r, u16 id)
{
	const struct ib_uverbs_attr *a = find_attr(r, id);

	return a ? a->data : 0;
}

/* ---- of a context that is shared: another was given its command file ---- */

static int query_context(struct rl_context *ctx, struct request *r)
{
	const u64 core_support = IB_UVERBS_CORE_SUPPORT_OPTIONAL_MR_ACCESS;
	struct weft_alloc_ucontext_resp driver;
	const u32 vectors = 1;

	if (!READ_ONCE(ctx->ready))
		return -EINVAL;
	rl_context_describe(ctx, &driver);
	return answer(r, UVERBS_ATTR_QUERY_CONTEXT_NUM_COMP_VECTORS, &vectors, sizeof(vectors)) ?:
	       answer(r, UVERBS_ATTR_QUERY_CONTEXT_CORE_SUPPORT, &core_support,
		      sizeof(core_support)) ?:
	       answer(r, WEFT_ATTR_QUERY_CONTEXT_RESP, &driver, sizeof(driver));
}

/* For the events of what the other makes: see create(). */
static int alloc_async(struct rl_context *ctx, struct request *r)
{
	struct rl_chan *chan;
	int efd, fd, rv;

	chan = rl_chan_new(O_CLOEXEC, &efd);
	if (!chan)
		return -ENOMEM;
	fd = rl_chan_open(chan, efd);
	rl_chan_put(chan);
	if (fd < 0)
		return fd;
	rv = answer_number(r, UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE, fd);
	if (rv)
		close(fd);
	return rv;
}

static int query_mr(struct rl_context *ctx, struct request *r)
{
	const struct ib_uverbs_attr *a = find_attr(r, UVERBS_ATTR_QUERY_MR_HANDLE);
	u64 len = 0, iova = 0;
	struct rl_object *o;
	u32 stag = 0;

	pthread_mutex_lock(&ctx->lock);
	o = a ? rl_object_find(ctx, RL_MR, a->data) : NULL;
	if (o) {
		const struct weft_region *region = &container_of(o, struct rl_mr, o)->region;

		stag = region->stag;
		len = region->len;
		iova = region->base;
	}
	pthread_mutex_unlock(&ctx->lock);
	if (!o)
		return a ? -ENOENT : -EINVAL;
	return answer(r, UVERBS_ATTR_QUERY_MR_RESP_LKEY, &stag, sizeof(stag)) ?:
	       answer(r, UVERBS_ATTR_QUERY_MR_RESP_RKEY, &stag, sizeof(stag)) ?:
	       answer(r, UVERBS_ATTR_QUERY_MR_RESP_LENGTH, &len, sizeof(len)) ?:
	       answer(r, UVERBS_ATTR_QUERY_MR_RESP_IOVA, &iova, sizeof(iova));
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

/* To room for @size octets: a newer program's entry is longer, and zero there. */
static int copy_gid(void *to, size_t size, const struct rl_device *d, u32 index)
{
	const struct ib_uverbs_gid_entry e = gid_entry(d, index);
	u64 whole[MAX_OUT / 8] = { 0 };

	memcpy(whole, &e, sizeof(e));
	return copy_out(to, whole, size);
}

static int query_gid_entry(struct rl_context *ctx, struct request *r)
{
	const struct ib_uverbs_attr *out = find_attr(r, UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY);
	u32 index = word(r, UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX);

	if (!out || word(r, UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS) ||
	    word(r, UVERBS_ATTR_QUERY_GID_ENTRY_PORT) != RL_PORT || index >= ctx->dev->ngids)
		return -EINVAL;
	return copy_gid((void *)(uintptr_t)out->data, min_t(u32, out->len, MAX_OUT), ctx->dev, index);
}

/* All of them, or none: there is no asking for the next. */
static int query_gid_table(struct rl_context *ctx, struct request *r)
{
	const struct ib_uverbs_attr *size = find_attr(r, UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE);
	const struct ib_uverbs_attr *out = find_attr(r, UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES);
	u64 each = size ? size->data : 0, n = ctx->dev->ngids;
	u32 i;
	int rv;

	if (!each || each > MAX_OUT || !out || word(r, UVERBS_ATTR_QUERY_GID_TABLE_FLAGS) ||
	    out->len / each < n)
		return -EINVAL;
	for (i = 0; i < n; i++) {
		rv = copy_gid((u8 *)(uintptr_t)out->data + i * each, each, ctx->dev, i);
		if (rv)
			return rv;
	}
	return answer(r, UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, &n, sizeof(n));
}

/* ---- objects whose request comes as attributes ---- */

/* The channel that was asked for, referenced; NULL: none, or that of the context itself. */
static struct rl_chan *own_events(struct rl_context *ctx, struct request *r, u16 id)
{
	const struct ib_uverbs_attr *a = find_attr(r, id);
	struct rl_chan *chan = a ? rl_chan_of_fd(a->data_s64) : NULL;

	if (!chan || chan != ctx->async)
		return chan;
	rl_chan_put(chan);
	return NULL;
}

/*
 * Runs command @c, whose answer begins with the new object's handle, and whose request came as
 * attributes: events of the object come to the channel of attribute @events. Libraries ask in this
 * way for whoever has another's command file; who has his own is told to use the command.
 */
static int create(struct rl_context *ctx, struct request *r, struct rl_command *c,
		  enum rl_kind kind, u16 events)
{
	const struct ib_uverbs_attr *out = find_attr(r, UVERBS_ATTR_UHW_OUT);
	struct rl_chan *chan = own_events(ctx, r, events);
	u64 uhw_in[MAX_IN / 8], uhw_out[MAX_OUT / 8] = { 0 };
	const void *in = input(find_attr(r, UVERBS_ATTR_UHW_IN), &c->uhw_in.len);
	int rv;

	if (!chan)
		return -EPROTONOSUPPORT;
	if (c->uhw_in.len > sizeof(uhw_in) || copy_in(uhw_in, sizeof(uhw_in), in, c->uhw_in.len)) {
		rl_chan_put(chan);
		return -EINVAL;
	}
	c->uhw_in.p = uhw_in;
	c->uhw_out.p = uhw_out;
	c->uhw_out.len = out ? min_t(size_t, out->len, sizeof(uhw_out)) : 0;
	pthread_mutex_lock(&ctx->lock);
	rv = rl_command_run(ctx, c);
	if (rv)
		rl_chan_put(chan);
	else
		rl_object_find(ctx, kind, *(const u32 *)c->out)->async = chan;
	pthread_mutex_unlock(&ctx->lock);
	return rv ?: copy_out((void *)(uintptr_t)out->data, uhw_out, c->uhw_out.len);
}

static int create_cq(struct rl_context *ctx, struct request *r)
{
	const struct ib_uverbs_attr *chan = find_attr(r, UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL);
	const struct ib_uverbs_attr *user = find_attr(r, UVERBS_ATTR_CREATE_CQ_USER_HANDLE);
	const struct ib_uverbs_ex_create_cq in = {
		.user_handle = user ? user->data : 0,
		.cqe = word(r, UVERBS_ATTR_CREATE_CQ_CQE),
		.comp_vector = word(r, UVERBS_ATTR_CREATE_CQ_COMP_VECTOR),
		.comp_channel = chan ? chan->data_s64 : -1,
		.flags = word(r, UVERBS_ATTR_CREATE_CQ_FLAGS),
	};
	struct ib_uverbs_ex_create_cq_resp out = {};
	struct rl_command c = { .number = IB_USER_VERBS_CMD_FLAG_EXTENDED |
					  IB_USER_VERBS_EX_CMD_CREATE_CQ,
				.in = &in, .out = &out, .out_len = sizeof(out) };

	return create(ctx, r, &c, RL_CQ, UVERBS_ATTR_CREATE_CQ_EVENT_FD) ?:
	       answer(r, UVERBS_ATTR_CREATE_CQ_RESP_CQE, &out.base.cqe, sizeof(out.base.cqe)) ?:
	       answer_number(r, UVERBS_ATTR_CREATE_CQ_HANDLE, out.base.cq_handle);
}

static int read_cap(struct request *r, struct ib_uverbs_qp_cap *cap)
{
	const struct ib_uverbs_attr *a = find_attr(r, UVERBS_ATTR_CREATE_QP_CAP);

	if (!a || a->len != sizeof(*cap))
		return -EINVAL;
	return rl_guard_copy(cap, (const void *)(uintptr_t)a->data, sizeof(*cap)) ? 0 : -EFAULT;
}

static int answer_qp(struct request *r, const struct ib_uverbs_create_qp_resp *out)
{
	const struct ib_uverbs_qp_cap cap = {
		out->max_send_wr, out->max_recv_wr, out->max_send_sge, out->max_recv_sge,
		out->max_inline_data,
	};

	return answer(r, UVERBS_ATTR_CREATE_QP_RESP_CAP, &cap, sizeof(cap)) ?:
	       answer(r, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, &out->qpn, sizeof(out->qpn)) ?:
	       answer_number(r, UVERBS_ATTR_CREATE_QP_HANDLE, out->qp_handle);
}

static int create_qp(struct rl_context *ctx, struct request *r)
{
	const struct ib_uverbs_attr *user = find_attr(r, UVERBS_ATTR_CREATE_QP_USER_HANDLE);
	u32 flags = word(r, UVERBS_ATTR_CREATE_QP_FLAGS);
	struct ib_uverbs_ex_create_qp_resp out = {};
	struct rl_command c = { .number = IB_USER_VERBS_CMD_FLAG_EXTENDED |
					  IB_USER_VERBS_EX_CMD_CREATE_QP,
				.out = &out, .out_len = sizeof(out) };
	struct ib_uverbs_ex_create_qp in;
	struct ib_uverbs_qp_cap cap;
	int rv = read_cap(r, &cap);

	if (rv)
		return rv;
	in = (struct ib_uverbs_ex_create_qp){
		.user_handle = user ? user->data : 0,
		.pd_handle = word(r, UVERBS_ATTR_CREATE_QP_PD_HANDLE),
		.send_cq_handle = word(r, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE),
		.recv_cq_handle = word(r, UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE),
		.srq_handle = word(r, UVERBS_ATTR_CREATE_QP_SRQ_HANDLE),
		.is_srq = !!find_attr(r, UVERBS_ATTR_CREATE_QP_SRQ_HANDLE),
		.max_send_wr = cap.max_send_wr, .max_recv_wr = cap.max_recv_wr,
		.max_send_sge = cap.max_send_sge, .max_recv_sge = cap.max_recv_sge,
		.max_inline_data = cap.max_inline_data,
		.sq_sig_all = !!(flags & IB_UVERBS_QP_CREATE_SQ_SIG_ALL),
		.qp_type = word(r, UVERBS_ATTR_CREATE_QP_TYPE),
		.create_flags = flags & ~IB_UVERBS_QP_CREATE_SQ_SIG_ALL,
	};
	c.in = &in;
	return create(ctx, r, &c, RL_QP, UVERBS_ATTR_CREATE_QP_EVENT_FD) ?: answer_qp(r, &out.base);
}

static int create_srq(struct rl_context *ctx, struct request *r)
{
	const struct ib_uverbs_attr *user = find_attr(r, UVERBS_ATTR_CREATE_SRQ_USER_HANDLE);
	struct ib_uverbs_create_srq_resp out = {};
	const struct ib_uverbs_create_srq in = {
		.user_handle = user ? user->data : 0,
		.pd_handle = word(r, UVERBS_ATTR_CREATE_SRQ_PD_HANDLE),
		.max_wr = word(r, UVERBS_ATTR_CREATE_SRQ_MAX_WR),
		.max_sge = word(r, UVERBS_ATTR_CREATE_SRQ_MAX_SGE),
		.srq_limit = word(r, UVERBS_ATTR_CREATE_SRQ_LIMIT),
	};
	struct rl_command c = { .number = IB_USER_VERBS_CMD_CREATE_SRQ, .in = &in, .out = &out,
				.out_len = sizeof(out) };

	if (word(r, UVERBS_ATTR_CREATE_SRQ_TYPE) != IB_UVERBS_SRQT_BASIC)
		return -EOPNOTSUPP;
	return create(ctx, r, &c, RL_SRQ, UVERBS_ATTR_CREATE_SRQ_EVENT_FD) ?:
	       answer(r, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR, &out.max_wr, sizeof(out.max_wr)) ?:
	       answer(r, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE, &out.max_sge, sizeof(out.max_sge)) ?:
	       answer_number(r, UVERBS_ATTR_CREATE_SRQ_HANDLE, out.srq_handle);
}

/* ---- regions of dmabufs ---- */

/* What the core lets such a region be for. */
#define DMABUF_ACCESS	(IB_UVERBS_ACCESS_LOCAL_WRITE | IB_UVERBS_ACCESS_REMOTE_WRITE | \
			 IB_UVERBS_ACCESS_REMOTE_READ | IB_UVERBS_ACCESS_REMOTE_ATOMIC | \
			 IB_UVERBS_ACCESS_RELAXED_ORDERING)

static u64 number(struct request *r, u16 id)
{
	const struct ib_uverbs_attr *a = find_attr(r, id);

	return a ? a->data : 0;
}

/* Context's lock. */
static int new_dmabuf_mr(struct rl_context *ctx, struct request *r, struct rl_mr **mr)
{
	struct rl_object *pd = rl_object_find(ctx, RL_PD, word(r, UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE));
	u64 offset = number(r, UVERBS_ATTR_REG_DMABUF_MR_OFFSET);
	u64 iova = number(r, UVERBS_ATTR_REG_DMABUF_MR_IOVA);
	u32 access = word(r, UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS);
	int rv;

	if (!pd)
		return -ENOENT;
	/* The place in the page must be the same by both addresses. */
	if (access & ~DMABUF_ACCESS || (offset ^ iova) & 4095)
		return -EINVAL;
	rv = rl_mr_new_dmabuf(container_of(pd, struct rl_pd, o),
			      (s32)word(r, UVERBS_ATTR_REG_DMABUF_MR_FD), offset,
			      number(r, UVERBS_ATTR_REG_DMABUF_MR_LENGTH), iova, access, mr);
	if (rv)
		return rv;
	rv = rl_object_add(ctx, &(*mr)->o);
	if (rv)
		rl_mr_destroy(*mr);
	return rv;
}

static int reg_dmabuf_mr(struct rl_context *ctx, struct request *r)
{
	u32 handle = 0, stag = 0;
	struct rl_mr *mr;
	int rv;

	if (!find_attr(r, UVERBS_ATTR_REG_DMABUF_MR_FD))
		return -EINVAL;
	pthread_mutex_lock(&ctx->lock);
	rv = new_dmabuf_mr(ctx, r, &mr);
	if (!rv) {
		handle = mr->o.handle;
		stag = mr->region.stag;
	}
	pthread_mutex_unlock(&ctx->lock);
	return rv ?: answer(r, UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY, &stag, sizeof(stag)) ?:
	       answer(r, UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY, &stag, sizeof(stag)) ?:
	       answer_number(r, UVERBS_ATTR_REG_DMABUF_MR_HANDLE, handle);
}

/* ---- regions on demand ---- */

static int advise(struct rl_context *ctx, u32 pd_handle, const struct weft_sge *sge, bool write)
{
	struct rl_object *o;
	u32 pd = 0;

	pthread_mutex_lock(&ctx->lock);
	o = rl_object_find(ctx, RL_PD, pd_handle);
	if (o)
		pd = container_of(o, struct rl_pd, o)->id;
	pthread_mutex_unlock(&ctx->lock);
	/* Without the lock: to read gigabytes in may take its time. */
	return o ? rl_mr_advise(pd, sge, write) : -ENOENT;
}

/* What is asked not to fault is left alone: it is there or is not. */
static int advise_mr(struct rl_context *ctx, struct request *r)
{
	const struct ib_uverbs_attr *pd = find_attr(r, UVERBS_ATTR_ADVISE_MR_PD_HANDLE);
	const struct ib_uverbs_attr *advice = find_attr(r, UVERBS_ATTR_ADVISE_MR_ADVICE);
	const struct ib_uverbs_attr *list = find_attr(r, UVERBS_ATTR_ADVISE_MR_SGE_LIST);
	u64 how = advice ? advice->data : 0;
	struct weft_sge sge;
	size_t i;
	int rv;

	if (!pd || !advice || !list || list->len % sizeof(sge) || list->len < sizeof(sge))
		return -EINVAL;
	if (how > IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return -EOPNOTSUPP;
	for (i = 0; i < list->len / sizeof(sge); i++) {
		if (!rl_guard_copy(&sge, (const struct weft_sge *)(uintptr_t)list->data + i,
				   sizeof(sge)))
			return -EFAULT;
		if (how == IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
			continue;
		rv = advise(ctx, pd->data, &sge, how == IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE);
		if (rv)
			return rv;
	}
	return 0;
}

static const struct method {
	u16 object, method;
	int (*run)(struct rl_context *ctx, struct request *r);
} methods[] = {
	{ UVERBS_OBJECT_QP, WEFT_METHOD_QP_KICK, kick_qp },
	{ UVERBS_OBJECT_CQ, WEFT_METHOD_CQ_KICK, kick_cq },
	{ UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE, invoke_write },
	{ UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_CONTEXT, query_context },
	{ UVERBS_OBJECT_ASYNC_EVENT, UVERBS_METHOD_ASYNC_EVENT_ALLOC, alloc_async },
	{ UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE, create_cq },
	{ UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE, create_qp },
	{ UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE, create_srq },
	{ UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_TABLE, query_gid_table },
	{ UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_ENTRY, query_gid_entry },
	{ UVERBS_OBJECT_MR, UVERBS_METHOD_QUERY_MR, query_mr },
	{ UVERBS_OBJECT_MR, UVERBS_METHOD_ADVISE_MR, advise_mr },
	{ UVERBS_OBJECT_MR, UVERBS_METHOD_REG_DMABUF_MR, reg_dmabuf_mr },
	{ UVERBS_OBJECT_SRQ, WEFT_METHOD_SRQ_RESIZE, resize_srq },
	{ UVERBS_OBJECT_SRQ, WEFT_METHOD_SRQ_KICK, kick_srq },
};

static int read_request(struct request *r, void *arg)
{
	size_t attrs;

	r->at = (void *)((u8 *)arg + sizeof(r->hdr));

	if (!rl_guard_copy(&r->hdr, arg, sizeof(r->hdr)))
		return -EFAULT;
	attrs = r->hdr.num_attrs * sizeof(r->attr[0]);
	if (r->hdr.length != sizeof(r->hdr) + attrs || r->hdr.reserved1 || r->hdr.reserved2)
		return -EINVAL;
	if (r->hdr.num_attrs > MAX_ATTRS)
		return -EPROTONOSUPPORT;
	return !attrs || rl_guard_copy(r->attr, r->at, attrs) ? 0 : -EFAULT;
}

static int uverbs_ioctl(struct rl_file *f, int fd, unsigned long number, void *arg)
{
	struct request r;
	const struct method *m;
	int rv;

	/* isatty() is no use of the device. */
	if (number != RDMA_VERBS_IOCTL)
		return -ENOTTY;
	rl_thread_revive(f);
	rv = read_request(&r, arg);
	if (rv)
		return rv;
	if (r.hdr.driver_id != WEFT_DRIVER_ID)
		return -EINVAL;
	for (m = methods; m < methods + ARRAY_SIZE(methods); m++)
		if (m->object == r.hdr.object_id && m->method == r.hdr.method_id)
			return m->run(context_of(f), &r);
	return -EPROTONOSUPPORT;
}

/* ---- life ---- */

static void uverbs_release(struct rl_file *f)
{
	struct rl_context *ctx = context_of(f);
	u32 i;

	pthread_mutex_lock(&ctx->lock);
	rl_command_clean_up(ctx);
	pthread_mutex_unlock(&ctx->lock);
	rl_context_count(ctx, RL_CONTEXT, -1);
	if (ctx->async)
		rl_chan_put(ctx->async);
	rl_fd_close_hidden(ctx->memfd);
	for (i = 0; i < RL_CHUNKS; i++)
		free(ctx->chunks[i]);
	pthread_mutex_destroy(&ctx->lock);
	free(ctx);
}

static const struct rl_file_ops uverbs_ops = {
	.write = uverbs_write,
	.ioctl = uverbs_ioctl,
	.release = uverbs_release,
	.mode = S_IFCHR | 0666,
};

/*
 * The rings' memory has two descriptors: the program's, and ours. It is named as the file of whose
 * mappings they seem to be.
 */
static int open_memory(struct rl_context *ctx, int flags)
{
	int fd = rl_raw(SYS_memfd_create, "uverbs", flags & O_CLOEXEC ? MFD_CLOEXEC : 0), own;

	if (fd < 0)
		return fd;
	own = rl_raw(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 0);
	ctx->memfd = own < 0 ? own : rl_fd_hide(own);
	if (ctx->memfd >= 0)
		return fd;
	rl_raw(SYS_close, fd);
	return ctx->memfd;
}

int rl_uverbs_open(const struct rl_device *d, int flags)
{
	struct rl_context *ctx = calloc(1, sizeof(*ctx));
	int fd;

	if (!ctx)
		return -ENOMEM;
	fd = open_memory(ctx, flags);
	if (fd < 0) {
		free(ctx);
		return fd;
	}
	rl_guard_begin();
	ctx->dev = d;
	rl_context_count(ctx, RL_CONTEXT, 1);
	pthread_mutex_init(&ctx->lock, NULL);
	rl_file_init(&ctx->file, &uverbs_ops, rl_device_uverbs_rdev(d));
	return rl_fd_install(fd, &ctx->file);
}
