/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * rdma_cm's ids, between ucm.c, which decodes commands, and those who carry them out.
 *
 * Files, those below first: cm/addr.c (addresses), cm/path.c (GIDs), cm/request.c (a listener's
 * requests), cm/id.c (ids, their handles, what they are told), cm/socket.c, cm/resolve.c, cm/tell.c
 * (what connections tell), cm/connect.c (the active side), cm/answer.c (the passive), cm/end.c,
 * cm/listen.c (listeners), cm/ud.h (datagrams), cm/destroy.c, cm/migrate.c, ucm.c (the command file).
 *
 * What a connection tells is told with its lock: none of these functions takes rdma_cm's lock, or
 * drops the connection's.
 *
 * Locking: every command has rdma_cm's lock, rl_cm_lock(). A connection tells its id without it;
 * what that needs is guarded by the table's lock of cm/id.c. Order: rdma_cm's, a listener's, a
 * connection's, the table's, a channel's.
 */
#ifndef RL_CM_ID_H
#define RL_CM_ID_H

#include <rdma/rdma_user_cm.h>
#include <sys/socket.h>

#include "host/chan.h"
#include "host/conn.h"
#include "devices/device.h"
#include "process/list.h"

struct rl_sidr_client;
struct rl_sidr_server;
struct rl_listener;
struct rl_sidr_request;
struct rl_requests;

/* rdma_cm's numbers, enum rdma_cm_event_type. */
enum rl_cm_event {
	RL_CM_ADDR_RESOLVED	= 0,
	RL_CM_ADDR_ERROR	= 1,
	RL_CM_ROUTE_RESOLVED	= 2,
	RL_CM_CONNECT_REQUEST	= 4,
	RL_CM_CONNECT_RESPONSE	= 5,
	RL_CM_CONNECT_ERROR	= 6,
	RL_CM_UNREACHABLE	= 7,
	RL_CM_REJECTED		= 8,
	RL_CM_ESTABLISHED	= 9,
	RL_CM_DISCONNECTED	= 10,
	RL_CM_MULTICAST_JOIN	= 12,
};

/* How far the program has come with an id. */
enum rl_cm_phase {
	RL_CM_IDLE,
	RL_CM_BOUND,			/* src */
	RL_CM_ADDR,			/* dst, dev */
	RL_CM_ROUTE,
	RL_CM_CONNECT,			/* it was connected, whatever came of it */
	RL_CM_LISTEN,
	RL_CM_REQUEST,			/* a request that was not answered */
	RL_CM_ANSWERED,
};

/* How far a request has come with its listener. */
enum rl_request_state {
	RL_REQUEST_STARTING,			/* the MPA Request is to come */
	RL_REQUEST_WAITING,		/* it is there, and the program has no room for it yet */
	RL_REQUEST_QUEUED,		/* the event waits for the program */
	RL_REQUEST_TAKEN,		/* the program has the event */
};

struct rl_cmid {
	u32 refs;			/* atomic */
	u64 serial;			/* no other id has the same, ever */
	u16 ps;
	u8 qp_type;

	/* rdma_cm's lock; src, dst, dev and the options do not change while it is told */
	enum rl_cm_phase phase;
	struct sockaddr_storage src, dst;
	const struct rl_device *dev;	/* NULL: none yet */
	int sock;			/* hidden: bound to src; -1 */
	struct rl_listener *listener;	/* LISTEN; referenced */
	struct rl_sidr_client *sidr_client;		/* of datagrams (cm/ud.h): it asks its peer; */
	struct rl_sidr_server *sidr_server;		/* it listens; */
	struct rl_sidr_request *sidr_request;	/* it is a request that was not answered; */
	struct list_head joins;		/* groups that it was told of */
	u8 tos;
	bool tos_set, reuseaddr, afonly;

