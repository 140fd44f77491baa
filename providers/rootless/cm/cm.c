// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Connections, between core/link.h, which decides, and the program, which is told: once that a
 * connection is there, or why not; then once that it has ended.
 */
#include <stdlib.h>

#include <infiniband/verbs.h>

#include "cm.h"
#include "id.h"
#include "ud.h"
#include "process/options.h"
#include "process/raw.h"
#include "host/verbs.h"

/* What an event has room for: a u8. */
u8 rl_cm_depth(u16 d)
{
	if (d == WEFT_MPA_NO_NEGOTIATION)
		return RL_MAX_IRD;
	return min_t(u16, d, 255);
}

/* ---- what a connection tells; with its lock ---- */

static int tell(struct rl_conn *c, struct rl_cm_words *w)
{
	return c->user ? rl_cmid_say(c->user, w) : 0;
}

static int tell_connected(struct rl_conn *c, enum rl_cm_event event, const u8 *pd, u32 pd_len)
{
	struct rl_cm_words w = {
		.event = event,
		.initiator_depth = rl_cm_depth(c->link.st.agreed.ird),
		.responder_resources = rl_cm_depth(c->link.st.agreed.ord),
		.pd = pd,
		.pd_len = pd_len,
	};

	return tell(c, &w);
}

static enum rl_cm_event failure_event(int status)
{
	switch (status) {
	case -ECONNRESET:
	case -ECONNREFUSED:
		return RL_CM_REJECTED;
	case -ETIMEDOUT:
		return RL_CM_UNREACHABLE;
	default:
		return RL_CM_CONNECT_ERROR;
	}
}

void rl_cm_tell_failed(struct rl_conn *c)
{
	const struct weft_link *l = &c->link;
	bool refused = l->status == -ECONNREFUSED && l->rx_event == WEFT_RX_STARTUP;
	struct rl_cm_words w = {
		.event = failure_event(l->status),
		.status = l->status,
		.pd = l->st.pd,
		.pd_len = refused ? l->st.frame.pd_len : 0,
	};

	tell(c, &w);
	rl_cmid_leave(c);
}

/*
 * Of an RNIC that is all. Of a RoCE device the program, or librdmacm for it, is to move its QP on, and
 * says then that it is ready: the QP has moved by itself, and nobody waits for that.
 */
void rl_cm_tell_connected(struct rl_conn *c)
{
	enum rl_cm_event event = rl_options()->roce ? RL_CM_CONNECT_RESPONSE : RL_CM_ESTABLISHED;
	struct weft_offer *o = c->link.offer;
	struct weft_tcp_view v;
	int rv;

	c->link.offer = NULL;
	rv = tell_connected(c, event, o->pd, o->pd_len);
	free(o);
	if (!rv)
		return;
	rl_conn_view(c, &v);
	rl_conn_act(c, weft_link_withdraw(&c->link, rv, &v, rl_now_ms()));
}

void rl_cm_tell_ended(struct rl_conn *c)
{
	struct rl_cm_words w = { .event = RL_CM_DISCONNECTED };

	tell(c, &w);
	rl_cmid_leave(c);
}

/* If a Request is not answered yet, the program learns it from its answer. */
void rl_cm_tell_dead(struct rl_conn *c)
{
	rl_cmid_leave(c);
}

/* ---- connecting ---- */

/* A locked connection that begins, with a reference; or -errno. */
static int begin_connection(struct rl_cmid *id, const struct rl_device *dev, bool any_port,
			    struct rl_conn **c)
{
	int fd = rl_cm_start_connecting(id, any_port);

	if (fd < 0)
		return fd;
	*c = rl_conn_new(dev, true, fd, &rl_cm_ulp);
	return *c ? 0 : -ENOMEM;
}

static int reconnect(struct rl_conn *old)
{
	struct rl_cmid *id = old->user;
	struct rl_conn *heir;
	int rv = begin_connection(id, old->dev, true, &heir);

	if (rv)
		return rv;
	rl_cmid_get(id);
	rl_cmid_leave(old);
	rl_cmid_join(id, heir);
	rl_cmid_put(id);
	rl_conn_configure(heir);
	rl_conn_hand_over(old, heir);
	rl_conn_watch(heir);
	rl_conn_unlock(heir);
	rl_conn_put(heir);
	rl_conn_act(old, WEFT_ACT_DIE);
	return 0;
}

void rl_cm_reconnect(struct rl_conn *c)
{
	int rv = c->user ? reconnect(c) : -ECONNABORTED;

	if (rv)
		rl_conn_act(c, weft_link_connect_failed(&c->link, rv));
}

