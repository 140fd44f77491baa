// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * /dev/infiniband/rdma_cm: each open file is an event channel, and takes commands by write(), as
 * <rdma_user_cm.h> has them. A command is copied once, padded with zeros, and then judged.
 */
#include <endian.h>
#include <infiniband/ib.h>
#include <infiniband/sa.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "sidr.h"
#include "id.h"
#include "ud.h"
#include "process/guard.h"
#include "hooks/open.h"
#include "process/options.h"
#include "host/limits.h"

/* Ethernet has but the default partition. */
#define WHOLE_PKEY 0xffff
/* Of path records: a selector, and 4.096 us << 18, as the kernel has it. */
#define EXACTLY 2
#define LIFE_TIME 18

struct ucm_file {
	struct rl_file file;
	struct rl_chan *chan;
};

/* A command: what came in, and where the answer goes. */
struct request {
	struct ucm_file *f;
	u16 out;			/* octets that the program has room for */
	union {
		struct rdma_ucm_create_id create_id;
		struct rdma_ucm_destroy_id destroy_id;
		struct rdma_ucm_bind_ip bind_ip;
		struct rdma_ucm_bind bind;
		struct rdma_ucm_resolve_ip resolve_ip;
		struct rdma_ucm_resolve_addr resolve_addr;
		struct rdma_ucm_resolve_route resolve_route;
		struct rdma_ucm_query query;
		struct rdma_ucm_connect connect;
		struct rdma_ucm_listen listen;
		struct rdma_ucm_accept accept;
		struct rdma_ucm_reject reject;
		struct rdma_ucm_disconnect disconnect;
		struct rdma_ucm_init_qp_attr init_qp_attr;
		struct rdma_ucm_get_event get_event;
		struct rdma_ucm_set_option set_option;
		struct rdma_ucm_notify notify;
		struct rdma_ucm_join_ip_mcast join_ip_mcast;
		struct rdma_ucm_join_mcast join_mcast;
		struct rdma_ucm_migrate_id migrate_id;
	} in;
};

static const struct rl_file_ops ucm_ops;

static struct ucm_file *ucm_file_of(struct rl_file *f)
{
	return container_of(f, struct ucm_file, file);
}

/* Older programs have room for less than all of the answer. */
static int answer(const struct request *r, u64 where, const void *p, size_t len)
{
	size_t room = min_t(size_t, len, r->out);

	return rl_guard_copy((void *)(uintptr_t)where, p, room) ? 0 : -EFAULT;
}

static struct rl_cmid *find(const struct request *r, u32 handle, int *err)
{
	return rl_cmid_find(r->f->chan, handle, err);
}

/* ---- addresses ---- */

/* @len octets of an address, which are all of it: 0 or -EINVAL. */
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

/* The same of the room for an IPv6 address that the older commands have. */
static int take_old_address(struct sockaddr_storage *a, const struct sockaddr_in6 *six)
{
	const struct sockaddr_storage family = { .ss_family = six->sin6_family };

	return take_address(a, six, rl_addr_len(&family));
}

/* ---- ids ---- */

/* The type of QP that goes with a port space: that of libibverbs, or -EINVAL. */
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

static int create_id(struct request *r)
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
	rv = answer(r, in->response, &resp, sizeof(resp));
	if (rv)
		rl_cm_destroy(id);
	return rv;
}

static int destroy_id(struct request *r)
{
	const struct rdma_ucm_destroy_id *in = &r->in.destroy_id;
	struct rdma_ucm_destroy_id_resp resp;
	struct rl_cmid *id;
	int err;

	id = find(r, in->id, &err);
	if (!id)
		return err;
	resp.events_reported = rl_cm_destroy(id);
	return answer(r, in->response, &resp, sizeof(resp));
}

static int migrate_from(struct request *r, struct rl_file *from)
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
	return answer(r, in->response, &resp, sizeof(resp));
}

/* ---- addresses, routes ---- */

static int bind_id(struct request *r, u32 handle, const struct sockaddr_storage *a)
{
	int err;
	struct rl_cmid *id = find(r, handle, &err);

	return id ? rl_cm_bind(id, a) : err;
}

