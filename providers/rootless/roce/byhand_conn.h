/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The connections of QPs connected by hand; roce/byhand.h decides. The lower end connects to the
 * port that the peer's QP number names (roce/port_group.h); the other end accepts. A connection is
 * a struct rl_conn whose ULP is the QP (rl_byhand_ulp).
 */
#ifndef RL_BYHAND_CONN_H
#define RL_BYHAND_CONN_H

#include "host/conn.h"
#include "byhand.h"

struct rl_byhand_qp;

/* modify_qp's attributes for RTR. */
struct rl_byhand_path {
	u8 type;			/* IBV_QPT_ */
	u8 own_gid[16], peer_gid[16];
	u32 peer_qpn, rq_psn;
	u8 traffic_class;
	u32 ird;
	u8 min_rnr_timer;
};

/* modify_qp's attributes for RTS. */
struct rl_byhand_send_attr {
	u32 sq_psn;
	u8 timeout, retry_cnt, rnr_retry;
	u32 ord;
};

/* INIT -> RTR: 0 or -ENOMEM. Context's lock, as for the others. */
int rl_byhand_qp_rtr(struct rl_qp *qp, const struct rl_byhand_path *path);
/* RTR -> RTS. */
void rl_byhand_qp_rts(struct rl_qp *qp, const struct rl_byhand_send_attr *s);
/* RTS or SQD -> SQD, whose attributes may have changed. */
void rl_byhand_qp_sqd(struct rl_qp *qp, const struct rl_byhand_send_attr *s);
/* ERR or RESET: makes no new connection. The caller ends the present one. */
void rl_byhand_qp_stop(struct rl_qp *qp);
/* It is being destroyed, after its connection. */
void rl_byhand_qp_destroy(struct rl_qp *qp);

/* A doorbell while the core is in IDLE. Without the QP's lock. */
void rl_byhand_qp_posted(struct rl_qp *qp);

extern const struct rl_conn_ulp rl_byhand_ulp;

#endif
