// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A fast region and two QPs of its PD, as a kernel consumer has them: one is the stack's, with a
 * peer; the other's run is under way on another CPU, and holds the region.
 */
#include "world.h"

#define RNR 1000u
#define FIN (WEFT_ACT_DISCONNECTED | WEFT_ACT_ENDED)

struct shared {
	struct world w;
	struct host_qp *other;
	struct host_mr *mr;
	u32 stag;
};

typedef void (*shared_case)(struct shared *s);

static void run(void **state)
{
	struct host_qp_attr a = { .pd = PD, .sq_slots = 8, .kernel = true };
	shared_case fn = (shared_case)*state;
	struct peer_cfg c;
	struct shared s;
	u32 cut;

	for (cut = WIRE_WHOLE; cut <= WIRE_BYTES; cut++) {
		peer_cfg_init(&c);
		c.dut_initiates = true;
		c.side.qp.kernel = true;
		c.side.link.rnr_ms = cut == WIRE_WHOLE ? 0 : RNR;
		world_init(&s.w, &c, cut);
		a.scq = s.w.p->s.scq;
		a.rcq = s.w.p->s.rcq;
		s.other = host_qp_new(&s.w.p->s.host, &a);
		s.mr = s.w.fast;
		s.stag = s.mr->r.stag;
		fn(&s);
		world_fini(&s.w);
	}
}

#define CASE_SHARED(fn) { #fn, run, NULL, NULL, (void *)(fn) }

/* ---- what happens in a case ---- */

/* The other QP's run has looked up the region, and may write. */
static void hold(struct shared *s)
{
	s->other->amid_run = true;
	assert_ptr_equal(weft_region_get(&s->other->core, PD, s->stag), &s->mr->r);
	assert_int_equal(weft_region_check(&s->mr->r, s->stag, PD, s->other->core.id, WORLD_BASE, 8,
					   WEFT_ACCESS_REMOTE_WRITE), WEFT_GRANTED);
}

static void let_go(struct shared *s)
{
	weft_region_put(&s->other->core, &s->mr->r);
	weft_region_end_run(&s->other->core);
	s->other->amid_run = false;
}

static void pass(struct shared *s, u32 ms)
{
	host_link_set_time(&s->w.p->s.link, s->w.p->s.link.now + ms);
	peer_run(s->w.p);
}

static void post(struct shared *s, u64 wr_id, u8 opcode)
{
	const struct host_wr wr = {
		.wr_id = wr_id, .opcode = opcode, .flags = SIG, .inv_stag = s->stag,
		.reg = { .stag = s->stag, .access = RW },
	};

	side_post(&s->w.p->s, &wr);
	peer_run(s->w.p);
}

static void done(struct shared *s, u64 wr_id)
{
	expect_cqe(s->w.p->s.scq, wr_id, WEFT_WC_SUCCESS);
}

static void say_send(struct shared *s, u8 opcode, u32 msn, const char *text)
{
	struct pdu *d = p_send(opcode, true, msn, 0, text, strlen(text));

	d->inv = opcode == P_SEND_INV ? s->stag : 0;
	peer_say(s->w.p, d);
}

static void received(struct shared *s, u64 wr_id, const char *text)
{
	struct weft_cqe e = expect_cqe(s->w.p->s.rcq, wr_id, WEFT_WC_SUCCESS);

	assert_int_equal(e.byte_len, strlen(text));
	assert_memory_equal(s->w.inbox->mem + wr_id * RECV_LEN, text, strlen(text));
}

/* Invalid, but not reported: only the other QP still uses the region. */
static void expect_waits(struct shared *s)
{
	assert_false(s->mr->r.valid);
	expect_no_cqe(s->w.p->s.scq);
	expect_no_cqe(s->w.p->s.rcq);
	expect_state(&s->w.p->s, WEFT_QPS_RTS);
}

/* ---- LOCAL_INV ---- */

static void local_inv_waits_until_others_have_let_go(struct shared *s)
{
	hold(s);
	post(s, 1, WEFT_WR_LOCAL_INV);
	side_send(&s->w.p->s, 2, SIG, s->w.rw, 0, 8);
	peer_run(s->w.p);
	expect_waits(s);
	peer_expect_silence(s->w.p);
	/* Time alone does not end the wait. */
	pass(s, 10);
	expect_waits(s);
	let_go(s);
	pass(s, 10);
	done(s, 1);
	peer_expect(s->w.p, P_L, P_SEND);
	done(s, 2);
	assert_int_equal(s->mr->holders, 0);
}

/* A peer that reads nothing cannot delay it. */
static void local_inv_lets_go_though_tcp_has_no_room(struct shared *s)
{
	u32 room = s->w.p->s.out.sndbuf;

	hold(s);
	post(s, 1, WEFT_WR_LOCAL_INV);
	s->w.p->s.out.sndbuf = 0;
	let_go(s);
	pass(s, 1);
	assert_int_equal(s->mr->holders, 0);
	expect_waits(s);
	s->w.p->s.out.sndbuf = room;
	pass(s, 1);
	done(s, 1);
	post(s, 2, WEFT_WR_LOCAL_INV);
	expect_cqe(s->w.p->s.scq, 2, WEFT_WC_LOC_PROT_ERR);
}

