// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What came in: one function an opcode. Each FPDU is whole and verified, its
 * versions, opcode, buffer model and queue number are judged by the stream.
 */
#include "qp.h"
#include "rx.h"

/* ---- RDMA Write ---- */

static void rx_write(struct weft_qpc *qp, struct weft_fpdu *f)
{
	const struct weft_ddp_hdr *h = &f->ddp;
	enum weft_denial d;

	if (qp->write_over) {
		qp->write_len = 0;
		qp->write_over = false;
	}
	qp->write_len += f->payload_len;
	qp->write_over = h->last;
	/* RFC 5041 §5.2: STag and TO of a zero-length message are not checked. */
	if (!f->payload_len)
		return;
	if (qp->denied & WEFT_ACCESS_REMOTE_WRITE) {
		weft_qpc_fail(qp, weft_denial_ddp(WEFT_DENIED_ACCESS), f);
		return;
	}
	d = weft_region_place(qp, qp->pd, h->stag, h->to, &f->payload, f->payload_len,
			      WEFT_ACCESS_REMOTE_WRITE);
	if (d != WEFT_GRANTED)
		weft_qpc_fail(qp, weft_denial_ddp(d), f);
}

/* ---- Read Requests, Atomic Requests ---- */

/* RFC 5041 §7.1 for queue 1, whose buffers hold one header, of @len octets, each. */
static enum weft_err request_check(const struct weft_qpc *qp, const struct weft_fpdu *f, u32 len)
{
	const struct weft_ddp_hdr *h = &f->ddp;

	if (h->msn != qp->msn_in_read)
		return WEFT_E_DDP_MSN;
	/*
	 * RFC 6581 §9.1: where an RTR Read was offered, IRD has room for it. Where it was not, the
	 * initiator must not send one (§9.2), and it is like any other: within IRD or an error.
	 */
	if (qp->irq_count >= qp->ird)
		return WEFT_E_DDP_NO_BUFFER;
	if (h->mo)
		return WEFT_E_DDP_MO;
	if (f->payload_len != len || !h->last)
		return WEFT_E_DDP_TOO_LONG;
	return WEFT_OK;
}

/* The sending side answers it in its turn. RFC 7306 §5.4: an atomic is run then, too. */
static void rx_request(struct weft_qpc *qp, const struct weft_fpdu *f, bool atomic)
{
	enum weft_err err = request_check(qp, f, atomic ? WEFT_ATOMIC_REQ_LEN : WEFT_READ_REQ_LEN);
	const u8 *header = f->raw + WEFT_DDP_UNTAGGED_LEN;
	struct weft_irq_entry *e;

	if (err) {
		weft_qpc_fail(qp, err, f);
		return;
	}
	e = &qp->irq[(qp->irq_head + qp->irq_count) % qp->irq_slots];
	memcpy(e->head, f->raw, sizeof(e->head));
	e->atomic = atomic;
	if (atomic)
		weft_atomic_req_read(header, &e->req);
	else
		weft_read_req_read(header, &e->read);
	qp->irq_count++;
	qp->msn_in_read++;
	if (unlikely(qp->ack_reads_max) && !atomic && !e->read.size) {
		qp->asides++;
		weft_host_answer(qp);
	} else {
		weft_host_kick(qp);
	}
}

/* ---- their responses ---- */

/* RFC 5041 §7.1 for the sink that our Request named, wherever in it this lands. */
static enum weft_err read_resp_check(const struct weft_qpc *qp, const struct weft_orq_entry *e,
				     const struct weft_fpdu *f)
{
	u32 size = weft_sq_info_at(&qp->sq, e->wqe)->len, stag;
	u64 to, off;

	weft_wqe_sink(weft_sq_wqe_at(&qp->sq, e->wqe), &stag, &to);
	off = f->ddp.to - to;
	if (f->payload_len) {
		if (f->ddp.stag != stag)
			return WEFT_E_DDP_STAG;
		if (f->ddp.to + (f->payload_len - 1) < f->ddp.to)
			return WEFT_E_DDP_WRAP;
		if (off > size || f->payload_len > size - off)
			return WEFT_E_DDP_BOUNDS;
		/* More octets than the Read's size: some arrive twice. */
		if (f->payload_len > size - e->got)
			return WEFT_E_DDP_BOUNDS;
	}
	/* Short: what is missing would stay stale in the sink. */
	if (f->ddp.last && e->got + f->payload_len != size)
		return WEFT_E_DDP_BOUNDS;
	return WEFT_OK;
}

