// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Verbs at random, without libibverbs: see wild.c. Each command goes by write() or by the method
 * that takes write commands; queues also have methods of their own. All threads of a process use
 * and destroy the objects of one table, without a lock: a thread's view may be stale.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <infiniband/verbs.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>

#include "wild.h"

#define OBJS	96
#define RINGS	48
#define DEPTH	16	/* of a queue that is meant to work */

struct file files[FILES] = { { .fd = -1 }, { .fd = -1 }, { .fd = -1 }, { .fd = -1 } };
static struct obj objs[OBJS];
static struct ring rings[RINGS];
static volatile int rings_busy;

/* ---- what there is ---- */

static void keep(const struct obj *o)
{
	struct obj *free = &objs[below(OBJS)];
	int i;

	for (i = 0; i < OBJS && free->kind != NONE; i++)
		free = &objs[below(OBJS)];
	*free = *o;
	if (o->kind == K_QP)
		common->qpns[below(QPNS)] = o->key;
}

static void forget(uint8_t kind, uint8_t file, uint32_t handle)
{
	struct obj *o;

	for (o = objs; o < objs + OBJS; o++)
		if (o->kind == kind && o->file == file && o->handle == handle)
			o->kind = NONE;
}

/* One of @kind that @file has, or none. */
static struct obj pick(uint8_t kind, uint8_t file)
{
	uint32_t from = below(OBJS), i;

	for (i = 0; i < OBJS; i++) {
		struct obj o = objs[(from + i) % OBJS];

		if (o.kind == kind && o.file == file)
			return o;
	}
	return (struct obj){ NONE };
}

static uint32_t any_handle(uint8_t kind, uint8_t file)
{
	struct obj o;

	if (once_in(20))
		return nasty(below(24));
	o = pick(once_in(20) ? 1 + below(NR_KINDS - 1) : kind, file);
	return o.kind == NONE ? below(24) : o.handle;
}

static int open_any(void)
{
	char path[300];
	struct dirent *e;
	DIR *dir = opendir("/dev/infiniband");
	uint32_t n = 0;

	if (!dir)
		return -1;
	while ((e = readdir(dir)))
		if (!strncmp(e->d_name, "uverbs", 6) && once_in(++n))
			snprintf(path, sizeof(path), "/dev/infiniband/%s", e->d_name);
	closedir(dir);
	return n ? open(path, O_RDWR | O_CLOEXEC) : -1;
}

/* ---- methods ---- */

struct call {
	struct ib_uverbs_ioctl_hdr hdr;
	struct ib_uverbs_attr attrs[20];
};

static struct ib_uverbs_attr *attr(struct call *c, uint16_t id)
{
	struct ib_uverbs_attr *a = &c->attrs[c->hdr.num_attrs++];

	*a = (struct ib_uverbs_attr){ .attr_id = id, .flags = UVERBS_ATTR_F_MANDATORY };
	return a;
}

static void attr_handle(struct call *c, uint16_t id, uint32_t handle)
{
	attr(c, id)->data = handle;
}

/* Up to eight octets stand in the attribute itself. */
static void attr_in(struct call *c, uint16_t id, const void *at, size_t len)
{
	struct ib_uverbs_attr *a = attr(c, id);
	uint64_t small = 0;

	a->len = len;
	if (len <= sizeof(small))
		memcpy(&small, at, len);
	a->data = len <= sizeof(small) ? small : (uintptr_t)at;
}

static void attr_word(struct call *c, uint16_t id, uint64_t value, size_t len)
{
	attr_in(c, id, &value, len);
}

static void attr_out(struct call *c, uint16_t id, void *at, size_t len)
{
	struct ib_uverbs_attr *a = attr(c, id);

	a->len = len;
	a->data = (uintptr_t)at;
}

static struct call method(uint16_t object, uint16_t number)
{
	return (struct call){ .hdr = { .object_id = object, .method_id = number } };
}

static void spoil_call(struct call *c)
{
	struct ib_uverbs_attr *a = &c->attrs[below(20)];

	if (!mischief || !once_in(mischief))
		return;
	switch (below(10)) {
	case 0: c->hdr.length = nasty(c->hdr.length); break;
	case 1: c->hdr.num_attrs = nasty(c->hdr.num_attrs); break;
	case 2: c->hdr.driver_id = rnd(); break;
	case 3: c->hdr.reserved1 = rnd(); break;
	case 4: c->attrs[below(3)] = *a; break;
	case 5: a->len = nasty(a->len); break;
	case 6: a->flags = rnd(); break;
	case 7: a->data = any_pointer(); break;
	case 8: a->attr_id = nasty(a->attr_id); break;
	default: spoil(c, sizeof(*c)); break;
	}
}

static int make_call(int fd, struct call *c)
{
	int rv;

	c->hdr.length = sizeof(c->hdr) + c->hdr.num_attrs * sizeof(c->attrs[0]);
	c->hdr.driver_id = WEFT_DRIVER_ID;
	spoil_call(c);
	fault_begin();
	rv = ioctl(fd, RDMA_VERBS_IOCTL, c);
	fault_end();
	if (rv)
		counted(VERBS_REFUSED, true);
	return rv;
}

bool ring_kick(uint8_t file, uint16_t object, uint32_t handle)
{
	bool srq = object == UVERBS_OBJECT_SRQ;
	struct call c = method(object, srq ? WEFT_METHOD_SRQ_KICK : WEFT_METHOD_QP_KICK);

	attr_handle(&c, WEFT_ATTR_QP_KICK_HANDLE, handle);
	return counted(KICK, !make_call(files[file].fd, &c));
}

/* ---- write commands ---- */

struct command {
	uint32_t number;
	bool extended;
	void *in, *out;			/* core's; a plain command begins with where the answer goes */
	size_t in_len, out_len;
	const void *more;		/* the driver's */
	size_t more_len;
	void *more_out;			/* behind @out, where it is a write() */
	size_t more_out_len;
};

static int by_method(int fd, const struct command *cmd)
{
	struct call c = method(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);

	attr_in(&c, UVERBS_ATTR_CORE_IN, cmd->in, cmd->in_len);
	if (cmd->out_len)
		attr_out(&c, UVERBS_ATTR_CORE_OUT, cmd->out, cmd->out_len);
	attr_word(&c, UVERBS_ATTR_WRITE_CMD,
		  cmd->number | (cmd->extended ? IB_USER_VERBS_CMD_FLAG_EXTENDED : 0), 8);
	if (cmd->more_len)
		attr_in(&c, UVERBS_ATTR_UHW_IN, cmd->more, cmd->more_len);
	if (cmd->more_out_len)
		attr_out(&c, UVERBS_ATTR_UHW_OUT, cmd->more_out, cmd->more_out_len);
	return make_call(fd, &c);
}

