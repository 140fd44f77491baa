// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * How a connection starts and ends (core/link.h): every order of FIN, RST, close, error,
 * destruction and device removal at both ends; start-up that fails; deadlines. link.c asserts
 * after each step that the actions keep their contract.
 */
#include "../../kernel/core/alive.h"
#include "world.h"

#define STARTUP 1000u			/* ms */
#define CLOSE 400u
#define LEN 40000u
#define WRITES 3

/* ---- two ends, and how they disconnect ---- */

struct parting {
	struct pair p;
	struct host_mr *mr[2];
};

/* What happens, in this order: lower case at the initiator, upper case at the responder.
 *   c  the user closes		e  the user moves the QP to ERROR
 *   d  the QP is destroyed	k  the device goes away
 *   t  an error with a Terminate
 *   x  the connection breaks	s  some steps		r  it runs until it rests
 *   h  the user hangs up
 */
struct order {
	const char *events;
	bool broken;			/* by a RST: octets of both may be lost */
	u32 acts[2];			/* beside those that always come */
};

#define BYE (WEFT_ACT_SHUT | WEFT_ACT_DISCONNECTED)

static void happen(struct parting *t, char c)
{
	u32 i = c >= 'A' && c <= 'Z', n;
	struct host_link *l = &t->p.s[i].link;

	switch (i ? c - 'A' + 'a' : c) {
	case 'c':
		host_link_close(l);
		break;
	case 'e':
		host_link_error(l);
		break;
	case 'd':
		if (l->core.qp)
			host_link_forget(l);
		break;
	case 'k':
		host_link_abort(l);
		if (t->p.s[i].aborted)
			pair_drop(&t->p);
		break;
	case 't':
		weft_qpc_fail(&t->p.s[i].qp->core, WEFT_E_RDMAP_LOCAL, NULL);
		break;
	case 'h':
		host_link_hang_up(l);
		break;
	case 'x':
		pair_drop(&t->p);
		break;
	case 's':
		for (n = rng_below(&t->p.rng, 40); n && pair_step(&t->p); n--)
			;
		break;
	default:
		pair_run(&t->p);
		break;
	}
}

static void part_init(struct parting *t, u64 seed)
{
	struct pair_cfg c;
	u32 i, n;

	pair_cfg_init(&c);
	c.seed = seed;
	for (i = 0; i < 2; i++) {
		c.s[i].sndbuf = 500 << seed % 8;
		c.s[i].link.batch = seed % 3 ? 2 : 16;
		c.s[i].link.mpa.crc = seed & 1;
		c.s[i].link.close_ms = CLOSE;
	}
	pair_init(&t->p, &c);
	for (i = 0; i < 2; i++) {
		t->mr[i] = host_mr_new(&t->p.s[i].host, PD, BASE, 2 * WRITES * LEN, RW);
		rng_fill(&t->p.rng, t->mr[i]->mem, WRITES * LEN);
	}
	pair_run(&t->p);
	for (n = 0; n < WRITES; n++)
		for (i = 0; i < 2; i++)
			side_write(&t->p.s[i], n, SIG, t->mr[i], n * LEN, LEN, t->mr[!i],
				   (WRITES + n) * LEN);
}

/* Each request completes once and in order; a successful one has arrived unless it may be lost. */
static void expect_completed(struct parting *t, u32 i, bool lost)
{
	bool failed = false;
	struct weft_cqe e;
	u32 n;

	for (n = 0; n < WRITES; n++) {
		assert_true(host_cq_poll(t->p.s[i].scq, &e));
		assert_int_equal(e.wr_id, n);
		failed |= e.status != WEFT_WC_SUCCESS;
		if (failed)
			assert_int_equal(e.status, WEFT_WC_FLUSH_ERR);
		else if (!lost)
			assert_memory_equal(t->mr[!i]->mem + (WRITES + n) * LEN,
					    t->mr[i]->mem + n * LEN, LEN);
	}
	expect_no_cqe(t->p.s[i].scq);
}

/* A peer that is in error, or has no QP any more, drops its input. */
static bool may_be_lost(const struct order *o, u32 i)
{
	return o->broken || strpbrk(o->events, i ? "edt" : "EDT");
}

static void expect_over(struct parting *t, const struct order *o, u32 i)
{
	const u32 always = WEFT_ACT_ENDED | WEFT_ACT_DIE;
	struct host_link *l = &t->p.s[i].link;

	assert_int_equal(l->core.state, WEFT_LINK_DEAD);
	assert_null(l->core.qp);
	assert_int_equal(l->core.deadline, 0);
	assert_null(t->p.s[i].qp->core.st);
	assert_true(t->p.s[i].qp->core.state >= WEFT_QPS_TERM);
	assert_int_equal(l->acts & (always | o->acts[i]), always | o->acts[i]);
	assert_int_equal(host_qp_count_events(t->p.s[i].qp, WEFT_EV_FLUSHED), 1);
	/* An end that sent and received FIN was not reset. */
	if (!o->broken)
		assert_false(t->p.s[i].aborted);
	expect_completed(t, i, may_be_lost(o, i));
}

static void orders(void **state)
{
	const struct order *o = *state;
	struct parting *t = calloc(1, sizeof(*t));
	const char *c;
	u64 seed;

	assert_non_null(t);
	for (seed = 1; seed <= 25; seed++) {
		part_init(t, seed);
		for (c = o->events; *c; c++)
			happen(t, *c);
		pair_run(&t->p);
		expect_over(t, o, 0);
		expect_over(t, o, 1);
		pair_fini(&t->p);
	}
	free(t);
}

#define ORDER(name, ev, lost, a, b)						\
	{ #name, orders, NULL, NULL,						\
	  &(struct order){ .events = ev, .broken = lost, .acts = { a, b } } }

/* ---- one end alone, and time ---- */

/* A side whose peer is the test; the peer acknowledges only the octets that it reads. */
struct lone {
	struct side s;
	struct host_link *l;
};

static void lone_cfg(struct side_cfg *c)
{
	side_cfg_init(c);
	c->link.startup_ms = STARTUP;
	c->link.close_ms = CLOSE;
}

static void lone_init(struct lone *t, bool initiator, const struct side_cfg *c)
{
	side_init(&t->s, initiator, c);
	t->l = &t->s.link;
}

static void lone_fini(struct lone *t)
{
	side_fini(&t->s);
}

static void hear(struct lone *t, const void *octets, u32 n)
{
	void *copy = malloc(n);
	const struct weft_seg seg = { copy, n };

	assert_non_null(copy);
	memcpy(copy, octets, n);
	host_link_rx(t->l, &seg, 1);
	free(copy);
}

static void run(struct lone *t)
{
	u32 n = 0;

	while (side_ready(&t->s)) {
		HOST_ASSERT(++n < 1000);
		host_link_tx(t->l);
	}
}

/* The peer reads @n octets. */
static void reads(struct lone *t, u32 n)
{
	t->s.out.head += min_t(u32, n, wire_waiting(&t->s.out));
}

/* No action before @ms; returns the actions at @ms. */
static u32 acts_at(struct lone *t, u64 ms)
{
	u32 before = t->l->acts;

	host_link_set_time(t->l, ms - 1);
	run(t);
	assert_int_equal(t->l->acts, before);
	host_link_set_time(t->l, ms);
	run(t);
	return t->l->acts & ~before;
}

static const u8 request_v1[20] = "MPA ID Req Frame\0\1\0";
static const u8 reply_v1[20] = "MPA ID Rep Frame\0\1\0";

static void full_v1(struct lone *t, bool initiator, const struct side_cfg *c)
{
	lone_init(t, initiator, c);
	reads(t, ~0u);
	hear(t, initiator ? reply_v1 : request_v1, 20);
	run(t);
	reads(t, ~0u);
	assert_true(host_link_is_full(t->l));
}

static struct side_cfg cfg_v1(void)
{
	struct side_cfg c;

	lone_cfg(&c);
	c.link.mpa.rev = 1;
	c.link.mpa.crc = false;
	return c;
}

#define FAILED_AND_DEAD (WEFT_ACT_FAILED | WEFT_ACT_DIE)

static void tcp_has_two_fifths_of_start_up_to_connect(void **state)
{
	struct side_cfg c;
	struct lone t;

	lone_cfg(&c);
	c.link.hold_connect = true;
	lone_init(&t, true, &c);
	assert_int_equal(acts_at(&t, STARTUP * 2 / 5), FAILED_AND_DEAD);
	assert_int_equal(t.l->core.status, -ETIMEDOUT);
	assert_int_equal(t.s.out.sent, 0);
	lone_fini(&t);
}

/* Its worker had no CPU for that long, and finds the handshake finished. */
static void a_late_look_finds_tcp_connected(void **state)
{
	struct side_cfg c;
	struct lone t;

	lone_cfg(&c);
	c.link.hold_connect = true;
	lone_init(&t, true, &c);
	t.l->now += STARTUP;
	host_link_connected(t.l, 0);
	assert_int_equal(t.l->acts & ~WEFT_ACT_AGAIN, 0);
	assert_int_equal(t.s.out.sent, 24);
	lone_fini(&t);
}

static void why_tcp_did_not_connect_is_told(void **state)
{
	struct side_cfg c;
	struct lone t;

	lone_cfg(&c);
	c.link.hold_connect = true;
	lone_init(&t, true, &c);
	host_link_connected(t.l, -EHOSTUNREACH);
	assert_int_equal(t.l->acts & ~WEFT_ACT_AGAIN, FAILED_AND_DEAD);
	assert_int_equal(t.l->core.status, -EHOSTUNREACH);
	lone_fini(&t);
}

static void the_reply_has_the_time_of_an_accept(void **state)		/* MPA-37 */
{
	struct side_cfg c;
	struct lone t;

	lone_cfg(&c);
	c.link.accept_ms = 6 * STARTUP;
	c.link.hold_connect = true;
	lone_init(&t, true, &c);
	host_link_set_time(t.l, 300);
	host_link_connected(t.l, 0);
	run(&t);
	assert_int_equal(t.s.out.sent, 24);
	assert_int_equal(acts_at(&t, 300 + 6 * STARTUP - 1), 0);
	assert_int_equal(acts_at(&t, 300 + 6 * STARTUP), FAILED_AND_DEAD);
	assert_int_equal(t.l->core.status, -ETIMEDOUT);
	assert_true(t.s.aborted);
	lone_fini(&t);
}

