// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * QPs that confirm (struct weft_qpc.confirms): a send completes once the peer has taken it in,
 * which acknowledgement Reads ("asks" here) find out.
 */
#include "world.h"

#define DEPTH 8				/* of either side, asks included */

typedef void (*asks_case)(struct world *w);

static void config(struct peer_cfg *c)
{
	peer_cfg_init(c);
	c->dut_initiates = true;
	c->ird = c->ord = DEPTH;
	c->side.link.mpa.ird = c->side.link.mpa.ord = DEPTH;
	c->side.link.ext = true;
	c->side.qp.confirms = true;
	/* Many work requests, a fourth of which is more than 20. */
	c->side.qp.max_slots = 2;
}

/* Each case with each way of cutting. */
static void run(void **state)
{
	asks_case fn = (asks_case)*state;
	enum wire_cut cut;
	struct peer_cfg c;
	struct world w;

	for (cut = WIRE_WHOLE; cut <= WIRE_BYTES; cut++) {
		config(&c);
		world_init(&w, &c, cut);
		fn(&w);
		world_fini(&w);
	}
}

#define CASE_ASKS(fn) { #fn, run, NULL, NULL, (void *)(fn) }

/* ---- what a case sends and expects ---- */

static void post_write(struct world *w, u64 id, u8 flags, u32 len)
{
	side_write(&w->p->s, id, flags, w->rw, 0, len, w->rw, 0);
}

static void post_send(struct world *w, u64 id, u8 flags)
{
	side_send(&w->p->s, id, flags, w->rw, 0, 8);
}

/* The stack asks, by a Read of no octets. */
static void expect_ask(struct world *w, u32 msn)
{
	const struct pdu *d = peer_expect(w->p, P_L, P_READ_REQ);

	assert_int_equal(d->msn, msn);
	assert_int_equal(weft_get32(d->body + 12), 0);
}

static struct pdu *no_octets(void)
{
	return p_tagged(P_READ_RESP, true, WEFT_STAG_NONE, 0, NULL, 0);
}

static void answer(struct world *w)
{
	peer_say(w->p, no_octets());
}

static u32 calls(struct world *w)
{
	return w->p->s.out.calls;
}

/* ---- one ask ---- */

/* The ask costs no extra call of TCP. */
static void a_send_is_done_once_the_peer_says_so(struct world *w)
{
	u32 before = calls(w);

	post_send(w, 1, SIG);
	peer_run(w->p);
	assert_int_equal(calls(w), before + 1);
	peer_expect(w->p, P_L, P_SEND);
	expect_ask(w, 1);
	peer_expect_silence(w->p);
	expect_no_cqe(w->p->s.scq);
	answer(w);
	expect_cqe(w->p->s.scq, 1, WEFT_WC_SUCCESS);
	peer_expect_silence(w->p);
}

static void a_write_with_immediate_is_asked_about_once(struct world *w)
{
	struct host_wr wr = {
		.wr_id = 1, .opcode = WEFT_WR_WRITE_IMM, .flags = SIG, .num_sge = 1,
		.sge = { host_sge(w->rw, 0, 8) }, .rkey = 5, .imm = 7,
	};

	side_post(&w->p->s, &wr);
	peer_run(w->p);
	peer_expect(w->p, P_T | P_L, P_WRITE);
	peer_expect(w->p, P_L, P_IMM);
	expect_ask(w, 1);
	expect_no_cqe(w->p->s.scq);
	answer(w);
	expect_cqe(w->p->s.scq, 1, WEFT_WC_SUCCESS);
}

/* The slots of unsignalled work are freed by the same answer. */
static void one_ask_is_about_all_before_it(struct world *w)
{
	struct weft_sqq *sq = &w->p->s.qp->core.sq;
	u32 i;

	for (i = 0; i < 20; i++)
		post_write(w, i, 0, 8);
	post_write(w, 20, SIG, 8);
	peer_run(w->p);
	for (i = 0; i < 21; i++)
		peer_expect(w->p, P_T | P_L, P_WRITE);
	expect_ask(w, 1);
	peer_expect_silence(w->p);
	assert_int_equal(sq->held, 21);
	answer(w);
	expect_cqe(w->p->s.scq, 20, WEFT_WC_SUCCESS);
	expect_no_cqe(w->p->s.scq);
	assert_int_equal(sq->held, 0);
	assert_int_equal(sq->q.idx, sq->next);
}

