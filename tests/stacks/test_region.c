// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Regions: STag numbers, one hold for all FPDUs of a run, who may register a region and who may
 * invalidate it, which rights a user may request. Access checks are in test_ddp.
 */
#include "test.h"

struct env {
	struct host host;
	struct host_cq *cq;
	struct host_qp *qp, *other;	/* of PD */
	struct host_qp *foreign;	/* of another */
};

static void env_init(struct env *e)
{
	struct host_qp_attr a = { .pd = PD, .sq_slots = 4 };

	host_init(&e->host, 0x123);
	a.scq = a.rcq = e->cq = host_cq_new(4);
	e->qp = host_qp_new(&e->host, &a);
	e->other = host_qp_new(&e->host, &a);
	a.pd = PD + 1;
	e->foreign = host_qp_new(&e->host, &a);
}

/* No holds are left: host_mr_free() asserts that. */
static void env_fini(struct env *e)
{
	host_fini(&e->host);
	host_cq_free(e->cq);
}

static struct weft_region *get(struct host_qp *qp, const struct host_mr *mr)
{
	struct weft_region *r = weft_region_get(&qp->core, qp->core.pd, mr->r.stag);

	assert_ptr_equal(r, &mr->r);
	return r;
}

static void put(struct host_qp *qp, struct host_mr *mr)
{
	weft_region_put(&qp->core, &mr->r);
}

/* ---- STag numbers ---- */

static void a_new_stag_is_as_random_as_its_bits(void **state)
{
	assert_int_equal(weft_region_new_stag(WEFT_REGION_USER, 0x12345678), 0x12345678);
	assert_int_equal(weft_region_new_stag(WEFT_REGION_USER, 0xFFFFFFFF), 0xFFFFFFFF);
	assert_int_equal(weft_region_new_stag(WEFT_REGION_USER, 0x00000100), 0x00000100);
}

static void a_fast_regions_key_is_left_to_its_consumer(void **state)
{
	assert_int_equal(weft_region_new_stag(WEFT_REGION_FAST, 0x12345678), 0x12345600);
	assert_int_equal(weft_region_new_stag(WEFT_REGION_FAST, 0x000001FF), 0x00000100);
}

/* STag 0 is the local DMA lkey, and a consumer may choose any key for index 0. */
static void index_0_is_no_regions(void **state)
{
	static const u32 drawn[] = { 0, 1, 0x80, 0xFF };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(drawn); i++) {
		assert_int_equal(weft_region_new_stag(WEFT_REGION_USER, drawn[i]), 0);
		assert_int_equal(weft_region_new_stag(WEFT_REGION_FAST, drawn[i]), 0);
	}
}

/* ---- one hold a run ---- */

static void one_hold_serves_a_whole_run(void **state)
{
	struct host_mr *mr;
	struct env e;
	u32 i;

	env_init(&e);
	mr = host_mr_new(&e.host, PD, BASE, 64, RW);
	for (i = 1; i <= 100; i++) {
		get(e.qp, mr);
		get(e.qp, mr);
		assert_int_equal(host_mr_uses(mr), 2);
		put(e.qp, mr);
		put(e.qp, mr);
	}
	assert_int_equal(mr->finds, 1);
	assert_int_equal(mr->holders, 1);
	weft_region_end_run(&e.qp->core);
	assert_int_equal(mr->holders, 0);
	get(e.qp, mr);
	assert_int_equal(mr->finds, 2);
	put(e.qp, mr);
	env_fini(&e);
}

/* Its owner would wait for the end of an unrelated run. */
static void a_region_of_another_pd_is_not_held_for_a_run(void **state)
{
	struct host_mr *mr, *own;
	struct env e;

	env_init(&e);
	own = host_mr_new(&e.host, PD, BASE, 64, RW);
	mr = host_mr_new(&e.host, PD + 1, BASE, 64, RW);
	get(e.qp, own);
	put(e.qp, own);
	get(e.qp, mr);
	assert_int_equal(weft_region_check(&mr->r, mr->r.stag, PD, e.qp->core.id, BASE, 1, 0),
			 WEFT_DENIED_ASSOC);
	put(e.qp, mr);
	assert_int_equal(mr->holders, 0);
	/* The QP's hold on its own region remains. */
	assert_ptr_equal(e.qp->core.hold.region, &own->r);
	assert_int_equal(own->finds, 1);
	/* An SRQ's receives are of the SRQ's PD. */
	assert_ptr_equal(weft_region_get(&e.qp->core, PD + 1, mr->r.stag), &mr->r);
	put(e.qp, mr);
	assert_int_equal(mr->holders, 1);
	env_fini(&e);
}

