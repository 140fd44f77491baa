// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * One connection: its lock, its callbacks, the receive run, its life and death.
 *
 * Locks. The socket's lock is the connection's: it guards the stream, the send
 * batch and the attached QP's core. Process context takes it with
 * weft_conn_lock(); softirq has it in TCP's callbacks, and the tasklet takes
 * it with bh_lock_sock() unless a process owns the socket. Work for the send
 * side that arises elsewhere sets WEFT_CF_PENDING, a window to be opened
 * WEFT_CF_WINDOW; whoever has the lock next, or lets it go, sees to it. Set-up
 * and tear-down are serial under conn->mutex: the worker has it, or a call of
 * iw_cm. Order: qp->state_lock, conn->mutex, socket, sk_callback_lock,
 * conn->lock.
 *
 * Life. A connection is linked to its device from birth to death, so that
 * weft_conn_kill_all() finds all, and its worker, one work item, is the only
 * one that ends it. Death has two steps. First: whoever sets WEFT_CONN_DEAD
 * (under the mutex) has made the QP let go before, so that qp->conn leads here
 * no more. Then the worker, in finish(): nothing is scheduled any more (dead),
 * the callbacks are restored (which waits for running ones), those who came in
 * through qp->conn have left (users), the tasklet is over, the socket is
 * closed without a timer, the connection is unlinked. The memory goes with the
 * last reference: a listener's provider_data has one, and a request's name in
 * iw_cm (cm_passive.c).
 */
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <net/tcp.h>

#include "tcp.h"
#include "trace.h"

/* Runs of the send side before a process leaves the rest to the tasklet. */
#define ROUNDS_PROCESS	64
/* Runs before the tasklet goes to the end of softirq's queue. */
#define ROUNDS_BH	4

DECLARE_WAIT_QUEUE_HEAD(weft_conns_gone);

/* Of its own, so that a connection that outlives the module is found. */
static struct kmem_cache *conn_cache;

/* ---- references ---- */

static void free_conn_rcu(struct rcu_head *rcu)
{
	kmem_cache_free(conn_cache, container_of(rcu, struct weft_conn, rcu));
}

