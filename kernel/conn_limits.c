// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Caps on a device's connections that no program has: half-open ones, requests beyond the backlog,
 * refused and ended ones. Nothing else bounds them. At the cap the oldest is woken to be evicted,
 * and weft_link_evict() decides whether it is.
 */
#include "conn.h"

/* Each has a socket, and costs some 5 KB in all. */
static const struct weft_cap caps[] = {
	[WEFT_LIMIT_HALF_OPEN]	= { .most = 1024, .leaving = 64 },
	[WEFT_LIMIT_WAITING]	= { .most = 1024 },
	[WEFT_LIMIT_REFUSED]	= { .most = 128 },
	[WEFT_LIMIT_ENDED]	= { .most = 1024 },
};
static_assert(ARRAY_SIZE(caps) == WEFT_LIMIT_NR);

static enum weft_limit_kind kind_of(const struct weft_conn *conn)
{
	switch (conn->link.state) {
	case WEFT_LINK_AWAIT_REQUEST:
		return WEFT_LIMIT_HALF_OPEN;
	case WEFT_LINK_REQUESTED:
		return conn->listener ? WEFT_LIMIT_WAITING : WEFT_LIMIT_NONE;
	case WEFT_LINK_CLOSING:
		return conn->link.refused ? WEFT_LIMIT_REFUSED : WEFT_LIMIT_ENDED;
	case WEFT_LINK_DEAD:
		/* Counts until its socket is closed. */
		return conn->limit_kind;
	default:
		return WEFT_LIMIT_NONE;
	}
}

static void evict_oldest(struct weft_conn_limit *c)
{
	struct weft_conn *conn = list_first_entry_or_null(&c->oldest_first, struct weft_conn,
							  limit_node);

	if (!conn)
		return;
	list_del_init(&conn->limit_node);
	weft_conn_wake_worker(conn, WEFT_CEV_EVICT);
}

static void enter(struct weft_conn *conn, enum weft_limit_kind kind)
{
	struct weft_conn_limit *c = &conn->dev->conn_limits[kind];

	conn->limit_kind = kind;
	if (kind == WEFT_LIMIT_NONE)
		return;
	if (weft_cap_is_reached(&c->cap))
		evict_oldest(c);
	c->cap.n++;
	list_add_tail(&conn->limit_node, &c->oldest_first);
}

/* Not evicted this time; it may be later. */
void weft_limit_stay(struct weft_conn *conn)
{
	struct weft_conn_limit *all = conn->dev->conn_limits;

	spin_lock_bh(&conn->dev->conns_lock);
	if (conn->limit_kind != WEFT_LIMIT_NONE && list_empty(&conn->limit_node))
		list_add_tail(&conn->limit_node, &all[conn->limit_kind].oldest_first);
	spin_unlock_bh(&conn->dev->conns_lock);
}

void weft_limit_leave(struct weft_conn *conn)
{
	if (conn->limit_kind == WEFT_LIMIT_NONE)
		return;
	list_del_init(&conn->limit_node);
	conn->dev->conn_limits[conn->limit_kind].cap.n--;
	conn->limit_kind = WEFT_LIMIT_NONE;
}

void weft_limit_update(struct weft_conn *conn)
{
	enum weft_limit_kind kind = kind_of(conn);

	if (kind == conn->limit_kind)
		return;
	spin_lock_bh(&conn->dev->conns_lock);
	weft_limit_leave(conn);
	enter(conn, kind);
	spin_unlock_bh(&conn->dev->conns_lock);
}

bool weft_limit_is_full(struct weft_device *dev, enum weft_limit_kind kind)
{
	return weft_cap_is_full(&dev->conn_limits[kind].cap);
}

bool weft_limit_is_doubled(const struct weft_conn *conn)
{
	enum weft_limit_kind kind = READ_ONCE(conn->limit_kind);

	return kind != WEFT_LIMIT_NONE && weft_cap_is_doubled(&conn->dev->conn_limits[kind].cap);
}

void weft_limits_init(struct weft_device *dev)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(dev->conn_limits); i++) {
		INIT_LIST_HEAD(&dev->conn_limits[i].oldest_first);
		dev->conn_limits[i].cap = caps[i];
	}
}