static int by_write(int fd, const struct command *cmd)
{
	uint8_t octets[512] = { 0 };
	struct ib_uverbs_cmd_hdr *hdr = (void *)octets;
	struct ib_uverbs_ex_cmd_hdr *ex = (void *)(hdr + 1);
	size_t at = sizeof(*hdr), unit = cmd->extended ? 8 : 4, len;
	int rv;

	if (cmd->extended) {
		*ex = (struct ib_uverbs_ex_cmd_hdr){
			.response = (uintptr_t)cmd->out,
			.provider_in_words = cmd->more_len / 8,
			.provider_out_words = cmd->more_out_len / 8,
		};
		at += sizeof(*ex);
	} else if (cmd->out_len) {
		*(uint64_t *)cmd->in = (uintptr_t)cmd->out;
	}
	memcpy(octets + at, cmd->in, cmd->in_len);
	if (cmd->more_len)
		memcpy(octets + at + cmd->in_len, cmd->more, cmd->more_len);
	len = at + cmd->in_len + cmd->more_len;
	*hdr = (struct ib_uverbs_cmd_hdr){
		.command = cmd->number | (cmd->extended ? IB_USER_VERBS_CMD_FLAG_EXTENDED : 0),
		.in_words = cmd->extended ? cmd->in_len / unit : len / unit,
		.out_words = (cmd->out_len + (cmd->extended ? 0 : cmd->more_out_len)) / unit,
	};
	spoil(octets, len);
	if (mischief && once_in(4 * mischief))
		len = below(len + 1);
	fault_begin();
	rv = write(fd, octets, len) < 0;
	fault_end();
	if (rv)
		counted(VERBS_REFUSED, true);
	return rv;
}

/* write() is refused on a file that another user passed. */
static bool was_passed(int fd)
{
	int i;

	for (i = 0; i < FILES; i++)
		if (files[i].fd == fd)
			return files[i].passed;
	return false;
}

static int command(int fd, const struct command *cmd)
{
	memset(cmd->out, 0, cmd->out_len + cmd->more_out_len);
	return once_in(was_passed(fd) ? 20 : 2) ? by_write(fd, cmd) : by_method(fd, cmd);
}

/* The answers' parts stand one behind the other. */
#define COMMAND(cmd, request, answer, d_answer) {				\
	.number = IB_USER_VERBS_CMD_##cmd, .in = &(request), .in_len = sizeof(request),	\
	.out = &(answer), .out_len = offsetof(typeof(answer), d_answer),	\
	.more_out = &(answer).d_answer, .more_out_len = sizeof((answer).d_answer) }
#define PLAIN(cmd, request, answer) {						\
	.number = IB_USER_VERBS_CMD_##cmd, .in = &(request), .in_len = sizeof(request),	\
	.out = &(answer), .out_len = sizeof(answer) }

static int simple(int fd, uint32_t number, void *in, size_t in_len, void *out, size_t out_len)
{
	struct command c = { .number = number, .in = in, .in_len = in_len, .out = out,
			     .out_len = out_len };

	return command(fd, &c);
}

/* ---- contexts ---- */

static bool get_context(int fd)
{
	struct { struct ib_uverbs_get_context_resp c; struct weft_alloc_ucontext_resp d; } a;
	struct weft_alloc_ucontext_req req = { .features = once_in(8) ? rnd() : ~0ULL };
	struct ib_uverbs_get_context in = { 0 };
	struct command cmd = COMMAND(GET_CONTEXT, in, a, d);
	struct call c = method(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT);
	uint32_t some[2];

	if (once_in(2)) {
		cmd.more = &req;
		cmd.more_len = sizeof(req);
		if (command(fd, &cmd))
			return false;
		if (once_in(2))
			close(a.c.async_fd);
		return counted(CONTEXT, true);
	}
	attr_out(&c, UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, &some[0], 4);
	attr_out(&c, UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT, &some[1], 8);
	c.attrs[c.hdr.num_attrs - 1].data = (uintptr_t)&a;
	attr_in(&c, UVERBS_ATTR_UHW_IN, &req, sizeof(req));
	attr_out(&c, UVERBS_ATTR_UHW_OUT, &a.d, sizeof(a.d));
	return counted(CONTEXT, !make_call(fd, &c));
}

static uint64_t guid_of(int fd)
{
	struct ib_uverbs_query_device_resp a;
	struct ib_uverbs_query_device in = { 0 };

	return simple(fd, IB_USER_VERBS_CMD_QUERY_DEVICE, &in, sizeof(in), &a, sizeof(a)) ? 0 :
	       a.node_guid;
}

/* What another file's objects were is not this one's. */
static void put_file(int i, int fd, uint64_t guid, bool passed)
{
	int old = files[i].fd;
	struct obj *o;

	for (o = objs; o < objs + OBJS; o++)
		if (o->kind != NONE && o->file == i)
			o->kind = NONE;
	files[i] = (struct file){ fd, guid, passed };
	if (old >= 0)
		close(old);
}

void verbs_adopt(int fd)
{
	put_file(below(FILES), fd, guid_of(fd), true);
}

int verbs_open(uint64_t guid)
{
	int i, fd, tries;

	for (i = 0; i < FILES; i++)
		if (files[i].fd >= 0 && (!guid || files[i].guid == guid) && !once_in(8))
			return i;
	for (tries = 0; tries < 6; tries++) {
		uint64_t got;

		fd = open_any();
		if (fd < 0)
			return -1;
		got = get_context(fd) ? guid_of(fd) : 0;
		if (got && (!guid || got == guid)) {
			i = below(FILES);
			put_file(i, fd, got, false);
			return i;
		}
		close(fd);
	}
	return -1;
}

/* ---- making things ---- */

static bool made(struct obj *o, enum count what)
{
	keep(o);
	return counted(what, true);
}

static bool make_pd(uint8_t file, struct obj *o)
{
	struct ib_uverbs_alloc_pd in = { 0 };
	struct ib_uverbs_alloc_pd_resp a;

	if (simple(files[file].fd, IB_USER_VERBS_CMD_ALLOC_PD, &in, sizeof(in), &a, sizeof(a)))
		return false;
	*o = (struct obj){ .kind = K_PD, .file = file, .handle = a.pd_handle };
	return made(o, PD);
}

#define ALL_ACCESS	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
			 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND)