static void free_conn(struct kref *ref)
{
	struct weft_conn *conn = container_of(ref, struct weft_conn, ref);

	kfree(conn->offer);
	kfree(conn->orq);
	kfree(conn->irq);
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

/*
 * The QP's connection, its socket safe until leave(); NULL if there is none. One
 * that is past its last user has let the QP go before.
 */
static struct weft_conn *enter(struct weft_qp *qp)
{
	struct weft_conn *conn;

	rcu_read_lock();
	conn = rcu_dereference(qp->conn);
	if (conn && !refcount_inc_not_zero(&conn->users))
		conn = NULL;
	rcu_read_unlock();
	/* Then the core is as its connection left it: see weft_conn_release_qp(). */
	if (!conn)
		smp_rmb();
	return conn;
}

static void leave(struct weft_conn *conn)
{
	if (refcount_dec_and_test(&conn->users))
		complete(&conn->idle);
}

void weft_conn_set_state(struct weft_conn *conn, enum weft_conn_state state)
{
	enum weft_conn_state from = conn->state;

	conn->state = state;
	trace_weft_conn(conn, from);
}

/* ---- scheduling ---- */

void weft_conn_post(struct weft_conn *conn, unsigned int event)
{
	unsigned long flags;

	set_bit(event, &conn->events);
	spin_lock_irqsave(&conn->lock, flags);
	if (!conn->dead)
		mod_delayed_work(weft_wq, &conn->work, 0);
	spin_unlock_irqrestore(&conn->lock, flags);
}

static void schedule_bh(struct weft_conn *conn)
{
	unsigned long flags;

	spin_lock_irqsave(&conn->lock, flags);
	if (!conn->dead)
		tasklet_schedule(&conn->bh);
	spin_unlock_irqrestore(&conn->lock, flags);
}

void weft_conn_pend(struct weft_conn *conn)
{
	set_bit(WEFT_CF_PENDING, &conn->flags);
	schedule_bh(conn);
}

/*
 * There is work and the socket has an owner. The last who came by weft_conn_lock()
 * looks at the bits after it let go: they were set before it is counted out of
 * holders, so it sees them. Others own sockets too (sock_diag for `ss -i`) and
 * know of no bit: then it is the worker's.
 */
static void leave_to_owner(struct weft_conn *conn)
{
	/* Pairs with the barrier in weft_conn_unlock(). */
	smp_mb();
	if (!atomic_read(&conn->holders))
		weft_conn_post(conn, WEFT_CEV_WAKE);
}

/* In softirq, where what the peer then sends is read at once, and no backlog. */
static void open_window(struct weft_conn *conn)
{
	if (test_and_clear_bit(WEFT_CF_WINDOW, &conn->flags) && weft_tcp_window_is_stale(conn->sk))
		weft_tcp_open_window(conn->sk);
}

/* What whoever lets the lock go has to look at. */
static bool has_work(const struct weft_conn *conn)
{
	return READ_ONCE(conn->flags) & (BIT(WEFT_CF_PENDING) | BIT(WEFT_CF_WINDOW));
}

/* The send side, in softirq, and the window. */
static void run_bh(struct tasklet_struct *t)
{
	struct weft_conn *conn = from_tasklet(conn, t, bh);
	bool owned, more;
	u32 i;

	bh_lock_sock(conn->sk);
	owned = sock_owned_by_user(conn->sk);
	for (i = 0; i < ROUNDS_BH && !owned; i++)
		if (test_and_clear_bit(WEFT_CF_PENDING, &conn->flags))
			weft_conn_tx(conn);
	if (!owned)
		open_window(conn);
	more = has_work(conn);
	if (more && owned)
		leave_to_owner(conn);
	bh_unlock_sock(conn->sk);
	if (more && !owned)
		schedule_bh(conn);
}

/* There is work since a callback of TCP's: who does it? */
static void pass_on(struct weft_conn *conn)
{
	if (sock_owned_by_user(conn->sk))
		leave_to_owner(conn);
	else
		schedule_bh(conn);
}

/*
 * What arrived wants an answer: a Read Response, a Terminate. TCP has queued its
 * data and is done with it, so the answer goes out from here, and takes the
 * acknowledgement along.
 */
static void answer(struct weft_conn *conn)
{
	if (!sock_owned_by_user(conn->sk) &&
	    test_and_clear_bit(WEFT_CF_PENDING, &conn->flags))
		weft_conn_tx(conn);
	if (has_work(conn))
		pass_on(conn);
}

void weft_conn_lock(struct weft_conn *conn)
{
	atomic_inc(&conn->holders);
	lock_sock(conn->sk);
}

/* The tasklet then runs here at once, and not in ksoftirqd. */
static void run_bh_here(struct weft_conn *conn)
{
	local_bh_disable();
	schedule_bh(conn);
	local_bh_enable();
}

/* Data that comes while we own the socket is received in release_sock(). */
void weft_conn_unlock(struct weft_conn *conn)
{
	u32 rounds = 0;

	for (;;) {
		if (test_and_clear_bit(WEFT_CF_PENDING, &conn->flags))
			weft_conn_tx(conn);
		release_sock(conn->sk);
		/*
		 * Who waits for the lock runs it, and is not kept waiting by us. The barrier
		 * in here pairs with that in leave_to_owner().
		 */
		if (atomic_dec_return(&conn->holders))
			return;
		if (test_bit(WEFT_CF_WINDOW, &conn->flags))
			run_bh_here(conn);
		if (!test_bit(WEFT_CF_PENDING, &conn->flags))
			return;
		if (++rounds == ROUNDS_PROCESS) {
			schedule_bh(conn);
			return;
		}
		cond_resched();
		weft_conn_lock(conn);
	}
}

/* ---- receiving ---- */

/*
 * A whole Request must stand alone: for a responder the stream makes an error
 * of what follows it. What follows a Reply stays in TCP for Full Operation.
 */
static void feed_startup(struct weft_conn *conn, struct weft_cur *in)
{
	struct weft_stream *st = &conn->st;
	struct weft_fpdu none;
	enum weft_rx_event ev;

	if (st->initiator && conn->rx_event == WEFT_RX_STARTUP)
		return;
	ev = weft_stream_rx(st, in, &none);
	if (ev == WEFT_RX_STARTUP || ev == WEFT_RX_ERROR)
		conn->rx_event = ev;
}

/* Gives the pieces to whom they are for; returns the octets left over. */
static u32 feed(struct weft_conn *conn, const struct weft_seg *seg, u32 nseg)
{
	struct weft_cur in;

	weft_cur_init(&in, seg, nseg);
	switch (conn->rx_mode) {
	case WEFT_MODE_STARTUP:
		feed_startup(conn, &in);
		return in.left;
	case WEFT_MODE_FULL:
		weft_qpc_rx(&conn->qp->core, &in);
		break;
	case WEFT_MODE_DISCARD:
		weft_count(conn, WEFT_CNT_RX_DROPPED, in.left);
		break;
	}
	return 0;
}

/* Octets that the skb does not let us read cannot be missed silently. */
static void unreadable(struct weft_conn *conn)
{
	if (conn->rx_mode == WEFT_MODE_FULL)
		weft_qpc_fail(&conn->qp->core, WEFT_E_RDMAP_LOCAL, NULL);
	else
		conn->rx_event = WEFT_RX_ERROR;
}

/* tcp_read_sock()'s: lists the pieces of an skb. Returns the octets consumed. */
static int recv_skb(read_descriptor_t *desc, struct sk_buff *skb, unsigned int off, size_t len)
{
	struct weft_conn *conn = desc->arg.data;
	struct weft_seg seg[WEFT_CONN_SEGS] __uninitialized;
	struct skb_seq_state seq;
	u32 nseg = 0, done = 0, n, left;
	const u8 *p;

	skb_prepare_seq_read(skb, off, off + (u32)len, &seq);
	while ((n = skb_seq_read(done, &p, &seq))) {
		seg[nseg++] = (struct weft_seg) { .p = p, .len = n };
		done += n;
		if (nseg < WEFT_CONN_SEGS)
			continue;
		left = feed(conn, seg, nseg);
		nseg = 0;
		if (left) {
			skb_abort_seq_read(&seq);
			return done - left;
		}
	}
	left = nseg ? feed(conn, seg, nseg) : 0;
	if (left)
		return done - left;
	if (done < len)
		unreadable(conn);
	return len;
}

void weft_conn_receive(struct weft_conn *conn)
{
	read_descriptor_t desc = { .arg.data = conn, .count = 1 };
	u32 fpdus = conn->st.rx_fpdus;
	int n = tcp_read_sock(conn->sk, &desc, recv_skb);

	/* Urgent data would stop the reading for ever; iWARP has no use for it. */
	if (unlikely(weft_tcp_has_urgent_data(conn->sk)))
		unreadable(conn);
	if (weft_tcp_window_is_stale(conn->sk))
		set_bit(WEFT_CF_WINDOW, &conn->flags);
	fpdus = conn->st.rx_fpdus - fpdus;
	if (fpdus)
		weft_count(conn, WEFT_CNT_RX_FPDUS, fpdus);
	if (!conn->qp)
		return;
	weft_region_end_run(&conn->qp->core);
	if (n > 0)
		trace_weft_rx(conn->qp->core.id, fpdus, n);
}

/* ---- TCP's callbacks ---- */

/*
 * sk_callback_lock is held throughout: restoring the callbacks waits for them.
 * A child that nobody accepted yet has its listener's callbacks and no conn.
 */
static struct weft_conn *conn_of(struct sock *sk)
{
	return __locked_read_sk_user_data_with_flags(sk, SK_USER_DATA_NOCOPY);
}

static void data_ready(struct sock *sk)
{
	struct weft_conn *conn;

	read_lock_bh(&sk->sk_callback_lock);
	conn = conn_of(sk);
	if (!conn)
		goto out;
	if (conn->rx_mode == WEFT_MODE_STARTUP) {
		weft_conn_post(conn, WEFT_CEV_WAKE);
		goto out;
	}
	/* The queue logic is not entered twice: read_rest() comes. */
	if (conn->tx.sending) {
		conn->tx.unread = true;
		goto out;
	}
	weft_conn_receive(conn);
	answer(conn);
out:
	read_unlock_bh(&sk->sk_callback_lock);
}

static void wake_worker(struct sock *sk)
{
	struct weft_conn *conn;

	read_lock_bh(&sk->sk_callback_lock);
	conn = conn_of(sk);
	if (conn)
		weft_conn_post(conn, WEFT_CEV_WAKE);
	read_unlock_bh(&sk->sk_callback_lock);
}

/* A third of the send buffer is free: worth a run. */
static void write_space(struct sock *sk)
{
	struct weft_conn *conn;

	read_lock_bh(&sk->sk_callback_lock);
	conn = conn_of(sk);
	if (conn && conn->tx.full && sk_stream_is_writeable(sk)) {
		clear_bit(SOCK_NOSPACE, &sk->sk_socket->flags);
		set_bit(WEFT_CF_PENDING, &conn->flags);
		pass_on(conn);
	}
	read_unlock_bh(&sk->sk_callback_lock);
}

const struct weft_sk_callbacks weft_conn_callbacks = {
	.state_change	= wake_worker,
	.data_ready	= data_ready,
	.write_space	= write_space,
	.error_report	= wake_worker,
};

/* ---- QP and connection ---- */

/* Without one the core is the QP's: as its last connection has left it. state_lock. */
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
	conn->qp = qp;
	conn->tx.taken = qp->core.sq.taken;
	rcu_assign_pointer(qp->conn, conn);
	return 0;
}

