// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * QPs that are connected by hand (struct weft_qpc.by_hand): they outlive their connection, their
 * send queue may be held, and peers may be denied rights that regions grant.
 */
#include "world.h"

static struct weft_qpc *by_hand(struct world *w)
{
	struct weft_qpc *qp = &w->p->s.qp->core;

	qp->by_hand = true;
	qp->named = WEFT_VS_RTS;
	return qp;
}

/* The connection has gone, the QP remains: nothing completes. */
static void expect_unplugged(struct world *w)
{
	struct weft_qpc *qp = &w->p->s.qp->core;

	peer_run(w->p);
	assert_null(w->p->s.link.core.qp);
	assert_null(qp->st);
	assert_int_equal(qp->state, WEFT_QPS_IDLE);
	assert_int_equal(weft_qpc_verbs_state(qp), WEFT_VS_RTS);
	assert_int_equal(host_qp_count_events(w->p->s.qp, WEFT_EV_FLUSHED), 0);
	/* Posting must ring the doorbell. */
	assert_int_equal(qp->sq.q.ring->flags & WEFT_RING_KICK, WEFT_RING_KICK);
	expect_no_cqe(w->p->s.scq);
}

static void give_up(struct world *w)
{
	weft_qpc_give_up(&w->p->s.qp->core, WEFT_WC_RETRY_EXC_ERR);
	assert_int_equal(weft_qpc_verbs_state(&w->p->s.qp->core), WEFT_VS_ERR);
}

/* ---- a connection that ends ---- */

static void fin_is_none_of_its(struct world *w)
{
	by_hand(w);
	peer_close(w->p);
	expect_unplugged(w);
	expect_no_cqe(w->p->s.rcq);
	assert_false(weft_qpc_has_sends(&w->p->s.qp->core));
	/* A Send posted now fails, and all after it are flushed. */
	side_send(&w->p->s, 5, SIG, w->rw, 0, 8);
	side_send(&w->p->s, 6, SIG, w->rw, 0, 8);
	assert_true(weft_qpc_has_sends(&w->p->s.qp->core));
	give_up(w);
	expect_cqe(w->p->s.scq, 5, WEFT_WC_RETRY_EXC_ERR);
	expect_cqe(w->p->s.scq, 6, WEFT_WC_FLUSH_ERR);
	world_expect_flushed(w, 0);
}

static void reset_is_none_of_its(struct world *w)
{
	by_hand(w);
	host_link_reset(&w->p->s.link);
	expect_unplugged(w);
	expect_no_cqe(w->p->s.rcq);
	give_up(w);
	expect_no_cqe(w->p->s.scq);
	world_expect_flushed(w, 0);
}

/* An unanswered Read fails; a Send after it is flushed, as its fate is unknown. */
static void work_under_way_is_given_up(struct world *w)
{
	struct weft_qpc *qp = by_hand(w);

	side_read(&w->p->s, 1, SIG, w->wonly, 0, 8, w->ronly, 0);
	side_send(&w->p->s, 2, SIG, w->rw, 0, 8);
	peer_run(w->p);
	host_link_reset(&w->p->s.link);
	expect_unplugged(w);
	assert_true(weft_qpc_has_sends(qp));
	give_up(w);
	expect_cqe(w->p->s.scq, 1, WEFT_WC_RETRY_EXC_ERR);
	expect_cqe(w->p->s.scq, 2, WEFT_WC_FLUSH_ERR);
}

/* Completed work is not affected. */
static void work_that_is_done_is_not_given_up(struct world *w)
{
	by_hand(w);
	side_send(&w->p->s, 1, SIG, w->rw, 0, 8);
	peer_run(w->p);
	expect_cqe(w->p->s.scq, 1, WEFT_WC_SUCCESS);
	host_link_reset(&w->p->s.link);
	expect_unplugged(w);
	side_send(&w->p->s, 2, SIG, w->rw, 0, 8);
	give_up(w);
	expect_cqe(w->p->s.scq, 2, WEFT_WC_RETRY_EXC_ERR);
	expect_no_cqe(w->p->s.scq);
}

/* ---- UC ---- */

