// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Memory windows: the access that a bind gives a peer, and how it ends. */
#include "world.h"

#define ATOMIC WEFT_ACCESS_REMOTE_ATOMIC
#define WRITE WEFT_ACCESS_REMOTE_WRITE
#define READ WEFT_ACCESS_REMOTE_READ
#define ALL_REMOTE (WRITE | READ | ATOMIC)
#define AT 96u				/* where windows begin in their region */
#define LEN 32u

/* Memory for windows, and a window of either type. */
struct panes {
	struct host_mr *mr, *one, *two;
	u32 msn;			/* the peer's next on queue 1 */
};

static struct host_mr *bindable(struct world *w, u32 pd, u32 access)
{
	struct host_mr *mr = host_mr_new(&w->p->s.host, pd, BASE, WORLD_LEN,
					 access | WEFT_ACCESS_MW_BIND);

	assert_non_null(mr);
	return mr;
}

static struct panes panes_of(struct world *w)
{
	struct host *h = &w->p->s.host;

	return (struct panes){
		.mr = bindable(w, PD, WEFT_ACCESS_LOCAL_WRITE),
		.one = host_window_new(h, PD, WEFT_REGION_WINDOW_1),
		.two = host_window_new(h, PD, WEFT_REGION_WINDOW_2),
		.msn = 1,
	};
}

static struct host_wr bind_wr(const struct host_mr *window, u32 key, const struct host_mr *mr,
			      u32 access)
{
	return (struct host_wr){
		.wr_id = 7, .opcode = WEFT_WR_BIND_MW, .flags = SIG,
		.bind = {
			.mw_stag = (window->r.stag & ~0xFFu) | key, .mr_lkey = mr->r.stag,
			.addr = mr->r.base + AT, .length = LEN, .access = access,
		},
	};
}

static void bind(struct world *w, const struct host_wr *wr)
{
	side_post(&w->p->s, wr);
	peer_run(w->p);
	assert_int_equal(expect_cqe(w->p->s.scq, 7, WEFT_WC_SUCCESS).opcode, WEFT_WCO_BIND_MW);
	peer_expect_silence(w->p);
}

static void bind_good(struct world *w, struct host_mr *window, u32 key, struct host_mr *mr,
		      u32 access)
{
	struct host_wr wr = bind_wr(window, key, mr, access);

	bind(w, &wr);
	assert_int_equal(window->r.stag, wr.bind.mw_stag);
}

static void bind_fails(struct world *w, struct host_wr wr)
{
	side_post(&w->p->s, &wr);
	peer_run(w->p);
	expect_cqe(w->p->s.scq, 7, WEFT_WC_MW_BIND_ERR);
	peer_expect_terminate(w->p, 0, 0, 0, NULL, false);
	expect_state(&w->p->s, WEFT_QPS_ERROR);
}

static void write_through(struct world *w, u32 stag, u64 to)
{
	peer_say(w->p, p_tagged(P_WRITE, true, stag, to, "window", 6));
}

static void refuses_write(struct world *w, u32 stag, u64 to, u8 code)
{
	struct pdu *d = p_tagged(P_WRITE, true, stag, to, "window", 6), copy = *d;

	peer_say(w->p, d);
	peer_expect_terminate(w->p, code == 0x02 ? 0 : 1, 1, code == 0x02 ? 2 : code, &copy, false);
}

/* ---- what a bound window allows ---- */

static void through(struct world *w, struct host_mr *window)
{
	struct panes *p = (struct panes *)w->p->s.scq->arg;
	u64 word;

	bind_good(w, window, 0x11, p->mr, ALL_REMOTE);
	assert_int_equal(p->mr->windows, 1);
	write_through(w, window->r.stag, BASE + AT + 3);
	assert_memory_equal(p->mr->mem + AT + 3, "window", 6);
	peer_say(w->p, p_read_req(1, 9, 0, 6, window->r.stag, BASE + AT + 3));
	assert_memory_equal(peer_expect(w->p, P_T | P_L, P_READ_RESP)->body, "window", 6);
	peer_say(w->p, p_atomic(2, 0, 1, window->r.stag, BASE + AT + 16, 5, 0, 0, ~0ull));
	peer_expect(w->p, P_L, P_ATOMIC_RESP);
	memcpy(&word, p->mr->mem + AT + 16, sizeof(word));
	assert_int_equal(word, 5);
	world_expect_untouched(w, NULL);
}

