// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * /dev/infiniband/rdma_cm: each open file is an event channel, and takes commands by write(), as in
 * <rdma_user_cm.h>. A command is copied once, padded with zeros, and then checked.
 */
#include <infiniband/ib.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "faults/faults.h"
#include "host/chan.h"
#include "judge/adverse.h"
#include "process/thread.h"
#include "record/deeds.h"
#include "record/log.h"
#include "ucm.h"
#include "ucm_request.h"
#include "ud.h"

static const struct rl_file_ops ucm_ops;

static struct rl_ucm_file *ucm_file_of(struct rl_file *f)
{
	return container_of(f, struct rl_ucm_file, file);
}

/* ---- addresses ---- */

/* Copies an address of exactly @len octets: 0 or -EINVAL. */
static int take_address(struct sockaddr_storage *a, const void *p, size_t len)
{
	memset(a, 0, sizeof(*a));
	if (len > sizeof(*a))
		return -EINVAL;
	memcpy(a, p, len);
	if (a->ss_family == AF_IB && len == sizeof(struct sockaddr_ib))
		return 0;
	return rl_addr_len(a) && rl_addr_len(a) == len ? 0 : -EINVAL;
}

/* The same from a sockaddr_in6, which older commands have for any family. */
static int take_old_address(struct sockaddr_storage *a, const struct sockaddr_in6 *six)
{
	const struct sockaddr_storage family = { .ss_family = six->sin6_family };

	return take_address(a, six, rl_addr_len(&family));
}

/* ---- ids ---- */

/* The QP type of a port space, as in libibverbs; or -EINVAL. */
static int qp_type_of(const struct rdma_ucm_create_id *in)
{
	switch (in->ps) {
	case RDMA_PS_TCP:
		return IBV_QPT_RC;
	case RDMA_PS_UDP:
	case RDMA_PS_IPOIB:
		return IBV_QPT_UD;
	case RDMA_PS_IB:
		return in->qp_type;
	default:
		return -EINVAL;
	}
}

static int create_id(struct rl_ucm_request *r)
{
	const struct rdma_ucm_create_id *in = &r->in.create_id;
	struct rdma_ucm_create_id_resp resp;
	int qp_type = qp_type_of(in), rv;
	struct rl_cmid *id;

	if (qp_type < 0)
		return qp_type;
	id = rl_cmid_new(in->ps, qp_type);
	if (!id)
		return -ENOMEM;
	id->uid = in->uid;
	rl_cmid_table_lock();
	rv = rl_cmid_list(id, r->f->chan);
	rl_cmid_table_unlock();
	resp.id = id->handle;
	rl_cmid_put(id);
	if (rv)
		return rv;
	rv = rl_ucm_answer(r, in->response, &resp, sizeof(resp));
	if (rv)
		rl_cm_destroy(id);
	return rv;
}

static int destroy_id(struct rl_ucm_request *r)
{
	const struct rdma_ucm_destroy_id *in = &r->in.destroy_id;
	struct rdma_ucm_destroy_id_resp resp;
	struct rl_cmid *id;
	int err;

	id = rl_ucm_find(r, in->id, &err);
	if (!id)
		return err;
	resp.events_reported = rl_cm_destroy(id);
	return rl_ucm_answer(r, in->response, &resp, sizeof(resp));
}

static int migrate_from(struct rl_ucm_request *r, struct rl_file *from)
{
	const struct rdma_ucm_migrate_id *in = &r->in.migrate_id;
	struct rdma_ucm_migrate_resp resp;
	struct rl_cmid *id;
	int err;

	if (from->ops != &ucm_ops)
		return -EINVAL;
	id = rl_cmid_find(ucm_file_of(from)->chan, in->id, &err);
	if (!id)
		return err;
	resp.events_reported = rl_cmid_migrate(id, r->f->chan);
	return rl_ucm_answer(r, in->response, &resp, sizeof(resp));
}

