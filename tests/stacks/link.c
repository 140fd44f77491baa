// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <stdlib.h>

#include "link.h"

/* ---- octets towards TCP ---- */

/* Hands the private copies over; true when TCP took all. */
static bool drain(struct host_link *l)
{
	if (l->out_done < l->out_len)
		l->out_done += (u32)l->ops->write(l->arg, l->out + l->out_done,
						  l->out_len - l->out_done, l->out_eor);
	if (l->out_done < l->out_len)
		return false;
	l->out_done = 0;
	l->out_len = 0;
	l->out_eor = false;
	return true;
}

static u8 *out_reserve(struct host_link *l, u32 n)
{
	if (l->out_len + n > l->out_cap) {
		l->out_cap = l->out_len + n;
		l->out = realloc(l->out, l->out_cap);
		HOST_ASSERT(l->out);
	}
	return l->out + l->out_len;
}

static void shut(struct host_link *l)
{
	if (l->tx_closed)
		return;
	l->tx_closed = true;
	l->ops->shutdown(l->arg);
}

/* The connection ends without a word: start-up failed. */
static void give_up(struct host_link *l)
{
	l->state = HOST_LINK_OVER;
	weft_stream_stop(&l->st);
	l->fin_due = true;
	l->qp->kicked = true;
}

/* ---- start-up ---- */

static void send_frame(struct host_link *l)
{
	u8 *p = out_reserve(l, WEFT_MPA_FRAME_MAX);
	u32 n = weft_mpa_frame_write(&l->own, l->cfg.pd, p, WEFT_MPA_FRAME_MAX);

	HOST_ASSERT(n);
	l->out_len += n;
	l->out_eor = true;
	drain(l);
}

static void enter_full(struct host_link *l)
{
	weft_stream_start(&l->st, &l->agreed);
	l->state = HOST_LINK_FULL;
	host_qp_start(l->qp, &l->st, l->agreed.ord, l->agreed.ird);
}

void host_link_accept(struct host_link *l)
{
	HOST_ASSERT(l->state == HOST_LINK_STARTUP && l->st.rx_state == WEFT_AWAIT_START);
	weft_mpa_reply(&l->cfg.mpa, &l->peer, l->cfg.reject, l->cfg.pd_len, &l->own,
		       &l->agreed);
	send_frame(l);
	if (l->cfg.reject)
		l->state = HOST_LINK_OVER;
	else
		enter_full(l);
}

static void got_request(struct host_link *l)
{
	l->peer = l->st.frame;
	if (weft_mpa_request_check(&l->cfg.mpa, &l->peer))
		give_up(l);
	else if (!l->cfg.hold_accept)
		host_link_accept(l);
}

static void got_reply(struct host_link *l)
{
	enum weft_err e;

	l->peer = l->st.frame;
	e = weft_mpa_reply_check(&l->cfg.mpa, &l->own, &l->peer, &l->agreed, &l->v1_retry);
	if (!e && l->peer.reject) {
		l->rejected = true;
		give_up(l);
		return;
	}
	if (e == WEFT_E_MPA_STARTUP) {
		give_up(l);
		return;
	}
	enter_full(l);
	/* RFC 6581 §9: the Reply is known to be one, so a Terminate can tell. */
	if (e)
		weft_qpc_fail(&l->qp->core, e, NULL);
}

static void rx_startup(struct host_link *l, struct weft_cur *in)
{
	struct weft_fpdu fpdu;

	do {
		switch (weft_stream_rx(&l->st, in, &fpdu)) {
		case WEFT_RX_MORE:
			return;
		case WEFT_RX_STARTUP:
			if (l->initiator)
				got_reply(l);
			else
				got_request(l);
			break;
		case WEFT_RX_ERROR:
			give_up(l);
			break;
		default:
			HOST_ASSERT(!"an FPDU before Full Operation");
		}
	} while (l->state == HOST_LINK_STARTUP && in->left);
}

