// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Work that sends nothing: fast registration and invalidation by a kernel consumer. The stage's
 * memory. Alternation of answers and own work.
 */
#include <unistd.h>

#include "world.h"

/* A kernel consumer with a region that is not registered yet. */
struct kernel {
	struct world w;
	struct host_mr *mr;
};

static void kernel_init(struct kernel *k)
{
	struct peer_cfg c;

	peer_cfg_init(&c);
	c.dut_initiates = true;
	c.side.qp.kernel = true;
	world_init(&k->w, &c, WIRE_WHOLE);
	k->mr = host_mr_new_fast(&k->w.p->s.host, PD, WORLD_BASE, 64);
}

static void post_reg(struct kernel *k, u64 wr_id, u32 stag)
{
	const struct host_wr wr = {
		.wr_id = wr_id, .opcode = WEFT_WR_REG_MR, .flags = SIG,
		.reg = { .stag = stag, .access = RW },
	};

	side_post(&k->w.p->s, &wr);
	peer_run(k->w.p);
}

static void post_inv(struct kernel *k, u64 wr_id, u8 flags, u32 stag)
{
	const struct host_wr wr = {
		.wr_id = wr_id, .opcode = WEFT_WR_LOCAL_INV, .flags = flags | SIG,
		.inv_stag = stag,
	};

	side_post(&k->w.p->s, &wr);
	peer_run(k->w.p);
}

static void write_refused(struct kernel *k, u32 stag)
{
	struct pdu *d = p_tagged(P_WRITE, true, stag, WORLD_BASE, "bad", 3), copy = *d;

	peer_say(k->w.p, d);
	peer_expect_terminate(k->w.p, 1, 1, 0x00, &copy, false);
}

static void reg_mr_makes_a_region_usable_with_its_new_key(void **state)
{
	struct kernel k;
	u32 stag;

	kernel_init(&k);
	stag = k.mr->r.stag ^ 0x33;
	post_reg(&k, 1, stag);
	assert_int_equal(expect_cqe(k.w.p->s.scq, 1, WEFT_WC_SUCCESS).opcode, WEFT_WCO_REG_MR);
	peer_say(k.w.p, p_tagged(P_WRITE, true, stag, WORLD_BASE, "good", 4));
	assert_memory_equal(k.mr->mem, "good", 4);
	/* Its previous key is now wrong. */
	write_refused(&k, stag ^ 0x33);
	assert_memory_equal(k.mr->mem, "good", 4);
	world_fini(&k.w);
}

static void before_reg_mr_a_region_is_unusable(void **state)
{
	struct kernel k;

	kernel_init(&k);
	write_refused(&k, k.mr->r.stag);
	world_fini(&k.w);
}

static void after_local_invalidate_a_region_is_unusable(void **state)
{
	struct kernel k;

	kernel_init(&k);
	post_reg(&k, 1, k.mr->r.stag);
	post_inv(&k, 2, 0, k.mr->r.stag);
	expect_cqe(k.w.p->s.scq, 1, WEFT_WC_SUCCESS);
	assert_int_equal(expect_cqe(k.w.p->s.scq, 2, WEFT_WC_SUCCESS).opcode,
			 WEFT_WCO_LOCAL_INV);
	write_refused(&k, k.mr->r.stag);
	world_fini(&k.w);
}

static void registering_twice_fails(void **state)
{
	struct kernel k;

	kernel_init(&k);
	post_reg(&k, 1, k.mr->r.stag);
	post_reg(&k, 2, k.mr->r.stag);
	expect_cqe(k.w.p->s.scq, 1, WEFT_WC_SUCCESS);
	expect_cqe(k.w.p->s.scq, 2, WEFT_WC_LOC_PROT_ERR);
	peer_expect_terminate(k.w.p, 0, 0, 0x00, NULL, false);
	world_fini(&k.w);
}

static void a_user_region_cannot_be_invalidated(void **state)
{
	struct kernel k;

	kernel_init(&k);
	post_inv(&k, 2, 0, k.w.rw->r.stag);
	expect_cqe(k.w.p->s.scq, 2, WEFT_WC_LOC_PROT_ERR);
	assert_true(k.w.rw->r.valid);
	world_fini(&k.w);
}