	/* the table's lock */
	u32 handle;
	bool listed;			/* the program knows the handle, and may be told */
	u64 uid;			/* 0: the program has not named it, and is not told */
	struct rl_chan *chan;		/* referenced */
	struct rl_conn *conn;		/* referenced, as the id is by conn->id */
	struct rl_requests *parent;	/* a request's, until it was answered; referenced */
	enum rl_request_state request_state;
	struct list_head sibling;	/* in the parent's requests: the latest first */
	u64 turn;			/* WAITING: who has the lowest is first */

	u32 reported;			/* chan's lock: events that the program has taken */
};

/* Of datagrams: its port is UDP's. */
static inline bool rl_cmid_is_ud(const struct rl_cmid *id)
{
	return id->ps == RDMA_PS_UDP;
}

void rl_cm_lock(void);
void rl_cm_unlock(void);

/* ---- cm/id.c ---- */

/* For what is said of an id, and for its fields. */
void rl_cmid_table_lock(void);
void rl_cmid_table_unlock(void);

/* A new id without a handle, with one reference. NULL: no memory. */
struct rl_cmid *rl_cmid_new(u16 ps, u8 qp_type);
void rl_cmid_get(struct rl_cmid *id);
void rl_cmid_put(struct rl_cmid *id);

/* Gives @id a handle in @chan's name; the table has a reference: 0 or -ENOMEM. Table's lock. */
int rl_cmid_list(struct rl_cmid *id, struct rl_chan *chan);
/*
 * Takes the handle back, and what waits: the events that the program took. The table's reference
 * is the caller's.
 */
u32 rl_cmid_unlist(struct rl_cmid *id);
/* The id of @handle in @chan's name; NULL and -ENOENT, -EINVAL in *@err. rdma_cm's lock. */
struct rl_cmid *rl_cmid_find(struct rl_chan *chan, u32 handle, int *err);
/* Any of @chan's ids; NULL: there is none. rdma_cm's lock. */
struct rl_cmid *rl_cmid_first(struct rl_chan *chan);

/* What is said with an event. */
struct rl_cm_event_data {
	enum rl_cm_event event;
	int status;			/* 0 - errno */
	u8 initiator_depth, responder_resources;
	const u8 *pd;
	u32 pd_len;			/* at most 255 */
	const struct rdma_ucm_ud_param *ud; /* of datagrams, in place of the four before; or NULL */
};

/* The program is told, if it can be: 0 or -ENOMEM. */
int rl_cmid_say(struct rl_cmid *id, const struct rl_cm_event_data *w);
/* Something of an id's that has a name, a handle and events of its own. */
struct rl_cm_part {
	u64 uid;
	u32 handle;
	u32 reported;			/* the channel's lock: events that the program has taken */
};

/* The same of @p. */
int rl_cmid_say_part(struct rl_cmid *id, struct rl_cm_part *p, const struct rl_cm_event_data *w);
/* What waits of @p is dropped: the events that the program took. */
u32 rl_cmid_drop_part(struct rl_cmid *id, struct rl_cm_part *p);
/* The same of a request: @child gets its handle, and the listener is told. Table's lock. */
int rl_cmid_say_request(struct rl_cmid *listener, struct rl_cmid *child,
			const struct rl_cm_event_data *w);
/* GET_EVENT: waits as rl_chan_take() does. 0 or -errno. No lock. */
int rl_cmid_take_event(struct rl_chan *chan, struct rdma_ucm_event_resp *resp);

/* @c tells @id from now on. Connection's lock. */
void rl_cmid_join(struct rl_cmid *id, struct rl_conn *c);
/* @c tells nobody any more. Connection's lock; the caller has references of its own. */
void rl_cmid_leave(struct rl_conn *c);
/* The connection that tells @id, locked and referenced; NULL: there is none any more. */
struct rl_conn *rl_cmid_lock_conn(struct rl_cmid *id);

/* ---- cm/addr.c ---- */

/* Is it the wildcard of its family? */
bool rl_addr_is_any(const struct sockaddr_storage *a);
/* Is it a multicast address? */
bool rl_addr_is_group(const struct sockaddr_storage *a);
/* Octets of an AF_INET or AF_INET6 address; 0 of others. */
u32 rl_addr_len(const struct sockaddr_storage *a);
u16 rl_addr_port(const struct sockaddr_storage *a);
void rl_addr_set_port(struct sockaddr_storage *a, u16 port);