/* It completes as if it had been sent; the next one is posted while the ring sleeps. */
static void uc_sends_complete_without_a_peer(struct world *w)
{
	struct weft_qpc *qp = by_hand(w);
	u32 i;

	host_link_reset(&w->p->s.link);
	expect_unplugged(w);
	assert_false(weft_qpc_lose(qp));
	for (i = 0; i < 3; i++) {
		side_send(&w->p->s, 5, SIG, w->rw, 0, 8);
		side_write(&w->p->s, 6, SIG, w->rw, 0, 8, w->ronly, 0);
		assert_false(weft_qpc_lose(qp));
		expect_cqe(w->p->s.scq, 5, WEFT_WC_SUCCESS);
		expect_cqe(w->p->s.scq, 6, WEFT_WC_SUCCESS);
		assert_false(weft_qpc_has_sends(qp));
		assert_int_equal(weft_qpc_verbs_state(qp), WEFT_VS_RTS);
		assert_int_equal(qp->sq.q.ring->flags & WEFT_RING_KICK, WEFT_RING_KICK);
	}
	/* Not in SQD. */
	qp->sq_held = true;
	side_send(&w->p->s, 7, SIG, w->rw, 0, 8);
	assert_false(weft_qpc_lose(qp));
	expect_no_cqe(w->p->s.scq);
}

/* A fault of the request itself is reported, with or without a peer. */
static void what_uc_may_not_send_fails(struct world *w)
{
	struct weft_qpc *qp = by_hand(w);
	struct host_wr wr = {
		.wr_id = 6, .opcode = WEFT_WR_SEND, .num_sge = 1, .sge = { host_sge(w->foreign, 0, 8) },
	};

	host_link_reset(&w->p->s.link);
	expect_unplugged(w);
	side_send(&w->p->s, 5, SIG, w->rw, 0, 8);
	side_post(&w->p->s, &wr);
	side_send(&w->p->s, 7, SIG, w->rw, 0, 8);
	assert_false(weft_qpc_lose(qp));
	expect_cqe(w->p->s.scq, 5, WEFT_WC_SUCCESS);
	expect_cqe(w->p->s.scq, 6, WEFT_WC_LOC_PROT_ERR);
	expect_cqe(w->p->s.scq, 7, WEFT_WC_FLUSH_ERR);
	world_expect_flushed(w, 0);
}

static void uc_ends_its_windows_without_a_peer(struct world *w)
{
	struct weft_qpc *qp = by_hand(w);
	const struct host_wr wr = {
		.wr_id = 5, .opcode = WEFT_WR_LOCAL_INV, .flags = SIG, .inv_stag = w->fast->r.stag,
	};

	w->fast->r.kind = WEFT_REGION_WINDOW_2;
	host_link_reset(&w->p->s.link);
	expect_unplugged(w);
	side_post(&w->p->s, &wr);
	assert_false(weft_qpc_lose(qp));
	expect_cqe(w->p->s.scq, 5, WEFT_WC_SUCCESS);
	assert_false(w->fast->r.valid);
	side_post(&w->p->s, &wr);
	assert_false(weft_qpc_lose(qp));
	expect_cqe(w->p->s.scq, 5, WEFT_WC_LOC_PROT_ERR);
	assert_int_equal(weft_qpc_verbs_state(qp), WEFT_VS_ERR);
}

static void uc_reads_nothing_without_a_peer(struct world *w)
{
	struct weft_qpc *qp = by_hand(w);

	host_link_reset(&w->p->s.link);
	expect_unplugged(w);
	side_read(&w->p->s, 5, SIG, w->rw, 0, 8, w->ronly, 0);
	assert_false(weft_qpc_lose(qp));
	expect_cqe(w->p->s.scq, 5, WEFT_WC_LOC_QP_OP_ERR);
	assert_int_equal(weft_qpc_verbs_state(qp), WEFT_VS_ERR);
}

static void a_ring_of_uc_that_is_broken_is_found(struct world *w)
{
	struct weft_qpc *qp = by_hand(w);

	host_link_reset(&w->p->s.link);
	expect_unplugged(w);
	host_scribble_index(w->p->s.qp, false, 0x8000000);
	assert_false(weft_qpc_lose(qp));
	assert_int_equal(weft_qpc_verbs_state(qp), WEFT_VS_ERR);
	expect_no_cqe(w->p->s.scq);
}

