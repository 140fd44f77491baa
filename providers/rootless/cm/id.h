/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * rdma_cm's ids: what ucm.c, which decodes commands, calls, and what those files ask of each other.
 *
 * Files, the lowest first: cm/addr.c (addresses), cm/path.c (GIDs), cm/request.c (a listener's
 * requests), cm/id.c (ids, handles, events), cm/socket.c, cm/resolve.c, cm/report.c (what
 * connections report), cm/connect.c (the active side), cm/answer.c (the passive side), cm/end.c,
 * cm/listen.c (listeners), cm/ud.h (datagrams), cm/destroy.c, cm/migrate.c, ucm.c (the command
 * file).
 *
 * A connection reports with its own lock held: none of these functions takes rdma_cm's lock, or
 * drops the connection's.
 *
 * Locking: every command has rdma_cm's lock, rl_cm_lock(). A connection reports to its id without
 * it; the fields needed for that are guarded by the table's lock of cm/id.c. Order: rdma_cm's lock,
 * a listener's, a connection's, the table's, a channel's.
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

/* Numbers of enum rdma_cm_event_type. */
enum rl_cm_event {
	RL_CM_ADDR_RESOLVED	= 0,
	RL_CM_ADDR_ERROR	= 1,
	RL_CM_ROUTE_RESOLVED	= 2,
	RL_CM_ROUTE_ERROR	= 3,
	RL_CM_CONNECT_REQUEST	= 4,
	RL_CM_CONNECT_RESPONSE	= 5,
	RL_CM_CONNECT_ERROR	= 6,
	RL_CM_UNREACHABLE	= 7,
	RL_CM_REJECTED		= 8,
	RL_CM_ESTABLISHED	= 9,
	RL_CM_DISCONNECTED	= 10,
	RL_CM_MULTICAST_JOIN	= 12,
};

/* The state of an id. */
enum rl_cm_phase {
	RL_CM_IDLE,
	RL_CM_BOUND,			/* src */
	RL_CM_ADDR,			/* dst, dev */
	RL_CM_ROUTE,
	RL_CM_CONNECT,			/* connecting was tried, successfully or not */
	RL_CM_LISTEN,
	RL_CM_REQUEST,			/* an unanswered request */
	RL_CM_ANSWERED,
};

/* The state of a request. */
enum rl_request_state {
	RL_REQUEST_STARTING,			/* the MPA Request has not arrived yet */
	RL_REQUEST_WAITING,		/* it has arrived, beyond the backlog */
	RL_REQUEST_QUEUED,		/* the event is queued */
	RL_REQUEST_TAKEN,		/* the program has read the event */
};

struct rl_cmid {
	u32 refs;			/* atomic */
	u64 serial;			/* unique for ever */
	u16 ps;
	u8 qp_type;

	/* rdma_cm's lock; src, dst, dev and the options are constant while a connection reports */
	enum rl_cm_phase phase;
	struct sockaddr_storage src, dst;
	const struct rl_device *dev;	/* NULL: none yet */
	int sock;			/* hidden: bound to src; -1: none */
	struct rl_listener *listener;	/* LISTEN; referenced */
	struct rl_sidr_client *sidr_client; /* of datagrams (cm/ud.h): it asks its peer, */
	struct rl_sidr_server *sidr_server; /* it listens, */
	struct rl_sidr_request *sidr_request; /* it is an unanswered request */
	struct list_head joins;		/* multicast groups that it joined */
	u8 tos;
	bool tos_set, reuseaddr, afonly;

	/* the table's lock */
	u32 handle;
	bool listed;			/* the program knows the handle, and gets events */
	u64 uid;			/* 0: the program has not named it, and gets no events */
	struct rl_chan *chan;		/* referenced */
	struct rl_conn *conn;		/* referenced, as the id is by conn->id */
	struct rl_requests *parent;	/* a request's, until it is answered; referenced */
	enum rl_request_state request_state;
	struct list_head sibling;	/* in the parent's requests: the latest first */
	u64 turn;			/* WAITING: the lowest is served first */