static int bind_ip(struct request *r)
{
	struct sockaddr_storage a;
	int rv = take_old_address(&a, &r->in.bind_ip.addr);

	return rv ? rv : bind_id(r, r->in.bind_ip.id, &a);
}

static int bind_any_family(struct request *r)
{
	const struct rdma_ucm_bind *in = &r->in.bind;
	struct sockaddr_storage a;
	int rv = in->reserved ? -EINVAL : take_address(&a, &in->addr, in->addr_size);

	return rv ? rv : bind_id(r, in->id, &a);
}

static int resolve(struct request *r, u32 handle, const struct sockaddr_storage *src,
		   const struct sockaddr_storage *dst)
{
	int err;
	struct rl_cmid *id = find(r, handle, &err);

	if (!id)
		return err;
	if (!rl_addr_len(dst))
		return -EAFNOSUPPORT;
	return rl_cm_resolve_addr(id, src, dst);
}

static int resolve_ip(struct request *r)
{
	const struct rdma_ucm_resolve_ip *in = &r->in.resolve_ip;
	struct sockaddr_storage src = { 0 }, dst;
	int rv = take_old_address(&dst, &in->dst_addr);

	if (!rv && in->src_addr.sin6_family)
		rv = take_old_address(&src, &in->src_addr);
	return rv ? rv : resolve(r, in->id, &src, &dst);
}

static int resolve_addr(struct request *r)
{
	const struct rdma_ucm_resolve_addr *in = &r->in.resolve_addr;
	struct sockaddr_storage src = { 0 }, dst;
	int rv = in->reserved ? -EINVAL : take_address(&dst, &in->dst_addr, in->dst_size);

	if (!rv && in->src_size)
		rv = take_address(&src, &in->src_addr, in->src_size);
	return rv ? rv : resolve(r, in->id, &src, &dst);
}

static int resolve_route(struct request *r)
{
	int err;
	struct rl_cmid *id = find(r, r->in.resolve_route.id, &err);

	return id ? rl_cm_resolve_route(id) : err;
}

/* ---- queries ---- */

static u64 guid_of(const struct rl_device *d)
{
	u64 guid;

	memcpy(&guid, d->guid, sizeof(guid));
	return guid;
}

/* iWARP has no path records; of a RoCE device there is one, once the route is known. */
static bool has_path(const struct rl_cmid *id)
{
	return rl_options()->roce && id->dev && id->phase >= RL_CM_ROUTE && id->phase != RL_CM_LISTEN;
}

static int query_route(struct request *r)
{
	const struct rdma_ucm_query *in = &r->in.query;
	struct rdma_ucm_query_route_resp resp = { 0 };
	struct ib_user_path_rec *path = &resp.ib_route[0];
	struct rl_cmid *id;
	int err;

	id = find(r, in->id, &err);
	if (!id)
		return err;
	memcpy(&resp.src_addr, &id->src, sizeof(resp.src_addr));
	memcpy(&resp.dst_addr, &id->dst, sizeof(resp.dst_addr));
	if (id->dev) {
		resp.node_guid = guid_of(id->dev);
		resp.ibdev_index = id->dev->index;
		resp.port_num = RL_PORT;
		path->pkey = rl_options()->roce ? htobe16(WHOLE_PKEY) : 0;
		rl_cm_gids(id, path->sgid, path->dgid);
	}
	if (has_path(id)) {
		resp.num_paths = 1;
		path->reversible = 1;
		path->numb_path = 1;
		path->mtu = rl_device_ib_mtu(id->dev);
		path->hop_limit = RL_HOP_LIMIT;
		path->traffic_class = id->tos;
		path->mtu_selector = path->rate_selector = path->packet_life_time_selector = EXACTLY;
		path->rate = IBV_RATE_10_GBPS;
		path->packet_life_time = LIFE_TIME;
	}
	return answer(r, in->response, &resp, sizeof(resp));
}