static bool make_mr(uint8_t file, uint32_t pd, struct obj *o)
{
	struct ib_uverbs_reg_mr in = { .start = (uintptr_t)buf, .length = BUF,
				       .hca_va = (uintptr_t)buf, .pd_handle = pd,
				       .access_flags = ALL_ACCESS };
	struct ib_uverbs_reg_mr_resp a;
	struct weft_reg_mr_req req = { .flags = once_in(2) ? WEFT_REG_MR_NULL : rnd() };
	struct command cmd = PLAIN(REG_MR, in, a);

	if (mischief && once_in(4)) {
		cmd.more = &req;
		cmd.more_len = once_in(4) ? 8 : sizeof(req);
	}
	if (mischief && once_in(3)) {
		in.start = any_pointer();
		in.length = once_in(4) ? rnd() : below(BUF);
		in.hca_va = once_in(2) ? in.start : (in.start & 4095) | rnd() << 12;
		in.access_flags = rnd() & 0x1fff;
	}
	if (command(files[file].fd, &cmd))
		return false;
	*o = (struct obj){ .kind = K_MR, .file = file, .handle = a.mr_handle, .key = a.lkey,
			   .rkey = a.rkey };
	return made(o, MR);
}

static void rereg(uint8_t file)
{
	struct ib_uverbs_rereg_mr in = {
		.mr_handle = any_handle(K_MR, file), .flags = 1 + below(7),
		.start = (uintptr_t)buf + 4096 * below(8), .length = BUF / 2,
		.hca_va = (uintptr_t)buf, .pd_handle = any_handle(K_PD, file),
		.access_flags = ALL_ACCESS,
	};
	struct ib_uverbs_rereg_mr_resp a;

	in.hca_va = in.start;
	/* A region that is another one ends what uses it. */
	if (!once_in(3))
		return;
	counted(REREG, !simple(files[file].fd, IB_USER_VERBS_CMD_REREG_MR, &in, sizeof(in), &a,
			       sizeof(a)));
}

static bool make_mw(uint8_t file, uint32_t pd, struct obj *o)
{
	struct ib_uverbs_alloc_mw in = { .pd_handle = pd, .mw_type = 1 + below(2) };
	struct ib_uverbs_alloc_mw_resp a;

	if (simple(files[file].fd, IB_USER_VERBS_CMD_ALLOC_MW, &in, sizeof(in), &a, sizeof(a)))
		return false;
	*o = (struct obj){ .kind = K_MW, .file = file, .handle = a.mw_handle, .key = a.rkey };
	return made(o, MW);
}

static bool make_channel(uint8_t file, struct obj *o)
{
	struct ib_uverbs_create_comp_channel in = { 0 };
	struct ib_uverbs_create_comp_channel_resp a;

	if (simple(files[file].fd, IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, &in, sizeof(in), &a,
		   sizeof(a)))
		return false;
	fcntl(a.fd, F_SETFL, O_NONBLOCK);
	*o = (struct obj){ .kind = K_CHANNEL, .file = file, .handle = a.fd };
	return made(o, CHANNEL);
}

static uint32_t any_size(uint32_t good)
{
	static const uint32_t some[] = { 0, 1, 2, 3, 31, 33, 100, 1000, 16384, 0x7fffffff,
					 0xffffffff };

	if (!mischief || !once_in(mischief))
		return good;
	return once_in(2) ? nasty(good) : some[below(sizeof(some) / 4)];
}

static bool make_cq(uint8_t file, struct obj *o)
{
	struct { struct ib_uverbs_create_cq_resp c; struct weft_create_cq_resp d; } a = { 0 };
	struct ib_uverbs_create_cq in = { .cqe = any_size(8 * DEPTH), .comp_channel = -1 };
	struct command cmd = COMMAND(CREATE_CQ, in, a, d);
	struct call c = method(UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE);
	struct obj channel = pick(K_CHANNEL, file);

	if (channel.kind != NONE && once_in(2))
		in.comp_channel = channel.handle;
	if (once_in(2)) {
		if (command(files[file].fd, &cmd))
			return false;
	} else {
		attr_handle(&c, UVERBS_ATTR_CREATE_CQ_HANDLE, 0);
		attr_word(&c, UVERBS_ATTR_CREATE_CQ_CQE, in.cqe, 4);
		attr_word(&c, UVERBS_ATTR_CREATE_CQ_USER_HANDLE, rnd(), 8);
		attr_word(&c, UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, 0, 4);
		if (in.comp_channel >= 0)
			attr_handle(&c, UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL, in.comp_channel);
		if (mischief && once_in(3))
			attr_word(&c, UVERBS_ATTR_CREATE_CQ_FLAGS, below(4), 8);
		attr_out(&c, UVERBS_ATTR_CREATE_CQ_RESP_CQE, &a.c.cqe, 4);
		attr_out(&c, UVERBS_ATTR_UHW_OUT, &a.d, sizeof(a.d));
		if (make_call(files[file].fd, &c))
			return false;
		a.c.cq_handle = c.attrs[0].data;
	}
	*o = (struct obj){ .kind = K_CQ, .file = file, .handle = a.c.cq_handle, .key = a.d.cq_id,
			   .map = { a.d.cq } };
	return made(o, CQ);
}

static bool make_srq(uint8_t file, uint32_t pd, struct obj *o)
{
	struct { struct ib_uverbs_create_srq_resp c; struct weft_create_srq_resp d; } a = { 0 };
	struct ib_uverbs_create_srq in = { .pd_handle = pd, .max_wr = any_size(DEPTH),
					   .max_sge = any_size(2), .srq_limit = any_size(0) };
	struct command cmd = COMMAND(CREATE_SRQ, in, a, d);
	struct call c = method(UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE);

	if (once_in(2)) {
		if (command(files[file].fd, &cmd))
			return false;
	} else {
		attr_handle(&c, UVERBS_ATTR_CREATE_SRQ_HANDLE, 0);
		attr_handle(&c, UVERBS_ATTR_CREATE_SRQ_PD_HANDLE, pd);
		attr_word(&c, UVERBS_ATTR_CREATE_SRQ_USER_HANDLE, rnd(), 8);
		attr_word(&c, UVERBS_ATTR_CREATE_SRQ_MAX_WR, in.max_wr, 4);
		attr_word(&c, UVERBS_ATTR_CREATE_SRQ_MAX_SGE, in.max_sge, 4);
		attr_word(&c, UVERBS_ATTR_CREATE_SRQ_LIMIT, in.srq_limit, 4);
		attr_word(&c, UVERBS_ATTR_CREATE_SRQ_TYPE, 0, 8);
		attr_out(&c, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR, &a.c.max_wr, 4);
		attr_out(&c, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE, &a.c.max_sge, 4);
		attr_out(&c, UVERBS_ATTR_UHW_OUT, &a.d, sizeof(a.d));
		if (make_call(files[file].fd, &c))
			return false;
		a.c.srq_handle = c.attrs[0].data;
	}
	*o = (struct obj){ .kind = K_SRQ, .file = file, .handle = a.c.srq_handle,
			   .key = a.d.srq_id, .map = { a.d.srq } };
	return made(o, SRQ);
}

