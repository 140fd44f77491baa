// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The life and death of a connection.
 *
 * A connection is linked to its device from creation to teardown, so that weft_conn_kill_all()
 * finds all of them, and counts in the network namespace of its socket (netns.c). Only its worker,
 * a single work item, ends it.
 *
 * Teardown has two steps. First, somebody makes the link DEAD under the mutex, after releasing the
 * QP, so that qp->conn no longer leads here. Second, the worker calls weft_conn_finish(): it stops
 * scheduling (dead), restores the callbacks, which waits for running ones, and waits for users
 * that came through qp->conn and for a scheduled bottom half (users). Then it closes the socket
 * without a timer and unlinks the connection. The memory is freed with the last reference; a
 * listener's provider_data has one, and so has a request's number in iw_cm (cm_passive.c).
 */
#include <linux/slab.h>

#include "conn.h"
#include "softirq.h"
#include "tcp.h"

DECLARE_WAIT_QUEUE_HEAD(weft_conns_gone);

static void free_stage(struct weft_conn *conn)
{
	u8 *chunk;

	while ((chunk = weft_stream_reclaim(&conn->link.st, true)))
		kfree(chunk);
}

static void unlink_conn(struct weft_conn *conn)
{
	struct weft_device *dev = conn->dev;
	const struct net *net = dev->net;

	spin_lock_bh(&dev->conns_lock);
	list_del(&conn->node);
	if (conn->parent) {
		list_del(&conn->family);
		conn->parent->heads--;
	}
	WRITE_ONCE(conn->gone, true);
	atomic_dec(&dev->num_cep);
	weft_limit_leave(conn);
	weft_startup_dequeue(conn);
	spin_unlock_bh(&dev->conns_lock);
	/* The device may be gone now. */
	weft_netns_leave(net);
}

void weft_conn_join_parent(struct weft_conn *conn, struct weft_conn *listener)
{
	weft_conn_get(listener);
	conn->parent = listener;
	spin_lock_bh(&conn->dev->conns_lock);
	list_add_tail(&conn->family, &listener->family);
	listener->heads++;
	spin_unlock_bh(&conn->dev->conns_lock);
}

void weft_conn_finish(struct weft_conn *conn)
{
	void *batch;

	spin_lock_irq(&conn->lock);
	conn->dead = true;
	spin_unlock_irq(&conn->lock);
	cancel_delayed_work(&conn->work);
	if (conn->sock)
		weft_sock_unhook(conn);
	weft_conn_leave(conn);
	wait_for_completion(&conn->idle);
	weft_conn_linger_exit(conn);
	if (conn->sock)
		weft_sock_close(conn);
	weft_sock_drop_spares(conn);
	free_stage(conn);
	batch = weft_batch_reclaim(&conn->link.batch, true);
	if (batch)
		weft_conn_reclaim_batch(batch, conn->link.batch.lent);
	unlink_conn(conn);
	weft_conn_put(conn);
}

static bool link_conn(struct weft_conn *conn)
{
	struct weft_device *dev = conn->dev;
	bool ok;

	spin_lock_bh(&dev->conns_lock);
	ok = !dev->dying;
	if (ok) {
		list_add_tail(&conn->node, &dev->conns);
		atomic_inc(&dev->num_cep);
		weft_netns_enter(dev->net);
	}
	spin_unlock_bh(&dev->conns_lock);
	return ok;
}

struct weft_conn *weft_conn_new(struct weft_device *dev, enum weft_conn_role role,
				work_func_t worker)
{
	struct weft_conn *conn = weft_conn_alloc();

	if (!conn)
		return ERR_PTR(-ENOMEM);
	refcount_set(&conn->users, 1);
	init_completion(&conn->idle);
	conn->dev = dev;
	conn->listening = role == WEFT_CONN_LISTENER;
	conn->unsettled = role == WEFT_CONN_INITIATOR;
	spin_lock_init(&conn->lock);
	mutex_init(&conn->mutex);
	INIT_DELAYED_WORK(&conn->work, worker);
	weft_conn_run_init(conn);
	weft_conn_linger_init(conn);
	atomic_set(&conn->children, 0);
	INIT_LIST_HEAD(&conn->limit_node);
	INIT_LIST_HEAD(&conn->startup_node);
	INIT_LIST_HEAD(&conn->startup_queue);
	INIT_LIST_HEAD(&conn->turn);
	INIT_LIST_HEAD(&conn->family);
	weft_link_init(&conn->link, role == WEFT_CONN_INITIATOR);
	/* Taken inside a listener's mutex, or that of the connection it replaces. */
	mutex_lock_nested(&conn->mutex, SINGLE_DEPTH_NESTING);
	if (link_conn(conn))
		return conn;
	mutex_unlock(&conn->mutex);
	weft_conn_put(conn);
	return ERR_PTR(-ENODEV);
}

static bool none_left(struct weft_device *dev)
{
	bool none;

	spin_lock_bh(&dev->conns_lock);
	none = list_empty(&dev->conns);
	spin_unlock_bh(&dev->conns_lock);
	return none;
}

void weft_conn_kill_all(struct weft_device *dev)
{
	struct weft_conn *conn;
	u32 left;

	/* No connection is added; each moves to the list's end once it is woken. */
	spin_lock_bh(&dev->conns_lock);
	for (left = atomic_read(&dev->num_cep); left; left--) {
		conn = list_first_entry_or_null(&dev->conns, struct weft_conn, node);
		if (!conn)
			break;
		list_move_tail(&conn->node, &dev->conns);
		weft_conn_wake_worker(conn, WEFT_CEV_KILL);
		if (left % WEFT_WAKE_AT_ONCE == 0) {
			spin_unlock_bh(&dev->conns_lock);
			cond_resched();
			spin_lock_bh(&dev->conns_lock);
		}
	}
	spin_unlock_bh(&dev->conns_lock);
}

void weft_conn_await_all(struct weft_device *dev)
{
	wait_event(weft_conns_gone, none_left(dev));
	weft_startup_stop(dev);
}

int weft_conn_init(void)
{
	int rv = weft_netns_init();

	if (rv)
		return rv;
	weft_softirq_init();
	rv = weft_conn_cache_init();
	if (rv)
		weft_netns_exit();
	return rv;
}

/*
 * All connections are gone. Softirq on another CPU may still be in a callback
 * that a child of a closed listener inherited: TCP calls them under RCU.
 */
void weft_conn_exit(void)
{
	weft_netns_exit();
	synchronize_rcu();
	weft_softirq_exit();
	weft_conn_tx_exit();
	weft_tcp_exit();
	/* RCU may still have to free their memory. */
	rcu_barrier();
	weft_conn_cache_exit();
}