static void oldest_is_over(struct weft_qpc *qp)
{
	qp->orq_head = (qp->orq_head + 1) % qp->orq_slots;
	qp->orq_count--;
	/* may_answer() */
	if (unlikely(qp->itself) && qp->irq_count)
		weft_host_kick(qp);
}

/*
 * A gate may have opened: ORD, a fence, a close that waited, an acknowledgement Read; or a queue
 * was full, which matters if the ring holds more already: else the next post rings.
 */
static void reap_and_go_on(struct weft_qpc *qp)
{
	struct weft_sqq *sq = &qp->sq;
	bool full = weft_sq_is_full(sq);

	weft_sq_reap(qp);
	if (sq->next != sq->pulled || (full && weft_ringq_filled(&sq->q, sq->pulled)) ||
	    qp->unacked || qp->state == WEFT_QPS_CLOSING)
		weft_host_kick(qp);
}

/* Until rx_ends has ended the message is not completed, and later octets wait. */
static void wait_for_end(struct weft_qpc *qp, bool read)
{
	qp->rx_waits = true;
	qp->rx_ends_read = read;
}

/* The oldest Read or atomic is over with @status. */
static void request_over(struct weft_qpc *qp, const struct weft_orq_entry *e, u8 status)
{
	struct weft_wqe_info *info = weft_sq_info_at(&qp->sq, e->wqe);

	if (unlikely(qp->ack_reads_max))
		weft_sq_confirm(qp, e->wqe);
	info->state = WEFT_WQE_DONE;
	info->status = status;
	oldest_is_over(qp);
	if (status != WEFT_WC_SUCCESS) {
		weft_qpc_fail(qp, WEFT_E_RDMAP_LOCAL, NULL);
		return;
	}
	reap_and_go_on(qp);
}

/* The same, but that the sink of a READ_INV ends before. */
static void request_done(struct weft_qpc *qp, const struct weft_orq_entry *e, u8 status)
{
	const struct weft_sq_wqe *w = weft_sq_wqe_at(&qp->sq, e->wqe);
	u32 stag;
	u64 to;

	weft_wqe_sink(w, &stag, &to);
	if (status == WEFT_WC_SUCCESS && w->opcode == WEFT_WR_READ_INV &&
	    weft_region_invalidate(qp, stag, false, &qp->rx_ends) != WEFT_GRANTED)
		status = WEFT_WC_LOC_PROT_ERR;
	if (unlikely(!weft_region_has_ended(qp, &qp->rx_ends)))
		wait_for_end(qp, true);
	else
		request_over(qp, e, status);
}

/* The peer has placed everything that an acknowledgement Read covers. */
static void rx_confirmation(struct weft_qpc *qp, const struct weft_orq_entry *e,
			    const struct weft_fpdu *f)
{
	if (f->payload_len || !f->ddp.last) {
		weft_qpc_fail(qp, WEFT_E_DDP_BOUNDS, f);
		return;
	}
	qp->asides++;
	weft_sq_confirm(qp, e->wqe);
	oldest_is_over(qp);
	qp->ack_reads_out--;
	reap_and_go_on(qp);
}

static void rx_rtr_response(struct weft_qpc *qp, const struct weft_fpdu *f)
{
	if (f->payload_len || !f->ddp.last) {
		weft_qpc_fail(qp, WEFT_E_DDP_BOUNDS, f);
		return;
	}
	qp->rtr_read_out = false;
	weft_host_kick(qp);
}

/*
 * Has the Request gone out that the next Response, to an atomic or a Read, answers?
 * A Request is listed as soon as it is chosen, and may still wait for room to be sent.
 */
