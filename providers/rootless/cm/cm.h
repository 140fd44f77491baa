/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * rdma_cm's ids, as the kernel has them: addresses, listeners, connections, and what a program
 * is told of them. ucm.c decodes the commands of /dev/infiniband/rdma_cm for this file.
 *
 * What conn.c tells is told with the connection's lock held: none of these functions takes
 * rdma_cm's lock, or lets the connection's go.
 */
#ifndef RL_CM_H
#define RL_CM_H

#include "host/conn.h"

/* The functions below. */
extern const struct rl_conn_ulp rl_cm_ulp;

/* The initiator's start-up has failed: link.status says why. The id is told no more. */
void rl_cm_tell_failed(struct rl_conn *c);
/* The initiator is in Full Operation: link.offer has the peer's private data, and is free()d. */
void rl_cm_tell_connected(struct rl_conn *c);
/*
 * The initiator is to begin anew by revision 1: a new connection takes c's place
 * (weft_link_succeed()), with c's id and QP.
 */
void rl_cm_reconnect(struct rl_conn *c);
/* A Request has come, on a connection that a listener accepted. */
void rl_cm_tell_request(struct rl_conn *c);
/* The connection is over: the id is told, and then no more. */
void rl_cm_tell_ended(struct rl_conn *c);
/* Nothing more is said or awaited; c->user may still be there, if a Request was not answered. */
void rl_cm_tell_dead(struct rl_conn *c);

#endif