static void a_window_of_type_1_lets_a_peer_in(struct world *w)
{
	struct panes p = panes_of(w);

	w->p->s.scq->arg = &p;
	through(w, p.one);
}

static void a_window_of_type_2_lets_a_peer_in(struct world *w)
{
	struct panes p = panes_of(w);

	w->p->s.scq->arg = &p;
	through(w, p.two);
}

static void a_zero_based_window_begins_at_0(struct world *w)
{
	struct panes p = panes_of(w);

	bind_good(w, p.two, 1, p.mr, WRITE | WEFT_ACCESS_ZERO_BASED);
	write_through(w, p.two->r.stag, 2);
	assert_memory_equal(p.mr->mem + AT + 2, "window", 6);
	refuses_write(w, p.two->r.stag, BASE + AT, 0x01);
}

static void a_write_below_a_window_is_refused(struct world *w)
{
	struct panes p = panes_of(w);

	bind_good(w, p.one, 1, p.mr, WRITE);
	refuses_write(w, p.one->r.stag, BASE + AT - 1, 0x01);
	assert_int_equal(p.mr->mem[AT - 1], 0);
}

static void a_write_past_a_window_is_refused(struct world *w)
{
	struct panes p = panes_of(w);

	bind_good(w, p.one, 1, p.mr, WRITE);
	refuses_write(w, p.one->r.stag, BASE + AT + LEN - 5, 0x01);
	assert_int_equal(p.mr->mem[AT + LEN - 5], 0);
}

static void a_right_that_was_not_bound_is_refused(struct world *w)
{
	struct panes p = panes_of(w);

	bind_good(w, p.one, 1, p.mr, READ | ATOMIC);
	refuses_write(w, p.one->r.stag, BASE + AT, 0x02);
}

static void the_key_before_the_bind_is_refused(struct world *w)
{
	struct panes p = panes_of(w);
	u32 before = p.one->r.stag;

	bind_good(w, p.one, (before + 1) & 0xFF, p.mr, WRITE);
	refuses_write(w, before, BASE + AT, 0x00);
}

static void a_window_that_is_not_bound_is_refused(struct world *w)
{
	struct panes p = panes_of(w);

	refuses_write(w, p.one->r.stag, BASE + AT, 0x00);
}

static void a_window_is_no_local_memory(struct world *w)
{
	struct panes p = panes_of(w);

	bind_good(w, p.two, 1, p.mr, ALL_REMOTE);
	p.two->r.base = BASE + AT;
	side_post(&w->p->s, &(struct host_wr){
		.wr_id = 8, .opcode = WEFT_WR_SEND, .flags = SIG, .num_sge = 1,
		.sge = { { .addr = BASE + AT, .length = 4, .lkey = p.two->r.stag } },
	});
	peer_run(w->p);
	expect_cqe(w->p->s.scq, 8, WEFT_WC_LOC_PROT_ERR);
}

static void another_qp_has_no_use_of_a_window(struct world *w)
{
	struct panes p = panes_of(w);
	const struct weft_region *r = &p.one->r;

	bind_good(w, p.one, 1, p.mr, WRITE);
	assert_int_equal(weft_region_check(r, r->stag, PD, w->p->s.qp->core.id, BASE + AT, 1, WRITE),
			 WEFT_GRANTED);
	assert_int_equal(weft_region_check(r, r->stag, PD, w->p->s.qp->core.id + 1, BASE + AT, 1,
					   WRITE), WEFT_DENIED_ASSOC);
}