static void describe_device(struct rdma_ucm_query_addr_resp *resp, const struct rl_device *d)
{
	if (!d)
		return;
	resp->node_guid = guid_of(d);
	resp->port_num = RL_PORT;
	resp->pkey = htobe16(WHOLE_PKEY);
	resp->ibdev_index = d->index;
}

static int query_addr(struct request *r, const struct rl_cmid *id)
{
	struct rdma_ucm_query_addr_resp resp = { 0 };

	if (r->out < offsetof(struct rdma_ucm_query_addr_resp, ibdev_index))
		return -ENOSPC;
	resp.src_size = rl_addr_len(&id->src);
	resp.dst_size = rl_addr_len(&id->dst);
	memcpy(&resp.src_addr, &id->src, resp.src_size);
	memcpy(&resp.dst_addr, &id->dst, resp.dst_size);
	describe_device(&resp, id->dev);
	return answer(r, r->in.query.response, &resp, sizeof(resp));
}

static void put_path(struct ib_path_rec_data *data, const struct rl_cmid *id)
{
	struct ibv_path_record *p = (struct ibv_path_record *)data->path_rec;

	static_assert(sizeof(data->path_rec) == sizeof(*p), "it is one");
	data->flags = IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL;
	rl_cm_gids(id, p->sgid.raw, p->dgid.raw);
	p->flowlabel_hoplimit = htobe32(RL_HOP_LIMIT);
	p->tclass = id->tos;
	p->reversible_numpath = 1 << 7 | 1;
	p->pkey = htobe16(WHOLE_PKEY);
	p->mtu = EXACTLY << 6 | rl_device_ib_mtu(id->dev);
	p->rate = EXACTLY << 6 | IBV_RATE_10_GBPS;
	p->packetlifetime = EXACTLY << 6 | LIFE_TIME;
}

static int query_path(struct request *r, const struct rl_cmid *id)
{
	struct {
		struct rdma_ucm_query_path_resp resp;
		struct ib_path_rec_data path;
	} out = { 0 };

	if (r->out < sizeof(out.resp))
		return -ENOSPC;
	if (has_path(id) && r->out >= sizeof(out)) {
		out.resp.num_paths = 1;
		put_path(&out.path, id);
	}
	return answer(r, r->in.query.response, &out, sizeof(out));
}

static void name_as_ib(struct sockaddr_ib *ib, const struct rl_cmid *id,
		       const struct sockaddr_storage *a, const u8 *gid)
{
	ib->sib_family = AF_IB;
	ib->sib_pkey = htobe16(WHOLE_PKEY);
	memcpy(&ib->sib_addr, gid, sizeof(ib->sib_addr));
	ib->sib_sid = htobe64((u64)id->ps << 16 | rl_addr_port(a));
	ib->sib_sid_mask = htobe64(UINT64_MAX);
}

static int query_gid(struct request *r, const struct rl_cmid *id)
{
	struct rdma_ucm_query_addr_resp resp = { 0 };
	u8 sgid[RL_GID_LEN], dgid[RL_GID_LEN];

	if (r->out < offsetof(struct rdma_ucm_query_addr_resp, ibdev_index))
		return -ENOSPC;
	rl_cm_gids(id, sgid, dgid);
	resp.src_size = sizeof(struct sockaddr_ib);
	resp.dst_size = sizeof(struct sockaddr_ib);
	name_as_ib((struct sockaddr_ib *)&resp.src_addr, id, &id->src, sgid);
	name_as_ib((struct sockaddr_ib *)&resp.dst_addr, id, &id->dst, dgid);
	describe_device(&resp, id->dev);
	return answer(r, r->in.query.response, &resp, sizeof(resp));
}

static int query(struct request *r)
{
	int err;
	struct rl_cmid *id = find(r, r->in.query.id, &err);

	if (!id)
		return err;
	switch (r->in.query.option) {
	case RDMA_USER_CM_QUERY_ADDR:
		return query_addr(r, id);
	case RDMA_USER_CM_QUERY_PATH:
		return query_path(r, id);
	case RDMA_USER_CM_QUERY_GID:
		return query_gid(r, id);
	default:
		return -ENOSYS;
	}
}