static bool request_is_out(const struct weft_qpc *qp, bool atomic)
{
	const struct weft_orq_entry *e;
	u32 wqe;

	if (qp->rtr_read_out)
		return !atomic && qp->tx_kind != WEFT_TXK_RTR;
	if (!qp->orq_count)
		return false;
	e = &qp->orq[qp->orq_head];
	if (unlikely(e->ask))
		return !atomic && (qp->tx_kind != WEFT_TXK_ACK_READ || qp->orq_count > 1);
	wqe = e->wqe;
	return weft_sq_info_at(&qp->sq, wqe)->state == WEFT_WQE_AWAIT &&
	       weft_wqe_is_atomic(weft_sq_wqe_at(&qp->sq, wqe)) == atomic;
}

static void rx_read_resp(struct weft_qpc *qp, struct weft_fpdu *f)
{
	struct weft_orq_entry *e;
	enum weft_err err;

	/* Unsolicited: no queue of ours expects this opcode. */
	if (!request_is_out(qp, false)) {
		weft_qpc_fail(qp, WEFT_E_RDMAP_OPCODE, f);
		return;
	}
	if (qp->rtr_read_out) {
		rx_rtr_response(qp, f);
		return;
	}
	e = &qp->orq[qp->orq_head];
	if (unlikely(e->ask)) {
		rx_confirmation(qp, e, f);
		return;
	}
	err = read_resp_check(qp, e, f);
	if (err) {
		/* The Response does not fit the Request: the result of the Read is unknown. */
		weft_sq_spoil(qp, e->wqe, WEFT_WC_BAD_RESP_ERR);
		weft_qpc_fail(qp, err, f);
		return;
	}
	if (f->payload_len &&
	    weft_region_place(qp, qp->pd, f->ddp.stag, f->ddp.to, &f->payload, f->payload_len,
			      WEFT_ACCESS_LOCAL_WRITE) != WEFT_GRANTED) {
		/* The sink was taken away under the Read by its own user. */
		request_done(qp, e, WEFT_WC_LOC_PROT_ERR);
		return;
	}
	e->got += f->payload_len;
	if (f->ddp.last)
		request_done(qp, e, WEFT_WC_SUCCESS);
}

/* RFC 5041 §7.1 for queue 3, whose buffers are our Atomic Requests. */
static enum weft_err atomic_resp_check(const struct weft_qpc *qp, const struct weft_fpdu *f)
{
	if (!request_is_out(qp, true))
		return WEFT_E_DDP_NO_BUFFER;
	if (f->ddp.msn != qp->msn_in_atomic)
		return WEFT_E_DDP_MSN;
	if (f->ddp.mo)
		return WEFT_E_DDP_MO;
	if (f->payload_len != WEFT_ATOMIC_RESP_LEN || !f->ddp.last)
		return WEFT_E_DDP_TOO_LONG;
	/* RFC 7306 §5.2.2 (7) wants an error and has no code for it. */
	if (weft_get32(f->raw + WEFT_DDP_UNTAGGED_LEN) != qp->orq[qp->orq_head].msn)
		return WEFT_E_RDMAP_UNSPECIFIED;
	return WEFT_OK;
}

/* The word goes to the requester's memory in this host's order. */
static bool place_word(struct weft_qpc *qp, const struct weft_sq_wqe *w, u64 word)
{
	const struct weft_seg seg = { .p = (const u8 *)&word, .len = sizeof(word) };
	struct weft_cur from;
	u32 stag;
	u64 to;

	weft_cur_init(&from, &seg, 1);
	weft_wqe_sink(w, &stag, &to);
	return weft_region_place(qp, qp->pd, stag, to, &from, sizeof(word),
				 WEFT_ACCESS_LOCAL_WRITE) == WEFT_GRANTED;
}

static void rx_atomic_resp(struct weft_qpc *qp, const struct weft_fpdu *f)
{
	enum weft_err err = atomic_resp_check(qp, f);
	struct weft_orq_entry *e;
	u64 word;

	if (err) {
		if (request_is_out(qp, true))
			weft_sq_spoil(qp, qp->orq[qp->orq_head].wqe, WEFT_WC_BAD_RESP_ERR);
		weft_qpc_fail(qp, err, f);
		return;
	}
	e = &qp->orq[qp->orq_head];
	qp->msn_in_atomic++;
	word = weft_get64(f->raw + WEFT_DDP_UNTAGGED_LEN + 4);
	request_done(qp, e, place_word(qp, weft_sq_wqe_at(&qp->sq, e->wqe), word) ?
			    WEFT_WC_SUCCESS : WEFT_WC_LOC_PROT_ERR);
}

