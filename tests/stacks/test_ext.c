// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * RFC 7306: Immediate Data and atomics, as one stack sends them, and as it receives them from a
 * peer that may be wrong.
 */
#include "world.h"
#include "../../kernel/core/atomic.h"

#define REMOTE 0xABCD1234u
#define REMOTE_TO 0x1122334455667788ull
#define ALL (~0ull)
#define ADD 0u
#define CAS 2u

static u64 word_of(const struct host_mr *mr, u32 off)
{
	u64 word;

	memcpy(&word, mr->mem + off, sizeof(word));
	return word;
}

static void set_word(struct host_mr *mr, u32 off, u64 word)
{
	memcpy(mr->mem + off, &word, sizeof(word));
}

/* Memory for the peer's atomics. A TO implies no address: the first TO here is odd. */
static struct host_mr *counters(struct world *w, u32 pd, u32 access)
{
	struct host_mr *mr = host_mr_new(&w->p->s.host, pd, WORLD_BASE + 1, 64, access);

	assert_non_null(mr);
	return mr;
}

static struct host_mr *good_counters(struct world *w)
{
	return counters(w, PD, WEFT_ACCESS_LOCAL_WRITE | WEFT_ACCESS_REMOTE_ATOMIC);
}

/* ---- immediate data, sent ---- */

static void expect_imm(struct world *w, u8 op, u32 msn, u64 imm)
{
	const struct pdu *d = peer_expect(w->p, P_L, op);
	struct pdu *want = p_imm(op, msn, imm);

	assert_int_equal(d->qn, 0);
	assert_int_equal(d->msn, msn);
	assert_int_equal(d->mo, 0);
	assert_int_equal(d->inv, 0);
	assert_int_equal(d->len, 8);
	assert_memory_equal(d->body, want->body, 8);
	free(want);
}

static struct host_wr imm_wr(struct world *w, u8 opcode, u32 len)
{
	return (struct host_wr){
		.wr_id = 5, .opcode = opcode, .flags = SIG, .imm = 0x01020304,
		.rkey = REMOTE, .remote_addr = REMOTE_TO,
		.num_sge = 1, .sge = { host_sge(w->rw, 0, len) },
	};
}

static void a_write_with_immediate_is_a_write_then_immediate_data(struct world *w)	/* EXT-01 */
{
	struct host_wr wr = imm_wr(w, WEFT_WR_WRITE_IMM, 5);
	struct weft_cqe e;

	side_post(&w->p->s, &wr);
	peer_run(w->p);
	assert_int_equal(peer_expect(w->p, P_T | P_L, P_WRITE)->len, 5);
	expect_imm(w, P_IMM, 1, 0x01020304);
	peer_expect_silence(w->p);
	e = expect_cqe(w->p->s.scq, 5, WEFT_WC_SUCCESS);
	assert_int_equal(e.opcode, WEFT_WCO_WRITE);
	assert_int_equal(e.byte_len, 5);
	expect_no_cqe(w->p->s.scq);
}

static void a_solicited_write_with_immediate_solicits_by_its_immediate(struct world *w)
{
	struct host_wr wr = imm_wr(w, WEFT_WR_WRITE_IMM, 0);

	wr.flags |= WEFT_WR_SOLICITED;
	side_post(&w->p->s, &wr);
	peer_run(w->p);
	peer_expect(w->p, P_T | P_L, P_WRITE);
	expect_imm(w, P_IMM_SE, 1, 0x01020304);
}

static void all_eight_octets_of_an_immediate_go_out(struct world *w)
{
	struct host_wr wr = imm_wr(w, WEFT_WR_WRITE_IMM, 0);

	wr.imm = 0x0102030405060708;
	side_post(&w->p->s, &wr);
	peer_run(w->p);
	peer_expect(w->p, P_T | P_L, P_WRITE);
	expect_imm(w, P_IMM, 1, 0x0102030405060708);
}

static void a_send_with_immediate_is_announced_by_its_immediate(struct world *w)
{
	struct host_wr wr = imm_wr(w, WEFT_WR_SEND_IMM, 5);
	const struct pdu *d;

	wr.flags |= WEFT_WR_SOLICITED;
	side_post(&w->p->s, &wr);
	side_send(&w->p->s, 6, SIG, w->rw, 0, 3);
	peer_run(w->p);
	expect_imm(w, P_IMM, 1, (u64)WEFT_IMM_OF_SEND << 32 | 0x01020304);
	d = peer_expect(w->p, P_L, P_SEND_SE);
	assert_int_equal(d->msn, 2);
	assert_int_equal(d->len, 5);
	assert_int_equal(peer_expect(w->p, P_L, P_SEND)->msn, 3);
	assert_int_equal(expect_cqe(w->p->s.scq, 5, WEFT_WC_SUCCESS).opcode, WEFT_WCO_SEND);
	expect_cqe(w->p->s.scq, 6, WEFT_WC_SUCCESS);
}

static void a_bad_write_with_immediate_says_neither(struct world *w)
{
	struct host_wr wr = imm_wr(w, WEFT_WR_WRITE_IMM, 5);

	wr.sge[0].lkey ^= 1;
	side_post(&w->p->s, &wr);
	peer_run(w->p);
	expect_cqe(w->p->s.scq, 5, WEFT_WC_LOC_PROT_ERR);
	peer_expect_terminate(w->p, 0, 0, 0, NULL, false);
}

