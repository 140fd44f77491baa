// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What goes out next. weft_tx_next() chooses a message when none is under way
 * (choose()), then cuts one FPDU off it (cut()).
 */
#include "atomic.h"
#include "qp.h"
#include "tx.h"

/* What choose() and its helpers found. */
enum pick {
	PICK_MSG,			/* qp->tx_kind and tx_msg are set */
	PICK_AGAIN,			/* something changed: choose anew */
	PICK_NONE,			/* nothing can be sent from there now */
	PICK_DEFER,			/* only once FPDUs handed out are copied: weft_tx_sent() */
};

static void begin(struct weft_qpc *qp, enum weft_tx_kind kind, enum weft_opcode op)
{
	memset(&qp->tx_msg, 0, offsetof(struct weft_tx_msg, ulp));
	qp->tx_msg.op = op;
	qp->tx_msg.ulp_len = 0;
	qp->tx_kind = kind;
}

static void begin_terminate(struct weft_qpc *qp)
{
	struct weft_tx_msg *m = &qp->tx_msg;

	begin(qp, WEFT_TXK_TERM, WEFT_OP_TERMINATE);
	m->msn = 1;
	m->ulp_len = (u8)(weft_term_write(m->ulp, &qp->term_out) - m->ulp);
}

static void begin_read_req(struct weft_qpc *qp, enum weft_tx_kind kind,
			   const struct weft_read_req *r)
{
	struct weft_tx_msg *m = &qp->tx_msg;

	begin(qp, kind, WEFT_OP_READ_REQ);
	m->msn = qp->msn_read++;
	m->ulp_len = (u8)(weft_read_req_write(m->ulp, r) - m->ulp);
}

/* RFC 6581 §9.2: the first FPDU of a peer-to-peer initiator. */
static void begin_rtr(struct weft_qpc *qp)
{
	const struct weft_read_req none = {
		.sink_stag = WEFT_STAG_NONE,
		.src_stag = WEFT_STAG_NONE,
	};

	switch (qp->rtr_out) {
	case WEFT_RTR_READ:
		qp->rtr_read_out = true;
		begin_read_req(qp, WEFT_TXK_RTR, &none);
		break;
	case WEFT_RTR_SEND:
		begin(qp, WEFT_TXK_RTR, WEFT_OP_SEND);
		qp->tx_msg.msn = qp->msn_send++;
		break;
	default:
		begin(qp, WEFT_TXK_RTR, WEFT_OP_WRITE);
		qp->tx_msg.stag = WEFT_STAG_NONE;
		break;
	}
	qp->rtr_out = 0;
}

/* ---- Responses to Reads and atomics ---- */

/* The DDP header of the oldest Request, as it came. */
static u8 *put_request_header(u8 *p, const struct weft_qpc *qp)
{
	const struct weft_irq_entry *e = &qp->irq[qp->irq_head];

	memcpy(p, e->head, sizeof(e->head));
	p = weft_put32(p + sizeof(e->head), WEFT_QN_READ_REQUEST);
	p = weft_put32(p, qp->msn_in_read - qp->irq_count);
	return weft_put32(p, 0);
}

/*
 * The Terminate for a Read Request that cannot be (further) served names what
 * was left of it after @done octets (RFC 5040 §4.8).
 */
static void fail_read(struct weft_qpc *qp, enum weft_err err, u32 done)
{
	u8 raw[WEFT_DDP_UNTAGGED_LEN + WEFT_READ_REQ_LEN];
	struct weft_read_req left = qp->irq[qp->irq_head].read;

	left.sink_to += done;
	left.src_to += done;
	left.size -= done;
	weft_read_req_write(put_request_header(raw, qp), &left);
	weft_qpc_fail_raw(qp, err, raw, sizeof(raw), sizeof(raw));
}

/* RFC 7306 §8.1 (2): of an atomic the DDP header alone. */
static void fail_atomic(struct weft_qpc *qp, enum weft_err err)
{
	u8 raw[WEFT_DDP_UNTAGGED_LEN];

	put_request_header(raw, qp);
	weft_qpc_fail_raw(qp, err, raw, sizeof(raw), WEFT_DDP_UNTAGGED_LEN + WEFT_ATOMIC_REQ_LEN);
}

static enum pick pick_read_response(struct weft_qpc *qp, const struct weft_read_req *r)
{
	struct weft_tx_msg *m = &qp->tx_msg;

	begin(qp, WEFT_TXK_RESPONSE, WEFT_OP_READ_RESP);
	m->stag = r->sink_stag;
	m->to = r->sink_to;
	m->len = r->size;
	return PICK_MSG;
}

