// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A QP and its connection: attach, release, doorbells, and modify_qp's requests. */
#include "conn.h"

/* Without a connection the core is the QP's, as the last connection left it. state_lock. */
static bool has_conn(struct weft_qp *qp)
{
	if (rcu_access_pointer(qp->conn))
		return true;
	/* Pairs with weft_conn_release_qp(). */
	smp_rmb();
	return false;
}

int weft_conn_attach(struct weft_conn *conn, struct weft_qp *qp)
{
	lockdep_assert_held(&qp->state_lock);
	if (qp->gone || has_conn(qp) || qp->core.state != WEFT_QPS_IDLE)
		return -EBUSY;
	weft_qp_hold(qp);
	conn->link.qp = &qp->core;
	conn->seen.requests = qp->core.sq.taken;
	rcu_assign_pointer(qp->conn, conn);
	return 0;
}

void weft_conn_hand_over(struct weft_conn *conn, struct weft_conn *heir)
{
	struct weft_qp *qp;

	weft_conn_lock(conn);
	qp = weft_conn_qp(conn);
	swap(heir->link.orq, conn->link.orq);
	swap(heir->link.irq, conn->link.irq);
	swap(heir->orq_room, conn->orq_room);
	swap(heir->irq_room, conn->irq_room);
	weft_link_succeed(&conn->link, &heir->link, weft_conn_now());
	heir->seen.requests = conn->seen.requests;
	rcu_assign_pointer(qp->conn, heir);
	weft_conn_unlock(conn);
}

/*
 * Enough to flush two full queues. A user that keeps posting must ring the doorbell, since KICK is
 * set in its rings; without it we do not flush forever.
 */
static u32 flush_pieces(const struct weft_qp *qp)
{
	return (qp->core.sq.q.slots + qp->core.rq.q.slots) / WEFT_FLUSH_PIECE + 2;
}

void weft_conn_flush_all(struct weft_qp *qp)
{
	u32 pieces = flush_pieces(qp);

	while (pieces-- && weft_qpc_flush(&qp->core))
		cond_resched();
}

struct weft_qp *weft_conn_release_qp(struct weft_conn *conn)
{
	struct weft_qp *qp = weft_conn_qp(conn);

	if (!qp)
		return NULL;
	weft_conn_linger_stop(conn);
	weft_link_release_qp(&conn->link);
	weft_conn_flush_all(qp);
	weft_region_end_run(&qp->core);
	weft_conn_ran(conn);
	/* Publishes the core's state; pairs with has_conn() and weft_conn_enter(). */
	smp_wmb();
	RCU_INIT_POINTER(qp->conn, NULL);
	/*
	 * A kick that arrived while qp->conn still led here would find no QP; pairs with
	 * weft_conn_kick_any().
	 */
	smp_mb();
	if (test_bit(WEFT_CF_PENDING, &conn->flags))
		weft_conn_flush_later(qp);
	return qp;
}

/*
 * Without a connection the QP's own lock guards its core: see weft_conn_attach(). True:
 * there is more to flush.
 */
static bool flush_unconnected(struct weft_qp *qp)
{
	bool more = false;

	mutex_lock(&qp->state_lock);
	if (!has_conn(qp))
		more = weft_qpc_flush(&qp->core);
	mutex_unlock(&qp->state_lock);
	return more;
}

/* Lets other works run between two pieces. */
static void flush_posts(struct work_struct *work)
{
	struct weft_qp *qp = container_of(work, struct weft_qp, flush);

	if (flush_unconnected(qp) && atomic_dec_if_positive(&qp->flush_left) >= 0)
		queue_work(weft_wq, &qp->flush);
}

void weft_conn_flush_later(struct weft_qp *qp)
{
	atomic_set(&qp->flush_left, flush_pieces(qp));
	queue_work(weft_wq, &qp->flush);
}

/* On the caller's CPU time. */
static void flush_now(struct weft_qp *qp)
{
	u32 pieces = flush_pieces(qp);

	while (pieces-- && flush_unconnected(qp))
		cond_resched();
}

/* The QP still exists: destroy_qp waits for this. */
static void fail_qp(struct work_struct *work)
{
	struct weft_qp *qp = container_of(work, struct weft_qp, fail);
	unsigned int noio = weft_lock_noio(&qp->state_lock);

	weft_conn_error(qp);
	weft_unlock_noio(&qp->state_lock, noio);
}

