// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The responder: listeners and their children, the MPA Request, iw_accept and
 * iw_reject. Under the connection's mutex, as cm.c says.
 */
#include <net/tcp.h>

#include "cm.h"

/* Connections that a listener takes in one run. */
#define ACCEPT_ROUND	16
/* When there was no memory to accept. */
#define ACCEPT_RETRY_MS	100

/*
 * Requests that the ULP has before it, under the names that iw_cm knows them by
 * (provider_data), each with a reference. iw_cm may drop a request and tell
 * nobody, when its listener is destroyed and when it has no memory: so it gets
 * no pointer, and a request that ends takes itself off the table.
 */
static DEFINE_XARRAY_ALLOC1(requests);
static u32 next_request;

static int request_offer(struct weft_conn *conn)
{
	int err = xa_alloc_cyclic(&requests, &conn->request, conn, XA_LIMIT(1, U32_MAX),
				  &next_request, GFP_KERNEL);

	if (err < 0)
		return err;
	weft_conn_get(conn);
	return 0;
}

/* iw_cm's answer is there: the connection, with the table's reference, if it lives. */
static struct weft_conn *request_take(const struct iw_cm_id *id)
{
	return xa_erase(&requests, (unsigned long)id->provider_data);
}

void weft_cm_withdraw_request(struct weft_conn *conn)
{
	if (conn->request && xa_cmpxchg(&requests, conn->request, conn, NULL, 0) == conn)
		weft_conn_put(conn);
}

void weft_cm_leave_listener(struct weft_conn *conn)
{
	struct weft_conn *listener = conn->listener;

	if (!listener)
		return;
	conn->listener = NULL;
	atomic_dec(&listener->children);
	wake_up_all(&weft_conns_gone);
	weft_conn_wake_worker(listener, WEFT_CEV_WAKE);
	weft_conn_put(listener);
}

/* The listener's id is there as long as it is not hushed. */
static int tell_request(struct weft_conn *conn)
{
	struct weft_conn *listener = conn->listener;
	const struct weft_stream *st = &conn->link.st;
	unsigned long flags;
	int err = -ECONNABORTED;

	spin_lock_irqsave(&listener->lock, flags);
	if (!listener->hushed)
		err = weft_cm_tell(conn, listener->id, IW_CM_EVENT_CONNECT_REQUEST, 0, st->pd,
			   st->frame.pd_len);
	spin_unlock_irqrestore(&listener->lock, flags);
	return err;
}

void weft_cm_ask_ulp(struct weft_conn *conn)
{
	if (request_offer(conn) || tell_request(conn))
		weft_cm_kill(conn);
}

/* Did something come before our callbacks were there? */
static bool has_news(const struct sock *sk)
{
	return !skb_queue_empty_lockless(&sk->sk_receive_queue) || sk->sk_state != TCP_ESTABLISHED;
}

static void discard(struct socket *sock)
{
	sock_no_linger(sock->sk);
	sock_release(sock);
}

/*
 * A connection that TCP has accepted. Its worker runs when there is something to
 * read, and not before: so requests are told in the order in which they come.
 */
static void adopt(struct weft_conn *listener, struct socket *sock)
{
	struct mem_cgroup *before = weft_conn_pays(listener);
	struct weft_conn *conn = weft_conn_new(listener->dev, WEFT_CONN_RESPONDER, weft_cm_work);

	weft_conn_paid(before);
	if (IS_ERR(conn)) {
		discard(sock);
		return;
	}
	if (!weft_sock_adopt(conn, listener, sock)) {
		discard(sock);
		weft_cm_give_up(conn);
		weft_cm_settle(conn);
		return;
	}
	weft_conn_get(listener);
	atomic_inc(&listener->children);
	conn->listener = listener;
	conn->parent = listener;
	weft_cm_configure(conn);
	weft_link_await_request(&conn->link, weft_conn_now());
	if (has_news(conn->sk)) {
		weft_cm_settle(conn);
	} else {
		weft_conn_arm(conn);
		mutex_unlock(&conn->mutex);
	}
}

/*
 * The backlog bounds those that have not yet said what they want; others wait
 * in TCP's queue, bounded too. Each leaves within its deadline.
 */
void weft_cm_listening(struct weft_conn *conn)
{
	struct socket *sock;
	u32 n;
	int err;

	conn->link.deadline = 0;
	for (n = 0; n < ACCEPT_ROUND; n++) {
		if (atomic_read(&conn->children) >= conn->backlog)
			return;
		err = kernel_accept(conn->sock, &sock, O_NONBLOCK);
		if (err == -EAGAIN)
			return;
		if (!err)
			adopt(conn, sock);
		else if (err != -ECONNABORTED)
			break;
	}
	/* More may wait, or there was no memory, and nobody will tell us again. */
	weft_link_set_deadline(&conn->link, weft_conn_now(),
			       n == ACCEPT_ROUND ? 0 : ACCEPT_RETRY_MS);
}

/* The Reply and Full Operation, in one go under the socket's lock. */
static int send_reply(struct weft_conn *conn, struct weft_qp *qp, const struct iw_cm_conn_param *p)
{
	struct weft_cm_view v;
	int err;

	weft_cm_begin(conn, &v);
	weft_cm_read(conn, &v);
	err = weft_conn_attach(conn, qp);
	if (!err)
		err = weft_link_accept(&conn->link, p->ird, p->ord, p->private_data,
				       p->private_data_len, &v.tcp, v.now);
	weft_cm_end(conn, &v, 0);
	return err;
}