/* The word's address is judged, which the memory's is beside the TO (RFC 7306 §5.2.1). */
static enum weft_err run_on(struct weft_region *r, const struct weft_atomic_req *req, u64 *was)
{
	u64 to = req->to;
	struct weft_region *memory = weft_region_memory(r, &to);
	u32 got;
	u64 *word = weft_host_piece(memory, to, sizeof(*word), &got);

	if ((uintptr_t)word % sizeof(*word) || got < sizeof(*word) ||
	    !weft_host_atomic(req, word, was))
		return WEFT_E_RDMAP_STREAM;
	return WEFT_OK;
}

static enum weft_err run_atomic(struct weft_qpc *qp, const struct weft_atomic_req *req, u64 *was)
{
	struct weft_region *r;
	enum weft_err err;

	if (!weft_atomic_is_known(req->code))
		return WEFT_E_RDMAP_OPCODE;
	if (qp->denied & WEFT_ACCESS_REMOTE_ATOMIC)
		return WEFT_E_RDMAP_ACCESS;
	r = weft_region_get(qp, qp->pd, req->stag);
	err = weft_denial_rdmap(weft_region_check(r, req->stag, qp->pd, qp->id, req->to,
						  sizeof(*was), WEFT_ACCESS_REMOTE_ATOMIC));
	if (!err)
		err = run_on(r, req, was);
	if (r)
		weft_region_put(qp, r);
	return err;
}

/*
 * The atomic is run here, once: its Response is the message until it is cut. Responses to
 * Reads before it have their octets by then.
 */
static enum pick pick_atomic_response(struct weft_qpc *qp, const struct weft_atomic_req *req)
{
	struct weft_tx_msg *m = &qp->tx_msg;
	enum weft_err err;
	u64 was;

	if (qp->tx_unsent_resp)
		return PICK_DEFER;
	err = run_atomic(qp, req, &was);
	if (err && qp->tx_unsent)
		return PICK_DEFER;
	if (err) {
		fail_atomic(qp, err);
		return PICK_AGAIN;
	}
	begin(qp, WEFT_TXK_RESPONSE, WEFT_OP_ATOMIC_RESP);
	m->msn = qp->msn_atomic++;
	m->ulp_len = (u8)(weft_atomic_resp_write(m->ulp, req->id, was) - m->ulp);
	return PICK_MSG;
}

static enum pick pick_oldest_response(struct weft_qpc *qp)
{
	const struct weft_irq_entry *e = &qp->irq[qp->irq_head];

	return e->atomic ? pick_atomic_response(qp, &e->req) : pick_read_response(qp, &e->read);
}

/*
 * A QP that is its own peer answers one Request at a time, the next after the Response has arrived:
 * an error in one must find those before it done.
 */
static bool may_answer(const struct weft_qpc *qp)
{
	return likely(!qp->itself) || !qp->orq_count ||
	       qp->orq[qp->orq_head].msn == qp->msn_in_read - qp->irq_count;
}

static enum pick pick_response(struct weft_qpc *qp)
{
	return qp->irq_count && may_answer(qp) ? pick_oldest_response(qp) : PICK_NONE;
}

/* Granted: is the memory there? */
static bool is_there(struct weft_region *r, u64 to, u32 len)
{
	struct weft_region *memory = weft_region_memory(r, &to);

	return memory->kind == WEFT_REGION_NULL || weft_host_is_there(memory, to, len);
}

/* Checks what is left of the source at once, so that a bad Read sends nothing. */
static enum weft_denial gather_response(struct weft_qpc *qp, struct weft_txd *d)
{
	const struct weft_read_req *r = &qp->irq[qp->irq_head].read;
	const struct weft_tx_fpdu *f = &d->f;
	struct weft_region *region;
	enum weft_denial denial;

	if (!f->payload_len)
		return WEFT_GRANTED;
	if (qp->denied & WEFT_ACCESS_REMOTE_READ)
		return WEFT_DENIED_ACCESS;
	region = weft_region_get(qp, qp->pd, r->src_stag);
	denial = weft_region_check(region, r->src_stag, qp->pd, qp->id,
				   r->src_to + f->payload_off, r->size - f->payload_off,
				   WEFT_ACCESS_REMOTE_READ);
	if (denial == WEFT_GRANTED && !is_there(region, r->src_to + f->payload_off, f->payload_len))
		denial = WEFT_DENIED_GONE;
	if (denial != WEFT_GRANTED) {
		if (region)
			weft_region_put(qp, region);
		return denial;
	}
	d->piece[d->npieces++] = (struct weft_piece) {
		.region = region,
		.addr = r->src_to + f->payload_off,
		.len = f->payload_len,
	};
	return WEFT_GRANTED;
}

/* ---- work requests ---- */