/* A Send whose end never arrives holds its receive, which is flushed first. */
static void a_receive_half_filled_is_flushed(struct world *w)
{
	by_hand(w);
	peer_say(w->p, p_send(P_SEND, false, 1, 0, "half", 4));
	peer_close(w->p);
	expect_unplugged(w);
	expect_no_cqe(w->p->s.rcq);
	give_up(w);
	world_expect_flushed(w, 0);
}

/* Nor does the next connection lose it: the Send that its peer resends gets it. */
static void a_receive_half_filled_is_kept_for_the_next_connection(struct world *w)
{
	struct weft_qpc *qp = by_hand(w);
	struct weft_stream *st = &w->p->s.link.core.st;

	peer_say(w->p, p_send(P_SEND, false, 1, 0, "half", 4));
	peer_close(w->p);
	expect_unplugged(w);
	weft_qpc_start(qp, st, qp->orq_slots, qp->orq, qp->ird, qp->irq, qp->irq_slots);
	weft_qpc_unplug(qp);
	give_up(w);
	world_expect_flushed(w, 0);
}

/* The peer's Terminate ends the QP, however it was connected. */
static void terminate_ends_it(struct world *w)
{
	by_hand(w);
	peer_say(w->p, p_tagged(P_WRITE, true, w->rw->r.stag ^ 1, WORLD_BASE, "bad", 3));
	assert_int_equal(weft_qpc_verbs_state(&w->p->s.qp->core), WEFT_VS_ERR);
	world_expect_flushed(w, 0);
}

/* ---- a fault of the device ---- */

static void a_fault_before_there_is_a_connection_ends_it(struct world *w)
{
	struct weft_qpc *qp = by_hand(w);

	host_link_reset(&w->p->s.link);
	expect_unplugged(w);
	side_send(&w->p->s, 5, SIG, w->rw, 0, 8);
	side_send(&w->p->s, 6, SIG, w->rw, 0, 8);
	weft_qpc_break(qp);
	assert_int_equal(weft_qpc_verbs_state(qp), WEFT_VS_ERR);
	assert_int_equal(weft_qpc_fault(qp), WEFT_FAULT_FATAL);
	expect_cqe(w->p->s.scq, 5, WEFT_WC_FLUSH_ERR);
	expect_cqe(w->p->s.scq, 6, WEFT_WC_FLUSH_ERR);
	world_expect_flushed(w, 0);
}

/* A fault on demand may be late, and the QP be in error by then. */
static void a_fault_of_a_qp_in_error_changes_nothing(struct world *w)
{
	struct weft_qpc *qp = by_hand(w);

	weft_qpc_error(qp);
	weft_qpc_break(qp);
	assert_int_equal(qp->state, WEFT_QPS_ERROR);
	assert_int_equal(weft_qpc_fault(qp), WEFT_FAULT_NONE);
	assert_int_equal(host_qp_count_events(w->p->s.qp, WEFT_EV_FLUSHED), 1);
	assert_int_equal(host_qp_count_events(w->p->s.qp, WEFT_EV_TERM_SENT), 0);
}

static void reset_of_the_qp_completes_nothing(struct world *w)
{
	struct weft_qpc *qp = by_hand(w);

	host_link_reset(&w->p->s.link);
	expect_unplugged(w);
	side_send(&w->p->s, 5, SIG, w->rw, 0, 8);
	memset(qp->sq.q.ring, 0, sizeof(*qp->sq.q.ring));
	weft_qpc_reset(qp);
	assert_int_equal(weft_qpc_verbs_state(qp), WEFT_VS_RESET);
	assert_false(qp->by_hand);
	expect_no_cqe(w->p->s.scq);
	expect_no_cqe(w->p->s.rcq);
}

/* ---- a send queue that is held ---- */

static void nothing_begins_while_it_is_held(struct world *w)
{
	struct weft_qpc *qp = by_hand(w);

	weft_qpc_hold(qp, true);
	assert_true(weft_qpc_is_drained(qp));
	side_send(&w->p->s, 1, SIG, w->rw, 0, 8);
	peer_run(w->p);
	peer_expect_silence(w->p);
	expect_no_cqe(w->p->s.scq);
	/* The peer is still answered. */
	peer_expect_alive(w->p, 1, w->ronly);
	weft_qpc_hold(qp, false);
	assert_false(weft_qpc_is_drained(qp));
	assert_true(w->p->s.qp->kicked);
	peer_run(w->p);
	peer_expect(w->p, P_L, P_SEND);
	expect_cqe(w->p->s.scq, 1, WEFT_WC_SUCCESS);
}