/* One ask per round trip, however much is sent meanwhile. */
static void few_asks_are_out_at_a_time(struct world *w)
{
	u32 i;

	/* The first FPDU of a connection makes the send side run by itself. */
	peer_expect_alive(w->p, 1, w->ronly);
	for (i = 0; i < 10; i++) {
		post_write(w, i, SIG, 8);
		peer_run(w->p);
		peer_expect(w->p, P_T | P_L, P_WRITE);
		if (i < WEFT_ACK_READS)
			expect_ask(w, i + 1);
		peer_expect_silence(w->p);
	}
	for (i = 0; i < WEFT_ACK_READS; i++) {
		answer(w);
		expect_cqe(w->p->s.scq, i, WEFT_WC_SUCCESS);
		expect_no_cqe(w->p->s.scq);
		if (!i)
			expect_ask(w, WEFT_ACK_READS + 1);
		peer_expect_silence(w->p);
	}
	answer(w);
	for (; i < 10; i++)
		expect_cqe(w->p->s.scq, i, WEFT_WC_SUCCESS);
	peer_expect_silence(w->p);
}

/* The first ask goes out in the first quarter, so that a full queue waits for one under way. */
static void a_long_queue_is_asked_about_amid(struct world *w)
{
	u32 slots = w->p->s.qp->core.sq.q.slots, i, asks = 0, wqes = 0;
	struct pdu d;

	for (i = 0; i < slots / 2; i++)
		post_write(w, i, SIG, 8);
	peer_run(w->p);
	while (peer_next(w->p, &d)) {
		asks += d.rdmap == (P_READ_REQ | P_RV);
		wqes += !asks;
	}
	assert_int_equal(asks, WEFT_ACK_READS);
	assert_true(wqes <= w->p->s.qp->core.sq.max_wqes / 4);
}

/* ---- program Reads as asks ---- */

static void a_read_asks_by_itself(struct world *w)
{
	post_send(w, 1, SIG);
	side_read(&w->p->s, 2, SIG, w->wonly, 0, 8, w->ronly, 0);
	peer_run(w->p);
	peer_expect(w->p, P_L, P_SEND);
	peer_expect(w->p, P_L, P_READ_REQ);
	peer_expect_silence(w->p);
	expect_no_cqe(w->p->s.scq);
	peer_say(w->p, p_tagged(P_READ_RESP, true, w->wonly->r.stag, WORLD_BASE, "12345678", 8));
	expect_cqe(w->p->s.scq, 1, WEFT_WC_SUCCESS);
	expect_cqe(w->p->s.scq, 2, WEFT_WC_SUCCESS);
	peer_expect_silence(w->p);
}

/* The program may have as many Reads outstanding as it is allowed. */
static void asks_take_no_place_of_reads(struct world *w)
{
	u32 i;

	assert_int_equal(w->p->s.qp->core.ord, DEPTH - WEFT_ACK_READS);
	post_send(w, 100, SIG);
	peer_run(w->p);
	peer_expect(w->p, P_L, P_SEND);
	expect_ask(w, 1);
	for (i = 0; i < DEPTH; i++)
		side_read(&w->p->s, i, SIG, w->wonly, 0, 8, w->ronly, 0);
	peer_run(w->p);
	for (i = 0; i < DEPTH - WEFT_ACK_READS; i++)
		peer_expect(w->p, P_L, P_READ_REQ);
	peer_expect_silence(w->p);
	/* A Read that waits for its turn is behind a Send that does not. */
	answer(w);
	expect_cqe(w->p->s.scq, 100, WEFT_WC_SUCCESS);
	peer_expect_silence(w->p);
	peer_say(w->p, p_tagged(P_READ_RESP, true, w->wonly->r.stag, WORLD_BASE, "12345678", 8));
	expect_cqe(w->p->s.scq, 0, WEFT_WC_SUCCESS);
	peer_expect(w->p, P_L, P_READ_REQ);
	peer_expect_silence(w->p);
}

