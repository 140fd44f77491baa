// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The active side: core/link.h decides, and the program gets one event: the connection is
 * established, or why not.
 */
#include <stdlib.h>

#include <infiniband/verbs.h>

#include "id.h"
#include "ud.h"
#include "judge/adverse.h"
#include "process/options.h"
#include "process/raw.h"
#include "devices/limits.h"
#include "host/qp.h"

static const struct rl_conn_ulp active_ulp;

/* ---- what a connection tells; with its lock ---- */

/*
 * For an RNIC this is all. For a RoCE device the program, or librdmacm for it, modifies its QP and
 * then reports that it is ready: the QP has moved by itself, and does not wait for that.
 */
static void connect_report_done(struct rl_conn *c)
{
	enum rl_cm_event event = rl_options()->roce ? RL_CM_CONNECT_RESPONSE : RL_CM_ESTABLISHED;
	struct weft_offer *o = c->link.offer;
	int rv;

	c->link.offer = NULL;
	rv = rl_cm_report_established(c, event, o->pd, o->pd_len);
	free(o);
	if (rv)
		rl_conn_withdraw(c, rv);
}

/* ---- connecting ---- */

/* A new connection, locked, with a reference; or -errno. */
static int begin_connection(struct rl_cmid *id, const struct rl_device *dev, bool any_port,
			    struct rl_conn **c)
{
	int fd = rl_cm_start_connecting(id, any_port);

	if (fd < 0)
		return fd;
	*c = rl_conn_new(dev, true, fd, &active_ulp);
	return *c ? 0 : -ENOMEM;
}

static int connect_again(struct rl_conn *old)
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
	heir->rnr_ms = old->rnr_ms;
	rl_conn_configure(heir);
	rl_conn_hand_over(old, heir);
	rl_conn_watch(heir);
	rl_conn_unlock(heir);
	rl_conn_put(heir);
	rl_conn_act(old, WEFT_ACT_DIE);
	return 0;
}

static void connect_retry(struct rl_conn *c)
{
	int rv = c->user ? connect_again(c) : -ECONNABORTED;

	if (rv)
		rl_conn_act(c, weft_link_connect_failed(&c->link, rv));
}

static int connect_make_offer(const struct rdma_ucm_conn_param *p, struct weft_offer **offer)
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

/* What a connection is to be made of. */
struct attempt {
	struct rl_cmid *id;
	struct rl_qp *qp;
	struct weft_offer *offer;
	u8 rnr_retry_count;
	int fault;			/* 0, or how it fails */
};

/* Takes the offer over if it succeeds. */
static int connect_qp(const struct attempt *a, bool any_port)
{
	struct rl_cmid *id = a->id;
	struct rl_conn *c;
	int rv = begin_connection(id, id->dev, any_port, &c);

	if (rv)
		return rv;
	c->rnr_ms = rl_adverse_rnr_ms(a->rnr_retry_count, rl_options()->rnr_ms);
	rl_conn_configure(c);
	rv = rl_conn_attach(c, a->qp);
	if (rv) {
		rl_conn_act(c, weft_link_die(&c->link));
		/* TCP may have connected, and the id has another descriptor of the same socket. */
		rl_cm_drop_socket(id);
	} else {
		weft_link_connect(&c->link, a->offer, rl_now_ms());
		rl_cmid_join(id, c);
		rl_conn_watch(c);
		if (a->fault)
			rl_conn_act(c, weft_link_connect_failed(&c->link, a->fault));
	}
	rl_conn_unlock(c);
	rl_conn_put(c);
	return rv;
}

/*
 * The port may have a connection to this peer already, or one that is still closing: then another
 * port is used.
 */
static int connect_qp_somehow(const struct attempt *a)
{
	int rv = connect_qp(a, false);

	if (rv == -EADDRNOTAVAIL || rv == -EADDRINUSE)
		rv = connect_qp(a, true);
	if (rv)
		free(a->offer);
	return rv;
}

static int connect_datagrams(struct rl_cmid *id, const struct rdma_ucm_conn_param *p, int fault)
{
	int rv = rl_sidr_client_begin(id, p, fault);

	if (!rv)
		id->phase = RL_CM_CONNECT;
	return rv;
}

int rl_cm_connect(struct rl_cmid *id, const struct rdma_ucm_conn_param *p, int fault)
{
	struct attempt a = {
		.id = id, .rnr_retry_count = p->rnr_retry_count, .fault = fault,
	};
	int rv;

	if (id->phase != RL_CM_ROUTE)
		return -EINVAL;
	if (id->qp_type == IBV_QPT_UD)
		return connect_datagrams(id, p, fault);
	a.qp = rl_qp_find(p->qp_num);
	if (!a.qp)
		return -EINVAL;
	rv = connect_make_offer(p, &a.offer);
	if (!rv)
		rv = connect_qp_somehow(&a);
	rl_qp_put(a.qp);
	if (rv)
		return rv;
	id->phase = RL_CM_CONNECT;
	rl_cm_drop_socket(id);
	return 0;
}

static const struct rl_conn_ulp active_ulp = {
	.configure = rl_cm_configure,
	.failed = rl_cm_report_failed,
	.connected = connect_report_done,
	.reconnect = connect_retry,
	.ended = rl_cm_report_ended,
	.dead = rl_cm_report_dead,
};
