// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The path from an id to its peer. */
#include "id.h"
#include "process/options.h"

void rl_cm_gids(const struct rl_cmid *id, u8 sgid[RL_GID_LEN], u8 dgid[RL_GID_LEN])
{
	memset(sgid, 0, RL_GID_LEN);
	memset(dgid, 0, RL_GID_LEN);
	/* An RNIC's peers have no GIDs. */
	if (id->dev && !rl_options()->roce)
		rl_device_gid(id->dev, 0, sgid);
	if (!rl_options()->roce)
		return;
	rl_gid_of_address(&id->src, sgid);
	rl_gid_of_address(&id->dst, dgid);
}

void rl_cm_put_path(const struct rl_cmid *id, struct ib_uverbs_ah_attr *ah)
{
	u8 sgid[RL_GID_LEN];

	rl_cm_gids(id, sgid, ah->grh.dgid);
	ah->grh.sgid_index = (u8)rl_device_gid_index(id->dev, sgid);
	ah->grh.hop_limit = RL_HOP_LIMIT;
	ah->grh.traffic_class = id->tos;
	ah->is_global = 1;
	ah->port_num = RL_PORT;
}
