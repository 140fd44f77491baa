// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Address handles, which the kernel does not have: a datagram's request carries the address.
 * Multicast.
 */
#include <errno.h>
#include <stdlib.h>

#include "weft.h"

/* An errno value. */
static int check_ah_attr(struct ibv_context *ctx, const struct ibv_ah_attr *attr)
{
	union ibv_gid gid;

	if (!(to_weft_ctx(ctx)->features & WEFT_FEATURE_ROCE_TYPES))
		return EOPNOTSUPP;
	/* A peer is addressed by its GID; there are no LIDs. */
	if (!attr->is_global)
		return EINVAL;
	return ibv_query_gid(ctx, attr->port_num, attr->grh.sgid_index, &gid) ? EINVAL : 0;
}

struct ibv_ah *weft_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	int err = check_ah_attr(pd->context, attr);
	struct weft_ah *ah;

	if (err) {
		errno = err;
		return NULL;
	}
	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return NULL;
	memcpy(ah->to.dgid, &attr->grh.dgid, sizeof(ah->to.dgid));
	ah->to.sgid_index = attr->grh.sgid_index;
	ah->to.hop_limit = attr->grh.hop_limit;
	ah->to.traffic_class = attr->grh.traffic_class;
	return &ah->ah;
}

int weft_destroy_ah(struct ibv_ah *ah)
{
	free(container_of(ah, struct weft_ah, ah));
	return 0;
}

static bool has_datagrams(const struct ibv_qp *ibqp)
{
	return to_weft_ctx(ibqp->context)->features & WEFT_FEATURE_ROCE_TYPES;
}

int weft_attach_mcast(struct ibv_qp *ibqp, const union ibv_gid *gid, uint16_t lid)
{
	return has_datagrams(ibqp) ? ibv_cmd_attach_mcast(ibqp, gid, lid) : EOPNOTSUPP;
}

int weft_detach_mcast(struct ibv_qp *ibqp, const union ibv_gid *gid, uint16_t lid)
{
	return has_datagrams(ibqp) ? ibv_cmd_detach_mcast(ibqp, gid, lid) : EOPNOTSUPP;
}