static void local_inv_of_an_unheld_region_is_done_at_once(struct shared *s)
{
	post(s, 1, WEFT_WR_LOCAL_INV);
	done(s, 1);
	assert_false(s->w.p->s.qp->try_again);
}

static void local_inv_goes_over_a_qp_that_did_not_register(struct shared *s)
{
	post(s, 1, WEFT_WR_LOCAL_INV);
	host_mr_bind(s->mr, s->other, RW);
	post(s, 2, WEFT_WR_LOCAL_INV);
	done(s, 1);
	done(s, 2);
	assert_false(s->mr->r.valid);
}

static void the_peer_is_answered_while_local_inv_waits(struct shared *s)
{
	hold(s);
	post(s, 1, WEFT_WR_LOCAL_INV);
	peer_expect_alive(s->w.p, 1, s->w.rw);
	say_send(s, P_SEND, 1, "heard");
	received(s, 0, "heard");
	peer_expect_alive(s->w.p, 2, s->w.rw);
	expect_waits(s);
	let_go(s);
	pass(s, 1);
	done(s, 1);
}

static void a_peer_that_comes_too_late_is_refused(struct shared *s)
{
	struct pdu *d = p_tagged(P_WRITE, true, s->stag, WORLD_BASE, "late", 4), copy = *d;

	hold(s);
	post(s, 1, WEFT_WR_LOCAL_INV);
	peer_say(s->w.p, d);
	peer_expect_terminate(s->w.p, 1, 1, 0x00, &copy, false);
	world_expect_untouched(&s->w, NULL);
	let_go(s);
}

/* Left after its flush: a region that is taken out of use and not held. */
static void a_qp_that_ends_waits_for_no_holder(struct shared *s)
{
	hold(s);
	post(s, 1, WEFT_WR_LOCAL_INV);
	expect_waits(s);
	host_link_error(&s->w.p->s.link);
	peer_run(s->w.p);
	expect_cqe(s->w.p->s.scq, 1, WEFT_WC_FLUSH_ERR);
	assert_int_equal(s->mr->holders, 1);
	let_go(s);
	assert_int_equal(s->mr->holders, 0);
	assert_false(s->mr->r.valid);
	host_mr_bind(s->mr, s->other, RW);
}

static void a_close_waits_for_local_inv(struct shared *s)
{
	hold(s);
	post(s, 1, WEFT_WR_LOCAL_INV);
	host_link_close(&s->w.p->s.link);
	peer_run(s->w.p);
	assert_false(s->w.p->fin);
	let_go(s);
	pass(s, 1);
	done(s, 1);
	assert_true(s->w.p->fin);
}

/* ---- REG_MR ---- */

static void reg_mr_waits_until_others_have_let_go(struct shared *s)
{
	hold(s);
	post(s, 1, WEFT_WR_LOCAL_INV);
	let_go(s);
	pass(s, 1);
	done(s, 1);
	/* A peer of the other QP uses its STag, in vain. */
	s->other->amid_run = true;
	assert_ptr_equal(weft_region_get(&s->other->core, PD, s->stag), &s->mr->r);
	post(s, 2, WEFT_WR_REG_MR);
	expect_waits(s);
	let_go(s);
	pass(s, 1);
	done(s, 2);
	assert_true(s->mr->r.valid);
	assert_int_equal(s->mr->r.qp, s->w.p->s.qp->core.id);
}

/* ---- a Send with Invalidate ---- */

static void a_send_with_invalidate_is_told_when_others_have_let_go(struct shared *s)
{
	hold(s);
	say_send(s, P_SEND_INV, 1, "invalid");
	say_send(s, P_SEND, 2, "behind");
	peer_say(s->w.p, p_tagged(P_WRITE, true, s->w.rw->r.stag, WORLD_BASE, "behind", 6));
	expect_waits(s);
	world_expect_untouched(&s->w, s->w.inbox);
	/* Time does not end the wait, nor does the limit for a Send without a receive. */
	pass(s, RNR);
	pass(s, 1);
	pass(s, RNR + 1);
	expect_waits(s);
	let_go(s);
	pass(s, 1);
	received(s, 0, "invalid");
	received(s, 1, "behind");
	assert_memory_equal(s->w.rw->mem, "behind", 6);
	peer_expect_alive(s->w.p, 1, s->w.rw);
	assert_int_equal(s->mr->holders, 0);
}

/* Otherwise the host would offer them again and again. */
static void octets_after_a_send_with_invalidate_do_not_wake(struct shared *s)
{
	u32 wakes, i;

	hold(s);
	say_send(s, P_SEND_INV, 1, "invalid");
	say_send(s, P_SEND, 2, "behind");
	wakes = s->w.p->s.link.wakes;
	for (i = 0; i < 10; i++)
		peer_run(s->w.p);
	peer_say(s->w.p, p_tagged(P_WRITE, true, s->w.rw->r.stag, WORLD_BASE, "behind", 6));
	expect_waits(s);
	assert_int_equal(s->w.p->s.link.wakes, wakes);
	let_go(s);
	pass(s, 1);
	received(s, 0, "invalid");
	received(s, 1, "behind");
}