void weft_conn_error_later(struct weft_qp *qp)
{
	queue_work(weft_wq, &qp->fail);
}

void weft_conn_qp_init(struct weft_qp *qp)
{
	INIT_WORK(&qp->flush, flush_posts);
	INIT_WORK(&qp->fail, fail_qp);
}

void weft_conn_qp_exit(struct weft_qp *qp)
{
	cancel_work_sync(&qp->fail);
	/*
	 * A connection that was releasing the QP may have queued this one last time, and this one
	 * the other.
	 */
	cancel_work_sync(&qp->flush);
}

/*
 * In start-up there is nothing to send, and a turn (startup_turns.c) must not wait for a program
 * that gets no CPU.
 */
static bool is_starting(const struct weft_conn *conn)
{
	return READ_ONCE(conn->link.mode) == WEFT_MODE_STARTUP;
}

void weft_conn_kick(struct weft_qp *qp)
{
	struct weft_conn *conn = weft_conn_enter(qp);
	/* TCP may reclaim for its memory cgroup, while the worker waits for the socket's lock. */
	unsigned int noio = memalloc_noio_save();
	bool ours = false;

	if (conn && is_starting(conn)) {
		weft_conn_leave(conn);
		weft_conn_kick_any(qp);
		ours = true;
	} else if (conn) {
		weft_conn_lock(conn);
		ours = weft_conn_qp(conn) == qp;
		if (ours) {
			weft_count(conn, WEFT_CNT_DOORBELLS, 1);
			weft_conn_linger_doorbell_begins(conn);
			weft_conn_tx(conn);
		}
		weft_conn_unlock(conn);
		weft_conn_linger_doorbell_ends(conn);
		weft_conn_leave(conn);
	}
	if (!ours)
		flush_now(qp);
	memalloc_noio_restore(noio);
}

void weft_conn_kick_any(struct weft_qp *qp)
{
	bool here = !irqs_disabled() && !in_softirq();
	struct weft_conn *conn;

	/* Teardown waits for users of the connection, so none of them may lose the CPU here. */
	if (here)
		local_bh_disable();
	conn = weft_conn_enter(qp);
	if (conn) {
		set_bit(WEFT_CF_PENDING, &conn->flags);
		if (here)
			weft_conn_run_here(conn);
		else
			weft_conn_schedule_bh(conn);
		/* Pairs with weft_conn_release_qp(): one of us sees the other. */
		smp_mb__after_atomic();
		weft_conn_leave(conn);
	}
	if (!conn || rcu_access_pointer(qp->conn) != conn)
		weft_conn_flush_later(qp);
	if (here)
		local_bh_enable();
}

/* Runs in a program's context, so no turn may wait for the mutex (startup_turns.c). */
static void lock_both(struct weft_conn *conn)
{
	mutex_lock(&conn->mutex);
	weft_conn_lock(conn);
}

static void unlock_both(struct weft_conn *conn)
{
	weft_conn_unlock(conn);
	mutex_unlock(&conn->mutex);
}

int weft_conn_close_graceful(struct weft_qp *qp)
{
	struct weft_conn *conn = weft_conn_enter(qp);

	lockdep_assert_held(&qp->state_lock);
	if (!conn)
		return 0;
	lock_both(conn);
	if (weft_conn_qp(conn) == qp)
		weft_qpc_close(&qp->core);
	unlock_both(conn);
	weft_conn_wake_worker(conn, WEFT_CEV_WAKE);
	weft_conn_leave(conn);
	return 0;
}

int weft_conn_error(struct weft_qp *qp)
{
	struct weft_conn *conn;
	bool done = false;

	lockdep_assert_held(&qp->state_lock);
	while (!done && (conn = weft_conn_enter(qp))) {
		lock_both(conn);
		done = weft_conn_qp(conn) == qp;
		if (done)
			weft_qpc_error(&qp->core);
		unlock_both(conn);
		weft_conn_wake_worker(conn, WEFT_CEV_WAKE);
		weft_conn_leave(conn);
	}
	if (!done)
		weft_qpc_error(&qp->core);
	return 0;
}

