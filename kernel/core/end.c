// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Full Operation as far as its end is concerned, and what follows it: FIN both ways,
 * errors, Terminates, time.
 */
#include "alive.h"
#include "end.h"
#include "link_rx.h"
#include "qp.h"
#include "send.h"

/* So many close_ms may an end without a QP last, while the peer takes what is left. */
#define CLOSING_TIMES 12

u32 weft_link_die(struct weft_link *l)
{
	l->state = WEFT_LINK_DEAD;
	l->deadline = 0;
	weft_alive_end(l);
	return WEFT_ACT_DIE;
}

/* What TCP has not delivered may take its time, as long as the peer takes some of it. */
static void watch_progress(struct weft_link *l, const struct weft_tcp_view *tcp, u64 now)
{
	l->acked = tcp->acked;
	weft_link_set_deadline(l, now, l->cfg.close_ms);
}

/* The deadline has passed: it counts from the peer's last sign, if octets moved since. */
static bool peer_is_slow(struct weft_link *l, const struct weft_tcp_view *tcp, u64 now)
{
	if (tcp->acked == l->acked || tcp->idle_ms >= l->cfg.close_ms)
		return false;
	l->acked = tcp->acked;
	weft_link_set_deadline(l, now, l->cfg.close_ms - tcp->idle_ms);
	return true;
}

u32 weft_link_shut(struct weft_link *l)
{
	if (l->shut || !weft_send_is_done(l))
		return 0;
	l->shut = true;
	return WEFT_ACT_SHUT;
}

/* ---- without a QP ---- */

u32 weft_link_start_closing(struct weft_link *l, const struct weft_tcp_view *tcp, u64 now)
{
	l->state = WEFT_LINK_CLOSING;
	/* A held connection has no QP that would be released. */
	weft_alive_end(l);
	/* A QP's Terminate was appended before: weft_link_release_qp() discards from then on. */
	if (l->mode == WEFT_MODE_STARTUP)
		l->mode = WEFT_MODE_DISCARD;
	l->closing_times = CLOSING_TIMES - 1;
	watch_progress(l, tcp, now);
	return WEFT_ACT_AGAIN;
}

bool weft_link_is_late(const struct weft_link *l)
{
	return l->closing_times < CLOSING_TIMES - 1;
}

/*
 * RFC 5040 §7.2, RFC 5041 §6.2: the batch in hand is sent, then FIN. Octets that
 * arrive before the peer's FIN are read and dropped: a close with unread data would
 * make TCP send RST, and lose our Terminate. TCP may still hold requests that have
 * completed, so a slow peer has time, although no caller waits for it any more.
 */
u32 weft_link_step_closing(struct weft_link *l, const struct weft_tcp_view *tcp, bool timeout,
			   u64 now)
{
	weft_send_run(l, WEFT_SLICE);
	if (timeout && l->closing_times && peer_is_slow(l, tcp, now)) {
		l->closing_times--;
		timeout = false;
	}
	if (tcp->closed || timeout)
		return weft_link_die(l);
	return weft_link_shut(l);
}

/* ---- with a QP ---- */

/*
 * A responder that agreed to peer-to-peer begins with a deadline for the
 * initiator's RTR, which gives way to that of the connection's end. True if it
 * passed, and nothing came.
 */
static bool rtr_is_missing(struct weft_link *l, const struct weft_tcp_view *tcp, bool ending,
			   bool timeout)
{
	if (!(timeout || ending || tcp->fin))
		return false;
	l->rtr_due = false;
	l->deadline = 0;
	return timeout && l->qp->rtr_await;
}

static bool in_error(const struct weft_qpc *qp)
{
	return qp->state == WEFT_QPS_ERROR || qp->state == WEFT_QPS_TERM;
}

/* The QP has said all, its FIN included, and TCP has taken it. */
static bool has_said_all(const struct weft_link *l)
{
	return l->qp->state != WEFT_QPS_TERM && (in_error(l->qp) || l->fin_due) &&
	       weft_send_is_done(l);
}

/*
 * What TCP shows of its end before octets that wait in it were read: nothing yet. They are
 * waited for no longer than for any end.
 */
static struct weft_tcp_view as_far_as_read(const struct weft_link *l,
					   const struct weft_tcp_view *tcp)
{
	struct weft_tcp_view v = *tcp;

	if (weft_link_is_behind(l))
		v.fin = v.closed = false;
	return v;
}

static bool end_is_unread(const struct weft_link *l, const struct weft_tcp_view *tcp)
{
	return weft_link_is_behind(l) && (tcp->fin || tcp->closed);
}

/*
 * A Send may wait for a receive until rnr_deadline, and the octets after it wait, too. Then it is
 * an error, unless there is a receive now. A wait for a region's end is short and has no deadline.
 */
static u32 mind_waiting_send(struct weft_link *l, u64 now)
{
	if (!l->qp->rx_waits || l->qp->rx_ends) {
		WRITE_ONCE(l->rnr_deadline, 0);
		return 0;
	}
	if (!l->rnr_deadline) {
		WRITE_ONCE(l->rnr_deadline, max_t(u64, now + l->cfg.rnr_ms, 1));
		return 0;
	}
	if (now < l->rnr_deadline)
		return 0;
	l->qp->rx_overdue = true;
	weft_link_rx_resume(l);
	return WEFT_ACT_AGAIN;
}

/* TCP's end, either side's, becomes the QP's. */
static void tell_qp(struct weft_link *l, const struct weft_tcp_view *tcp)
{
	if (tcp->closed || (l->broken && !weft_link_is_behind(l)))
		weft_qpc_error(l->qp);
	else if (tcp->fin && !l->peer_fin)
		weft_qpc_peer_fin(l->qp);
}

