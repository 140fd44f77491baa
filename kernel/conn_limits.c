// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Caps on a device's connections that no program has: half-open ones, requests beyond the backlog,
 * refused and ended ones. Nothing else bounds them. At the cap one is woken to be evicted, of the
 * largest listener of the user with most: no user loses any to a larger one. The worker decides
 * whether it is evicted.
 */
#include <linux/cred.h>
#include <linux/slab.h>
#include <linux/uidgid.h>

#include "conn.h"

/* Each has a socket, and costs some 5 KB in all. */
static const struct weft_cap caps[] = {
	[WEFT_LIMIT_HALF_OPEN]	= { .most = 1024, .leaving = 64 },
	[WEFT_LIMIT_WAITING]	= { .most = 1024, .leaving = 64 },
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

/* ---- whom a connection counts for ---- */

/* A user, or a listener of theirs, or all that they connect. dev->conns_lock. */
struct weft_holder {
	struct weft_holder *user;	/* NULL: it is one */
	u32 refs;			/* connections, or the user's other holders */
	kuid_t uid;			/* a user's; INVALID_UID: kernel consumers */
	struct hlist_node node;		/* a user's, in dev->users */
	struct weft_holder *connects;	/* a user's; NULL: nothing is */
	struct weft_share share[WEFT_LIMIT_NR];
	struct list_head oldest_first[WEFT_LIMIT_NR]; /* connections that may be evicted */
};

static void drop_holder(struct weft_holder *h)
{
	struct weft_holder *user = h->user;

	if (--h->refs)
		return;
	if (!user) {
		hash_del(&h->node);
	} else {
		if (user->connects == h)
			user->connects = NULL;
		drop_holder(user);
	}
	kfree(h);
}

static struct weft_holder *holder_of_uid(const struct weft_device *dev, kuid_t uid)
{
	struct weft_holder *h;

	/* Compared as numbers: no two invalid ones are equal. */
	hash_for_each_possible(dev->users, h, node, __kuid_val(uid))
		if (__kuid_val(h->uid) == __kuid_val(uid))
			return h;
	return NULL;
}

/* @of: NULL for a user that no look-up finds. */
static void begin_user(struct weft_device *dev, struct weft_holder *h, const kuid_t *of)
{
	u32 i;

	for (i = 0; i < WEFT_LIMIT_NR; i++)
		h->share[i].above = &dev->conn_limits[i].share;
	if (!of)
		return;
	h->uid = *of;
	hash_add(dev->users, &h->node, __kuid_val(h->uid));
}

static void begin_holder(struct weft_holder *h, struct weft_holder *user)
{
	u32 i;

	h->user = user;
	user->refs++;
	for (i = 0; i < WEFT_LIMIT_NR; i++) {
		INIT_LIST_HEAD(&h->oldest_first[i]);
		h->share[i].above = &user->share[i];
	}
}

/* Uses @spare, one or both of them, where there is no holder yet. @uid: NULL for a new user. */
static void hold_by(struct weft_conn *conn, const kuid_t *uid, struct weft_holder **spare)
{
	struct weft_device *dev = conn->dev;
	struct weft_holder *user = uid ? holder_of_uid(dev, *uid) : NULL, *h;

	if (!user) {
		swap(user, spare[0]);
		begin_user(dev, user, uid);
	}
	h = conn->listening ? NULL : user->connects;
	if (!h) {
		swap(h, spare[1]);
		begin_holder(h, user);
	}
	if (!conn->listening)
		user->connects = h;
	h->refs++;
	conn->holder = h;
}

/*
 * While a device is registered, rdma_cm listens for all wildcard listeners that there are, in the
 * administrator's context. Each of them counts by itself: its owner is unknown.
 */
int weft_limit_hold(struct weft_conn *conn)
{
	bool known = !conn->listening || READ_ONCE(conn->dev->registered);
	const kuid_t uid = weft_access_is_user() ? current_uid() : INVALID_UID;
	struct weft_holder *spare[2];
	int i;

	for (i = 0; i < 2; i++)
		spare[i] = kzalloc(sizeof(*spare[i]), GFP_KERNEL_ACCOUNT);
	if (spare[0] && spare[1]) {
		spin_lock_bh(&conn->dev->conns_lock);
		hold_by(conn, known ? &uid : NULL, spare);
		spin_unlock_bh(&conn->dev->conns_lock);
	}
	for (i = 0; i < 2; i++)
		kfree(spare[i]);
	return conn->holder ? 0 : -ENOMEM;
}

void weft_limit_hold_as(struct weft_conn *conn, const struct weft_conn *of)
{
	spin_lock_bh(&conn->dev->conns_lock);
	conn->holder = of->holder;
	conn->holder->refs++;
	spin_unlock_bh(&conn->dev->conns_lock);
}

/* ---- counting ---- */

static void list_conn(struct weft_conn *conn)
{
	struct weft_holder *h = conn->holder;

	list_add_tail(&conn->limit_node, &h->oldest_first[conn->limit_kind]);
	weft_share_add(&h->share[conn->limit_kind]);
}

static void unlist_conn(struct weft_conn *conn)
{
	if (list_empty(&conn->limit_node))
		return;
	list_del_init(&conn->limit_node);
	weft_share_remove(&conn->holder->share[conn->limit_kind]);
}

/* The one to give way. */
static struct weft_holder *largest_holder(struct weft_device *dev, enum weft_limit_kind kind)
{
	struct weft_share *s = weft_share_largest(&dev->conn_limits[kind].share);

	return s ? container_of(s, struct weft_holder, share[kind]) : NULL;
}

/* Those that wait do so in the order of their arrival: the newest waits longest. */
static void evict_one(struct weft_device *dev, enum weft_limit_kind kind)
{
	struct weft_holder *h = largest_holder(dev, kind);
	struct weft_conn *conn;

	if (!h)
		return;
	if (kind == WEFT_LIMIT_WAITING)
		conn = list_last_entry(&h->oldest_first[kind], struct weft_conn, limit_node);
	else
		conn = list_first_entry(&h->oldest_first[kind], struct weft_conn, limit_node);
	unlist_conn(conn);
	weft_conn_wake_worker(conn, WEFT_CEV_EVICT);
}

static void stop_counting(struct weft_conn *conn)
{
	if (conn->limit_kind == WEFT_LIMIT_NONE)
		return;
	unlist_conn(conn);
	conn->dev->conn_limits[conn->limit_kind].cap.n--;
	conn->limit_kind = WEFT_LIMIT_NONE;
}

static void enter(struct weft_conn *conn, enum weft_limit_kind kind)
{
	struct weft_conn_limit *c = &conn->dev->conn_limits[kind];

	conn->limit_kind = kind;
	if (kind == WEFT_LIMIT_NONE)
		return;
	if (weft_cap_is_reached(&c->cap))
		evict_one(conn->dev, kind);
	c->cap.n++;
	list_conn(conn);
}

/* One that was chosen while it was half-open, and waits by now, is listed again. */
bool weft_limit_gives_way(const struct weft_conn *conn)
{
	bool chosen;

	spin_lock_bh(&conn->dev->conns_lock);
	chosen = conn->limit_kind == WEFT_LIMIT_WAITING && list_empty(&conn->limit_node);
	spin_unlock_bh(&conn->dev->conns_lock);
	return chosen;
}

/* Not evicted this time; it may be later. */
void weft_limit_stay(struct weft_conn *conn)
{
	spin_lock_bh(&conn->dev->conns_lock);
	if (conn->limit_kind != WEFT_LIMIT_NONE && list_empty(&conn->limit_node))
		list_conn(conn);
	spin_unlock_bh(&conn->dev->conns_lock);
}

void weft_limit_leave(struct weft_conn *conn)
{
	stop_counting(conn);
	if (conn->holder)
		drop_holder(conn->holder);
	conn->holder = NULL;
}

void weft_limit_update(struct weft_conn *conn)
{
	enum weft_limit_kind kind = kind_of(conn);

	if (kind == conn->limit_kind)
		return;
	spin_lock_bh(&conn->dev->conns_lock);
	stop_counting(conn);
	enter(conn, kind);
	spin_unlock_bh(&conn->dev->conns_lock);
}

bool weft_limit_is_full(struct weft_device *dev)
{
	return weft_cap_is_full(&dev->conn_limits[WEFT_LIMIT_HALF_OPEN].cap);
}

bool weft_limit_may_wait(struct weft_conn *conn)
{
	const enum weft_limit_kind kind = WEFT_LIMIT_WAITING;
	const struct weft_cap *cap = &conn->dev->conn_limits[kind].cap;
	bool may = true;

	spin_lock_bh(&conn->dev->conns_lock);
	if (conn->limit_kind != kind && weft_cap_is_reached(cap))
		may = !weft_cap_is_full(cap) && largest_holder(conn->dev, kind) != conn->holder;
	spin_unlock_bh(&conn->dev->conns_lock);
	return may;
}

bool weft_limit_is_doubled(const struct weft_conn *conn)
{
	enum weft_limit_kind kind = READ_ONCE(conn->limit_kind);

	return kind != WEFT_LIMIT_NONE && weft_cap_is_doubled(&conn->dev->conn_limits[kind].cap);
}

void weft_limits_init(struct weft_device *dev)
{
	u32 i;

	hash_init(dev->users);
	for (i = 0; i < ARRAY_SIZE(dev->conn_limits); i++)
		dev->conn_limits[i].cap = caps[i];
}
