// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Connection set-up and tear-down, between core/link.h, which decides, and iw_cm, which gets the
 * events. This file has the code that both roles share, and the worker; cm_active.c and
 * cm_passive.c have the roles.
 *
 * Everything here holds the connection's mutex, so that iw_cm gets events in order: one
 * CONNECT_REPLY or ESTABLISHED, then at most one DISCONNECT, then one CLOSE, which drops the id.
 * iw_cm answers a breach with BUG().
 */
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <net/tcp.h>

#include "cm.h"
#include "tcp.h"
#include "trace.h"

/* Retry after TCP had no memory to send. */
#define RETRY_MS	2

/* ---- events for iw_cm ---- */

/* The depth as reported to the ULP: iw_cm_event has a u8. */
static u8 cm_depth(u16 d)
{
	if (d == WEFT_MPA_NO_NEGOTIATION)
		return WEFT_MAX_IRD;
	return min_t(u16, d, 255);
}

int weft_cm_tell(struct weft_conn *conn, struct iw_cm_id *id, enum iw_cm_event_type type,
		int status, const u8 *pd, u32 pd_len)
{
	struct iw_cm_event ev = {
		.event = type,
		.status = status,
		.local_addr = id->local_addr,
		.remote_addr = id->remote_addr,
		/*
		 * With a zero length iw_cm passes the pointer itself on, and ULPs dereference it.
		 */
		.private_data = pd_len ? (void *)pd : NULL,
		.private_data_len = pd_len,
	};

	if (type == IW_CM_EVENT_CONNECT_REQUEST) {
		bool open = !conn->link.st.frame.enhanced;

		ev.provider_data = (void *)(unsigned long)conn->request;
		/* Derives the ULP's depths from the peer's. RFC 5044 leaves this open. */
		ev.ird = open ? WEFT_MAX_IRD : cm_depth(conn->link.st.frame.ird);
		ev.ord = open ? WEFT_MAX_ORD : cm_depth(conn->link.st.frame.ord);
	} else if (!status) {
		ev.ird = cm_depth(conn->link.st.agreed.ird);
		ev.ord = cm_depth(conn->link.st.agreed.ord);
	}
	if (!status && type != IW_CM_EVENT_CLOSE)
		weft_sock_names(conn, &ev.local_addr, &ev.remote_addr);
	return id->event_handler(id, &ev);
}

void weft_cm_put_id(struct weft_conn *conn)
{
	struct iw_cm_id *id = conn->id;

	conn->id = NULL;
	if (id)
		id->rem_ref(id);
}

/* ---- steps of the link, and their actions ---- */

void weft_cm_base_cfg(const struct weft_device *dev, struct weft_mpa_cfg *cfg)
{
	u8 rtr = READ_ONCE(dev->rtr);

	*cfg = (struct weft_mpa_cfg) {
		.rev = READ_ONCE(dev->mpa_rev),
		.crc = READ_ONCE(dev->crc),
		.markers = READ_ONCE(dev->markers),
		.p2p = rtr,
		.rtr = rtr,
		.ird = WEFT_MAX_IRD,
		.ord = WEFT_MAX_ORD,
	};
}

void weft_cm_configure(struct weft_conn *conn)
{
	struct weft_link_cfg *cfg = &conn->link.cfg;
	const struct weft_device *dev = conn->dev;

	weft_cm_base_cfg(dev, &cfg->mpa);
	cfg->startup_ms = READ_ONCE(dev->startup_timeout_ms);
	cfg->accept_ms = READ_ONCE(dev->accept_timeout_ms);
	cfg->close_ms = READ_ONCE(dev->close_timeout_ms);
	cfg->dead_ms = READ_ONCE(dev->dead_peer_timeout_ms);
	cfg->rnr_ms = READ_ONCE(dev->rnr_timeout_ms);
	cfg->pd_max = WEFT_CM_PD_MAX;
	cfg->ext = READ_ONCE(dev->extensions);
	cfg->large_fpdus = READ_ONCE(dev->large_fpdus);
	cfg->part_min = WEFT_PART_MIN;
}

/* Why TCP did not connect, as an errno of iw_cm's, or ended. A send may have taken it already. */
static int tcp_error(struct sock *sk)
{
	int err = -READ_ONCE(sk->sk_err);

	return err == -EHOSTUNREACH || err == -ENETUNREACH ? -ETIMEDOUT : err;
}

