// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Hits the moments at which a wake-up could get lost. The header of a ring is on a page that is
 * made read-only: the stack's next store to it traps, and in the trap, before the store is done,
 * the other side acts. Also entries that turn hostile as soon as they are copied (the linker puts
 * __wrap_weft_ringq_copy() in the copy's place).
 */
#include <signal.h>
#include <sys/mman.h>

#include "world.h"

#define PAGE 4096u
/* Payload that leaves no room for more in the minimum memory of a batch. */
#define FULL 2900
/* How exactly the processor names the address of a fault: s390x its page alone. */
#if defined(__s390x__)
#define FAULT_GRAIN PAGE
#else
#define FAULT_GRAIN 1u
#endif

/* More than two pages: the header ends the first one, the entries follow. */
struct trap {
	u8 *mem;
	size_t size;
	struct weft_ring *ring;
	void *was;			/* the ring's block of before */
	const void *at;			/* the field whose store traps */
	void (*act)(void *arg);
	void *arg;
	u32 hits;
};

static struct trap *armed;

static void on_fault(int sig, siginfo_t *info, void *context)
{
	struct trap *t = armed;

	if (!t || (u8 *)info->si_addr < t->mem || (u8 *)info->si_addr >= t->mem + PAGE)
		abort();
	mprotect(t->mem, PAGE, PROT_READ | PROT_WRITE);
	armed = NULL;
	if ((uintptr_t)t->at - (uintptr_t)info->si_addr >= FAULT_GRAIN)
		abort();
	t->hits++;
	t->act(t->arg);
}

/* Moves a ring with @slots slots onto the trap's pages. */
static void trap_init(struct trap *t, struct weft_ringq *q)
{
	struct sigaction sa = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };

	memset(t, 0, sizeof(*t));
	t->size = PAGE + (size_t)q->slots * WEFT_SLOT_SIZE;
	t->mem = mmap(NULL, t->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(t->mem != MAP_FAILED);
	t->ring = (void *)(t->mem + PAGE - WEFT_RING_DATA);
	memcpy(t->ring, q->ring, weft_ring_size(q->slots));
	t->was = q->ring;
	q->ring = t->ring;
	assert_int_equal(sigaction(SIGSEGV, &sa, NULL), 0);
}

static void trap_fini(struct trap *t, struct weft_ringq *q)
{
	assert_null(armed);
	q->ring = t->was;
	munmap(t->mem, t->size);
}

static void trap_arm(struct trap *t, const void *at, void (*act)(void *arg), void *arg)
{
	t->at = at;
	t->act = act;
	t->arg = arg;
	armed = t;
	assert_int_equal(mprotect(t->mem, PAGE, PROT_READ), 0);
}

/* ---- the stack goes to sleep, the user posts ---- */

static void post_unseen(void *arg)
{
	struct world *w = arg;
	u32 rung = w->p->s.qp->doorbells;

	side_send(&w->p->s, 2, SIG, w->rw, 8, 8);
	/* KICK is not set yet: the user rings nothing. */
	if (w->p->s.qp->doorbells != rung)
		abort();
}

/* One Send is sent, and the stack is about to see that there is no other. */
static void busy(struct world *w, struct trap *t)
{
	struct peer_cfg c;

	peer_cfg_init(&c);
	c.dut_initiates = true;
	/* The Send fills the batch: the run ends before the stack looks for more. */
	c.side.link.batch = 1;
	c.side.mss = FULL + 24;
	world_init(w, &c, WIRE_WHOLE);
	trap_init(t, &w->p->s.qp->core.sq.q);
	side_send(&w->p->s, 1, SIG, w->rw, 0, FULL);
	host_link_tx(&w->p->s.link);
	expect_cqe(w->p->s.scq, 1, WEFT_WC_SUCCESS);
	/* A running stack asks for no doorbell. */
	assert_int_equal(t->ring->flags, 0);
}

static void an_entry_posted_while_the_stack_falls_asleep_is_sent(void **state)
{
	struct world w;
	struct trap t;

	busy(&w, &t);
	trap_arm(&t, &t.ring->flags, post_unseen, &w);
	peer_run(w.p);
	assert_int_equal(t.hits, 1);
	peer_expect(w.p, P_L, P_SEND);
	peer_expect(w.p, P_L, P_SEND);
	expect_cqe(w.p->s.scq, 2, WEFT_WC_SUCCESS);
	/* Now it sleeps, and asks for a doorbell. */
	assert_int_equal(t.ring->flags, WEFT_RING_KICK);
	trap_fini(&t, &w.p->s.qp->core.sq.q);
	world_fini(&w);
}

static void expect_sends(struct world *w, u32 n)
{
	peer_run(w->p);
	while (n--)
		peer_expect(w->p, P_L, P_SEND);
}

/* This run has room for more, and takes the short way to its end (weft_tx_rests()). */
static void an_entry_posted_while_a_run_ends_is_sent_by_it(void **state)
{
	struct world w;
	struct trap t;

	busy(&w, &t);
	side_send(&w.p->s, 3, SIG, w.rw, 0, 8);
	trap_arm(&t, &t.ring->flags, post_unseen, &w);
	host_link_tx(&w.p->s.link);
	assert_int_equal(t.hits, 1);
	expect_cqe(w.p->s.scq, 3, WEFT_WC_SUCCESS);
	expect_cqe(w.p->s.scq, 2, WEFT_WC_SUCCESS);
	assert_int_equal(t.ring->flags, WEFT_RING_KICK);
	expect_sends(&w, 3);
	trap_fini(&t, &w.p->s.qp->core.sq.q);
	world_fini(&w);
}

static void a_run_of_a_lingering_queue_ends_without_a_kick(void **state)
{
	struct world w;
	struct trap t;

	busy(&w, &t);
	w.p->s.qp->core.linger = true;
	side_send(&w.p->s, 3, SIG, w.rw, 0, 8);
	host_link_tx(&w.p->s.link);
	expect_cqe(w.p->s.scq, 3, WEFT_WC_SUCCESS);
	assert_int_equal(t.ring->flags, 0);
	expect_sends(&w, 2);
	trap_fini(&t, &w.p->s.qp->core.sq.q);
	world_fini(&w);
}

/* One batch takes a whole queue. No doorbell tells of the entry behind it, which the ring has. */
static void an_entry_behind_a_full_queue_is_sent_by_the_same_run(void **state)
{
	struct weft_qpc *core;
	struct world w;
	struct trap t;
	u32 i, most;

	busy(&w, &t);
	core = &w.p->s.qp->core;
	/* TCP has room again, and the stack stays awake. */
	core->linger = true;
	expect_sends(&w, 1);
	core->linger = false;
	/* The second run of two may fill several batches. */
	w.p->s.link.cfg.batch = 2;
	w.p->s.link.runs = 1;
	most = core->sq.max_wqes = 4;
	for (i = 0; i <= most; i++)
		side_send(&w.p->s, 2 + i, SIG, w.rw, 0, 8);
	assert_int_equal(t.ring->flags, 0);
	host_link_tx(&w.p->s.link);
	for (i = 0; i <= most; i++)
		expect_cqe(w.p->s.scq, 2 + i, WEFT_WC_SUCCESS);
	expect_sends(&w, 1 + most);
	trap_fini(&t, &core->sq.q);
	world_fini(&w);
}

/* The host polls by itself for a while (core/linger.c): posts ring no doorbell. */
static void a_lingering_queue_asks_for_no_doorbell_and_sleeps_when_it_is_over(void **state)
{
	struct world w;
	struct trap t;
	struct weft_qpc *core;

	busy(&w, &t);
	core = &w.p->s.qp->core;
	core->linger = true;
	peer_run(w.p);
	peer_expect(w.p, P_L, P_SEND);
	assert_int_equal(t.ring->flags, 0);
	post_unseen(&w);
	core->linger = false;
	host_link_tx(&w.p->s.link);
	peer_run(w.p);
	peer_expect(w.p, P_L, P_SEND);
	expect_cqe(w.p->s.scq, 2, WEFT_WC_SUCCESS);
	assert_int_equal(t.ring->flags, WEFT_RING_KICK);
	trap_fini(&t, &core->sq.q);
	world_fini(&w);
}

static void a_lingering_queue_is_asleep_once_it_is_flushed(void **state)
{
	struct world w;
	struct trap t;

	busy(&w, &t);
	w.p->s.qp->core.linger = true;
	post_unseen(&w);
	host_link_reset(&w.p->s.link);
	expect_cqe(w.p->s.scq, 2, WEFT_WC_FLUSH_ERR);
	assert_int_equal(t.ring->flags, WEFT_RING_KICK);
	trap_fini(&t, &w.p->s.qp->core.sq.q);
	world_fini(&w);
}

/* A user's modify to ERROR: no send run follows that would flush again. */
static void an_entry_posted_while_the_queue_is_flushed_is_flushed(void **state)
{
	struct world w;
	struct trap t;

	busy(&w, &t);
	trap_arm(&t, &t.ring->flags, post_unseen, &w);
	weft_qpc_error(&w.p->s.qp->core);
	assert_int_equal(t.hits, 1);
	expect_cqe(w.p->s.scq, 2, WEFT_WC_FLUSH_ERR);
	assert_int_equal(t.ring->flags, WEFT_RING_KICK);
	trap_fini(&t, &w.p->s.qp->core.sq.q);
	world_fini(&w);
}

static void post_receive_unseen(void *arg)
{
	struct world *w = arg;

	side_recv(&w->p->s, 50, w->inbox, 0, 8);
}

static void a_receive_posted_while_the_queue_is_flushed_is_flushed(void **state)
{
	struct world w;
	struct trap t;
	struct peer_cfg c;
	u32 i;

	peer_cfg_init(&c);
	world_init(&w, &c, WIRE_WHOLE);
	trap_init(&t, &w.p->s.qp->core.rq.q);
	/* All receives are used, so that the flag is the first store of the flush. */
	for (i = 0; i < NRECV; i++) {
		peer_say(w.p, p_send(P_SEND, true, i + 1, 0, NULL, 0));
		expect_cqe(w.p->s.rcq, i, WEFT_WC_SUCCESS);
	}
	trap_arm(&t, &t.ring->flags, post_receive_unseen, &w);
	weft_qpc_error(&w.p->s.qp->core);
	assert_int_equal(t.hits, 1);
	expect_cqe(w.p->s.rcq, 50, WEFT_WC_FLUSH_ERR);
	trap_fini(&t, &w.p->s.qp->core.rq.q);
	world_fini(&w);
}

static void a_receive_posted_while_a_send_begins_to_wait_is_found(void **state)
{
	struct world w;
	struct peer_cfg c;
	struct trap t;
	u32 i;

	peer_cfg_init(&c);
	c.side.link.rnr_ms = 1000;
	world_init(&w, &c, WIRE_WHOLE);
	for (i = 0; i < NRECV; i++) {
		peer_say(w.p, p_send(P_SEND, true, i + 1, 0, NULL, 0));
		expect_cqe(w.p->s.rcq, i, WEFT_WC_SUCCESS);
	}
	trap_init(&t, &w.p->s.qp->core.rq.q);
	trap_arm(&t, &t.ring->flags, post_receive_unseen, &w);
	/* At once: without a run of the send side. */
	peer_add(w.p, p_send(P_SEND, true, NRECV + 1, 0, NULL, 8));
	peer_deliver(w.p);
	assert_int_equal(t.hits, 1);
	expect_cqe(w.p->s.rcq, 50, WEFT_WC_SUCCESS);
	/* No doorbell is needed for the next one. */
	assert_int_equal(t.ring->flags, 0);
	trap_fini(&t, &w.p->s.qp->core.rq.q);
	world_fini(&w);
}

/* ---- the stack completes, the user arms and polls once more ---- */

static bool entry_was_there;

static void arm_and_look(void *arg)
{
	struct host_cq *cq = arg;
	const struct weft_cqe *slot = weft_ringq_slot(&cq->core.q, 0);
	struct weft_cqe e;

	entry_was_there = slot->wr_id == 1;
	host_cq_arm(cq, WEFT_ARM_NEXT);
	/* Not published yet: the user sleeps. */
	if (host_cq_poll(cq, &e))
		abort();
}

static void a_cq_armed_while_an_entry_is_published_wakes(void **state)
{
	struct host_cq *cq = host_cq_new(8);
	const struct weft_cqe e = { .wr_id = 1 };
	struct trap t;

	trap_init(&t, &cq->core.q);
	cq->ring = t.ring;
	trap_arm(&t, &t.ring->kern_idx, arm_and_look, cq);
	assert_int_equal(weft_cqc_push(&cq->core, &e), WEFT_CQ_WAKE);
	assert_int_equal(t.hits, 1);
	/* The entry that the index announces is written. */
	assert_true(entry_was_there);
	trap_fini(&t, &cq->core.q);
	cq->ring = cq->core.q.ring;
	host_cq_free(cq);
}

/* ---- an entry is copied once, and the copy is what counts ---- */

static bool spoil_behind_copies;
static u32 copies;

void __real_weft_ringq_copy(const struct weft_ringq *q, u32 from, void *dst, u32 n);
void __wrap_weft_ringq_copy(const struct weft_ringq *q, u32 from, void *dst, u32 n);

void __wrap_weft_ringq_copy(const struct weft_ringq *q, u32 from, void *dst, u32 n)
{
	__real_weft_ringq_copy(q, from, dst, n);
	copies++;
	while (spoil_behind_copies && n--)
		memset(weft_ringq_slot(q, from + n), 0xFF, WEFT_SLOT_SIZE);
}

static void post_of_each_kind(struct pair *p, struct host_mr *mr, struct host_mr *to)
{
	struct host_wr wr = { .wr_id = 4, .opcode = WEFT_WR_SEND, .flags = SIG, .num_sge = 20 };
	u32 i;

	side_write(&p->s[0], 1, SIG, mr, 0, 100, to, 0);
	side_read(&p->s[0], 2, SIG, mr, 200, 100, to, 0);
	wr.inline_data = mr->mem + 300;
	wr.inline_len = 200;
	side_post(&p->s[0], &wr);
	wr.wr_id = 5;
	wr.inline_data = NULL;
	for (i = 0; i < wr.num_sge; i++)
		wr.sge[i] = host_sge(mr, 600 + 50 * i, 10);
	side_post(&p->s[0], &wr);
}

static void a_copied_entry_is_not_read_again(void **state)
{
	struct host_mr *mr, *to;
	struct pair_cfg c;
	struct pair p;
	u32 i;

	pair_cfg_init(&c);
	c.s[0].qp.sq_slots = 16;
	c.s[1].qp.rq_slots = 4;
	pair_init(&p, &c);
	mr = host_mr_new(&p.s[0].host, PD, BASE, 4096, RW);
	to = host_mr_new(&p.s[1].host, PD, BASE, 4096, RW);
	rng_fill(&p.rng, mr->mem, 4096);
	spoil_behind_copies = true;
	for (i = 0; i < 50; i++) {
		side_recv(&p.s[1], 6, to, 300, 200);
		side_recv(&p.s[1], 7, to, 600, 200);
		post_of_each_kind(&p, mr, to);
		pair_run(&p);
		expect_cqe(p.s[0].scq, 1, WEFT_WC_SUCCESS);
		expect_cqe(p.s[0].scq, 2, WEFT_WC_SUCCESS);
		expect_cqe(p.s[0].scq, 4, WEFT_WC_SUCCESS);
		expect_cqe(p.s[0].scq, 5, WEFT_WC_SUCCESS);
		expect_cqe(p.s[1].rcq, 6, WEFT_WC_SUCCESS);
		expect_cqe(p.s[1].rcq, 7, WEFT_WC_SUCCESS);
		assert_memory_equal(mr->mem, mr->mem + 200, 100);
		assert_memory_equal(to->mem + 300, mr->mem + 300, 200);
		assert_memory_equal(to->mem + 600, mr->mem + 600, 10);
		assert_memory_equal(to->mem + 790, mr->mem + 600 + 950, 10);
	}
	spoil_behind_copies = false;
	assert_true(copies >= 50 * 6);
	pair_fini(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_entry_posted_while_the_stack_falls_asleep_is_sent),
		cmocka_unit_test(an_entry_posted_while_a_run_ends_is_sent_by_it),
		cmocka_unit_test(a_run_of_a_lingering_queue_ends_without_a_kick),
		cmocka_unit_test(an_entry_behind_a_full_queue_is_sent_by_the_same_run),
		cmocka_unit_test(a_receive_posted_while_a_send_begins_to_wait_is_found),
		cmocka_unit_test(a_lingering_queue_asks_for_no_doorbell_and_sleeps_when_it_is_over),
		cmocka_unit_test(a_lingering_queue_is_asleep_once_it_is_flushed),
		cmocka_unit_test(an_entry_posted_while_the_queue_is_flushed_is_flushed),
		cmocka_unit_test(a_receive_posted_while_the_queue_is_flushed_is_flushed),
		cmocka_unit_test(a_copied_entry_is_not_read_again),
		cmocka_unit_test(a_cq_armed_while_an_entry_is_published_wakes),
	};

	return RUN_TESTS("stacks: races", tests);
}