	u32 reported;			/* chan's lock: events that the program has read */
};

/* Is it for datagrams? Then its port is UDP's. */
static inline bool rl_cmid_is_ud(const struct rl_cmid *id)
{
	return id->ps == RDMA_PS_UDP;
}

void rl_cm_lock(void);
void rl_cm_unlock(void);

/* ---- cm/id.c ---- */

/* Guards events of an id, and the fields above. */
void rl_cmid_table_lock(void);
void rl_cmid_table_unlock(void);

/* A new id without a handle, with one reference. NULL: out of memory. */
struct rl_cmid *rl_cmid_new(u16 ps, u8 qp_type);
void rl_cmid_get(struct rl_cmid *id);
void rl_cmid_put(struct rl_cmid *id);

/* Gives @id a handle of @chan; the table gets a reference: 0 or -ENOMEM. Table's lock. */
int rl_cmid_list(struct rl_cmid *id, struct rl_chan *chan);
/*
 * Takes the handle back and drops queued events: the number of events that the program has read.
 * The table's reference passes to the caller.
 */
u32 rl_cmid_unlist(struct rl_cmid *id);
/* The id of @handle of @chan; NULL, and -ENOENT or -EINVAL in *@err. rdma_cm's lock. */
struct rl_cmid *rl_cmid_find(struct rl_chan *chan, u32 handle, int *err);
/* Any of @chan's ids; NULL: none. rdma_cm's lock. */
struct rl_cmid *rl_cmid_first(struct rl_chan *chan);

/* An event's data. */
struct rl_cm_event_data {
	enum rl_cm_event event;
	int status;			/* 0 - errno */
	u8 initiator_depth, responder_resources;
	const u8 *pd;
	u32 pd_len;			/* at most 255 */
	const struct rdma_ucm_ud_param *ud; /* of datagrams, replaces the four before; or NULL */
};

/* Pushes an event, if the program named the id: 0 or -ENOMEM. */
int rl_cmid_report(struct rl_cmid *id, const struct rl_cm_event_data *w);
/* A part of an id with a uid, a handle and events of its own. */
struct rl_cm_part {
	u64 uid;
	u32 handle;
	u32 reported;			/* the channel's lock: events that the program has read */
};

/* The same for part @p. */
int rl_cmid_report_part(struct rl_cmid *id, struct rl_cm_part *p, const struct rl_cm_event_data *w);
/* Drops queued events of @p: the number of events that the program has read. */
u32 rl_cmid_drop_part(struct rl_cmid *id, struct rl_cm_part *p);
/* The same for a request: @child gets its handle, and the listener an event. Table's lock. */
int rl_cmid_report_request(struct rl_cmid *listener, struct rl_cmid *child,
			   const struct rl_cm_event_data *w);
/* GET_EVENT: waits as rl_chan_take() does. 0 or -errno. No lock. */
int rl_cmid_take_event(struct rl_chan *chan, struct rdma_ucm_event_resp *resp);

/* @c reports to @id from now on. Connection's lock. */
void rl_cmid_join(struct rl_cmid *id, struct rl_conn *c);
/* @c reports to no id any more. Connection's lock; the caller has references of its own. */
void rl_cmid_leave(struct rl_conn *c);
/* The connection that reports to @id, locked and referenced; NULL: none any more. */
struct rl_conn *rl_cmid_lock_conn(struct rl_cmid *id);

/* ---- cm/addr.c ---- */

/* Is it the wildcard of its family? */
bool rl_addr_is_any(const struct sockaddr_storage *a);
/* Is it a multicast address? */
bool rl_addr_is_group(const struct sockaddr_storage *a);
/* Size of an AF_INET or AF_INET6 address; 0 for others. */
u32 rl_addr_len(const struct sockaddr_storage *a);
u16 rl_addr_port(const struct sockaddr_storage *a);
void rl_addr_set_port(struct sockaddr_storage *a, u16 port);

/* ---- cm/path.c ---- */

