// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Start-up, RFC 5044 §7.1 and RFC 6581: the initiator's Request and what the Reply to it
 * means; the responder's Request, the ULP's answer, its Reply.
 */
#include "alive.h"
#include "end.h"
#include "qp.h"
#include "start.h"

/* What a frame's receiver does next, beside 0 and errors. */
enum { VERDICT_WAIT = 1, VERDICT_RETRY, VERDICT_RETRY_V1 };

/* ULP private data that an MPA frame of revision @rev carries at most. */
static u32 pd_room(u8 rev)
{
	return rev >= 2 ? WEFT_MPA_PD_MAX - WEFT_MPA_ENH_LEN : WEFT_MPA_PD_MAX;
}

static void limit_depths(struct weft_mpa_cfg *cfg, u32 ird, u32 ord)
{
	cfg->ird = (u16)min_t(u32, ird, cfg->ird);
	cfg->ord = (u16)min_t(u32, ord, cfg->ord);
}

/* The QP enters Full Operation. RFC 6581 §9.1: room for the Reads agreed, and an RTR Read. */
static void start_qp(struct weft_link *l, const struct weft_mpa_agreed *a)
{
	l->st.ext = l->cfg.ext;
	l->st.part_min = l->cfg.part_min;
	weft_stream_start(&l->st, a);
	weft_qpc_start(l->qp, &l->st, a->ord, l->orq, a->ird, l->irq, max_t(u32, a->ird, 1));
	l->qp->patient = l->cfg.rnr_ms;
	l->mode = WEFT_MODE_FULL;
	weft_host_kick(l->qp);
}

/* All of it or none: 0 or -errno. */
static int send_frame(struct weft_link *l, const struct weft_mpa_frame *f, const void *pd)
{
	u8 octets[WEFT_MPA_FRAME_MAX];
	u32 len = weft_mpa_frame_write(f, pd, octets, sizeof(octets));
	const struct weft_iov iov = { .base = octets, .len = len };
	s32 n = weft_host_send(l, &iov, 1, len, 0);

	if (n == (s32)len)
		return 0;
	return n < 0 ? n : -ENOBUFS;
}

static int lend_depths(struct weft_link *l, const struct weft_mpa_agreed *a)
{
	return weft_host_lend_depths(l, a->ord, max_t(u32, a->ird, 1)) ? 0 : -ENOMEM;
}

/* ---- initiator ---- */

int weft_offer_init(struct weft_offer *o, const struct weft_mpa_cfg *cfg, u32 ird, u32 ord,
		    const void *pd, u32 pd_len)
{
	if (pd_len > pd_room(cfg->rev))
		return -EINVAL;
	o->cfg = *cfg;
	limit_depths(&o->cfg, ird, ord);
	/* RFC 6581 §9.2: peer-to-peer needs the enhanced frames, and a kind of RTR. */
	o->cfg.p2p = cfg->p2p && cfg->rev >= 2 && cfg->rtr;
	o->pd_len = (u16)pd_len;
	if (pd_len)
		memcpy(o->pd, pd, pd_len);
	return 0;
}

/*
 * TCP's part is three SYNs by default. Not longer: rdma_cm has the id's destroyer wait for
 * this, unkillable.
 */
static u32 handshake_ms(const struct weft_link *l)
{
	return l->cfg.startup_ms * 2 / 5;
}

void weft_link_connect(struct weft_link *l, struct weft_offer *o, u64 now)
{
	l->offer = o;
	weft_link_set_deadline(l, now, handshake_ms(l));
}

void weft_link_succeed(struct weft_link *l, struct weft_link *heir, u64 now)
{
	heir->qp = l->qp;
	heir->offer = l->offer;
	weft_link_set_deadline(heir, now, handshake_ms(l));
	l->qp = NULL;
	l->offer = NULL;
	weft_link_die(l);
}

static u32 failed(struct weft_link *l, int status)
{
	l->status = status;
	return WEFT_ACT_FAILED;
}

u32 weft_link_connect_failed(struct weft_link *l, int status)
{
	return failed(l, status) | weft_link_die(l);
}

u32 weft_link_withdraw(struct weft_link *l, int status, const struct weft_tcp_view *tcp, u64 now)
{
	return failed(l, status) | weft_link_start_closing(l, tcp, now);
}

static int send_request(struct weft_link *l)
{
	struct weft_offer *o = l->offer;

	weft_mpa_request(&o->cfg, o->pd_len, &o->req);
	return send_frame(l, &o->req, o->pd);
}

/* Full Operation begins, with the Reply's private data in the offer: ours has been sent. */
static void begin_full(struct weft_link *l, const struct weft_mpa_agreed *agreed)
{
	struct weft_offer *o = l->offer;

	o->pd_len = l->st.frame.pd_len;
	if (o->pd_len)
		memcpy(o->pd, l->st.pd, o->pd_len);
	start_qp(l, agreed);
}