/* A fence applies to the program's Reads and atomics. */
static void a_fence_does_not_wait_for_an_ask(struct world *w)
{
	post_send(w, 1, SIG);
	peer_run(w->p);
	post_send(w, 2, SIG | WEFT_WR_FENCE);
	peer_run(w->p);
	peer_expect(w->p, P_L, P_SEND);
	expect_ask(w, 1);
	peer_expect(w->p, P_L, P_SEND);
	expect_ask(w, 2);
}

/* ---- a send queue that is held ---- */

static void it_is_drained_once_the_peer_has_all(struct world *w)
{
	struct weft_qpc *qp = &w->p->s.qp->core;

	post_send(w, 1, 0);
	peer_run(w->p);
	weft_qpc_hold(qp, true);
	assert_false(weft_qpc_is_drained(qp));
	answer(w);
	assert_true(weft_qpc_is_drained(qp));
}

static void what_was_sent_is_asked_about_while_it_is_held(struct world *w)
{
	struct weft_qpc *qp = &w->p->s.qp->core;
	u32 i;

	for (i = 0; i <= WEFT_ACK_READS; i++) {
		post_send(w, i, SIG);
		peer_run(w->p);
		peer_expect(w->p, P_L, P_SEND);
		if (i < WEFT_ACK_READS)
			expect_ask(w, i + 1);
	}
	weft_qpc_hold(qp, true);
	answer(w);
	expect_ask(w, WEFT_ACK_READS + 1);
}

/* ---- what goes wrong ---- */

/* The oldest unconfirmed request fails, even if it is unsignalled, and all after it are flushed. */
static void what_is_not_confirmed_fails_with_the_connection(struct world *w)
{
	struct weft_qpc *qp = &w->p->s.qp->core;

	post_write(w, 1, SIG, 8);
	peer_run(w->p);
	answer(w);
	expect_cqe(w->p->s.scq, 1, WEFT_WC_SUCCESS);
	post_write(w, 2, 0, 8);
	post_write(w, 3, SIG, 8);
	peer_run(w->p);
	host_link_reset(&w->p->s.link);
	peer_run(w->p);
	assert_int_equal(qp->state, WEFT_QPS_IDLE);
	assert_true(weft_qpc_has_sends(qp));
	expect_no_cqe(w->p->s.scq);
	weft_qpc_give_up(qp, WEFT_WC_RETRY_EXC_ERR);
	expect_cqe(w->p->s.scq, 2, WEFT_WC_RETRY_EXC_ERR);
	expect_cqe(w->p->s.scq, 3, WEFT_WC_FLUSH_ERR);
}

static void what_is_not_confirmed_is_flushed(struct world *w)
{
	post_write(w, 1, SIG, 8);
	post_write(w, 2, SIG, 8);
	peer_run(w->p);
	weft_qpc_error(&w->p->s.qp->core);
	expect_cqe(w->p->s.scq, 1, WEFT_WC_FLUSH_ERR);
	expect_cqe(w->p->s.scq, 2, WEFT_WC_FLUSH_ERR);
}

/* RFC 5040 Fig. 10, with length and DDP header (M, D) of the offending message. */
static void say_terminate(struct world *w, u8 layer, u8 etype, u8 code, const struct pdu *about)
{
	u8 body[4 + 2 + 18] = { (u8)(layer << 4 | etype), code }, *p = body + 4;
	struct pdu *d;

	if (about) {
		body[2] = 0xC0;
		*p++ = 0;
		*p++ = about->ddp & P_T ? 14 : 18;
		*p++ = about->ddp;
		*p++ = about->rdmap;
		p = weft_put32(p, about->ddp & P_T ? about->stag : about->inv);
	}
	if (about && about->ddp & P_T)
		p = weft_put64(p, about->to);
	else if (about)
		p = weft_put32(weft_put32(weft_put32(p, about->qn), about->msn), about->mo);
	d = p_send(P_TERM, true, 1, 0, body, (u32)(p - body));
	d->qn = 2;
	peer_say(w->p, d);
}