/* GIDs (zeros if unknown), and the path as in an address handle. */
void rl_cm_gids(const struct rl_cmid *id, u8 sgid[RL_GID_LEN], u8 dgid[RL_GID_LEN]);
void rl_cm_put_path(const struct rl_cmid *id, struct ib_uverbs_ah_attr *ah);

/* ---- cm/socket.c ---- */

/* Does a device serve its port space? */
bool rl_cm_is_served(const struct rl_cmid *id);
int rl_cm_bind(struct rl_cmid *id, const struct sockaddr_storage *a);
/* Gives the id the address, and a port and a socket unless it was bound before. */
int rl_cm_take_source(struct rl_cmid *id, const struct sockaddr_storage *local);
int rl_cm_set_reuseaddr(struct rl_cmid *id, bool on);
int rl_cm_set_afonly(struct rl_cmid *id, bool on);
void rl_cm_set_tos(struct rl_cmid *id, u8 tos);
/*
 * A socket that connects to the id's peer; @any_port: from any port instead of the id's. Or -errno.
 */
int rl_cm_start_connecting(struct rl_cmid *id, bool any_port);
/* Closes the id's own socket. */
void rl_cm_drop_socket(struct rl_cmid *id);

/* ---- cm/resolve.c ---- */

/* @fault: 0, or -errno that the event is to report. Family 0 of @src: not given. */
int rl_cm_resolve_addr(struct rl_cmid *id, const struct sockaddr_storage *src,
		       const struct sockaddr_storage *dst, int fault);
int rl_cm_resolve_route(struct rl_cmid *id, int fault);

/* ---- cm/listen.c ---- */

int rl_cm_listen(struct rl_cmid *id, u32 backlog);
/* Drops requests that the program has not seen. */
void rl_cm_stop_listening(struct rl_cmid *id);
/* Queued requests move to the channel of their listener, @id. Table's lock. */
void rl_cm_move_requests(struct rl_cmid *id, struct rl_chan *to);

/* ---- cm/report.c: with the connection's lock, which it does not drop; takes the table's ---- */

/* A depth as events report it: the device's @most, if none was negotiated. */
u8 rl_cm_depth(u16 d, u32 most);
/* 0 or -ENOMEM; nothing if there is no id any more. */
int rl_cm_report(struct rl_conn *c, struct rl_cm_event_data *w);
/* The connection is in Full Operation. */
int rl_cm_report_established(struct rl_conn *c, enum rl_cm_event event, const u8 *pd, u32 pd_len);
/* Start-up has failed: link.status has the reason. The last report to the id. */
void rl_cm_report_failed(struct rl_conn *c);
/* The connection is over. The last report to the id. */
void rl_cm_report_ended(struct rl_conn *c);
/* The connection is dead; c->user may still be set, if a Request was not answered. */
void rl_cm_report_dead(struct rl_conn *c);

/* ---- cm/connect.c, cm/answer.c, cm/end.c ---- */

/* @fault: 0, or -errno by which the start-up fails. */
int rl_cm_connect(struct rl_cmid *id, const struct rdma_ucm_conn_param *p, int fault);
int rl_cm_accept(struct rl_cmid *id, u64 uid, const struct rdma_ucm_conn_param *p);
int rl_cm_reject(struct rl_cmid *id, const void *pd, u32 pd_len);
/* Rejects a Request that still waits; @c reports to no id any more. Connection's lock. */
int rl_cm_refuse(struct rl_conn *c, const void *pd, u32 pd_len);
int rl_cm_disconnect(struct rl_cmid *id);
/* A connection's ULP (struct rl_conn_ulp): how it ends on this face. */
void rl_cm_configure(const struct rl_conn *c, struct weft_link_cfg *cfg);
/* Ends @id's connection, if it has one. */
void rl_cm_end_connection(struct rl_cmid *id);

/* ---- cm/destroy.c, cm/migrate.c ---- */

/* Destroys the id: the number of events that the program has read. */
u32 rl_cm_destroy(struct rl_cmid *id);
/* Moves the id to channel @to: the number of events that the program has read. rdma_cm's lock. */
u32 rl_cmid_migrate(struct rl_cmid *id, struct rl_chan *to);

#endif
