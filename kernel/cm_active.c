// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The initiator: iw_connect and its outcome. Runs under the connection's mutex, as cm.c explains.
 */
#include <linux/slab.h>

#include "cm.h"
#include "inject.h"
#include "trace.h"

/* ---- actions of the link ---- */

/* Ends an initiator's start-up. */
void weft_cm_tell_failed(struct weft_conn *conn)
{
	const struct weft_link *l = &conn->link;
	bool refused = l->status == -ECONNREFUSED && l->rx_event == WEFT_RX_STARTUP;
	u32 pd_len = refused ? l->st.frame.pd_len : 0;

	/* iw_cm would wait forever if it could not copy the private data. */
	if (weft_cm_tell(conn, conn->id, IW_CM_EVENT_CONNECT_REPLY, l->status, l->st.pd, pd_len))
		weft_cm_tell(conn, conn->id, IW_CM_EVENT_CONNECT_REPLY, l->status, NULL, 0);
	weft_cm_put_id(conn);
}

void weft_cm_tell_connected(struct weft_conn *conn)
{
	struct weft_offer *o = conn->link.offer;
	struct weft_cm_view v;
	int err;

	conn->link.offer = NULL;
	err = weft_cm_tell(conn, conn->id, IW_CM_EVENT_CONNECT_REPLY, 0, o->pd, o->pd_len);
	kfree(o);
	if (!err)
		return;
	weft_cm_begin(conn, &v);
	weft_cm_end(conn, &v, weft_link_withdraw(&conn->link, -ENOMEM, &v.tcp, v.now));
}

/* Replaces @old with a new connection. The worker cannot act for the user who called connect. */
static int reconnect(struct weft_conn *old)
{
	struct mem_cgroup *before = weft_conn_pays(old);
	struct weft_conn *conn = weft_conn_new(old->dev, WEFT_CONN_INITIATOR, weft_cm_work);
	int err;

	weft_conn_paid(before);
	if (IS_ERR(conn))
		return PTR_ERR(conn);
	weft_limit_hold_as(conn, old);
	err = old->user ? weft_sock_open_spare(conn, old) :
			  weft_sock_open(conn, old->sk->sk_family, old->id);
	if (!err && weft_sock_serves_reclaim(old))
		weft_sock_serve_reclaim(conn);
	if (!err)
		err = weft_sock_connect(conn, old->id, true);
	if (err) {
		weft_cm_give_up(conn);
	} else {
		conn->id = old->id;
		weft_conn_hand_over(old, conn);
		trace_weft_conn(old, WEFT_LINK_AWAIT_REPLY);
		old->id = NULL;
	}
	weft_cm_settle(conn);
	return err;
}

void weft_cm_reconnect(struct weft_conn *conn)
{
	int err = reconnect(conn);
	struct weft_cm_view v;

	if (!err)
		return;
	weft_cm_begin(conn, &v);
	weft_cm_end(conn, &v, weft_link_connect_failed(&conn->link, err));
}

/* ---- iw_connect ---- */

static struct weft_offer *make_offer(struct weft_device *dev, const struct iw_cm_conn_param *p)
{
	struct weft_offer *o = kzalloc(sizeof(*o), GFP_KERNEL_ACCOUNT);
	struct weft_mpa_cfg cfg;
	int err;

	if (!o)
		return ERR_PTR(-ENOMEM);
	weft_cm_base_cfg(dev, &cfg);
	err = weft_offer_init(o, &cfg, p->ird, p->ord, p->private_data, p->private_data_len);
	if (!err)
		return o;
	kfree(o);
	return ERR_PTR(err);
}

static weft_injectable int open_sockets(struct weft_conn *conn, const struct iw_cm_id *id)
{
	int family = id->local_addr.ss_family;
	int err = weft_sock_open(conn, family, id);

	return err || !conn->user ? err : weft_sock_make_spares(conn, family, id);
}
ALLOW_ERROR_INJECTION(open_sockets, ERRNO);

/* conn->mutex and qp->state_lock. */
static int start_connecting(struct weft_conn *conn, struct weft_qp *qp, struct iw_cm_id *id,
			    struct weft_offer *offer, bool any_port)
{
	int err;

	conn->user = !qp->core.kernel;
	err = weft_limit_hold(conn);
	if (err)
		return err;
	/* Allocated here, so that reclaim hits the user whom it is for. */
	if (!weft_host_lend_depths(&conn->link, offer->cfg.ord, max_t(u32, offer->cfg.ird, 1)))
		return -ENOMEM;
	err = open_sockets(conn, id);
	if (err)
		return err;
	if (qp->core.kernel)
		weft_sock_serve_reclaim(conn);
	weft_conn_lock(conn);
	err = weft_conn_attach(conn, qp);
	weft_conn_unlock(conn);
	if (err)
		return err;
	weft_cm_configure(conn);
	weft_link_connect(&conn->link, offer, weft_conn_now());
	err = weft_sock_connect(conn, id, any_port);
	if (err) {
		weft_cm_drop_qp(conn);
		return err;
	}
	id->add_ref(id);
	conn->id = id;
	return 0;
}

/* Returns 0 if the connection began, and so owns @offer; else the caller still owns it. */
static int connect_qp(struct weft_qp *qp, struct iw_cm_id *id, struct weft_offer *offer,
		      bool any_port)
{
	struct weft_conn *conn = weft_conn_new(qp->dev, WEFT_CONN_INITIATOR, weft_cm_work);
	int err;

	if (IS_ERR(conn))
		return PTR_ERR(conn);
	err = start_connecting(conn, qp, id, offer, any_port);
	if (err) {
		conn->link.offer = NULL;
		weft_cm_give_up(conn);
	}
	weft_cm_settle(conn);
	return err;
}

/*
 * rdma_cm knows only its own connections, so it may choose a port that already has a connection to
 * this peer, or one that is still closing. The socket is bound to it by then: use any other port.
 */
static int connect_qp_somehow(struct weft_qp *qp, struct iw_cm_id *id, struct weft_offer *offer)
{
	int err = connect_qp(qp, id, offer, false);

	if (err == -EADDRNOTAVAIL)
		err = connect_qp(qp, id, offer, true);
	if (err)
		kfree(offer);
	return err;
}

static int connect_found(struct weft_qp *qp, struct iw_cm_id *id, struct iw_cm_conn_param *p)
{
	struct weft_offer *offer;
	unsigned int noio;
	int err;

	offer = make_offer(qp->dev, p);
	if (IS_ERR(offer))
		return PTR_ERR(offer);
	noio = weft_lock_noio(&qp->state_lock);
	err = connect_qp_somehow(qp, id, offer);
	weft_unlock_noio(&qp->state_lock, noio);
	return err;
}

/* Must not wait: rdma_cm holds locks that destroy needs. */
int weft_cm_connect(struct iw_cm_id *id, struct iw_cm_conn_param *p)
{
	struct weft_qp *qp;
	int err;

	if (!weft_cm_family_ok(id))
		return -EAFNOSUPPORT;
	qp = weft_access_qp(to_weft_dev(id->device), p->qpn);
	if (IS_ERR(qp))
		return PTR_ERR(qp);
	err = connect_found(qp, id, p);
	weft_qp_drop(qp);
	return err;
}