/* The Write's octets are copied before their region is invalidated. */
static void invalidate_waits_for_the_write_before_it(void **state)
{
	struct kernel k;
	struct host_wr inv;

	kernel_init(&k);
	post_reg(&k, 1, k.mr->r.stag);
	memcpy(k.mr->mem, "write me", 8);
	inv = (struct host_wr){
		.wr_id = 3, .opcode = WEFT_WR_LOCAL_INV, .flags = SIG, .inv_stag = k.mr->r.stag,
	};
	side_write(&k.w.p->s, 2, SIG, k.mr, 0, 8, k.w.rw, 0);
	side_post(&k.w.p->s, &inv);
	side_write(&k.w.p->s, 4, SIG, k.w.rw, 0, 8, k.w.rw, 0);
	peer_run(k.w.p);
	assert_memory_equal(peer_expect(k.w.p, P_T | P_L, P_WRITE)->body, "write me", 8);
	peer_expect(k.w.p, P_T | P_L, P_WRITE);
	expect_cqe(k.w.p->s.scq, 1, WEFT_WC_SUCCESS);
	expect_cqe(k.w.p->s.scq, 2, WEFT_WC_SUCCESS);
	expect_cqe(k.w.p->s.scq, 3, WEFT_WC_SUCCESS);
	expect_cqe(k.w.p->s.scq, 4, WEFT_WC_SUCCESS);
	assert_false(k.mr->r.valid);
	world_fini(&k.w);
}

static void a_fenced_invalidate_waits_for_the_read_before_it(void **state)
{
	struct kernel k;

	kernel_init(&k);
	post_reg(&k, 1, k.mr->r.stag);
	side_read(&k.w.p->s, 2, SIG, k.mr, 0, 8, k.w.rw, 0);
	post_inv(&k, 3, WEFT_WR_FENCE, k.mr->r.stag);
	expect_cqe(k.w.p->s.scq, 1, WEFT_WC_SUCCESS);
	expect_no_cqe(k.w.p->s.scq);
	assert_true(k.mr->r.valid);
	peer_say(k.w.p, p_tagged(P_READ_RESP, true, k.mr->r.stag, WORLD_BASE, "readback", 8));
	expect_cqe(k.w.p->s.scq, 2, WEFT_WC_SUCCESS);
	expect_cqe(k.w.p->s.scq, 3, WEFT_WC_SUCCESS);
	assert_memory_equal(k.mr->mem, "readback", 8);
	assert_false(k.mr->r.valid);
	world_fini(&k.w);
}

/* Its slots and its completion wait for the Read, but nothing else does. */
static void a_local_request_completes_behind_the_read_before_it(void **state)
{
	struct kernel k;

	kernel_init(&k);
	side_read(&k.w.p->s, 1, SIG, k.w.rw, 0, 8, k.w.rw, 0);
	post_reg(&k, 2, k.mr->r.stag);
	assert_true(k.mr->r.valid);
	expect_no_cqe(k.w.p->s.scq);
	peer_say(k.w.p, p_tagged(P_READ_RESP, true, k.w.rw->r.stag, WORLD_BASE, NULL, 8));
	expect_cqe(k.w.p->s.scq, 1, WEFT_WC_SUCCESS);
	expect_cqe(k.w.p->s.scq, 2, WEFT_WC_SUCCESS);
	world_fini(&k.w);
}

/* On a completion, the user may refill the slots at once, with other lengths. */
static void post_longer(struct host_qp *qp, bool recv, const struct weft_cqe *e, void *arg)
{
	struct kernel *k = arg;
	const struct host_wr wr = {
		.wr_id = 5, .opcode = WEFT_WR_SEND, .flags = SIG,
		.inline_data = k->w.rw->mem, .inline_len = 40,
	};

	if (e->wr_id == 2)
		side_post(&k->w.p->s, &wr);
}

static void post_local(struct kernel *k, u64 wr_id, u8 opcode, u32 stag, u32 nslots)
{
	const struct host_wr wr = {
		.wr_id = wr_id, .opcode = opcode, .flags = SIG, .inv_stag = stag,
		.reg = { .stag = stag, .access = RW },
	};
	struct host_wqe w;

	host_wr_encode(&wr, &w);
	w.first.nslots = (u8)nslots;
	assert_true(host_post_raw(k->w.p->s.qp, &w, nslots));
}