/* A graceful close lets both messages be sent, then only FIN. */
static void a_close_waits_for_the_second_message(struct world *w)
{
	struct host_wr wr = imm_wr(w, WEFT_WR_WRITE_IMM, 5);

	side_post(&w->p->s, &wr);
	weft_qpc_close(&w->p->s.qp->core);
	peer_run(w->p);
	peer_expect(w->p, P_T | P_L, P_WRITE);
	expect_imm(w, P_IMM, 1, 0x01020304);
	assert_true(w->p->fin);
}

/* ---- immediate data, received ---- */

static struct weft_cqe expect_imm_cqe(struct world *w, u64 wr_id, u8 opcode, u64 imm, u32 len)
{
	struct weft_cqe e = expect_cqe(w->p->s.rcq, wr_id, WEFT_WC_SUCCESS);

	assert_int_equal(e.opcode, opcode);
	assert_true(e.flags & WEFT_CQE_IMM);
	assert_int_equal(e.imm, imm);
	assert_int_equal(e.byte_len, len);
	return e;
}

static void immediate_data_tells_the_length_of_the_write_before_it(struct world *w)	/* EXT-05 */
{
	peer_add(w->p, p_tagged(P_WRITE, true, w->rw->r.stag, WORLD_BASE, "earlier", 7));
	peer_add(w->p, p_tagged(P_WRITE, false, w->rw->r.stag, WORLD_BASE, "wri", 3));
	peer_add(w->p, p_read_req(1, 9, 0, 4, w->ronly->r.stag, WORLD_BASE));
	peer_add(w->p, p_tagged(P_WRITE, true, w->rw->r.stag, WORLD_BASE + 3, "te", 2));
	peer_add(w->p, p_imm(P_IMM, 1, 0x0102030405060708));
	peer_flush(w->p);
	expect_imm_cqe(w, 0, WEFT_WCO_RECV_IMM, 0x0102030405060708, 5);
	assert_memory_equal(w->rw->mem, "writeer", 7);
	world_expect_untouched(w, w->rw);
}

static void immediate_data_without_a_write_has_no_length(struct world *w)	/* EXT-01, EXT-02 */
{
	peer_add(w->p, p_tagged(P_WRITE, true, w->rw->r.stag, WORLD_BASE, "earlier", 7));
	peer_add(w->p, p_send(P_SEND, true, 1, 0, "send", 4));
	peer_add(w->p, p_imm(P_IMM, 2, 77));
	peer_add(w->p, p_imm(P_IMM_SE, 3, 78));
	peer_add(w->p, p_send(P_SEND, true, 4, 0, "send", 4));
	peer_flush(w->p);
	assert_int_equal(expect_cqe(w->p->s.rcq, 0, WEFT_WC_SUCCESS).flags, 0);
	assert_int_equal(expect_imm_cqe(w, 1, WEFT_WCO_RECV_IMM, 77, 0).flags, WEFT_CQE_IMM);
	assert_int_equal(expect_imm_cqe(w, 2, WEFT_WCO_RECV_IMM, 78, 0).flags,
			 WEFT_CQE_IMM | WEFT_CQE_SOLICITED);
	expect_cqe(w->p->s.rcq, 3, WEFT_WC_SUCCESS);
}

/* It takes a receive, as a Send does: so it waits for one, and keeps its Write's length. */
static void immediate_data_waits_for_a_receive(void **state)
{
	struct peer_cfg c;
	struct world w;
	u32 i;

	peer_cfg_init(&c);
	c.side.link.ext = true;
	c.side.link.rnr_ms = 1000;
	world_init(&w, &c, WIRE_BYTES);
	for (i = 0; i < NRECV; i++) {
		peer_say(w.p, p_send(P_SEND, true, i + 1, 0, NULL, 0));
		expect_cqe(w.p->s.rcq, i, WEFT_WC_SUCCESS);
	}
	peer_add(w.p, p_tagged(P_WRITE, true, w.rw->r.stag, WORLD_BASE, "write", 5));
	peer_say(w.p, p_imm(P_IMM, NRECV + 1, 77));
	expect_no_cqe(w.p->s.rcq);
	side_recv(&w.p->s, 9, w.inbox, 0, 8);
	peer_run(w.p);
	expect_imm_cqe(&w, 9, WEFT_WCO_RECV_IMM, 77, 5);
	world_fini(&w);
}

static void an_empty_write_before_immediate_data_has_length_0(struct world *w)
{
	peer_add(w->p, p_tagged(P_WRITE, true, w->rw->r.stag, WORLD_BASE, "earlier", 7));
	peer_add(w->p, p_tagged(P_WRITE, true, 0, 0, NULL, 0));
	peer_add(w->p, p_imm(P_IMM, 1, 77));
	peer_flush(w->p);
	expect_imm_cqe(w, 0, WEFT_WCO_RECV_IMM, 77, 0);
}

static void a_send_with_immediate_takes_one_receive(struct world *w)
{
	struct weft_cqe e;

	peer_add(w->p, p_imm(P_IMM, 1, (u64)WEFT_IMM_OF_SEND << 32 | 0xA0B0C0D0));
	peer_add(w->p, p_send(P_SEND_SE, false, 2, 0, "se", 2));
	peer_add(w->p, p_send(P_SEND_SE, true, 2, 2, "nd", 2));
	peer_add(w->p, p_send(P_SEND, true, 3, 0, "plain", 5));
	peer_flush(w->p);
	e = expect_imm_cqe(w, 0, WEFT_WCO_RECV, 0xA0B0C0D0, 4);
	assert_true(e.flags & WEFT_CQE_SOLICITED);
	assert_memory_equal(w->inbox->mem, "send", 4);
	assert_int_equal(expect_cqe(w->p->s.rcq, 1, WEFT_WC_SUCCESS).flags, 0);
	expect_no_cqe(w->p->s.rcq);
}