/* A QP by hand does not learn of the end: its pending requests stay for the next connection. */
static bool ends_without_qp(const struct weft_link *l, const struct weft_tcp_view *tcp)
{
	return l->qp->by_hand && !in_error(l->qp) &&
	       (tcp->closed || tcp->fin || (l->broken && !weft_link_is_behind(l)));
}

/* The connection goes on, or comes to its end in due time. */
static u32 go_on(struct weft_link *l, const struct weft_tcp_view *tcp, bool ending, bool said,
		 u64 now)
{
	u32 acts = said ? weft_link_shut(l) : 0;

	/* From here on it must come to an end. */
	if (!l->deadline && (ending || l->peer_fin || l->shut))
		watch_progress(l, tcp, now);
	return acts;
}

/* ---- held: a QP that has failed does not end the connection ---- */

/* The user has moved the QP to error, or the peer's user has; not the protocol. */
static bool failed_by_user(const struct weft_qpc *qp)
{
	return qp->error == WEFT_OK &&
	       (!qp->term_received || weft_qpc_peer_has_failed(&qp->term_in));
}

/* Neither end has begun to close. */
static bool may_be_held(const struct weft_link *l)
{
	return l->cfg.hold_ms && !l->hung_up && !l->peer_fin && !l->shut && !l->broken &&
	       failed_by_user(l->qp);
}

static u32 let_qp_go(struct weft_link *l, u64 deadline)
{
	l->state = WEFT_LINK_HELD;
	l->deadline = deadline;
	return WEFT_ACT_QP_OVER | WEFT_ACT_AGAIN;
}

/*
 * The user may be about to hang up, and then the FIN says enough. If not, a Terminate makes the
 * peer's outstanding requests fail: this end does not answer them any more.
 */
static u32 hold_failed_qp(struct weft_link *l, bool timeout, u64 now)
{
	if (!timeout && !l->qp->term_received) {
		if (!l->deadline || l->deadline > now + l->cfg.hold_ms)
			weft_link_set_deadline(l, now, l->cfg.hold_ms);
		return 0;
	}
	weft_qpc_tell_peer_of_error(l->qp);
	return let_qp_go(l, 0);
}

u32 weft_link_hold_without_qp(struct weft_link *l, u64 now)
{
	if (!may_be_held(l) || l->qp->state == WEFT_QPS_CLOSING)
		return 0;
	if (in_error(l->qp))
		return hold_failed_qp(l, true, now);
	return let_qp_go(l, now + l->cfg.hold_ms);
}

/* InfiniBand's retries are over, where the QP is as InfiniBand's. */
static u32 peer_is_dead(struct weft_link *l)
{
	l->status = -ETIMEDOUT;
	if (l->qp && l->cfg.hold_ms && l->qp->state == WEFT_QPS_RTS)
		weft_qpc_give_up(l->qp, WEFT_WC_RETRY_EXC_ERR);
	return WEFT_ACT_ENDED | weft_link_die(l);
}

u32 weft_link_lose_peer(struct weft_link *l)
{
	return l->state == WEFT_LINK_OPEN || l->state == WEFT_LINK_HELD ? peer_is_dead(l) : 0;
}

/* A QP that was destroyed says nothing: the FIN does, unless an end hangs up in time. */
u32 weft_link_step_held(struct weft_link *l, const struct weft_tcp_view *tcp, bool timeout, u64 now)
{
	weft_send_run(l, WEFT_SLICE);
	if (weft_alive_is_dead(l, tcp, now))
		return peer_is_dead(l);
	if (tcp->closed || tcp->fin || l->broken || timeout)
		return WEFT_ACT_ENDED | weft_link_start_closing(l, tcp, now);
	return 0;
}

u32 weft_link_step_open(struct weft_link *l, const struct weft_tcp_view *all, bool timeout,
			u64 now)
{
	const struct weft_tcp_view seen = as_far_as_read(l, all), *tcp = &seen;
	u32 acts = mind_waiting_send(l, now);
	bool dying, ending, said, slow = false;

	if (unlikely(weft_alive_is_dead(l, all, now)))
		return acts | peer_is_dead(l);
	if (unlikely(ends_without_qp(l, tcp)))
		return acts | WEFT_ACT_ENDED | weft_link_start_closing(l, tcp, now);
	tell_qp(l, tcp);
	weft_send_run(l, WEFT_SLICE);
	dying = in_error(l->qp);
	said = has_said_all(l);
	ending = dying || l->qp->state == WEFT_QPS_CLOSING || end_is_unread(l, all);
	if (l->rtr_due) {
		if (rtr_is_missing(l, tcp, ending, timeout))
			return WEFT_ACT_ENDED | weft_link_start_closing(l, tcp, now);
		timeout = false;
	}
	if (dying && may_be_held(l) && !tcp->fin && !tcp->closed)
		return acts | hold_failed_qp(l, timeout, now);
	if (timeout)
		slow = peer_is_slow(l, tcp, now);
	/* A QP in error waits no longer, slow as the peer may be. */
	timeout = timeout && (dying || !slow);
	if (tcp->fin && !tcp->closed && !l->peer_fin) {
		l->peer_fin = true;
		acts |= WEFT_ACT_DISCONNECTED;
	}
	/* The peer had its time; if it is but slow, closing gives it more. */
	if (tcp->closed || timeout || (dying && said))
		return acts | WEFT_ACT_ENDED | (timeout && !slow ?
			weft_link_shut(l) | weft_link_die(l) :
			weft_link_start_closing(l, tcp, now));
	return acts | go_on(l, tcp, ending, said, now);
}