/*
 * What librdmacm, or the program, modifies its QP by. It decides nothing: the connection makes a QP
 * able to receive and to send, and before one a QP gets no rights. An RNIC's is as the kernel's iw_cm
 * has it.
 */
static int init_rnic_attr(const struct rl_cmid *id, u32 state, struct ib_uverbs_qp_attr *a)
{
	a->qp_attr_mask = IBV_QP_PORT;
	if (id->phase < RL_CM_CONNECT) {
		a->qp_attr_mask |= IBV_QP_STATE | IBV_QP_ACCESS_FLAGS;
	} else if (state == IBV_QPS_INIT || state == IBV_QPS_RTR) {
		a->qp_attr_mask |= IBV_QP_STATE | IBV_QP_ACCESS_FLAGS;
		a->qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	} else if (state != IBV_QPS_RTS) {
		return -EINVAL;
	}
	return 0;
}

/*
 * A RoCE device's QP goes through the states of one that is connected by hand. That it is not is
 * told by dest_qp_num 0, which is no QP's. Once it is connected there is nothing to modify.
 */
static int init_roce_attr(const struct rl_cmid *id, u32 state, struct ib_uverbs_qp_attr *a)
{
	a->qp_attr_mask = IBV_QP_PORT;
	a->path_mtu = rl_device_ib_mtu(id->dev);
	a->max_rd_atomic = RL_MAX_ORD;
	a->max_dest_rd_atomic = RL_MAX_IRD;
	a->qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	rl_cm_put_path(id, &a->ah_attr);
	if (id->phase == RL_CM_CONNECT || id->phase == RL_CM_ANSWERED)
		return 0;
	if (state == IBV_QPS_INIT) {
		a->qp_attr_mask |= IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS;
		if (id->phase < RL_CM_CONNECT)
			a->qp_access_flags = 0;
	} else if (state == IBV_QPS_RTR) {
		a->qp_attr_mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	} else if (state != IBV_QPS_RTS) {
		return -EINVAL;
	}
	return 0;
}

/* Of datagrams: the program moves its QP on itself. */
static int init_ud_attr(struct ib_uverbs_qp_attr *a)
{
	a->qp_attr_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
	a->qkey = RL_CM_QKEY;
	return 0;
}

static int init_qp_attr(struct request *r)
{
	const struct rdma_ucm_init_qp_attr *in = &r->in.init_qp_attr;
	struct ib_uverbs_qp_attr resp = { .qp_state = in->qp_state, .port_num = RL_PORT };
	struct rl_cmid *id;
	int err;

	id = find(r, in->id, &err);
	if (!id)
		return err;
	if (!id->dev || in->qp_state > IBV_QPS_ERR)
		return -EINVAL;
	if (id->qp_type == IBV_QPT_UD)
		err = init_ud_attr(&resp);
	else
		err = rl_options()->roce ? init_roce_attr(id, in->qp_state, &resp) :
					   init_rnic_attr(id, in->qp_state, &resp);
	return err ? err : answer(r, in->response, &resp, sizeof(resp));
}

/* ---- connections ---- */

static int connect_id(struct request *r)
{
	const struct rdma_ucm_connect *in = &r->in.connect;
	struct rl_cmid *id;
	int err;

	if (!in->conn_param.valid)
		return -EINVAL;
	id = find(r, in->id, &err);
	return id ? rl_cm_connect(id, &in->conn_param) : err;
}

static int listen_id(struct request *r)
{
	int err;
	struct rl_cmid *id = find(r, r->in.listen.id, &err);

	return id ? rl_cm_listen(id, r->in.listen.backlog) : err;
}

static int accept_id(struct request *r)
{
	const struct rdma_ucm_accept *in = &r->in.accept;
	int err;
	struct rl_cmid *id = find(r, in->id, &err);

	return id ? rl_cm_accept(id, in->uid, &in->conn_param) : err;
}