/* ---- Send ---- */

/* The message is valid. The Terminate names it, since the peer's request for it fails, too. */
static void recv_fails(struct weft_qpc *qp, u8 status, const struct weft_fpdu *f)
{
	weft_rq_fail(qp, status);
	weft_host_event(qp, WEFT_EV_LOCAL_ERROR);
	weft_qpc_fail(qp, WEFT_E_RDMAP_STREAM, f);
}

/*
 * A receive, which may have been taken before: 1, 0 none, -1 broken. If there is none and the QP is
 * patient, the next post kicks.
 */
static int recv_get(struct weft_qpc *qp)
{
	if (qp->recv_ahead)
		return qp->recv_ahead;
	return weft_rq_may_wait(qp) ? weft_rq_await(qp) : weft_rq_take(qp);
}

static int recv_take(struct weft_qpc *qp)
{
	int r = recv_get(qp);

	qp->recv_ahead = 0;
	qp->rx_overdue = false;
	return r;
}

/*
 * First segment of a Send, or Immediate Data: takes a receive for it. False: the connection ends,
 * or the segment waits (rx_waits).
 */
static bool recv_begin(struct weft_qpc *qp, const struct weft_fpdu *f)
{
	int r;

	if (f->ddp.msn != qp->msn_in_send) {
		weft_qpc_fail(qp, WEFT_E_DDP_MSN, f);
		return false;
	}
	r = recv_take(qp);
	if (!r) {
		if (!qp->rx_waits)
			weft_qpc_fail(qp, WEFT_E_DDP_NO_BUFFER, f);
		return false;
	}
	if (r < 0) {
		weft_host_event(qp, WEFT_EV_LOCAL_ERROR);
		weft_qpc_fail(qp, WEFT_E_RDMAP_LOCAL, NULL);
		return false;
	}
	qp->recv_active = true;
	qp->recv_op = weft_rdmap_opcode(f->ddp.rdmap);
	qp->recv_inv = f->ddp.inv_stag;
	if (!weft_rq_judge(qp)) {
		recv_fails(qp, WEFT_WC_LOC_QP_OP_ERR, f);
		return false;
	}
	return true;
}

/* Segments of one message agree in all but MO and L (RFC 5041 §4.3, §5.3). */
static enum weft_err recv_continue(const struct weft_qpc *qp, const struct weft_fpdu *f)
{
	if (f->ddp.msn != qp->msn_in_send)
		return WEFT_E_DDP_MSN;
	if (weft_rdmap_opcode(f->ddp.rdmap) != qp->recv_op)
		return WEFT_E_RDMAP_OPCODE;
	if (weft_opcode_invalidates(qp->recv_op) && f->ddp.inv_stag != qp->recv_inv)
		return WEFT_E_RDMAP_UNSPECIFIED;
	return WEFT_OK;
}

/* RFC 5041 §7.1 (3), (4): the whole segment, before any of it is placed. */
static enum weft_err recv_check(const struct weft_qpc *qp, const struct weft_fpdu *f)
{
	u32 mo = f->ddp.mo, len = f->payload_len;

	if (mo > qp->recv_cap)
		return WEFT_E_DDP_MO;
	if (unlikely(qp->in_order) && mo != qp->recv_got)
		return WEFT_E_DDP_MO;
	if (len > qp->recv_cap - mo)
		return WEFT_E_DDP_TOO_LONG;
	/* Some octets come twice, or some are missing below the last segment. */
	if (len > qp->recv_cap - qp->recv_got)
		return WEFT_E_DDP_MO;
	if (f->ddp.last && qp->recv_got + len != mo + len)
		return WEFT_E_DDP_MO;
	return WEFT_OK;
}

/* RFC 5040 §5.3: the STag is invalidated before the message is delivered. */
static enum weft_err recv_invalidate(struct weft_qpc *qp)
{
	switch (weft_region_invalidate(qp, qp->recv_inv, true, &qp->rx_ends)) {
	case WEFT_GRANTED:
		return WEFT_OK;
	case WEFT_DENIED_STAG:
		return WEFT_E_RDMAP_CANT_INV;
	default:
		return WEFT_E_RDMAP_PROT_CANT_INV;
	}
}

