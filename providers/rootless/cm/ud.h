/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * rdma_cm's ids of datagrams (RDMA_PS_UDP) of RoCE devices. Their ports are UDP's: a bound id has a
 * UDP socket, whatever uses the same number at TCP. To connect an id is to ask a peer's port for
 * the QP behind it (cm/sidr.h). This creates no connection, and its end is not reported.
 *
 * Files: cm/sidr_client.c, cm/sidr_server.c, cm/sidr.c (the messages), cm/multicast.c (multicast).
 *
 * All with rdma_cm's lock, which the progress thread takes here, too.
 */
#ifndef RL_CM_UD_H
#define RL_CM_UD_H

#include "id.h"

/*
 * @id asks its peer, from its socket: 0 or -errno. The result is an event: ESTABLISHED, or
 * UNREACHABLE with -ETIMEDOUT, one of enum rl_sidr_status, or @fault, without a question (0: none).
 */
int rl_sidr_client_begin(struct rl_cmid *id, const struct rdma_ucm_conn_param *p, int fault);
/* @id stops asking. */
void rl_sidr_client_end(struct rl_cmid *id);

/*
 * SIDR requests to @id's socket become requests of its program, at most @backlog unseen: 0 or
 * -errno.
 */
int rl_sidr_server_open(struct rl_cmid *id, u32 backlog);
/*
 * Stops listening. Requests that the program has seen may still be answered, and keep the port
 * until then.
 */
void rl_sidr_server_close(struct rl_cmid *id);
/* Unseen requests move to the channel of the listener @id. Table's lock, too. */
void rl_sidr_server_move_requests(struct rl_cmid *id, struct rl_chan *to);

/* Answers @child, a SIDR request; the peer gets the same reply as often as it asks. */
int rl_sidr_server_accept(struct rl_cmid *child, u64 uid, const struct rdma_ucm_conn_param *p);
int rl_sidr_server_reject(struct rl_cmid *child, const void *pd, u32 pd_len);

/*
 * Joins the group @a, an IPv4, IPv6 or InfiniBand address: an event has the path to the group, and
 * *@handle names the join. The QP enters the group by attach_mcast (ud.h). 0 or -errno.
 */
int rl_join_begin(struct rl_cmid *id, u64 uid, const struct sockaddr_storage *a, u32 *handle);
/* Ends the join @handle of @chan; *@reported: events that the program has read. 0 or -errno. */
int rl_join_end(struct rl_chan *chan, u32 handle, u32 *reported);
/* Ends all joins of @id. */
void rl_joins_end(struct rl_cmid *id);
/* Queued events of @id's joins move to another channel. Table's lock, too. */
void rl_joins_move_events(struct rl_cmid *id, struct rl_chan *from, struct rl_chan *to);

#endif