static int reject_id(struct request *r)
{
	/* By the program; by its vendor's options. */
	enum { UNSAID = 0, BY_CONSUMER = 28, BY_VENDOR = 35 };
	const struct rdma_ucm_reject *in = &r->in.reject;
	struct rl_cmid *id;
	int err;

	if (in->reason != UNSAID && in->reason != BY_CONSUMER && in->reason != BY_VENDOR)
		return -EINVAL;
	id = find(r, in->id, &err);
	return id ? rl_cm_reject(id, in->private_data, in->private_data_len) : err;
}

static int disconnect_id(struct request *r)
{
	int err;
	struct rl_cmid *id = find(r, r->in.disconnect.id, &err);

	return id ? rl_cm_disconnect(id) : err;
}

/* iWARP connects without the program's help: there is nothing to tell. */
static int notify(struct request *r)
{
	int err;
	struct rl_cmid *id = find(r, r->in.notify.id, &err);

	if (!id)
		return err;
	return id->dev && id->phase >= RL_CM_CONNECT ? 0 : -EINVAL;
}

/* ---- multicast ---- */

static int join_group(struct request *r, u32 handle, u64 uid, u64 response,
		      const struct sockaddr_storage *group)
{
	struct rdma_ucm_create_id_resp resp;
	struct rl_cmid *id;
	u32 reported;
	int rv;

	id = find(r, handle, &rv);
	if (!id)
		return rv;
	rv = rl_join_begin(id, uid, group, &resp.id);
	if (rv)
		return rv;
	rv = answer(r, response, &resp, sizeof(resp));
	if (rv)
		rl_join_end(r->f->chan, resp.id, &reported);
	return rv;
}

static int join_ip_mcast(struct request *r)
{
	const struct rdma_ucm_join_ip_mcast *in = &r->in.join_ip_mcast;
	struct sockaddr_storage a;
	int rv = take_old_address(&a, &in->addr);

	return rv ? rv : join_group(r, in->id, in->uid, in->response, &a);
}

/* Who only sends is told the same: to be in a group is another matter. */
static int join_mcast(struct request *r)
{
	const struct rdma_ucm_join_mcast *in = &r->in.join_mcast;
	struct sockaddr_storage a;
	int rv = in->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED ? -EINVAL :
		 take_address(&a, &in->addr, in->addr_size);

	return rv ? rv : join_group(r, in->id, in->uid, in->response, &a);
}

static int leave_mcast(struct request *r)
{
	const struct rdma_ucm_destroy_id *in = &r->in.destroy_id;
	struct rdma_ucm_destroy_id_resp resp;
	int rv = rl_join_end(r->f->chan, in->id, &resp.events_reported);

	return rv ? rv : answer(r, in->response, &resp, sizeof(resp));
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
		/* TCP has its own time-outs. */
		return id->qp_type == IBV_QPT_RC ? 0 : -EINVAL;
	}
}

static int set_option(struct request *r)
{
	const struct rdma_ucm_set_option *in = &r->in.set_option;
	int err;
	struct rl_cmid *id = find(r, in->id, &err);

	if (!id)
		return err;
	if (in->level == RDMA_OPTION_ID)
		return set_id_option(id, in);
	if (in->level == RDMA_OPTION_IB && in->optname == RDMA_OPTION_IB_PATH)
		return -EINVAL;
	return -ENOSYS;
}

/* ---- without rdma_cm's lock ---- */

static int get_event(struct request *r)
{
	struct rdma_ucm_event_resp resp;
	int rv = rl_cmid_take_event(r->f->chan, &resp);

	return rv ? rv : answer(r, r->in.get_event.response, &resp, sizeof(resp));
}

/* The file that the id comes from may be let go by this: not with the lock. */
static int migrate_id(struct request *r)
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
	int (*run)(struct request *r);	/* NULL: there is no such command */
	u16 in, out;			/* octets at least */
	bool alone;			/* without rdma_cm's lock */
};

