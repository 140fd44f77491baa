// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The responder: listeners and their children, iw_accept and iw_reject. Runs under the
 * connection's mutex, as cm.c explains.
 */
#include <net/tcp.h>

#include "cm.h"
#include "inject.h"

/* Connections that a listener accepts in one run. */
#define ACCEPT_ROUND	16
/* Retry after there was no memory to accept. */
#define ACCEPT_RETRY_MS	100

/* Did anything arrive before our callbacks were installed? */
static bool is_readable(const struct sock *sk)
{
	return !skb_queue_empty_lockless(&sk->sk_receive_queue) || sk->sk_state != TCP_ESTABLISHED;
}

static void discard_socket(struct socket *sock)
{
	sock_no_linger(sock->sk);
	sock_release(sock);
}

/* A connection that TCP has accepted. It is served once there is something to read. */
static void adopt(struct weft_conn *listener, struct socket *sock)
{
	struct mem_cgroup *before = weft_conn_pays(listener);
	struct weft_conn *conn = weft_conn_new(listener->dev, WEFT_CONN_RESPONDER, weft_cm_work);

	weft_conn_paid(before);
	if (IS_ERR(conn)) {
		discard_socket(sock);
		return;
	}
	weft_limit_hold_as(conn, listener);
	weft_conn_join_parent(conn, listener);
	weft_cm_join_listener(conn, listener);
	if (!weft_sock_adopt(conn, listener, sock)) {
		discard_socket(sock);
		weft_cm_leave_listener(conn);
		weft_cm_give_up(conn);
		weft_cm_settle(conn);
		return;
	}
	weft_cm_configure(conn);
	weft_link_await_request(&conn->link, weft_conn_now());
	weft_limit_update(conn);
	weft_conn_arm(conn);
	if (is_readable(conn->sk))
		weft_startup_enqueue(conn);
	/* Its worker may free it before this returns. The mutex must outlive that. */
	weft_conn_get(conn);
	mutex_unlock(&conn->mutex);
	weft_conn_put(conn);
}

/*
 * 0: accepted one; -EAGAIN: none is waiting; -EBUSY: too many are being evicted; else: no memory.
 */
static int accept_one(struct weft_conn *listener)
{
	struct socket *sock;
	int err;

	if (weft_limit_is_full(listener->dev))
		return -EBUSY;
	do
		err = kernel_accept(listener->sock, &sock, O_NONBLOCK);
	while (err == -ECONNABORTED);
	if (!err)
		adopt(listener, sock);
	return err;
}

/*
 * The backlog is the ULP's, and limits only the requests reported to it. Half-open connections are
 * accepted as they arrive, so that silent peers do not keep others out. The device caps them
 * (conn_limits.c), and each ends at its deadline.
 */
void weft_cm_listening(struct weft_conn *conn)
{
	int err = 0;
	u32 n;

	conn->link.deadline = 0;
	for (n = 0; n < ACCEPT_ROUND && !err; n++)
		err = accept_one(conn);
	/* More may wait, or there was no memory: no callback will follow. */
	if (err != -EAGAIN)
		weft_link_set_deadline(&conn->link, weft_conn_now(),
				       err && err != -EBUSY ? ACCEPT_RETRY_MS : 0);
	weft_startup_serve(conn);
	weft_cm_ask_waiting(conn);
}

/* Sends the Reply and enters Full Operation, without dropping the socket's lock in between. */
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
static weft_injectable int accept_qp(struct weft_conn *conn, struct weft_qp *qp,
				     struct iw_cm_id *id, const struct iw_cm_conn_param *p)
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
ALLOW_ERROR_INJECTION(accept_qp, ERRNO);

/* The ULP could not accept: rejects the peer if it still waits. */
static void accept_failed(struct weft_conn *conn)
{
	struct weft_cm_view v;

	weft_cm_drop_qp(conn);
	weft_cm_begin(conn, &v);
	weft_cm_end(conn, &v, weft_link_accept_failed(&conn->link, &v.tcp, v.now));
}

/* @qp: of the caller's, or why there is none. */
static int accept_with(struct weft_conn *conn, struct weft_qp *qp, struct iw_cm_id *id,
		       const struct iw_cm_conn_param *p)
{
	unsigned int noio = memalloc_noio_save();
	int err = PTR_ERR_OR_ZERO(qp);

	if (!IS_ERR(qp))
		mutex_lock(&qp->state_lock);
	mutex_lock(&conn->mutex);
	if (!err)
		err = accept_qp(conn, qp, id, p);
	if (err && conn->link.state != WEFT_LINK_DEAD)
		accept_failed(conn);
	mutex_unlock(&conn->mutex);
	if (!IS_ERR(qp))
		mutex_unlock(&qp->state_lock);
	memalloc_noio_restore(noio);
	return err;
}