void host_link_init(struct host_link *l, struct host_qp *qp, bool initiator,
		    const struct host_link_cfg *cfg, const struct host_link_ops *ops, void *arg)
{
	memset(l, 0, sizeof(*l));
	l->cfg = *cfg;
	l->ops = ops;
	l->arg = arg;
	l->qp = qp;
	l->initiator = initiator;
	weft_stream_init(&l->st, initiator);
	if (!initiator)
		return;
	weft_mpa_request(&l->cfg.mpa, l->cfg.pd_len, &l->own);
	send_frame(l);
}

/* ---- chunks ---- */

static void reclaim(struct host_link *l, bool all)
{
	u8 *chunk;

	while ((chunk = weft_stream_reclaim(&l->st, all)))
		weft_host_chunk_free(&l->qp->core, chunk);
}

void host_link_fini(struct host_link *l)
{
	if (!l->qp)
		return;
	reclaim(l, true);
	HOST_ASSERT(!l->qp->chunks);
	free(l->out);
	memset(l, 0, sizeof(*l));
}

/* ---- receive run ---- */

void host_link_rx(struct host_link *l, const struct weft_seg *seg, u32 nseg)
{
	struct weft_cur in;

	weft_cur_init(&in, seg, nseg);
	if (l->state == HOST_LINK_STARTUP)
		rx_startup(l, &in);
	if (l->state == HOST_LINK_FULL) {
		weft_qpc_rx(&l->qp->core, &in);
		/* Octets left in TCP can close its window for ever. */
		HOST_ASSERT(!in.left);
	}
	host_assert_quiet(l->qp->host);
	if (l->cfg.lean)
		reclaim(l, false);
}

/* Both directions are closed: the connection is gone. */
static void release(struct host_link *l)
{
	if (!l->rx_closed || !l->tx_closed || l->state != HOST_LINK_FULL)
		return;
	weft_qpc_error(&l->qp->core);
	host_assert_quiet(l->qp->host);
}

void host_link_fin(struct host_link *l)
{
	l->rx_closed = true;
	if (l->state == HOST_LINK_FULL) {
		weft_qpc_peer_fin(&l->qp->core);
		release(l);
		return;
	}
	if (l->state == HOST_LINK_STARTUP)
		give_up(l);
}

static void cut_off(struct host_link *l)
{
	if (l->state == HOST_LINK_FULL)
		weft_qpc_error(&l->qp->core);
	weft_stream_stop(&l->st);
	l->out_len = 0;
	l->out_done = 0;
	l->tx_closed = true;
	host_assert_quiet(l->qp->host);
}

void host_link_reset(struct host_link *l)
{
	cut_off(l);
	if (l->state == HOST_LINK_STARTUP)
		l->state = HOST_LINK_OVER;
}

void host_link_close(struct host_link *l)
{
	weft_qpc_close(&l->qp->core);
	l->qp->kicked = true;
}

void host_link_abort(struct host_link *l)
{
	bool up = !l->tx_closed;

	cut_off(l);
	if (up)
		l->ops->abort(l->arg);
}

/* ---- send run ---- */

static void emit_piece(struct weft_emit *e, const struct weft_piece *p)
{
	const void *from = p->p;

	if (p->region) {
		HOST_ASSERT(to_host_mr(p->region)->holders);
		from = host_mr_at(to_host_mr(p->region), p->addr, p->len);
	}
	weft_emit_bytes(e, from, p->len);
}

/* Builds the FPDU in a block of just its length, so that one octet more shows. */
static void append(struct host_link *l, struct weft_txd *d)
{
	u32 n = weft_stream_tx_wire_len(&l->st, d->f.ulpdu_len);
	u8 *block = malloc(n);
	struct weft_emit e;
	u32 i, sum = 0;

	HOST_ASSERT(block && d->f.ulpdu_len <= WEFT_MPA_ULPDU_MAX);
	weft_stream_tx_emit(&l->st, &d->f, &e, block);
	for (i = 0; i < d->npieces; i++) {
		emit_piece(&e, &d->piece[i]);
		sum += d->piece[i].len;
	}
	HOST_ASSERT(sum == d->f.payload_len);
	HOST_ASSERT(weft_emit_end(&e) == n);
	memcpy(out_reserve(l, n), block, n);
	free(block);
	l->out_len += n;
	l->fpdus++;
	l->aligned += !l->seg_off;
	l->longest = max_t(u32, l->longest, n);
	l->seg_off = (l->seg_off + n) % l->cfg.emss;
}