/* ---- addresses, routes ---- */

static int ucm_bind_to(struct rl_ucm_request *r, u32 handle, const struct sockaddr_storage *a)
{
	int err;
	struct rl_cmid *id = rl_ucm_find(r, handle, &err);

	return id ? rl_cm_bind(id, a) : err;
}

static int bind_ip(struct rl_ucm_request *r)
{
	struct sockaddr_storage a;
	int rv = take_old_address(&a, &r->in.bind_ip.addr);

	return rv ? rv : ucm_bind_to(r, r->in.bind_ip.id, &a);
}

static int bind_any_family(struct rl_ucm_request *r)
{
	const struct rdma_ucm_bind *in = &r->in.bind;
	struct sockaddr_storage a;
	int rv = in->reserved ? -EINVAL : take_address(&a, &in->addr, in->addr_size);

	return rv ? rv : ucm_bind_to(r, in->id, &a);
}

static int ucm_resolve(struct rl_ucm_request *r, u32 handle, const struct sockaddr_storage *src,
		       const struct sockaddr_storage *dst, u32 timeout_ms)
{
	int err, fault = r->fault;
	struct rl_cmid *id = rl_ucm_find(r, handle, &err);

	if (!id)
		return err;
	if (!rl_addr_len(dst))
		return -EAFNOSUPPORT;
	if (!fault && rl_adverse_times_out(timeout_ms))
		fault = -ETIMEDOUT;
	return rl_cm_resolve_addr(id, src, dst, fault);
}

static int resolve_ip(struct rl_ucm_request *r)
{
	const struct rdma_ucm_resolve_ip *in = &r->in.resolve_ip;
	struct sockaddr_storage src = { 0 }, dst;
	int rv = take_old_address(&dst, &in->dst_addr);

	if (!rv && in->src_addr.sin6_family)
		rv = take_old_address(&src, &in->src_addr);
	return rv ? rv : ucm_resolve(r, in->id, &src, &dst, in->timeout_ms);
}

static int resolve_addr(struct rl_ucm_request *r)
{
	const struct rdma_ucm_resolve_addr *in = &r->in.resolve_addr;
	struct sockaddr_storage src = { 0 }, dst;
	int rv = in->reserved ? -EINVAL : take_address(&dst, &in->dst_addr, in->dst_size);

	if (!rv && in->src_size)
		rv = take_address(&src, &in->src_addr, in->src_size);
	return rv ? rv : ucm_resolve(r, in->id, &src, &dst, in->timeout_ms);
}

static int resolve_route(struct rl_ucm_request *r)
{
	int err, fault = r->fault;
	struct rl_cmid *id = rl_ucm_find(r, r->in.resolve_route.id, &err);

	if (!fault && rl_adverse_times_out(r->in.resolve_route.timeout_ms))
		fault = -ETIMEDOUT;
	return id ? rl_cm_resolve_route(id, fault) : err;
}

/* ---- connections ---- */

static int connect_id(struct rl_ucm_request *r)
{
	const struct rdma_ucm_connect *in = &r->in.connect;
	struct rl_cmid *id;
	int err;

	if (!in->conn_param.valid)
		return -EINVAL;
	id = rl_ucm_find(r, in->id, &err);
	return id ? rl_cm_connect(id, &in->conn_param, r->fault) : err;
}

static int listen_id(struct rl_ucm_request *r)
{
	int err;
	struct rl_cmid *id = rl_ucm_find(r, r->in.listen.id, &err);

	return id ? rl_cm_listen(id, r->in.listen.backlog) : err;
}

static int accept_id(struct rl_ucm_request *r)
{
	const struct rdma_ucm_accept *in = &r->in.accept;
	int err;
	struct rl_cmid *id = rl_ucm_find(r, in->id, &err);

	return id ? rl_cm_accept(id, in->uid, &in->conn_param) : err;
}

