// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The initiator: iw_connect, TCP's handshake, the MPA Request and its Reply.
 * Under the connection's mutex, as cm.c says.
 */
#include <linux/slab.h>
#include <net/tcp.h>

#include "cm.h"

/* Results of a step that are no errno. */
#define STEP_WAIT	1
#define STEP_RETRY_V1	2

/*
 * TCP's part: three SYNs by default. Not longer, since iw_cm has the id's
 * destroyer wait for this, unkillable.
 */
static unsigned int handshake_ms(const struct weft_conn *conn)
{
	return READ_ONCE(conn->dev->startup_timeout_ms) * 2 / 5;
}

static struct weft_offer *make_offer(struct weft_device *dev, const struct iw_cm_conn_param *p)
{
	struct weft_offer *o = kzalloc(sizeof(*o), GFP_KERNEL);

	if (!o)
		return ERR_PTR(-ENOMEM);
	weft_cm_base_cfg(dev, &o->cfg, p->ird, p->ord);
	o->cfg.p2p = o->cfg.rev >= 2 && o->cfg.rtr;
	if (p->private_data_len > weft_cm_pd_max(o->cfg.rev)) {
		kfree(o);
		return ERR_PTR(-EINVAL);
	}
	o->pd_len = p->private_data_len;
	memcpy(o->pd, p->private_data, o->pd_len);
	return o;
}

static int send_request(struct weft_conn *conn)
{
	struct weft_offer *o = conn->offer;
	u8 frame[WEFT_MPA_FRAME_MAX];
	u32 len;
	int err;

	weft_mpa_request(&o->cfg, o->pd_len, &o->req);
	len = weft_mpa_frame_write(&o->req, o->pd, frame, sizeof(frame));
	weft_conn_lock(conn);
	err = weft_conn_send_frame(conn, frame, len);
	weft_conn_unlock(conn);
	return err;
}

/* Why TCP did not connect, as iw_cm has it. Socket lock. */
static int connect_error(struct weft_conn *conn)
{
	int err = sock_error(conn->sk);

	switch (err) {
	case 0:
		return -ECONNRESET;
	case -EHOSTUNREACH:
	case -ENETUNREACH:
		return -ETIMEDOUT;
	default:
		return err;
	}
}

/*
 * The Reply is there: 0 (Full Operation), STEP_RETRY_V1 or why not. R=1 is
 * -ECONNREFUSED, with private data. Socket lock.
 */
static int take_reply(struct weft_conn *conn)
{
	struct weft_offer *o = conn->offer;
	const struct weft_mpa_frame *rep = &conn->st.frame;
	struct weft_mpa_agreed agreed;
	enum weft_err err;
	bool v1;

	err = weft_mpa_reply_check(&o->cfg, &o->req, rep, &agreed, &v1);
	if (rep->pd_len > WEFT_CM_PD_MAX)
		return -EMSGSIZE;
	if (!err && rep->reject)
		return -ECONNREFUSED;
	if (v1)
		return STEP_RETRY_V1;
	if (err == WEFT_E_MPA_STARTUP)
		return -EPROTO;
	if (weft_cm_alloc_depths(conn, &agreed))
		return -ENOMEM;
	if (conn->qp->core.state != WEFT_QPS_IDLE)
		return -ECONNABORTED;
	/* The stream keeps the Reply's private data no longer; ours has been sent. */
	o->pd_len = rep->pd_len;
	memcpy(o->pd, conn->st.pd, o->pd_len);
	weft_cm_start_qp(conn, &agreed);
	if (!err)
		return 0;
	/* RFC 6581 §9.1, §9.2: these two are told with a Terminate. */
	weft_qpc_fail(&conn->qp->core, err, NULL);
	return -EPROTO;
}

/*
 * RFC 6581 §10: a peer of RFC 5044 may close on an enhanced Request, or answer
 * with revision 1: it is asked again, in its own words.
 */
static int no_reply(struct weft_conn *conn, bool timeout)
{
	u8 tcp = conn->sk->sk_state;

	if (conn->rx_event == WEFT_RX_ERROR)
		return -EPROTO;
	if (conn->qp->core.state != WEFT_QPS_IDLE)
		return -ECONNABORTED;
	if (timeout)
		return -ETIMEDOUT;
	if (tcp == TCP_ESTABLISHED)
		return STEP_WAIT;
	return conn->offer->req.enhanced && !conn->st.rx_staged ? STEP_RETRY_V1 : -ECONNRESET;
}

static void connected(struct weft_conn *conn)
{
	struct weft_offer *o = conn->offer;
	int err;

	weft_conn_set_state(conn, WEFT_CONN_OPEN);
	conn->deadline = 0;
	conn->offer = NULL;
	/* A FIN or RST right behind the Reply has called already. */
	weft_conn_post(conn, WEFT_CEV_WAKE);
	err = weft_cm_tell(conn, conn->id, IW_CM_EVENT_CONNECT_REPLY, 0, o->pd, o->pd_len);
	kfree(o);
	if (!err)
		return;
	weft_cm_connect_failed(conn, -ENOMEM, NULL, 0);
	weft_cm_start_closing(conn);
}

