// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The contexts in which a connection runs: process context with the lock, TCP's callbacks, the
 * bottom half. docs/locking.md follows a bit through them.
 */
#include <linux/sched/signal.h>
#include <net/tcp.h>

#include "compat/net.h"
#include "conn.h"

/* A process sends this long, then leaves the rest to the bottom half, in ksoftirqd. */
#define PROCESS_NS	NSEC_PER_MSEC
/* Runs of one bottom half before the next one runs. */
#define ROUNDS_BH	4

/* ---- the send run ---- */

/* Reads @most octets, of those that arrived while TCP had the batch. */
static void ran_up_to(struct weft_conn *conn, u32 most)
{
	struct weft_qpc *qp = conn->link.qp;

	if (qp) {
		weft_count(conn, WEFT_CNT_REQUESTS, qp->sq.taken - conn->seen.requests);
		conn->seen.requests = qp->sq.taken;
		weft_region_end_run(qp);
		/* The doorbell may have been for a receive. */
		if (unlikely(qp->rx_waits) && weft_link_rx_resume(&conn->link))
			conn->unread = true;
	}
	if (!conn->unread)
		return;
	conn->unread = false;
	weft_conn_receive(conn, most);
}

void weft_conn_ran(struct weft_conn *conn)
{
	ran_up_to(conn, WEFT_SLICE);
}

static void run_up_to(struct weft_conn *conn, u32 most)
{
	weft_conn_linger_judge(conn);
	weft_send_run(&conn->link, most);
	ran_up_to(conn, most);
}

void weft_conn_tx(struct weft_conn *conn)
{
	run_up_to(conn, WEFT_SLICE);
}

/* ---- the bottom half, and owners ---- */

/*
 * There is work, and the socket has an owner. The last holder to leave weft_conn_lock() checks the
 * bits after it has dropped the lock. They were set before it is subtracted from holders, so it
 * sees them. Other owners of the socket (sock_diag for `ss -i`) do not check the bits: then the
 * worker does the work.
 */
static void leave_to_owner(struct weft_conn *conn)
{
	/* Pairs with the barrier in run_and_unlock(). */
	smp_mb();
	if (!atomic_read(&conn->holders))
		weft_conn_wake_worker(conn, WEFT_CEV_WAKE);
}

/*
 * With softirqs off: what the peer sends in reply is read at once and does not go to the backlog.
 */
static void open_window(struct weft_conn *conn)
{
	if (test_and_clear_bit(WEFT_CF_WINDOW, &conn->flags) && tcp_window_is_stale(conn->sk))
		tcp_send_window_update(conn->sk);
}

/* Work for the thread that drops the lock. */
static bool has_work(const struct weft_conn *conn)
{
	return READ_ONCE(conn->flags) & (BIT(WEFT_CF_PENDING) | BIT(WEFT_CF_WINDOW));
}

/* A flush is slow and sends nothing. */
static u32 octets_for_flush(const struct weft_qpc *qp)
{
	bool flushed = qp && (qp->state == WEFT_QPS_ERROR || qp->state == WEFT_QPS_TERM);

	return flushed ? WEFT_SOFTIRQ_FREE : 0;
}

/* Octets sent and received since the connection began. */
static u32 octets_of(const struct weft_conn *conn)
{
	return tcp_sk(conn->sk)->write_seq + tcp_sk(conn->sk)->copied_seq;
}

/* Likewise requests taken, and slots of completed ones. */
static u32 requests_of(const struct weft_qpc *qp)
{
	return qp ? qp->sq.taken + qp->sq.q.idx : 0;
}

/* Is there work for a run in softirq, and time? */
static bool may_run_once(const struct weft_conn *conn)
{
	return !sock_owned_by_user(conn->sk) && test_bit(WEFT_CF_PENDING, &conn->flags) &&
	       weft_softirq_has_time();
}

/* One run in softirq. */
static void run_once(struct weft_conn *conn)
{
	const struct weft_qpc *qp = conn->link.qp;
	u32 octets = octets_of(conn), requests = requests_of(qp);
	u64 began;

	clear_bit(WEFT_CF_PENDING, &conn->flags);
	began = weft_softirq_begin();
	run_up_to(conn, WEFT_SLICE_SHORT);
	weft_softirq_end(began, octets_of(conn) - octets + octets_for_flush(qp),
			 requests_of(qp) - requests);
}

/*
 * Leaves the work to the socket's owner or the bottom half. Softirqs are off, the socket's lock is
 * held.
 */
static void pass_on(struct weft_conn *conn)
{
	if (sock_owned_by_user(conn->sk))
		leave_to_owner(conn);
	else
		weft_conn_schedule_bh(conn);
}

/*
 * Runs the send side in softirq, and sends a window update. Between two rounds another CPU that
 * waits for the lock gets it.
 */
static void run_bh(struct weft_bh *bh)
{
	struct weft_conn *conn = container_of(bh, struct weft_conn, bh);
	u32 i;

	bh_lock_sock(conn->sk);
	for (i = 0; i < ROUNDS_BH && may_run_once(conn); i++) {
		run_once(conn);
		bh_unlock_sock(conn->sk);
		bh_lock_sock(conn->sk);
	}
	if (!sock_owned_by_user(conn->sk))
		open_window(conn);
	weft_bh_over(bh);
	if (has_work(conn))
		pass_on(conn);
	bh_unlock_sock(conn->sk);
	weft_conn_leave(conn);
}