/* By the method: what the first octets of the answer are is said by attributes of their own. */
static int qp_by_method(uint8_t file, const struct ib_uverbs_create_qp *in, uint32_t *handle,
			struct weft_create_qp_resp *d)
{
	struct ib_uverbs_qp_cap cap = { in->max_send_wr, in->max_recv_wr, in->max_send_sge,
					in->max_recv_sge, in->max_inline_data };
	struct call c = method(UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE);
	uint32_t qpn;
	int rv;

	attr_handle(&c, UVERBS_ATTR_CREATE_QP_HANDLE, 0);
	attr_handle(&c, UVERBS_ATTR_CREATE_QP_PD_HANDLE, in->pd_handle);
	attr_handle(&c, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, in->send_cq_handle);
	attr_handle(&c, UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, in->recv_cq_handle);
	if (in->is_srq)
		attr_handle(&c, UVERBS_ATTR_CREATE_QP_SRQ_HANDLE, in->srq_handle);
	attr_word(&c, UVERBS_ATTR_CREATE_QP_USER_HANDLE, rnd(), 8);
	attr_in(&c, UVERBS_ATTR_CREATE_QP_CAP, &cap, sizeof(cap));
	attr_word(&c, UVERBS_ATTR_CREATE_QP_TYPE, in->qp_type, 8);
	if (mischief && once_in(8))
		attr_word(&c, UVERBS_ATTR_CREATE_QP_FLAGS, once_in(2) ? 1 << 11 : rnd(), 8);
	attr_out(&c, UVERBS_ATTR_CREATE_QP_RESP_CAP, &cap, sizeof(cap));
	attr_out(&c, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, &qpn, 4);
	attr_out(&c, UVERBS_ATTR_UHW_OUT, d, sizeof(*d));
	rv = make_call(files[file].fd, &c);
	*handle = c.attrs[0].data;
	return rv;
}

static int qp_by_extended(uint8_t file, const struct ib_uverbs_create_qp *in, uint32_t *handle,
			  struct weft_create_qp_resp *d)
{
	struct { struct ib_uverbs_ex_create_qp_resp c; struct weft_create_qp_resp d; } a;
	struct ib_uverbs_ex_create_qp ex = { .create_flags = any_size(0) };
	struct command cmd = { .number = IB_USER_VERBS_EX_CMD_CREATE_QP, .extended = true,
			       .in = &ex, .in_len = sizeof(ex), .out = &a, .out_len = sizeof(a.c),
			       .more_out = &a.d, .more_out_len = sizeof(a.d) };
	int rv;

	/* From user_handle on both are alike, up to comp_mask. */
	memcpy(&ex, &in->user_handle, offsetof(struct ib_uverbs_ex_create_qp, comp_mask));
	rv = command(files[file].fd, &cmd);
	*handle = a.c.base.qp_handle;
	*d = a.d;
	return rv;
}

static int qp_by_command(uint8_t file, struct ib_uverbs_create_qp *in, uint32_t *handle,
			 struct weft_create_qp_resp *d)
{
	struct { struct ib_uverbs_create_qp_resp c; struct weft_create_qp_resp d; } a;
	struct command cmd = { .number = IB_USER_VERBS_CMD_CREATE_QP, .in = in,
			       .in_len = sizeof(*in), .out = &a, .out_len = sizeof(a.c),
			       .more_out = &a.d, .more_out_len = sizeof(a.d) };
	int rv = command(files[file].fd, &cmd);

	*handle = a.c.qp_handle;
	*d = a.d;
	return rv;
}

static bool make_qp(uint8_t file, uint32_t pd, uint32_t cq, const struct obj *srq, struct obj *o)
{
	struct ib_uverbs_create_qp in = {
		.pd_handle = pd, .send_cq_handle = cq, .recv_cq_handle = cq,
		.srq_handle = srq->handle, .is_srq = srq->kind == K_SRQ,
		.max_send_wr = any_size(DEPTH), .max_recv_wr = any_size(DEPTH),
		.max_send_sge = any_size(2), .max_recv_sge = any_size(2),
		.max_inline_data = any_size(64), .sq_sig_all = below(2), .qp_type = IBV_QPT_RC,
	};
	struct weft_create_qp_resp d;
	uint32_t handle;
	int rv;

	switch (below(3)) {
	case 0: rv = qp_by_command(file, &in, &handle, &d); break;
	case 1: rv = qp_by_method(file, &in, &handle, &d); break;
	default: rv = qp_by_extended(file, &in, &handle, &d); break;
	}
	if (rv)
		return false;
	*o = (struct obj){ .kind = K_QP, .file = file, .handle = handle, .key = d.qp_id,
			   .map = { d.sq, d.rq } };
	return made(o, QP);
}

/* ---- and unmaking them ---- */

static const struct unmaking {
	uint8_t kind;
	uint32_t command;		/* 0: a method alone */
	uint16_t object, method;
	bool answer;
} unmakings[] = {
	{ K_PD, IB_USER_VERBS_CMD_DEALLOC_PD, UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY, false },
	{ K_MR, IB_USER_VERBS_CMD_DEREG_MR, UVERBS_OBJECT_MR, UVERBS_METHOD_MR_DESTROY, false },
	{ K_MW, IB_USER_VERBS_CMD_DEALLOC_MW, UVERBS_OBJECT_MW, UVERBS_METHOD_MW_DESTROY, false },
	{ K_CQ, IB_USER_VERBS_CMD_DESTROY_CQ, UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_DESTROY, true },
	{ K_SRQ, IB_USER_VERBS_CMD_DESTROY_SRQ, UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_DESTROY, true },
	{ K_QP, IB_USER_VERBS_CMD_DESTROY_QP, UVERBS_OBJECT_QP, UVERBS_METHOD_QP_DESTROY, true },
	{ K_DM, 0, UVERBS_OBJECT_DM, UVERBS_METHOD_DM_FREE, false },
};

static int by_old_command(int fd, const struct unmaking *u, uint32_t handle)
{
	uint64_t in[2] = { 0, handle }, out = 0;
	uint32_t plain = handle;

	return u->answer ? simple(fd, u->command, in, sizeof(in), &out, sizeof(out)) :
	       simple(fd, u->command, &plain, sizeof(plain), NULL, 0);
}

static int by_new_method(int fd, const struct unmaking *u, uint32_t handle)
{
	struct call c = method(u->object, u->method);
	uint64_t out;

	attr_handle(&c, 0, handle);
	/* A CQ's answer has two numbers. */
	if (u->answer)
		attr_out(&c, 1, &out, u->kind == K_CQ ? 8 : 4);
	return make_call(fd, &c);
}