/* As another QP may see a window while its QP unbinds it. */
static void a_window_between_two_qps_is_nobodys(struct world *w)
{
	struct panes p = panes_of(w);
	struct weft_region *r = &p.two->r, *ends = NULL;
	u32 qp = w->p->s.qp->core.id;

	bind_good(w, p.two, 1, p.mr, WRITE);
	r->qp = 0;
	assert_int_equal(weft_region_check(r, r->stag, PD, qp + 1, BASE + AT, 1, WRITE),
			 WEFT_DENIED_ASSOC);
	w->p->s.qp->core.id = qp + 1;
	assert_int_equal(weft_region_invalidate(&w->p->s.qp->core, r->stag, false, &ends),
			 WEFT_DENIED_ASSOC);
	assert_null(ends);
	w->p->s.qp->core.id = qp;
	r->qp = qp;
}

/* ---- binds that fail ---- */

static void a_region_without_the_right_to_bind_fails_it(struct world *w)
{
	struct panes p = panes_of(w);

	p.mr->r.access &= ~WEFT_ACCESS_MW_BIND;
	bind_fails(w, bind_wr(p.one, 1, p.mr, READ));
	assert_int_equal(p.mr->windows, 0);
	assert_int_equal(p.one->r.qp, 0);
}

static void writing_through_a_window_needs_a_region_that_may_be_written(struct world *w)
{
	struct panes p = panes_of(w);

	p.mr->r.access &= ~WEFT_ACCESS_LOCAL_WRITE;
	bind_good(w, p.one, 1, p.mr, READ);
	bind_fails(w, bind_wr(p.two, 1, p.mr, ATOMIC));
}

static void a_window_past_its_region_fails(struct world *w)
{
	struct panes p = panes_of(w);
	struct host_wr wr = bind_wr(p.one, 1, p.mr, READ);

	wr.bind.length = WORLD_LEN - AT;
	bind(w, &wr);
	wr.bind.length++;
	bind_fails(w, wr);
}

static void a_window_across_the_wrap_fails(struct world *w)
{
	struct panes p = panes_of(w);
	struct host_wr wr = bind_wr(p.one, 1, p.mr, READ);

	wr.bind.length = ~0ull;
	bind_fails(w, wr);
}

static void a_window_over_another_pds_region_fails(struct world *w)
{
	struct panes p = panes_of(w);

	bind_fails(w, bind_wr(p.one, 1, bindable(w, OTHER_PD, RW), READ));
}

static void a_window_of_another_pd_fails(struct world *w)
{
	struct panes p = panes_of(w);

	bind_fails(w, bind_wr(host_window_new(&w->p->s.host, OTHER_PD, WEFT_REGION_WINDOW_1), 1,
			      p.mr, READ));
}

static void a_window_over_a_window_fails(struct world *w)
{
	struct panes p = panes_of(w);

	bind_good(w, p.one, 1, p.mr, ALL_REMOTE);
	bind_fails(w, bind_wr(p.two, 1, p.one, READ));
}

static void a_region_is_not_bound_as_a_window(struct world *w)
{
	struct panes p = panes_of(w);

	bind_fails(w, bind_wr(w->rw, w->rw->r.stag & 0xFF, p.mr, READ));
	assert_true(w->rw->r.valid);
}

static void an_unknown_window_fails(struct world *w)
{
	struct panes p = panes_of(w);
	struct host_wr wr = bind_wr(p.one, 1, p.mr, READ);

	wr.bind.mw_stag ^= 1u << 31;
	bind_fails(w, wr);
}

static void an_unknown_region_fails(struct world *w)
{
	struct panes p = panes_of(w);
	struct host_wr wr = bind_wr(p.one, 1, p.mr, READ);

	wr.bind.mr_lkey ^= 1u << 31;
	bind_fails(w, wr);
}