static void a_run_that_held_nothing_ends(void **state)
{
	struct env e;

	env_init(&e);
	weft_region_end_run(&e.qp->core);
	assert_null(weft_region_get(&e.qp->core, PD, 0x77777700));
	weft_region_end_run(&e.qp->core);
	assert_null(e.qp->core.hold.region);
	env_fini(&e);
}

/* FPDUs that TCP has not taken yet outlast the run: each use has a hold of its own. */
static void uses_that_outlast_their_run_hold_the_region(void **state)
{
	struct host_mr *mr;
	struct env e;
	u32 uses, i;

	env_init(&e);
	mr = host_mr_new(&e.host, PD, BASE, 64, RW);
	for (uses = 0; uses < 5; uses++) {
		for (i = 0; i < uses + 1; i++)
			get(e.qp, mr);
		put(e.qp, mr);
		weft_region_end_run(&e.qp->core);
		assert_int_equal(mr->holders, uses);
		weft_region_end_run(&e.qp->core);
		assert_int_equal(mr->holders, uses);
		for (i = 0; i < uses; i++)
			put(e.qp, mr);
		assert_int_equal(mr->holders, 0);
	}
	env_fini(&e);
}

/* A use of the last run is put in this run, which holds the region, too. */
static void a_late_put_and_a_new_hold_do_not_meet(void **state)
{
	struct host_mr *mr;
	struct env e;

	env_init(&e);
	mr = host_mr_new(&e.host, PD, BASE, 64, RW);
	get(e.qp, mr);
	weft_region_end_run(&e.qp->core);
	get(e.qp, mr);
	assert_int_equal(mr->holders, 2);
	put(e.qp, mr);
	assert_int_equal(host_mr_uses(mr), 1);
	put(e.qp, mr);
	assert_int_equal(host_mr_uses(mr), 0);
	/* The late one had a hold of its own. */
	assert_int_equal(mr->holders, 1);
	weft_region_end_run(&e.qp->core);
	assert_int_equal(mr->holders, 0);
	env_fini(&e);
}

static void the_hold_goes_over_to_the_region_used_last(void **state)
{
	struct host_mr *a, *b;
	struct env e;

	env_init(&e);
	a = host_mr_new(&e.host, PD, BASE, 64, RW);
	b = host_mr_new(&e.host, PD, BASE, 64, RW);
	get(e.qp, a);
	get(e.qp, b);
	assert_int_equal(host_mr_uses(a), 1);
	get(e.qp, a);
	assert_int_equal(host_mr_uses(a), 2);
	assert_int_equal(host_mr_uses(b), 1);
	/* The hold is a's: a put of b does not release it. */
	put(e.qp, b);
	assert_int_equal(b->holders, 0);
	assert_int_equal(host_mr_uses(a), 2);
	put(e.qp, a);
	put(e.qp, a);
	assert_int_equal(host_mr_uses(a), 0);
	assert_int_equal(a->holders, 1);
	weft_region_end_run(&e.qp->core);
	assert_int_equal(a->holders, 0);
	env_fini(&e);
}

/* Whatever the number of uses when the hold passes on: none, one, several. */
static void a_hold_that_goes_over_leaves_as_many_as_uses(void **state)
{
	struct host_mr *a, *b;
	struct env e;
	u32 uses, i;

	env_init(&e);
	a = host_mr_new(&e.host, PD, BASE, 64, RW);
	b = host_mr_new(&e.host, PD, BASE, 64, RW);
	for (uses = 0; uses < 4; uses++) {
		for (i = 0; i < uses + 1; i++)
			get(e.qp, a);
		put(e.qp, a);
		get(e.qp, b);
		assert_int_equal(a->holders, uses);
		for (i = 0; i < uses; i++)
			put(e.qp, a);
		assert_int_equal(a->holders, 0);
		put(e.qp, b);
		assert_int_equal(b->holders, 1);
	}
	env_fini(&e);
}

static void an_unknown_stag_leaves_the_hold_where_it_is(void **state)
{
	struct host_mr *mr;
	struct env e;

	env_init(&e);
	mr = host_mr_new(&e.host, PD, BASE, 64, RW);
	get(e.qp, mr);
	put(e.qp, mr);
	assert_null(weft_region_get(&e.qp->core, PD, mr->r.stag ^ 0x80000000));
	get(e.qp, mr);
	put(e.qp, mr);
	assert_int_equal(mr->finds, 1);
	env_fini(&e);
}