/* Earlier work succeeds, later work is flushed. */
static void a_write_that_the_peer_refuses_fails(struct world *w)
{
	struct pdu d;

	post_write(w, 1, SIG, 8);
	side_write(&w->p->s, 2, SIG, w->rw, 0, 8, w->ronly, 16);
	post_write(w, 3, SIG, 8);
	peer_run(w->p);
	peer_expect(w->p, P_T | P_L, P_WRITE);
	d = *peer_expect(w->p, P_T | P_L, P_WRITE);
	say_terminate(w, 0, 1, 2, &d);
	expect_cqe(w->p->s.scq, 1, WEFT_WC_SUCCESS);
	expect_cqe(w->p->s.scq, 2, WEFT_WC_REM_ACCESS_ERR);
	expect_cqe(w->p->s.scq, 3, WEFT_WC_FLUSH_ERR);
	expect_no_cqe(w->p->s.scq);
}

/* Longer than a segment; and it fails by DDP's code as well as by RDMAP's. */
static void so_does_one_by_its_last_segment(struct world *w)
{
	struct pdu d;

	post_write(w, 1, SIG, 3000);
	peer_run(w->p);
	while (peer_next(w->p, &d) && !(d.ddp & P_L))
		;
	assert_true(d.ddp & P_T && d.to > w->rw->r.base);
	say_terminate(w, 1, 1, 1, &d);
	expect_cqe(w->p->s.scq, 1, WEFT_WC_REM_ACCESS_ERR);
}

static void send_fails(struct world *w, u8 layer, u8 code, u8 status)
{
	struct pdu d;

	post_send(w, 1, 0);
	post_send(w, 2, SIG);
	post_send(w, 3, 0);
	peer_run(w->p);
	peer_expect(w->p, P_L, P_SEND);
	d = *peer_expect(w->p, P_L, P_SEND);
	say_terminate(w, layer, 2, code, &d);
	expect_cqe(w->p->s.scq, 2, status);
	expect_cqe(w->p->s.scq, 3, WEFT_WC_FLUSH_ERR);
	expect_no_cqe(w->p->s.scq);
}

static void a_send_without_a_receive_fails(struct world *w)
{
	send_fails(w, 1, 0x02, WEFT_WC_RNR_RETRY_EXC_ERR);
}

static void a_send_that_is_too_long_fails(struct world *w)
{
	send_fails(w, 1, 0x05, WEFT_WC_REM_INV_REQ_ERR);
}

/* The peer has no right to its own receive, or has unmapped it. */
static void a_send_whose_receive_cannot_be_filled_fails(struct world *w)
{
	send_fails(w, 0, 0x07, WEFT_WC_REM_OP_ERR);
}

/* RFC 7306 has no code for misalignment; and a peer may reject the region first. */
static void atomic_fails(struct world *w, u64 off, u8 etype, u8 code, u8 status)
{
	struct host_wr wr = {
		.wr_id = 1, .opcode = WEFT_WR_FETCH_ADD, .flags = SIG, .num_sge = 1,
		.rkey = 5, .remote_addr = 0x1000 + off,
		.sge = { { .addr = w->rw->r.base, .length = 8, .lkey = w->rw->r.stag } },
	};
	struct pdu d;

	side_post(&w->p->s, &wr);
	peer_run(w->p);
	d = *peer_expect(w->p, P_L, P_ATOMIC_REQ);
	say_terminate(w, 0, etype, code, &d);
	expect_cqe(w->p->s.scq, 1, status);
}

static void an_atomic_that_is_not_aligned_is_an_invalid_request(struct world *w)
{
	atomic_fails(w, 4, 2, 0x07, WEFT_WC_REM_INV_REQ_ERR);
}

static void so_it_is_if_the_peer_sees_the_region_first(struct world *w)
{
	atomic_fails(w, 1, 1, 0x00, WEFT_WC_REM_INV_REQ_ERR);
}

static void an_atomic_that_is_aligned_is_a_valid_one(struct world *w)
{
	atomic_fails(w, 8, 2, 0x07, WEFT_WC_REM_OP_ERR);
}

/*
 * The peer's own fault, reported without a header: it stopped at the first request that it did not
 * take.
 */
static void trouble_of_the_peers_fails_the_oldest(struct world *w)
{
	post_send(w, 1, SIG);
	post_send(w, 2, SIG);
	peer_run(w->p);
	say_terminate(w, 0, 0, 0, NULL);
	expect_cqe(w->p->s.scq, 1, WEFT_WC_REM_OP_ERR);
	expect_cqe(w->p->s.scq, 2, WEFT_WC_FLUSH_ERR);
}