static void the_request_has_half_of_start_up_to_come(void **state)	/* MPA-36 */
{
	struct side_cfg c;
	struct lone t;

	lone_cfg(&c);
	lone_init(&t, false, &c);
	hear(&t, request_v1, 19);
	assert_int_equal(acts_at(&t, STARTUP / 2), WEFT_ACT_DIE);
	assert_true(t.s.aborted);
	assert_int_equal(t.s.out.sent, 0);
	lone_fini(&t);
}

static void a_ulp_may_think_for_as_long_as_it_likes(void **state)
{
	struct side_cfg c;
	struct lone t;

	lone_cfg(&c);
	c.link.hold_accept = true;
	lone_init(&t, false, &c);
	hear(&t, request_v1, 20);
	assert_int_equal(t.l->acts, WEFT_ACT_ASK_ULP);
	assert_int_equal(t.l->core.deadline, 0);
	host_link_set_time(t.l, 100 * STARTUP);
	host_link_accept(t.l);
	assert_true(host_link_is_full(t.l));
	assert_int_equal(t.l->core.deadline, 0);
	lone_fini(&t);
}

static void a_full_ulp_is_asked_again_for_a_while(void **state)
{
	struct side_cfg c;
	struct lone t;

	lone_cfg(&c);
	c.link.hold_accept = true;
	lone_init(&t, false, &c);
	hear(&t, request_v1, 20);
	assert_true(weft_link_ulp_is_full(&t.l->core, 0));
	host_link_set_time(t.l, 10);
	/* Asking again neither extends nor shortens the time. */
	assert_true(weft_link_ulp_is_full(&t.l->core, 10));
	assert_int_equal(acts_at(&t, STARTUP), WEFT_ACT_DIE);
	lone_fini(&t);
}

static void a_ulp_that_had_no_room_may_think_once_it_has(void **state)
{
	struct side_cfg c;
	struct lone t;

	lone_cfg(&c);
	c.link.hold_accept = true;
	lone_init(&t, false, &c);
	hear(&t, request_v1, 20);
	assert_true(weft_link_ulp_is_full(&t.l->core, 0));
	weft_link_ulp_was_asked(&t.l->core);
	host_link_set_time(t.l, STARTUP);
	assert_int_equal(t.l->core.state, WEFT_LINK_REQUESTED);
	/* It was asked, and was still full: the time is over. */
	assert_false(weft_link_ulp_is_full(&t.l->core, STARTUP));
	lone_fini(&t);
}

static void a_request_without_a_listener_waits_for_a_while(void **state)
{
	struct side_cfg c;
	struct lone t;

	lone_cfg(&c);
	c.link.hold_accept = true;
	lone_init(&t, false, &c);
	hear(&t, request_v1, 20);
	weft_link_orphan(&t.l->core, 0);
	host_link_set_time(t.l, 10);
	/* A second call does not extend the time. */
	weft_link_orphan(&t.l->core, 10);
	assert_int_equal(acts_at(&t, STARTUP), WEFT_ACT_DIE);
	lone_fini(&t);
}

static void a_peer_that_goes_while_the_ulp_thinks_is_dropped(void **state)
{
	struct side_cfg c;
	struct lone t;
	u32 i;

	for (i = 0; i < 3; i++) {
		lone_cfg(&c);
		c.link.hold_accept = true;
		lone_init(&t, false, &c);
		hear(&t, request_v1, 20);
		if (i == 0)
			host_link_fin(t.l);
		else if (i == 1)
			host_link_reset(t.l);
		else
			hear(&t, "x", 1);	/* RFC 5044 §7.1.1: a Request stands alone */
		assert_int_equal(t.l->core.state, WEFT_LINK_DEAD);
		host_link_accept(t.l);
		assert_int_equal(t.s.out.sent, 0);
		expect_state(&t.s, WEFT_QPS_IDLE);
		lone_fini(&t);
	}
}

/* ---- too many half-open connections ---- */

static void half_a_request_is_evicted(void **state)
{
	struct side_cfg c;
	struct lone t;

	lone_cfg(&c);
	lone_init(&t, false, &c);
	hear(&t, request_v1, 19);
	assert_int_equal(host_link_evict(t.l, false), WEFT_ACT_DIE);
	assert_true(t.s.aborted);
	lone_fini(&t);
}

/* Its octets have arrived; the step that reads them has not run. */
static void a_whole_request_is_not_evicted(void **state)
{
	struct side_cfg c;
	struct lone t;

	lone_cfg(&c);
	c.link.hold_steps = true;
	c.link.hold_accept = true;
	lone_init(&t, false, &c);
	hear(&t, request_v1, 20);
	assert_int_equal(host_link_evict(t.l, false), 0);
	host_link_step(t.l);
	assert_int_equal(t.l->acts, WEFT_ACT_ASK_ULP);
	/* Nor while the ULP decides, nor once it has accepted. */
	assert_int_equal(host_link_evict(t.l, false), 0);
	host_link_accept(t.l);
	assert_int_equal(host_link_evict(t.l, false), 0);
	assert_true(host_link_is_full(t.l));
	lone_fini(&t);
}

static void a_refused_request_is_evicted(void **state)
{
	struct side_cfg c;
	struct lone t;

	lone_cfg(&c);
	c.link.reject = true;
	lone_init(&t, false, &c);
	hear(&t, request_v1, 20);
	run(&t);
	assert_int_equal(t.l->acts & ~WEFT_ACT_AGAIN, WEFT_ACT_ASK_ULP | WEFT_ACT_SHUT);
	/* The peer has not even read the Reply. */
	assert_int_equal(t.s.out.sent, 20);
	assert_int_equal(host_link_evict(t.l, false), WEFT_ACT_DIE);
	assert_true(t.s.aborted);
	lone_fini(&t);
}

