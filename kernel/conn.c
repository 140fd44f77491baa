// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* References on a connection, and scheduling of its runs: see conn.h. conn_life.c has its life. */
#include <linux/memcontrol.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "conn.h"

/* Retry after the stage could not be allocated: gives kswapd, woken by that, time to run. */
#define READ_AGAIN_MS 10

/* A cache of our own, so that a connection that outlives the module is noticed. */
static struct kmem_cache *conn_cache;

int weft_conn_cache_init(void)
{
	/* Aligned, so that its address has room for the flags of sk_user_data. */
	conn_cache = KMEM_CACHE(weft_conn, SLAB_HWCACHE_ALIGN | SLAB_ACCOUNT);
	return conn_cache ? 0 : -ENOMEM;
}

void weft_conn_cache_exit(void)
{
	kmem_cache_destroy(conn_cache);
}

/* ---- memory accounting ---- */

/*
 * All softirqs of a CPU have one payer in force. On PREEMPT_RT they preempt each other, and could
 * restore it crosswise: one would leave behind a payer that may be freed.
 */
static bool may_change_payer(void)
{
	return !IS_ENABLED(CONFIG_PREEMPT_RT) || in_task();
}

struct mem_cgroup *weft_conn_pays(struct weft_conn *conn)
{
	return may_change_payer() ? set_active_memcg(conn->payer) : NULL;
}

void weft_conn_paid(struct mem_cgroup *old)
{
	if (may_change_payer())
		set_active_memcg(old);
}

/* ---- references ---- */

struct weft_conn *weft_conn_alloc(void)
{
	struct weft_conn *conn = kmem_cache_zalloc(conn_cache, GFP_KERNEL);

	if (!conn)
		return NULL;
	kref_init(&conn->ref);
	/* The payer in force, or the caller's. */
	conn->payer = get_mem_cgroup_from_mm(NULL);
	return conn;
}

static void free_conn_rcu(struct rcu_head *rcu)
{
	kmem_cache_free(conn_cache, container_of(rcu, struct weft_conn, rcu));
}

static void free_conn(struct kref *ref)
{
	struct weft_conn *conn = container_of(ref, struct weft_conn, ref);

	kfree(conn->link.offer);
	kfree(conn->link.orq);
	kfree(conn->link.irq);
	mem_cgroup_put(conn->payer);
	if (conn->parent)
		weft_conn_put(conn->parent);
	call_rcu(&conn->rcu, free_conn_rcu);
}

void weft_conn_get(struct weft_conn *conn)
{
	kref_get(&conn->ref);
}

void weft_conn_put(struct weft_conn *conn)
{
	kref_put(&conn->ref, free_conn);
}

struct weft_conn *weft_conn_enter(struct weft_qp *qp)
{
	struct weft_conn *conn;

	rcu_read_lock();
	/* If its QP was handed over and it is ending, the QP has a new connection by now. */
	do
		conn = rcu_dereference(qp->conn);
	while (conn && !refcount_inc_not_zero(&conn->users));
	rcu_read_unlock();
	if (!conn)
		smp_rmb();		/* pairs with weft_conn_release_qp() */
	return conn;
}

void weft_conn_leave(struct weft_conn *conn)
{
	if (refcount_dec_and_test(&conn->users))
		complete(&conn->idle);
}

/* ---- scheduling ---- */

u64 weft_conn_now(void)
{
	return ktime_to_ms(ktime_get());
}

void weft_conn_wake_worker(struct weft_conn *conn, unsigned int event)
{
	unsigned long flags;

	set_bit(event, &conn->events);
	spin_lock_irqsave(&conn->lock, flags);
	if (!conn->dead) {
		conn->due = jiffies;
		mod_delayed_work(weft_wq, &conn->work, 0);
	}
	spin_unlock_irqrestore(&conn->lock, flags);
}

void weft_conn_schedule_bh(struct weft_conn *conn)
{
	unsigned long flags;

	spin_lock_irqsave(&conn->lock, flags);
	if (!conn->dead) {
		/* A reference for the bottom half: run_bh() calls weft_conn_leave(). */
		refcount_inc(&conn->users);
		if (!weft_bh_queue(&conn->bh))
			refcount_dec(&conn->users);
	}
	spin_unlock_irqrestore(&conn->lock, flags);
}

void weft_conn_pend(struct weft_conn *conn)
{
	set_bit(WEFT_CF_PENDING, &conn->flags);
	weft_conn_schedule_bh(conn);
}

/* conn->lock. Only moves the worker's time forward. */
static void run_at(struct weft_conn *conn, unsigned long delay)
{
	unsigned long due = jiffies + delay;

	if (delayed_work_pending(&conn->work) && !time_before(due, conn->due))
		return;
	conn->due = due;
	mod_delayed_work(weft_wq, &conn->work, delay);
}

/* By then the window is closed and the peer silent, or newer octets have made us read already. */
void weft_conn_read_later(struct weft_conn *conn)
{
	unsigned long flags;

	spin_lock_irqsave(&conn->lock, flags);
	if (!conn->dead)
		run_at(conn, msecs_to_jiffies(READ_AGAIN_MS) + 1);
	spin_unlock_irqrestore(&conn->lock, flags);
}

/* The worker whose timer this arms takes the socket's lock first, and so runs after us. */
void weft_conn_try_again(struct weft_conn *conn)
{
	if (!READ_ONCE(conn->retry_at))
		weft_conn_wake_worker(conn, WEFT_CEV_RETRY);
}

void weft_conn_arm(struct weft_conn *conn)
{
	u64 deadline = weft_earlier(weft_link_next_step(&conn->link), conn->retry_at);
	u64 now = weft_conn_now();
	u32 ms = deadline > now ? deadline - now : 0;

	if (!deadline)
		return;
	spin_lock_irq(&conn->lock);
	if (!conn->dead)
		run_at(conn, msecs_to_jiffies(ms) + 1);
	spin_unlock_irq(&conn->lock);
}