static void recv_over(struct weft_qpc *qp)
{
	struct weft_cqe e = { .status = WEFT_WC_SUCCESS, .opcode = WEFT_WCO_RECV };

	qp->msn_in_send++;
	if (weft_opcode_solicits(qp->recv_op))
		e.flags |= WEFT_CQE_SOLICITED;
	if (weft_opcode_invalidates(qp->recv_op)) {
		e.flags |= WEFT_CQE_INV;
		e.inv_stag = qp->recv_inv;
	}
	if (qp->imm_held) {
		e.flags |= WEFT_CQE_IMM;
		e.imm = qp->imm;
		qp->imm_held = false;
	}
	qp->write_len = 0;
	weft_rq_complete(qp, &e);
}

static void recv_deliver(struct weft_qpc *qp, const struct weft_fpdu *f)
{
	enum weft_err err = weft_opcode_invalidates(qp->recv_op) ? recv_invalidate(qp) : WEFT_OK;

	if (err)
		weft_qpc_fail(qp, err, f);
	else if (unlikely(!weft_region_has_ended(qp, &qp->rx_ends)))
		wait_for_end(qp, false);
	else
		recv_over(qp);
}

/* A peer-to-peer initiator's zero-length Send is MPA's, not the ULP's. */
static bool is_rtr_send(const struct weft_qpc *qp, const struct weft_fpdu *f)
{
	return qp->rtr_await && qp->st->agreed.rtr & WEFT_RTR_SEND && !f->payload_len &&
	       f->ddp.last && f->ddp.msn == 1 && weft_rdmap_opcode(f->ddp.rdmap) == WEFT_OP_SEND;
}

static void rx_send(struct weft_qpc *qp, struct weft_fpdu *f)
{
	enum weft_err err;

	if (is_rtr_send(qp, f)) {
		qp->msn_in_send++;
		return;
	}
	if (!qp->recv_active) {
		if (!recv_begin(qp, f))
			return;
		err = WEFT_OK;
	} else {
		err = recv_continue(qp, f);
	}
	if (!err)
		err = recv_check(qp, f);
	if (err == WEFT_E_DDP_TOO_LONG)
		weft_rq_fail(qp, WEFT_WC_LOC_LEN_ERR);
	if (err) {
		weft_qpc_fail(qp, err, f);
		return;
	}
	if (!weft_rq_place(qp, f->ddp.mo, &f->payload, f->payload_len)) {
		recv_fails(qp, WEFT_WC_LOC_PROT_ERR, f);
		return;
	}
	qp->recv_got += f->payload_len;
	if (f->ddp.last)
		recv_deliver(qp, f);
}

/* ---- Immediate Data ---- */

/* RFC 7306 §6.3: the same queue, numbers and receives as Sends; the header is all. */
static enum weft_err imm_check(const struct weft_qpc *qp, const struct weft_fpdu *f)
{
	if (f->ddp.msn != qp->msn_in_send)
		return WEFT_E_DDP_MSN;
	/* A Send goes on, or was announced. */
	if (qp->recv_active || qp->imm_held)
		return WEFT_E_RDMAP_OPCODE;
	if (f->ddp.mo)
		return WEFT_E_DDP_MO;
	/* The RFC wants this checked and has no code for it. */
	if (f->payload_len != WEFT_IMMEDIATE_LEN || !f->ddp.last)
		return WEFT_E_RDMAP_UNSPECIFIED;
	return WEFT_OK;
}

/* Verbs know of it as the end of a Write, the one before it. */
static void imm_deliver(struct weft_qpc *qp, u64 imm)
{
	struct weft_cqe e = {
		.status = WEFT_WC_SUCCESS,
		.opcode = WEFT_WCO_RECV_IMM,
		.flags = WEFT_CQE_IMM,
		.imm = imm,
	};

	if (weft_opcode_solicits(qp->recv_op))
		e.flags |= WEFT_CQE_SOLICITED;
	qp->msn_in_send++;
	qp->recv_got = qp->write_len;
	weft_rq_complete(qp, &e);
}