void weft_conn_hand_over(struct weft_conn *conn, struct weft_conn *to)
{
	struct weft_qp *qp;

	weft_conn_lock(conn);
	qp = conn->qp;
	conn->qp = NULL;
	to->qp = qp;
	to->tx.taken = conn->tx.taken;
	rcu_assign_pointer(qp->conn, to);
	weft_conn_unlock(conn);
}

struct weft_qp *weft_conn_release_qp(struct weft_conn *conn)
{
	struct weft_qp *qp = conn->qp;

	if (!qp)
		return NULL;
	if (qp->core.state == WEFT_QPS_TERM)
		weft_conn_tx_last_words(conn);
	else if (qp->core.state != WEFT_QPS_IDLE)
		weft_qpc_error(&qp->core);
	conn->rx_mode = WEFT_MODE_DISCARD;
	conn->tx.told = false;
	weft_linger_stop(conn);
	conn->qp = NULL;
	/* The stream and the arrays are the connection's. */
	qp->core.st = NULL;
	qp->core.orq = NULL;
	qp->core.irq = NULL;
	/* The core as we leave it; pairs with has_conn() and enter(). */
	smp_wmb();
	RCU_INIT_POINTER(qp->conn, NULL);
	/* A kick that came in while qp->conn still led here will find no QP; pairs
	 * with weft_conn_kick_any().
	 */
	smp_mb();
	if (test_bit(WEFT_CF_PENDING, &conn->flags))
		queue_work(weft_wq, &qp->flush);
	return qp;
}

