// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Requests for the ULP: their order, and those beyond its backlog. Under the connection's mutex,
 * as in cm.c.
 *
 * A listener's backlog is the number of unanswered requests that its ULP takes (core/backlog.h).
 * The ULP does not report when it has room again, so beyond the backlog one request is reported
 * every WEFT_CM_ASK_AGAIN_MS and at each answer. iw_cm returns an error when it is full itself.
 * When its user is full, iw_cm rejects the request itself: the request then returns to its old
 * place. A request waits for startup_ms in all.
 */
#include <linux/sched.h>

#include "cm.h"

/* ---- the table ---- */

/*
 * The requests reported to the ULP, by the number that iw_cm gets for each (provider_data), each
 * with a reference. iw_cm may drop a request silently, if its listener is destroyed or memory is
 * short. So it gets a number instead of a pointer, and a request that ends removes itself from the
 * table.
 */
static DEFINE_XARRAY_ALLOC1(requests);
static u32 next_request;

static int cm_list_request(struct weft_conn *conn)
{
	int err = xa_alloc_cyclic(&requests, &conn->request, conn, XA_LIMIT(1, U32_MAX),
				  &next_request, GFP_KERNEL);

	if (err < 0)
		return err;
	weft_conn_get(conn);
	spin_lock_bh(&conn->dev->conns_lock);
	conn->beyond = weft_backlog_report(&conn->parent->backlog);
	spin_unlock_bh(&conn->dev->conns_lock);
	return 0;
}

/* No longer in the table: the ULP has room for another. */
static void was_answered(struct weft_conn *conn)
{
	struct weft_conn *listener = conn->parent;

	spin_lock_bh(&listener->dev->conns_lock);
	weft_backlog_answered(&listener->backlog);
	spin_unlock_bh(&listener->dev->conns_lock);
	if (!list_empty(&listener->turn))
		weft_conn_wake_worker(listener, WEFT_CEV_WAKE);
}

struct weft_conn *weft_cm_take_request(const struct iw_cm_id *id)
{
	struct weft_conn *conn = xa_erase(&requests, (unsigned long)id->provider_data);

	if (conn)
		was_answered(conn);
	return conn;
}

void weft_cm_withdraw_request(struct weft_conn *conn)
{
	if (!conn->request || xa_cmpxchg(&requests, conn->request, conn, NULL, 0) != conn)
		return;
	was_answered(conn);
	weft_conn_put(conn);
}

/* ---- the queue ---- */

static bool comes_before(const struct weft_conn *a, const struct weft_conn *b)
{
	return a->place < b->place;
}

/* conns_lock. Queues @conn last, or at its old place if it has been reported before. */
static void take_place(struct weft_conn *conn, struct weft_conn *listener)
{
	struct weft_conn *before;

	if (!conn->place)
		conn->place = weft_backlog_place(&listener->backlog);
	list_for_each_entry_reverse(before, &listener->turn, turn)
		if (comes_before(before, conn))
			break;
	list_add(&conn->turn, &before->turn);
}

static void queue_up(struct weft_conn *conn)
{
	spin_lock_bh(&conn->dev->conns_lock);
	take_place(conn, conn->listener);
	spin_unlock_bh(&conn->dev->conns_lock);
}

static bool is_first(const struct weft_conn *conn)
{
	bool first;

	spin_lock_bh(&conn->dev->conns_lock);
	first = conn->listener->turn.next == &conn->turn;
	spin_unlock_bh(&conn->dev->conns_lock);
	return first;
}

/* With a reference, or NULL. */
static struct weft_conn *first_of(struct weft_conn *listener)
{
	struct weft_conn *conn;

	spin_lock_bh(&listener->dev->conns_lock);
	conn = list_first_entry_or_null(&listener->turn, struct weft_conn, turn);
	if (conn)
		weft_conn_get(conn);
	spin_unlock_bh(&listener->dev->conns_lock);
	return conn;
}

void weft_cm_join_listener(struct weft_conn *conn, struct weft_conn *listener)
{
	weft_conn_get(listener);
	atomic_inc(&listener->children);
	conn->listener = listener;
}

void weft_cm_leave_listener(struct weft_conn *conn)
{
	struct weft_conn *listener = conn->listener;
	bool is_queued;

	if (!listener)
		return;
	spin_lock_bh(&conn->dev->conns_lock);
	conn->listener = NULL;
	list_del_init(&conn->turn);
	is_queued = !list_empty(&conn->startup_node);
	list_del_init(&conn->startup_node);
	spin_unlock_bh(&conn->dev->conns_lock);
	if (is_queued)
		weft_conn_wake_worker(conn, WEFT_CEV_WAKE);
	atomic_dec(&listener->children);
	wake_up_all(&weft_conns_gone);
	weft_conn_put(listener);
}