static int reject_id(struct rl_ucm_request *r)
{
	/* Reasons: the program, and its vendor's options. */
	enum { UNSAID = 0, BY_CONSUMER = 28, BY_VENDOR = 35 };
	const struct rdma_ucm_reject *in = &r->in.reject;
	struct rl_cmid *id;
	int err;

	if (in->reason != UNSAID && in->reason != BY_CONSUMER && in->reason != BY_VENDOR)
		return -EINVAL;
	id = rl_ucm_find(r, in->id, &err);
	return id ? rl_cm_reject(id, in->private_data, in->private_data_len) : err;
}

static int disconnect_id(struct rl_ucm_request *r)
{
	int err;
	struct rl_cmid *id = rl_ucm_find(r, r->in.disconnect.id, &err);

	return id ? rl_cm_disconnect(id) : err;
}

/* iWARP connects without the program's help: nothing to do. */
static int notify(struct rl_ucm_request *r)
{
	int err;
	struct rl_cmid *id = rl_ucm_find(r, r->in.notify.id, &err);

	if (!id)
		return err;
	return id->dev && id->phase >= RL_CM_CONNECT ? 0 : -EINVAL;
}

/* ---- multicast ---- */

static int join_group(struct rl_ucm_request *r, u32 handle, u64 uid, u64 response,
		      const struct sockaddr_storage *group)
{
	struct rdma_ucm_create_id_resp resp;
	struct rl_cmid *id;
	u32 reported;
	int rv;

	id = rl_ucm_find(r, handle, &rv);
	if (!id)
		return rv;
	rv = rl_join_begin(id, uid, group, &resp.id);
	if (rv)
		return rv;
	rv = rl_ucm_answer(r, response, &resp, sizeof(resp));
	if (rv)
		rl_join_end(r->f->chan, resp.id, &reported);
	return rv;
}

static int join_ip_mcast(struct rl_ucm_request *r)
{
	const struct rdma_ucm_join_ip_mcast *in = &r->in.join_ip_mcast;
	struct sockaddr_storage a;
	int rv = take_old_address(&a, &in->addr);

	return rv ? rv : join_group(r, in->id, in->uid, in->response, &a);
}

/* A send-only member gets the same: entering the group is separate. */
static int join_mcast(struct rl_ucm_request *r)
{
	const struct rdma_ucm_join_mcast *in = &r->in.join_mcast;
	struct sockaddr_storage a;
	int rv = in->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED ? -EINVAL :
		 take_address(&a, &in->addr, in->addr_size);

	return rv ? rv : join_group(r, in->id, in->uid, in->response, &a);
}

static int leave_mcast(struct rl_ucm_request *r)
{
	const struct rdma_ucm_destroy_id *in = &r->in.destroy_id;
	struct rdma_ucm_destroy_id_resp resp;
	int rv = rl_join_end(r->f->chan, in->id, &resp.events_reported);

	return rv ? rv : rl_ucm_answer(r, in->response, &resp, sizeof(resp));
}

/* ---- options ---- */

static int set_id_option(struct rl_cmid *id, const struct rdma_ucm_set_option *in)
{
	const void *value = (const void *)(uintptr_t)in->optval;
	bool wide = in->optname == RDMA_OPTION_ID_REUSEADDR || in->optname == RDMA_OPTION_ID_AFONLY;
	int number = 0;

	if (in->optname > RDMA_OPTION_ID_ACK_TIMEOUT)
		return -ENOSYS;
	if (in->optlen != (wide ? sizeof(int) : sizeof(u8)))
		return -EINVAL;
	if (!rl_guard_copy(&number, value, in->optlen))
		return -EFAULT;
	switch (in->optname) {
	case RDMA_OPTION_ID_TOS:
		rl_cm_set_tos(id, *(const u8 *)&number);
		return 0;
	case RDMA_OPTION_ID_REUSEADDR:
		return rl_cm_set_reuseaddr(id, number);
	case RDMA_OPTION_ID_AFONLY:
		return rl_cm_set_afonly(id, number);
	default:
		/* TCP has time-outs of its own. */
		return id->qp_type == IBV_QPT_RC ? 0 : -EINVAL;
	}
}