/* Without a connection the QP's own lock guards its core: see weft_conn_attach(). */
static void flush_unconnected(struct weft_qp *qp)
{
	mutex_lock(&qp->state_lock);
	if (!has_conn(qp))
		weft_qpc_flush(&qp->core);
	mutex_unlock(&qp->state_lock);
}

static void flush_posts(struct work_struct *work)
{
	flush_unconnected(container_of(work, struct weft_qp, flush));
}

void weft_conn_qp_init(struct weft_qp *qp)
{
	INIT_WORK(&qp->flush, flush_posts);
}

void weft_conn_kick(struct weft_qp *qp)
{
	struct weft_conn *conn = enter(qp);
	bool ours = false;

	if (conn) {
		weft_conn_lock(conn);
		ours = conn->qp == qp;
		if (ours) {
			weft_count(conn, WEFT_CNT_DOORBELLS, 1);
			weft_linger_begin(conn);
			weft_conn_tx(conn);
		}
		weft_conn_unlock(conn);
		weft_linger_end(conn);
		leave(conn);
	}
	if (!ours)
		flush_unconnected(qp);
}

void weft_conn_kick_any(struct weft_qp *qp)
{
	/* The tasklet then runs here at once, and not in ksoftirqd. */
	bool bh = !irqs_disabled();
	struct weft_conn *conn;

	if (bh)
		local_bh_disable();
	conn = enter(qp);
	if (conn) {
		weft_conn_pend(conn);
		/* Pairs with weft_conn_release_qp(): one of us sees the other. */
		smp_mb__after_atomic();
		leave(conn);
	}
	if (!conn || rcu_access_pointer(qp->conn) != conn)
		queue_work(weft_wq, &qp->flush);
	if (bh)
		local_bh_enable();
}

