// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A hostile user: one thread writes over the rings, octet by octet and at any moment, while the
 * other posts sane work and runs the stack. If the stack read something twice, or trusted it, this
 * would show as a sanitizer's report, a region held for ever, an endless run, or an octet written
 * where no access is allowed.
 */
#include <pthread.h>
#include <sched.h>

#include "world.h"

#define ROUNDS 200
#define RUNS 60
#define SCRIBBLES 100			/* at least, for each run */

struct scribbler {
	struct weft_ringq *sq, *rq;
	struct weft_ring *cq;
	u32 lkey[3];			/* good ones and bad ones */
	bool stop;
	u32 count;			/* times round */
	struct rng rng;
};

static void set_right(const struct scribbler *s, struct weft_sq_wqe *w)
{
	struct weft_sge *sge = (void *)w->data;

	WRITE_ONCE(w->nslots, 1);
	WRITE_ONCE(w->num_sge, 1);
	WRITE_ONCE(w->opcode, WEFT_WR_SEND);
	WRITE_ONCE(w->flags, SIG);
	WRITE_ONCE(sge->addr, WORLD_BASE);
	WRITE_ONCE(sge->length, 8);
	WRITE_ONCE(sge->lkey, s->lkey[0]);
}

/* The fields with the most effect, by their place in a slot. */
static void spoil_slot(struct scribbler *s, u8 *slot)
{
	struct weft_sq_wqe *w = (void *)slot;
	struct weft_sge *sge = (void *)w->data;
	u32 v = (u32)rng_next(&s->rng);

	switch (v % 600) {
	case 0:
		WRITE_ONCE(w->nslots, (u8)(v >> 8) % 12);
		break;
	case 1:
		WRITE_ONCE(w->num_sge, (u8)(v >> 8));
		break;
	case 2:
		WRITE_ONCE(w->opcode, (u8)(v >> 8) % (WEFT_WR_NR + 1));
		break;
	case 3:
		WRITE_ONCE(w->flags, (u8)(v >> 8));
		break;
	case 4:
		WRITE_ONCE(sge->length, v & 0x800 ? v : v >> 24);
		break;
	case 5:
		WRITE_ONCE(sge->lkey, s->lkey[v / 600 % 3]);
		break;
	case 6:
		WRITE_ONCE(sge->addr, v & 0x800 ? v : WORLD_BASE);
		break;
	default:
		/* Mostly correct it again, so that work goes on. */
		set_right(s, w);
		break;
	}
}

static void set_recv_right(const struct scribbler *s, struct weft_rq_wqe *w)
{
	struct weft_sge *sge = (void *)w->data;

	WRITE_ONCE(w->num_sge, 1);
	WRITE_ONCE(sge->addr, WORLD_BASE + 64);
	WRITE_ONCE(sge->length, 64);
	WRITE_ONCE(sge->lkey, s->lkey[0]);
}

static void spoil_recv(struct scribbler *s, struct weft_rq_wqe *w)
{
	struct weft_sge *sge = (void *)w->data;
	u32 v = (u32)rng_next(&s->rng);

	switch (v % 600) {
	case 0:
		WRITE_ONCE(w->num_sge, v >> (v & 31));
		break;
	case 1:
		WRITE_ONCE(sge->length, v);
		break;
	case 2:
		WRITE_ONCE(sge->lkey, s->lkey[v / 600 % 3]);
		break;
	case 3:
		WRITE_ONCE(sge->addr, v);
		break;
	default:
		set_recv_right(s, w);
		break;
	}
}