static int make_offer(const struct rdma_ucm_conn_param *p, struct weft_offer **offer)
{
	struct weft_offer *o = calloc(1, sizeof(*o));
	struct weft_mpa_cfg cfg;
	int rv;

	if (!o)
		return -ENOMEM;
	rl_conn_base_cfg(&cfg);
	rv = weft_offer_init(o, &cfg, p->responder_resources, p->initiator_depth, p->private_data,
			     p->private_data_len);
	if (rv)
		free(o);
	else
		*offer = o;
	return rv;
}

/* The connection has @offer if it begins, else the caller. */
static int connect_qp(struct rl_cmid *id, struct rl_qp *qp, struct weft_offer *offer, bool any_port)
{
	struct rl_conn *c;
	int rv = begin_connection(id, id->dev, any_port, &c);

	if (rv)
		return rv;
	rl_conn_configure(c);
	rv = rl_conn_attach(c, qp);
	if (rv) {
		rl_conn_act(c, weft_link_die(&c->link));
		/* TCP may have connected; and the id has a name of the same socket. */
		rl_cm_drop_socket(id);
	} else {
		weft_link_connect(&c->link, offer, rl_now_ms());
		rl_cmid_join(id, c);
		rl_conn_watch(c);
	}
	rl_conn_unlock(c);
	rl_conn_put(c);
	return rv;
}

/*
 * The port may have a connection to this peer already, or one that is still closing: then another
 * will do.
 */
static int connect_qp_somehow(struct rl_cmid *id, struct rl_qp *qp, struct weft_offer *offer)
{
	int rv = connect_qp(id, qp, offer, false);

	if (rv == -EADDRNOTAVAIL || rv == -EADDRINUSE)
		rv = connect_qp(id, qp, offer, true);
	if (rv)
		free(offer);
	return rv;
}

static int connect_datagrams(struct rl_cmid *id, const struct rdma_ucm_conn_param *p)
{
	int rv = rl_asker_begin(id, p);

	if (!rv)
		id->phase = RL_CM_CONNECT;
	return rv;
}

int rl_cm_connect(struct rl_cmid *id, const struct rdma_ucm_conn_param *p)
{
	struct weft_offer *offer;
	struct rl_qp *qp;
	int rv;

	if (id->phase != RL_CM_ROUTE)
		return -EINVAL;
	if (id->qp_type == IBV_QPT_UD)
		return connect_datagrams(id, p);
	qp = rl_qp_find(p->qp_num);
	if (!qp)
		return -EINVAL;
	rv = make_offer(p, &offer);
	if (!rv)
		rv = connect_qp_somehow(id, qp, offer);
	rl_qp_put(qp);
	if (rv)
		return rv;
	id->phase = RL_CM_CONNECT;
	rl_cm_drop_socket(id);
	return 0;
}

const struct rl_conn_ulp rl_cm_ulp = {
	.failed = rl_cm_tell_failed,
	.connected = rl_cm_tell_connected,
	.reconnect = rl_cm_reconnect,
	.request = rl_cm_tell_request,
	.ended = rl_cm_tell_ended,
	.dead = rl_cm_tell_dead,
};

/* ---- answering a request ---- */

/* The Reply and Full Operation in one go. */
static int send_reply(struct rl_conn *c, struct rl_qp *qp, const struct rdma_ucm_conn_param *p)
{
	struct weft_tcp_view v;
	int rv;

	rl_conn_configure(c);
	rl_conn_receive(c);
	rl_conn_view(c, &v);
	rv = rl_conn_attach(c, qp);
	if (rv)
		return rv;
	return weft_link_accept(&c->link, p->responder_resources, p->initiator_depth,
				p->private_data, p->private_data_len, &v, rl_now_ms());
}

static int accept_on(struct rl_conn *c, const struct rdma_ucm_conn_param *p)
{
	struct rl_qp *qp;
	int rv = -EINVAL;

	if (c->link.state != WEFT_LINK_REQUESTED)
		return -ECONNRESET;
	qp = p->valid ? rl_qp_find(p->qp_num) : NULL;
	if (!qp)
		return -EINVAL;
	rv = send_reply(c, qp, p);
	rl_qp_put(qp);
	return rv ? rv : tell_connected(c, RL_CM_ESTABLISHED, NULL, 0);
}

/* The program could not accept: the peer is told if it still waits. */
static void accept_failed(struct rl_conn *c)
{
	struct weft_tcp_view v;

	rl_conn_release_qp(c);
	rl_cmid_leave(c);
	rl_conn_view(c, &v);
	rl_conn_act(c, weft_link_accept_failed(&c->link, &v, rl_now_ms()));
}