static void rx_imm(struct weft_qpc *qp, const struct weft_fpdu *f)
{
	enum weft_err err = imm_check(qp, f);
	u64 imm;

	if (err) {
		weft_qpc_fail(qp, err, f);
		return;
	}
	imm = weft_get64(f->raw + WEFT_DDP_UNTAGGED_LEN);
	if (imm >> 32 == WEFT_IMM_OF_SEND) {
		qp->msn_in_send++;
		qp->imm_held = true;
		qp->imm = (u32)imm;
		return;
	}
	if (!recv_begin(qp, f))
		return;
	imm_deliver(qp, imm);
	qp->write_len = 0;
}

/* ---- Terminate ---- */

static void rx_terminate(struct weft_qpc *qp, struct weft_fpdu *f)
{
	u8 body[WEFT_TERM_MAX];
	u32 n = min_t(u32, f->payload_len, sizeof(body));

	if (f->ddp.msn != 1 || f->ddp.mo) {
		weft_qpc_fail(qp, f->ddp.mo ? WEFT_E_DDP_MO : WEFT_E_DDP_MSN, f);
		return;
	}
	weft_cur_copy(&f->payload, body, n);
	weft_term_read(body, n, &qp->term_in);
	weft_qpc_terminated(qp);
}

/* ---- long FPDUs, in parts ---- */

/*
 * The octets of a part are placed before the FPDU is whole and, with CRC, verified. So a Write is
 * taken in parts only without CRC. A Send goes to a posted receive, a Response to the sink of the
 * Read that asked for it: their memory is this end's own until delivery, which follows the CRC. A
 * stream (in_order) shows its octets before.
 *
 * Each part is a segment by itself, and checked as one. What is not as it should be is left to
 * the whole segment.
 */
static bool write_has_place(struct weft_qpc *qp, const struct weft_fpdu *f)
{
	return !(qp->denied & WEFT_ACCESS_REMOTE_WRITE) &&
	       weft_region_allows(qp, qp->pd, f->ddp.stag, f->ddp.to, f->payload_len,
				  WEFT_ACCESS_REMOTE_WRITE);
}

static bool response_has_place(const struct weft_qpc *qp, const struct weft_fpdu *f)
{
	const struct weft_orq_entry *e;

	if (!request_is_out(qp, false) || qp->rtr_read_out)
		return false;
	e = &qp->orq[qp->orq_head];
	return !e->ask && read_resp_check(qp, e, f) == WEFT_OK;
}

/* Takes a receive, if there is one. */
static bool send_has_place(struct weft_qpc *qp, const struct weft_fpdu *f)
{
	if (qp->recv_active)
		return !recv_continue(qp, f) && !recv_check(qp, f);
	if (f->ddp.msn != qp->msn_in_send)
		return false;
	qp->recv_ahead = recv_get(qp);
	weft_rq_wait_over(qp);
	return qp->recv_ahead > 0 && recv_begin(qp, f) && !recv_check(qp, f);
}

static bool may_take_parts(struct weft_qpc *qp, const struct weft_fpdu *f)
{
	const bool crc = qp->st->agreed.crc;

	switch (weft_rdmap_opcode(f->ddp.rdmap)) {
	case WEFT_OP_WRITE:
		return !crc && write_has_place(qp, f);
	case WEFT_OP_READ_RESP:
		return response_has_place(qp, f);
	default:
		return !(crc && qp->in_order) && send_has_place(qp, f);
	}
}

static void take_part(struct weft_qpc *qp, struct weft_fpdu *f)
{
	switch (weft_rdmap_opcode(f->ddp.rdmap)) {
	case WEFT_OP_WRITE:
		rx_write(qp, f);
		break;
	case WEFT_OP_READ_RESP:
		rx_read_resp(qp, f);
		break;
	default:
		rx_send(qp, f);
		break;
	}
}

/* ---- one FPDU, and all of them ---- */

/* A Read or atomic acknowledges, too. The RTR belongs to no work request. */
static void weigh(struct weft_qpc *qp, const struct weft_fpdu *f)
{
	switch (weft_rdmap_opcode(f->ddp.rdmap)) {
	case WEFT_OP_READ_REQ:
	case WEFT_OP_ATOMIC_REQ:
		qp->ack_pending = false;
		break;
	case WEFT_OP_READ_RESP:
	case WEFT_OP_ATOMIC_RESP:
		break;
	default:
		qp->ack_pending = f->ddp.last && !qp->rtr_await;
		break;
	}
}