static void unmake(const struct obj *o)
{
	const struct unmaking *u;
	int fd = files[o->file].fd, rv;

	if (o->kind == K_CHANNEL) {
		forget(K_CHANNEL, o->file, o->handle);
		close(o->handle);
		return;
	}
	for (u = unmakings; u->kind != o->kind; u++)
		if (u == unmakings + sizeof(unmakings) / sizeof(unmakings[0]) - 1)
			return;
	rv = u->command && once_in(2) ? by_old_command(fd, u, o->handle) :
	     by_new_method(fd, u, o->handle);
	if (counted(DESTROY, !rv))
		forget(o->kind, o->file, o->handle);
}

static void destroy_any(uint8_t file)
{
	struct obj o = pick(1 + below(NR_KINDS - 1), file);

	if (o.kind != NONE)
		unmake(&o);
}

/* ---- rings ---- */

static bool rings_hold(void)
{
	return !__atomic_exchange_n(&rings_busy, 1, __ATOMIC_ACQUIRE);
}

static void rings_drop(void)
{
	__atomic_store_n(&rings_busy, 0, __ATOMIC_RELEASE);
}

/* One that had its place in the table is unmapped, unless it is used here. */
static struct ring *ring_map(uint8_t file, const struct weft_ring_map *m)
{
	struct ring *r = &rings[below(RINGS)];
	uint8_t *at;

	if (!m->size || m->size > 1 << 24)
		return NULL;
	at = (void *)syscall(SYS_mmap, NULL, m->size, PROT_READ | PROT_WRITE, MAP_SHARED,
			     files[file].fd, m->offset);
	if (at == MAP_FAILED)
		return NULL;
	counted(RING, true);
	while (!rings_hold())
		pause_ms(1);
	if (r->at)
		munmap(r->at, r->size);
	*r = (struct ring){ .at = at, .size = m->size, .off = m->offset, .slots = m->slots,
			    .file = file };
	rings_drop();
	return r;
}

static void scribble_header(struct weft_ring *r)
{
	switch (below(5)) {
	case 0: r->user_idx = nasty(r->user_idx); break;
	case 1: r->arm = nasty(r->arm); break;
	case 2: r->kern_idx = nasty(r->kern_idx); break;
	case 3: r->flags = below(8); break;
	default: r->user_reserved[below(30)] = rnd(); break;
	}
}

static void scribble_entry(uint8_t *at)
{
	volatile struct weft_sq_wqe *w = (void *)at;
	volatile struct weft_sge *sge = (void *)(at + 16 * below(4));

	switch (below(9)) {
	case 0: w->opcode = below(WEFT_WR_NR + 2); break;
	case 1: w->num_sge = nasty(w->num_sge); break;
	case 2: w->nslots = once_in(4) ? rnd() : 1 + below(WEFT_SQ_MAX_SLOTS); break;
	case 3: w->flags = rnd(); break;
	case 4: w->rkey = nasty(w->rkey); break;
	case 5: sge->lkey = nasty(sge->lkey); break;
	case 6: sge->length = nasty(sge->length); break;
	case 7: sge->addr = nasty(sge->addr); break;
	default: ((volatile uint32_t *)at)[below(WEFT_SLOT_SIZE / 4)] = nasty(0); break;
	}
}

/* A stroke at an index ends most connections: those are few. */
void scribble(void)
{
	struct ring *r = &rings[below(RINGS)];

	if (!rings_hold())
		return;
	if (r->at && r->size >= WEFT_RING_DATA + WEFT_SLOT_SIZE) {
		if (once_in(256))
			scribble_header((struct weft_ring *)r->at);
		else
			scribble_entry(r->at + WEFT_RING_DATA + WEFT_SLOT_SIZE *
				       below((r->size - WEFT_RING_DATA) / WEFT_SLOT_SIZE));
		counted(SCRIBBLE, true);
	}
	rings_drop();
}

static void odd_mmap(uint8_t file)
{
	struct ring r = rings[below(RINGS)];
	size_t len = once_in(8) ? rnd() >> (16 + below(40)) :
		     once_in(2) && r.size ? r.size : 4096 * (1 + below(8));
	uint64_t off = once_in(8) ? rnd() << 12 : once_in(2) ? r.off : 4096ULL * below(256);
	uint8_t *at = (void *)syscall(SYS_mmap, NULL, len, below(8), once_in(4) ? MAP_PRIVATE :
				      MAP_SHARED, files[file].fd, off);

	if (!counted(ODD_MMAP, at != MAP_FAILED))
		return;
	switch (below(6)) {
	case 0: syscall(SYS_mremap, at, len, len + 4096, MREMAP_MAYMOVE); break;
	case 1: mprotect(at, 4096, below(8)); break;
	case 2: madvise(at, 4096, below(26)); break;
	case 3: break;			/* never */
	default: syscall(SYS_munmap, at, once_in(4) ? 4096 : len); break;
	}
}

/* ---- queues that work ---- */

static struct obj none(void)
{
	return (struct obj){ NONE };
}

bool queues_make(struct queues *q, int file)
{
	*q = (struct queues){ .file = file, .cookie = rnd() & ~0xffULL };
	if (once_in(2))
		make_channel(file, &q->channel);
	if (!make_pd(file, &q->pd) || !make_mr(file, q->pd.handle, &q->mr) || !make_cq(file, &q->cq))
		return false;
	q->srq = none();
	if (once_in(3))
		make_srq(file, q->pd.handle, &q->srq);
	if (once_in(2))
		make_mw(file, q->pd.handle, &q->mw);
	if (!make_qp(file, q->pd.handle, q->cq.handle, &q->srq, &q->qp))
		return false;
	q->cq_ring = ring_map(file, &q->cq.map[0]);
	q->sq = ring_map(file, &q->qp.map[0]);
	q->rq = ring_map(file, q->srq.kind == K_SRQ ? &q->srq.map[0] : &q->qp.map[1]);
	return q->cq_ring && q->sq && q->rq;
}

void queues_end(struct queues *q)
{
	struct obj *all[] = { &q->qp, &q->cq, &q->srq, &q->mw, &q->mr, &q->pd };
	uint32_t from = once_in(2) ? 0 : below(6), i;

	for (i = 0; i < 6; i++) {
		struct obj *o = all[(from + i) % 6];

		if (o->kind != NONE && !once_in(8))
			unmake(o);
	}
}

static void *slot(const struct ring *r, uint32_t at)
{
	return r->at + WEFT_RING_DATA + (size_t)(at & (r->slots - 1)) * WEFT_SLOT_SIZE;
}

