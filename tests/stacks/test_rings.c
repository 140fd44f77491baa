// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The rings between two threads, as between an application and the kernel: the user posts and
 * polls, the stack sends and completes. Both sleep when they have nothing to do, and only the KICK
 * flag and the arm word wake them. A lost wake-up, or an entry seen before it is written, ends the
 * test.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <time.h>

#include "world.h"

#define POSTS 60000u
#define CQ_ENTRIES 64
/* Payload that leaves no room for more in the minimum memory of a batch. */
#define FULL 2900
#define PATIENCE 60			/* seconds without a wake-up: one was lost */

struct rings {
	struct side s;
	sem_t doorbell, event;
	u32 wakes;			/* those passed on to the user */
	u32 sends;			/* octets of payload seen, and their order */
	bool done, broken, lost;
	u32 send_len;
	struct host_mr *mr;		/* FULL octets for each completion that may be due */
	u32 doorbells, sleeps;
};

static bool wait_for(sem_t *sem)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_sec += PATIENCE;
	return !sem_clockwait(sem, CLOCK_MONOTONIC, &t);
}

/* ---- the stack's thread ---- */

/* FPDUs of a Send: 2 + 18 + its octets + 4. Each begins with the next number. */
static size_t count_sends(void *arg, const void *p, size_t len, u32 flags)
{
	struct rings *r = arg;
	u32 fpdu = r->send_len + 24;
	const u8 *at = p;
	size_t i;

	r->broken |= len % fpdu;
	for (i = 0; i + fpdu <= len; i += fpdu) {
		u64 v;

		memcpy(&v, at + i + 20, sizeof(v));
		r->broken |= v != r->sends++;
	}
	return len;
}

static void ignore(void *arg)
{
}

static void tail(void *arg, struct weft_tcp_tail *tail)
{
	*tail = (struct weft_tcp_tail){ .mss = 40 * 32, .room = 1 << 20 };
	if (((struct rings *)arg)->send_len == FULL)
		tail->mss = FULL + 24;
}

static const struct host_link_ops ops = {
	.write = count_sends, .tail = tail, .shutdown = ignore, .abort = ignore,
};

static void on_cqe(struct host_qp *qp, bool recv, const struct weft_cqe *e, void *arg)
{
	struct rings *r = arg;

	if (r->s.scq->wakes != r->wakes) {
		r->wakes = r->s.scq->wakes;
		sem_post(&r->event);
	}
}

static void *stack(void *arg)
{
	struct rings *r = arg;

	while (!__atomic_load_n(&r->done, __ATOMIC_ACQUIRE)) {
		if (!wait_for(&r->doorbell)) {
			__atomic_store_n(&r->lost, true, __ATOMIC_RELEASE);
			break;
		}
		r->s.qp->kicked = true;
		while (r->s.qp->kicked || host_link_waits_for_tcp(&r->s.link))
			host_link_tx(&r->s.link);
	}
	return NULL;
}

/* ---- the user ---- */

struct user {
	struct weft_ring *ring;
	u32 slots, posted, completed;
	struct rng rng;
};

static bool post(struct rings *r, struct user *u)
{
	u64 number = u->posted;
	u64 at = (number % CQ_ENTRIES) * FULL;
	struct host_wr wr = { .wr_id = number, .opcode = WEFT_WR_SEND, .flags = SIG };
	struct host_wqe w;

	/* Each post has a completion: the CQ must have room for them. */
	if (u->posted == POSTS || u->posted - u->completed == CQ_ENTRIES ||
	    u->posted - smp_load_acquire(&u->ring->kern_idx) == u->slots)
		return false;
	if (r->send_len == FULL) {
		memcpy(r->mr->mem + at, &number, sizeof(number));
		wr.num_sge = 1;
		wr.sge[0] = host_sge(r->mr, at, FULL);
	} else {
		wr.inline_data = &number;
		wr.inline_len = sizeof(number);
	}
	if (host_wr_encode(&wr, &w) != 1)
		return false;
	memcpy((u8 *)u->ring + WEFT_RING_DATA + (u->posted % u->slots) * WEFT_SLOT_SIZE, &w,
	       WEFT_SLOT_SIZE);
	smp_store_release(&u->ring->user_idx, ++u->posted);
	smp_mb();
	if (READ_ONCE(u->ring->flags) & WEFT_RING_KICK) {
		r->doorbells++;
		sem_post(&r->doorbell);
	}
	return true;
}