/* The Reply is there. R=1 is -ECONNREFUSED. */
static int judge_reply(struct weft_link *l)
{
	const struct weft_mpa_frame *rep = &l->st.frame;
	struct weft_mpa_agreed agreed;
	enum weft_err err;
	bool v1;

	err = weft_mpa_reply_check(&l->offer->cfg, &l->offer->req, rep, &agreed, &v1);
	if (rep->pd_len > l->cfg.pd_max)
		return -EMSGSIZE;
	if (!err && rep->reject)
		return -ECONNREFUSED;
	if (v1)
		return VERDICT_RETRY_V1;
	if (err == WEFT_E_MPA_STARTUP)
		return -EPROTO;
	if (l->qp->state != WEFT_QPS_IDLE)
		return -ECONNABORTED;
	if (lend_depths(l, &agreed))
		return -ENOMEM;
	begin_full(l, &agreed);
	if (!err)
		return 0;
	/* RFC 6581 §9.1, §9.2: these two errors send a Terminate. */
	weft_qpc_fail(l->qp, err, NULL);
	return -EPROTO;
}

/*
 * RFC 6581 §10: a peer of RFC 5044 may close on an enhanced Request, or answer with revision 1:
 * retry with revision 1. A RST says nothing about the Request: the peer has no room, or is a
 * driver being removed. Revision 1 would cost the ULP its peer-to-peer mode.
 */
static int judge_end(const struct weft_link *l, const struct weft_tcp_view *tcp)
{
	if (!l->offer->req.enhanced || l->st.rx_staged)
		return -ECONNRESET;
	if (!tcp->closed)
		return VERDICT_RETRY_V1;
	return l->offer->again ? -ECONNRESET : VERDICT_RETRY;
}

static int judge_silence(const struct weft_link *l, const struct weft_tcp_view *tcp, bool timeout)
{
	if (l->rx_event == WEFT_RX_ERROR)
		return -EPROTO;
	if (l->qp->state != WEFT_QPS_IDLE)
		return -ECONNABORTED;
	if (timeout)
		return -ETIMEDOUT;
	if (tcp->established)
		return VERDICT_WAIT;
	return judge_end(l, tcp);
}

static u32 retry(struct weft_offer *o, int verdict)
{
	if (verdict == VERDICT_RETRY) {
		o->again = true;
	} else {
		o->cfg.rev = 1;
		o->cfg.p2p = false;
	}
	return WEFT_ACT_RETRY;
}

static u32 await_reply(struct weft_link *l, const struct weft_tcp_view *tcp, bool timeout, u64 now)
{
	int r;

	if (l->rx_event == WEFT_RX_STARTUP)
		r = judge_reply(l);
	else
		r = judge_silence(l, tcp, timeout);
	if (r == VERDICT_WAIT)
		return 0;
	if (r > 0)
		return retry(l->offer, r);
	if (!r) {
		l->state = WEFT_LINK_OPEN;
		l->deadline = 0;
		/* The Reply may be followed by FPDUs, a FIN or a RST. */
		return WEFT_ACT_CONNECTED | WEFT_ACT_AGAIN;
	}
	/* A Terminate is due, or a graceful close: RFC 5044 §7.1.2 (3). Else RST. */
	if (r == -ECONNREFUSED || l->qp->state == WEFT_QPS_TERM)
		return weft_link_withdraw(l, r, tcp, now);
	return weft_link_connect_failed(l, r);
}

static int connect_error(const struct weft_link *l, const struct weft_tcp_view *tcp, bool timeout)
{
	if (tcp->closed)
		return tcp->error ? tcp->error : -ECONNRESET;
	if (l->qp->state != WEFT_QPS_IDLE)
		return -ECONNABORTED;
	/* A late step: TCP did connect in time. */
	return timeout && tcp->connecting ? -ETIMEDOUT : 0;
}

/*
 * This end receives what it sends. No frames are exchanged: all values that they would carry are
 * known here, private data included.
 */
static u32 meet_oneself(struct weft_link *l)
{
	const struct weft_mpa_cfg *cfg = &l->offer->cfg;
	const struct weft_mpa_agreed agreed = {
		.rev = cfg->rev,
		.crc = cfg->crc,
		.ird = cfg->ird,
		.ord = min_t(u16, cfg->ord, cfg->ird),
	};

	if (lend_depths(l, &agreed))
		return weft_link_connect_failed(l, -ENOMEM);
	start_qp(l, &agreed);
	l->qp->itself = true;
	l->state = WEFT_LINK_OPEN;
	l->deadline = 0;
	return WEFT_ACT_CONNECTED | WEFT_ACT_AGAIN;
}

/* The Reply may be there already: it is looked for once TCP's octets have been read. */
static u32 connecting(struct weft_link *l, const struct weft_tcp_view *tcp, bool timeout, u64 now)
{
	int err = connect_error(l, tcp, timeout);

	if (!err && tcp->connecting)
		return 0;
	if (!err && l->offer->itself)
		return meet_oneself(l);
	if (!err)
		err = send_request(l);
	if (err)
		return weft_link_connect_failed(l, err);
	l->state = WEFT_LINK_AWAIT_REPLY;
	/* The Reply comes when the peer's program accepts, which may be computing. */
	weft_link_set_deadline(l, now, l->cfg.accept_ms);
	return WEFT_ACT_AGAIN;
}