#define IN(type) .in = sizeof(struct rdma_ucm_##type)
/* What newer libraries have behind it may be missing. */
#define IN_TO(type, last) .in = offsetof(struct rdma_ucm_##type, last) + \
				sizeof(((struct rdma_ucm_##type *)0)->last)
#define OUT(type) .out = sizeof(struct rdma_ucm_##type)
#define OUT_BEFORE(type, first) .out = offsetof(struct rdma_ucm_##type, first)

static const struct command commands[] = {
	[RDMA_USER_CM_CMD_CREATE_ID] = { create_id, IN(create_id), OUT(create_id_resp) },
	[RDMA_USER_CM_CMD_DESTROY_ID] = { destroy_id, IN(destroy_id), OUT(destroy_id_resp) },
	[RDMA_USER_CM_CMD_BIND_IP] = { bind_ip, IN_TO(bind_ip, id) },
	[RDMA_USER_CM_CMD_RESOLVE_IP] = { resolve_ip, IN(resolve_ip) },
	[RDMA_USER_CM_CMD_RESOLVE_ROUTE] = { resolve_route, IN(resolve_route) },
	[RDMA_USER_CM_CMD_QUERY_ROUTE] = { query_route, IN_TO(query, id),
					   OUT_BEFORE(query_route_resp, ibdev_index) },
	[RDMA_USER_CM_CMD_CONNECT] = { connect_id, IN_TO(connect, reserved) },
	[RDMA_USER_CM_CMD_LISTEN] = { listen_id, IN(listen) },
	[RDMA_USER_CM_CMD_ACCEPT] = { accept_id, IN_TO(accept, reserved) },
	[RDMA_USER_CM_CMD_REJECT] = { reject_id, IN(reject) },
	[RDMA_USER_CM_CMD_DISCONNECT] = { disconnect_id, IN(disconnect) },
	[RDMA_USER_CM_CMD_INIT_QP_ATTR] = { init_qp_attr, IN(init_qp_attr),
					    .out = sizeof(struct ib_uverbs_qp_attr) },
	[RDMA_USER_CM_CMD_GET_EVENT] = { get_event, IN(get_event),
					 OUT_BEFORE(event_resp, reserved), .alone = true },
	[RDMA_USER_CM_CMD_SET_OPTION] = { set_option, IN(set_option) },
	[RDMA_USER_CM_CMD_NOTIFY] = { notify, IN(notify) },
	[RDMA_USER_CM_CMD_JOIN_IP_MCAST] = { join_ip_mcast, IN_TO(join_ip_mcast, id),
					     OUT(create_id_resp) },
	[RDMA_USER_CM_CMD_LEAVE_MCAST] = { leave_mcast, IN(destroy_id), OUT(destroy_id_resp) },
	[RDMA_USER_CM_CMD_MIGRATE_ID] = { migrate_id, IN(migrate_id), OUT(migrate_resp),
					  .alone = true },
	[RDMA_USER_CM_CMD_QUERY] = { query, IN(query) },
	[RDMA_USER_CM_CMD_BIND] = { bind_any_family, IN(bind) },
	[RDMA_USER_CM_CMD_RESOLVE_ADDR] = { resolve_addr, IN(resolve_addr) },
	[RDMA_USER_CM_CMD_JOIN_MCAST] = { join_mcast, IN(join_mcast), OUT(create_id_resp) },
};

static int run(const struct command *cmd, struct request *r)
{
	int rv;

	if (cmd->alone)
		return cmd->run(r);
	rl_cm_lock();
	rv = cmd->run(r);
	rl_cm_unlock();
	return rv;
}

static ssize_t ucm_write(struct rl_file *f, int fd, const void *buf, size_t len)
{
	struct request r = { .f = ucm_file_of(f) };
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
	rv = run(cmd, &r);
	return rv ? rv : (ssize_t)len;
}

/* Events are asked for by a command. */
static ssize_t ucm_read(struct rl_file *f, int fd, void *buf, size_t len)
{
	return -EINVAL;
}

static void ucm_release(struct rl_file *f)
{
	struct ucm_file *u = ucm_file_of(f);
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
	struct ucm_file *f = calloc(1, sizeof(*f));
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