/* This includes a Read that the peer has not answered. */
static void trouble_of_the_peers_fails_a_read(struct world *w)
{
	side_read(&w->p->s, 1, SIG, w->rw, 0, 8, w->ronly, 0);
	post_send(w, 2, SIG);
	peer_run(w->p);
	say_terminate(w, 0, 0, 0, NULL);
	expect_cqe(w->p->s.scq, 1, WEFT_WC_REM_OP_ERR);
	expect_cqe(w->p->s.scq, 2, WEFT_WC_FLUSH_ERR);
}

/* A Terminate about an ask names no work request. */
static void a_refused_ask_fails_nothing_by_name(struct world *w)
{
	struct pdu d;

	post_send(w, 1, SIG);
	peer_run(w->p);
	peer_expect(w->p, P_L, P_SEND);
	d = *peer_expect(w->p, P_L, P_READ_REQ);
	say_terminate(w, 1, 2, 0x02, &d);
	expect_cqe(w->p->s.scq, 1, WEFT_WC_FLUSH_ERR);
}

/* ---- a peer that lies ---- */

static void an_unsolicited_response_is_refused(struct world *w)
{
	struct pdu *d = no_octets(), copy = *d;

	peer_say(w->p, d);
	peer_expect_terminate(w->p, 0, 2, 0x06, &copy, false);
}

static void an_answer_with_octets_is_refused(struct world *w)
{
	struct pdu *d = p_tagged(P_READ_RESP, true, w->rw->r.stag, WORLD_BASE, "lie", 3), copy = *d;

	post_send(w, 1, SIG);
	peer_run(w->p);
	peer_expect(w->p, P_L, P_SEND);
	expect_ask(w, 1);
	peer_say(w->p, d);
	peer_expect_terminate(w->p, 1, 1, 0x01, &copy, false);
	expect_cqe(w->p->s.scq, 1, WEFT_WC_FLUSH_ERR);
	world_expect_untouched(w, NULL);
}

static void an_atomic_answer_is_none(struct world *w)
{
	post_send(w, 1, SIG);
	peer_run(w->p);
	peer_say(w->p, p_atomic_resp(1, 1, 0));
	expect_cqe(w->p->s.scq, 1, WEFT_WC_FLUSH_ERR);
}

/* ---- the peer asks ---- */

static struct pdu *ask(u32 msn)
{
	return p_read_req(msn, WEFT_STAG_NONE, 0, 0, WEFT_STAG_NONE, 0);
}

static void an_ask_is_answered(struct world *w)
{
	struct host_qp *qp = w->p->s.qp;

	peer_add(w->p, p_send(P_SEND, true, 1, 0, "taken in", 8));
	peer_add(w->p, ask(1));
	peer_flush(w->p);
	expect_cqe(w->p->s.rcq, 0, WEFT_WC_SUCCESS);
	assert_int_equal(peer_expect(w->p, P_T | P_L, P_READ_RESP)->len, 0);
	assert_int_equal(qp->answers, 1);
	assert_int_equal(qp->core.asides, 1);
	/* A Read by the peer's program does not count as one. */
	peer_expect_alive(w->p, 2, w->ronly);
	assert_int_equal(qp->answers, 1);
	assert_int_equal(qp->core.asides, 1);
}

static void a_read_after_a_send_that_waits_waits(struct world *w)
{
	u32 i;

	w->p->s.qp->core.patient = true;
	w->p->s.link.core.cfg.rnr_ms = 1000;
	for (i = 0; i <= NRECV; i++)
		peer_add(w->p, p_send(P_SEND, true, i + 1, 0, "x", 1));
	peer_add(w->p, ask(1));
	peer_flush(w->p);
	assert_true(w->p->s.qp->core.rx_waits);
	peer_expect_silence(w->p);
	side_recv(&w->p->s, 9, w->inbox, 0, RECV_LEN);
	peer_run(w->p);
	assert_false(w->p->s.qp->core.rx_waits);
	peer_expect(w->p, P_T | P_L, P_READ_RESP);
}

/*
 * The QP is destroyed before anything was sent: the answer is still sent, as the peer needs it to
 * complete its Send.
 */