static int ucm_set_option(struct rl_ucm_request *r)
{
	const struct rdma_ucm_set_option *in = &r->in.set_option;
	int err;
	struct rl_cmid *id = rl_ucm_find(r, in->id, &err);

	if (!id)
		return err;
	if (in->level == RDMA_OPTION_ID)
		return set_id_option(id, in);
	if (in->level == RDMA_OPTION_IB && in->optname == RDMA_OPTION_IB_PATH)
		return -EINVAL;
	return -ENOSYS;
}

/* ---- without rdma_cm's lock ---- */

static int get_event(struct rl_ucm_request *r)
{
	u64 now = rl_record_is_on() ? rl_ticks() : 0;
	struct rdma_ucm_event_resp resp;
	int rv = rl_cmid_take_event(r->f->chan, &resp);

	if (now && !rv)
		rl_record_event(WEFT_RECORD_CM_EVENT, resp.event, resp.id, (int)resp.status, true,
				now);
	return rv ? rv : rl_ucm_answer(r, r->in.get_event.response, &resp, sizeof(resp));
}

/* May release the file that the id comes from: not with the lock. */
static int migrate_id(struct rl_ucm_request *r)
{
	struct rl_file *from = rl_fd_get((int)r->in.migrate_id.fd);
	int rv;

	if (!from)
		return -ENOENT;
	rl_cm_lock();
	rv = migrate_from(r, from);
	rl_cm_unlock();
	rl_file_put(from);
	return rv;
}

/* ---- the file ---- */

struct command {
	int (*run)(struct rl_ucm_request *r);	/* NULL: no such command */
	u16 in, out;			/* minimum sizes */
	bool alone;			/* without rdma_cm's lock */
	enum rl_fault_call call;	/* of a fault file; then where its id's handle is */
	u16 id;
};