/* The lookup in the table decides about a region that its host takes out of use. */
static void a_held_region_that_is_gone_is_looked_up_again(void **state)
{
	struct host_mr *mr;
	struct env e;

	env_init(&e);
	mr = host_mr_new(&e.host, PD, BASE, 64, RW);
	get(e.qp, mr);
	put(e.qp, mr);
	mr->r.valid = false;
	get(e.qp, mr);
	assert_int_equal(mr->finds, 2);
	put(e.qp, mr);
	env_fini(&e);
}

static void a_wrong_key_is_looked_up_again(void **state)
{
	struct host_mr *mr;
	struct env e;

	env_init(&e);
	mr = host_mr_new(&e.host, PD, BASE, 64, RW);
	get(e.qp, mr);
	put(e.qp, mr);
	assert_ptr_equal(weft_region_get(&e.qp->core, PD, mr->r.stag ^ 1), &mr->r);
	assert_int_equal(mr->finds, 2);
	put(e.qp, mr);
	env_fini(&e);
}

static void each_qp_holds_for_itself(void **state)
{
	struct host_mr *mr;
	struct env e;

	env_init(&e);
	mr = host_mr_new(&e.host, PD, BASE, 64, RW);
	get(e.qp, mr);
	get(e.other, mr);
	assert_int_equal(mr->holders, 2);
	put(e.qp, mr);
	weft_region_end_run(&e.qp->core);
	assert_int_equal(mr->holders, 1);
	assert_int_equal(host_mr_uses(mr), 1);
	put(e.other, mr);
	env_fini(&e);
}

/* It is in no table, so that holding or dropping it would access wild memory. */
static void stag_0_is_all_memory_for_a_kernel_consumer_alone(void **state)
{
	struct weft_region dma = { .len = ~0ull, .valid = true, .access = WEFT_ACCESS_LOCAL_WRITE };
	struct host_mr *mr;
	struct env e;

	env_init(&e);
	mr = host_mr_new(&e.host, PD, BASE, 64, RW);
	assert_null(weft_region_get(&e.qp->core, PD, 0));
	e.qp->core.dma = &dma;
	get(e.qp, mr);
	assert_ptr_equal(weft_region_get(&e.qp->core, PD, 0), &dma);
	assert_int_equal(e.qp->core.hold.uses, 1);
	weft_region_put(&e.qp->core, &dma);
	assert_int_equal(e.qp->core.hold.uses, 1);
	put(e.qp, mr);
	assert_int_equal(mr->finds, 1);
	assert_null(weft_region_get(&e.other->core, PD, 0));
	env_fini(&e);
}

static void one_lookup_serves_all_writes_that_come_together(void **state)
{
	struct host_mr *from, *to;
	struct pair_cfg c;
	struct pair p;
	u32 i;

	pair_cfg_init(&c);
	c.cut = WIRE_WHOLE;
	pair_init(&p, &c);
	from = host_mr_new(&p.s[0].host, PD, BASE, 64, RW);
	to = host_mr_new(&p.s[1].host, PD, BASE, 64, RW);
	pair_run(&p);
	for (i = 0; i < 8; i++)
		side_write(&p.s[0], i, SIG, from, i, 1, to, i);
	pair_run(&p);
	assert_int_equal(drain_cq(p.s[0].scq), 8);
	assert_int_equal(from->finds, 1);
	assert_int_equal(to->finds, 1);
	pair_fini(&p);
}

/* ---- invalidating ---- */

/* To the end, which requires that no other QP holds it. */
static enum weft_denial invalidate_stag(struct host_qp *qp, u32 stag, bool peer)
{
	struct weft_region **ends = &qp->core.tx_ends;
	enum weft_denial d = weft_region_invalidate(&qp->core, stag, peer, ends);

	assert_true(!*ends || d == WEFT_GRANTED);
	assert_true(weft_region_has_ended(&qp->core, ends));
	assert_null(*ends);
	return d;
}

static enum weft_denial invalidate(struct host_qp *qp, const struct host_mr *mr)
{
	return invalidate_stag(qp, mr->r.stag, false);
}

static enum weft_denial peer_invalidates(struct host_qp *qp, const struct host_mr *mr)
{
	return invalidate_stag(qp, mr->r.stag, true);
}