static void the_last_answer_comes_before_the_end(struct world *w)
{
	peer_add(w->p, p_send(P_SEND, true, 1, 0, "the last", 8));
	peer_add(w->p, ask(1));
	peer_deliver(w->p);
	expect_cqe(w->p->s.rcq, 0, WEFT_WC_SUCCESS);
	/* Work posted now is no longer sent. */
	post_send(w, 1, SIG);
	host_link_forget(&w->p->s.link);
	peer_run(w->p);
	peer_expect(w->p, P_T | P_L, P_READ_RESP);
	peer_expect_silence(w->p);
	assert_true(w->p->fin);
}

static bool is_ack_pending(struct world *w)
{
	return weft_qpc_is_ack_pending(&w->p->s.qp->core);
}

/* Until then the QP must be kept, so that the peer's ask is answered. */
static void what_was_said_is_ack_pending_until_the_peer_asks(struct world *w)
{
	assert_false(is_ack_pending(w));
	peer_say(w->p, p_tagged(P_WRITE, true, w->rw->r.stag, WORLD_BASE, "one", 3));
	assert_true(is_ack_pending(w));
	peer_say(w->p, ask(1));
	assert_false(is_ack_pending(w));
	peer_expect(w->p, P_T | P_L, P_READ_RESP);
	peer_say(w->p, p_send(P_SEND, true, 1, 0, "two", 3));
	assert_true(is_ack_pending(w));
	peer_say(w->p, p_read_req(2, 1, 0, 4, w->ronly->r.stag, WORLD_BASE));
	assert_false(is_ack_pending(w));
	/* An incomplete message does not count, nor does a waiting one. */
	peer_say(w->p, p_tagged(P_WRITE, false, w->rw->r.stag, WORLD_BASE, "thr", 3));
	assert_false(is_ack_pending(w));
	peer_say(w->p, p_send(P_SEND, false, 2, 0, "fou", 3));
	assert_false(is_ack_pending(w));
	peer_say(w->p, p_send(P_SEND, true, 2, 3, "r", 1));
	assert_true(is_ack_pending(w));
	peer_close(w->p);
	assert_false(is_ack_pending(w));
}

/* ---- room for asks ---- */

/* A peer with no room for Reads cannot be asked: TCP's acknowledgement has to do. */
static void where_there_is_no_room_tcp_is_believed(void **state)
{
	struct peer_cfg c;
	struct world w;

	config(&c);
	c.ird = 0;
	world_init(&w, &c, WIRE_WHOLE);
	post_send(&w, 1, SIG);
	peer_run(w.p);
	peer_expect(w.p, P_L, P_SEND);
	peer_expect_silence(w.p);
	expect_cqe(w.p->s.scq, 1, WEFT_WC_SUCCESS);
	world_fini(&w);
}

static void a_qp_that_does_not_confirm_sends_no_reads(void **state)
{
	struct peer_cfg c;
	struct world w;

	config(&c);
	c.side.qp.confirms = false;
	world_init(&w, &c, WIRE_WHOLE);
	assert_int_equal(w.p->s.qp->core.ord, DEPTH);
	post_send(&w, 1, SIG);
	peer_run(w.p);
	expect_cqe(w.p->s.scq, 1, WEFT_WC_SUCCESS);
	peer_expect(w.p, P_L, P_SEND);
	peer_say(w.p, ask(1));
	peer_expect(w.p, P_T | P_L, P_READ_RESP);
	assert_int_equal(w.p->s.qp->answers, 0);
	world_fini(&w);
}

/* ---- two ends ---- */

#define PLACES 256
#define PLACE 700

static void fill(struct host_mr *mr, u32 place, u8 with)
{
	memset(mr->mem + place * PLACE, with, PLACE);
}

static bool has(const struct host_mr *mr, u32 place, u8 what)
{
	u32 i;

	for (i = 0; i < PLACE; i++)
		if (mr->mem[place * PLACE + i] != what)
			return false;
	return true;
}

/*
 * Whatever TCP does with the octets: a completed Write is in the peer's memory. In both
 * directions, with a send buffer of a few segments, and one Write in four signalled.
 */