static void slots_of_local_work_may_be_filled_within_the_run(void **state)
{
	struct peer_cfg c;
	struct kernel k;

	/* A walk over stale entries would never end. */
	alarm(30);
	peer_cfg_init(&c);
	c.dut_initiates = true;
	c.side.qp.kernel = true;
	c.side.qp.sq_slots = 4;
	world_init(&k.w, &c, WIRE_WHOLE);
	k.mr = host_mr_new_fast(&k.w.p->s.host, PD, WORLD_BASE, 64);
	k.w.p->s.scq->on_cqe = post_longer;
	k.w.p->s.scq->arg = &k;
	post_local(&k, 1, WEFT_WR_REG_MR, k.mr->r.stag, 1);
	post_local(&k, 2, WEFT_WR_LOCAL_INV, k.mr->r.stag, 2);
	side_send(&k.w.p->s, 3, SIG, k.w.rw, 0, 8);
	peer_run(k.w.p);
	peer_expect(k.w.p, P_L, P_SEND);
	assert_int_equal(peer_expect(k.w.p, P_L, P_SEND)->len, 40);
	expect_cqe(k.w.p->s.scq, 1, WEFT_WC_SUCCESS);
	expect_cqe(k.w.p->s.scq, 2, WEFT_WC_SUCCESS);
	expect_cqe(k.w.p->s.scq, 3, WEFT_WC_SUCCESS);
	expect_cqe(k.w.p->s.scq, 5, WEFT_WC_SUCCESS);
	world_fini(&k.w);
	alarm(0);
}

/* ---- the stage's memory ---- */

static void init_limited(struct world *w, s32 chunks)
{
	struct peer_cfg c;

	peer_cfg_init(&c);
	world_init(w, &c, WIRE_BYTES);
	w->p->s.qp->chunk_limit = chunks;
}

static void more_memory(struct world *w)
{
	w->p->s.qp->chunk_limit = -1;
	host_link_set_time(&w->p->s.link, w->p->s.link.now + 1);
	peer_run(w->p);
}

static void say_write(struct world *w)
{
	peer_say(w->p, p_tagged(P_WRITE, true, w->rw->r.stag, WORLD_BASE, "abcd", 4));
}

static void without_memory_for_the_stage_octets_wait_in_tcp(void **state)
{
	struct world w;

	init_limited(&w, 0);
	say_write(&w);
	peer_say(w.p, p_tagged(P_WRITE, true, w.rw->r.stag, WORLD_BASE + 4, "efgh", 4));
	world_expect_untouched(&w, NULL);
	assert_int_equal(w.p->s.link.nunread, 2 * 24);
	/* They are retried, and nothing is lost. */
	host_link_set_time(&w.p->s.link, 1);
	assert_int_equal(w.p->s.link.nunread, 2 * 24);
	more_memory(&w);
	assert_memory_equal(w.rw->mem, "abcdefgh", 8);
	assert_int_equal(w.p->s.link.nunread, 0);
	peer_expect_silence(w.p);
	world_fini(&w);
}

static void without_memory_in_mid_fpdu_the_rest_waits_in_tcp(void **state)
{
	u8 fill[60000];
	struct host_mr *mr;
	struct world w;

	init_limited(&w, 2);
	memset(fill, 'x', sizeof(fill));
	mr = host_mr_new(&w.p->s.host, PD, BASE, sizeof(fill), RW);
	peer_say(w.p, p_tagged(P_WRITE, true, mr->r.stag, BASE, fill, sizeof(fill)));
	say_write(&w);
	assert_int_equal(w.p->s.link.nunread, 60020 + 24 - 2 * WEFT_STAGE_CHUNK);
	world_expect_untouched(&w, NULL);
	more_memory(&w);
	assert_memory_equal(mr->mem, fill, sizeof(fill));
	assert_memory_equal(w.rw->mem, "abcd", 4);
	peer_expect_silence(w.p);
	world_fini(&w);
}

#define ENDS (WEFT_ACT_DISCONNECTED | WEFT_ACT_ENDED)

static void a_fin_is_seen_behind_octets_that_wait_for_memory(void **state)
{
	struct world w;

	init_limited(&w, 0);
	say_write(&w);
	peer_close(w.p);
	assert_int_equal(w.p->s.link.acts & ENDS, 0);
	more_memory(&w);
	assert_memory_equal(w.rw->mem, "abcd", 4);
	assert_int_equal(w.p->s.link.acts & ENDS, ENDS);
	world_fini(&w);
}

static void a_reset_is_seen_behind_octets_that_wait_for_memory(void **state)
{
	struct world w;

	init_limited(&w, 0);
	say_write(&w);
	host_link_reset(&w.p->s.link);
	assert_int_equal(w.p->s.link.acts & ENDS, 0);
	more_memory(&w);
	assert_memory_equal(w.rw->mem, "abcd", 4);
	assert_int_equal(w.p->s.link.acts & ENDS, WEFT_ACT_ENDED);
	world_expect_flushed(&w, 0);
	world_fini(&w);
}