static void a_peer_invalidates_over_the_qp_alone_that_registered(void **state)
{
	struct host_mr *mr;
	struct env e;

	env_init(&e);
	mr = host_mr_new_fast(&e.host, PD, BASE, 64);
	host_mr_bind(mr, e.qp, RW);
	assert_int_equal(peer_invalidates(e.other, mr), WEFT_DENIED_ASSOC);
	assert_int_equal(peer_invalidates(e.foreign, mr), WEFT_DENIED_ASSOC);
	assert_true(mr->r.valid);
	assert_int_equal(peer_invalidates(e.qp, mr), WEFT_GRANTED);
	assert_false(mr->r.valid);
	assert_int_equal(peer_invalidates(e.qp, mr), WEFT_DENIED_STAG);
	assert_int_equal(mr->holders, 0);
	env_fini(&e);
}

/* Like RTRS' server, whose chunks pass from QP to QP. */
static void a_consumer_invalidates_over_any_qp_of_the_pd(void **state)
{
	struct host_mr *mr;
	struct env e;

	env_init(&e);
	mr = host_mr_new_fast(&e.host, PD, BASE, 64);
	host_mr_bind(mr, e.qp, RW);
	assert_int_equal(invalidate(e.foreign, mr), WEFT_DENIED_ASSOC);
	assert_true(mr->r.valid);
	assert_int_equal(invalidate(e.other, mr), WEFT_GRANTED);
	assert_false(mr->r.valid);
	assert_int_equal(mr->r.qp, 0);
	assert_int_equal(invalidate(e.qp, mr), WEFT_DENIED_STAG);
	assert_int_equal(mr->holders, 0);
	env_fini(&e);
}

/* ---- and others that hold the region ---- */

static enum weft_denial access_of(struct host_qp *qp, const struct weft_region *r, u32 stag)
{
	return weft_region_check(r, stag, PD, qp->core.id, BASE, 1, WEFT_ACCESS_REMOTE_WRITE);
}

static void a_region_ends_when_others_have_let_go(void **state)
{
	struct weft_region **ends;
	struct host_mr *mr;
	struct env e;
	u32 stag;

	env_init(&e);
	mr = host_mr_new_fast(&e.host, PD, BASE, 64);
	host_mr_bind(mr, e.qp, RW);
	stag = mr->r.stag;
	ends = &e.qp->core.tx_ends;
	assert_int_equal(access_of(e.other, get(e.other, mr), stag), WEFT_GRANTED);
	assert_int_equal(weft_region_invalidate(&e.qp->core, stag, false, ends), WEFT_GRANTED);
	assert_ptr_equal(*ends, &mr->r);
	/* It is not used by anything new. */
	assert_int_equal(access_of(e.other, &mr->r, stag), WEFT_DENIED_STAG);
	assert_false(weft_region_has_ended(&e.qp->core, ends));
	assert_true(e.qp->try_again);
	assert_ptr_equal(*ends, &mr->r);
	put(e.other, mr);
	assert_false(weft_region_has_ended(&e.qp->core, ends));
	weft_region_end_run(&e.other->core);
	assert_true(weft_region_has_ended(&e.qp->core, ends));
	assert_null(*ends);
	assert_int_equal(mr->holders, 0);
	env_fini(&e);
}

static void ones_own_run_does_not_hold_up_its_end(void **state)
{
	struct host_mr *mr;
	struct env e;

	env_init(&e);
	mr = host_mr_new_fast(&e.host, PD, BASE, 64);
	host_mr_bind(mr, e.qp, RW);
	get(e.qp, mr);
	put(e.qp, mr);
	assert_int_equal(invalidate(e.qp, mr), WEFT_GRANTED);
	assert_int_equal(mr->holders, 0);
	get(e.qp, mr);
	put(e.qp, mr);
	host_mr_bind(mr, e.qp, RW);
	assert_false(e.qp->try_again);
	env_fini(&e);
}

/* Otherwise each would wait for the other. */
static void of_two_that_invalidate_a_region_one_does(void **state)
{
	struct host_mr *mr;
	struct env e;
	u32 stag, qp;

	env_init(&e);
	mr = host_mr_new_fast(&e.host, PD, BASE, 64);
	host_mr_bind(mr, e.qp, RW);
	stag = mr->r.stag;
	qp = mr->r.qp;
	assert_int_equal(weft_region_invalidate(&e.qp->core, stag, false, &e.qp->core.tx_ends),
			 WEFT_GRANTED);
	/* The second looked while the first was about to clear it. */
	mr->r.valid = true;
	assert_int_equal(weft_region_invalidate(&e.other->core, stag, false,
						&e.other->core.tx_ends), WEFT_DENIED_STAG);
	assert_null(e.other->core.tx_ends);
	mr->r.valid = false;
	assert_int_not_equal(mr->r.qp, qp);
	assert_true(weft_region_has_ended(&e.qp->core, &e.qp->core.tx_ends));
	env_fini(&e);
}

