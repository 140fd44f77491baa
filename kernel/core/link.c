// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "alive.h"
#include "link.h"

void weft_link_init(struct weft_link *l, bool initiator)
{
	weft_stream_init(&l->st, initiator);
	l->state = initiator ? WEFT_LINK_CONNECTING : WEFT_LINK_AWAIT_REQUEST;
	l->rx_event = WEFT_RX_MORE;
	weft_linger_init(&l->linger);
}

static bool deadline_has_passed(struct weft_link *l, u64 now)
{
	if (!l->deadline || now < l->deadline)
		return false;
	l->deadline = 0;
	return true;
}

u64 weft_link_next_step(const struct weft_link *l)
{
	return weft_earlier(weft_earlier(l->deadline, READ_ONCE(l->rnr_deadline)),
			    READ_ONCE(l->alive_check));
}

u32 weft_link_step(struct weft_link *l, const struct weft_tcp_view *tcp, u64 now)
{
	bool timeout = deadline_has_passed(l, now);

	switch (l->state) {
	case WEFT_LINK_OPEN:
		return weft_link_step_open(l, tcp, timeout, now);
	case WEFT_LINK_HELD:
		return weft_link_step_held(l, tcp, timeout, now);
	case WEFT_LINK_CLOSING:
		return weft_link_step_closing(l, tcp, timeout, now);
	case WEFT_LINK_DEAD:
		return 0;
	default:
		return weft_link_step_startup(l, tcp, timeout, now);
	}
}

u32 weft_link_kill(struct weft_link *l)
{
	switch (l->state) {
	case WEFT_LINK_CONNECTING:
	case WEFT_LINK_AWAIT_REPLY:
		return weft_link_connect_failed(l, -ENETDOWN);
	case WEFT_LINK_OPEN:
	case WEFT_LINK_HELD:
		return WEFT_ACT_ENDED | weft_link_shut(l) | weft_link_die(l);
	case WEFT_LINK_DEAD:
		return 0;
	default:
		return weft_link_die(l);
	}
}

/*
 * A rejecting Reply is a courtesy: it has been sent, and the RST tells a peer as much if it was
 * lost.
 */
u32 weft_link_evict(struct weft_link *l, const struct weft_tcp_view *tcp, bool pressed)
{
	bool had_time = pressed && weft_link_is_late(l);

	switch (l->state) {
	case WEFT_LINK_AWAIT_REQUEST:
		return l->rx_event == WEFT_RX_STARTUP ? 0 : weft_link_die(l);
	case WEFT_LINK_CLOSING:
		return l->refused || tcp->delivered || had_time ? weft_link_die(l) : 0;
	default:
		return 0;
	}
}

u32 weft_link_forget(struct weft_link *l, const struct weft_tcp_view *tcp, u64 now)
{
	u32 acts;

	if (l->state != WEFT_LINK_OPEN)
		return weft_link_connect_failed(l, -ECONNABORTED);
	acts = weft_link_hold_without_qp(l, now);
	return acts ? acts : WEFT_ACT_ENDED | weft_link_start_closing(l, tcp, now);
}

u32 weft_link_hang_up(struct weft_link *l, const struct weft_tcp_view *tcp, u64 now)
{
	bool failed = l->cfg.hold_ms && l->state == WEFT_LINK_OPEN &&
		      (l->qp->state == WEFT_QPS_ERROR || l->qp->state == WEFT_QPS_TERM);

	l->hung_up = true;
	if (!failed && l->state != WEFT_LINK_HELD)
		return 0;
	return WEFT_ACT_ENDED | weft_link_start_closing(l, tcp, now);
}

void weft_link_release_qp(struct weft_link *l)
{
	struct weft_qpc *qp = l->qp;

	if (qp->state == WEFT_QPS_RTS)
		weft_send_answers(l);
	if (qp->state == WEFT_QPS_TERM)
		weft_send_last_words(l);
	else if (qp->by_hand && qp->state == WEFT_QPS_RTS)
		weft_qpc_unplug(qp);
	else if (qp->state != WEFT_QPS_IDLE)
		weft_qpc_error(qp);
	l->mode = WEFT_MODE_DISCARD;
	l->told = false;
	l->starved = false;
	WRITE_ONCE(l->rnr_deadline, 0);
	weft_alive_end(l);
	l->qp = NULL;
	/* The stream and the arrays are the connection's. */
	WRITE_ONCE(qp->st, NULL);
	qp->orq = NULL;
	qp->irq = NULL;
}