/* The QP has gone, and TCP still holds its last octets. */
static void what_the_peer_has_not_got_is_not_evicted(void **state)
{
	struct side_cfg c;
	struct host_mr *mr;
	struct lone t;

	lone_cfg(&c);
	c.link.mpa.rev = 1;
	c.link.mpa.crc = false;
	lone_init(&t, false, &c);
	hear(&t, request_v1, 20);
	hear(&t, "\0\x0E\xC1\x40\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 20);
	mr = host_mr_new(&t.s.host, PD, BASE, 1000, RW);
	side_write(&t.s, 1, SIG, mr, 0, 1000, mr, 0);
	run(&t);
	host_link_forget(t.l);
	run(&t);
	assert_int_equal(t.l->core.state, WEFT_LINK_CLOSING);
	assert_int_equal(host_link_evict(t.l, false), 0);
	reads(&t, ~0u);
	assert_int_equal(host_link_evict(t.l, false), WEFT_ACT_DIE);
	lone_fini(&t);
}

static void an_initiator_is_not_evicted(void **state)
{
	struct side_cfg c;
	struct lone t;

	lone_cfg(&c);
	lone_init(&t, true, &c);
	assert_int_equal(host_link_evict(t.l, false), 0);
	assert_int_equal(t.l->core.state, WEFT_LINK_AWAIT_REPLY);
	lone_fini(&t);
}

/* ---- the RTR ---- */

static const u8 request_p2p[24] = "MPA ID Req Frame\x10\2\0\4\xC0\x08\x80\x08";

static void accept_p2p(struct lone *t)
{
	struct side_cfg c;

	lone_cfg(&c);
	c.link.mpa.crc = false;
	lone_init(t, false, &c);
	hear(t, request_p2p, 24);
	run(t);
	reads(t, ~0u);
	assert_true(host_link_is_full(t->l));
	assert_true(t->l->core.rtr_due);
}

static void an_rtr_that_does_not_come_ends_the_connection(void **state)	/* ENH-28 */
{
	struct lone t;

	accept_p2p(&t);
	assert_int_equal(acts_at(&t, STARTUP) & ~WEFT_ACT_AGAIN, WEFT_ACT_ENDED | WEFT_ACT_SHUT);
	expect_state(&t.s, WEFT_QPS_ERROR);
	/* FIN is sent; the peer's is awaited, but not for ever. */
	assert_int_equal(acts_at(&t, STARTUP + CLOSE), WEFT_ACT_DIE);
	lone_fini(&t);
}

/* An empty Write, CRC off. */
static const u8 rtr_write[20] = "\0\x0E\xC1\x40";

static void an_rtr_that_came_needs_no_deadline(void **state)
{
	struct lone t;

	accept_p2p(&t);
	hear(&t, rtr_write, 20);
	run(&t);
	host_link_set_time(t.l, 10 * STARTUP);
	run(&t);
	assert_true(host_link_is_full(t.l));
	assert_false(t.l->core.rtr_due);
	assert_int_equal(t.l->core.deadline, 0);
	lone_fini(&t);
}

static void a_fin_in_place_of_the_rtr_is_a_fin(void **state)
{
	struct lone t;

	accept_p2p(&t);
	host_link_fin(t.l);
	run(&t);
	assert_false(t.l->core.rtr_due);
	assert_int_equal(t.l->acts & (BYE | WEFT_ACT_ENDED), BYE | WEFT_ACT_ENDED);
	assert_int_equal(t.l->core.state, WEFT_LINK_DEAD);
	assert_false(t.s.aborted);
	lone_fini(&t);
}

/* The RTR is a Read, and its answer is in flight when the peer's FIN arrives. */
static void a_fin_has_its_own_deadline_and_not_the_rtrs(void **state)
{
	/* Length 46, L DV, RV and opcode, QN 1, MSN 1; then sink, size 60000, source. */
	u8 read[52] = "\0\x2E\x41\x41\0\0\0\0\0\0\0\1\0\0\0\1\0\0\0\0"
		      "\0\0\0\1\0\0\0\0\0\0\0\0\0\0\xEA\x60";
	struct host_mr *mr;
	struct lone t;

	accept_p2p(&t);
	t.s.out.sndbuf = 1000;
	mr = host_mr_new(&t.s.host, PD, BASE, 60000, RW);
	weft_put64(weft_put32(read + 36, mr->r.stag), BASE);
	hear(&t, read, 52);
	run(&t);
	assert_true(host_link_waits_for_tcp(t.l));
	host_link_set_time(t.l, STARTUP - 100);
	host_link_fin(t.l);
	run(&t);
	expect_state(&t.s, WEFT_QPS_RTS);
	assert_int_equal(acts_at(&t, STARTUP - 100 + CLOSE), WEFT_ACT_ENDED | WEFT_ACT_DIE);
	lone_fini(&t);
}

/* ---- is there still a peer? ---- */

/* A Write of @len is posted; TCP holds all of it, and the peer has read nothing. */
static void burden(struct lone *t, u32 len)
{
	struct host_mr *mr = host_mr_new(&t->s.host, PD, BASE, len, RW);

	side_write(&t->s, 1, SIG, mr, 0, len, mr, 0);
	run(t);
	assert_true(wire_waiting(&t->s.out) >= len);
}

#define DEAD 6000

static void full_with_dead_ms(struct lone *t)
{
	struct side_cfg c = cfg_v1();

	c.link.dead_ms = DEAD;
	full_v1(t, true, &c);
}

static void expect_dead_peer(struct lone *t)
{
	assert_int_equal(t->l->core.status, -ETIMEDOUT);
	assert_int_equal(t->l->core.state, WEFT_LINK_DEAD);
	assert_int_equal(weft_link_next_step(&t->l->core), 0);
	assert_true(t->s.aborted);
	expect_state(&t->s, WEFT_QPS_ERROR);
}

static void a_peer_that_answers_no_probe_is_dead(void **state)
{
	struct lone t;

	full_with_dead_ms(&t);
	burden(&t, 1000);
	t.l->unanswered = 2;
	assert_int_equal(acts_at(&t, DEAD), WEFT_ACT_ENDED | WEFT_ACT_DIE);
	expect_dead_peer(&t);
	lone_fini(&t);
}

static void a_peer_whose_one_answer_may_be_lost_is_not_dead(void **state)
{
	struct lone t;

	full_with_dead_ms(&t);
	t.l->unanswered = 1;
	assert_int_equal(acts_at(&t, DEAD), 0);
	t.l->unanswered = 2;
	assert_int_equal(acts_at(&t, DEAD + DEAD / 4), WEFT_ACT_ENDED | WEFT_ACT_DIE);
	expect_dead_peer(&t);
	lone_fini(&t);
}

/* Its TCP answers window probes, and takes nothing. */
static void a_stopped_program_is_not_dead(void **state)
{
	struct lone t;
	u32 i, steps;

	full_with_dead_ms(&t);
	burden(&t, 60000);
	t.l->unanswered = 9;
	steps = t.l->steps;
	for (i = 1; i <= 200; i++) {
		host_link_set_time(t.l, i * DEAD / 2);
		run(&t);
		assert_true(host_link_is_full(t.l));
		t.l->heard = t.l->now;
	}
	assert_in_range(t.l->steps - steps, 100, 200);
	host_link_set_time(t.l, 101 * DEAD);
	run(&t);
	expect_dead_peer(&t);
	lone_fini(&t);
}

static void a_shorter_limit_counts_from_the_next_step(void **state)
{
	struct lone t;

	full_with_dead_ms(&t);
	t.l->unanswered = 2;
	host_link_set_time(t.l, 10);
	t.l->core.cfg.dead_ms = DEAD / 2;
	host_link_step(t.l);
	assert_int_equal(acts_at(&t, 10 + DEAD / 2), WEFT_ACT_ENDED | WEFT_ACT_DIE);
	expect_dead_peer(&t);
	lone_fini(&t);
}

static void without_a_limit_tcp_alone_says_that_a_peer_is_dead(void **state)
{
	struct side_cfg c = cfg_v1();
	struct lone t;

	full_v1(&t, true, &c);
	t.l->unanswered = 9;
	assert_int_equal(weft_link_next_step(&t.l->core), 0);
	host_link_set_time(t.l, 1000 * DEAD);
	host_link_step(t.l);
	assert_true(host_link_is_full(t.l));
	lone_fini(&t);
}

/* A Send has come that finds no receive, and may wait longer for one than a dead peer lives. */
static void full_with_a_send_that_waits(struct lone *t)
{
	/* Length 19, L DV, RV and Send, QN 0, MSN 1, MO 0, one octet, pad; no CRC. */
	static const u8 send[28] = "\0\x13\x41\x43\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\0x";
	struct side_cfg c = cfg_v1();

	c.link.dead_ms = DEAD;
	c.link.rnr_ms = 100 * DEAD;
	full_v1(t, false, &c);
	hear(t, send, 28);
	run(t);
	assert_true(t->s.qp->core.rx_waits);
}

/* Its peer's TCP answers keepalives, at both ends. */
static void a_send_may_wait_longer_than_a_dead_peer_lives(void **state)
{
	struct host_mr *mr;
	struct lone t;
	u32 i;

	full_with_a_send_that_waits(&t);
	t.l->unanswered = 1;
	for (i = 1; i < 200; i++) {
		host_link_set_time(t.l, i * DEAD / 2);
		run(&t);
		assert_true(host_link_is_full(t.l));
		t.l->heard = t.l->now;
	}
	mr = host_mr_new(&t.s.host, PD, BASE, 16, RW);
	side_recv(&t.s, 3, mr, 0, 16);
	run(&t);
	expect_cqe(t.s.rcq, 3, WEFT_WC_SUCCESS);
	expect_state(&t.s, WEFT_QPS_RTS);
	lone_fini(&t);
}

/* RFC 5044 says nothing of it: what waits unread for a receive does not keep a dead peer. */
static void a_send_that_waits_does_not_keep_a_dead_peer(void **state)
{
	struct lone t;

	full_with_a_send_that_waits(&t);
	t.l->unanswered = 2;
	assert_int_equal(acts_at(&t, DEAD), WEFT_ACT_ENDED | WEFT_ACT_DIE);
	expect_dead_peer(&t);
	lone_fini(&t);
}

/* The first two probes go unanswered before the limit; TCP itself gives up after it. */
static void keepalives_ask_twice_in_time(void **state)
{
	u32 ms;

	for (ms = WEFT_DEAD_MS_MIN; ms <= 3600000; ms += 500) {
		struct weft_keepalive k = weft_alive_keepalive(ms, 0);

		assert_true(k.idle_s >= 1 && k.interval_s >= 1);
		assert_true((k.idle_s + k.interval_s) * 1000u <= ms);
		assert_true((k.idle_s + k.interval_s * k.count) * 1000u > ms);
		assert_true(k.interval_s * k.count * 2000ull >= 3ull * ms);
	}
	assert_int_equal(weft_alive_keepalive(0, 0).idle_s, 32767);
	assert_int_equal(weft_alive_keepalive(~0u, 0).idle_s, 32767);
	assert_int_equal(weft_alive_keepalive(~0u, ~0u).count, 127);
}

/* ---- connections that outlive their QPs ---- */

#define HOLD 500

static void held_pair_of(struct parting *t, u64 seed, u32 hold, u32 peers_hold)
{
	struct pair_cfg c;
	u32 i;

	pair_cfg_init(&c);
	c.seed = seed;
	for (i = 0; i < 2; i++) {
		c.s[i].link.close_ms = CLOSE;
		c.s[i].link.hold_ms = i ? peers_hold : hold;
		c.s[i].link.dead_ms = 2 * HOLD;
	}
	pair_init(&t->p, &c);
	for (i = 0; i < 2; i++)
		t->mr[i] = host_mr_new(&t->p.s[i].host, PD, BASE, LEN, RW);
	pair_run(&t->p);
}

static void held_pair(struct parting *t, u32 hold, u32 peers_hold)
{
	held_pair_of(t, 1, hold, peers_hold);
}

static void pass_time(struct parting *t, u64 ms)
{
	u32 i;

	pair_run(&t->p);
	for (i = 0; i < 2; i++)
		host_link_set_time(&t->p.s[i].link, ms);
	pair_run(&t->p);
}

static void expect_untold(struct parting *t)
{
	u32 i;

	for (i = 0; i < 2; i++)
		assert_int_equal(t->p.s[i].link.acts & (BYE | WEFT_ACT_ENDED | WEFT_ACT_DIE), 0);
}

/* Both have ended by FIN; a FIN in either direction was the first. */
static void expect_ended(struct parting *t)
{
	const u32 all = WEFT_ACT_SHUT | WEFT_ACT_ENDED | WEFT_ACT_DIE;
	u32 i;

	for (i = 0; i < 2; i++) {
		assert_int_equal(t->p.s[i].link.acts & all, all);
		assert_false(t->p.s[i].aborted);
	}
	pair_fini(&t->p);
}

static void a_failed_qp_is_held_until_its_user_hangs_up(void **state)
{
	struct parting t;

	held_pair(&t, HOLD, HOLD);
	host_link_error(&t.p.s[0].link);
	pass_time(&t, HOLD - 1);
	expect_untold(&t);
	expect_state(&t.p.s[1], WEFT_QPS_RTS);
	host_link_hang_up(&t.p.s[0].link);
	pair_run(&t.p);
	expect_state(&t.p.s[1], WEFT_QPS_ERROR);
	assert_false(t.p.s[1].qp->core.term_received);
	expect_ended(&t);
}

/* Its outstanding requests would not be answered. */
static void the_peer_of_a_held_qp_fails_in_time(void **state)
{
	struct parting t;
	struct weft_cqe e;

	held_pair(&t, HOLD, HOLD);
	host_link_error(&t.p.s[1].link);
	pass_time(&t, 1);
	side_read(&t.p.s[0], 7, SIG, t.mr[0], 0, 100, t.mr[1], 0);
	pass_time(&t, HOLD - 1);
	expect_no_cqe(t.p.s[0].scq);
	pass_time(&t, HOLD);
	assert_true(host_cq_poll(t.p.s[0].scq, &e));
	assert_int_equal(e.status, WEFT_WC_RETRY_EXC_ERR);
	assert_int_equal(weft_qpc_fault(&t.p.s[0].qp->core), WEFT_FAULT_NONE);
	pass_time(&t, 100 * HOLD);
	expect_untold(&t);
	assert_int_equal(t.p.s[1].link.core.state, WEFT_LINK_HELD);
	assert_int_equal(t.p.s[0].link.core.state, WEFT_LINK_HELD);
	/* Either may be the first. */
	host_link_hang_up(&t.p.s[0].link);
	pair_run(&t.p);
	expect_ended(&t);
}

static void an_rnic_closes_at_the_terminate_of_a_held_qp(void **state)
{
	struct parting t;

	held_pair(&t, HOLD, 0);
	host_link_error(&t.p.s[0].link);
	pass_time(&t, HOLD - 1);
	expect_untold(&t);
	pass_time(&t, HOLD);
	assert_true(t.p.s[1].qp->core.term_received);
	expect_ended(&t);
}

static void an_rnics_close_ends_a_held_connection(void **state)
{
	struct parting t;

	held_pair(&t, 0, HOLD);
	host_link_error(&t.p.s[0].link);
	pair_run(&t.p);
	expect_ended(&t);
}

/* RFC 5040 §7.2. */
static void an_error_of_the_protocol_ends_any_connection(void **state)
{
	struct parting t;

	held_pair(&t, HOLD, HOLD);
	weft_qpc_fail(&t.p.s[0].qp->core, WEFT_E_RDMAP_LOCAL, NULL);
	pair_run(&t.p);
	assert_true(t.p.s[1].qp->core.term_received);
	expect_ended(&t);
}

/* The user may be about to hang up. If not, the FIN is all that can be said without a QP. */
static void a_destroyed_qp_is_held_for_a_time(void **state)
{
	struct parting t;

	held_pair(&t, HOLD, HOLD);
	host_link_forget(&t.p.s[0].link);
	pass_time(&t, HOLD - 1);
	expect_untold(&t);
	pass_time(&t, HOLD);
	expect_ended(&t);
	/* In error: with a Terminate. */
	held_pair(&t, HOLD, HOLD);
	host_link_error(&t.p.s[0].link);
	pair_run(&t.p);
	host_link_forget(&t.p.s[0].link);
	pass_time(&t, 100 * HOLD);
	assert_true(t.p.s[1].qp->core.term_received);
	expect_untold(&t);
	host_link_hang_up(&t.p.s[0].link);
	pair_run(&t.p);
	expect_ended(&t);
}

/* What it had sent is on its way yet. */
static void a_link_that_hung_up_is_not_held(void **state)
{
	struct side_cfg c = cfg_v1();
	struct host_mr *mr;
	struct lone t;

	c.link.hold_ms = HOLD;
	full_v1(&t, true, &c);
	t.s.out.sndbuf = 1000;
	mr = host_mr_new(&t.s.host, PD, BASE, LEN, RW);
	side_write(&t.s, 1, SIG, mr, 0, LEN, mr, 0);
	run(&t);
	host_link_hang_up(t.l);
	host_link_error(t.l);
	run(&t);
	assert_true(host_link_is_full(t.l));
	assert_int_equal(acts_at(&t, CLOSE) & WEFT_ACT_ENDED, WEFT_ACT_ENDED);
	lone_fini(&t);
}

static void removal_of_the_device_ends_a_held_connection(void **state)
{
	struct parting t;

	held_pair(&t, HOLD, HOLD);
	host_link_forget(&t.p.s[0].link);
	host_link_abort(&t.p.s[0].link);
	assert_int_equal(t.p.s[0].link.acts & (WEFT_ACT_ENDED | WEFT_ACT_DIE),
			 WEFT_ACT_ENDED | WEFT_ACT_DIE);
	pair_run(&t.p);
	pair_fini(&t.p);
}

/* Reads that the peer does not answer, of a connection that is held and may have a dead peer. */
static void reads_under_way(struct lone *t, unsigned int count)
{
	struct side_cfg c = cfg_v1();
	struct host_mr *mr;
	unsigned int i;

	c.link.dead_ms = DEAD;
	c.link.hold_ms = HOLD;
	full_v1(t, true, &c);
	mr = host_mr_new(&t->s.host, PD, BASE, LEN, RW);
	for (i = 1; i <= count; i++)
		side_read(&t->s, i, SIG, mr, 0, 100, mr, 0);
	run(t);
}

static void the_oldest_request_to_a_dead_peer_says_so(void **state)
{
	struct weft_cqe e;
	struct lone t;

	reads_under_way(&t, 2);
	t.l->unanswered = 2;
	assert_int_equal(acts_at(&t, DEAD), WEFT_ACT_ENDED | WEFT_ACT_DIE);
	assert_true(host_cq_poll(t.s.scq, &e));
	assert_int_equal(e.status, WEFT_WC_RETRY_EXC_ERR);
	assert_true(host_cq_poll(t.s.scq, &e));
	assert_int_equal(e.status, WEFT_WC_FLUSH_ERR);
	expect_dead_peer(&t);
	lone_fini(&t);
}

/* TCP may give up before core looks: its keepalives have a count of their own. */
static void what_tcp_has_given_up_is_a_dead_peer(void **state)
{
	struct weft_cqe e;
	struct lone t;

	reads_under_way(&t, 1);
	host_link_set_time(t.l, DEAD / 2);
	t.l->tcp_error = -ETIMEDOUT;
	run(&t);
	assert_int_equal(t.l->last_acts, WEFT_ACT_ENDED | WEFT_ACT_DIE);
	assert_true(host_cq_poll(t.s.scq, &e));
	assert_int_equal(e.status, WEFT_WC_RETRY_EXC_ERR);
	expect_dead_peer(&t);
	lone_fini(&t);
}

/* A reset shows that the peer's host lives. */
static void a_reset_is_not_a_dead_peer(void **state)
{
	struct weft_cqe e;
	struct lone t;

	reads_under_way(&t, 1);
	t.l->tcp_error = -ECONNRESET;
	run(&t);
	assert_true(host_cq_poll(t.s.scq, &e));
	assert_int_equal(e.status, WEFT_WC_FLUSH_ERR);
	assert_int_equal(t.l->core.status, 0);
	assert_int_equal(t.l->core.state, WEFT_LINK_DEAD);
	lone_fini(&t);
}

static void a_dead_peer_ends_a_held_connection(void **state)
{
	struct side_cfg c = cfg_v1();
	struct lone t;

	c.link.dead_ms = DEAD;
	c.link.hold_ms = HOLD;
	full_v1(&t, true, &c);
	host_link_error(t.l);
	host_link_set_time(t.l, HOLD);
	host_link_set_time(t.l, 2 * HOLD);
	run(&t);
	assert_int_equal(t.l->core.state, WEFT_LINK_HELD);
	t.l->unanswered = 2;
	host_link_set_time(t.l, 2 * DEAD);
	run(&t);
	expect_dead_peer(&t);
	lone_fini(&t);
}

/* Its deadline is all that is waited for: a look that is never taken would be due for ever. */
static void a_held_connection_that_closes_needs_no_look_at_the_peer(void **state)
{
	struct side_cfg c = cfg_v1();
	struct lone t;

	c.link.dead_ms = CLOSE / 2;
	c.link.hold_ms = HOLD;
	full_v1(&t, true, &c);
	host_link_error(t.l);
	run(&t);
	host_link_set_time(t.l, HOLD);
	run(&t);
	assert_int_equal(t.l->core.state, WEFT_LINK_HELD);
	host_link_set_time(t.l, HOLD + 10);
	host_link_hang_up(t.l);
	run(&t);
	assert_int_equal(t.l->core.state, WEFT_LINK_CLOSING);
	assert_int_equal(weft_link_next_step(&t.l->core), HOLD + 10 + CLOSE);
	assert_int_equal(acts_at(&t, HOLD + 10 + CLOSE), WEFT_ACT_DIE);
	lone_fini(&t);
}

/* Whatever happens to both: each request completes once, and once both have hung up it is over. */
static void held_connections_end_somehow(void **state)
{
	static const char both[] = "edtcsrhEDTCSRH";
	struct parting t;
	u64 seed, now;
	u32 i, n;

	for (seed = 1; seed <= 2000; seed++) {
		held_pair_of(&t, seed, seed & 1 ? HOLD : 0, seed & 2 ? HOLD : 0);
		for (i = 0; i < 2; i++)
			for (n = 0; n < WRITES; n++)
				side_write(&t.p.s[i], n, SIG, t.mr[i], 0, 1000, t.mr[!i], 0);
		for (now = 1, n = 0; n < 6; n++) {
			char e = both[rng_below(&t.p.rng, sizeof(both) - 1)];

			happen(&t, e);
			now += rng_below(&t.p.rng, 2) * rng_below(&t.p.rng, HOLD);
			pass_time(&t, now);
		}
		host_link_hang_up(&t.p.s[0].link);
		host_link_hang_up(&t.p.s[1].link);
		pass_time(&t, now += CLOSE + 1);
		pass_time(&t, now + CLOSE + 1);
		for (i = 0; i < 2; i++) {
			struct weft_cqe e;

			assert_int_equal(t.p.s[i].link.core.state, WEFT_LINK_DEAD);
			assert_null(t.p.s[i].link.core.qp);
			for (n = 0; host_cq_poll(t.p.s[i].scq, &e); n++)
				assert_int_equal(e.wr_id, n);
			assert_int_equal(n, WRITES);
		}
		pair_fini(&t.p);
	}
}

/* ---- the end is limited in time ---- */

static void a_silent_peer_has_one_time_to_close(void **state)
{
	struct side_cfg c = cfg_v1();
	struct lone t;

	full_v1(&t, true, &c);
	host_link_set_time(t.l, 5000);
	host_link_close(t.l);
	run(&t);
	assert_int_equal(t.l->acts & (BYE | WEFT_ACT_ENDED), WEFT_ACT_SHUT);
	expect_state(&t.s, WEFT_QPS_CLOSING);
	assert_int_equal(acts_at(&t, 5000 + CLOSE), WEFT_ACT_ENDED | WEFT_ACT_DIE);
	expect_state(&t.s, WEFT_QPS_ERROR);
	assert_true(t.s.aborted);
	lone_fini(&t);
}

static void a_slow_peer_of_a_closing_qp_has_as_long_as_it_moves(void **state)
{
	struct side_cfg c = cfg_v1();
	struct lone t;
	u32 i;

	full_v1(&t, true, &c);
	burden(&t, 60000);
	host_link_close(t.l);
	run(&t);
	for (i = 1; i <= 30; i++) {
		host_link_set_time(t.l, i * CLOSE - 1);
		reads(&t, 1);
		host_link_set_time(t.l, i * CLOSE);
		run(&t);
		assert_true(host_link_is_full(t.l));
	}
	/* Then it stops. The last sign of life was one ms before the deadline. */
	assert_int_equal(acts_at(&t, 31 * CLOSE), WEFT_ACT_ENDED | WEFT_ACT_DIE);
	lone_fini(&t);
}

static void slow_closing(u32 from, u32 *times)
{
	struct side_cfg c = cfg_v1();
	struct lone t;

	full_v1(&t, true, &c);
	burden(&t, 60000);
	host_link_forget(t.l);
	run(&t);
	for (*times = 0; t.l->core.state == WEFT_LINK_CLOSING && *times < 100; ++*times) {
		/* An octet is acknowledged when the deadline passes. */
		reads(&t, *times >= from);
		host_link_set_time(t.l, t.l->core.deadline);
		run(&t);
	}
	assert_int_equal(t.l->now, *times * CLOSE);
	assert_true(t.s.aborted);
	lone_fini(&t);
}

static void closing_without_a_qp_lasts_twelve_times_at_most(void **state)
{
	u32 times;

	slow_closing(0, &times);
	assert_int_equal(times, 12);
}

static void closing_without_a_qp_lasts_one_time_if_nothing_moves(void **state)
{
	u32 times;

	slow_closing(1, &times);
	assert_int_equal(times, 1);
}

/* If far too many peers take an octet only now and then. */
static void a_peer_slow_to_take_the_rest_is_evicted(void **state)
{
	struct side_cfg c = cfg_v1();
	struct lone t;

	full_v1(&t, true, &c);
	burden(&t, 60000);
	host_link_forget(t.l);
	run(&t);
	assert_int_equal(host_link_evict(t.l, true), 0);
	host_link_set_time(t.l, CLOSE - 1);
	reads(&t, 1);
	host_link_set_time(t.l, CLOSE);
	run(&t);
	assert_int_equal(t.l->core.state, WEFT_LINK_CLOSING);
	assert_int_equal(host_link_evict(t.l, false), 0);
	assert_int_equal(host_link_evict(t.l, true), WEFT_ACT_DIE);
	lone_fini(&t);
}

static void a_peer_that_talks_and_takes_nothing_is_not_slow(void **state)
{
	struct side_cfg c = cfg_v1();
	struct lone t;

	full_v1(&t, true, &c);
	burden(&t, 60000);
	host_link_forget(t.l);
	run(&t);
	host_link_set_time(t.l, CLOSE - 1);
	hear(&t, "x", 1);
	assert_int_equal(acts_at(&t, CLOSE), WEFT_ACT_DIE);
	lone_fini(&t);
}

/* ---- start-up that takes another course ---- */

/* An initiator that has sent an enhanced Request, of 24 octets and "hello". */
static void ask_p2p(struct lone *t, struct side_cfg *c)
{
	lone_cfg(c);
	c->link.hold_connect = true;
	c->link.mpa.p2p = true;
	c->link.pd = "hello";
	c->link.pd_len = 5;
	lone_init(t, true, c);
	host_link_connected(t->l, 0);
	assert_int_equal(t->s.out.buf[17], 2);
}

/* The same QP, on another connection, whose handshake is finished. */
static void succeed(struct lone *heir, struct lone *t, const struct side_cfg *c)
{
	assert_int_equal(t->l->acts & ~WEFT_ACT_AGAIN, WEFT_ACT_RETRY);
	host_link_set_time(t->l, t->l->now + 350);
	side_init(&heir->s, false, c);
	heir->l = &heir->s.link;
	weft_link_init(&heir->l->core, true);
	heir->l->qp = t->l->qp;
	heir->l->connecting = true;
	heir->l->cfg.hold_connect = true;
	host_link_succeed(heir->l, t->l);
	assert_null(t->l->core.qp);
	assert_int_equal(t->l->core.state, WEFT_LINK_DEAD);
	host_link_connected(heir->l, 0);
}

static void forget_heir(struct lone *heir)
{
	host_link_fini(heir->l);
	side_fini(&heir->s);
}

/* A Request of revision 1 was sent. */
static void expect_v1(struct lone *heir)
{
	assert_int_equal(heir->s.out.sent, 25);
	assert_int_equal(heir->s.out.buf[17], 1);
	assert_int_equal(heir->s.out.buf[16] & 0x10, 0);
	assert_memory_equal(heir->s.out.buf + 20, "hello", 5);
}

static void a_peer_that_closes_on_an_enhanced_request_is_asked_again(void **state)
{
	struct lone t, heir;
	struct side_cfg c;

	ask_p2p(&t, &c);
	host_link_fin(t.l);
	succeed(&heir, &t, &c);
	expect_v1(&heir);
	hear(&heir, reply_v1, 20);
	assert_true(heir.l->acts & WEFT_ACT_CONNECTED);
	expect_state(&t.s, WEFT_QPS_RTS);
	forget_heir(&heir);
	lone_fini(&t);
}

/* Revision 2 once more, with the same offer; then no further retry. */
static void a_peer_that_resets_is_asked_the_same_once_more(void **state)
{
	struct lone t, heir;
	struct side_cfg c;

	ask_p2p(&t, &c);
	host_link_reset(t.l);
	succeed(&heir, &t, &c);
	assert_int_equal(heir.s.out.sent, 29);
	assert_memory_equal(heir.s.out.buf, t.s.out.buf, 29);
	host_link_reset(heir.l);
	assert_int_equal(heir.l->acts & ~WEFT_ACT_AGAIN, FAILED_AND_DEAD);
	assert_int_equal(heir.l->core.status, -ECONNRESET);
	forget_heir(&heir);
	lone_fini(&t);
}

static void a_peer_that_closes_the_second_time_is_asked_by_revision_1(void **state)
{
	struct lone t, heir, third;
	struct side_cfg c;

	ask_p2p(&t, &c);
	host_link_reset(t.l);
	succeed(&heir, &t, &c);
	host_link_fin(heir.l);
	succeed(&third, &heir, &c);
	expect_v1(&third);
	/* There is nothing left to try. */
	host_link_reset(third.l);
	assert_int_equal(third.l->acts & ~WEFT_ACT_AGAIN, FAILED_AND_DEAD);
	forget_heir(&third);
	forget_heir(&heir);
	lone_fini(&t);
}

/* An unexpected answer instead of the Reply, and the result. */
static void startup_ends(const void *octets, u32 n, bool fin, u8 rev, u32 acts, int status)
{
	struct side_cfg c;
	struct lone t;

	lone_cfg(&c);
	c.link.mpa.rev = rev;
	c.link.hold_connect = true;
	lone_init(&t, true, &c);
	host_link_connected(t.l, 0);
	run(&t);
	if (n)
		hear(&t, octets, n);
	if (fin)
		host_link_fin(t.l);
	assert_int_equal(t.l->acts & ~WEFT_ACT_AGAIN, acts);
	assert_int_equal(t.l->core.status, status);
	lone_fini(&t);
}

static void a_reply_of_revision_1_to_an_enhanced_request_asks_for_it(void **state)	/* ENH-05 */
{
	startup_ends(reply_v1, 20, false, 2, WEFT_ACT_RETRY, 0);
}

static void a_peer_that_closes_on_revision_1_has_refused(void **state)
{
	startup_ends(NULL, 0, true, 1, FAILED_AND_DEAD, -ECONNRESET);
}

static void a_peer_that_closes_within_its_reply_is_not_asked_again(void **state)
{
	startup_ends(reply_v1, 19, true, 2, FAILED_AND_DEAD, -ECONNRESET);
}

static void what_is_no_reply_is_a_protocol_error(void **state)		/* MPA-34 */
{
	startup_ends("GET / HTTP/1.1\r\n\r\n..", 20, false, 2, FAILED_AND_DEAD, -EPROTO);
	/* A FIN after it makes no difference. */
	startup_ends("GET / HTTP/1.1\r\n\r\n..", 20, true, 2, FAILED_AND_DEAD, -EPROTO);
}

static void a_rejecting_reply_fails_politely(void **state)		/* MPA-34 */
{
	static const u8 no[20] = "MPA ID Rep Frame\x20\1\0";
	struct side_cfg c = cfg_v1();
	struct lone t;

	lone_init(&t, true, &c);
	hear(&t, no, 20);
	run(&t);
	assert_int_equal(t.l->core.status, -ECONNREFUSED);
	assert_int_equal(t.l->acts & ~WEFT_ACT_AGAIN, WEFT_ACT_FAILED | WEFT_ACT_SHUT);
	assert_false(t.s.aborted);
	host_link_fin(t.l);
	reads(&t, ~0u);
	run(&t);
	assert_true(t.l->acts & WEFT_ACT_DIE);
	assert_false(t.s.aborted);
	lone_fini(&t);
}

static u32 long_reply(u8 *f, u32 pd)
{
	memcpy(f, reply_v1, 20);
	f[18] = (u8)(pd >> 8);
	f[19] = (u8)pd;
	memset(f + 20, 'p', pd);
	return 20 + pd;
}

static void a_reply_with_more_private_data_than_the_ulp_takes_fails(void **state)
{
	u8 f[20 + 101];
	struct lone t;
	u32 more;

	for (more = 0; more < 2; more++) {
		struct side_cfg c = cfg_v1();

		c.link.pd_max = 100;
		lone_init(&t, true, &c);
		hear(&t, f, long_reply(f, 100 + more));
		assert_int_equal(host_link_is_full(t.l), !more);
		assert_int_equal(t.l->core.status, more ? -EMSGSIZE : 0);
		if (!more)
			assert_int_equal(t.l->offer.pd_len, 100);
		lone_fini(&t);
	}
}

static void a_request_with_more_private_data_than_the_ulp_takes_is_rejected(void **state)
{
	u8 f[20 + 101];
	struct lone t;
	u32 more;

	for (more = 0; more < 2; more++) {
		struct side_cfg c = cfg_v1();

		c.link.pd_max = 100;
		lone_init(&t, false, &c);
		long_reply(f, 100 + more);
		memcpy(f, request_v1, 16);
		hear(&t, f, 120 + more);
		run(&t);
		assert_int_equal(t.s.out.buf[16] & 0x20, more ? 0x20 : 0);
		assert_int_equal(!(t.l->acts & WEFT_ACT_ASK_ULP), more);
		assert_int_equal(host_link_is_full(t.l), !more);
		lone_fini(&t);
	}
}

static void too_much_private_data_for_the_reply_rejects(void **state)
{
	static const u8 much[600];
	struct lone t;
	u32 more;

	for (more = 0; more < 2; more++) {
		struct side_cfg c = cfg_v1();

		c.link.pd = much;
		c.link.pd_len = (u16)(512 + more);
		lone_init(&t, false, &c);
		hear(&t, request_v1, 20);
		run(&t);
		assert_int_equal(t.s.out.buf[16] & 0x20, more ? 0x20 : 0);
		assert_int_equal(t.s.out.sent, more ? 20 : 532);
		expect_state(&t.s, more ? WEFT_QPS_IDLE : WEFT_QPS_RTS);
		lone_fini(&t);
	}
}

static void an_offer_has_room_for_the_private_data_of_its_revision(void **state)
{
	static const u8 much[513];
	struct weft_mpa_cfg mpa = { .rev = 1, .rtr = WEFT_RTR_ALL, .ird = 8, .ord = 8 };
	struct weft_offer o;

	assert_int_equal(weft_offer_init(&o, &mpa, 1, 99, much, 512), 0);
	assert_int_equal(o.cfg.ird, 1);
	assert_int_equal(o.cfg.ord, 8);
	assert_int_equal(weft_offer_init(&o, &mpa, 1, 1, much, 513), -EINVAL);
	mpa.rev = 2;
	assert_int_equal(weft_offer_init(&o, &mpa, 1, 1, much, 508), 0);
	assert_int_equal(weft_offer_init(&o, &mpa, 1, 1, much, 509), -EINVAL);
}

static void octets_behind_the_reply_are_fpdus(void **state)		/* MPA-33 */
{
	struct side_cfg c = cfg_v1();
	u8 both[20 + 28] = "MPA ID Rep Frame\0\1\0\0";
	/* A Send of 4 octets: length 22, L DV, RV and opcode, and so on. */
	static const u8 send[28] = "\0\x16\x41\x43\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\0" "data";
	struct host_mr *mr;
	struct lone t;

	lone_init(&t, true, &c);
	mr = host_mr_new(&t.s.host, PD, BASE, 64, RW);
	side_recv(&t.s, 7, mr, 0, 64);
	memcpy(both + 20, send, 28);
	hear(&t, both, 48);
	assert_int_equal(expect_cqe(t.s.rcq, 7, WEFT_WC_SUCCESS).byte_len, 4);
	assert_memory_equal(mr->mem, "data", 4);
	lone_fini(&t);
}

/* More octets arrive before the host could take a step. */
static void octets_behind_the_reply_wait_for_the_step(void **state)
{
	const struct weft_seg reply = { reply_v1, 20 }, fpdu = { rtr_write, 20 };
	struct side_cfg c = cfg_v1();
	struct weft_cur in;
	struct lone t;

	c.link.hold_steps = true;
	lone_init(&t, true, &c);
	host_link_step(t.l);
	weft_cur_init(&in, &reply, 1);
	weft_link_rx(&t.l->core, &in);
	assert_int_equal(in.left, 0);
	weft_cur_init(&in, &fpdu, 1);
	weft_link_rx(&t.l->core, &in);
	assert_int_equal(in.left, 20);
	assert_true(host_link_step(t.l) & WEFT_ACT_CONNECTED);
	weft_link_rx(&t.l->core, &in);
	assert_int_equal(in.left, 0);
	assert_int_equal(t.l->core.st.rx_fpdus, 1);
	lone_fini(&t);
}

/* RFC 6581 §9.1, §9.2: a Terminate reports it, and is the last message. */
static void expect_last_words(const u8 *reply, u8 code)
{
	struct side_cfg c;
	const u8 *said;
	struct lone t;

	lone_cfg(&c);
	c.link.mpa.crc = false;
	c.link.mpa.p2p = true;
	lone_init(&t, true, &c);
	reads(&t, ~0u);
	hear(&t, reply, 24);
	run(&t);
	assert_int_equal(t.l->core.status, -EPROTO);
	assert_int_equal(t.l->acts & ~WEFT_ACT_AGAIN, WEFT_ACT_FAILED | WEFT_ACT_SHUT);
	assert_int_equal(wire_waiting(&t.s.out), 2 + 18 + 4 + 4);
	said = t.s.out.buf + t.s.out.head;
	assert_int_equal(said[3] & 0x0F, P_TERM);
	assert_int_equal(said[20], 0x20);
	assert_int_equal(said[21], code);
	expect_state(&t.s, WEFT_QPS_ERROR);
	assert_false(t.s.aborted);
	lone_fini(&t);
}

static void more_reads_than_we_answer_end_with_a_terminate(void **state)	/* ENH-11 */
{
	expect_last_words((const u8 *)"MPA ID Rep Frame\x10\2\0\4\xC0\x08\x80\x09", 6);
}

static void no_kind_of_rtr_ends_with_a_terminate(void **state)		/* ENH-22 */
{
	expect_last_words((const u8 *)"MPA ID Rep Frame\x10\2\0\4\x80\x08\0\x08", 7);
}

static void a_ulp_that_cannot_be_told_is_told_of_a_failure(void **state)
{
	struct side_cfg c = cfg_v1();
	struct lone t;

	c.link.hold_steps = true;
	lone_init(&t, true, &c);
	host_link_step(t.l);
	hear(&t, reply_v1, 20);
	assert_true(host_link_step(t.l) & WEFT_ACT_CONNECTED);
	t.l->cfg.hold_steps = false;
	host_link_withdraw(t.l, -ENOMEM);
	run(&t);
	assert_true(t.l->acts & WEFT_ACT_FAILED);
	assert_false(t.l->acts & WEFT_ACT_ENDED);
	assert_int_equal(t.l->core.status, -ENOMEM);
	assert_true(t.l->acts & WEFT_ACT_SHUT);
	expect_state(&t.s, WEFT_QPS_ERROR);
	lone_fini(&t);
}

static void a_qp_moved_to_error_aborts_start_up(void **state)
{
	u32 connected;
	struct lone t;

	for (connected = 0; connected < 2; connected++) {
		struct side_cfg c = cfg_v1();

		c.link.hold_connect = true;
		lone_init(&t, true, &c);
		if (connected)
			host_link_connected(t.l, 0);
		host_link_error(t.l);
		run(&t);
		assert_int_equal(t.l->core.status, -ECONNABORTED);
		assert_int_equal(t.l->acts & FAILED_AND_DEAD, FAILED_AND_DEAD);
		expect_state(&t.s, WEFT_QPS_ERROR);
		lone_fini(&t);
	}
}

static void the_device_goes_away_in_start_up(void **state)
{
	struct side_cfg c = cfg_v1();
	struct lone t;

	lone_init(&t, true, &c);
	host_link_abort(t.l);
	assert_int_equal(t.l->core.status, -ENETDOWN);
	assert_int_equal(t.l->acts & FAILED_AND_DEAD, FAILED_AND_DEAD);
	lone_fini(&t);
	lone_init(&t, false, &c);
	host_link_abort(t.l);
	assert_int_equal(t.l->acts, WEFT_ACT_DIE);
	host_link_abort(t.l);
	assert_true(t.s.aborted);
	lone_fini(&t);
}

/* ---- the send run ---- */

static void without_memory_a_run_comes_again(void **state)
{
	struct side_cfg c = cfg_v1();
	struct lone t;
	u64 sent;

	full_v1(&t, true, &c);
	sent = t.s.out.sent;
	t.l->memory_fails = 3;
	burden(&t, 5000);
	assert_int_equal(t.l->memory_fails, 0);
	assert_true(t.s.out.sent >= sent + 5000);
	expect_cqe(t.s.scq, 1, WEFT_WC_SUCCESS);
	assert_null(t.l->batch);
	lone_fini(&t);
}

static void post_unbinds(struct lone *t, const struct host_mr *window, u32 n)
{
	struct host_wr wr = {
		.opcode = WEFT_WR_BIND_MW,
		.bind.mw_stag = window->r.stag & ~0xFFu,
	};
	u32 i;

	for (i = 1; i <= n; i++) {
		wr.wr_id = i;
		wr.bind.mw_stag ^= 1;
		wr.flags = i == n ? SIG : 0;
		assert_true(host_post_send(t->s.qp, &wr));
	}
}

/* A program could post such work as fast as it completes. */
static void a_run_of_work_that_sends_nothing_has_an_end(void **state)
{
	struct side_cfg c = cfg_v1();
	struct host_mr *window;
	struct lone t;
	u32 taken;

	full_v1(&t, true, &c);
	run(&t);
	window = host_window_new(&t.s.host, PD, WEFT_REGION_WINDOW_1);
	post_unbinds(&t, window, 200);
	taken = t.s.qp->core.sq.taken;
	host_link_tx(t.l);
	assert_in_range(t.s.qp->core.sq.taken - taken, 1, 100);
	assert_true(t.s.qp->kicked);
	run(&t);
	expect_cqe(t.s.scq, 200, WEFT_WC_SUCCESS);
	expect_no_cqe(t.s.scq);
	lone_fini(&t);
}

/* Each Write is a call of TCP: the work after it waits until TCP has it. */
static void a_run_of_small_batches_has_an_end(void **state)
{
	struct side_cfg c = cfg_v1();
	struct host_mr *mr, *window;
	struct lone t;
	u32 i;

	full_v1(&t, true, &c);
	run(&t);
	mr = host_mr_new(&t.s.host, PD, BASE, 8, RW);
	window = host_window_new(&t.s.host, PD, WEFT_REGION_WINDOW_1);
	for (i = 0; i < 100; i++) {
		side_write(&t.s, 0, 0, mr, 0, 0, mr, 0);
		post_unbinds(&t, window, 1);
	}
	/* Every other run is of one batch. */
	t.l->runs |= 1;
	host_link_tx(t.l);
	assert_in_range(t.l->tails, 10, 70);
	assert_true(t.s.qp->kicked);
	run(&t);
	for (i = 0; i < 100; i++)
		expect_cqe(t.s.scq, 1, WEFT_WC_SUCCESS);
	expect_no_cqe(t.s.scq);
	lone_fini(&t);
}

/* TCP takes 1000 octets of a Write of 1200: 220 wait, in memory with @spare spare octets. */
static void write_too_much_lent(struct lone *t, u32 spare)
{
	struct side_cfg c = cfg_v1();
	struct host_mr *mr;

	c.sndbuf = 1000;
	c.link.rest_spare = spare;
	full_v1(t, true, &c);
	mr = host_mr_new(&t->s.host, PD, BASE, 1200, RW);
	side_write(&t->s, 1, SIG, mr, 0, 1200, mr, 0);
	run(t);
	assert_true(host_link_waits_for_tcp(t->l));
	assert_int_equal(t->l->core.batch.end - t->l->core.batch.off, 220);
	/* From now on the memory of the rest belongs to the user again. */
	memset(mr->mem, 0, 1200);
}

static void write_too_much(struct lone *t)
{
	write_too_much_lent(t, 0);
}

static void what_tcp_left_is_complete_once_tcp_has_it(void **state)
{
	struct lone t;

	write_too_much(&t);
	expect_no_cqe(t.s.scq);
	reads(&t, 100);
	run(&t);
	expect_no_cqe(t.s.scq);
	reads(&t, 500);
	run(&t);
	expect_cqe(t.s.scq, 1, WEFT_WC_SUCCESS);
	assert_null(t.l->batch);
	assert_int_equal(t.s.out.sent, 20 + 1200 + 20);
	lone_fini(&t);
}

static void what_tcp_left_and_refuses_then_fails(void **state)
{
	struct lone t;

	write_too_much(&t);
	host_link_reset(t.l);
	run(&t);
	expect_cqe(t.s.scq, 1, WEFT_WC_FLUSH_ERR);
	expect_no_cqe(t.s.scq);
	lone_fini(&t);
}

/* TCP refuses a batch and reports no end. */
static void what_tcp_refuses_fails(void **state)
{
	struct side_cfg c = cfg_v1();
	struct host_mr *mr;
	struct lone t;

	full_v1(&t, true, &c);
	t.l->cfg.hold_steps = true;
	mr = host_mr_new(&t.s.host, PD, BASE, 1200, RW);
	t.l->refuses = true;
	side_write(&t.s, 1, SIG, mr, 0, 1200, mr, 0);
	side_write(&t.s, 2, 0, mr, 0, 8, mr, 0);
	host_link_tx(t.l);
	expect_no_cqe(t.s.scq);
	assert_true(t.l->step_due);
	host_link_step(t.l);
	expect_cqe(t.s.scq, 1, WEFT_WC_FLUSH_ERR);
	expect_cqe(t.s.scq, 2, WEFT_WC_FLUSH_ERR);
	expect_no_cqe(t.s.scq);
	lone_fini(&t);
}

static void post_another(struct lone *t)
{
	struct host_mr *mr = host_mr_new(&t->s.host, PD, BASE, 500, RW);

	side_write(&t->s, 2, SIG, mr, 0, 500, mr, 0);
}

static void what_tcp_left_has_memory_of_its_size(void **state)
{
	struct lone t;

	write_too_much(&t);
	assert_in_range(t.l->batch_size, 220, 220 + sizeof(struct weft_txd) + 256);
	/* It is sent, and in the same run the next batch has a batch's memory again. */
	post_another(&t);
	reads(&t, 1000);
	run(&t);
	assert_null(t.l->batch);
	assert_int_equal(t.l->batch_size, t.l->cfg.batch * 2048);
	expect_cqe(t.s.scq, 1, WEFT_WC_SUCCESS);
	expect_cqe(t.s.scq, 2, WEFT_WC_SUCCESS);
	lone_fini(&t);
}

/* A host lends whole pages. */
static void what_tcp_left_moves_once_however_often_it_is_tried(void **state)
{
	struct lone t;

	write_too_much_lent(&t, 4096);
	assert_int_equal(t.l->rests, 1);
	post_another(&t);
	host_link_tx(t.l);
	host_link_tx(t.l);
	assert_int_equal(t.l->rests, 1);
	assert_int_equal(t.l->core.batch.end - t.l->core.batch.off, 220);
	reads(&t, 1000);
	run(&t);
	expect_cqe(t.s.scq, 1, WEFT_WC_SUCCESS);
	expect_cqe(t.s.scq, 2, WEFT_WC_SUCCESS);
	lone_fini(&t);
}

static void without_memory_for_what_tcp_left_the_batchs_is_kept(void **state)
{
	struct side_cfg c = cfg_v1();
	struct host_mr *mr;
	struct lone t;

	c.sndbuf = 1000;
	full_v1(&t, true, &c);
	mr = host_mr_new(&t.s.host, PD, BASE, 1200, RW);
	side_write(&t.s, 1, SIG, mr, 0, 1200, mr, 0);
	t.l->rest_fails = true;
	run(&t);
	assert_int_equal(t.l->batch_size, c.link.batch * 2048);
	reads(&t, 1000);
	run(&t);
	expect_cqe(t.s.scq, 1, WEFT_WC_SUCCESS);
	assert_null(t.l->batch);
	lone_fini(&t);
}

/* While the peer takes nothing, no octet waits here: all that TCP had room for is in TCP. */
static void no_more_is_assembled_than_tcp_has_room_for(void **state)
{
	struct side_cfg c = cfg_v1();
	struct host_mr *mr;
	struct lone t;
	u32 i;

	c.mss = 200;
	c.sndbuf = 3001;
	full_v1(&t, true, &c);
	mr = host_mr_new(&t.s.host, PD, BASE, 9000, RW);
	for (i = 0; i < 3; i++)
		side_write(&t.s, i, SIG, mr, 0, 2000, mr, 0);
	run(&t);
	assert_true(host_link_waits_for_tcp(t.l));
	assert_in_range(wire_waiting(&t.s.out), 2801, 3001);
	assert_in_range(t.l->core.batch.end - t.l->core.batch.off, 0, 199);
	expect_cqe(t.s.scq, 0, WEFT_WC_SUCCESS);
	expect_no_cqe(t.s.scq);
	for (i = 0; i < 4; i++) {
		reads(&t, 2000);
		run(&t);
	}
	expect_cqe(t.s.scq, 1, WEFT_WC_SUCCESS);
	expect_cqe(t.s.scq, 2, WEFT_WC_SUCCESS);
	lone_fini(&t);
}

static void a_cut_off_terminate_goes_out_behind_what_waits(void **state)	/* RDM-50 */
{
	struct side_cfg c = cfg_v1();
	struct host_mr *mr;
	struct lone t;

	c.sndbuf = 1000;
	full_v1(&t, true, &c);
	mr = host_mr_new(&t.s.host, PD, BASE, 1200, RW);
	side_write(&t.s, 1, SIG, mr, 0, 1200, mr, 0);
	run(&t);
	weft_qpc_fail(&t.s.qp->core, WEFT_E_RDMAP_LOCAL, NULL);
	/* The QP is released before TCP has room. */
	host_link_forget(t.l);
	run(&t);
	expect_state(&t.s, WEFT_QPS_ERROR);
	assert_int_equal(t.l->acts & (WEFT_ACT_ENDED | WEFT_ACT_SHUT), WEFT_ACT_ENDED);
	reads(&t, 1000);
	run(&t);
	assert_true(t.l->acts & WEFT_ACT_SHUT);
	assert_int_equal(t.s.out.sent, 20 + 1200 + 20 + 28);
	lone_fini(&t);
}

/* ---- a run that was abandoned ---- */

static jmp_buf outside;

/* TCP touches memory that is gone, and the host abandons the run. */
static size_t leave(void *arg, const void *p, size_t len, u32 flags)
{
	longjmp(outside, 1);
}

/* Runs @l with a TCP whose first call abandons the run; returns whether it was called. */
static bool left_run(struct host_link *l)
{
	const struct host_link_ops *was = l->ops;
	struct host_link_ops ops = *was;
	bool left;

	ops.write = leave;
	l->ops = &ops;
	left = setjmp(outside);
	if (!left)
		host_link_tx(l);
	l->ops = was;
	return left;
}

static void break_off(struct host_link *l)
{
	l->step_due = false;
	weft_send_break_off(&l->core);
	weft_region_end_run(&l->qp->core);
}

/* Its Writes are due, and TCP has room for them. */
static void part_init_and_leave(struct parting *t, u64 seed)
{
	part_init(t, seed);
	t->p.s[0].link.cfg.hold_steps = true;
	assert_true(left_run(&t->p.s[0].link));
	break_off(&t->p.s[0].link);
}

static void a_run_broken_off_lets_all_go(void **state)
{
	struct parting t;
	u64 seed;

	for (seed = 0; seed < 24; seed++) {
		struct host_link *l = &t.p.s[0].link;

		part_init_and_leave(&t, seed);
		assert_null(l->batch);
		assert_int_equal(t.mr[0]->holders, 0);
		assert_true(l->step_due);
		pair_drop(&t.p);
		host_link_step(l);
		pair_fini(&t.p);
	}
}

static void a_run_broken_off_fails_the_qp(void **state)
{
	struct parting t;
	u64 seed;

	for (seed = 0; seed < 24; seed++) {
		struct host_qp *qp;

		part_init_and_leave(&t, seed);
		qp = t.p.s[0].qp;
		assert_int_equal(qp->core.error, WEFT_E_RDMAP_LOCAL);
		assert_int_equal(weft_qpc_fault(&qp->core), WEFT_FAULT_FATAL);
		assert_int_equal(host_qp_count_events(qp, WEFT_EV_FLUSHED), 1);
		expect_completed(&t, 0, true);
		pair_drop(&t.p);
		host_link_step(&t.p.s[0].link);
		pair_fini(&t.p);
	}
}

static void a_run_broken_off_is_the_last(void **state)
{
	struct parting t;
	u64 seed;

	for (seed = 0; seed < 24; seed++) {
		struct host_link *l = &t.p.s[0].link;
		u64 written;

		part_init_and_leave(&t, seed);
		written = l->written;
		assert_false(left_run(l));
		weft_send_last_words(&l->core);
		assert_int_equal(l->written, written);
		assert_null(l->batch);
		pair_drop(&t.p);
		host_link_step(l);
		pair_fini(&t.p);
	}
}

static void a_connection_broken_off_is_over_with_its_reset(void **state)
{
	static const struct order o = { .events = "", .broken = true };
	struct parting t;
	u64 seed;

	for (seed = 0; seed < 24; seed++) {
		part_init_and_leave(&t, seed);
		t.p.s[0].link.cfg.hold_steps = false;
		pair_drop(&t.p);
		pair_run(&t.p);
		expect_over(&t, &o, 0);
		expect_over(&t, &o, 1);
		pair_fini(&t.p);
	}
}

/* Here, so that its orders outlast main() in the kernel (tests/kunit). */
static const struct CMUnitTest tests[] = {
	ORDER(the_initiator_closes, "c", false, WEFT_ACT_SHUT, BYE),
	ORDER(the_responder_closes, "C", false, BYE, WEFT_ACT_SHUT),
	ORDER(both_close, "cC", false, WEFT_ACT_SHUT, WEFT_ACT_SHUT),
	ORDER(one_closes_and_then_the_other, "csC", false, WEFT_ACT_SHUT, WEFT_ACT_SHUT),
	ORDER(an_error_of_the_user_is_a_fin, "e", false, WEFT_ACT_SHUT, BYE),
	ORDER(errors_at_both_ends, "eE", false, WEFT_ACT_SHUT, WEFT_ACT_SHUT),
	ORDER(an_error_while_closing, "cse", false, WEFT_ACT_SHUT, BYE),
	ORDER(an_error_while_the_peer_closes, "Cse", false, WEFT_ACT_SHUT, WEFT_ACT_SHUT),
	ORDER(a_qp_destroyed, "sd", false, WEFT_ACT_SHUT, BYE),
	ORDER(the_responders_qp_destroyed, "sD", false, BYE, WEFT_ACT_SHUT),
	ORDER(both_qps_destroyed, "sdD", false, WEFT_ACT_SHUT, WEFT_ACT_SHUT),
	ORDER(a_qp_destroyed_while_closing, "csd", false, WEFT_ACT_SHUT, BYE),
	ORDER(a_qp_destroyed_while_the_peer_closes, "Csd", false, WEFT_ACT_SHUT, WEFT_ACT_SHUT),
	ORDER(a_terminate, "st", false, WEFT_ACT_SHUT, 0),
	ORDER(terminates_both_ways, "stT", false, WEFT_ACT_SHUT, WEFT_ACT_SHUT),
	ORDER(a_terminate_and_a_close, "stC", false, WEFT_ACT_SHUT, 0),
	ORDER(a_terminate_while_closing, "cst", false, WEFT_ACT_SHUT, 0),
	ORDER(a_terminate_and_the_qp_destroyed, "std", false, WEFT_ACT_SHUT, 0),
	ORDER(a_terminate_then_an_error, "ste", false, WEFT_ACT_SHUT, 0),
	ORDER(a_reset, "sx", true, 0, 0),
	ORDER(a_reset_while_closing, "csx", true, 0, 0),
	ORDER(a_reset_behind_a_terminate, "stsx", true, 0, 0),
	ORDER(a_reset_behind_an_error, "esx", true, 0, 0),
	ORDER(a_reset_behind_the_qp, "sdsx", true, 0, 0),
	ORDER(a_device_goes_away, "sk", true, 0, 0),
	ORDER(the_responders_device_goes_away, "sK", true, 0, 0),
	ORDER(a_device_goes_away_while_closing, "csk", true, 0, 0),
	ORDER(a_device_goes_away_behind_a_terminate, "stsk", true, 0, 0),
	ORDER(a_device_goes_away_behind_the_qp, "sdsk", true, 0, 0),
	ORDER(a_qp_destroyed_behind_a_reset, "sxd", true, 0, 0),
	cmocka_unit_test(tcp_has_two_fifths_of_start_up_to_connect),
	cmocka_unit_test(a_late_look_finds_tcp_connected),
	cmocka_unit_test(why_tcp_did_not_connect_is_told),
	cmocka_unit_test(the_reply_has_the_time_of_an_accept),
	cmocka_unit_test(the_request_has_half_of_start_up_to_come),
	cmocka_unit_test(a_ulp_may_think_for_as_long_as_it_likes),
	cmocka_unit_test(a_full_ulp_is_asked_again_for_a_while),
	cmocka_unit_test(a_ulp_that_had_no_room_may_think_once_it_has),
	cmocka_unit_test(a_request_without_a_listener_waits_for_a_while),
	cmocka_unit_test(a_peer_that_goes_while_the_ulp_thinks_is_dropped),
	cmocka_unit_test(half_a_request_is_evicted),
	cmocka_unit_test(a_whole_request_is_not_evicted),
	cmocka_unit_test(a_refused_request_is_evicted),
	cmocka_unit_test(what_the_peer_has_not_got_is_not_evicted),
	cmocka_unit_test(a_peer_slow_to_take_the_rest_is_evicted),
	cmocka_unit_test(an_initiator_is_not_evicted),
	cmocka_unit_test(a_failed_qp_is_held_until_its_user_hangs_up),
	cmocka_unit_test(the_peer_of_a_held_qp_fails_in_time),
	cmocka_unit_test(an_rnic_closes_at_the_terminate_of_a_held_qp),
	cmocka_unit_test(an_rnics_close_ends_a_held_connection),
	cmocka_unit_test(an_error_of_the_protocol_ends_any_connection),
	cmocka_unit_test(a_destroyed_qp_is_held_for_a_time),
	cmocka_unit_test(a_link_that_hung_up_is_not_held),
	cmocka_unit_test(removal_of_the_device_ends_a_held_connection),
	cmocka_unit_test(the_oldest_request_to_a_dead_peer_says_so),
	cmocka_unit_test(what_tcp_has_given_up_is_a_dead_peer),
	cmocka_unit_test(a_reset_is_not_a_dead_peer),
	cmocka_unit_test(a_dead_peer_ends_a_held_connection),
	cmocka_unit_test(a_held_connection_that_closes_needs_no_look_at_the_peer),
	cmocka_unit_test(held_connections_end_somehow),
	cmocka_unit_test(a_peer_that_answers_no_probe_is_dead),
	cmocka_unit_test(a_peer_whose_one_answer_may_be_lost_is_not_dead),
	cmocka_unit_test(a_stopped_program_is_not_dead),
	cmocka_unit_test(a_shorter_limit_counts_from_the_next_step),
	cmocka_unit_test(without_a_limit_tcp_alone_says_that_a_peer_is_dead),
	cmocka_unit_test(a_send_may_wait_longer_than_a_dead_peer_lives),
	cmocka_unit_test(a_send_that_waits_does_not_keep_a_dead_peer),
	cmocka_unit_test(keepalives_ask_twice_in_time),
	cmocka_unit_test(an_rtr_that_does_not_come_ends_the_connection),
	cmocka_unit_test(an_rtr_that_came_needs_no_deadline),
	cmocka_unit_test(a_fin_in_place_of_the_rtr_is_a_fin),
	cmocka_unit_test(a_fin_has_its_own_deadline_and_not_the_rtrs),
	cmocka_unit_test(a_silent_peer_has_one_time_to_close),
	cmocka_unit_test(a_slow_peer_of_a_closing_qp_has_as_long_as_it_moves),
	cmocka_unit_test(closing_without_a_qp_lasts_twelve_times_at_most),
	cmocka_unit_test(closing_without_a_qp_lasts_one_time_if_nothing_moves),
	cmocka_unit_test(a_peer_that_talks_and_takes_nothing_is_not_slow),
	cmocka_unit_test(a_peer_that_closes_on_an_enhanced_request_is_asked_again),
	cmocka_unit_test(a_peer_that_resets_is_asked_the_same_once_more),
	cmocka_unit_test(a_peer_that_closes_the_second_time_is_asked_by_revision_1),
	cmocka_unit_test(a_reply_of_revision_1_to_an_enhanced_request_asks_for_it),
	cmocka_unit_test(a_peer_that_closes_on_revision_1_has_refused),
	cmocka_unit_test(a_peer_that_closes_within_its_reply_is_not_asked_again),
	cmocka_unit_test(what_is_no_reply_is_a_protocol_error),
	cmocka_unit_test(a_rejecting_reply_fails_politely),
	cmocka_unit_test(a_reply_with_more_private_data_than_the_ulp_takes_fails),
	cmocka_unit_test(a_request_with_more_private_data_than_the_ulp_takes_is_rejected),
	cmocka_unit_test(too_much_private_data_for_the_reply_rejects),
	cmocka_unit_test(an_offer_has_room_for_the_private_data_of_its_revision),
	cmocka_unit_test(octets_behind_the_reply_are_fpdus),
	cmocka_unit_test(octets_behind_the_reply_wait_for_the_step),
	cmocka_unit_test(more_reads_than_we_answer_end_with_a_terminate),
	cmocka_unit_test(no_kind_of_rtr_ends_with_a_terminate),
	cmocka_unit_test(a_ulp_that_cannot_be_told_is_told_of_a_failure),
	cmocka_unit_test(a_qp_moved_to_error_aborts_start_up),
	cmocka_unit_test(the_device_goes_away_in_start_up),
	cmocka_unit_test(without_memory_a_run_comes_again),
	cmocka_unit_test(what_tcp_left_is_complete_once_tcp_has_it),
	cmocka_unit_test(what_tcp_left_and_refuses_then_fails),
	cmocka_unit_test(what_tcp_refuses_fails),
	cmocka_unit_test(what_tcp_left_has_memory_of_its_size),
	cmocka_unit_test(a_run_of_work_that_sends_nothing_has_an_end),
	cmocka_unit_test(a_run_of_small_batches_has_an_end),
	cmocka_unit_test(what_tcp_left_moves_once_however_often_it_is_tried),
	cmocka_unit_test(without_memory_for_what_tcp_left_the_batchs_is_kept),
	cmocka_unit_test(no_more_is_assembled_than_tcp_has_room_for),
	cmocka_unit_test(a_cut_off_terminate_goes_out_behind_what_waits),
	cmocka_unit_test(a_run_broken_off_lets_all_go),
	cmocka_unit_test(a_run_broken_off_fails_the_qp),
	cmocka_unit_test(a_run_broken_off_is_the_last),
	cmocka_unit_test(a_connection_broken_off_is_over_with_its_reset),
};

int main(void)
{
	return RUN_TESTS("stacks: links", tests);
}