/* A name makes the program hear of @id: 0 takes it back. */
static void set_uid(struct rl_cmid *id, u64 uid)
{
	rl_cmid_table_lock();
	id->uid = uid;
	rl_cmid_table_unlock();
}

/* The request's connection, locked and referenced: it is answered now. NULL: it has gone. */
static struct rl_conn *take_request(struct rl_cmid *id)
{
	id->phase = RL_CM_ANSWERED;
	rl_cmid_table_lock();
	rl_cm_leave_listener(id);
	rl_cmid_table_unlock();
	return rl_cmid_lock_conn(id);
}

int rl_cm_accept(struct rl_cmid *id, u64 uid, const struct rdma_ucm_conn_param *p)
{
	struct rl_conn *c;
	int rv;

	/* It has seen CONNECT_RESPONSE. */
	if (id->phase == RL_CM_CONNECT && !p->valid && rl_options()->roce)
		return 0;
	if (id->phase != RL_CM_REQUEST)
		return -EINVAL;
	if (id->question)
		return rl_desk_accept(id, uid, p);
	c = take_request(id);
	if (!c)
		return -ECONNRESET;
	set_uid(id, uid);
	rv = accept_on(c, p);
	if (rv) {
		set_uid(id, 0);
		accept_failed(c);
	}
	c->step_due = true;
	rl_conn_unlock(c);
	rl_conn_put(c);
	return rv;
}

static int reject_on(struct rl_conn *c, const void *pd, u32 pd_len)
{
	bool waits = c->link.state == WEFT_LINK_REQUESTED;
	struct weft_tcp_view v;

	rl_cmid_leave(c);
	if (!waits)
		return -ECONNRESET;
	rl_conn_view(c, &v);
	rl_conn_act(c, weft_link_reject(&c->link, pd, pd_len, &v, rl_now_ms()));
	return 0;
}

int rl_cm_reject(struct rl_cmid *id, const void *pd, u32 pd_len)
{
	struct rl_conn *c;
	int rv;

	if (id->phase != RL_CM_REQUEST)
		return -EINVAL;
	if (id->question)
		return rl_desk_reject(id, pd, pd_len);
	c = take_request(id);
	if (!c)
		return -ECONNRESET;
	rv = reject_on(c, pd, pd_len);
	rl_conn_unlock(c);
	rl_conn_put(c);
	return rv;
}

/* ---- the end ---- */

int rl_cm_disconnect(struct rl_cmid *id)
{
	struct rl_conn *c;

	if (id->phase != RL_CM_CONNECT && id->phase != RL_CM_REQUEST && id->phase != RL_CM_ANSWERED)
		return -EINVAL;
	c = rl_cmid_lock_conn(id);
	if (!c)
		return 0;
	if (c->link.state == WEFT_LINK_OPEN &&
	    weft_qpc_move(c->link.qp, WEFT_VS_SQD) == WEFT_QP_CLOSE) {
		weft_qpc_close(c->link.qp);
		c->tx_due = true;
		c->step_due = true;
	}
	rl_conn_unlock(c);
	rl_conn_put(c);
	return 0;
}

/* Nobody has said yet that an open connection is to end: then it ends abruptly. */
static void fail_open_qp(struct rl_conn *c)
{
	if (weft_qpc_verbs_state(c->link.qp) != WEFT_VS_RTS || c->link.peer_fin)
		return;
	weft_qpc_error(c->link.qp);
	c->step_due = true;
}

static void end_connection(struct rl_conn *c)
{
	switch (c->link.state) {
	case WEFT_LINK_REQUESTED:
		reject_on(c, NULL, 0);
		break;
	case WEFT_LINK_OPEN:
		rl_cmid_leave(c);
		fail_open_qp(c);
		break;
	default:
		rl_cmid_leave(c);
		rl_conn_abandon(c);
		break;
	}
}

u32 rl_cm_destroy(struct rl_cmid *id)
{
	u32 reported = rl_cmid_unlist(id);
	struct rl_conn *c;

	if (id->listener)
		rl_cm_stop_listening(id);
	if (id->desk)
		rl_desk_close(id);
	if (id->asker)
		rl_asker_end(id);
	if (id->question)
		rl_desk_reject(id, NULL, 0);
	rl_joins_end(id);
	rl_cmid_table_lock();
	rl_cm_leave_listener(id);
	rl_cmid_table_unlock();
	c = rl_cmid_lock_conn(id);
	if (c) {
		end_connection(c);
		rl_conn_unlock(c);
		rl_conn_put(c);
	}
	rl_cm_drop_socket(id);
	rl_cmid_put(id);
	return reported;
}
