// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Queries of an id: addresses, GIDs and the path to the peer. */
#include <endian.h>
#include <infiniband/ib.h>
#include <infiniband/sa.h>
#include <infiniband/verbs.h>

#include "process/options.h"
#include "ucm_request.h"

/* Ethernet has only the default partition. */
#define WHOLE_PKEY 0xffff
/* Of path records: a selector, and 4.096 us << 18, as in the kernel. */
#define EXACTLY 2
#define LIFE_TIME 18

static u64 guid_of(const struct rl_device *d)
{
	u64 guid;

	memcpy(&guid, d->guid, sizeof(guid));
	return guid;
}

static u8 rate_of(const struct rl_device *d)
{
	struct rl_port_state s;

	rl_device_read_port(d, &s);
	return rl_rate_number(&s.rate);
}

/* iWARP has no path records; a RoCE device has one, once the route is known. */
static bool has_path(const struct rl_cmid *id)
{
	return rl_options()->roce && id->dev && id->phase >= RL_CM_ROUTE &&
	       id->phase != RL_CM_LISTEN;
}

int rl_ucm_query_route(struct rl_ucm_request *r)
{
	const struct rdma_ucm_query *in = &r->in.query;
	struct rdma_ucm_query_route_resp resp = { 0 };
	struct ib_user_path_rec *path = &resp.ib_route[0];
	struct rl_cmid *id;
	int err;

	id = rl_ucm_find(r, in->id, &err);
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
		path->mtu_selector = EXACTLY;
		path->rate_selector = EXACTLY;
		path->packet_life_time_selector = EXACTLY;
		path->rate = rate_of(id->dev);
		path->packet_life_time = LIFE_TIME;
	}
	return rl_ucm_answer(r, in->response, &resp, sizeof(resp));
}

static void query_put_device(struct rdma_ucm_query_addr_resp *resp, const struct rl_device *d)
{
	if (!d)
		return;
	resp->node_guid = guid_of(d);
	resp->port_num = RL_PORT;
	resp->pkey = htobe16(WHOLE_PKEY);
	resp->ibdev_index = d->index;
}

static int query_addr(struct rl_ucm_request *r, const struct rl_cmid *id)
{
	struct rdma_ucm_query_addr_resp resp = { 0 };

	if (r->out < offsetof(struct rdma_ucm_query_addr_resp, ibdev_index))
		return -ENOSPC;
	resp.src_size = rl_addr_len(&id->src);
	resp.dst_size = rl_addr_len(&id->dst);
	memcpy(&resp.src_addr, &id->src, resp.src_size);
	memcpy(&resp.dst_addr, &id->dst, resp.dst_size);
	query_put_device(&resp, id->dev);
	return rl_ucm_answer(r, r->in.query.response, &resp, sizeof(resp));
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
	p->rate = (u8)(EXACTLY << 6 | rate_of(id->dev));
	p->packetlifetime = EXACTLY << 6 | LIFE_TIME;
}

static int query_path(struct rl_ucm_request *r, const struct rl_cmid *id)
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
	return rl_ucm_answer(r, r->in.query.response, &out, sizeof(out));
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

static int query_gid(struct rl_ucm_request *r, const struct rl_cmid *id)
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
	query_put_device(&resp, id->dev);
	return rl_ucm_answer(r, r->in.query.response, &resp, sizeof(resp));
}

int rl_ucm_query(struct rl_ucm_request *r)
{
	int err;
	struct rl_cmid *id = rl_ucm_find(r, r->in.query.id, &err);

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