int weft_conn_close_graceful(struct weft_qp *qp)
{
	struct weft_conn *conn = enter(qp);

	lockdep_assert_held(&qp->state_lock);
	if (!conn)
		return 0;
	weft_conn_lock(conn);
	if (conn->qp == qp)
		weft_qpc_close(&qp->core);
	weft_conn_unlock(conn);
	weft_conn_post(conn, WEFT_CEV_WAKE);
	leave(conn);
	return 0;
}

int weft_conn_error(struct weft_qp *qp)
{
	struct weft_conn *conn;
	bool done = false;

	lockdep_assert_held(&qp->state_lock);
	while (!done && (conn = enter(qp))) {
		weft_conn_lock(conn);
		done = conn->qp == qp;
		if (done)
			weft_qpc_error(&qp->core);
		weft_conn_unlock(conn);
		weft_conn_post(conn, WEFT_CEV_WAKE);
		leave(conn);
	}
	if (!done)
		weft_qpc_error(&qp->core);
	return 0;
}

void weft_conn_detach(struct weft_qp *qp)
{
	struct weft_conn *conn;

	while ((conn = enter(qp))) {
		weft_cm_forget(conn, qp);
		leave(conn);
	}
}

/* ---- what the core asks of its host ---- */

static struct weft_qp *qp_of(struct weft_qpc *core)
{
	return container_of(core, struct weft_qp, core);
}

/* The core runs under its connection's lock, or has none. */
static struct weft_conn *conn_of_qp(struct weft_qp *qp)
{
	return rcu_dereference_protected(qp->conn, true);
}

void weft_host_kick(struct weft_qpc *core)
{
	struct weft_conn *conn = conn_of_qp(qp_of(core));

	/* Whoever called the core has the lock, and looks before letting go. */
	if (conn)
		set_bit(WEFT_CF_PENDING, &conn->flags);
}

u8 *weft_host_chunk(struct weft_qpc *core)
{
	return kmalloc(WEFT_STAGE_CHUNK, GFP_ATOMIC | __GFP_NOWARN);
}

void weft_host_chunk_free(struct weft_qpc *core, u8 *chunk)
{
	kfree(chunk);
}

/* @first: WEFT_CNT_TERM_IN or WEFT_CNT_TERM_OUT. A peer may say anything. */
static void count_term(struct weft_qp *qp, u32 first, const struct weft_term *t)
{
	enum weft_err e = weft_err_of_term(t->layer, t->etype, t->code);
	u32 nth = e == WEFT_OK ? 0 : e - WEFT_E_MPA_CRC + 1;

	atomic64_inc(&qp->dev->terms[first - WEFT_CNT_TERM_IN + nth]);
}

void weft_host_event(struct weft_qpc *core, enum weft_event ev)
{
	struct weft_qp *qp = qp_of(core);

	trace_weft_qp(core, ev);
	switch (ev) {
	case WEFT_EV_TERM_SENT:
		count_term(qp, WEFT_CNT_TERM_OUT, &core->term_out);
		if (core->error == WEFT_E_MPA_CRC)
			weft_count(conn_of_qp(qp), WEFT_CNT_CRC_ERRORS, 1);
		break;
	case WEFT_EV_TERM_RECEIVED:
		count_term(qp, WEFT_CNT_TERM_IN, &core->term_in);
		break;
	case WEFT_EV_FLUSHED:
		/* The last of every way into error, and the only one common to all. */
		weft_qp_raise_error_event(qp);
		weft_qp_flushed(qp);
		if (conn_of_qp(qp))
			weft_conn_post(conn_of_qp(qp), WEFT_CEV_WAKE);
		break;
	case WEFT_EV_LOCAL_ERROR:
	case WEFT_EV_RTS:
		break;
	}
}

/* ---- life ---- */

static void free_stage(struct weft_conn *conn)
{
	u8 *chunk;

	while ((chunk = weft_stream_reclaim(&conn->st, true)))
		kfree(chunk);
}

static void add_counts(u64 *sum, const struct weft_conn *conn)
{
	u32 i;

	for (i = 0; i < WEFT_CNT_CONN_NR; i++)
		sum[i] += READ_ONCE(conn->counts[i]);
}

void weft_conn_counts(struct weft_device *dev, u64 *counts)
{
	const struct weft_conn *conn;

	spin_lock_bh(&dev->conns_lock);
	memcpy(counts, dev->counts, sizeof(dev->counts));
	list_for_each_entry(conn, &dev->conns, node)
		add_counts(counts, conn);
	spin_unlock_bh(&dev->conns_lock);
}