static void a_region_that_others_hold_is_not_registered(void **state)
{
	struct host_mr *mr;
	struct weft_wr_reg wr;
	struct env e;

	env_init(&e);
	mr = host_mr_new_fast(&e.host, PD, BASE, 64);
	wr = (struct weft_wr_reg){ .stag = mr->r.stag ^ 1, .access = RW };
	get(e.other, mr);
	put(e.other, mr);
	assert_int_equal(weft_region_register(&e.qp->core, &wr), WEFT_DENIED_SHARED);
	assert_true(e.qp->try_again);
	assert_false(mr->r.valid);
	assert_int_not_equal(mr->r.stag, wr.stag);
	assert_int_equal(mr->r.qp, 0);
	weft_region_end_run(&e.other->core);
	assert_int_equal(weft_region_register(&e.qp->core, &wr), WEFT_GRANTED);
	assert_int_equal(mr->r.stag, wr.stag);
	env_fini(&e);
}

/* ---- a region that is withdrawn ---- */

static void a_withdrawn_region_is_refused(void **state)
{
	struct host_mr *mr;
	struct env e;

	env_init(&e);
	mr = host_mr_new_fast(&e.host, PD, BASE, 64);
	host_mr_bind(mr, e.qp, RW);
	assert_int_equal(access_of(e.other, get(e.other, mr), mr->r.stag), WEFT_GRANTED);
	weft_region_withdraw(&mr->r);
	assert_int_equal(access_of(e.other, &mr->r, mr->r.stag), WEFT_DENIED_STAG);
	put(e.other, mr);
	weft_region_end_run(&e.other->core);
	env_fini(&e);
}

/* As if dereg_mr arrived while REG_MR is in the queue. */
static void a_withdrawn_region_is_not_registered(void **state)
{
	struct weft_wr_reg wr;
	struct host_mr *mr;
	struct env e;

	env_init(&e);
	mr = host_mr_new_fast(&e.host, PD, BASE, 64);
	wr = (struct weft_wr_reg){ .stag = mr->r.stag, .access = RW };
	weft_region_withdraw(&mr->r);
	assert_int_equal(weft_region_register(&e.qp->core, &wr), WEFT_DENIED_STAG);
	assert_false(mr->r.valid);
	assert_int_equal(mr->holders, 0);
	env_fini(&e);
}

/* Its memory would change under those that use it. */
static void others_that_hold_a_withdrawn_region_are_waited_for(void **state)
{
	struct weft_region **ends;
	struct weft_wr_reg wr;
	struct host_mr *mr;
	struct env e;

	env_init(&e);
	mr = host_mr_new_fast(&e.host, PD, BASE, 64);
	host_mr_bind(mr, e.qp, RW);
	wr = (struct weft_wr_reg){ .stag = mr->r.stag, .access = RW };
	ends = &e.qp->core.tx_ends;
	get(e.other, mr);
	assert_int_equal(weft_region_invalidate(&e.qp->core, mr->r.stag, false, ends),
			 WEFT_GRANTED);
	weft_region_withdraw(&mr->r);
	assert_false(weft_region_has_ended(&e.qp->core, ends));
	assert_int_equal(weft_region_register(&e.qp->core, &wr), WEFT_DENIED_SHARED);
	put(e.other, mr);
	weft_region_end_run(&e.other->core);
	assert_true(weft_region_has_ended(&e.qp->core, ends));
	assert_int_equal(weft_region_register(&e.qp->core, &wr), WEFT_DENIED_STAG);
	assert_int_equal(mr->holders, 0);
	env_fini(&e);
}

/* ---- what may be invalidated ---- */

/* QP numbers and PD numbers may be equal: a region has both. */
static void a_region_of_another_pd_is_not_invalidated(void **state)
{
	struct host_mr *mr;
	struct env e;

	env_init(&e);
	mr = host_mr_new_fast(&e.host, PD, BASE, 64);
	host_mr_bind(mr, e.qp, RW);
	e.foreign->core.id = e.qp->core.id;
	assert_int_equal(peer_invalidates(e.foreign, mr), WEFT_DENIED_ASSOC);
	assert_true(mr->r.valid);
	env_fini(&e);
}