static void an_announced_send_has_to_follow(struct world *w)
{
	peer_say(w->p, p_imm(P_IMM, 1, (u64)WEFT_IMM_OF_SEND << 32));
	world_refuses(w, p_imm(P_IMM, 2, 1), 0, 2, 0x06);
}

static void immediate_data_within_a_send_is_refused(struct world *w)
{
	peer_say(w->p, p_send(P_SEND, false, 1, 0, "se", 2));
	world_refuses_after(w, p_imm(P_IMM, 1, 1), 0, 2, 0x06, 0, w->inbox);
}

static void immediate_data_without_receive_is_refused(struct world *w)		/* EXT-02 */
{
	u32 i;

	for (i = 0; i < NRECV; i++)
		peer_say(w->p, p_imm(P_IMM, i + 1, i));
	for (i = 0; i < NRECV; i++)
		expect_imm_cqe(w, i, WEFT_WCO_RECV_IMM, i, 0);
	world_refuses_after(w, p_imm(P_IMM, NRECV + 1, 1), 1, 2, 0x02, NRECV, NULL);
}

static void immediate_data_out_of_turn_is_refused(struct world *w)
{
	world_refuses(w, p_imm(P_IMM, 2, 1), 1, 2, 0x03);
}

static void announcing_data_out_of_turn_is_refused(struct world *w)
{
	world_refuses(w, p_imm(P_IMM, 2, (u64)WEFT_IMM_OF_SEND << 32), 1, 2, 0x03);
}

static void immediate_data_at_an_offset_is_refused(struct world *w)
{
	struct pdu *d = p_imm(P_IMM, 1, 1);

	d->mo = 8;
	world_refuses(w, d, 1, 2, 0x04);
}

static void refuses_imm_of(struct world *w, u32 len)
{
	struct pdu *d = p_imm(P_IMM, 1, 1);

	d->len = len;
	world_refuses(w, d, 0, 2, 0xFF);
}

static void immediate_data_of_7_octets_is_refused(struct world *w)		/* EXT-03 */
{
	refuses_imm_of(w, 7);
}

static void immediate_data_of_9_octets_is_refused(struct world *w)
{
	refuses_imm_of(w, 9);
}

static void immediate_data_in_segments_is_refused(struct world *w)
{
	struct pdu *d = p_imm(P_IMM, 1, 1);

	d->ddp &= ~P_L;
	world_refuses(w, d, 0, 2, 0xFF);
}

static void an_invalidate_stag_in_immediate_data_is_ignored(struct world *w)	/* EXT-04 */
{
	struct pdu *d = p_imm(P_IMM, 1, 1);

	d->inv = w->fast->r.stag;
	peer_say(w->p, d);
	expect_imm_cqe(w, 0, WEFT_WCO_RECV_IMM, 1, 0);
	assert_true(w->fast->r.valid);
}

/* ---- atomics, sent ---- */

static struct host_wr atomic_wr(struct world *w, u8 opcode)
{
	return (struct host_wr){
		.wr_id = 7, .opcode = opcode, .flags = SIG,
		.rkey = REMOTE, .remote_addr = REMOTE_TO,
		.atomic = { .compare = 0x11, .swap_add = 0x22, .compare_mask = 0x33,
			    .swap_add_mask = 0x44 },
		.masked = true,
		.num_sge = 1, .sge = { host_sge(w->wonly, 4, 8) },
	};
}

static void post_atomic(struct world *w, u8 opcode)
{
	struct host_wr wr = atomic_wr(w, opcode);

	side_post(&w->p->s, &wr);
	peer_run(w->p);
}

static void expect_atomic(struct world *w, struct pdu *want)
{
	const struct pdu *d = peer_expect(w->p, P_L, P_ATOMIC_REQ);

	assert_int_equal(d->qn, 1);
	assert_int_equal(d->msn, want->msn);
	assert_int_equal(d->mo, 0);
	assert_int_equal(d->inv, 0);
	assert_int_equal(d->len, 52);
	assert_memory_equal(d->body, want->body, 52);
	free(want);
}

static void an_atomic_request_says_what_was_posted(struct world *w)		/* EXT-06 */
{
	post_atomic(w, WEFT_WR_CMP_SWAP);
	expect_atomic(w, p_atomic(1, CAS, 1, REMOTE, REMOTE_TO, 0x22, 0x44, 0x11, 0x33));
	/* RFC 7306 §5.2.1: fields that an addition does not use. */
	post_atomic(w, WEFT_WR_FETCH_ADD);
	expect_atomic(w, p_atomic(2, ADD, 2, REMOTE, REMOTE_TO, 0x22, 0x44, 0, ALL));
	expect_no_cqe(w->p->s.scq);
}

static void an_atomic_of_one_slot_has_the_masks_of_the_plain_operation(struct world *w)
{
	struct host_wr wr = atomic_wr(w, WEFT_WR_CMP_SWAP);

	wr.masked = false;
	side_post(&w->p->s, &wr);
	wr.opcode = WEFT_WR_FETCH_ADD;
	side_post(&w->p->s, &wr);
	peer_run(w->p);
	expect_atomic(w, p_atomic(1, CAS, 1, REMOTE, REMOTE_TO, 0x22, ALL, 0x11, ALL));
	expect_atomic(w, p_atomic(2, ADD, 2, REMOTE, REMOTE_TO, 0x22, 0, 0, ALL));
}