/* Marks the entry at sq.next as done with @status and advances. */
static void wqe_over(struct weft_qpc *qp, u8 state, u8 status)
{
	struct weft_wqe_info *info = weft_sq_info_at(&qp->sq, qp->sq.next);

	info->state = state;
	info->status = status;
	qp->sq.next += info->nslots;
}

/* A work request that cannot be carried out ends the connection (RFC 5040 §7.1(1)). */
static enum pick wqe_fails(struct weft_qpc *qp, u8 status)
{
	if (qp->tx_unsent)
		return PICK_DEFER;
	wqe_over(qp, WEFT_WQE_DONE, status);
	weft_host_event(qp, WEFT_EV_LOCAL_ERROR);
	weft_qpc_fail(qp, WEFT_E_RDMAP_LOCAL, NULL);
	return PICK_AGAIN;
}

/* May this QP use [@addr, @addr + @len) of @lkey now? Keeps the region if @keep. */
static enum weft_denial local_access(struct weft_qpc *qp, u32 lkey, u64 addr, u32 len,
				     u32 access, struct weft_region **keep)
{
	struct weft_region *r = weft_region_get(qp, qp->pd, lkey);
	enum weft_denial d = weft_region_check(r, lkey, qp->pd, qp->id, addr, len, access);

	if (keep && d == WEFT_GRANTED && !is_there(r, addr, len))
		d = WEFT_DENIED_GONE;
	if (keep && d == WEFT_GRANTED)
		*keep = r;
	else if (r)
		weft_region_put(qp, r);
	return d;
}

/* Unanswered Reads and atomics, the RTR Read included, acknowledgement Reads not. */
static u32 reads_out(const struct weft_qpc *qp)
{
	return qp->orq_count - qp->ack_reads_out + qp->rtr_read_out;
}

/* The next Request is outstanding from now on: that at sq.next, or an acknowledgement Read. */
static void list_as_out(struct weft_qpc *qp, bool ask)
{
	qp->orq[(qp->orq_head + qp->orq_count++) % qp->orq_slots] = (struct weft_orq_entry) {
		.wqe = qp->sq.next,
		.msn = qp->msn_read,
		.ask = ask,
	};
}

/*
 * Lists the entry at sq.next among the outstanding Requests if ORD allows, and its sink,
 * of @len octets, is there. RFC 7306 §5.2: atomics count for ORD as Reads do.
 */
static enum pick list_request(struct weft_qpc *qp, u32 stag, u64 to, u32 len)
{
	if (!qp->ord)
		return wqe_fails(qp, WEFT_WC_LOC_QP_OP_ERR);
	if (reads_out(qp) >= qp->ord)
		return PICK_NONE;
	if (len && local_access(qp, stag, to, len, WEFT_ACCESS_LOCAL_WRITE, NULL))
		return wqe_fails(qp, WEFT_WC_LOC_PROT_ERR);
	list_as_out(qp, false);
	return PICK_MSG;
}

static enum pick pick_read(struct weft_qpc *qp, const struct weft_sq_wqe *w, u32 len)
{
	struct weft_read_req r = {
		.size = len,
		.src_stag = w->rkey,
		.src_to = w->remote_addr,
	};
	enum pick p;

	weft_wqe_sink(w, &r.sink_stag, &r.sink_to);
	p = list_request(qp, r.sink_stag, r.sink_to, len);
	if (p == PICK_MSG)
		begin_read_req(qp, WEFT_TXK_WQE, &r);
	return p;
}

static enum pick pick_atomic(struct weft_qpc *qp, const struct weft_sq_wqe *w, u32 len)
{
	struct weft_tx_msg *m = &qp->tx_msg;
	struct weft_atomic_req r;
	enum pick p;
	u32 stag;
	u64 to;

	weft_wqe_sink(w, &stag, &to);
	p = list_request(qp, stag, to, len);
	if (p != PICK_MSG)
		return p;
	weft_wqe_atomic(w, &r);
	r.id = qp->msn_read;
	begin(qp, WEFT_TXK_WQE, WEFT_OP_ATOMIC_REQ);
	m->msn = qp->msn_read++;
	m->ulp_len = (u8)(weft_atomic_req_write(m->ulp, &r) - m->ulp);
	return PICK_MSG;
}

static enum pick pick_write(struct weft_qpc *qp, const struct weft_sq_wqe *w, u32 len)
{
	begin(qp, WEFT_TXK_WQE, WEFT_OP_WRITE);
	qp->tx_msg.stag = len || w->rkey ? w->rkey : WEFT_STAG_NONE;
	qp->tx_msg.to = w->remote_addr;
	qp->tx_msg.len = len;
	return PICK_MSG;
}

/* For a message of the entry at sq.next. */
static u32 take_send_msn(struct weft_qpc *qp)
{
	return weft_sq_info_at(&qp->sq, qp->sq.next)->msn = qp->msn_send++;
}