static bool poll(struct rings *r, struct user *u)
{
	struct weft_cqe e;

	if (!host_cq_poll(r->s.scq, &e))
		return false;
	r->broken |= e.wr_id != u->completed++ || e.status != WEFT_WC_SUCCESS;
	return true;
}

static void use(struct rings *r, struct user *u)
{
	while (u->completed < POSTS && !r->broken) {
		u32 n;

		for (n = rng_upto(&u->rng, u->slots); n && post(r, u); n--)
			;
		for (n = rng_below(&u->rng, 8); n && poll(r, u); n--)
			;
		/* Often awake when the completion arrives, and at once with the next post. */
		for (n = rng_below(&u->rng, 2000); n && !poll(r, u); n--)
			;
		if (poll(r, u) || post(r, u) || u->completed == POSTS)
			continue;
		host_cq_arm(r->s.scq, WEFT_ARM_NEXT);
		if (poll(r, u))
			continue;
		r->sleeps++;
		if (!wait_for(&r->event)) {
			r->lost = true;
			return;
		}
	}
}

static void init(struct rings *r, u32 slots)
{
	static const u8 reply[20] = "MPA ID Rep Frame\0\1\0";
	struct weft_seg seg = { reply, sizeof(reply) };
	struct side_cfg c;

	memset(r, 0, sizeof(*r));
	side_cfg_init(&c);
	c.qp.sq_slots = slots;
	c.cq_entries = CQ_ENTRIES;
	c.link.mpa = (struct weft_mpa_cfg){ .rev = 1, .ird = 1, .ord = 1 };
	/*
	 * A Send that fills its batch: the completion is published before the stack finds its ring
	 * empty, so that the next post arrives while the stack goes to sleep.
	 */
	r->send_len = slots > 4 ? 8 : FULL;
	c.link.batch = slots > 4 ? 8 : 1;
	side_init(&r->s, true, &c);
	r->mr = host_mr_new(&r->s.host, PD, BASE, CQ_ENTRIES * FULL, RW);
	r->s.link.ops = &ops;
	r->s.link.arg = r;
	host_link_rx(&r->s.link, &seg, 1);
	assert_true(host_link_is_full(&r->s.link));
	r->s.scq->on_cqe = on_cqe;
	r->s.scq->arg = r;
	sem_init(&r->doorbell, 0, 1);
	sem_init(&r->event, 0, 0);
}

static void run(u32 slots)
{
	static struct rings r;
	struct user u = { .slots = slots, .rng = { slots } };
	pthread_t t;

	init(&r, slots);
	u.ring = r.s.qp->core.sq.q.ring;
	assert_int_equal(pthread_create(&t, NULL, stack, &r), 0);
	use(&r, &u);
	__atomic_store_n(&r.done, true, __ATOMIC_RELEASE);
	sem_post(&r.doorbell);
	pthread_join(t, NULL);
	assert_false(r.lost);
	assert_false(r.broken);
	assert_int_equal(u.completed, POSTS);
	assert_int_equal(r.sends, POSTS);
	print_message("%u slots: %u posts, %u doorbells, %u sleeps\n", slots, POSTS, r.doorbells,
		      r.sleeps);
	side_fini(&r.s);
}

static void no_wakeup_is_lost_with_one_slot(void **state)
{
	run(1);
}

static void no_wakeup_is_lost_with_a_few_slots(void **state)
{
	run(4);
}

static void no_wakeup_is_lost_with_many_slots(void **state)
{
	run(64);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_wakeup_is_lost_with_one_slot),
		cmocka_unit_test(no_wakeup_is_lost_with_a_few_slots),
		cmocka_unit_test(no_wakeup_is_lost_with_many_slots),
	};

	return RUN_TESTS("stacks: rings between threads", tests);
}