static void an_atomic_response_brings_the_word_and_completes(struct world *w)	/* EXT-07 */
{
	struct weft_cqe e;

	post_atomic(w, WEFT_WR_CMP_SWAP);
	post_atomic(w, WEFT_WR_FETCH_ADD);
	peer_say(w->p, p_atomic_resp(1, 1, 0x0102030405060708));
	e = expect_cqe(w->p->s.scq, 7, WEFT_WC_SUCCESS);
	assert_int_equal(e.opcode, WEFT_WCO_CMP_SWAP);
	assert_int_equal(e.byte_len, 8);
	assert_int_equal(word_of(w->wonly, 4), 0x0102030405060708);
	assert_int_equal(w->wonly->mem[3], world_octet(3));
	assert_int_equal(w->wonly->mem[12], world_octet(12));
	expect_no_cqe(w->p->s.scq);
	peer_say(w->p, p_atomic_resp(2, 2, 9));
	assert_int_equal(expect_cqe(w->p->s.scq, 7, WEFT_WC_SUCCESS).opcode, WEFT_WCO_FETCH_ADD);
}

static void atomics_and_reads_share_numbers_and_order(struct world *w)
{
	side_read(&w->p->s, 1, SIG, w->wonly, 100, 4, w->rw, 0);
	post_atomic(w, WEFT_WR_FETCH_ADD);
	side_read(&w->p->s, 2, SIG, w->wonly, 200, 4, w->rw, 0);
	peer_run(w->p);
	assert_int_equal(peer_expect(w->p, P_L, P_READ_REQ)->msn, 1);
	assert_int_equal(peer_expect(w->p, P_L, P_ATOMIC_REQ)->msn, 2);
	assert_int_equal(peer_expect(w->p, P_L, P_READ_REQ)->msn, 3);
	peer_add(w->p, p_tagged(P_READ_RESP, true, w->wonly->r.stag, WORLD_BASE + 100, "abcd", 4));
	peer_add(w->p, p_atomic_resp(1, 2, 5));
	peer_add(w->p, p_tagged(P_READ_RESP, true, w->wonly->r.stag, WORLD_BASE + 200, "efgh", 4));
	peer_flush(w->p);
	expect_cqe(w->p->s.scq, 1, WEFT_WC_SUCCESS);
	expect_cqe(w->p->s.scq, 7, WEFT_WC_SUCCESS);
	expect_cqe(w->p->s.scq, 2, WEFT_WC_SUCCESS);
}

/* @bad answers a first FETCH_ADD, which completes with @status. */
static void refuses_as(struct world *w, struct pdu *bad, u8 layer, u8 etype, u8 code, u8 status)
{
	struct pdu copy = *bad;

	post_atomic(w, WEFT_WR_FETCH_ADD);
	peer_expect(w->p, P_L, P_ATOMIC_REQ);
	peer_say(w->p, bad);
	peer_expect_terminate(w->p, layer, etype, code, &copy, false);
	expect_cqe(w->p->s.scq, 7, status);
	world_expect_untouched(w, NULL);
}

static void refuses_response(struct world *w, struct pdu *bad, u8 layer, u8 etype, u8 code)
{
	refuses_as(w, bad, layer, etype, code, WEFT_WC_BAD_RESP_ERR);
}

static void an_unasked_atomic_response_is_refused(struct world *w)		/* EXT-19 */
{
	world_refuses(w, p_atomic_resp(1, 1, 5), 1, 2, 0x02);
}

static void an_atomic_response_that_comes_twice_is_refused(struct world *w)
{
	post_atomic(w, WEFT_WR_FETCH_ADD);
	peer_expect(w->p, P_L, P_ATOMIC_REQ);
	peer_say(w->p, p_atomic_resp(1, 1, 5));
	expect_cqe(w->p->s.scq, 7, WEFT_WC_SUCCESS);
	world_refuses_after(w, p_atomic_resp(2, 1, 5), 1, 2, 0x02, 0, w->wonly);
}

static void an_atomic_response_of_another_request_is_refused(struct world *w)
{
	refuses_response(w, p_atomic_resp(1, 2, 5), 0, 2, 0xFF);
}

static void an_atomic_response_out_of_turn_is_refused(struct world *w)
{
	refuses_response(w, p_atomic_resp(2, 1, 5), 1, 2, 0x03);
}

static void a_longer_atomic_response_is_refused(struct world *w)
{
	struct pdu *d = p_atomic_resp(1, 1, 5);

	d->len = 16;
	refuses_response(w, d, 1, 2, 0x05);
}

static void a_shorter_atomic_response_is_refused(struct world *w)
{
	struct pdu *d = p_atomic_resp(1, 1, 5);

	d->len = 11;
	/* It is no message at all, so no request's. */
	refuses_as(w, d, 0, 2, 0xFF, WEFT_WC_FLUSH_ERR);
}

static void an_atomic_response_at_an_offset_is_refused(struct world *w)
{
	struct pdu *d = p_atomic_resp(1, 1, 5);

	d->mo = 1;
	refuses_response(w, d, 1, 2, 0x04);
}