static enum pick pick_send(struct weft_qpc *qp, const struct weft_sq_wqe *w, u32 len)
{
	bool inv = w->opcode == WEFT_WR_SEND_INV;
	bool solicited = w->flags & WEFT_WR_SOLICITED;

	if (solicited)
		begin(qp, WEFT_TXK_WQE, inv ? WEFT_OP_SEND_SE_INV : WEFT_OP_SEND_SE);
	else
		begin(qp, WEFT_TXK_WQE, inv ? WEFT_OP_SEND_INV : WEFT_OP_SEND);
	qp->tx_msg.msn = take_send_msn(qp);
	qp->tx_msg.inv_stag = inv ? w->inv_stag : 0;
	qp->tx_msg.len = len;
	return PICK_MSG;
}

static enum pick pick_imm(struct weft_qpc *qp, u64 imm, bool solicited)
{
	struct weft_tx_msg *m = &qp->tx_msg;

	begin(qp, WEFT_TXK_WQE, solicited ? WEFT_OP_IMM_SE : WEFT_OP_IMM);
	m->msn = take_send_msn(qp);
	m->ulp_len = (u8)(weft_put64(m->ulp, imm) - m->ulp);
	return PICK_MSG;
}

/* A Write, then its Immediate Data (RFC 7306 §6). */
static enum pick pick_write_imm(struct weft_qpc *qp, const struct weft_sq_wqe *w, u32 len)
{
	if (!qp->tx_second)
		return pick_write(qp, w, len);
	return pick_imm(qp, w->imm, w->flags & WEFT_WR_SOLICITED);
}

/* Immediate Data that says what it belongs to, then the Send. */
static enum pick pick_send_imm(struct weft_qpc *qp, const struct weft_sq_wqe *w, u32 len)
{
	if (qp->tx_second)
		return pick_send(qp, w, len);
	return pick_imm(qp, (u64)WEFT_IMM_OF_SEND << 32 | (u32)w->imm, false);
}

/* Done once no QP uses the region. It begins once, and may take several calls. */
static enum weft_denial local_inv(struct weft_qpc *qp, u32 stag)
{
	enum weft_denial d = WEFT_GRANTED;

	if (!qp->tx_inv_begun)
		d = weft_region_invalidate(qp, stag, false, &qp->tx_ends);
	qp->tx_inv_begun = d == WEFT_GRANTED && !weft_region_has_ended(qp, &qp->tx_ends);
	return qp->tx_inv_begun ? WEFT_DENIED_SHARED : d;
}

/* Work that sends nothing. WEFT_DENIED_SHARED: again later. */
static enum weft_denial do_local(struct weft_qpc *qp, const struct weft_sq_wqe *w)
{
	if (w->opcode == WEFT_WR_LOCAL_INV)
		return local_inv(qp, w->inv_stag);
	if (w->opcode == WEFT_WR_BIND_MW)
		return weft_region_bind(qp, (const void *)w->data);
	return weft_region_register(qp, (const void *)w->data);
}

static u8 local_status(const struct weft_sq_wqe *w, enum weft_denial d)
{
	if (d == WEFT_GRANTED)
		return WEFT_WC_SUCCESS;
	return w->opcode == WEFT_WR_BIND_MW ? WEFT_WC_MW_BIND_ERR : WEFT_WC_LOC_PROT_ERR;
}

/* In its turn, and after what it might pull the rug from. */
static enum pick run_local(struct weft_qpc *qp, const struct weft_sq_wqe *w)
{
	enum weft_denial d;

	if (qp->tx_unsent)
		return PICK_DEFER;
	d = do_local(qp, w);
	if (d == WEFT_DENIED_SHARED)
		return PICK_NONE;
	if (d != WEFT_GRANTED)
		return wqe_fails(qp, local_status(w, d));
	wqe_over(qp, WEFT_WQE_DONE, WEFT_WC_SUCCESS);
	/* Its slots may be filled again once it is reaped: weft_tx_sent() starts after it. */
	qp->sq.sent = qp->sq.next;
	weft_sq_reap(qp);
	return PICK_AGAIN;
}

/*
 * Nothing is copied that is not sent: looks into the ring. If that is empty, sets KICK and looks
 * again, unless the QP lingers. PICK_MSG: there is an entry.
 */
static enum pick sq_look(struct weft_qpc *qp)
{
	int r = weft_sq_is_behind(&qp->sq) ? weft_sq_pull(qp) : 0;

	if (!r && !qp->linger) {
		weft_ringq_sleep(&qp->sq.q);
		r = weft_sq_is_behind(&qp->sq) ? weft_sq_pull(qp) : 0;
	}
	if (!r)
		return PICK_NONE;
	weft_ringq_wake(&qp->sq.q);
	if (r > 0)
		return PICK_MSG;
	if (qp->tx_unsent)
		return PICK_DEFER;
	weft_host_event(qp, WEFT_EV_LOCAL_ERROR);
	weft_qpc_fail(qp, WEFT_E_RDMAP_LOCAL, NULL);
	return PICK_AGAIN;
}