/* ---- cm/path.c ---- */

/* GIDs (zeros: none is known), and an address handle's path. */
void rl_cm_gids(const struct rl_cmid *id, u8 sgid[RL_GID_LEN], u8 dgid[RL_GID_LEN]);
void rl_cm_put_path(const struct rl_cmid *id, struct ib_uverbs_ah_attr *ah);

/* ---- cm/socket.c ---- */

/* Has a device here its port space? */
bool rl_cm_is_served(const struct rl_cmid *id);
int rl_cm_bind(struct rl_cmid *id, const struct sockaddr_storage *a);
/* The id gets the address, a port, and a socket, unless it was bound before. */
int rl_cm_take_source(struct rl_cmid *id, const struct sockaddr_storage *local);
int rl_cm_set_reuseaddr(struct rl_cmid *id, bool on);
int rl_cm_set_afonly(struct rl_cmid *id, bool on);
void rl_cm_set_tos(struct rl_cmid *id, u8 tos);
/* A socket from @id that connects to its peer; @any_port: not with the id's port. Or -errno. */
int rl_cm_start_connecting(struct rl_cmid *id, bool any_port);
/* The id's own socket is not needed any more. */
void rl_cm_drop_socket(struct rl_cmid *id);

/* ---- cm/resolve.c ---- */

/* @src may have family 0: it is not given. */
int rl_cm_resolve_addr(struct rl_cmid *id, const struct sockaddr_storage *src,
		       const struct sockaddr_storage *dst);
int rl_cm_resolve_route(struct rl_cmid *id);

/* ---- cm/listen.c ---- */

int rl_cm_listen(struct rl_cmid *id, u32 backlog);
/* Requests that the program has not seen are dropped. */
void rl_cm_stop_listening(struct rl_cmid *id);
/* Those that wait for the program change to the channel of their listener, @id. Table's lock. */
void rl_cm_move_requests(struct rl_cmid *id, struct rl_chan *to);

/* ---- cm/tell.c: with the connection's lock, which it does not drop; takes the table's ---- */

/* What the ULP gets to see of a depth. */
u8 rl_cm_depth(u16 d);
/* 0 or -ENOMEM; nothing if the id has gone. */
int rl_cm_tell(struct rl_conn *c, struct rl_cm_event_data *w);
/* The connection is in Full Operation. */
int rl_cm_tell_established(struct rl_conn *c, enum rl_cm_event event, const u8 *pd, u32 pd_len);
/* Start-up has failed: link.status says why. The id is told no more. */
void rl_cm_tell_failed(struct rl_conn *c);
/* The connection is over: the id is told, and then no more. */
void rl_cm_tell_ended(struct rl_conn *c);
/* Nothing more is said or awaited; c->user may still be there, if a Request was not answered. */
void rl_cm_tell_dead(struct rl_conn *c);

/* ---- cm/connect.c, cm/answer.c, cm/end.c ---- */

int rl_cm_connect(struct rl_cmid *id, const struct rdma_ucm_conn_param *p);
int rl_cm_accept(struct rl_cmid *id, u64 uid, const struct rdma_ucm_conn_param *p);
int rl_cm_reject(struct rl_cmid *id, const void *pd, u32 pd_len);
/* A Request is answered so, if it still waits; the id is told no more. Connection's lock. */
int rl_cm_refuse(struct rl_conn *c, const void *pd, u32 pd_len);
int rl_cm_disconnect(struct rl_cmid *id);
/* @id, if it has a connection, has none any more. */
void rl_cm_end_connection(struct rl_cmid *id);

/* ---- cm/destroy.c, cm/migrate.c ---- */

/* The id is no more: the events that the program took. */
u32 rl_cm_destroy(struct rl_cmid *id);
/* It is @to's from now on: the events that the program took. rdma_cm's lock. */
u32 rl_cmid_migrate(struct rl_cmid *id, struct rl_chan *to);

#endif
