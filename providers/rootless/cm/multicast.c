// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Multicast by rdma_cm. InfiniBand asks a manager for a group. Here a group is an IP address, and a
 * join returns the address handle, the QP number and the qkey that all senders to the group use. A
 * QP enters the group by attach_mcast, which librdmacm calls.
 */
#include <infiniband/ib.h>
#include <stdlib.h>

#include <infiniband/verbs.h>

#include "sidr.h"
#include "late_events.h"
#include "ud.h"
#include "process/options.h"
#include "roce/ud.h"

struct rl_join {
	struct list_head of_all, of_id;
	struct rl_cmid *id;
	struct rl_cm_part part;
};

/* rdma_cm's lock. */
static struct {
	struct list_head joins;
	u32 handle;			/* the last one given */
} all = { .joins = LIST_HEAD_INIT(all.joins) };

static struct rl_join *join_find(u32 handle)
{
	struct rl_join *j;

	list_for_each_entry(j, &all.joins, of_all)
		if (j->part.handle == handle)
			return j;
	return NULL;
}

static u32 new_handle(void)
{
	do
		all.handle++;
	while (join_find(all.handle));
	return all.handle;
}

/* The number of events that the program has read. */
static u32 join_end(struct rl_join *j)
{
	u32 reported = rl_cmid_drop_part(j->id, &j->part);

	list_del(&j->of_all);
	list_del(&j->of_id);
	free(j);
	return reported;
}

/* ---- joining ---- */

static int join_check(const struct rl_cmid *id)
{
	if (!id->dev)
		return -ENODEV;
	/* An RNIC has no multicast. */
	if (!rl_options()->roce)
		return -EOPNOTSUPP;
	if (id->qp_type != IBV_QPT_UD || (id->phase != RL_CM_BOUND && id->phase != RL_CM_ADDR))
		return -EINVAL;
	return 0;
}

static void gid_of_group(const struct sockaddr_storage *a, u8 gid[RL_GID_LEN])
{
	if (a->ss_family == AF_IB)
		memcpy(gid, &((const struct sockaddr_ib *)a)->sib_addr, RL_GID_LEN);
	else
		rl_gid_of_address(a, gid);
}

static int report_path(struct rl_join *j, const u8 gid[RL_GID_LEN])
{
	struct rdma_ucm_ud_param ud = { .qp_num = RL_GROUP_QPN, .qkey = RL_CM_QKEY };
	const struct rl_cm_event_data w = { .event = RL_CM_MULTICAST_JOIN, .ud = &ud };

	rl_cm_put_path(j->id, &ud.ah_attr);
	memcpy(ud.ah_attr.grh.dgid, gid, sizeof(ud.ah_attr.grh.dgid));
	return rl_cmid_report_part(j->id, &j->part, &w);
}

int rl_join_begin(struct rl_cmid *id, u64 uid, const struct sockaddr_storage *a, u32 *handle)
{
	u8 gid[RL_GID_LEN];
	struct rl_join *j;
	int rv = join_check(id);

	if (rv)
		return rv;
	gid_of_group(a, gid);
	if (!rl_gid_is_group(gid))
		return -EINVAL;
	j = calloc(1, sizeof(*j));
	if (!j)
		return -ENOMEM;
	j->id = id;
	j->part.uid = uid;
	j->part.handle = new_handle();
	list_add(&j->of_all, &all.joins);
	list_add(&j->of_id, &id->joins);
	rv = report_path(j, gid);
	if (rv)
		join_end(j);
	else
		*handle = j->part.handle;
	return rv;
}

/* ---- leaving ---- */

int rl_join_end(struct rl_chan *chan, u32 handle, u32 *reported)
{
	struct rl_join *j = join_find(handle);
	int err;

	if (!j)
		return -ENOENT;
	if (!rl_cmid_find(chan, j->id->handle, &err))
		return err;
	*reported = join_end(j);
	return 0;
}

void rl_joins_end(struct rl_cmid *id)
{
	struct rl_join *j, *after;

	list_for_each_entry_safe(j, after, &id->joins, of_id)
		join_end(j);
}

void rl_joins_move_events(struct rl_cmid *id, struct rl_chan *from, struct rl_chan *to)
{
	struct rl_join *j;

	list_for_each_entry(j, &id->joins, of_id)
		rl_late_event_move(from, to, &j->part);
}