static void an_atomic_response_in_segments_is_refused(struct world *w)
{
	struct pdu *d = p_atomic_resp(1, 1, 5);

	d->ddp &= ~P_L;
	refuses_response(w, d, 1, 2, 0x05);
}

static void a_read_response_to_an_atomic_is_refused(struct world *w)
{
	refuses_as(w, p_tagged(P_READ_RESP, true, w->wonly->r.stag, WORLD_BASE + 4, NULL, 8),
		   0, 2, 0x06, WEFT_WC_FLUSH_ERR);
}

static void an_atomic_response_to_a_read_is_refused(struct world *w)
{
	side_read(&w->p->s, 1, SIG, w->wonly, 0, 8, w->rw, 0);
	peer_run(w->p);
	peer_expect(w->p, P_L, P_READ_REQ);
	peer_say(w->p, p_atomic_resp(1, 1, 5));
	expect_cqe(w->p->s.scq, 1, WEFT_WC_FLUSH_ERR);
	world_expect_untouched(w, NULL);
}

static void a_sink_lost_under_an_atomic_fails_it(struct world *w)
{
	post_atomic(w, WEFT_WR_FETCH_ADD);
	w->wonly->r.valid = false;
	peer_say(w->p, p_atomic_resp(1, 1, 5));
	expect_cqe(w->p->s.scq, 7, WEFT_WC_LOC_PROT_ERR);
	w->wonly->r.valid = true;
}

static void an_atomic_into_memory_that_may_not_be_written_fails(struct world *w)
{
	struct host_mr *mr = host_mr_new(&w->p->s.host, PD, BASE, 64, WEFT_ACCESS_REMOTE_READ);
	struct host_wr wr = atomic_wr(w, WEFT_WR_CMP_SWAP);

	wr.sge[0] = host_sge(mr, 0, 8);
	side_post(&w->p->s, &wr);
	peer_run(w->p);
	expect_cqe(w->p->s.scq, 7, WEFT_WC_LOC_PROT_ERR);
	peer_expect_terminate(w->p, 0, 0, 0, NULL, false);
}

static void fails_with(struct world *w, struct host_wr wr, u8 status)
{
	side_post(&w->p->s, &wr);
	peer_run(w->p);
	expect_cqe(w->p->s.scq, 7, status);
	peer_expect_terminate(w->p, 0, 0, 0, NULL, false);
}

static void an_atomic_of_4_octets_fails(struct world *w)
{
	struct host_wr wr = atomic_wr(w, WEFT_WR_CMP_SWAP);

	wr.sge[0].length = 4;
	fails_with(w, wr, WEFT_WC_LOC_LEN_ERR);
}

static void an_atomic_without_a_sink_fails(struct world *w)
{
	struct host_wr wr = atomic_wr(w, WEFT_WR_FETCH_ADD);

	wr.num_sge = 0;
	fails_with(w, wr, WEFT_WC_LOC_QP_OP_ERR);
}

static void an_inline_atomic_fails(struct world *w)
{
	struct host_wr wr = atomic_wr(w, WEFT_WR_FETCH_ADD);

	wr.flags |= WEFT_WR_INLINE;
	fails_with(w, wr, WEFT_WC_LOC_QP_OP_ERR);
}

static void a_fence_waits_for_an_atomic(struct world *w)
{
	post_atomic(w, WEFT_WR_FETCH_ADD);
	side_send(&w->p->s, 8, SIG | WEFT_WR_FENCE, w->rw, 0, 3);
	peer_run(w->p);
	peer_expect(w->p, P_L, P_ATOMIC_REQ);
	peer_expect_silence(w->p);
	peer_say(w->p, p_atomic_resp(1, 1, 5));
	peer_expect(w->p, P_L, P_SEND);
	expect_cqe(w->p->s.scq, 7, WEFT_WC_SUCCESS);
	expect_cqe(w->p->s.scq, 8, WEFT_WC_SUCCESS);
}

static void a_terminate_for_an_atomic_fails_that_atomic(struct world *w)
{
	u8 body[4 + 2 + 18] = { 0x01, 0x02, 0xC0, 0, 0, 70, P_L | P_DV, P_RV | P_ATOMIC_REQ };
	struct pdu *d;

	post_atomic(w, WEFT_WR_FETCH_ADD);
	peer_expect(w->p, P_L, P_ATOMIC_REQ);
	body[4 + 2 + 9] = 1;			/* queue number */
	body[4 + 2 + 13] = 1;			/* MSN */
	d = p_send(P_TERM, true, 1, 0, body, sizeof(body));
	d->qn = 2;
	peer_say(w->p, d);
	expect_cqe(w->p->s.scq, 7, WEFT_WC_REM_ACCESS_ERR);
}

/* ---- atomics, received ---- */

static u64 expect_atomic_response(struct world *w, u32 msn, u32 id)
{
	const struct pdu *d = peer_expect(w->p, P_L, P_ATOMIC_RESP);
	struct pdu *want = p_atomic_resp(msn, id, 0);
	u64 was = 0;
	u32 i;

	assert_int_equal(d->qn, 3);
	assert_int_equal(d->msn, msn);
	assert_int_equal(d->mo, 0);
	assert_int_equal(d->len, 12);
	assert_memory_equal(d->body, want->body, 4);
	for (i = 4; i < 12; i++)
		was = was << 8 | d->body[i];
	free(want);
	return was;
}

