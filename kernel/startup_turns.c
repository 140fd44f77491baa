// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Connections in start-up are served in the order in which TCP reported events. Programs number
 * their connections as the requests arrive, and rely on the peer's order of connect calls. So a
 * device sends its Requests one by one, and a listener handles the Requests that it receives one
 * by one.
 *
 * A turn must not wait for a peer or a program: a program that owns the mutex may get no CPU, and
 * allocating may have to reclaim from the connection's user. So a connection whose mutex is taken,
 * or that has no memory, is left to its own worker. In start-up only the mutex's owner takes the
 * socket's lock; doorbells do not (conn_qp.c). A turn that completes start-up sends one run, and
 * the bottom half sends the rest.
 *
 * Everything else runs in the connection's own worker, in parallel with others.
 */
#include <linux/sched/mm.h>

#include "cm.h"
#include "tcp.h"

/* Children that a listener serves before it does its other work. */
#define TURNS	64

/* May a turn do the next step? If not, the worker does. */
static bool is_for_a_turn(const struct weft_conn *conn)
{
	return conn->link.mode == WEFT_MODE_STARTUP && conn->link.state != WEFT_LINK_DEAD &&
	       !test_bit(WEFT_CEV_RECONNECT, &conn->events);
}

/* Memory for the Request. Only the worker may reclaim from its user. */
static bool has_memory(struct weft_conn *conn)
{
	bool has;

	if (!conn->link.st.initiator || conn->link.state != WEFT_LINK_CONNECTING)
		return true;
	weft_conn_lock(conn);
	has = weft_tcp_has_memory(conn->sk);
	weft_conn_unlock(conn);
	return has;
}

/* False: the worker continues. */
static bool startup_step(struct weft_conn *conn)
{
	bool more = true;

	while (more && is_for_a_turn(conn))
		more = weft_cm_step_once(conn);
	return !more && conn->link.state != WEFT_LINK_DEAD;
}

static void take_turn(struct weft_conn *conn)
{
	bool done = false;

	if (mutex_trylock(&conn->mutex)) {
		WRITE_ONCE(conn->in_turn, true);
		done = has_memory(conn) && startup_step(conn);
		WRITE_ONCE(conn->in_turn, false);
		if (done)
			weft_conn_arm(conn);
		mutex_unlock(&conn->mutex);
	}
	if (!done)
		weft_conn_wake_worker(conn, WEFT_CEV_WAKE);
	weft_conn_put(conn);
}

/* Peers that send octet by octet must not keep the listener from its other work. */
void weft_startup_serve(struct weft_conn *listener)
{
	struct weft_conn *conn;
	u32 n;

	for (n = 0; n < TURNS; n++) {
		conn = weft_startup_next(listener->dev, &listener->startup_queue);
		if (!conn)
			return;
		take_turn(conn);
	}
	weft_conn_wake_worker(listener, WEFT_CEV_WAKE);
}

static void read_initiators(struct work_struct *work)
{
	struct weft_device *dev = container_of(work, struct weft_device, startup_work);
	unsigned int noio = memalloc_noio_save();
	struct weft_conn *conn;

	while ((conn = weft_startup_next(dev, &dev->startup_queue))) {
		take_turn(conn);
		cond_resched();
	}
	memalloc_noio_restore(noio);
}

void weft_startup_init(struct weft_device *dev)
{
	INIT_LIST_HEAD(&dev->startup_queue);
	INIT_WORK(&dev->startup_work, read_initiators);
}