static void a_right_that_is_not_remote_fails_a_bind(struct world *w)
{
	struct panes p = panes_of(w);

	bind_fails(w, bind_wr(p.one, 1, p.mr, READ | WEFT_ACCESS_MW_BIND));
}

/* rdma-core's own tests of extended QPs bind with it, for a window that no peer may write to. */
static void a_local_right_is_no_remote_one(struct world *w)
{
	struct panes p = panes_of(w);

	bind_good(w, p.two, 0x11, p.mr, WEFT_ACCESS_LOCAL_WRITE);
	refuses_write(w, p.two->r.stag, BASE + AT, 0x02);
}

static void a_window_that_another_qp_has_bound_fails(struct world *w)
{
	struct panes p = panes_of(w);

	p.one->r.qp = w->p->s.qp->core.id + 1;
	bind_fails(w, bind_wr(p.one, 1, p.mr, READ));
	assert_int_equal(p.one->r.qp, w->p->s.qp->core.id + 1);
}

static void a_region_that_goes_gets_no_window(struct world *w)
{
	struct panes p = panes_of(w);

	p.mr->closing = true;
	bind_fails(w, bind_wr(p.one, 1, p.mr, READ));
	assert_int_equal(p.one->r.qp, 0);
}

/* ---- ends ---- */

static void a_bind_of_type_1_takes_the_place_of_the_one_before(struct world *w)
{
	struct panes p = panes_of(w);
	struct host_wr wr = bind_wr(p.one, 2, p.mr, WRITE);
	u32 first;

	bind_good(w, p.one, 1, p.mr, WRITE);
	first = p.one->r.stag;
	wr.bind.addr += 64;
	bind(w, &wr);
	assert_int_equal(p.mr->windows, 1);
	write_through(w, p.one->r.stag, BASE + AT + 64);
	assert_memory_equal(p.mr->mem + AT + 64, "window", 6);
	refuses_write(w, first, BASE + AT, 0x00);
}

static void a_bind_of_length_0_unbinds_type_1(struct world *w)
{
	struct panes p = panes_of(w);
	struct host_wr wr = bind_wr(p.one, 1, p.mr, WRITE);

	bind(w, &wr);
	wr.bind.length = 0;
	bind(w, &wr);
	assert_int_equal(p.mr->windows, 0);
	assert_int_equal(p.one->r.qp, 0);
	assert_null(w->p->s.qp->core.windows);
	refuses_write(w, p.one->r.stag, BASE + AT, 0x00);
}

static void type_2_is_not_bound_twice(struct world *w)
{
	struct panes p = panes_of(w);

	bind_good(w, p.two, 1, p.mr, WRITE);
	bind_fails(w, bind_wr(p.two, 2, p.mr, WRITE));
	assert_int_equal(p.mr->windows, 1);
}

static void type_2_is_not_bound_to_nothing(struct world *w)
{
	struct panes p = panes_of(w);
	struct host_wr wr = bind_wr(p.two, 1, p.mr, WRITE);

	wr.bind.length = 0;
	bind_fails(w, wr);
	assert_int_equal(p.two->r.qp, 0);
}

static void local_inv_ends_a_window_of_type_2(struct world *w)
{
	struct panes p = panes_of(w);

	bind_good(w, p.two, 1, p.mr, WRITE);
	side_post(&w->p->s, &(struct host_wr){ .wr_id = 8, .opcode = WEFT_WR_LOCAL_INV, .flags = SIG,
					       .inv_stag = p.two->r.stag });
	peer_run(w->p);
	expect_cqe(w->p->s.scq, 8, WEFT_WC_SUCCESS);
	assert_int_equal(p.mr->windows, 0);
	bind_good(w, p.two, 2, p.mr, WRITE);
	write_through(w, p.two->r.stag, BASE + AT);
	assert_memory_equal(p.mr->mem + AT, "window", 6);
	refuses_write(w, (p.two->r.stag & ~0xFFu) | 1, BASE + AT, 0x00);
}