/* conn->mutex and qp->state_lock. An error precludes any event. */
static int accept_qp(struct weft_conn *conn, struct weft_qp *qp, struct iw_cm_id *id,
		     const struct iw_cm_conn_param *p)
{
	int err;

	if (conn->link.state != WEFT_LINK_REQUESTED)
		return -ECONNRESET;
	err = send_reply(conn, qp, p);
	if (!err)
		err = weft_cm_tell(conn, id, IW_CM_EVENT_ESTABLISHED, 0, NULL, 0);
	if (err)
		return err;
	id->add_ref(id);
	conn->id = id;
	return 0;
}

/* The ULP could not accept: the peer is told if it still waits. */
static void accept_failed(struct weft_conn *conn)
{
	struct weft_cm_view v;

	weft_cm_drop_qp(conn);
	weft_cm_begin(conn, &v);
	weft_cm_end(conn, &v, weft_link_accept_failed(&conn->link, &v.tcp, v.now));
}

static int accept_with(struct weft_conn *conn, struct weft_qp *qp, struct iw_cm_id *id,
		       const struct iw_cm_conn_param *p)
{
	int err = -EINVAL;

	if (qp)
		mutex_lock(&qp->state_lock);
	mutex_lock(&conn->mutex);
	if (qp)
		err = accept_qp(conn, qp, id, p);
	if (err && conn->link.state != WEFT_LINK_DEAD)
		accept_failed(conn);
	mutex_unlock(&conn->mutex);
	if (qp)
		mutex_unlock(&qp->state_lock);
	return err;
}

int weft_cm_accept(struct iw_cm_id *id, struct iw_cm_conn_param *p)
{
	struct weft_conn *conn = request_take(id);
	struct weft_qp *qp;
	int err;

	if (!conn)
		return -ECONNRESET;
	qp = weft_qp_find_callers(to_weft_dev(id->device), p->qpn);
	err = accept_with(conn, qp, id, p);
	if (qp)
		weft_qp_drop(qp);
	weft_conn_wake_worker(conn, WEFT_CEV_WAKE);
	weft_conn_put(conn);
	return err;
}

static void refuse(struct weft_conn *conn, const void *pd, u32 pd_len)
{
	struct weft_cm_view v;

	weft_cm_begin(conn, &v);
	weft_cm_end(conn, &v, weft_link_reject(&conn->link, pd, pd_len, &v.tcp, v.now));
}

int weft_cm_reject(struct iw_cm_id *id, const void *pdata, u8 len)
{
	struct weft_conn *conn = request_take(id);
	int err = 0;

	if (!conn)
		return -ECONNRESET;
	mutex_lock(&conn->mutex);
	if (conn->link.state == WEFT_LINK_REQUESTED)
		refuse(conn, pdata, len);
	else
		err = -ECONNRESET;
	mutex_unlock(&conn->mutex);
	weft_conn_wake_worker(conn, WEFT_CEV_WAKE);
	weft_conn_put(conn);
	return err;
}

int weft_cm_create_listen(struct iw_cm_id *id, int backlog)
{
	struct weft_device *dev = to_weft_dev(id->device);
	struct weft_conn *conn;
	int err;

	if (!weft_cm_family_ok(id))
		return -EAFNOSUPPORT;
	/* Who listens everywhere is made to listen by every device, or else by none. */
	if (!weft_caller_may_listen(dev))
		return weft_sock_is_wildcard(&id->local_addr) ? 0 : -ENODEV;
	conn = weft_conn_new(dev, WEFT_CONN_LISTENER, weft_cm_work);
	if (IS_ERR(conn))
		return PTR_ERR(conn);
	conn->backlog = max(backlog, 1);
	conn->user = weft_caller_is_user();
	err = weft_sock_open(conn, id->local_addr.ss_family, id);
	if (!err)
		err = weft_sock_listen(conn, id, backlog);
	if (err) {
		weft_cm_give_up(conn);
	} else {
		id->add_ref(id);
		conn->id = id;
		id->provider_data = conn;
		weft_conn_get(conn);
	}
	weft_cm_settle(conn);
	return err;
}

/* Those that the ULP has not seen yet go with their listener. */
static void kill_children(struct weft_conn *listener)
{
	struct weft_device *dev = listener->dev;
	struct weft_conn *conn;

	spin_lock_bh(&dev->conns_lock);
	list_for_each_entry(conn, &dev->conns, node)
		if (READ_ONCE(conn->listener) == listener)
			weft_conn_wake_worker(conn, WEFT_CEV_KILL);
	spin_unlock_bh(&dev->conns_lock);
}

/* The others are told that it went. */
static void orphan_children(struct weft_device *dev, const struct weft_conn *listener)
{
	struct weft_conn *conn;

	spin_lock_bh(&dev->conns_lock);
	list_for_each_entry(conn, &dev->conns, node)
		if (READ_ONCE(conn->parent) == listener)
			weft_conn_wake_worker(conn, WEFT_CEV_ORPHAN);
	spin_unlock_bh(&dev->conns_lock);
}

int weft_cm_destroy_listen(struct iw_cm_id *id)
{
	struct weft_conn *conn = id->provider_data;

	if (!conn)
		return 0;
	id->provider_data = NULL;
	mutex_lock(&conn->mutex);
	spin_lock_irq(&conn->lock);
	conn->hushed = true;
	spin_unlock_irq(&conn->lock);
	weft_cm_give_up(conn);
	weft_cm_settle(conn);
	if (!READ_ONCE(conn->gone))
		kill_children(conn);
	wait_event(weft_conns_gone, READ_ONCE(conn->gone) && !atomic_read(&conn->children));
	orphan_children(to_weft_dev(id->device), conn);
	weft_cm_put_id(conn);
	weft_conn_put(conn);
	return 0;
}