static bool takes_receive(const struct weft_sq_wqe *w)
{
	return w->opcode == WEFT_WR_SEND || w->opcode == WEFT_WR_SEND_INV ||
	       w->opcode == WEFT_WR_SEND_IMM || w->opcode == WEFT_WR_WRITE_IMM;
}

static enum pick pick_wqe(struct weft_qpc *qp)
{
	struct weft_sqq *sq = &qp->sq;
	const struct weft_sq_wqe *w;
	const struct weft_wqe_info *info;
	enum pick p = sq->next == sq->pulled ? sq_look(qp) : PICK_MSG;

	if (p != PICK_MSG)
		return p;
	w = weft_sq_wqe_at(sq, sq->next);
	info = weft_sq_info_at(sq, sq->next);
	if (info->status != WEFT_WC_SUCCESS)
		return wqe_fails(qp, info->status);
	if (!qp->st->ext && weft_wqe_is_extension(w))
		return wqe_fails(qp, WEFT_WC_LOC_QP_OP_ERR);
	/* The read fence: every Read before it is complete. */
	if (w->flags & WEFT_WR_FENCE && reads_out(qp))
		return PICK_NONE;
	/* A Send that waits for a receive blocks all after it: to itself, answers, too. */
	if (unlikely(qp->itself) && takes_receive(w) && qp->orq_count)
		return PICK_NONE;
	qp->sge = 0;
	qp->sge_off = 0;
	switch (w->opcode) {
	case WEFT_WR_READ:
	case WEFT_WR_READ_INV:
		return pick_read(qp, w, info->len);
	case WEFT_WR_WRITE:
		return pick_write(qp, w, info->len);
	case WEFT_WR_SEND:
	case WEFT_WR_SEND_INV:
		return pick_send(qp, w, info->len);
	case WEFT_WR_WRITE_IMM:
		return pick_write_imm(qp, w, info->len);
	case WEFT_WR_SEND_IMM:
		return pick_send_imm(qp, w, info->len);
	case WEFT_WR_CMP_SWAP:
	case WEFT_WR_FETCH_ADD:
		return pick_atomic(qp, w, info->len);
	default:
		return run_local(qp, w);
	}
}

/* Before the first of several FPDUs: is all of the message there to be sent? */
static enum weft_denial check_all(struct weft_qpc *qp, const struct weft_sq_wqe *w)
{
	enum weft_denial d = WEFT_GRANTED;
	u32 i;

	for (i = 0; i < w->num_sge && d == WEFT_GRANTED; i++) {
		const struct weft_sge *s = weft_wqe_sge(w, i);

		if (s->length)
			d = local_access(qp, s->lkey, s->addr, s->length, 0, NULL);
	}
	return d;
}

/* Lists the payload of @d's FPDU, from where the one before it ended. */
static enum weft_denial gather_sges(struct weft_qpc *qp, const struct weft_sq_wqe *w,
				    struct weft_txd *d)
{
	u32 left = d->f.payload_len;

	while (left) {
		const struct weft_sge *s = weft_wqe_sge(w, qp->sge);
		u32 n = min_t(u32, left, s->length - qp->sge_off);
		struct weft_piece *p = &d->piece[d->npieces];
		enum weft_denial denial;

		if (n) {
			denial = local_access(qp, s->lkey, s->addr + qp->sge_off, n, 0,
					      &p->region);
			if (denial != WEFT_GRANTED)
				return denial;
			p->addr = s->addr + qp->sge_off;
			p->len = n;
			d->npieces++;
			qp->sge_off += n;
			left -= n;
		}
		if (qp->sge_off == s->length) {
			qp->sge++;
			qp->sge_off = 0;
		}
	}
	return WEFT_GRANTED;
}

static enum weft_denial gather_wqe(struct weft_qpc *qp, struct weft_txd *d)
{
	const struct weft_sq_wqe *w = weft_sq_wqe_at(&qp->sq, qp->sq.next);

	if (!d->f.payload_len)
		return WEFT_GRANTED;
	if (w->flags & WEFT_WR_INLINE) {
		d->piece[d->npieces++] = (struct weft_piece) {
			.p = weft_wqe_inline(w) + d->f.payload_off,
			.len = d->f.payload_len,
		};
		return WEFT_GRANTED;
	}
	if (!d->f.payload_off && !d->f.last) {
		enum weft_denial denial = check_all(qp, w);

		if (denial != WEFT_GRANTED)
			return denial;
	}
	return gather_sges(qp, w, d);
}