static void local_inv_of_type_1_fails(struct world *w)
{
	struct panes p = panes_of(w);

	bind_good(w, p.one, 1, p.mr, WRITE);
	side_post(&w->p->s, &(struct host_wr){ .wr_id = 8, .opcode = WEFT_WR_LOCAL_INV, .flags = SIG,
					       .inv_stag = p.one->r.stag });
	peer_run(w->p);
	expect_cqe(w->p->s.scq, 8, WEFT_WC_LOC_PROT_ERR);
}

static void a_peer_invalidates_a_window_of_type_2(struct world *w)
{
	struct panes p = panes_of(w);
	struct pdu *d = p_send(P_SEND_INV, true, 1, 0, "done", 4);
	struct weft_cqe e;

	bind_good(w, p.two, 1, p.mr, WRITE);
	d->inv = p.two->r.stag;
	peer_say(w->p, d);
	e = expect_cqe(w->p->s.rcq, 0, WEFT_WC_SUCCESS);
	assert_true(e.flags & WEFT_CQE_INV);
	assert_int_equal(e.inv_stag, p.two->r.stag);
	assert_int_equal(p.mr->windows, 0);
	refuses_write(w, p.two->r.stag, BASE + AT, 0x00);
}

static void a_window_that_goes_is_unbound(struct world *w)
{
	struct panes p = panes_of(w);

	bind_good(w, p.two, 1, p.mr, WRITE);
	assert_ptr_equal(w->p->s.qp->core.windows, &p.two->r);
	weft_region_unbind(&p.two->r);
	assert_null(w->p->s.qp->core.windows);
	assert_int_equal(p.mr->windows, 0);
	assert_int_equal(p.two->r.qp, 0);
	refuses_write(w, p.two->r.stag, BASE + AT, 0x00);
}

static enum weft_denial use(const struct world *w, const struct host_mr *window)
{
	const struct weft_region *r = &window->r;

	return weft_region_check(r, r->stag, PD, w->p->s.qp->core.id, BASE + AT, 1, WRITE);
}

/* In whatever order windows are freed, invalidated and bound anew, the others stay. */
static void windows_end_one_by_one(struct world *w)
{
	struct panes p = panes_of(w);
	struct host_mr *more[] = {
		host_window_new(&w->p->s.host, PD, WEFT_REGION_WINDOW_2),
		host_window_new(&w->p->s.host, PD, WEFT_REGION_WINDOW_2),
	};

	bind_good(w, p.one, 1, p.mr, WRITE);
	bind_good(w, p.two, 1, p.mr, WRITE);
	bind_good(w, more[0], 1, p.mr, WRITE);
	bind_good(w, more[1], 1, p.mr, WRITE);
	weft_region_unbind(&p.two->r);
	bind_good(w, p.one, 2, p.mr, WRITE);
	weft_region_unbind(&more[1]->r);
	assert_int_equal(p.mr->windows, 2);
	assert_int_equal(use(w, p.one), WEFT_GRANTED);
	assert_int_equal(use(w, more[0]), WEFT_GRANTED);
	weft_region_unbind_all(&w->p->s.qp->core);
	assert_int_equal(p.mr->windows, 0);
	assert_null(w->p->s.qp->core.windows);
	assert_int_equal(use(w, p.one), WEFT_DENIED_STAG);
	assert_int_equal(use(w, more[0]), WEFT_DENIED_STAG);
}

/* A window bound for one peer must not answer the next: the QP keeps its number. */
static void a_reset_unbinds_all_windows(struct world *w)
{
	struct panes p = panes_of(w);
	struct weft_qpc *qp = &w->p->s.qp->core;
	u32 id = qp->id;

	bind_good(w, p.one, 1, p.mr, WRITE);
	bind_good(w, p.two, 1, p.mr, WRITE);
	host_link_forget(&w->p->s.link);
	weft_qpc_reset(qp);
	assert_int_equal(qp->id, id);
	assert_int_equal(use(w, p.one), WEFT_DENIED_STAG);
	assert_int_equal(use(w, p.two), WEFT_DENIED_STAG);
	assert_int_equal(p.mr->windows, 0);
	assert_int_equal(p.one->r.qp, 0);
	assert_int_equal(p.two->r.qp, 0);
}

