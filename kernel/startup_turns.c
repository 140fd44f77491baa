// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Connections in start-up have their turns in the order in which TCP brought something. Programs number
 * their connections as the requests come, and count on the order in which the peer called connect: so
 * the Requests of a device go out one after the other, and those to a listener are looked at one after
 * the other. Nothing that is done in a turn waits for a peer, nor for a program: who holds the mutex in a
 * program's context may get no CPU, and what it needs may have to be reclaimed from its user. So a connection
 * whose mutex is taken, or that has no memory, leaves its turn to its own worker. The socket's lock is
 * nobody's in start-up but for who has the mutex: doorbells do not own it (conn_qp.c). Of what there is to
 * send when start-up is over a turn sends one run, and the bottom half the rest.
 *
 * All else that a connection does is its own worker's, beside all others.
 */
#include <linux/sched/mm.h>

#include "cm.h"
#include "tcp.h"

/* Of a listener's children, before it looks at what else there is. */
#define TURNS	64

/* Is what comes next a turn's, or its worker's alone? */
static bool is_for_a_turn(const struct weft_conn *conn)
{
	return conn->link.mode == WEFT_MODE_STARTUP && conn->link.state != WEFT_LINK_DEAD &&
	       !test_bit(WEFT_CEV_RECONNECT, &conn->events);
}

/* For the Request. What its user may have is reclaimed from him, by the worker if need be. */
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

/* False: its worker goes on. */
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

/* Strangers who send octet by octet must not keep it from what else a listener does. */
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