/* ---- UC without a connection ---- */

/* The status of a UC work request that is not sent. */
static u8 lost_status(struct weft_qpc *qp, u32 pos)
{
	const struct weft_wqe_info *info = weft_sq_info_at(&qp->sq, pos);
	const struct weft_sq_wqe *w = weft_sq_wqe_at(&qp->sq, pos);

	if (info->status != WEFT_WC_SUCCESS || info->state != WEFT_WQE_QUEUED)
		return info->status;
	switch (w->opcode) {
	case WEFT_WR_READ:
	case WEFT_WR_READ_INV:
	case WEFT_WR_CMP_SWAP:
	case WEFT_WR_FETCH_ADD:
		return WEFT_WC_LOC_QP_OP_ERR;
	case WEFT_WR_LOCAL_INV:
	case WEFT_WR_BIND_MW:
		/* Of windows, which are the QP's own: see by_hand. */
		return local_status(w, do_local(qp, w));
	default:
		if (w->flags & WEFT_WR_INLINE || check_all(qp, w) == WEFT_GRANTED)
			return WEFT_WC_SUCCESS;
		return WEFT_WC_LOC_PROT_ERR;
	}
}

bool weft_qpc_lose(struct weft_qpc *qp)
{
	struct weft_sqq *sq = &qp->sq;
	u32 n;

	for (n = 0; n < WEFT_FLUSH_PIECE && !qp->sq_held; n++) {
		u32 pos = sq->q.idx;
		int pulled = pos != sq->pulled ? 1 : weft_sq_pull(qp);
		u8 status = WEFT_WC_LOC_QP_OP_ERR;

		if (!pulled)
			return false;
		if (pulled > 0)
			status = lost_status(qp, pos);
		if (status != WEFT_WC_SUCCESS) {
			weft_qpc_give_up(qp, status);
			return false;
		}
		weft_sq_spoil(qp, pos, status);
		sq->next = sq->sent = pos + weft_sq_info_at(sq, pos)->nslots;
		qp->tx_second = false;
		weft_sq_reap(qp);
	}
	return !qp->sq_held;
}

/* ---- acknowledgement Reads ---- */

/* After so many octets, or this part of the queue, one is sent amid a stream. */
#define ASK_OCTETS	(256 * 1024)
#define ASK_PART	4

static void begin_ack_read(struct weft_qpc *qp)
{
	const struct weft_read_req none = {
		.sink_stag = WEFT_STAG_NONE,
		.src_stag = WEFT_STAG_NONE,
	};

	list_as_out(qp, true);
	qp->ack_reads_out++;
	qp->unacked = qp->unacked_len = 0;
	begin_read_req(qp, WEFT_TXK_ACK_READ, &none);
}

/* Not between the two messages of one work request. An RTR Read would take its room. */
static bool may_ask(const struct weft_qpc *qp)
{
	return qp->unacked && qp->ack_reads_out < qp->ack_reads_max && !qp->tx_second &&
	       !qp->rtr_read_out && !qp->peer_fin;
}

static bool ask_is_urgent(const struct weft_qpc *qp)
{
	return (qp->unacked_len >= ASK_OCTETS || qp->unacked >= qp->sq.max_wqes / ASK_PART) &&
	       may_ask(qp);
}

/* The entry before sq.next was sent. A Request's own Response tells of all before it. */
static void note_unacked(struct weft_qpc *qp, bool request, u32 len)
{
	qp->unacked = request ? 0 : qp->unacked + 1;
	qp->unacked_len = request ? 0 : qp->unacked_len + min_t(u32, len, ASK_OCTETS);
}

/* ---- choosing and cutting ---- */

static enum pick choose(struct weft_qpc *qp)
{
	enum pick p = PICK_NONE;

	if (qp->rtr_out && !qp->peer_fin) {
		begin_rtr(qp);
		return PICK_MSG;
	}
	if (unlikely(qp->unacked) && ask_is_urgent(qp)) {
		begin_ack_read(qp);
		return PICK_MSG;
	}
	if (!qp->tx_sq_turn || qp->peer_fin)
		p = pick_response(qp);
	if (p == PICK_NONE && !qp->peer_fin && (!qp->sq_held || qp->tx_second))
		p = pick_wqe(qp);
	if (p == PICK_NONE && qp->tx_sq_turn)
		p = pick_response(qp);
	if (p == PICK_NONE && unlikely(qp->unacked) && may_ask(qp)) {
		begin_ack_read(qp);
		p = PICK_MSG;
	}
	return p;
}

/* Nothing to send: is the connection to be closed from this side? */
static enum weft_tx_result rest(struct weft_qpc *qp)
{
	const struct weft_sqq *sq = &qp->sq;