/* Puts it back at its old place. False: the listener is closed. */
static bool rejoin_listener(struct weft_conn *conn)
{
	struct weft_conn *listener = conn->parent;
	bool ok;

	spin_lock_bh(&conn->dev->conns_lock);
	/* Once it is hushed, its children are looked up under this lock. */
	ok = !READ_ONCE(listener->hushed) && !listener->gone;
	if (ok) {
		weft_cm_join_listener(conn, listener);
		take_place(conn, listener);
	}
	spin_unlock_bh(&conn->dev->conns_lock);
	return ok;
}

/* ---- asking ---- */

static void pause_asking(struct weft_conn *listener)
{
	spin_lock_bh(&listener->dev->conns_lock);
	weft_backlog_pause(&listener->backlog, weft_conn_now());
	spin_unlock_bh(&listener->dev->conns_lock);
}

/* The listener's id exists until it is hushed. */
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

/* 0: the ULP has the request; -ECONNABORTED: the listener is closed; else: retry later. */
static int ask(struct weft_conn *conn)
{
	struct weft_conn *listener = conn->listener;
	int err;

	if (!weft_backlog_may_report(&listener->backlog, weft_conn_now()))
		return -EAGAIN;
	err = cm_list_request(conn);
	if (!err) {
		err = tell_request(conn);
		if (err)
			weft_cm_withdraw_request(conn);
	}
	if (err || conn->beyond)
		pause_asking(listener);
	return err;
}

/* False: too many are waiting, or this one has timed out. */
static bool wait_for_turn(struct weft_conn *conn)
{
	if (!weft_limit_may_wait(conn) ||
	    !weft_link_ulp_is_full(&conn->link, weft_conn_now()))
		return false;
	weft_limit_update(conn);
	weft_conn_wake_worker(conn->listener, WEFT_CEV_WAKE);
	return true;
}

static void was_asked(struct weft_conn *conn, int err)
{
	if (!err) {
		weft_link_ulp_was_asked(&conn->link);
		weft_cm_leave_listener(conn);
		weft_limit_update(conn);
	} else if (err == -ECONNABORTED || !wait_for_turn(conn)) {
		weft_cm_kill(conn);
	}
}

void weft_cm_ask_ulp(struct weft_conn *conn)
{
	queue_up(conn);
	was_asked(conn, is_first(conn) ? ask(conn) : -EAGAIN);
}

/* Reports @conn's request, if @listener is still its listener. True: no error. */
static bool ask_for(struct weft_conn *conn, struct weft_conn *listener)
{
	int err = 0;

	mutex_lock_nested(&conn->mutex, SINGLE_DEPTH_NESTING);
	if (conn->listener == listener) {
		err = ask(conn);
		if (!err || err == -ECONNABORTED)
			was_asked(conn, err);
	}
	mutex_unlock(&conn->mutex);
	if (err == -ECONNABORTED)
		weft_conn_wake_worker(conn, WEFT_CEV_WAKE);
	return !err;
}

void weft_cm_ask_waiting(struct weft_conn *listener)
{
	struct weft_conn *conn;
	u64 now, at;
	bool asked;

	do {
		conn = first_of(listener);
		if (!conn)
			return;
		asked = ask_for(conn, listener);
		weft_conn_put(conn);
	} while (asked);
	now = weft_conn_now();
	at = READ_ONCE(listener->backlog.retry_at);
	if (!listener->link.deadline || listener->link.deadline > at)
		weft_link_set_deadline(&listener->link, now, at > now ? at - now : 0);
}

/*
 * iw_cm does not say who rejects. It does so itself, in a thread of the kernel and with no private
 * data at all (NULL), if rdma_ucm has no room for the request. A program rejects with a pointer,
 * to no octets perhaps, or closes its id: then iw_cm passes NULL, but in the program's context.
 * A kernel consumer has no backlog that could be full: its answer is final.
 */
static bool was_not_heard(const struct weft_conn *conn, const void *pd)
{
	return conn->parent->user && conn->beyond && !pd && current->flags & PF_KTHREAD;
}

bool weft_cm_ask_again(struct weft_conn *conn, const void *pd)
{
	if (!was_not_heard(conn, pd) || !rejoin_listener(conn))
		return false;
	pause_asking(conn->listener);
	if (wait_for_turn(conn))
		return true;
	weft_cm_leave_listener(conn);
	return false;
}
