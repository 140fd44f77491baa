// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Queues of connections in start-up that have octets to read. startup_turns.c serves them. */
#include "conn.h"

/* conns_lock. The queue that @conn belongs to. NULL: it has none, or it is unlinked. */
static struct list_head *turns_of(struct weft_conn *conn)
{
	if (conn->gone || conn->link.mode != WEFT_MODE_STARTUP)
		return NULL;
	if (conn->link.st.initiator)
		return &conn->dev->startup_queue;
	return conn->listener ? &conn->listener->startup_queue : NULL;
}

static void wake_reader(struct weft_conn *conn)
{
	if (conn->link.st.initiator)
		queue_work(weft_startup_wq, &conn->dev->startup_work);
	else
		weft_conn_wake_worker(conn->listener, WEFT_CEV_WAKE);
}

void weft_startup_enqueue(struct weft_conn *conn)
{
	struct list_head *turns;

	spin_lock_bh(&conn->dev->conns_lock);
	turns = turns_of(conn);
	if (turns && !conn->unsettled) {
		if (list_empty(&conn->startup_node))
			list_add_tail(&conn->startup_node, turns);
		wake_reader(conn);
	}
	spin_unlock_bh(&conn->dev->conns_lock);
	if (!turns)
		weft_conn_wake_worker(conn, WEFT_CEV_WAKE);
}

void weft_startup_settled(struct weft_conn *conn)
{
	spin_lock_bh(&conn->dev->conns_lock);
	conn->unsettled = false;
	spin_unlock_bh(&conn->dev->conns_lock);
	weft_startup_enqueue(conn);
}

void weft_startup_dequeue(struct weft_conn *conn)
{
	list_del_init(&conn->startup_node);
}

struct weft_conn *weft_startup_next(struct weft_device *dev, struct list_head *turns)
{
	struct weft_conn *conn;

	spin_lock_bh(&dev->conns_lock);
	conn = list_first_entry_or_null(turns, struct weft_conn, startup_node);
	if (conn) {
		list_del_init(&conn->startup_node);
		weft_conn_get(conn);
	}
	spin_unlock_bh(&dev->conns_lock);
	return conn;
}

void weft_startup_stop(struct weft_device *dev)
{
	cancel_work_sync(&dev->startup_work);
}
