// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The moments at which a wake-up could get lost, hit exactly. The header of a
 * ring lies on a page that is made read-only: the stack's next store to it
 * traps, and in the trap, before the store is done, the other side acts.
 */
#include <signal.h>
#include <sys/mman.h>

#include "world.h"

#define PAGE 4096u

/* Two pages and more: the header ends the first one, the entries follow. */
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
	if (info->si_addr != t->at)
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

/* One Send has gone out, and the stack is about to see that there is no other. */
static void busy(struct world *w, struct trap *t)
{
	struct peer_cfg c;

	peer_cfg_init(&c);
	c.dut_initiates = true;
	c.side.link.batch = 1;
	world_init(w, &c, WIRE_WHOLE);
	trap_init(t, &w->p->s.qp->core.sq.q);
	side_send(&w->p->s, 1, SIG, w->rw, 0, 8);
	host_link_tx(&w->p->s.link);
	expect_cqe(w->p->s.scq, 1, WEFT_WC_SUCCESS);
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
	/* And now it sleeps, and says so. */
	assert_int_equal(t.ring->flags, WEFT_RING_KICK);
	trap_fini(&t, &w.p->s.qp->core.sq.q);
	world_fini(&w);
}

static void an_entry_posted_while_the_queue_is_flushed_is_flushed(void **state)
{
	struct world w;
	struct trap t;

	busy(&w, &t);
	trap_arm(&t, &t.ring->flags, post_unseen, &w);
	host_link_reset(&w.p->s.link);
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
	host_link_reset(&w.p->s.link);
	assert_int_equal(t.hits, 1);
	expect_cqe(w.p->s.rcq, 50, WEFT_WC_FLUSH_ERR);
	trap_fini(&t, &w.p->s.qp->core.rq.q);
	world_fini(&w);
}

/* ---- the stack completes, the user arms and polls once more ---- */

static void arm_and_look(void *arg)
{
	struct host_cq *cq = arg;
	struct weft_cqe e;

	host_cq_arm(cq, WEFT_ARM_NEXT);
	/* Not published yet: the user goes to sleep. */
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
	trap_fini(&t, &cq->core.q);
	cq->ring = cq->core.q.ring;
	host_cq_free(cq);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_entry_posted_while_the_stack_falls_asleep_is_sent),
		cmocka_unit_test(an_entry_posted_while_the_queue_is_flushed_is_flushed),
		cmocka_unit_test(a_receive_posted_while_the_queue_is_flushed_is_flushed),
		cmocka_unit_test(a_cq_armed_while_an_entry_is_published_wakes),
	};

	return RUN_TESTS("stacks: races", tests);
}