static void a_write_that_is_done_is_there(void **state)
{
	struct host_mr *from[2], *to[2];
	u32 posted[2] = { 0 }, done[2] = { 0 }, i;
	struct pair_cfg c;
	struct weft_cqe e;
	struct pair p;
	u64 seed;

	for (seed = 1; seed <= 8; seed++) {
		pair_cfg_init(&c);
		c.seed = seed;
		for (i = 0; i < 2; i++) {
			c.s[i].qp.confirms = true;
			c.s[i].qp.sq_slots = 32;
			c.s[i].sndbuf = 4000;
		}
		pair_init(&p, &c);
		for (i = 0; i < 2; i++) {
			posted[i] = done[i] = 0;
			from[i] = host_mr_new(&p.s[i].host, PD, BASE, PLACES * PLACE, RW);
			to[i] = host_mr_new(&p.s[i].host, PD, BASE, PLACES * PLACE, RW);
			memset(to[i]->mem, 0, PLACES * PLACE);
		}
		pair_run(&p);
		while (done[0] < PLACES || done[1] < PLACES) {
			for (i = 0; i < 2; i++) {
				u32 n = posted[i];

				if (n < PLACES && n - done[i] < 16) {
					fill(from[i], n, (u8)(n + 1));
					side_write(&p.s[i], n, n % 4 == 3 ? SIG : 0, from[i], n * PLACE,
						   PLACE, to[!i], n * PLACE);
					posted[i]++;
				}
				while (host_cq_poll(p.s[i].scq, &e)) {
					assert_int_equal(e.status, WEFT_WC_SUCCESS);
					assert_int_equal(e.wr_id, done[i] + 3);
					for (; done[i] <= e.wr_id; done[i]++)
						assert_true(has(to[!i], done[i], (u8)(done[i] + 1)));
				}
			}
			pair_step(&p);
		}
		pair_run(&p);
		assert_int_equal(p.s[0].qp->core.orq_count + p.s[1].qp->core.orq_count, 0);
		pair_fini(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE_ASKS(a_send_is_done_once_the_peer_says_so),
		CASE_ASKS(a_write_with_immediate_is_asked_about_once),
		CASE_ASKS(one_ask_is_about_all_before_it),
		CASE_ASKS(few_asks_are_out_at_a_time),
		CASE_ASKS(a_long_queue_is_asked_about_amid),
		CASE_ASKS(a_read_asks_by_itself),
		CASE_ASKS(asks_take_no_place_of_reads),
		CASE_ASKS(a_fence_does_not_wait_for_an_ask),
		CASE_ASKS(it_is_drained_once_the_peer_has_all),
		CASE_ASKS(what_was_sent_is_asked_about_while_it_is_held),
		CASE_ASKS(what_is_not_confirmed_fails_with_the_connection),
		CASE_ASKS(what_is_not_confirmed_is_flushed),
		CASE_ASKS(a_write_that_the_peer_refuses_fails),
		CASE_ASKS(so_does_one_by_its_last_segment),
		CASE_ASKS(a_send_without_a_receive_fails),
		CASE_ASKS(a_send_that_is_too_long_fails),
		CASE_ASKS(a_send_whose_receive_cannot_be_filled_fails),
		CASE_ASKS(an_atomic_that_is_not_aligned_is_an_invalid_request),
		CASE_ASKS(so_it_is_if_the_peer_sees_the_region_first),
		CASE_ASKS(an_atomic_that_is_aligned_is_a_valid_one),
		CASE_ASKS(trouble_of_the_peers_fails_the_oldest),
		CASE_ASKS(trouble_of_the_peers_fails_a_read),
		CASE_ASKS(a_refused_ask_fails_nothing_by_name),
		CASE_ASKS(an_unsolicited_response_is_refused),
		CASE_ASKS(an_answer_with_octets_is_refused),
		CASE_ASKS(an_atomic_answer_is_none),
		CASE_ASKS(an_ask_is_answered),
		CASE_ASKS(a_read_after_a_send_that_waits_waits),
		CASE_ASKS(the_last_answer_comes_before_the_end),
		CASE_ASKS(what_was_said_is_ack_pending_until_the_peer_asks),
		cmocka_unit_test(where_there_is_no_room_tcp_is_believed),
		cmocka_unit_test(a_qp_that_does_not_confirm_sends_no_reads),
		cmocka_unit_test(a_write_that_is_done_is_there),
	};

	return RUN_TESTS("stacks: asks", tests);
}