static void atomics_change_the_word_and_return_it(struct world *w)		/* EXT-08, 10, 11 */
{
	struct host_mr *mr = good_counters(w);
	u64 to = mr->r.base + 8;

	set_word(mr, 8, 40);
	peer_say(w->p, p_atomic(1, ADD, 0x1234, mr->r.stag, to, 2, 0, 0, ALL));
	assert_int_equal(expect_atomic_response(w, 1, 0x1234), 40);
	assert_int_equal(word_of(mr, 8), 42);
	peer_say(w->p, p_atomic(2, CAS, ~0u, mr->r.stag, to, 50, ALL, 41, ALL));
	assert_int_equal(expect_atomic_response(w, 2, ~0u), 42);
	assert_int_equal(word_of(mr, 8), 42);
	peer_say(w->p, p_atomic(3, CAS, 0, mr->r.stag, to, 50, ALL, 42, ALL));
	assert_int_equal(expect_atomic_response(w, 3, 0), 42);
	assert_int_equal(word_of(mr, 8), 50);
	assert_int_equal(word_of(mr, 0), 0);
	assert_int_equal(word_of(mr, 16), 0);
}

static void the_reserved_bits_of_a_request_are_ignored(struct world *w)		/* EXT-06 */
{
	struct host_mr *mr = good_counters(w);

	peer_say(w->p, p_atomic(1, 0xFFFFFFF0 | ADD, 1, mr->r.stag, mr->r.base, 2, 0, 5, 0));
	expect_atomic_response(w, 1, 1);
	assert_int_equal(word_of(mr, 0), 2);
}

static void atomics_run_in_their_turn_among_reads(struct world *w)		/* EXT-16 */
{
	struct host_mr *mr = counters(w, PD, RW | WEFT_ACCESS_REMOTE_ATOMIC);
	u64 to = mr->r.base;
	const u64 five = 5, six = 6;

	set_word(mr, 0, five);
	peer_add(w->p, p_read_req(1, 9, 0, 8, mr->r.stag, to));
	peer_add(w->p, p_atomic(2, ADD, 1, mr->r.stag, to, 1, 0, 0, ALL));
	peer_add(w->p, p_read_req(3, 9, 0, 8, mr->r.stag, to));
	peer_add(w->p, p_atomic(4, ADD, 2, mr->r.stag, to, 1, 0, 0, ALL));
	peer_flush(w->p);
	assert_memory_equal(peer_expect(w->p, P_T | P_L, P_READ_RESP)->body, &five, sizeof(five));
	assert_int_equal(expect_atomic_response(w, 1, 1), 5);
	assert_memory_equal(peer_expect(w->p, P_T | P_L, P_READ_RESP)->body, &six, sizeof(six));
	assert_int_equal(expect_atomic_response(w, 2, 2), 6);
	peer_expect_silence(w->p);
}

/* Without CRC a Response is in the batch by reference when the atomic is executed. */
static void an_atomic_changes_nothing_that_a_read_before_it_asked_for(void **state)
{
	struct peer_cfg c;
	struct host_mr *mr;
	struct peer *p;

	peer_cfg_init(&c);
	c.side.link.ext = true;
	c.side.link.mpa.crc = false;
	c.side.link.batch = 64;
	p = peer_new(&c);
	mr = host_mr_new(&p->s.host, PD, BASE, 1024, RW | WEFT_ACCESS_REMOTE_ATOMIC);
	peer_add(p, p_read_req(1, 9, 0, 1024, mr->r.stag, BASE));
	peer_add(p, p_atomic(2, ADD, 1, mr->r.stag, BASE + 1016, ALL, 0, 0, ALL));
	peer_flush(p);
	assert_int_equal(peer_expect(p, P_T | P_L, P_READ_RESP)->body[1023], 0);
	peer_expect(p, P_L, P_ATOMIC_RESP);
	assert_int_equal(word_of(mr, 1016), ALL);
	peer_free(p);
}

/* A Terminate about an atomic has only its DDP header (RFC 7306 §8.1 (2)): EXT-14. */
static void refuses_atomic(struct world *w, struct pdu *bad, u8 etype, u8 code)
{
	struct pdu copy = *bad;

	peer_say(w->p, bad);
	peer_expect_terminate(w->p, 0, etype, code, &copy, false);
	world_expect_untouched(w, NULL);
	world_expect_flushed(w, 0);
}

static struct pdu *add_at(const struct host_mr *mr, u64 off)
{
	return p_atomic(1, ADD, 1, mr->r.stag, mr->r.base + off, 1, 0, 0, ALL);
}

static void an_unaligned_atomic_is_refused(struct world *w)			/* EXT-12 */
{
	struct host_mr *mr = good_counters(w);

	refuses_atomic(w, add_at(mr, 4), 2, 0x07);
	assert_int_equal(word_of(mr, 0) | word_of(mr, 8), 0);
}

static void an_atomic_of_unknown_code_is_refused(struct world *w)		/* EXT-13 */
{
	struct host_mr *mr = good_counters(w);
	struct pdu *d = add_at(mr, 0);

	d->body[3] = 1;
	refuses_atomic(w, d, 2, 0x06);
	assert_int_equal(word_of(mr, 0), 0);
}

static void an_atomic_to_an_unknown_stag_is_refused(struct world *w)		/* EXT-15 */
{
	struct pdu *d = add_at(good_counters(w), 0);

	d->body[8] ^= 0x80;
	refuses_atomic(w, d, 1, 0x00);
}