static void *scribble(void *arg)
{
	struct scribbler *s = arg;

	while (!__atomic_load_n(&s->stop, __ATOMIC_ACQUIRE)) {
		u32 v = (u32)rng_next(&s->rng);

		spoil_slot(s, weft_ringq_slot(s->sq, v));
		spoil_recv(s, weft_ringq_slot(s->rq, v >> 8));
		if (!(v >> 12 & 0xFFFF))
			WRITE_ONCE(s->sq->ring->user_idx, s->sq->ring->user_idx + (v & 31));
		if (!(v >> 4 & 0xFFFFF))
			WRITE_ONCE(s->rq->ring->user_idx, v);
		WRITE_ONCE(s->cq->arm, v & 7);
		WRITE_ONCE(s->cq->user_idx, s->cq->kern_idx - !(v >> 8 & 0xFFFF) * v);
		/* These lines are not the user's, but it can write them. */
		WRITE_ONCE(s->sq->ring->kern_idx, v);
		WRITE_ONCE(s->sq->ring->flags, v);
		WRITE_ONCE(s->count, s->count + 1);
	}
	return NULL;
}

/* The scribbler attacks one end of a fresh pair; the other is sane. */
static void round_with(u64 seed, enum weft_qp_state *state, u32 *fpdus)
{
	struct scribbler s = { .rng = { seed } };
	struct host_mr *mr, *foreign, *to;
	struct pair_cfg c;
	struct pair p;
	pthread_t t;
	u32 i, n;

	pair_cfg_init(&c);
	c.seed = seed;
	c.s[0].qp.sq_slots = 32;
	c.s[0].qp.rq_slots = 64;
	c.s[0].qp.rq_sge = 3;
	pair_init(&p, &c);
	mr = host_mr_new(&p.s[0].host, PD, WORLD_BASE, 4096, RW);
	foreign = host_mr_new(&p.s[0].host, OTHER_PD, WORLD_BASE, 4096, RW);
	to = host_mr_new(&p.s[1].host, PD, WORLD_BASE, 4096, RW);
	pair_run(&p);
	s.sq = &p.s[0].qp->core.sq.q;
	s.rq = &p.s[0].qp->core.rq.q;
	s.cq = p.s[0].scq->ring;
	s.lkey[0] = mr->r.stag;
	s.lkey[1] = foreign->r.stag;
	s.lkey[2] = mr->r.stag ^ 1;
	for (i = 0; i < s.sq->slots; i++)
		set_right(&s, weft_ringq_slot(s.sq, i));
	for (i = 0; i < s.rq->slots; i++)
		set_recv_right(&s, weft_ringq_slot(s.rq, i));
	assert_int_equal(pthread_create(&t, NULL, scribble, &s), 0);
	for (i = 0; i < RUNS; i++) {
		/* On a busy machine the other thread may not have run yet. */
		while (READ_ONCE(s.count) < i * SCRIBBLES)
			sched_yield();
		/* The index advances with or without room, as a bad user's may. */
		host_scribble_index(p.s[0].qp, false, s.sq->ring->user_idx + 1 + (i & 3));
		host_scribble_index(p.s[0].qp, true, s.rq->ring->user_idx + 1);
		for (n = 0; n < 4; n++)
			side_recv(&p.s[1], i, to, 0, 4096);
		if (p.s[1].qp->core.state == WEFT_QPS_RTS)
			side_send(&p.s[1], i, SIG, to, 0, 8);
		for (n = 50; n && pair_step(&p); n--)
			;
	}
	__atomic_store_n(&s.stop, true, __ATOMIC_RELEASE);
	pthread_join(t, NULL);
	*state = p.s[0].qp->core.state;
	*fpdus += p.s[0].seen.fpdus;
	pair_drop(&p);
	pair_run(&p);
	for (i = 0; i < 4096; i++)
		assert_int_equal(foreign->mem[i], 0);
	pair_fini(&p);
}

static void a_scribbling_user_harms_no_other(void **arg)
{
	u32 i, ended = 0, fpdus = 0;
	enum weft_qp_state state;

	for (i = 0; i < ROUNDS; i++) {
		round_with(i + 1, &state, &fpdus);
		ended += state != WEFT_QPS_RTS;
	}
	print_message("%u FPDUs, %u of %u rounds ended by an error\n", fpdus, ended, ROUNDS);
	/* Work was completed, and bad entries reached the checks. */
	assert_true(fpdus > ROUNDS && ended > ROUNDS / 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_scribbling_user_harms_no_other),
	};

	return RUN_TESTS("stacks: a hostile user", tests);
}