#define IN(type) .in = sizeof(struct rdma_ucm_##type)
/* Fields of newer libraries may be missing at the end. */
#define IN_TO(type, last) .in = offsetof(struct rdma_ucm_##type, last) + \
				sizeof(((struct rdma_ucm_##type *)0)->last)
#define OUT(type) .out = sizeof(struct rdma_ucm_##type)
#define OUT_BEFORE(type, first) .out = offsetof(struct rdma_ucm_##type, first)
#define CALL(name, type) .call = RL_FAULT_##name, .id = offsetof(struct rdma_ucm_##type, id)

static const struct command commands[] = {
	[RDMA_USER_CM_CMD_CREATE_ID] = { create_id, IN(create_id), OUT(create_id_resp),
				      .call = RL_FAULT_CREATE_ID },
	[RDMA_USER_CM_CMD_DESTROY_ID] = { destroy_id, IN(destroy_id), OUT(destroy_id_resp) },
	[RDMA_USER_CM_CMD_BIND_IP] = { bind_ip, IN_TO(bind_ip, id), CALL(BIND_ADDR, bind_ip) },
	[RDMA_USER_CM_CMD_RESOLVE_IP] = { resolve_ip, IN(resolve_ip),
				       CALL(RESOLVE_ADDR, resolve_ip) },
	[RDMA_USER_CM_CMD_RESOLVE_ROUTE] = { resolve_route, IN(resolve_route),
					  CALL(RESOLVE_ROUTE, resolve_route) },
	[RDMA_USER_CM_CMD_QUERY_ROUTE] = { rl_ucm_query_route, IN_TO(query, id),
					   OUT_BEFORE(query_route_resp, ibdev_index) },
	[RDMA_USER_CM_CMD_CONNECT] = { connect_id, IN_TO(connect, reserved),
				       CALL(CONNECT, connect) },
	[RDMA_USER_CM_CMD_LISTEN] = { listen_id, IN(listen), CALL(LISTEN, listen) },
	[RDMA_USER_CM_CMD_ACCEPT] = { accept_id, IN_TO(accept, reserved), CALL(ACCEPT, accept) },
	[RDMA_USER_CM_CMD_REJECT] = { reject_id, IN(reject) },
	[RDMA_USER_CM_CMD_DISCONNECT] = { disconnect_id, IN(disconnect) },
	[RDMA_USER_CM_CMD_INIT_QP_ATTR] = { rl_ucm_init_qp_attr, IN(init_qp_attr),
					    .out = sizeof(struct ib_uverbs_qp_attr) },
	[RDMA_USER_CM_CMD_GET_EVENT] = { get_event, IN(get_event),
					 OUT_BEFORE(event_resp, reserved), .alone = true },
	[RDMA_USER_CM_CMD_SET_OPTION] = { ucm_set_option, IN(set_option) },
	[RDMA_USER_CM_CMD_NOTIFY] = { notify, IN(notify) },
	[RDMA_USER_CM_CMD_JOIN_IP_MCAST] = { join_ip_mcast, IN_TO(join_ip_mcast, id),
					     OUT(create_id_resp),
					     CALL(JOIN_MULTICAST, join_ip_mcast) },
	[RDMA_USER_CM_CMD_LEAVE_MCAST] = { leave_mcast, IN(destroy_id), OUT(destroy_id_resp) },
	[RDMA_USER_CM_CMD_MIGRATE_ID] = { migrate_id, IN(migrate_id), OUT(migrate_resp),
					  .alone = true },
	[RDMA_USER_CM_CMD_QUERY] = { rl_ucm_query, IN(query) },
	[RDMA_USER_CM_CMD_BIND] = { bind_any_family, IN(bind), CALL(BIND_ADDR, bind) },
	[RDMA_USER_CM_CMD_RESOLVE_ADDR] = { resolve_addr, IN(resolve_addr),
					 CALL(RESOLVE_ADDR, resolve_addr) },
	[RDMA_USER_CM_CMD_JOIN_MCAST] = { join_mcast, IN(join_mcast), OUT(create_id_resp),
				       CALL(JOIN_MULTICAST, join_mcast) },
};

/* What a fault file's rules may ask of the command's id, as it is now. */
static void ucm_read_subject(const struct command *cmd, const struct rl_ucm_request *r,
			     struct rl_fault_subject *s)
{
	const struct rl_cmid *id;
	u32 handle;
	int err;

	if (cmd->call == RL_FAULT_CREATE_ID) {
		err = qp_type_of(&r->in.create_id);
		s->type = err < 0 ? 0 : (u32)err;
		return;
	}
	memcpy(&handle, (const u8 *)&r->in + cmd->id, sizeof(handle));
	rl_cm_lock();
	id = rl_ucm_find(r, handle, &err);
	if (id) {
		s->type = id->qp_type;
		s->device = id->dev ? id->dev->name : NULL;
	}
	rl_cm_unlock();
}

static int ucm_ask_faults(const struct command *cmd, struct rl_ucm_request *r)
{
	struct rl_fault_subject s = { .call = cmd->call };
	struct rl_fault fault;
	int rv;

	ucm_read_subject(cmd, r, &s);
	rv = rl_faults_ask(&s, &fault);
	r->fault = fault.effect == RL_FAULT_EVENT ? -fault.err : 0;
	return rv;
}

static int ucm_run(const struct command *cmd, struct rl_ucm_request *r)
{
	int rv;

	if (cmd->alone)
		return cmd->run(r);
	rv = cmd->call && rl_faults_are_on() ? ucm_ask_faults(cmd, r) : 0;
	if (rv)
		return rv;
	rl_cm_lock();
	rv = cmd->run(r);
	rl_cm_unlock();
	return rv;
}

/* The id that the command is about; 0: none, or none that matters. */
static u32 ucm_subject(u32 number, const struct rl_ucm_request *r)
{
	switch (number) {
	case RDMA_USER_CM_CMD_CREATE_ID:
		return 0;
	case RDMA_USER_CM_CMD_CONNECT:
		return r->in.connect.id;
	case RDMA_USER_CM_CMD_ACCEPT:
		return r->in.accept.id;
	case RDMA_USER_CM_CMD_RESOLVE_ADDR:
		return r->in.resolve_addr.id;
	case RDMA_USER_CM_CMD_RESOLVE_IP:
		return r->in.resolve_ip.id;
	case RDMA_USER_CM_CMD_RESOLVE_ROUTE:
		return r->in.resolve_route.id;
	case RDMA_USER_CM_CMD_LISTEN:
		return r->in.listen.id;
	case RDMA_USER_CM_CMD_BIND:
		return r->in.bind.id;
	case RDMA_USER_CM_CMD_REJECT:
		return r->in.reject.id;
	case RDMA_USER_CM_CMD_DISCONNECT:
		return r->in.disconnect.id;
	case RDMA_USER_CM_CMD_DESTROY_ID:
		return r->in.destroy_id.id;
	default:
		return 0;
	}
}

static int ucm_run_recorded(const struct command *cmd, u32 number, struct rl_ucm_request *r)
{
	u64 now = rl_ticks();
	u32 subject = ucm_subject(number, r);
	int rv = ucm_run(cmd, r);

	rl_record_call(WEFT_RECORD_CM, number, NULL, subject, rv, now);
	return rv;
}

static ssize_t ucm_write(struct rl_file *f, int fd, const void *buf, size_t len)
{
	struct rl_ucm_request r = { .f = ucm_file_of(f) };
	struct rdma_ucm_cmd_hdr h;
	const struct command *cmd;
	int rv;

	rl_thread_revive(f);
	if (len < sizeof(h))
		return -EINVAL;
	if (!rl_guard_copy(&h, buf, sizeof(h)))
		return -EFAULT;
	if (h.cmd >= ARRAY_SIZE(commands) || h.in + sizeof(h) > len)
		return -EINVAL;
	cmd = &commands[h.cmd];
	if (!cmd->run)
		return -ENOSYS;
	if (h.in < cmd->in)
		return -EINVAL;
	if (h.out < cmd->out)
		return -ENOSPC;
	if (!rl_guard_copy(&r.in, (const u8 *)buf + sizeof(h), min_t(size_t, h.in, sizeof(r.in))))
		return -EFAULT;
	r.out = h.out;
	rv = rl_record_is_on() ? ucm_run_recorded(cmd, h.cmd, &r) : ucm_run(cmd, &r);
	return rv ? rv : (ssize_t)len;
}

/* Events are read by a command. */
static ssize_t ucm_read(struct rl_file *f, int fd, void *buf, size_t len)
{
	return -EINVAL;
}

static void ucm_release(struct rl_file *f)
{
	struct rl_ucm_file *u = ucm_file_of(f);
	struct rl_cmid *id;

	rl_cm_lock();
	while ((id = rl_cmid_first(u->chan)))
		rl_cm_destroy(id);
	rl_cm_unlock();
	rl_chan_put(u->chan);
	free(u);
}

static const struct rl_file_ops ucm_ops = {
	.read = ucm_read,
	.write = ucm_write,
	.release = ucm_release,
	.mode = S_IFCHR | 0666,
};

int rl_ucm_open(int flags)
{
	struct rl_ucm_file *f = calloc(1, sizeof(*f));
	int fd;

	if (!f)
		return -ENOMEM;
	f->chan = rl_chan_new(flags, &fd);
	if (!f->chan) {
		free(f);
		return -EMFILE;
	}
	rl_guard_begin();
	rl_file_init(&f->file, &ucm_ops, rl_device_cm_rdev());
	return rl_fd_install(fd, &f->file);
}