static void an_atomic_to_another_pd_is_refused(struct world *w)
{
	refuses_atomic(w, add_at(counters(w, OTHER_PD, RW | WEFT_ACCESS_REMOTE_ATOMIC), 0), 1, 0x03);
}

static void an_atomic_without_the_right_is_refused(struct world *w)
{
	refuses_atomic(w, add_at(counters(w, PD, RW), 0), 1, 0x02);
}

static void an_atomic_past_the_end_is_refused(struct world *w)
{
	refuses_atomic(w, add_at(good_counters(w), 64), 1, 0x01);
}

static void an_atomic_across_the_end_is_refused(struct world *w)
{
	refuses_atomic(w, add_at(good_counters(w), 60), 1, 0x01);
}

static void an_atomic_below_the_region_is_refused(struct world *w)
{
	refuses_atomic(w, add_at(good_counters(w), -8), 1, 0x01);
}

static void an_atomic_across_the_wrap_is_refused(struct world *w)
{
	struct host_mr *mr = good_counters(w);

	refuses_atomic(w, add_at(mr, -mr->r.base - 4), 1, 0x04);
}

static void atomic_requests_count_for_ird(struct world *w)			/* EXT-17 */
{
	struct host_mr *mr = good_counters(w);
	u32 ird = w->p->s.qp->core.ird, i;
	struct pdu *d, copy;

	for (i = 1; i <= ird; i++)
		peer_add(w->p, i % 2 ? p_read_req(i, 9, 0, 4, w->ronly->r.stag, WORLD_BASE) :
				       p_atomic(i, ADD, i, mr->r.stag, mr->r.base, 1, 0, 0, ALL));
	d = p_atomic(i, ADD, i, mr->r.stag, mr->r.base, 1, 0, 0, ALL);
	copy = *d;
	peer_add(w->p, d);
	peer_flush(w->p);
	peer_expect_terminate(w->p, 1, 2, 0x02, &copy, false);
	assert_int_equal(word_of(mr, 0), 0);
}

static void refuses_on_queue_1(struct world *w, struct pdu *d, u8 code)
{
	world_refuses(w, d, 1, 2, code);
}

static void an_atomic_out_of_turn_is_refused(struct world *w)
{
	struct pdu *d = add_at(good_counters(w), 0);

	d->msn = 2;
	refuses_on_queue_1(w, d, 0x03);
}

static void an_atomic_at_an_offset_is_refused(struct world *w)
{
	struct pdu *d = add_at(good_counters(w), 0);

	d->mo = 1;
	refuses_on_queue_1(w, d, 0x04);
}

static void a_longer_atomic_is_refused(struct world *w)
{
	struct pdu *d = add_at(good_counters(w), 0);

	d->len = 53;
	refuses_on_queue_1(w, d, 0x05);
}

static void an_atomic_in_segments_is_refused(struct world *w)
{
	struct pdu *d = add_at(good_counters(w), 0);

	d->ddp &= ~P_L;
	refuses_on_queue_1(w, d, 0x05);
}

static void an_atomic_on_queue_0_is_refused(struct world *w)			/* EXT-20 */
{
	struct pdu *d = add_at(good_counters(w), 0);

	d->qn = 0;
	world_refuses(w, d, 0, 2, 0x06);
}

/* ---- off ---- */

static void without_extensions_their_opcodes_are_refused(struct world *w)	/* RDM-05 */
{
	world_refuses(w, p_imm(P_IMM, 1, 1), 0, 2, 0x06);
}

static void without_extensions_their_work_fails(struct world *w)
{
	struct host_wr wr = imm_wr(w, WEFT_WR_SEND_IMM, 5);

	wr.wr_id = 7;
	fails_with(w, wr, WEFT_WC_LOC_QP_OP_ERR);
}

/* ---- by themselves ---- */

/* RFC 7306 §5.1.1, like its pseudocode. */
static u64 add_bit_by_bit(u64 was, u64 add, u64 mask)
{
	u64 out = 0, carry = 0;
	u32 bit;

	for (bit = 0; bit < 64; bit++) {
		u64 sum = carry + (was >> bit & 1) + (add >> bit & 1);

		out |= (sum & 1) << bit;
		carry = mask >> bit & 1 ? 0 : sum >> 1;
	}
	return out;
}

static void fields_are_added_as_the_rfc_adds_bits(void **state)			/* EXT-09 */
{
	static const u64 masks[] = {
		0, ALL, 1, 1ull << 63, 0x8080808080808080, 0x80000000, 0x8000800080008000, 0x5555,
	};
	struct rng rng = { 7 };
	u32 i;

	for (i = 0; i < 20000; i++) {
		const struct weft_atomic_req r = {
			.code = WEFT_ATOMIC_FETCH_ADD,
			.operand = rng_next(&rng),
			.operand_mask = i % 2 ? masks[i / 2 % ARRAY_SIZE(masks)] : rng_next(&rng),
		};
		u64 was = i % 5 ? rng_next(&rng) : ALL;

		assert_int_equal(weft_atomic_result(&r, was),
				 add_bit_by_bit(was, r.operand, r.operand_mask));
	}
}