static void view_tcp(struct weft_conn *conn, struct weft_tcp_view *v)
{
	struct sock *sk = conn->sk;
	struct weft_tcp_signs signs;

	v->connecting = sk->sk_state == TCP_SYN_SENT || sk->sk_state == TCP_SYN_RECV;
	v->established = sk->sk_state == TCP_ESTABLISHED;
	v->closed = sk->sk_state == TCP_CLOSE;
	v->fin = sk->sk_shutdown & RCV_SHUTDOWN;
	v->delivered = sk->sk_state == TCP_FIN_WAIT2;
	v->error = v->closed ? tcp_error(sk) : 0;
	signs = weft_tcp_signs(sk);
	v->acked = signs.acked;
	v->idle_ms = signs.idle_ms;
	v->unanswered = signs.unanswered;
}

static void carry_out_startup(struct weft_conn *conn, u32 acts)
{
	if (acts & WEFT_ACT_FAILED)
		weft_cm_tell_failed(conn);
	if (acts & WEFT_ACT_CONNECTED)
		weft_cm_tell_connected(conn);
	/* Allocates memory charged to its payer, so not in a turn. */
	if (acts & WEFT_ACT_RETRY)
		weft_conn_wake_worker(conn, WEFT_CEV_RECONNECT);
	if (acts & WEFT_ACT_ASK_ULP)
		weft_cm_ask_ulp(conn);
	if (conn->link.state != WEFT_LINK_AWAIT_REQUEST && conn->link.state != WEFT_LINK_REQUESTED)
		weft_cm_leave_listener(conn);
	if (conn->link.state != WEFT_LINK_CONNECTING && conn->link.state != WEFT_LINK_AWAIT_REPLY)
		weft_sock_drop_spares(conn);
}

static void carry_out(struct weft_conn *conn, u32 acts)
{
	carry_out_startup(conn, acts);
	if (acts & WEFT_ACT_DISCONNECTED)
		weft_cm_tell(conn, conn->id, IW_CM_EVENT_DISCONNECT, 0, NULL, 0);
	/* iw_cm drops its reference on the QP, too. */
	if (acts & WEFT_ACT_ENDED) {
		weft_cm_tell(conn, conn->id, IW_CM_EVENT_CLOSE, 0, NULL, 0);
		weft_cm_put_id(conn);
	}
	if (acts & WEFT_ACT_SHUT)
		weft_sock_shutdown(conn);
	if (acts & WEFT_ACT_DIE)
		weft_cm_withdraw_request(conn);
}

void weft_cm_begin(struct weft_conn *conn, struct weft_cm_view *v)
{
	weft_sock_set_keepalive(conn, READ_ONCE(conn->dev->dead_peer_timeout_ms));
	weft_conn_lock(conn);
	weft_cm_configure(conn);
	view_tcp(conn, &v->tcp);
	v->now = weft_conn_now();
	v->from = conn->link.state;
}

/* TCP reports a FIN before the data in front of it has been read. */
void weft_cm_read(struct weft_conn *conn, struct weft_cm_view *v)
{
	if (v->from == WEFT_LINK_CONNECTING)
		return;
	weft_conn_receive(conn, SIZE_MAX);
	view_tcp(conn, &v->tcp);
}

static void leave_and_act(struct weft_conn *conn, const struct weft_cm_view *v, u32 acts)
{
	struct weft_qp *qp = NULL;

	weft_conn_ran(conn);
	/* Programs expect no more completions after the DISCONNECT event. */
	if (acts & WEFT_ACT_DISCONNECTED)
		weft_conn_flush_all(weft_conn_qp(conn));
	if (acts & WEFT_ACT_RELEASE_QP)
		qp = weft_conn_release_qp(conn);
	weft_conn_unlock(conn);
	if (qp)
		weft_qp_drop(qp);
	if (conn->link.state != v->from) {
		trace_weft_conn(conn, v->from);
		weft_limit_update(conn);
	}
	carry_out(conn, acts);
}

void weft_cm_end(struct weft_conn *conn, const struct weft_cm_view *v, u32 acts)
{
	leave_and_act(conn, v, acts);
	if (acts & WEFT_ACT_AGAIN)
		weft_cm_step(conn);
}

void weft_cm_give_up(struct weft_conn *conn)
{
	enum weft_link_state from = conn->link.state;

	weft_link_die(&conn->link);
	trace_weft_conn(conn, from);
}

void weft_cm_drop_qp(struct weft_conn *conn)
{
	struct weft_qp *qp;

	weft_conn_lock(conn);
	qp = weft_conn_release_qp(conn);
	weft_conn_unlock(conn);
	if (qp)
		weft_qp_drop(qp);
}

void weft_cm_kill(struct weft_conn *conn)
{
	struct weft_cm_view v;

	weft_cm_begin(conn, &v);
	weft_cm_end(conn, &v, weft_link_kill(&conn->link));
}