/* A new connection, with revision 1, takes the place of @old. */
static int reconnect_v1(struct weft_conn *old)
{
	struct weft_conn *conn = weft_conn_new(old->dev, WEFT_CONN_CONNECTING);
	int err;

	if (IS_ERR(conn))
		return PTR_ERR(conn);
	err = weft_sock_open(conn, old->sk->sk_family, old->id);
	if (!err)
		err = weft_sock_connect(conn, old->id, true);
	if (err) {
		weft_cm_die(conn);
	} else {
		conn->offer = old->offer;
		conn->offer->cfg.rev = 1;
		conn->offer->cfg.p2p = false;
		conn->id = old->id;
		conn->deadline = old->deadline;
		weft_conn_hand_over(old, conn);
		old->offer = NULL;
		old->id = NULL;
	}
	weft_cm_settle(conn);
	return err;
}

void weft_cm_await_reply(struct weft_conn *conn, bool timeout)
{
	const struct weft_stream *st = &conn->st;
	bool terminate;
	int r;

	weft_conn_lock(conn);
	weft_conn_receive(conn);
	if (conn->rx_event == WEFT_RX_STARTUP)
		r = take_reply(conn);
	else
		r = no_reply(conn, timeout);
	/* What came behind the Reply. */
	if (!r)
		weft_conn_receive(conn);
	terminate = conn->qp->core.state == WEFT_QPS_TERM;
	weft_conn_unlock(conn);

	if (r == STEP_WAIT)
		return;
	if (!r) {
		connected(conn);
		return;
	}
	if (r == STEP_RETRY_V1) {
		r = reconnect_v1(conn);
		if (!r) {
			weft_cm_die(conn);
			return;
		}
	}
	if (r == -ECONNREFUSED)
		weft_cm_connect_failed(conn, r, st->pd, st->frame.pd_len);
	else
		weft_cm_connect_failed(conn, r, NULL, 0);
	/* With words to say, or politely: RFC 5044 §7.1.2 (3). Else RST. */
	if (terminate || r == -ECONNREFUSED)
		weft_cm_start_closing(conn);
	else
		weft_cm_die(conn);
}

void weft_cm_connecting(struct weft_conn *conn, bool timeout)
{
	int err = 0;
	u8 tcp;

	weft_conn_lock(conn);
	tcp = conn->sk->sk_state;
	if (tcp == TCP_CLOSE)
		err = connect_error(conn);
	else if (conn->qp->core.state != WEFT_QPS_IDLE)
		err = -ECONNABORTED;
	else if (timeout)
		err = -ETIMEDOUT;
	weft_conn_unlock(conn);

	if (!err && (tcp == TCP_SYN_SENT || tcp == TCP_SYN_RECV))
		return;
	if (!err)
		err = send_request(conn);
	if (err) {
		weft_cm_connect_failed(conn, err, NULL, 0);
		weft_cm_die(conn);
		return;
	}
	weft_conn_set_state(conn, WEFT_CONN_AWAIT_REPLY);
	weft_cm_set_deadline(conn, READ_ONCE(conn->dev->startup_timeout_ms));
	weft_cm_await_reply(conn, false);
}

/* conn->mutex and qp->state_lock. */
static int start_connecting(struct weft_conn *conn, struct weft_qp *qp, struct iw_cm_id *id,
			    bool any_port)
{
	int err = weft_sock_open(conn, id->local_addr.ss_family, id);

	if (err)
		return err;
	weft_conn_lock(conn);
	err = weft_conn_attach(conn, qp);
	weft_conn_unlock(conn);
	if (err)
		return err;
	weft_cm_set_deadline(conn, handshake_ms(conn));
	err = weft_sock_connect(conn, id, any_port);
	if (err) {
		weft_cm_drop_qp(conn);
		return err;
	}
	id->add_ref(id);
	conn->id = id;
	return 0;
}

/* The connection has @offer if it begins, else the caller. */
static int connect_qp(struct weft_qp *qp, struct iw_cm_id *id, struct weft_offer *offer,
		      bool any_port)
{
	struct weft_conn *conn = weft_conn_new(qp->dev, WEFT_CONN_CONNECTING);
	int err;

	if (IS_ERR(conn))
		return PTR_ERR(conn);
	conn->offer = offer;
	err = start_connecting(conn, qp, id, any_port);
	if (err) {
		conn->offer = NULL;
		weft_cm_die(conn);
	}
	weft_cm_settle(conn);
	return err;
}

/*
 * rdma_cm knows of no connections but its own, and may choose a port that has one to this peer
 * already, or one that is still closing. The socket is bound to it: another then, any port.
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

/* Never waits: rdma_cm holds locks that a destroy needs. */
int weft_cm_connect(struct iw_cm_id *id, struct iw_cm_conn_param *p)
{
	struct weft_device *dev = to_weft_dev(id->device);
	struct weft_offer *offer;
	struct weft_qp *qp;
	int err;

	if (!weft_cm_family_ok(id))
		return -EAFNOSUPPORT;
	qp = weft_qp_find(dev, p->qpn);
	if (!qp)
		return -EINVAL;
	offer = make_offer(dev, p);
	if (IS_ERR(offer)) {
		weft_qp_drop(qp);
		return PTR_ERR(offer);
	}
	mutex_lock(&qp->state_lock);
	err = connect_qp_somehow(qp, id, offer);
	mutex_unlock(&qp->state_lock);
	weft_qp_drop(qp);
	return err;
}