static void a_masked_swap_compares_and_swaps_under_its_masks(void **state)	/* EXT-10 */
{
	struct weft_atomic_req r = {
		.code = WEFT_ATOMIC_CMP_SWAP,
		.operand = 0xA1A2A3A4A5A6A7A8, .operand_mask = 0x00000000FFFFFFFF,
		.compare = 0x11223344FFFFFFFF, .compare_mask = 0xFFFFFFFF00000000,
	};

	assert_int_equal(weft_atomic_result(&r, 0x1122334455667788), 0x11223344A5A6A7A8);
	r.compare ^= 1;
	assert_int_equal(weft_atomic_result(&r, 0x1122334455667788), 0x11223344A5A6A7A8);
	r.compare ^= 1ull << 32;
	assert_int_equal(weft_atomic_result(&r, 0x1122334455667788), 0x1122334455667788);
	r.compare_mask = 0;
	assert_int_equal(weft_atomic_result(&r, 0x1122334455667788), 0x11223344A5A6A7A8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE_EXT(a_write_with_immediate_is_a_write_then_immediate_data),
		CASE_EXT(a_solicited_write_with_immediate_solicits_by_its_immediate),
		CASE_EXT(all_eight_octets_of_an_immediate_go_out),
		CASE_EXT(a_send_with_immediate_is_announced_by_its_immediate),
		CASE_EXT(a_bad_write_with_immediate_says_neither),
		CASE_EXT(a_close_waits_for_the_second_message),
		CASE_EXT(immediate_data_tells_the_length_of_the_write_before_it),
		CASE_EXT(immediate_data_without_a_write_has_no_length),
		cmocka_unit_test(immediate_data_waits_for_a_receive),
		CASE_EXT(an_empty_write_before_immediate_data_has_length_0),
		CASE_EXT(a_send_with_immediate_takes_one_receive),
		CASE_EXT(an_announced_send_has_to_follow),
		CASE_EXT(immediate_data_within_a_send_is_refused),
		CASE_EXT(immediate_data_without_receive_is_refused),
		CASE_EXT(immediate_data_out_of_turn_is_refused),
		CASE_EXT(announcing_data_out_of_turn_is_refused),
		CASE_EXT(immediate_data_at_an_offset_is_refused),
		CASE_EXT(immediate_data_of_7_octets_is_refused),
		CASE_EXT(immediate_data_of_9_octets_is_refused),
		CASE_EXT(immediate_data_in_segments_is_refused),
		CASE_EXT(an_invalidate_stag_in_immediate_data_is_ignored),
		CASE_EXT(an_atomic_request_says_what_was_posted),
		CASE_EXT(an_atomic_of_one_slot_has_the_masks_of_the_plain_operation),
		CASE_EXT(an_atomic_response_brings_the_word_and_completes),
		CASE_EXT(atomics_and_reads_share_numbers_and_order),
		CASE_EXT(an_unasked_atomic_response_is_refused),
		CASE_EXT(an_atomic_response_that_comes_twice_is_refused),
		CASE_EXT(an_atomic_response_of_another_request_is_refused),
		CASE_EXT(an_atomic_response_out_of_turn_is_refused),
		CASE_EXT(a_longer_atomic_response_is_refused),
		CASE_EXT(a_shorter_atomic_response_is_refused),
		CASE_EXT(an_atomic_response_at_an_offset_is_refused),
		CASE_EXT(an_atomic_response_in_segments_is_refused),
		CASE_EXT(a_read_response_to_an_atomic_is_refused),
		CASE_EXT(an_atomic_response_to_a_read_is_refused),
		CASE_EXT(a_sink_lost_under_an_atomic_fails_it),
		CASE_EXT(an_atomic_into_memory_that_may_not_be_written_fails),
		CASE_EXT(an_atomic_of_4_octets_fails),
		CASE_EXT(an_atomic_without_a_sink_fails),
		CASE_EXT(an_inline_atomic_fails),
		CASE_EXT(a_fence_waits_for_an_atomic),
		CASE_EXT(a_terminate_for_an_atomic_fails_that_atomic),
		CASE_EXT(atomics_change_the_word_and_return_it),
		CASE_EXT(the_reserved_bits_of_a_request_are_ignored),
		CASE_EXT(atomics_run_in_their_turn_among_reads),
		cmocka_unit_test(an_atomic_changes_nothing_that_a_read_before_it_asked_for),
		CASE_EXT(an_unaligned_atomic_is_refused),
		CASE_EXT(an_atomic_of_unknown_code_is_refused),
		CASE_EXT(an_atomic_to_an_unknown_stag_is_refused),
		CASE_EXT(an_atomic_to_another_pd_is_refused),
		CASE_EXT(an_atomic_without_the_right_is_refused),
		CASE_EXT(an_atomic_past_the_end_is_refused),
		CASE_EXT(an_atomic_across_the_end_is_refused),
		CASE_EXT(an_atomic_below_the_region_is_refused),
		CASE_EXT(an_atomic_across_the_wrap_is_refused),
		CASE_EXT(atomic_requests_count_for_ird),
		CASE_EXT(an_atomic_out_of_turn_is_refused),
		CASE_EXT(an_atomic_at_an_offset_is_refused),
		CASE_EXT(a_longer_atomic_is_refused),
		CASE_EXT(an_atomic_in_segments_is_refused),
		CASE_EXT(an_atomic_on_queue_0_is_refused),
		CASE_INITIATOR(without_extensions_their_opcodes_are_refused),
		CASE_INITIATOR(without_extensions_their_work_fails),
		cmocka_unit_test(fields_are_added_as_the_rfc_adds_bits),
		cmocka_unit_test(a_masked_swap_compares_and_swaps_under_its_masks),
	};

	return RUN_TESTS("stacks: RFC 7306", tests);
}