/* The peer has closed; no memory comes. */
static void memory_is_waited_for_no_longer_than_for_an_end(void **state)
{
	struct world w;

	init_limited(&w, 0);
	w.p->s.link.core.cfg.close_ms = 1000;
	say_write(&w);
	/* While the peer lives, the wait is not limited. */
	host_link_set_time(&w.p->s.link, 5000);
	peer_close(w.p);
	host_link_set_time(&w.p->s.link, 5999);
	assert_int_equal(w.p->s.link.acts & ENDS, 0);
	host_link_set_time(&w.p->s.link, 6000);
	assert_int_equal(w.p->s.link.acts & ENDS, WEFT_ACT_ENDED);
	world_expect_flushed(&w, 0);
	world_expect_untouched(&w, NULL);
	world_fini(&w);
}

static void the_longest_fpdu_goes_through_the_stage(void **state)	/* MPA-65, MPA-69 */
{
	struct host_mr *mr;
	struct world w;
	u32 i;

	init_limited(&w, -1);
	mr = host_mr_new(&w.p->s.host, PD, BASE, 65535, RW);
	for (i = 0; i < 3; i++) {
		u8 fill[65535 - 14];

		memset(fill, 'a' + i, sizeof(fill));
		peer_say(w.p, p_tagged(P_WRITE, true, mr->r.stag, BASE, fill, sizeof(fill)));
		assert_memory_equal(mr->mem, fill, sizeof(fill));
		/* And most of it is returned at once. */
		assert_in_range(w.p->s.qp->chunks, 0, 1);
	}
	world_fini(&w);
}

/* ---- alternation ---- */

static void answers_and_own_work_take_turns(struct world *w)
{
	u32 i, reads = 0, sends = 0;
	struct pdu d;

	for (i = 1; i <= 8; i++)
		side_send(&w->p->s, i, SIG, w->rw, 0, 8);
	for (i = 1; i <= 8; i++)
		peer_add(w->p, p_read_req(i, i, 0, 8, w->rw->r.stag, WORLD_BASE));
	peer_flush(w->p);
	for (i = 0; i < 16; i++) {
		assert_true(peer_next(w->p, &d));
		if ((d.rdmap & 0x0F) == P_SEND)
			sends++;
		else
			reads++;
		/* Neither gets far ahead. */
		assert_in_range(reads + 2 - sends, 0, 4);
	}
	assert_int_equal(sends, 8);
	assert_int_equal(reads, 8);
}

static void a_blocked_queue_does_not_block_answers(struct world *w)
{
	u32 i;

	/* More Reads than ORD, a fenced Send: none of our work can be sent. */
	for (i = 0; i < 9; i++)
		side_read(&w->p->s, i, SIG, w->rw, 0, 8, w->rw, 0);
	side_send(&w->p->s, 9, SIG | WEFT_WR_FENCE, w->rw, 0, 8);
	peer_run(w->p);
	for (i = 0; i < 8; i++)
		peer_expect(w->p, P_L, P_READ_REQ);
	peer_expect_silence(w->p);
	for (i = 1; i <= 8; i++)
		peer_expect_alive(w->p, i, w->rw);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reg_mr_makes_a_region_usable_with_its_new_key),
		cmocka_unit_test(before_reg_mr_a_region_is_unusable),
		cmocka_unit_test(after_local_invalidate_a_region_is_unusable),
		cmocka_unit_test(registering_twice_fails),
		cmocka_unit_test(a_user_region_cannot_be_invalidated),
		cmocka_unit_test(invalidate_waits_for_the_write_before_it),
		cmocka_unit_test(a_fenced_invalidate_waits_for_the_read_before_it),
		cmocka_unit_test(a_local_request_completes_behind_the_read_before_it),
		cmocka_unit_test(slots_of_local_work_may_be_filled_within_the_run),
		cmocka_unit_test(without_memory_for_the_stage_octets_wait_in_tcp),
		cmocka_unit_test(without_memory_in_mid_fpdu_the_rest_waits_in_tcp),
		cmocka_unit_test(a_fin_is_seen_behind_octets_that_wait_for_memory),
		cmocka_unit_test(a_reset_is_seen_behind_octets_that_wait_for_memory),
		cmocka_unit_test(memory_is_waited_for_no_longer_than_for_an_end),
		cmocka_unit_test(the_longest_fpdu_goes_through_the_stage),
		CASE_INITIATOR(answers_and_own_work_take_turns),
		CASE_INITIATOR(a_blocked_queue_does_not_block_answers),
	};

	return RUN_TESTS("stacks: local work", tests);
}