	if (qp->peer_fin && qp->state != WEFT_QPS_ERROR) {
		weft_qpc_error(qp);
	} else if (qp->state == WEFT_QPS_CLOSING) {
		if (qp->orq_count || qp->rtr_read_out || sq->next != sq->pulled)
			return WEFT_TX_IDLE;
	} else if (qp->state != WEFT_QPS_ERROR) {
		return WEFT_TX_IDLE;
	}
	if (qp->fin_out)
		return WEFT_TX_IDLE;
	qp->fin_out = true;
	return WEFT_TX_FIN;
}

static bool tx_has_said_all(const struct weft_qpc *qp)
{
	return qp->state == WEFT_QPS_ERROR || qp->state == WEFT_QPS_TERM;
}

/*
 * RFC 5044 §7.1.2 (4) holds a responder's FPDUs until the initiator's first, but
 * not the FIN of one that has none to send: a close looks into the ring.
 */
static enum weft_tx_result rest_at_gate(struct weft_qpc *qp)
{
	if (qp->state == WEFT_QPS_CLOSING && qp->sq.next == qp->sq.pulled)
		sq_look(qp);
	/* A broken ring has ended it: the Terminate's run was asked for. */
	if (tx_has_said_all(qp))
		return WEFT_TX_IDLE;
	return rest(qp);
}

/*
 * Looks at the queue before a run ends that finds only work that sends nothing: it may be posted as
 * fast as it is done.
 */
#define LOCAL_LOOKS	64

/* Sets up the next message. WEFT_TX_FPDU: there is one. */
static enum weft_tx_result next_message(struct weft_qpc *qp)
{
	u32 n;

	for (n = 0; n < LOCAL_LOOKS; n++) {
		if (qp->state == WEFT_QPS_TERM && !qp->fin_out &&
		    weft_stream_may_terminate(qp->st)) {
			begin_terminate(qp);
			return WEFT_TX_FPDU;
		}
		if (tx_has_said_all(qp))
			return rest(qp);
		if (qp->fin_out || qp->state == WEFT_QPS_IDLE)
			return WEFT_TX_IDLE;
		if (!weft_stream_may_send(qp->st))
			return rest_at_gate(qp);
		switch (choose(qp)) {
		case PICK_MSG:
			return WEFT_TX_FPDU;
		case PICK_AGAIN:
			continue;
		case PICK_DEFER:
			weft_host_kick(qp);
			return WEFT_TX_IDLE;
		case PICK_NONE:
			/* A FIN, or a flush, only after the FPDUs handed out. */
			if (qp->tx_unsent && (qp->peer_fin || qp->state == WEFT_QPS_CLOSING)) {
				weft_host_kick(qp);
				return WEFT_TX_IDLE;
			}
			return rest(qp);
		}
	}
	weft_host_kick(qp);
	return WEFT_TX_IDLE;
}

/* The last FPDU of a work request's message was cut. Some are two messages. */
static void wqe_cut(struct weft_qpc *qp)
{
	u8 opcode = weft_sq_wqe_at(&qp->sq, qp->sq.next)->opcode;
	bool two = opcode == WEFT_WR_WRITE_IMM || opcode == WEFT_WR_SEND_IMM;
	bool request = qp->tx_msg.op == WEFT_OP_READ_REQ || qp->tx_msg.op == WEFT_OP_ATOMIC_REQ;

	qp->tx_sq_turn = false;
	qp->tx_second = two && !qp->tx_second;
	if (qp->tx_second)
		return;
	wqe_over(qp, request ? WEFT_WQE_AWAIT : WEFT_WQE_SENT, WEFT_WC_SUCCESS);
	if (unlikely(qp->ack_reads_max))
		note_unacked(qp, request, qp->tx_msg.len);
}

/* The message's last FPDU was cut. */
static void message_cut(struct weft_qpc *qp)
{
	switch (qp->tx_kind) {
	case WEFT_TXK_WQE:
		wqe_cut(qp);
		break;
	case WEFT_TXK_RESPONSE:
		qp->irq_head = (qp->irq_head + 1) % qp->irq_slots;
		qp->irq_count--;
		qp->tx_sq_turn = true;
		break;
	case WEFT_TXK_TERM:
		WRITE_ONCE(qp->state, WEFT_QPS_ERROR);
		break;
	case WEFT_TXK_RTR:
	case WEFT_TXK_ACK_READ:
	case WEFT_TXK_NONE:
		break;
	}
	qp->tx_kind = WEFT_TXK_NONE;
}

static u32 ulpdu_left(const struct weft_tx_msg *m)
{
	bool tagged = m->op == WEFT_OP_WRITE || m->op == WEFT_OP_READ_RESP;
	u32 head = (tagged ? WEFT_DDP_TAGGED_LEN : WEFT_DDP_UNTAGGED_LEN) + m->ulp_len;

	return m->len - m->done > WEFT_MPA_ULPDU_MAX ? ~0u : head + m->len - m->done;
}