/* The ring may have had its place taken by another; rings_hold() is held. */
static bool is_there(const struct queues *q, const struct ring *r)
{
	return r->at && r->file == q->file && r->slots && !(r->slots & (r->slots - 1)) &&
	       r->size >= WEFT_RING_DATA + (size_t)r->slots * WEFT_SLOT_SIZE;
}

/* True: the kernel sleeps. */
static bool publish(const struct ring *r, uint32_t idx)
{
	struct weft_ring *ring = (void *)r->at;

	__atomic_store_n(&ring->user_idx, idx, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return __atomic_load_n(&ring->flags, __ATOMIC_RELAXED) & WEFT_RING_KICK || once_in(16);
}

static struct weft_sge piece(const struct queues *q)
{
	return (struct weft_sge){ .addr = (uintptr_t)buf + BUF / 2 + 64 * below(512),
				  .length = 8 + below(4000), .lkey = q->mr.key };
}

static bool post_receive(struct queues *q)
{
	const struct weft_ring_map *m = q->srq.kind == K_SRQ ? &q->srq.map[0] : &q->qp.map[1];
	struct weft_sge sge = piece(q);
	struct weft_rq_wqe w = { .wr_id = q->cookie | WEFT_WCO_RECV, .num_sge = 1 };

	if (q->rq_at + m->stride - ((struct weft_ring *)q->rq->at)->kern_idx > q->rq->slots)
		return false;
	sge.length = 4096;
	memcpy(w.data, &sge, sizeof(sge));
	spoil(&w, sizeof(w));
	memcpy(slot(q->rq, q->rq_at), &w, sizeof(w));
	q->rq_at += m->stride;
	return publish(q->rq, q->rq_at);
}

static bool post_send(struct queues *q, uint64_t remote, uint32_t rkey)
{
	static const uint8_t ops[] = { WEFT_WR_WRITE, WEFT_WR_SEND, WEFT_WR_READ, WEFT_WR_FETCH_ADD,
				       WEFT_WR_CMP_SWAP, WEFT_WR_WRITE_IMM, WEFT_WR_SEND_IMM,
				       WEFT_WR_BIND_MW };
	struct weft_sge sge = piece(q);
	struct weft_sq_wqe w = { .opcode = ops[below(sizeof(ops))], .nslots = 1, .num_sge = 1,
				 .flags = WEFT_WR_SIGNALED | (once_in(4) ? WEFT_WR_FENCE : 0),
				 .rkey = rkey, .remote_addr = remote + 64 * below(512) };
	struct weft_wr_bind bind = { .addr = (uintptr_t)buf, .length = BUF, .mw_stag = q->mw.key + 1,
				     .mr_lkey = q->mr.key, .access = IBV_ACCESS_REMOTE_READ };
	uint64_t operands[2] = { rnd(), rnd() };

	if (q->sq_at + 1 - ((struct weft_ring *)q->sq->at)->kern_idx > q->sq->slots)
		return false;
	if (w.opcode == WEFT_WR_FETCH_ADD || w.opcode == WEFT_WR_CMP_SWAP)
		sge.length = 8;
	memcpy(w.data, &sge, sizeof(sge));
	memcpy(w.data + 16, operands, 16);
	/* Once: a window that is bound is not bound anew. */
	if (w.opcode == WEFT_WR_BIND_MW && (q->mw.kind != K_MW || q->bound))
		w.opcode = WEFT_WR_WRITE;
	if (w.opcode == WEFT_WR_BIND_MW) {
		q->bound = true;
		w.num_sge = 0;
		memcpy(w.data, &bind, sizeof(bind));
	}
	w.wr_id = q->cookie | (0x80 + w.opcode);
	if (mischief && once_in(mischief)) {
		/* What counts and what is counted do not fit. */
		w.num_sge = rnd();
		w.nslots = below(12);
		w.flags = rnd();
	}
	spoil(&w, sizeof(w));
	memcpy(slot(q->sq, q->sq_at), &w, sizeof(w));
	q->sq_at += once_in(200) ? below(12) : 1;
	return publish(q->sq, q->sq_at);
}

void queues_post(struct queues *q, uint64_t remote, uint32_t rkey)
{
	bool kick = false, kick_receives = false;
	uint32_t n = 1 + below(6);

	if (!rings_hold())
		return;
	while (n-- && is_there(q, q->rq) && is_there(q, q->sq)) {
		kick_receives |= post_receive(q);
		kick |= post_send(q, remote, rkey);
	}
	rings_drop();
	if (kick_receives && q->srq.kind == K_SRQ)
		ring_kick(q->file, UVERBS_OBJECT_SRQ, q->srq.handle);
	if (kick)
		ring_kick(q->file, UVERBS_OBJECT_QP, q->qp.handle);
}

/* Only what says what was posted: who scribbles makes up completions, too. */
static void count_completion(const struct queues *q, const struct weft_cqe *e)
{
	static const int16_t what[WEFT_WCO_NR] = {
		[WEFT_WCO_WRITE] = WRITTEN, [WEFT_WCO_SEND] = SENT, [WEFT_WCO_READ] = READ,
		[WEFT_WCO_LOCAL_INV] = -1, [WEFT_WCO_REG_MR] = -1, [WEFT_WCO_BIND_MW] = BOUND,
		[WEFT_WCO_CMP_SWAP] = ATOMIC, [WEFT_WCO_FETCH_ADD] = ATOMIC,
		[WEFT_WCO_RECV] = RECEIVED, [WEFT_WCO_RECV_IMM] = RECEIVED,
	};

	if ((e->wr_id & ~0xffULL) != q->cookie || e->opcode >= WEFT_WCO_NR)
		return;
	if (e->status)
		counted(FLUSHED, true);
	else if (what[e->opcode] >= 0)
		counted(what[e->opcode], true);
}

void queues_poll(struct queues *q)
{
	struct weft_ring *ring;
	uint8_t events[64];
	uint32_t n;

	if (!rings_hold())
		return;
	if (is_there(q, q->cq_ring)) {
		ring = (void *)q->cq_ring->at;
		for (n = 0; n < 32 && q->cq_at != __atomic_load_n(&ring->kern_idx, __ATOMIC_ACQUIRE);
		     n++)
			count_completion(q, slot(q->cq_ring, q->cq_at++));
		__atomic_store_n(&ring->user_idx, q->cq_at, __ATOMIC_RELEASE);
		ring->arm = below(3);
	}
	rings_drop();
	if (once_in(4))
		ring_kick(q->file, UVERBS_OBJECT_CQ, q->cq.handle);
	if (q->channel.kind == K_CHANNEL)
		counted(EVENT, read(q->channel.handle, events, sizeof(events)) > 0);
}

/* ---- random calls ---- */

static void make_any(uint8_t file)
{
	struct obj o, srq = once_in(3) ? pick(K_SRQ, file) : none();

	switch (below(7)) {
	case 0: make_pd(file, &o); break;
	case 1: make_mr(file, any_handle(K_PD, file), &o); break;
	case 2: make_mw(file, any_handle(K_PD, file), &o); break;
	case 3: make_channel(file, &o); break;
	case 4:
		if (make_cq(file, &o))
			ring_map(file, &o.map[0]);
		break;
	case 5:
		if (make_srq(file, any_handle(K_PD, file), &o))
			ring_map(file, &o.map[0]);
		break;
	default:
		if (make_qp(file, any_handle(K_PD, file), any_handle(K_CQ, file), &srq, &o))
			ring_map(file, &o.map[below(2)]);
		break;
	}
}

static void resize_cq(uint8_t file)
{
	struct { struct ib_uverbs_resize_cq_resp c; struct weft_resize_cq_resp d; } a;
	struct ib_uverbs_resize_cq in = { .cq_handle = any_handle(K_CQ, file),
					  .cqe = any_size(1 + below(1000)) };
	struct command cmd = COMMAND(RESIZE_CQ, in, a, d);

	if (counted(CQ_RESIZE, !command(files[file].fd, &cmd)) && once_in(2))
		ring_map(file, &a.d.cq);
}

static void resize_srq(uint8_t file)
{
	struct call c = method(UVERBS_OBJECT_SRQ, WEFT_METHOD_SRQ_RESIZE);
	struct weft_modify_srq_resp a;

	attr_handle(&c, WEFT_ATTR_SRQ_RESIZE_HANDLE, any_handle(K_SRQ, file));
	attr_word(&c, WEFT_ATTR_SRQ_RESIZE_MAX_WR, any_size(1 + below(500)), 4);
	attr_out(&c, WEFT_ATTR_SRQ_RESIZE_RESP, &a, sizeof(a));
	if (counted(SRQ_RESIZE, !make_call(files[file].fd, &c)) && once_in(2))
		ring_map(file, &a.srq);
}

static void modify_srq(uint8_t file)
{
	struct ib_uverbs_modify_srq in = { .srq_handle = any_handle(K_SRQ, file), .attr_mask = 2,
					   .srq_limit = below(DEPTH) };

	counted(SRQ_MODIFY, !simple(files[file].fd, IB_USER_VERBS_CMD_MODIFY_SRQ, &in, sizeof(in),
				    NULL, 0));
}

static void modify_qp(uint8_t file)
{
	struct { struct ib_uverbs_ex_modify_qp_resp c; } a;
	struct ib_uverbs_ex_modify_qp in = { .base = {
		.qp_handle = any_handle(K_QP, file), .attr_mask = IBV_QP_STATE,
		.qp_state = once_in(6) ? IBV_QPS_ERR : below(8), .port_num = 1,
	} };
	struct command cmd = { .number = IB_USER_VERBS_EX_CMD_MODIFY_QP, .extended = true, .in = &in,
			       .in_len = sizeof(in), .out = &a, .out_len = sizeof(a) };
	int rv;

	if (once_in(4))
		in.base.attr_mask |= rnd() & 0x1fffff;
	if (once_in(2))
		rv = simple(files[file].fd, IB_USER_VERBS_CMD_MODIFY_QP, &in, sizeof(in.base), NULL, 0);
	else
		rv = command(files[file].fd, &cmd);
	counted(QP_MODIFY, !rv);
}

static void query_any(uint8_t file)
{
	static uint64_t out[512];
	uint64_t in[4] = { 0 };
	uint32_t *words = (void *)(in + 1);
	struct call c = method(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT);
	int fd = files[file].fd, rv;

	switch (below(8)) {
	case 0:
		words[0] = any_handle(K_QP, file);
		rv = simple(fd, IB_USER_VERBS_CMD_QUERY_QP, in, 16, out, 144);
		break;
	case 1:
		words[0] = any_handle(K_SRQ, file);
		rv = simple(fd, IB_USER_VERBS_CMD_QUERY_SRQ, in, 16, out, 16);
		break;
	case 2:
		words[0] = 1;
		rv = simple(fd, IB_USER_VERBS_CMD_QUERY_PORT, in, 16, out, 40);
		break;
	case 3:
		attr_word(&c, UVERBS_ATTR_QUERY_PORT_PORT_NUM, 1, 1);
		attr_out(&c, UVERBS_ATTR_QUERY_PORT_RESP, out, 48);
		rv = make_call(fd, &c);
		break;
	case 4:
		c = method(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_TABLE);
		attr_word(&c, UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE, 32, 8);
		attr_word(&c, UVERBS_ATTR_QUERY_GID_TABLE_FLAGS, 0, 8);
		attr_out(&c, UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES, out, 32 * below(20));
		attr_out(&c, UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, out + 100, 8);
		rv = make_call(fd, &c);
		break;
	case 5:
		c = method(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INFO_HANDLES);
		attr_word(&c, UVERBS_ATTR_INFO_OBJECT_ID, 1 + below(16), 8);
		attr_out(&c, UVERBS_ATTR_INFO_TOTAL_HANDLES, out, 4);
		attr_out(&c, UVERBS_ATTR_INFO_HANDLES_LIST, out + 1, 4 * (1 + below(64)));
		rv = make_call(fd, &c);
		break;
	case 6:
		c = method(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_CONTEXT);
		attr_out(&c, UVERBS_ATTR_QUERY_CONTEXT_NUM_COMP_VECTORS, out, 4);
		attr_out(&c, UVERBS_ATTR_QUERY_CONTEXT_CORE_SUPPORT, out + 1, 8);
		attr_out(&c, WEFT_ATTR_QUERY_CONTEXT_RESP, out + 2, 32);
		rv = make_call(fd, &c);
		break;
	default:
		c = method(UVERBS_OBJECT_MR, UVERBS_METHOD_QUERY_MR);
		attr_handle(&c, UVERBS_ATTR_QUERY_MR_HANDLE, any_handle(K_MR, file));
		attr_out(&c, UVERBS_ATTR_QUERY_MR_RESP_LKEY, out, 4);
		attr_out(&c, UVERBS_ATTR_QUERY_MR_RESP_RKEY, out + 1, 4);
		attr_out(&c, UVERBS_ATTR_QUERY_MR_RESP_LENGTH, out + 2, 8);
		attr_out(&c, UVERBS_ATTR_QUERY_MR_RESP_IOVA, out + 3, 8);
		rv = make_call(fd, &c);
		break;
	}
	counted(QUERY, !rv);
}

static void reg_dmabuf(uint8_t file)
{
	struct call c = method(UVERBS_OBJECT_MR, UVERBS_METHOD_REG_DMABUF_MR);
	uint32_t keys[2];

	attr_handle(&c, UVERBS_ATTR_REG_DMABUF_MR_HANDLE, 0);
	attr_handle(&c, UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE, any_handle(K_PD, file));
	attr_word(&c, UVERBS_ATTR_REG_DMABUF_MR_OFFSET, below(8192), 8);
	attr_word(&c, UVERBS_ATTR_REG_DMABUF_MR_LENGTH, below(65536), 8);
	attr_word(&c, UVERBS_ATTR_REG_DMABUF_MR_IOVA, rnd(), 8);
	attr_word(&c, UVERBS_ATTR_REG_DMABUF_MR_FD, files[below(FILES)].fd, 8);
	attr_word(&c, UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS, ALL_ACCESS, 8);
	attr_out(&c, UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY, &keys[0], 4);
	attr_out(&c, UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY, &keys[1], 4);
	counted(DMABUF, !make_call(files[file].fd, &c));
}

static void read_events(uint8_t file)
{
	struct call c = method(UVERBS_OBJECT_ASYNC_EVENT, UVERBS_METHOD_ASYNC_EVENT_ALLOC);
	struct obj o = pick(K_CHANNEL, file);
	uint8_t events[256];
	int fd;

	if (o.kind != NONE && !once_in(3)) {
		counted(EVENT, read(o.handle, events, below(sizeof(events))) > 0);
		return;
	}
	attr_handle(&c, UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE, 0);
	if (!counted(ASYNC, !make_call(files[file].fd, &c)))
		return;
	fd = c.attrs[0].data;
	fcntl(fd, F_SETFL, O_NONBLOCK | (once_in(2) ? O_ASYNC : 0));
	counted(EVENT, read(fd, events, sizeof(events)) > 0);
	close(fd);
}

/* Of words that may be anything. */
static void odd_write(uint8_t file)
{
	uint64_t wide[40];
	uint32_t *words = (void *)wide;
	struct ib_uverbs_cmd_hdr *hdr = (void *)words;
	uint32_t n = 4 + below(70), i, command = below(64);

	/* kmalloc() of these kernels warns of the entry sizes that post commands may ask for. */
	if (command == IB_USER_VERBS_CMD_POST_SEND || command == IB_USER_VERBS_CMD_POST_RECV ||
	    command == IB_USER_VERBS_CMD_POST_SRQ_RECV)
		return;
	for (i = 0; i < 40; i++)
		wide[i] = once_in(3) ? any_pointer() : once_in(2) ? below(64) : nasty(0);
	*hdr = (struct ib_uverbs_cmd_hdr){ .command = command, .in_words = n, .out_words = below(64) };
	if (once_in(2))
		wide[1] = (uintptr_t)buf;
	if (once_in(3)) {
		hdr->command |= IB_USER_VERBS_CMD_FLAG_EXTENDED;
		hdr->in_words = (n * 4 - 24) / 8;
		wide[2] &= 0xffff;
		n &= ~1u;
	}
	fault_begin();
	counted(ODD_WRITE, write(files[file].fd, words, n * 4) > 0);
	fault_end();
}

static void odd_ioctl(uint8_t file)
{
	static const uint16_t ids[] = { UVERBS_ATTR_UHW_IN, UVERBS_ATTR_UHW_OUT,
					WEFT_ATTR_QP_KICK_HANDLE, WEFT_ATTR_SRQ_RESIZE_RESP };
	static const uint8_t kinds[18] = {
		[UVERBS_OBJECT_PD] = K_PD, [UVERBS_OBJECT_COMP_CHANNEL] = K_CHANNEL,
		[UVERBS_OBJECT_CQ] = K_CQ, [UVERBS_OBJECT_QP] = K_QP, [UVERBS_OBJECT_SRQ] = K_SRQ,
		[UVERBS_OBJECT_MR] = K_MR, [UVERBS_OBJECT_MW] = K_MW, [UVERBS_OBJECT_DM] = K_DM,
	};
	struct call c = method(below(18), once_in(6) ? WEFT_METHOD_QP_KICK + below(3) : below(8));
	uint32_t n = below(15), i;
	struct ib_uverbs_attr *a;

	for (i = 0; i < n; i++) {
		a = attr(&c, once_in(4) ? ids[below(4)] : i);
		a->len = once_in(2) ? 0 : once_in(2) ? 8 : 4 * below(20);
		a->flags = once_in(8) ? rnd() : !i;
		a->data = once_in(2) ? any_handle(1 + below(NR_KINDS - 1), file) : any_pointer();
		if (!i && !once_in(4)) {
			a->len = 0;
			a->data = any_handle(kinds[c.hdr.object_id], file);
		}
	}
	counted(ODD_IOCTL, !make_call(files[file].fd, &c));
}

static void odd_file(uint8_t file)
{
	struct pollfd p = { .fd = files[file].fd, .events = POLLIN };
	uint8_t octets[16];

	switch (below(4)) {
	case 0: poll(&p, 1, 0); break;
	case 1: ioctl(p.fd, once_in(2) ? FIONREAD : rnd(), any_pointer()); break;
	case 2: counted(ODD_WRITE, read(p.fd, octets, sizeof(octets)) > 0); break;
	default: fcntl(p.fd, F_SETFL, once_in(2) ? O_NONBLOCK : 0); break;
	}
}

static void kick_any(uint8_t file)
{
	switch (below(3)) {
	case 0: ring_kick(file, UVERBS_OBJECT_QP, any_handle(K_QP, file)); break;
	case 1: ring_kick(file, UVERBS_OBJECT_CQ, any_handle(K_CQ, file)); break;
	default: ring_kick(file, UVERBS_OBJECT_SRQ, any_handle(K_SRQ, file)); break;
	}
}

void verbs_any(void)
{
	static void (*const calls[])(uint8_t) = {
		make_any, make_any, make_any, destroy_any, rereg, resize_cq, resize_srq, modify_srq,
		modify_qp, query_any, query_any, reg_dmabuf, read_events, odd_write, odd_ioctl,
		odd_file, kick_any, kick_any, kick_any, odd_mmap,
	};
	uint8_t file = below(FILES);

	if (files[file].fd < 0 || once_in(100)) {
		if (verbs_open(0) < 0)
			pause_ms(20);
		return;
	}
	/* A whole context at once. */
	if (once_in(400)) {
		put_file(file, -1, 0, false);
		return;
	}
	calls[below(sizeof(calls) / sizeof(calls[0]))](file);
}