/* A consumer that posts in softirq, by a completion handler say, uses softirq's time. */
static void run_now(struct weft_conn *conn)
{
	if (in_serving_softirq()) {
		if (may_run_once(conn))
			run_once(conn);
	} else if (!sock_owned_by_user(conn->sk) &&
		   test_and_clear_bit(WEFT_CF_PENDING, &conn->flags)) {
		run_up_to(conn, WEFT_SLICE_SHORT);
	}
	if (!sock_owned_by_user(conn->sk))
		open_window(conn);
	if (has_work(conn))
		pass_on(conn);
}

/*
 * One run, on the caller's CPU time instead of softirq's. If the lock is taken, the bottom half
 * runs.
 */
void weft_conn_run_here(struct weft_conn *conn)
{
	local_bh_disable();
	if (bh_trylock_sock(conn->sk)) {
		run_now(conn);
		bh_unlock_sock(conn->sk);
	} else {
		weft_conn_schedule_bh(conn);
	}
	local_bh_enable();
}

/*
 * What arrived must be answered: a Read Response, a Terminate. TCP has queued its data and is done
 * with it, so the answer is sent from here and carries the acknowledgement. If TCP lacks memory for
 * it, write_space() is called from here.
 */
static void answer_peer(struct weft_conn *conn)
{
	if (may_run_once(conn))
		run_once(conn);
	if (has_work(conn))
		pass_on(conn);
}

void weft_conn_lock(struct weft_conn *conn)
{
	atomic_inc(&conn->holders);
	lock_sock(conn->sk);
}

/*
 * release_sock() receives the data that arrives while we own the socket. True: more work is left.
 */
static bool run_and_unlock(struct weft_conn *conn)
{
	if (test_and_clear_bit(WEFT_CF_PENDING, &conn->flags))
		weft_conn_tx(conn);
	release_sock(conn->sk);
	/*
	 * A waiter for the lock does the rest, and need not wait for us. The barrier in here pairs
	 * with that in leave_to_owner().
	 */
	if (atomic_dec_return(&conn->holders))
		return false;
	if (test_bit(WEFT_CF_WINDOW, &conn->flags))
		weft_conn_run_here(conn);
	return test_bit(WEFT_CF_PENDING, &conn->flags);
}

/* Other connections wait for this turn to end: after one run the bottom half continues. */
static void unlock_in_turn(struct weft_conn *conn)
{
	release_sock(conn->sk);
	/* As in run_and_unlock(). */
	if (!atomic_dec_return(&conn->holders) && has_work(conn))
		weft_conn_run_here(conn);
}

void weft_conn_unlock(struct weft_conn *conn)
{
	u64 until = 0;

	if (unlikely(READ_ONCE(conn->in_turn))) {
		unlock_in_turn(conn);
		return;
	}
	while (run_and_unlock(conn)) {
		if (!until)
			until = ktime_get_ns() + PROCESS_NS;
		if (fatal_signal_pending(current) || ktime_get_ns() >= until) {
			weft_conn_schedule_bh(conn);
			return;
		}
		cond_resched();
		weft_conn_lock(conn);
	}
}

/* ---- TCP's callbacks ---- */

/*
 * A child that is not accepted yet has its listener's callbacks and no conn; a sockmap may own it.
 */
static struct weft_conn *conn_of(struct sock *sk)
{
	if (__locked_read_sk_user_data_with_flags(sk, SK_USER_DATA_PSOCK))
		return NULL;
	return __locked_read_sk_user_data_with_flags(sk, SK_USER_DATA_NOCOPY);
}

/*
 * The connection, with the caller as a user, or NULL. Restoring the callbacks waits for the lock,
 * then for users. The lock is dropped at once: a callback may lead to another, or to a netfilter
 * rule that takes the lock for the acknowledgement that TCP sends, and on PREEMPT_RT a second
 * reader waits for a waiting writer.
 */
static struct weft_conn *enter_by_callback(struct sock *sk)
{
	struct weft_conn *conn;

	lockdep_assert_not_held(&sk->sk_callback_lock);
	read_lock_bh(&sk->sk_callback_lock);
	conn = conn_of(sk);
	if (conn)
		refcount_inc(&conn->users);
	read_unlock_bh(&sk->sk_callback_lock);
	return conn;
}

static void data_ready(struct sock *sk)
{
	struct weft_conn *conn = enter_by_callback(sk);

	if (!conn)
		return;
	if (conn->link.mode == WEFT_MODE_STARTUP) {
		weft_startup_enqueue(conn);
	} else if (conn->sending) {
		/* The queue logic must not be re-entered: ran_up_to() reads the octets. */
		conn->unread = true;
	} else {
		weft_conn_receive(conn, WEFT_SLICE_SHORT);
		answer_peer(conn);
	}
	weft_conn_leave(conn);
}

static void state_change(struct sock *sk)
{
	struct weft_conn *conn = enter_by_callback(sk);

	if (!conn)
		return;
	weft_startup_enqueue(conn);
	weft_conn_leave(conn);
}

/* A third of the send buffer is free: worth a run. */
static void write_space(struct sock *sk)
{
	struct weft_conn *conn = enter_by_callback(sk);

	if (!conn)
		return;
	if (conn->full && sk_stream_is_writeable(sk)) {
		clear_bit(SOCK_NOSPACE, &sk->sk_socket->flags);
		set_bit(WEFT_CF_PENDING, &conn->flags);
		pass_on(conn);
	}
	weft_conn_leave(conn);
}

const struct weft_sk_callbacks weft_conn_callbacks = {
	.state_change	= state_change,
	.data_ready	= data_ready,
	.write_space	= write_space,
	.error_report	= state_change,
};

void weft_conn_run_init(struct weft_conn *conn)
{
	weft_bh_init(&conn->bh, run_bh);
}