/* Where a cut began, to go back to. */
struct cut_mark {
	u32 done;
	bool started;
	u32 sge, sge_off;
};

static void take_back(struct weft_qpc *qp, const struct cut_mark *m)
{
	qp->tx_msg.done = m->done;
	qp->tx_msg.started = m->started;
	qp->sge = m->sge;
	qp->sge_off = m->sge_off;
}

/*
 * Cuts an FPDU off the message and finds its payload. PICK_DEFER: refused, but
 * FPDUs handed out before it must be copied first. PICK_AGAIN: refused, and the
 * connection is ending for it.
 */
static enum pick cut(struct weft_qpc *qp, u32 max_ulpdu, struct weft_txd *d)
{
	const struct cut_mark mark = {
		qp->tx_msg.done, qp->tx_msg.started, qp->sge, qp->sge_off,
	};
	enum weft_denial denial = WEFT_GRANTED;

	d->npieces = 0;
	weft_stream_tx(&qp->tx_msg, max_t(u32, max_ulpdu, WEFT_MPA_ULPDU_MIN_MULPDU), &d->f);
	if (qp->tx_kind == WEFT_TXK_RESPONSE)
		denial = gather_response(qp, d);
	else if (qp->tx_kind == WEFT_TXK_WQE)
		denial = gather_wqe(qp, d);
	if (denial == WEFT_GRANTED)
		return PICK_MSG;
	weft_tx_put(qp, d);
	take_back(qp, &mark);
	if (qp->tx_unsent)
		return PICK_DEFER;
	if (qp->tx_kind == WEFT_TXK_RESPONSE)
		fail_read(qp, weft_denial_rdmap(denial), mark.done);
	else
		wqe_fails(qp, WEFT_WC_LOC_PROT_ERR);
	return PICK_AGAIN;
}

enum weft_tx_result weft_tx_next(struct weft_qpc *qp, u32 max_ulpdu, bool whole,
				 struct weft_txd *d)
{
	enum weft_tx_result r;
	enum pick p;

	do {
		if (qp->tx_kind == WEFT_TXK_NONE) {
			r = next_message(qp);
			if (r != WEFT_TX_FPDU)
				return r;
		}
		if (whole && ulpdu_left(&qp->tx_msg) > max_ulpdu)
			return WEFT_TX_NO_FIT;
		p = cut(qp, max_ulpdu, d);
		if (p == PICK_DEFER) {
			weft_host_kick(qp);
			return WEFT_TX_IDLE;
		}
	} while (p == PICK_AGAIN);
	qp->tx_unsent = true;
	qp->tx_unsent_resp |= qp->tx_msg.op == WEFT_OP_READ_RESP;
	if (d->f.last)
		message_cut(qp);
	return WEFT_TX_FPDU;
}

bool weft_tx_rests(struct weft_qpc *qp)
{
	struct weft_sqq *sq = &qp->sq;

	if (sq->next != sq->pulled || weft_sq_is_behind(sq) || weft_sq_is_full(sq) ||
	    qp->tx_kind != WEFT_TXK_NONE || qp->state != WEFT_QPS_RTS || qp->irq_count ||
	    qp->unacked || qp->rtr_out || qp->peer_fin || qp->linger || qp->sq_held)
		return false;
	weft_ringq_sleep(&sq->q);
	return !weft_sq_is_behind(sq);
}

/* A full queue has room once work completes, and what is deferred waits for TCP. */
bool weft_tx_is_idle(const struct weft_qpc *qp)
{
	const struct weft_sqq *sq = &qp->sq;

	return sq->q.asleep && sq->next == sq->pulled && !weft_sq_is_full(sq) && !qp->irq_count &&
	       qp->state == WEFT_QPS_RTS;
}

void weft_tx_put(struct weft_qpc *qp, struct weft_txd *d)
{
	u32 i;

	for (i = 0; i < d->npieces; i++)
		if (d->piece[i].region)
			weft_region_put(qp, d->piece[i].region);
	d->npieces = 0;
}

void weft_tx_sent(struct weft_qpc *qp)
{
	struct weft_sqq *sq = &qp->sq;
	u32 pos = sq->sent;

	qp->tx_unsent = qp->tx_unsent_resp = false;
	if (unlikely(qp->ack_reads_max)) {
		sq->sent = sq->next;
		return;
	}
	while (pos != sq->next) {
		struct weft_wqe_info *info = weft_sq_info_at(sq, pos);

		if (info->state == WEFT_WQE_SENT)
			info->state = WEFT_WQE_DONE;
		pos += info->nslots;
	}
	sq->sent = pos;
	weft_sq_reap(qp);
}