/* Without CRC a Response is in the batch by reference when the bind is executed. */
static void a_bind_waits_for_responses_through_the_window(void **state)
{
	struct peer_cfg c;
	struct panes p;
	struct world w;
	struct host_wr wr;

	peer_cfg_init(&c);
	c.side.link.mpa.crc = false;
	c.side.link.batch = 64;
	c.dut_initiates = true;
	world_init(&w, &c, WIRE_WHOLE);
	p = panes_of(&w);
	wr = bind_wr(p.one, 1, p.mr, READ);
	wr.bind.length = 1024;
	bind(&w, &wr);
	peer_add(w.p, p_read_req(1, 9, 0, 1024, p.one->r.stag, BASE + AT));
	peer_deliver(w.p);
	wr.bind.length = 0;
	side_post(&w.p->s, &wr);
	peer_run(w.p);
	assert_int_equal(peer_expect(w.p, P_T | P_L, P_READ_RESP)->len, 1024);
	expect_cqe(w.p->s.scq, 7, WEFT_WC_SUCCESS);
	world_fini(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE_EXT(a_window_of_type_1_lets_a_peer_in),
		CASE_EXT(a_window_of_type_2_lets_a_peer_in),
		CASE_EXT(a_zero_based_window_begins_at_0),
		CASE_EXT(a_write_below_a_window_is_refused),
		CASE_EXT(a_write_past_a_window_is_refused),
		CASE_EXT(a_right_that_was_not_bound_is_refused),
		CASE_EXT(the_key_before_the_bind_is_refused),
		CASE_EXT(a_window_that_is_not_bound_is_refused),
		CASE_EXT(a_window_is_no_local_memory),
		CASE_EXT(another_qp_has_no_use_of_a_window),
		CASE_EXT(a_window_between_two_qps_is_nobodys),
		CASE_EXT(a_region_without_the_right_to_bind_fails_it),
		CASE_EXT(writing_through_a_window_needs_a_region_that_may_be_written),
		CASE_EXT(a_window_past_its_region_fails),
		CASE_EXT(a_window_across_the_wrap_fails),
		CASE_EXT(a_window_over_another_pds_region_fails),
		CASE_EXT(a_window_of_another_pd_fails),
		CASE_EXT(a_window_over_a_window_fails),
		CASE_EXT(a_region_is_not_bound_as_a_window),
		CASE_EXT(an_unknown_window_fails),
		CASE_EXT(an_unknown_region_fails),
		CASE_EXT(a_right_that_is_not_remote_fails_a_bind),
		CASE_EXT(a_local_right_is_no_remote_one),
		CASE_EXT(a_window_that_another_qp_has_bound_fails),
		CASE_EXT(a_region_that_goes_gets_no_window),
		CASE_EXT(a_bind_of_type_1_takes_the_place_of_the_one_before),
		CASE_EXT(a_bind_of_length_0_unbinds_type_1),
		CASE_EXT(type_2_is_not_bound_twice),
		CASE_EXT(type_2_is_not_bound_to_nothing),
		CASE_EXT(local_inv_ends_a_window_of_type_2),
		CASE_EXT(local_inv_of_type_1_fails),
		CASE_EXT(a_peer_invalidates_a_window_of_type_2),
		CASE_EXT(a_window_that_goes_is_unbound),
		CASE_EXT(windows_end_one_by_one),
		CASE_EXT(a_reset_unbinds_all_windows),
		cmocka_unit_test(a_bind_waits_for_responses_through_the_window),
	};

	return RUN_TESTS("stacks: memory windows", tests);
}
