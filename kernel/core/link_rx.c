// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "host.h"
#include "link_rx.h"
#include "qp.h"
#include "rx.h"

/*
 * A whole Request must stand alone: for a responder the stream makes an error
 * of what follows it. What follows a Reply waits for Full Operation.
 */
static void link_rx_startup(struct weft_link *l, struct weft_cur *in)
{
	struct weft_fpdu none;
	enum weft_rx_event ev;

	if (l->st.initiator && l->rx_event == WEFT_RX_STARTUP)
		return;
	ev = weft_stream_rx(&l->st, in, &none);
	if (ev == WEFT_RX_STARTUP || ev == WEFT_RX_ERROR)
		l->rx_event = ev;
	if (ev == WEFT_RX_ERROR)
		weft_cur_skip(in, in->left);
}

/* The worker then looks at TCP's end, which had to wait for the octets before it. */
static void fed_again(struct weft_link *l)
{
	l->starved = false;
	weft_host_wake(l);
}

static void rx_full(struct weft_link *l, struct weft_cur *in)
{
	weft_qpc_rx(l->qp, in);
	if (unlikely(in->left))
		l->starved = true;
	else if (unlikely(l->starved))
		fed_again(l);
	/* The step sets the deadline. A wait for a region's end has asked for a run by itself. */
	if (unlikely(l->qp->rx_waits) && !l->qp->rx_ends && !l->rnr_deadline)
		weft_host_wake(l);
}

/* Apart, so that its instructions can be counted: tests/bench/instructions.sh. */
noinline void weft_link_rx(struct weft_link *l, struct weft_cur *in)
{
	switch (l->mode) {
	case WEFT_MODE_STARTUP:
		link_rx_startup(l, in);
		break;
	case WEFT_MODE_FULL:
		rx_full(l, in);
		break;
	case WEFT_MODE_DISCARD:
		weft_cur_skip(in, in->left);
		break;
	}
}

bool weft_link_rx_resume(struct weft_link *l)
{
	if (!l->qp || !weft_qpc_rx_resume(l->qp))
		return false;
	WRITE_ONCE(l->rnr_deadline, 0);
	/* To look at TCP's end, or to set the deadline again; otherwise the next read does that. */
	if (!l->starved)
		weft_host_wake(l);
	return true;
}

void weft_link_rx_unreadable(struct weft_link *l)
{
	if (l->mode == WEFT_MODE_FULL)
		weft_qpc_fail(l->qp, WEFT_E_RDMAP_LOCAL, NULL);
	else if (l->mode == WEFT_MODE_STARTUP)
		l->rx_event = WEFT_RX_ERROR;
}