/* A Read is outstanding until it is answered. */
static void it_is_drained_once_all_is_answered(struct world *w)
{
	struct weft_qpc *qp = by_hand(w);
	const struct pdu *req;
	u32 sink;
	u64 to;

	side_read(&w->p->s, 1, SIG, w->wonly, 0, 8, w->ronly, 0);
	peer_run(w->p);
	req = peer_expect(w->p, P_L, P_READ_REQ);
	sink = weft_get32(req->body);
	to = weft_get64(req->body + 4);
	weft_qpc_hold(qp, true);
	assert_false(weft_qpc_is_drained(qp));
	peer_say(w->p, p_tagged(P_READ_RESP, true, sink, to, "12345678", 8));
	assert_true(weft_qpc_is_drained(qp));
	expect_cqe(w->p->s.scq, 1, WEFT_WC_SUCCESS);
}

/* ---- what peers are denied ---- */

static void a_write_is_denied(struct world *w)
{
	by_hand(w)->denied = WEFT_ACCESS_REMOTE_WRITE;
	world_refuses(w, p_tagged(P_WRITE, true, w->rw->r.stag, WORLD_BASE, "bad", 3), 0, 1, 0x02);
}

static void a_read_is_denied(struct world *w)
{
	by_hand(w)->denied = WEFT_ACCESS_REMOTE_READ;
	world_refuses_read(w, p_read_req(1, 1, 0, 4, w->ronly->r.stag, WORLD_BASE), 0x02);
}

static void an_atomic_is_denied(struct world *w)
{
	struct host_mr *mr = host_mr_new(&w->p->s.host, PD, WORLD_BASE, 64,
					 WEFT_ACCESS_LOCAL_WRITE | WEFT_ACCESS_REMOTE_ATOMIC);
	u8 before[8];

	memcpy(before, mr->mem, 8);
	by_hand(w)->denied = WEFT_ACCESS_REMOTE_ATOMIC;
	peer_say(w->p, p_atomic(1, 0, 1, mr->r.stag, WORLD_BASE, 1, ~0ull, 0, ~0ull));
	assert_int_equal(w->p->s.qp->core.error, WEFT_E_RDMAP_ACCESS);
	assert_memory_equal(before, mr->mem, 8);
}

/* Only one right is denied, not the others. */
static void what_is_not_denied_is_allowed(struct world *w)
{
	by_hand(w)->denied = WEFT_ACCESS_REMOTE_WRITE | WEFT_ACCESS_REMOTE_ATOMIC;
	peer_expect_alive(w->p, 1, w->ronly);
	w->p->s.qp->core.denied = WEFT_ACCESS_REMOTE_READ;
	peer_say(w->p, p_tagged(P_WRITE, true, w->rw->r.stag, WORLD_BASE, "good", 4));
	assert_memory_equal(w->rw->mem, "good", 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(fin_is_none_of_its),
		CASE(reset_is_none_of_its),
		CASE_INITIATOR(work_under_way_is_given_up),
		CASE_INITIATOR(work_that_is_done_is_not_given_up),
		CASE(uc_sends_complete_without_a_peer),
		CASE(what_uc_may_not_send_fails),
		CASE(uc_reads_nothing_without_a_peer),
		CASE(uc_ends_its_windows_without_a_peer),
		CASE(a_ring_of_uc_that_is_broken_is_found),
		CASE(a_receive_half_filled_is_flushed),
		CASE(a_receive_half_filled_is_kept_for_the_next_connection),
		CASE(terminate_ends_it),
		CASE(a_fault_before_there_is_a_connection_ends_it),
		CASE(a_fault_of_a_qp_in_error_changes_nothing),
		CASE(reset_of_the_qp_completes_nothing),
		CASE_INITIATOR(nothing_begins_while_it_is_held),
		CASE_INITIATOR(it_is_drained_once_all_is_answered),
		CASE(a_write_is_denied),
		CASE(a_read_is_denied),
		CASE_EXT(an_atomic_is_denied),
		CASE(what_is_not_denied_is_allowed),
	};

	return RUN_TESTS("stacks: QPs by hand", tests);
}
