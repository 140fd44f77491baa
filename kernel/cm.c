// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Connection set-up and tear-down: what both roles share, Full Operation's end,
 * and the worker's steps. cm_active.c and cm_passive.c have the roles.
 *
 * Everything here holds the connection's mutex, so that iw_cm is told in
 * order: a CONNECT_REPLY or ESTABLISHED once, then at most a DISCONNECT, then
 * one CLOSE, which gives the id back. iw_cm answers a breach with BUG().
 */
#include <linux/delay.h>
#include <linux/slab.h>
#include <net/tcp.h>

#include "cm.h"
#include "tcp.h"

/* When TCP had no memory to send. */
#define RETRY_MS	2
/* So many close_timeout_ms may an end without a QP last, while the peer takes what is left. */
#define CLOSING_TIMES	12

/* ---- time ---- */

void weft_cm_set_deadline(struct weft_conn *conn, unsigned int ms)
{
	/* 0 means none */
	conn->deadline = (jiffies + msecs_to_jiffies(ms)) ?: 1;
}

static bool deadline_passed(struct weft_conn *conn)
{
	if (!conn->deadline || time_before(jiffies, conn->deadline))
		return false;
	conn->deadline = 0;
	return true;
}

/* ---- telling iw_cm ---- */

/* What the ULP gets to see of a depth: iw_cm_event has a u8. */
static u8 depth(u16 d)
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
		/* Without a length iw_cm passes the pointer itself on, and ULPs look through it. */
		.private_data = pd_len ? (void *)pd : NULL,
		.private_data_len = pd_len,
	};

	if (type == IW_CM_EVENT_CONNECT_REQUEST) {
		bool open = !conn->st.frame.enhanced;

		ev.provider_data = (void *)(unsigned long)conn->request;
		/* The ULP's depths follow from the peer's. RFC 5044 tells none. */
		ev.ird = open ? WEFT_MAX_IRD : depth(conn->st.frame.ird);
		ev.ord = open ? WEFT_MAX_ORD : depth(conn->st.frame.ord);
	} else if (!status) {
		ev.ird = depth(conn->st.agreed.ird);
		ev.ord = depth(conn->st.agreed.ord);
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

/* ---- ways out ---- */

void weft_cm_die(struct weft_conn *conn)
{
	weft_conn_set_state(conn, WEFT_CONN_DEAD);
	conn->deadline = 0;
	weft_cm_withdraw_request(conn);
}

/*
 * The worker waits for the mutex, and may be done and gone before mutex_unlock()
 * has returned, which the mutex has to outlive.
 */
void weft_cm_settle(struct weft_conn *conn)
{
	weft_conn_get(conn);
	weft_conn_post(conn, WEFT_CEV_WAKE);
	mutex_unlock(&conn->mutex);
	weft_conn_put(conn);
}

/* What the peer's TCP has taken of what we send. */
struct taken {
	u64 octets;
	u32 idle_ms;			/* since it last said so */
};

/* Socket lock. */
static struct taken taken(const struct weft_conn *conn)
{
	struct taken t;

	weft_tcp_acked(conn->sk, &t.octets, &t.idle_ms);
	return t;
}

/* What is left may take its time, if it moves: the deadline then counts from when it did. */
static bool moves(struct weft_conn *conn, const struct taken *t)
{
	unsigned int ms = READ_ONCE(conn->dev->close_timeout_ms);

	if (t->octets == conn->acked || t->idle_ms >= ms)
		return false;
	conn->acked = t->octets;
	weft_cm_set_deadline(conn, ms - t->idle_ms);
	return true;
}

static bool is_closed(const struct weft_conn *conn)
{
	return conn->sk->sk_state == TCP_CLOSE;
}

/*
 * RFC 5040 §7.2, RFC 5041 §6.2: what is in hand goes out, then FIN; what comes
 * is read and dropped until the peer's FIN, for a close with unread data would
 * make TCP send RST, and lose our last words. What TCP still has may be requests
 * that are complete, so a slow peer has time; but nobody waits for it any more.
 */
static void closing(struct weft_conn *conn, bool timeout)
{
	bool closed, said;
	struct taken t;

	weft_conn_lock(conn);
	weft_conn_receive(conn);
	t = taken(conn);
	set_bit(WEFT_CF_PENDING, &conn->flags);
	weft_conn_unlock(conn);
	if (timeout && conn->closing_times && moves(conn, &t)) {
		conn->closing_times--;
		timeout = false;
	}
	closed = is_closed(conn);
	said = weft_conn_tx_done(conn);
	if (closed || timeout) {
		weft_cm_die(conn);
	} else if (said && !conn->shut) {
		conn->shut = true;
		weft_sock_shutdown(conn);
	}
}

void weft_cm_start_closing(struct weft_conn *conn)
{
	weft_conn_set_state(conn, WEFT_CONN_CLOSING);
	weft_cm_set_deadline(conn, READ_ONCE(conn->dev->close_timeout_ms));
	conn->closing_times = CLOSING_TIMES - 1;
	weft_conn_lock(conn);
	conn->acked = taken(conn).octets;
	weft_conn_unlock(conn);
	closing(conn, false);
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

/* The end of an established connection: iw_cm lets the QP go as well. */
static void end(struct weft_conn *conn)
{
	weft_cm_drop_qp(conn);
	weft_cm_tell(conn, conn->id, IW_CM_EVENT_CLOSE, 0, NULL, 0);
	weft_cm_put_id(conn);
	weft_cm_start_closing(conn);
}

void weft_cm_connect_failed(struct weft_conn *conn, int status, const u8 *pd, u32 pd_len)
{
	weft_cm_drop_qp(conn);
	/* Without its copy of private data iw_cm would wait for ever. */
	if (weft_cm_tell(conn, conn->id, IW_CM_EVENT_CONNECT_REPLY, status, pd, pd_len))
		weft_cm_tell(conn, conn->id, IW_CM_EVENT_CONNECT_REPLY, status, NULL, 0);
	weft_cm_put_id(conn);
}

/* ---- the QP enters Full Operation ---- */

int weft_cm_alloc_depths(struct weft_conn *conn, const struct weft_mpa_agreed *a)
{
	if (a->ord)
		conn->orq = kcalloc(a->ord, sizeof(*conn->orq), GFP_KERNEL);
	conn->irq = kcalloc(max_t(u32, a->ird, 1), sizeof(*conn->irq), GFP_KERNEL);
	return conn->irq && (conn->orq || !a->ord) ? 0 : -ENOMEM;
}

void weft_cm_start_qp(struct weft_conn *conn, const struct weft_mpa_agreed *a)
{
	weft_stream_start(&conn->st, a);
	weft_qpc_start(&conn->qp->core, &conn->st, a->ord, conn->orq, a->ird, conn->irq,
		       max_t(u32, a->ird, 1));
	conn->rx_mode = WEFT_MODE_FULL;
	set_bit(WEFT_CF_PENDING, &conn->flags);
}

void weft_cm_base_cfg(const struct weft_device *dev, struct weft_mpa_cfg *cfg, u32 ird, u32 ord)
{
	*cfg = (struct weft_mpa_cfg) {
		.rev = READ_ONCE(dev->mpa_rev),
		.crc = READ_ONCE(dev->crc),
		.markers = READ_ONCE(dev->markers),
		.rtr = READ_ONCE(dev->rtr),
		.ird = min_t(u32, ird, WEFT_MAX_IRD),
		.ord = min_t(u32, ord, WEFT_MAX_ORD),
	};
}

/* ---- Full Operation ---- */

struct open_view {
	bool closed;			/* TCP is */
	bool fin;			/* the peer's has come */
	bool dying;			/* the QP is in error */
	bool said;			/* and all is said; or a graceful close is */
	bool closing;			/* a graceful close is under way */
	bool mute;			/* an initiator that is to speak first has not yet */
	struct taken taken;
};

static struct open_view look(struct weft_conn *conn)
{
	struct weft_qpc *core;
	struct open_view v;

	weft_conn_lock(conn);
	/* A FIN is reported before the data that came with it was read. */
	weft_conn_receive(conn);
	core = &conn->qp->core;
	v.closed = is_closed(conn);
	v.fin = conn->sk->sk_shutdown & RCV_SHUTDOWN;
	if (v.closed)
		weft_qpc_error(core);
	else if (v.fin && !conn->peer_fin)
		weft_qpc_peer_fin(core);
	set_bit(WEFT_CF_PENDING, &conn->flags);
	weft_conn_unlock(conn);

	weft_conn_lock(conn);
	v.dying = core->state == WEFT_QPS_ERROR || core->state == WEFT_QPS_TERM;
	v.said = core->state != WEFT_QPS_TERM && (v.dying || conn->tx.fin) &&
		 weft_conn_tx_done(conn);
	v.closing = core->state == WEFT_QPS_CLOSING;
	v.mute = core->rtr_await;
	v.taken = taken(conn);
	weft_conn_unlock(conn);
	return v;
}

/*
 * A responder that agreed to peer-to-peer begins with a deadline for the
 * initiator's RTR, which gives way to that of the connection's end. True if it
 * passed, and nothing came.
 */
static bool rtr_missing(struct weft_conn *conn, const struct open_view *v, bool timeout)
{
	if (!conn->rtr_due || !(timeout || v->dying || v->closing || v->fin))
		return false;
	conn->rtr_due = false;
	conn->deadline = 0;
	return timeout && v->mute;
}

static void open(struct weft_conn *conn, bool timeout)
{
	bool rtr_due = conn->rtr_due;
	struct open_view v = look(conn);
	bool slow;

	if (rtr_missing(conn, &v, timeout)) {
		end(conn);
		return;
	}
	timeout = timeout && !rtr_due;
	slow = timeout && moves(conn, &v.taken);
	/* A QP in error waits no longer, slow as the peer may be. */
	timeout = timeout && (v.dying || !slow);

	if (v.fin && !v.closed && !conn->peer_fin) {
		conn->peer_fin = true;
		weft_cm_tell(conn, conn->id, IW_CM_EVENT_DISCONNECT, 0, NULL, 0);
	}
	if (v.closed || timeout || (v.dying && v.said)) {
		end(conn);
		/* The peer had its time; if it is but slow, closing() gives it more. */
		if (timeout && !slow)
			weft_cm_die(conn);
		return;
	}
	if (v.said && !conn->shut) {
		conn->shut = true;
		weft_sock_shutdown(conn);
	}
	/* From here on it must come to an end. */
	if (!conn->deadline && (v.dying || v.closing || conn->peer_fin || conn->shut)) {
		conn->acked = v.taken.octets;
		weft_cm_set_deadline(conn, READ_ONCE(conn->dev->close_timeout_ms));
	}
}

/* ---- the worker ---- */

/* The device goes away: no words to the peer any more. */
static void kill_conn(struct weft_conn *conn)
{
	switch (conn->state) {
	case WEFT_CONN_CONNECTING:
	case WEFT_CONN_AWAIT_REPLY:
		weft_cm_connect_failed(conn, -ENETDOWN, NULL, 0);
		break;
	case WEFT_CONN_OPEN:
		end(conn);
		break;
	default:
		weft_cm_leave_listener(conn);
		break;
	}
	weft_cm_die(conn);
}

static void run_state(struct weft_conn *conn, bool timeout)
{
	switch (conn->state) {
	case WEFT_CONN_LISTENING:
		weft_cm_listening(conn);
		break;
	case WEFT_CONN_CONNECTING:
		weft_cm_connecting(conn, timeout);
		break;
	case WEFT_CONN_AWAIT_REPLY:
		weft_cm_await_reply(conn, timeout);
		break;
	case WEFT_CONN_AWAIT_REQUEST:
		weft_cm_await_request(conn, timeout);
		break;
	case WEFT_CONN_REQUESTED:
		weft_cm_await_ulp(conn, timeout);
		break;
	case WEFT_CONN_OPEN:
		open(conn, timeout);
		break;
	case WEFT_CONN_CLOSING:
		closing(conn, timeout);
		break;
	case WEFT_CONN_DEAD:
		break;
	}
}

static void send_again(struct weft_conn *conn)
{
	msleep(RETRY_MS);
	weft_conn_lock(conn);
	set_bit(WEFT_CF_PENDING, &conn->flags);
	weft_conn_unlock(conn);
}

void weft_cm_run(struct weft_conn *conn, unsigned long events)
{
	if (events & BIT(WEFT_CEV_KILL)) {
		kill_conn(conn);
		return;
	}
	if (events & BIT(WEFT_CEV_RETRY))
		send_again(conn);
	if (events & BIT(WEFT_CEV_ORPHAN))
		weft_cm_orphaned(conn);
	run_state(conn, deadline_passed(conn));
}

void weft_cm_forget(struct weft_conn *conn, struct weft_qp *qp)
{
	mutex_lock(&conn->mutex);
	if (conn->qp == qp && conn->state == WEFT_CONN_OPEN) {
		end(conn);
	} else if (conn->qp == qp) {
		weft_cm_connect_failed(conn, -ECONNABORTED, NULL, 0);
		weft_cm_die(conn);
	}
	mutex_unlock(&conn->mutex);
	weft_conn_post(conn, WEFT_CEV_WAKE);
}

