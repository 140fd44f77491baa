/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Commands of rdma_cm, as ucm.c decodes them. */
#ifndef RL_UCM_REQUEST_H
#define RL_UCM_REQUEST_H

#include "id.h"
#include "process/file.h"
#include "process/guard.h"

struct rl_ucm_file {
	struct rl_file file;
	struct rl_chan *chan;
};

/* A command: its input, and where its answer goes. */
struct rl_ucm_request {
	struct rl_ucm_file *f;
	u16 out;			/* octets of room for the answer */
	int fault;			/* 0, or -errno for the command's event to report */
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

/* Older programs have room for part of the answer. */
static inline int rl_ucm_answer(const struct rl_ucm_request *r, u64 where, const void *p,
				size_t len)
{
	size_t room = min_t(size_t, len, r->out);

	return rl_guard_copy((void *)(uintptr_t)where, p, room) ? 0 : -EFAULT;
}

static inline struct rl_cmid *rl_ucm_find(const struct rl_ucm_request *r, u32 handle, int *err)
{
	return rl_cmid_find(r->f->chan, handle, err);
}

/* Each: 0 or -errno. rdma_cm's lock. */
int rl_ucm_query_route(struct rl_ucm_request *r);
int rl_ucm_query(struct rl_ucm_request *r);
int rl_ucm_init_qp_attr(struct rl_ucm_request *r);

#endif