static void only_a_fast_registered_region_is_invalidated(void **state)
{
	static const u8 kinds[] = { WEFT_REGION_USER, WEFT_REGION_WINDOW_1, WEFT_REGION_DMA };
	struct host_mr *mr;
	struct env e;
	u32 i;

	env_init(&e);
	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		mr = host_mr_new(&e.host, PD, BASE, 64, RW);
		mr->r.kind = kinds[i];
		assert_int_equal(invalidate(e.qp, mr), weft_region_is_window(&mr->r) ?
				 WEFT_DENIED_ASSOC : WEFT_DENIED_ACCESS);
		mr->r.qp = e.qp->core.id;
		assert_int_equal(invalidate(e.qp, mr), WEFT_DENIED_ACCESS);
		assert_true(mr->r.valid);
		assert_int_equal(mr->holders, 0);
	}
	env_fini(&e);
}

static void a_wrong_key_or_an_unknown_stag_invalidates_nothing(void **state)
{
	struct host_mr *mr;
	struct env e;

	env_init(&e);
	mr = host_mr_new_fast(&e.host, PD, BASE, 64);
	host_mr_bind(mr, e.qp, RW);
	assert_int_equal(invalidate_stag(e.qp, mr->r.stag ^ 1, false), WEFT_DENIED_STAG);
	assert_int_equal(invalidate_stag(e.qp, mr->r.stag ^ 0x80000000, false), WEFT_DENIED_STAG);
	assert_true(mr->r.valid);
	assert_int_equal(mr->holders, 0);
	env_fini(&e);
}

/* The local DMA lkey is not in the table: it can neither be invalidated nor registered. */
static void stag_0_is_neither_invalidated_nor_registered(void **state)
{
	struct weft_region dma = { .pd = PD, .len = ~0ull, .valid = true };
	const struct weft_wr_reg wr = { .access = RW };
	struct env e;

	env_init(&e);
	e.qp->core.dma = &dma;
	assert_int_equal(invalidate_stag(e.qp, 0, false), WEFT_DENIED_STAG);
	assert_int_equal(weft_region_register(&e.qp->core, &wr), WEFT_DENIED_STAG);
	assert_true(dma.valid);
	env_fini(&e);
}

/* ---- registering ---- */

static enum weft_denial reg(struct host_qp *qp, u32 stag, u32 access)
{
	const struct weft_wr_reg wr = { .stag = stag, .access = access };

	return weft_region_register(&qp->core, &wr);
}

static void registering_sets_key_rights_and_owner(void **state)
{
	struct host_mr *mr;
	struct env e;
	u32 stag;

	env_init(&e);
	mr = host_mr_new_fast(&e.host, PD, BASE, 64);
	stag = mr->r.stag | 0x5C;
	assert_int_equal(reg(e.qp, stag, WEFT_ACCESS_REMOTE_READ), WEFT_GRANTED);
	assert_int_equal(weft_region_check(&mr->r, stag, PD, e.qp->core.id, BASE, 64,
					   WEFT_ACCESS_REMOTE_READ), WEFT_GRANTED);
	assert_int_equal(weft_region_check(&mr->r, stag, PD, e.qp->core.id, BASE, 64,
					   WEFT_ACCESS_REMOTE_WRITE), WEFT_DENIED_ACCESS);
	assert_int_equal(weft_region_check(&mr->r, stag ^ 1, PD, e.qp->core.id, BASE, 64, 0),
			 WEFT_DENIED_STAG);
	assert_int_equal(weft_region_check(&mr->r, stag, PD, e.other->core.id, BASE, 64, 0),
			 WEFT_GRANTED);
	assert_int_equal(weft_region_check(&mr->r, stag, PD + 1, e.qp->core.id, BASE, 64, 0),
			 WEFT_DENIED_ASSOC);
	assert_int_equal(mr->holders, 0);
	env_fini(&e);
}

static void a_region_goes_to_the_qp_that_registers_it_next(void **state)
{
	struct host_mr *mr;
	struct env e;

	env_init(&e);
	mr = host_mr_new_fast(&e.host, PD, BASE, 64);
	assert_int_equal(reg(e.qp, mr->r.stag, RW), WEFT_GRANTED);
	assert_int_equal(invalidate(e.qp, mr), WEFT_GRANTED);
	assert_int_equal(reg(e.other, mr->r.stag, RW), WEFT_GRANTED);
	assert_int_equal(mr->r.qp, e.other->core.id);
	assert_int_equal(peer_invalidates(e.qp, mr), WEFT_DENIED_ASSOC);
	assert_int_equal(peer_invalidates(e.other, mr), WEFT_GRANTED);
	env_fini(&e);
}

static void refused(struct host_qp *qp, struct host_mr *mr, enum weft_denial why)
{
	const struct weft_region was = mr->r;

	assert_int_equal(reg(qp, mr->r.stag, WEFT_ACCESS_REMOTE_WRITE), why);
	assert_memory_equal(&mr->r, &was, sizeof(was));
	assert_int_equal(mr->holders, 0);
}