bool weft_cm_step_once(struct weft_conn *conn)
{
	struct weft_cm_view v;
	u32 acts;

	weft_cm_begin(conn, &v);
	weft_cm_read(conn, &v);
	acts = weft_link_step(&conn->link, &v.tcp, v.now);
	leave_and_act(conn, &v, acts);
	return acts & WEFT_ACT_AGAIN;
}

void weft_cm_step(struct weft_conn *conn)
{
	while (weft_cm_step_once(conn))
		;
}

void weft_cm_settle(struct weft_conn *conn)
{
	/*
	 * The worker waits for the mutex, and may free the connection before mutex_unlock() has
	 * returned. The mutex must outlive that.
	 */
	weft_conn_get(conn);
	mutex_unlock(&conn->mutex);
	weft_startup_settled(conn);
	weft_conn_put(conn);
}

/* ---- the worker ---- */

static bool is_dead(const struct weft_conn *conn)
{
	return conn->link.state == WEFT_LINK_DEAD;
}

static void send_again(struct weft_conn *conn)
{
	/* Before the lock: weft_conn_try_again(). */
	WRITE_ONCE(conn->retry_at, 0);
	weft_conn_lock(conn);
	set_bit(WEFT_CF_PENDING, &conn->flags);
	weft_conn_unlock(conn);
}

/* Includes events set meanwhile. */
static void evict(struct weft_conn *conn)
{
	struct weft_cm_view v;
	u32 acts;

	weft_cm_begin(conn, &v);
	weft_cm_read(conn, &v);
	if (weft_limit_gives_way(conn))
		acts = weft_link_kill(&conn->link);
	else
		acts = weft_link_evict(&conn->link, &v.tcp, weft_limit_is_doubled(conn));
	if (acts & WEFT_ACT_DIE)
		weft_count(conn, WEFT_CNT_EVICTED, 1);
	weft_cm_end(conn, &v, acts);
	if (!is_dead(conn))
		weft_limit_stay(conn);
}

static void run_listener(struct weft_conn *conn, unsigned long events)
{
	if (events & BIT(WEFT_CEV_KILL))
		weft_cm_give_up(conn);
	else
		weft_cm_listening(conn);
}

static void run_link(struct weft_conn *conn, unsigned long events)
{
	if (events & BIT(WEFT_CEV_KILL)) {
		weft_cm_kill(conn);
		return;
	}
	if (events & BIT(WEFT_CEV_RECONNECT) && conn->link.state == WEFT_LINK_AWAIT_REPLY) {
		weft_cm_reconnect(conn);
		return;
	}
	if (events & BIT(WEFT_CEV_RETRY) && !conn->retry_at)
		WRITE_ONCE(conn->retry_at, weft_conn_now() + RETRY_MS);
	else if (conn->retry_at && weft_conn_now() >= conn->retry_at)
		send_again(conn);
	if (events & BIT(WEFT_CEV_ORPHAN)) {
		weft_cm_configure(conn);
		weft_link_orphan(&conn->link, weft_conn_now());
	}
	if (events & BIT(WEFT_CEV_EVICT))
		evict(conn);
	weft_cm_step(conn);
}

void weft_cm_work(struct work_struct *work)
{
	struct weft_conn *conn = container_of(work, struct weft_conn, work.work);
	/* Reclaim may have to write over this very connection. */
	unsigned int noio = memalloc_noio_save();
	bool dead;

	mutex_lock(&conn->mutex);
	if (!is_dead(conn) && conn->listening)
		run_listener(conn, xchg(&conn->events, 0));
	else if (!is_dead(conn))
		run_link(conn, xchg(&conn->events, 0));
	dead = is_dead(conn);
	if (!dead)
		weft_conn_arm(conn);
	mutex_unlock(&conn->mutex);
	if (dead)
		weft_conn_finish(conn);
	memalloc_noio_restore(noio);
}

/* ---- destroy_qp ---- */

/* Detaches @conn from @qp, and reports that to iw_cm. */
static void forget_qp(struct weft_conn *conn, struct weft_qp *qp)
{
	unsigned int noio = weft_lock_noio(&conn->mutex);
	struct weft_cm_view v;

	weft_cm_begin(conn, &v);
	weft_cm_end(conn, &v, weft_conn_qp(conn) == qp ?
			      weft_link_forget(&conn->link, &v.tcp, v.now) : 0);
	weft_unlock_noio(&conn->mutex, noio);
	weft_conn_wake_worker(conn, WEFT_CEV_WAKE);
}

void weft_cm_detach_qp(struct weft_qp *qp)
{
	struct weft_conn *conn;

	while ((conn = weft_conn_enter(qp))) {
		forget_qp(conn, qp);
		weft_conn_leave(conn);
	}
}
