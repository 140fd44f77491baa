/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * rdma_cm's ids of datagrams (RDMA_PS_UDP) of RoCE devices. Their ports are UDP's: an id that is bound has a
 * UDP socket, beside whatever has the same number at TCP. To connect one is to ask a peer's port which QP
 * is behind it (cm/sidr.h). Nothing is connected by that, and nobody says when it is over.
 *
 * Files: cm/sidr_client.c (who asks), cm/sidr_server.c (who is asked), cm/sidr.c (what they say), cm/multicast.c (multicast).
 *
 * All with rdma_cm's lock, which the progress thread takes here, too.
 */
#ifndef RL_CM_UD_H
#define RL_CM_UD_H

#include "id.h"

/*
 * @id asks its peer, from its socket: 0 or -errno. The program is told what became of it: ESTABLISHED, or
 * UNREACHABLE with -ETIMEDOUT or one of enum rl_sidr_status.
 */
int rl_sidr_client_begin(struct rl_cmid *id, const struct rdma_ucm_conn_param *p);
/* @id, which asks, does so no more. */
void rl_sidr_client_end(struct rl_cmid *id);

/* Questions that come to @id's socket are requests of its program's, @backlog at a time: 0 or -errno. */
int rl_sidr_server_open(struct rl_cmid *id, u32 backlog);
/* And no more. Those that the program has may be answered still, and the port is taken until then. */
void rl_sidr_server_close(struct rl_cmid *id);
/* Those that wait for the program change to the channel of @id, which listens. Table's lock, too. */
void rl_sidr_server_move_requests(struct rl_cmid *id, struct rl_chan *to);

/* @child is a request of a desk's: it is answered now, and its peer told as often as it asks. */
int rl_sidr_server_accept(struct rl_cmid *child, u64 uid, const struct rdma_ucm_conn_param *p);
int rl_sidr_server_reject(struct rl_cmid *child, const void *pd, u32 pd_len);

/*
 * @id's program is told how to send to the group @a, an IPv4, IPv6 or InfiniBand address, and gets a handle
 * for that; its QP enters the group by attach_mcast (ud.h). 0 or -errno.
 */
int rl_join_begin(struct rl_cmid *id, u64 uid, const struct sockaddr_storage *a, u32 *handle);
/* Handle of @chan's: *@reported: the events that the program took. 0 or -errno. */
int rl_join_end(struct rl_chan *chan, u32 handle, u32 *reported);
/* All of @id's. */
void rl_joins_end(struct rl_cmid *id);
/* What waits of @id's joins changes to another channel. Table's lock, too. */
void rl_joins_move_events(struct rl_cmid *id, struct rl_chan *from, struct rl_chan *to);

#endif