static void what_may_not_be_registered_stays_as_it_is(void **state)
{
	struct host_mr *user, *fast, *bare;
	struct env e;

	env_init(&e);
	user = host_mr_new(&e.host, PD, BASE, 64, 0);
	refused(e.qp, user, WEFT_DENIED_STAG);
	/* Not for a user's region that is being removed either. */
	user->r.valid = false;
	refused(e.qp, user, WEFT_DENIED_STAG);
	fast = host_mr_new_fast(&e.host, PD, BASE, 64);
	refused(e.foreign, fast, WEFT_DENIED_ASSOC);
	host_mr_bind(fast, e.qp, 0);
	refused(e.qp, fast, WEFT_DENIED_STAG);
	refused(e.other, fast, WEFT_DENIED_STAG);
	bare = host_mr_new_fast(&e.host, PD, BASE, 64);
	bare->unmapped = true;
	refused(e.qp, bare, WEFT_DENIED_BOUNDS);
	assert_int_equal(reg(e.qp, 0x77777700, RW), WEFT_DENIED_STAG);
	env_fini(&e);
}

/* ---- what a user may request ---- */

#define LAST (~0ull)			/* octet of the address space */

static int ask_access(u32 access)
{
	return weft_region_check_request(BASE, 64, BASE, access);
}

static int ask_range(u64 start, u64 len, u64 iova)
{
	return weft_region_check_request(start, len, iova, RW);
}

static void an_access_bit_that_is_not_known_is_not_supported(void **state)
{
	static const u32 unknown = ~(0x3Fu | WEFT_ACCESS_OPTIONAL);
	u32 bit;

	for (bit = 0; bit < 32; bit++)
		if (unknown >> bit & 1)
			assert_int_equal(ask_access(1u << bit | RW), -EOPNOTSUPP);
	/* Reported whatever else is wrong: a later version may support the right. */
	assert_int_equal(ask_access(1u << 31 | WEFT_ACCESS_REMOTE_WRITE), -EOPNOTSUPP);
	assert_int_equal(weft_region_check_request(BASE, 0, BASE, 1u << 6), -EOPNOTSUPP);
}

/* IB_UVERBS_ACCESS_OPTIONAL_RANGE is bits 20 to 29. */
static void optional_access_bits_are_ignored(void **state)
{
	u32 bit;

	for (bit = 20; bit < 30; bit++) {
		assert_int_equal(ask_access(1u << bit), 0);
		assert_int_equal(ask_access(1u << bit | RW), 0);
		assert_int_equal(ask_access(1u << bit | WEFT_ACCESS_REMOTE_WRITE), -EINVAL);
	}
}

static void a_dmabuf_has_no_atomics(void **state)
{
	assert_int_equal(weft_region_check_dmabuf(0, 64, BASE, RW), 0);
	assert_int_equal(weft_region_check_dmabuf(0, 64, BASE, RW | WEFT_ACCESS_REMOTE_ATOMIC),
			 -EOPNOTSUPP);
	assert_int_equal(weft_region_check_dmabuf(0, 64, BASE, RW | WEFT_ACCESS_MW_BIND),
			 -EOPNOTSUPP);
	assert_int_equal(weft_region_check_dmabuf(0, 0, BASE, RW), -EINVAL);
}

static void remote_write_requires_local_write(void **state)	/* RFC 5040 8.1.1 */
{
	static const u32 needs[] = {
		WEFT_ACCESS_REMOTE_WRITE, WEFT_ACCESS_REMOTE_ATOMIC, WEFT_ACCESS_REMOTE,
		WEFT_ACCESS_REMOTE_WRITE | WEFT_ACCESS_REMOTE_READ,
	};
	static const u32 free_of_it[] = {
		0, WEFT_ACCESS_REMOTE_READ, WEFT_ACCESS_MW_BIND, WEFT_ACCESS_ZERO_BASED,
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(needs); i++) {
		assert_int_equal(ask_access(needs[i]), -EINVAL);
		assert_int_equal(ask_access(needs[i] | WEFT_ACCESS_LOCAL_WRITE), 0);
	}
	for (i = 0; i < ARRAY_SIZE(free_of_it); i++) {
		assert_int_equal(ask_access(free_of_it[i]), 0);
		assert_int_equal(ask_access(free_of_it[i] | WEFT_ACCESS_LOCAL_WRITE), 0);
	}
}