static void send_inv_of_an_unheld_region_is_reported_at_once(struct shared *s)
{
	say_send(s, P_SEND_INV, 1, "invalid");
	received(s, 0, "invalid");
	assert_false(s->w.p->s.qp->try_again);
}

static void a_peer_does_not_invalidate_what_another_qp_registered(struct shared *s)
{
	struct pdu *d = p_send(P_SEND_INV, true, 1, 0, "no", 2), copy;

	post(s, 1, WEFT_WR_LOCAL_INV);
	done(s, 1);
	host_mr_bind(s->mr, s->other, RW);
	d->inv = s->stag;
	copy = *d;
	peer_say(s->w.p, d);
	peer_expect_terminate(s->w.p, 0, 1, 0x09, &copy, false);
	assert_true(s->mr->r.valid);
}

static void the_end_is_seen_behind_a_send_with_invalidate(struct shared *s)
{
	hold(s);
	say_send(s, P_SEND_INV, 1, "last");
	peer_close(s->w.p);
	expect_waits(s);
	assert_int_equal(s->w.p->s.link.acts & FIN, 0);
	let_go(s);
	pass(s, 1);
	received(s, 0, "last");
	assert_int_equal(s->w.p->s.link.acts & FIN, FIN);
}

static void a_qp_that_ends_flushes_a_send_with_invalidate(struct shared *s)
{
	hold(s);
	say_send(s, P_SEND_INV, 1, "invalid");
	host_link_error(&s->w.p->s.link);
	peer_run(s->w.p);
	assert_false(s->w.p->s.qp->core.rx_waits);
	world_expect_flushed(&s->w, 0);
	let_go(s);
	assert_int_equal(s->mr->holders, 0);
}

/* ---- READ_INV ---- */

static void post_read_inv(struct shared *s, u64 wr_id)
{
	const struct host_wr wr = {
		.wr_id = wr_id, .opcode = WEFT_WR_READ_INV, .flags = SIG, .num_sge = 1,
		.sge = { host_sge(s->mr, 0, 8) }, .rkey = 0x12345678,
	};

	side_post(&s->w.p->s, &wr);
	peer_run(s->w.p);
	peer_expect(s->w.p, P_L, P_READ_REQ);
}

static void read_inv_is_done_when_others_have_let_go(struct shared *s)
{
	post_read_inv(s, 1);
	hold(s);
	peer_say(s->w.p, p_tagged(P_READ_RESP, true, s->stag, WORLD_BASE, "response", 8));
	say_send(s, P_SEND, 1, "behind");
	expect_waits(s);
	assert_memory_equal(s->mr->mem, "response", 8);
	let_go(s);
	pass(s, 1);
	done(s, 1);
	received(s, 0, "behind");
	assert_int_equal(s->mr->holders, 0);
}

static void a_qp_that_ends_flushes_a_read_inv(struct shared *s)
{
	post_read_inv(s, 1);
	hold(s);
	peer_say(s->w.p, p_tagged(P_READ_RESP, true, s->stag, WORLD_BASE, "response", 8));
	host_link_error(&s->w.p->s.link);
	peer_run(s->w.p);
	expect_cqe(s->w.p->s.scq, 1, WEFT_WC_FLUSH_ERR);
	let_go(s);
	assert_int_equal(s->mr->holders, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE_SHARED(local_inv_waits_until_others_have_let_go),
		CASE_SHARED(local_inv_lets_go_though_tcp_has_no_room),
		CASE_SHARED(local_inv_of_an_unheld_region_is_done_at_once),
		CASE_SHARED(local_inv_goes_over_a_qp_that_did_not_register),
		CASE_SHARED(the_peer_is_answered_while_local_inv_waits),
		CASE_SHARED(a_peer_that_comes_too_late_is_refused),
		CASE_SHARED(a_qp_that_ends_waits_for_no_holder),
		CASE_SHARED(a_close_waits_for_local_inv),
		CASE_SHARED(reg_mr_waits_until_others_have_let_go),
		CASE_SHARED(a_send_with_invalidate_is_told_when_others_have_let_go),
		CASE_SHARED(octets_after_a_send_with_invalidate_do_not_wake),
		CASE_SHARED(send_inv_of_an_unheld_region_is_reported_at_once),
		CASE_SHARED(a_peer_does_not_invalidate_what_another_qp_registered),
		CASE_SHARED(the_end_is_seen_behind_a_send_with_invalidate),
		CASE_SHARED(a_qp_that_ends_flushes_a_send_with_invalidate),
		CASE_SHARED(read_inv_is_done_when_others_have_let_go),
		CASE_SHARED(a_qp_that_ends_flushes_a_read_inv),
	};

	return RUN_TESTS("stacks: a region of two QPs", tests);
}
