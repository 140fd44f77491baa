// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Resolves a peer's address to a device and a source address. */
#include "id.h"
#include "process/raw.h"

/*
 * The source address that the kernel would use to send to @dst. Connecting a UDP socket sends
 * nothing.
 */
static int ask_route(const struct sockaddr_storage *src, const struct sockaddr_storage *dst,
		     struct sockaddr_storage *local)
{
	int fd = rl_raw(SYS_socket, dst->ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0), rv = 0;
	struct sockaddr_storage own = *src;
	socklen_t len = sizeof(*local);

	if (fd < 0)
		return fd;
	if (own.ss_family && !rl_addr_is_any(&own)) {
		rl_addr_set_port(&own, 0);
		rv = rl_raw(SYS_bind, fd, &own, rl_addr_len(&own));
	}
	if (!rv)
		rv = rl_raw(SYS_connect, fd, dst, rl_addr_len(dst));
	memset(local, 0, sizeof(*local));
	if (!rv)
		rv = rl_raw(SYS_getsockname, fd, local, &len);
	rl_raw(SYS_close, fd);
	return rv;
}

static int resolve_peer(struct rl_cmid *id)
{
	struct sockaddr_storage local;
	const struct rl_device *dev;
	int rv;

	if (!rl_cm_is_served(id))
		return -ENODEV;
	/* A group is reached by the netdev that the id is bound to, whatever the routes. */
	if (rl_cmid_is_ud(id) && id->dev && rl_addr_is_group(&id->dst))
		return 0;
	rv = ask_route(&id->src, &id->dst, &local);
	if (rv)
		return rv;
	dev = rl_device_of_address((const struct sockaddr *)&local);
	if (!dev)
		return -ENODEV;
	id->dev = dev;
	return rl_cm_take_source(id, &local);
}

/* The source of a bound id does not change. */
static int bind_for_resolving(struct rl_cmid *id, const struct sockaddr_storage *src,
			      const struct sockaddr_storage *dst)
{
	if (id->phase != RL_CM_IDLE && id->phase != RL_CM_BOUND)
		return -EINVAL;
	if (id->phase == RL_CM_IDLE && src->ss_family && rl_cm_is_served(id)) {
		int rv = rl_cm_bind(id, src);

		if (rv)
			return rv;
	}
	return id->phase == RL_CM_BOUND && id->src.ss_family != dst->ss_family ? -EINVAL : 0;
}

int rl_cm_resolve_addr(struct rl_cmid *id, const struct sockaddr_storage *src,
		       const struct sockaddr_storage *dst, int fault)
{
	struct rl_cm_event_data w = { .event = RL_CM_ADDR_RESOLVED };
	int rv = bind_for_resolving(id, src, dst);

	if (rv)
		return rv;
	id->dst = *dst;
	w.status = fault ? fault : resolve_peer(id);
	if (w.status)
		w.event = RL_CM_ADDR_ERROR;
	else
		id->phase = RL_CM_ADDR;
	return rl_cmid_report(id, &w);
}

int rl_cm_resolve_route(struct rl_cmid *id, int fault)
{
	const struct rl_cm_event_data w = {
		.event = fault ? RL_CM_ROUTE_ERROR : RL_CM_ROUTE_RESOLVED, .status = fault,
	};

	if (id->phase != RL_CM_ADDR)
		return -EINVAL;
	if (!fault)
		id->phase = RL_CM_ROUTE;
	return rl_cmid_report(id, &w);
}