/*
 * design.md, "Sending": an FPDU ends on the segment's boundary if its ULPDU
 * stays at 128 octets or more, or goes in whole if it fits; else the segment
 * ends here (NO_FIT, with the EOR mark).
 */
static enum weft_tx_result next_fpdu(struct host_link *l, struct weft_txd *d)
{
	u32 room = l->cfg.emss - l->seg_off;
	u32 max = weft_stream_tx_max_ulpdu(&l->st, room);

	if (max >= WEFT_MPA_ULPDU_MIN_MULPDU)
		return weft_tx_next(&l->qp->core, max, false, d);
	if (!l->seg_off)
		return weft_tx_next(&l->qp->core, WEFT_MPA_ULPDU_MIN_MULPDU, false, d);
	if (!max)
		return WEFT_TX_NO_FIT;
	return weft_tx_next(&l->qp->core, max, true, d);
}

/*
 * Gathers up to a batch of FPDUs for one call to TCP. What they hold is let go
 * behind the last one: a host may copy as late as that.
 */
static enum weft_tx_result gather(struct host_link *l)
{
	struct weft_txd *d = malloc(l->cfg.batch * sizeof(*d));
	enum weft_tx_result r = WEFT_TX_FPDU;
	u32 n;

	HOST_ASSERT(d);
	/* What the core does not fill in must not be read. */
	memset(d, 0x5A, l->cfg.batch * sizeof(*d));
	for (n = 0; n < l->cfg.batch; n++) {
		r = next_fpdu(l, &d[n]);
		if (r != WEFT_TX_FPDU)
			break;
		append(l, &d[n]);
	}
	while (n--)
		weft_tx_put(&l->qp->core, &d[n]);
	free(d);
	return r;
}

static void run_full(struct host_link *l)
{
	enum weft_tx_result r;

	r = gather(l);
	if (r == WEFT_TX_NO_FIT) {
		l->out_eor = true;
		l->seg_off = 0;
	}
	drain(l);
	weft_tx_sent(&l->qp->core);
	/* A full batch, or a segment's end: there may be more. */
	if (r == WEFT_TX_FPDU || r == WEFT_TX_NO_FIT)
		l->qp->kicked = true;
	if (r == WEFT_TX_FIN)
		l->fin_due = true;
}

/* After the FIN, or without a connection, the core has nothing to say. */
static void expect_silence(struct host_link *l)
{
	struct weft_txd *d = malloc(sizeof(*d));
	enum weft_tx_result r;

	HOST_ASSERT(d);
	r = weft_tx_next(&l->qp->core, WEFT_MPA_ULPDU_MIN_MULPDU, false, d);
	HOST_ASSERT(r == WEFT_TX_IDLE || (r == WEFT_TX_FIN && !l->fin_due));
	l->fin_due |= r == WEFT_TX_FIN;
	free(d);
}

void host_link_tx(struct host_link *l)
{
	struct weft_qpc *core = &l->qp->core;

	l->runs++;
	if (l->qp->cq_error) {
		l->qp->cq_error = false;
		host_link_abort(l);
	}
	if (!drain(l))
		return;
	l->qp->kicked = false;
	if (core->state >= WEFT_QPS_TERM)
		weft_qpc_flush(core);
	if (l->state == HOST_LINK_FULL && !l->tx_closed && !l->fin_due)
		run_full(l);
	else if (l->state == HOST_LINK_FULL && core->state != WEFT_QPS_TERM)
		expect_silence(l);
	host_assert_quiet(l->qp->host);
	if (l->fin_due && !host_link_waits_for_tcp(l))
		shut(l);
	release(l);
}
