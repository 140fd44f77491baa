// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * How many connections of strangers a device puts up with. No program of ours has asked for them, or
 * knows of them any more: nothing else bounds their number. When there is one too many the oldest
 * is asked to go, and core/link.h decides whether it may (weft_link_evict()).
 */
#include "conn.h"

/* Each has a socket: some 5 KB with what the stack has of it. */
static const u32 most[] = {
	[WEFT_CROWD_HALF_OPEN]	= 1024,
	[WEFT_CROWD_WAITING]	= 1024,
	[WEFT_CROWD_REFUSED]	= 128,
	[WEFT_CROWD_ENDED]	= 1024,
};
static_assert(ARRAY_SIZE(most) == WEFT_CROWD_NR);

/* So many more may be on their way out. */
static const u32 leaving[WEFT_CROWD_NR] = {
	[WEFT_CROWD_HALF_OPEN]	= 64,
};

static enum weft_crowd_kind kind_of(const struct weft_conn *conn)
{
	switch (conn->link.state) {
	case WEFT_LINK_AWAIT_REQUEST:
		return WEFT_CROWD_HALF_OPEN;
	case WEFT_LINK_REQUESTED:
		return conn->listener ? WEFT_CROWD_WAITING : WEFT_CROWD_NONE;
	case WEFT_LINK_CLOSING:
		return conn->link.refused ? WEFT_CROWD_REFUSED : WEFT_CROWD_ENDED;
	case WEFT_LINK_DEAD:
		/* It counts until its socket is closed. */
		return conn->crowd;
	default:
		return WEFT_CROWD_NONE;
	}
}

static void ask_oldest_to_go(struct weft_crowd *c)
{
	struct weft_conn *conn = list_first_entry_or_null(&c->oldest_first, struct weft_conn,
							  crowd_node);

	if (!conn)
		return;
	list_del_init(&conn->crowd_node);
	weft_conn_wake_worker(conn, WEFT_CEV_EVICT);
}

static void enter(struct weft_conn *conn, enum weft_crowd_kind kind)
{
	struct weft_crowd *c = &conn->dev->crowds[kind];

	conn->crowd = kind;
	if (kind == WEFT_CROWD_NONE)
		return;
	if (c->n >= most[kind])
		ask_oldest_to_go(c);
	c->n++;
	list_add_tail(&conn->crowd_node, &c->oldest_first);
}

/* It may go another time. */
void weft_crowd_stay(struct weft_conn *conn)
{
	spin_lock_bh(&conn->dev->conns_lock);
	if (conn->crowd != WEFT_CROWD_NONE && list_empty(&conn->crowd_node))
		list_add_tail(&conn->crowd_node, &conn->dev->crowds[conn->crowd].oldest_first);
	spin_unlock_bh(&conn->dev->conns_lock);
}

void weft_crowd_leave(struct weft_conn *conn)
{
	if (conn->crowd == WEFT_CROWD_NONE)
		return;
	list_del_init(&conn->crowd_node);
	conn->dev->crowds[conn->crowd].n--;
	conn->crowd = WEFT_CROWD_NONE;
}

void weft_crowd_sort(struct weft_conn *conn)
{
	enum weft_crowd_kind kind = kind_of(conn);

	if (kind == conn->crowd)
		return;
	spin_lock_bh(&conn->dev->conns_lock);
	weft_crowd_leave(conn);
	enter(conn, kind);
	spin_unlock_bh(&conn->dev->conns_lock);
}

bool weft_crowd_is_full(struct weft_device *dev, enum weft_crowd_kind kind)
{
	return READ_ONCE(dev->crowds[kind].n) >= most[kind] + leaving[kind];
}

bool weft_crowd_is_twice_too_large(const struct weft_conn *conn)
{
	enum weft_crowd_kind kind = READ_ONCE(conn->crowd);

	return kind != WEFT_CROWD_NONE && READ_ONCE(conn->dev->crowds[kind].n) > 2 * most[kind];
}

void weft_crowd_init(struct weft_device *dev)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(dev->crowds); i++)
		INIT_LIST_HEAD(&dev->crowds[i].oldest_first);
}