static void qpc_rx_fpdu(struct weft_qpc *qp, struct weft_fpdu *f)
{
	switch (weft_rdmap_opcode(f->ddp.rdmap)) {
	case WEFT_OP_WRITE:
		rx_write(qp, f);
		break;
	case WEFT_OP_READ_REQ:
		rx_request(qp, f, false);
		break;
	case WEFT_OP_READ_RESP:
		rx_read_resp(qp, f);
		break;
	case WEFT_OP_SEND:
	case WEFT_OP_SEND_INV:
	case WEFT_OP_SEND_SE:
	case WEFT_OP_SEND_SE_INV:
		rx_send(qp, f);
		break;
	case WEFT_OP_TERMINATE:
		rx_terminate(qp, f);
		break;
	case WEFT_OP_IMM:
	case WEFT_OP_IMM_SE:
		rx_imm(qp, f);
		break;
	case WEFT_OP_ATOMIC_REQ:
		rx_request(qp, f, true);
		break;
	case WEFT_OP_ATOMIC_RESP:
		rx_atomic_resp(qp, f);
		break;
	default:
		weft_qpc_fail(qp, WEFT_E_RDMAP_OPCODE, f);
		break;
	}
	if (qp->ack_reads_max)
		weigh(qp, f);
	qp->rtr_await = false;
	if (!qp->rx_seen) {
		qp->rx_seen = true;
		weft_host_event(qp, WEFT_EV_RTS);
		weft_host_kick(qp);
	}
}

void weft_qpc_rx(struct weft_qpc *qp, struct weft_cur *in)
{
	struct weft_stream *st = qp->st;
	struct weft_cur before;
	struct weft_fpdu f;
	u8 *chunk;

	while (likely(!qp->rx_waits)) {
		f.raw_len = 0;
		before = *in;
		switch (weft_stream_rx(st, in, &f)) {
		case WEFT_RX_HEAD:
			if (may_take_parts(qp, &f))
				weft_stream_take_parts(st);
			break;
		case WEFT_RX_PART:
			take_part(qp, &f);
			break;
		case WEFT_RX_CHUNK:
			chunk = weft_host_chunk(qp);
			if (unlikely(!chunk))
				return;
			weft_stream_lend(st, chunk);
			break;
		case WEFT_RX_ERROR:
			weft_qpc_fail(qp, st->rx_error, &f);
			break;
		case WEFT_RX_FPDU:
			qpc_rx_fpdu(qp, &f);
			/* What waits for a region's end was taken in. */
			if (unlikely(qp->rx_waits) && !qp->rx_ends)
				weft_stream_keep(st, in, &before);
			/* The next call would drop what is staged, and find no octets. */
			if (in->left || qp->rx_waits || st->rx_reported)
				break;
			fallthrough;
		case WEFT_RX_STARTUP:
		case WEFT_RX_MORE:
			while (st->nchunk > 1 && (chunk = weft_stream_reclaim(st, false)))
				weft_host_chunk_free(qp, chunk);
			return;
		}
	}
}

/* Completes the message that waited for a region's end, if that has ended. */
static void tell_behind_end(struct weft_qpc *qp)
{
	if (!weft_region_has_ended(qp, &qp->rx_ends))
		return;
	qp->rx_waits = false;
	if (qp->rx_ends_read)
		request_over(qp, &qp->orq[qp->orq_head], WEFT_WC_SUCCESS);
	else
		recv_over(qp);
}

bool weft_qpc_rx_resume(struct weft_qpc *qp)
{
	struct weft_cur none;

	if (!qp->rx_waits)
		return false;
	if (qp->rx_ends)
		tell_behind_end(qp);
	else if (qp->rx_overdue)
		weft_rq_wait_over(qp);
	else
		qp->recv_ahead = weft_rq_await(qp);
	if (qp->rx_waits)
		return false;
	/* The segment may lie in the stage, with nothing after it in TCP. */
	weft_cur_init(&none, NULL, 0);
	weft_qpc_rx(qp, &none);
	return true;
}
