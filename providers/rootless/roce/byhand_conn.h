/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * QPs connected by hand, carried out: roce/byhand.h decides. The lower end connects to the port that the
 * peer's QP number names (roce/port_group.h), the other end awaits that. A connection is a struct rl_conn as
 * rdma_cm's are; it tells its QP (rl_byhand_ulp).
 */
#ifndef RL_BYHAND_CONN_H
#define RL_BYHAND_CONN_H

#include "host/conn.h"
#include "byhand.h"

struct rl_byhand_qp;

/* What modify_qp has said of the ends and of the path. */
struct rl_byhand_path {
	u8 type;			/* IBV_QPT_ */
	u8 own_gid[16], peer_gid[16];
	u32 peer_qpn, rq_psn;
	u8 traffic_class;
	u32 ird;
	u8 min_rnr_timer;
};

/* The same of what is sent. */
struct rl_byhand_send_attr {
	u32 sq_psn;
	u8 timeout, retry_cnt, rnr_retry;
	u32 ord;
};

/* INIT -> RTR: 0 or -ENOMEM. Context's lock, as of the others. */
int rl_byhand_qp_rtr(struct rl_qp *qp, const struct rl_byhand_path *path);
/* RTR -> RTS. */
void rl_byhand_qp_rts(struct rl_qp *qp, const struct rl_byhand_send_attr *s);
/* Into error, or RESET: it is connected no more, and its connection, if there is one, is the caller's. */
void rl_byhand_qp_stop(struct rl_qp *qp);
/* It is destroyed; behind its connection. */
void rl_byhand_qp_destroy(struct rl_qp *qp);

/* A doorbell rang, and the core is in IDLE. Without the QP's lock. */
void rl_byhand_qp_posted(struct rl_qp *qp);

extern const struct rl_conn_ulp rl_byhand_ulp;

#endif