int weft_cm_accept(struct iw_cm_id *id, struct iw_cm_conn_param *p)
{
	struct weft_conn *conn = weft_cm_take_request(id);
	struct weft_qp *qp;
	int err;

	if (!conn)
		return -ECONNRESET;
	qp = weft_access_qp(to_weft_dev(id->device), p->qpn);
	err = accept_with(conn, qp, id, p);
	if (!IS_ERR(qp))
		weft_qp_drop(qp);
	weft_conn_wake_worker(conn, WEFT_CEV_WAKE);
	weft_conn_put(conn);
	return err;
}

static void refuse_request(struct weft_conn *conn, const void *pd, u32 pd_len)
{
	struct weft_cm_view v;

	weft_cm_begin(conn, &v);
	weft_cm_end(conn, &v, weft_link_reject(&conn->link, pd, pd_len, &v.tcp, v.now));
}

int weft_cm_reject(struct iw_cm_id *id, const void *pdata, u8 len)
{
	struct weft_conn *conn = weft_cm_take_request(id);
	unsigned int noio;
	int err = 0;

	if (!conn)
		return -ECONNRESET;
	noio = weft_lock_noio(&conn->mutex);
	if (conn->link.state != WEFT_LINK_REQUESTED)
		err = -ECONNRESET;
	else if (!weft_cm_ask_again(conn, pdata))
		refuse_request(conn, pdata, len);
	weft_unlock_noio(&conn->mutex, noio);
	weft_conn_wake_worker(conn, WEFT_CEV_WAKE);
	weft_conn_put(conn);
	return err;
}

/* The new listener's mutex has been held since it was created. */
static weft_injectable int create_listener(struct weft_device *dev, struct iw_cm_id *id,
					   int backlog)
{
	struct weft_conn *conn;
	int err;

	if (!weft_access_may_listen(dev))
		return -ENODEV;
	conn = weft_conn_new(dev, WEFT_CONN_LISTENER, weft_cm_work);
	if (IS_ERR(conn))
		return PTR_ERR(conn);
	weft_backlog_init(&conn->backlog, max(backlog, 1), WEFT_CM_ASK_AGAIN_MS);
	conn->user = weft_access_is_user();
	err = weft_limit_hold(conn);
	if (!err)
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
ALLOW_ERROR_INJECTION(create_listener, ERRNO);

int weft_cm_create_listen(struct iw_cm_id *id, int backlog)
{
	unsigned int noio;
	int err;

	if (!weft_cm_family_ok(id))
		return -EAFNOSUPPORT;
	noio = memalloc_noio_save();
	err = create_listener(to_weft_dev(id->device), id, backlog);
	memalloc_noio_restore(noio);
	/*
	 * A wildcard listen fails unless it succeeds on every device. A device that is not the
	 * caller's, or whose netdev is gone, cannot get connections: report success.
	 */
	return err == -ENODEV && weft_sock_is_wildcard(&id->local_addr) ? 0 : err;
}

/*
 * Sets @event for all children of @listener, or only for those not reported to the ULP yet. Works
 * in pieces: no child is added, and each moves to the list's end once it is woken.
 */
static void wake_children(struct weft_conn *listener, int event, bool unheard_only)
{
	struct weft_device *dev = listener->dev;
	struct weft_conn *conn;
	u32 left;

	spin_lock_bh(&dev->conns_lock);
	for (left = listener->heads; left; left--) {
		conn = list_first_entry_or_null(&listener->family, struct weft_conn, family);
		if (!conn)
			break;
		list_move_tail(&conn->family, &listener->family);
		if (!unheard_only || READ_ONCE(conn->listener) == listener)
			weft_conn_wake_worker(conn, event);
		if (left % WEFT_WAKE_AT_ONCE == 0) {
			spin_unlock_bh(&dev->conns_lock);
			cond_resched();
			spin_lock_bh(&dev->conns_lock);
		}
	}
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
	/* Also if the worker has already ended the listener: its children are still in start-up. */
	wake_children(conn, WEFT_CEV_KILL, true);
	wait_event(weft_conns_gone, READ_ONCE(conn->gone) && !atomic_read(&conn->children));
	wake_children(conn, WEFT_CEV_ORPHAN, false);
	weft_cm_put_id(conn);
	weft_conn_put(conn);
	return 0;
}