/* ---- responder ---- */

void weft_link_await_request(struct weft_link *l, u64 now)
{
	weft_link_set_deadline(l, now, l->cfg.startup_ms / 2);
}

/* Nothing is wrong with a peer that awaits the Reply. */
static bool peer_waits(const struct weft_link *l, const struct weft_tcp_view *tcp)
{
	return l->rx_event != WEFT_RX_ERROR && tcp->established;
}

static u32 request_is_there(struct weft_link *l, const struct weft_tcp_view *tcp, u64 now)
{
	if (weft_mpa_request_check(&l->cfg.mpa, &l->st.frame))
		return weft_link_die(l);
	if (l->st.frame.pd_len > l->cfg.pd_max)
		return weft_link_reject(l, NULL, 0, tcp, now);
	l->state = WEFT_LINK_REQUESTED;
	l->deadline = 0;
	return WEFT_ACT_ASK_ULP;
}

static u32 await_request(struct weft_link *l, const struct weft_tcp_view *tcp, bool timeout,
			 u64 now)
{
	bool ok = peer_waits(l, tcp);

	if (ok && l->rx_event == WEFT_RX_STARTUP)
		return request_is_there(l, tcp, now);
	return ok && !timeout ? 0 : weft_link_die(l);
}

int weft_link_accept(struct weft_link *l, u32 ird, u32 ord, const void *pd, u32 pd_len,
		     const struct weft_tcp_view *tcp, u64 now)
{
	const struct weft_mpa_frame *req = &l->st.frame;
	struct weft_mpa_cfg cfg = l->cfg.mpa;
	struct weft_mpa_agreed agreed;
	struct weft_mpa_frame rep;
	int err;

	if (l->state != WEFT_LINK_REQUESTED || !peer_waits(l, tcp))
		return -ECONNRESET;
	if (pd_len > pd_room(req->enhanced ? 2 : 1))
		return -EINVAL;
	limit_depths(&cfg, ird, ord);
	weft_mpa_reply(&cfg, req, false, (u16)pd_len, &rep, &agreed);
	err = lend_depths(l, &agreed);
	if (!err)
		err = send_frame(l, &rep, pd);
	if (err)
		return err;
	start_qp(l, &agreed);
	l->state = WEFT_LINK_OPEN;
	l->deadline = 0;
	weft_alive_begin(l, now);
	l->rtr_due = agreed.p2p;
	if (l->rtr_due)
		weft_link_set_deadline(l, now, l->cfg.startup_ms);
	return 0;
}

u32 weft_link_accept_failed(struct weft_link *l, const struct weft_tcp_view *tcp, u64 now)
{
	if (l->state == WEFT_LINK_REQUESTED)
		return weft_link_reject(l, NULL, 0, tcp, now);
	return weft_link_die(l);
}

u32 weft_link_reject(struct weft_link *l, const void *pd, u32 pd_len,
		     const struct weft_tcp_view *tcp, u64 now)
{
	struct weft_mpa_agreed agreed;
	struct weft_mpa_frame rep;

	if (l->state == WEFT_LINK_DEAD)
		return 0;
	weft_mpa_reply(&l->cfg.mpa, &l->st.frame, true, (u16)pd_len, &rep, &agreed);
	send_frame(l, &rep, pd);
	l->refused = true;
	return weft_link_start_closing(l, tcp, now);
}

bool weft_link_ulp_is_full(struct weft_link *l, u64 now)
{
	/* 0 means none, as of a deadline. */
	if (!l->ask_until)
		l->ask_until = now + l->cfg.startup_ms ? now + l->cfg.startup_ms : 1;
	l->deadline = l->ask_until;
	return now < l->ask_until;
}

void weft_link_ulp_was_asked(struct weft_link *l)
{
	l->deadline = 0;
}

void weft_link_orphan(struct weft_link *l, u64 now)
{
	if (l->state == WEFT_LINK_REQUESTED && !l->deadline)
		weft_link_set_deadline(l, now, l->cfg.startup_ms);
}

u32 weft_link_step_startup(struct weft_link *l, const struct weft_tcp_view *tcp, bool timeout,
			   u64 now)
{
	switch (l->state) {
	case WEFT_LINK_CONNECTING:
		return connecting(l, tcp, timeout, now);
	case WEFT_LINK_AWAIT_REPLY:
		return await_reply(l, tcp, timeout, now);
	case WEFT_LINK_AWAIT_REQUEST:
		return await_request(l, tcp, timeout, now);
	default:
		/* The ULP has not answered yet; a peer that closes meanwhile is dropped. */
		return timeout || !peer_waits(l, tcp) ? weft_link_die(l) : 0;
	}
}