static void unlink_conn(struct weft_conn *conn)
{
	struct weft_device *dev = conn->dev;

	spin_lock_bh(&dev->conns_lock);
	add_counts(dev->counts, conn);
	list_del(&conn->node);
	WRITE_ONCE(conn->gone, true);
	atomic_dec(&dev->num_cep);
	spin_unlock_bh(&dev->conns_lock);
	/* The device may be gone now. */
	wake_up_all(&weft_conns_gone);
}

/* The second step of death, by the worker. */
static void finish(struct weft_conn *conn)
{
	spin_lock_irq(&conn->lock);
	conn->dead = true;
	spin_unlock_irq(&conn->lock);
	cancel_delayed_work(&conn->work);
	if (conn->sock)
		weft_sock_unhook(conn);
	leave(conn);
	wait_for_completion(&conn->idle);
	weft_linger_exit(conn);
	tasklet_kill(&conn->bh);
	if (conn->sock)
		weft_sock_close(conn);
	free_stage(conn);
	weft_conn_tx_free(conn);
	unlink_conn(conn);
	weft_conn_put(conn);
}

void weft_conn_arm(struct weft_conn *conn)
{
	unsigned long now = jiffies;
	unsigned long delay = time_after(conn->deadline, now) ? conn->deadline - now : 0;

	if (!conn->deadline)
		return;
	spin_lock_irq(&conn->lock);
	if (!conn->dead)
		queue_delayed_work(weft_wq, &conn->work, delay);
	spin_unlock_irq(&conn->lock);
}

static void work(struct work_struct *w)
{
	struct weft_conn *conn = container_of(w, struct weft_conn, work.work);
	/* What is to be reclaimed may have to be written over this very connection. */
	unsigned int noio = memalloc_noio_save();
	bool dead;

	mutex_lock(&conn->mutex);
	if (conn->state != WEFT_CONN_DEAD)
		weft_cm_run(conn, xchg(&conn->events, 0));
	dead = conn->state == WEFT_CONN_DEAD;
	if (!dead)
		weft_conn_arm(conn);
	mutex_unlock(&conn->mutex);
	if (dead)
		finish(conn);
	memalloc_noio_restore(noio);
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
	}
	spin_unlock_bh(&dev->conns_lock);
	return ok;
}

struct weft_conn *weft_conn_new(struct weft_device *dev, enum weft_conn_state state)
{
	struct weft_conn *conn = kmem_cache_zalloc(conn_cache, GFP_KERNEL);

	if (!conn)
		return ERR_PTR(-ENOMEM);
	kref_init(&conn->ref);
	refcount_set(&conn->users, 1);
	init_completion(&conn->idle);
	conn->dev = dev;
	spin_lock_init(&conn->lock);
	mutex_init(&conn->mutex);
	INIT_DELAYED_WORK(&conn->work, work);
	tasklet_setup(&conn->bh, run_bh);
	weft_linger_init(conn);
	conn->state = state;
	conn->rx_event = WEFT_RX_MORE;
	atomic_set(&conn->children, 0);
	weft_stream_init(&conn->st, state == WEFT_CONN_CONNECTING);
	/* Inside a listener's, or that of the connection it replaces. */
	mutex_lock_nested(&conn->mutex, SINGLE_DEPTH_NESTING);
	if (link_conn(conn))
		return conn;
	mutex_unlock(&conn->mutex);
	kmem_cache_free(conn_cache, conn);
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

	spin_lock_bh(&dev->conns_lock);
	list_for_each_entry(conn, &dev->conns, node)
		weft_conn_post(conn, WEFT_CEV_KILL);
	spin_unlock_bh(&dev->conns_lock);
	wait_event(weft_conns_gone, none_left(dev));
}

int weft_conn_init(void)
{
	/* Its address has room for the flags of sk_user_data. */
	conn_cache = KMEM_CACHE(weft_conn, SLAB_HWCACHE_ALIGN);
	return conn_cache ? 0 : -ENOMEM;
}

/*
 * All connections are gone. Softirq on another CPU may still be in a callback
 * that a child of a closed listener inherited: TCP calls them under RCU.
 */
void weft_conn_exit(void)
{
	synchronize_rcu();
	weft_conn_tx_exit();
	weft_tcp_exit();
	/* Their memory is on its way. */
	rcu_barrier();
	kmem_cache_destroy(conn_cache);
}