static void a_region_of_no_octets_is_refused(void **state)
{
	assert_int_equal(ask_range(BASE, 0, BASE), -EINVAL);
	assert_int_equal(ask_range(0, 0, 0), -EINVAL);
	assert_int_equal(ask_range(BASE, 1, BASE), 0);
}

static void a_start_across_the_wrap_is_refused(void **state)
{
	assert_int_equal(ask_range(LAST - 15, 17, BASE), -EINVAL);
	assert_int_equal(ask_range(BASE, LAST, 0), -EINVAL);
	assert_int_equal(ask_range(LAST, LAST, 0), -EINVAL);
}

static void an_iova_across_the_wrap_is_refused(void **state)
{
	assert_int_equal(ask_range(BASE, 17, LAST - 15), -EINVAL);
	assert_int_equal(ask_range(0, LAST, BASE), -EINVAL);
	assert_int_equal(ask_range(BASE, 64, 0), 0);
}

/* No memory can be there; a region that ends just before it is valid. */
static void no_region_is_asked_for_that_has_the_last_octet(void **state)
{
	assert_int_equal(ask_range(LAST - 15, 16, BASE), -EINVAL);
	assert_int_equal(ask_range(BASE, 16, LAST - 15), -EINVAL);
	assert_int_equal(ask_range(LAST, 1, LAST), -EINVAL);
	assert_int_equal(ask_range(LAST - 16, 16, LAST - 16), 0);
	assert_int_equal(ask_range(0, LAST, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_new_stag_is_as_random_as_its_bits),
		cmocka_unit_test(a_fast_regions_key_is_left_to_its_consumer),
		cmocka_unit_test(index_0_is_no_regions),
		cmocka_unit_test(one_hold_serves_a_whole_run),
		cmocka_unit_test(a_region_of_another_pd_is_not_held_for_a_run),
		cmocka_unit_test(a_run_that_held_nothing_ends),
		cmocka_unit_test(uses_that_outlast_their_run_hold_the_region),
		cmocka_unit_test(a_late_put_and_a_new_hold_do_not_meet),
		cmocka_unit_test(the_hold_goes_over_to_the_region_used_last),
		cmocka_unit_test(a_hold_that_goes_over_leaves_as_many_as_uses),
		cmocka_unit_test(an_unknown_stag_leaves_the_hold_where_it_is),
		cmocka_unit_test(a_held_region_that_is_gone_is_looked_up_again),
		cmocka_unit_test(a_wrong_key_is_looked_up_again),
		cmocka_unit_test(each_qp_holds_for_itself),
		cmocka_unit_test(stag_0_is_all_memory_for_a_kernel_consumer_alone),
		cmocka_unit_test(one_lookup_serves_all_writes_that_come_together),
		cmocka_unit_test(a_peer_invalidates_over_the_qp_alone_that_registered),
		cmocka_unit_test(a_consumer_invalidates_over_any_qp_of_the_pd),
		cmocka_unit_test(a_region_ends_when_others_have_let_go),
		cmocka_unit_test(ones_own_run_does_not_hold_up_its_end),
		cmocka_unit_test(of_two_that_invalidate_a_region_one_does),
		cmocka_unit_test(a_region_that_others_hold_is_not_registered),
		cmocka_unit_test(a_withdrawn_region_is_refused),
		cmocka_unit_test(a_withdrawn_region_is_not_registered),
		cmocka_unit_test(others_that_hold_a_withdrawn_region_are_waited_for),
		cmocka_unit_test(a_region_of_another_pd_is_not_invalidated),
		cmocka_unit_test(only_a_fast_registered_region_is_invalidated),
		cmocka_unit_test(a_wrong_key_or_an_unknown_stag_invalidates_nothing),
		cmocka_unit_test(stag_0_is_neither_invalidated_nor_registered),
		cmocka_unit_test(registering_sets_key_rights_and_owner),
		cmocka_unit_test(a_region_goes_to_the_qp_that_registers_it_next),
		cmocka_unit_test(what_may_not_be_registered_stays_as_it_is),
		cmocka_unit_test(an_access_bit_that_is_not_known_is_not_supported),
		cmocka_unit_test(optional_access_bits_are_ignored),
		cmocka_unit_test(a_dmabuf_has_no_atomics),
		cmocka_unit_test(remote_write_requires_local_write),
		cmocka_unit_test(a_region_of_no_octets_is_refused),
		cmocka_unit_test(a_start_across_the_wrap_is_refused),
		cmocka_unit_test(an_iova_across_the_wrap_is_refused),
		cmocka_unit_test(no_region_is_asked_for_that_has_the_last_octet),
	};

	return RUN_TESTS("stacks: regions", tests);
}
