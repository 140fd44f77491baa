// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What weft-run decides about QPs that are connected by hand: providers/rootless/roce/byhand.c. */
#include "shared.h"
#include "../../providers/rootless/roce/byhand.h"

#define A_QPN 0x123401
#define B_QPN 0x123402
/* Neither half of one is that of another. */
#define A_PSN 0x11a22b
#define B_PSN 0x33c44d
#define T0 1000000

/* Of the ends of one connection a is the lower. */
static struct rl_byhand make_end(bool lower)
{
	struct rl_byhand h = {
		.type = IBV_QPT_RC,
		.own_qpn = lower ? A_QPN : B_QPN,
		.peer_qpn = lower ? B_QPN : A_QPN,
		.rq_psn = lower ? B_PSN : A_PSN,
	};

	h.own_gid[15] = h.peer_gid[15] = 1;
	return h;
}

static struct rl_byhand begin(bool lower)
{
	struct rl_byhand h = make_end(lower);

	rl_byhand_enter_rtr(&h, T0);
	return h;
}

static enum rl_byhand_act go(struct rl_byhand *h, uint64_t now)
{
	h->sq_psn = h->own_qpn == A_QPN ? A_PSN : B_PSN;
	h->timeout = 14;
	h->retry_cnt = 7;
	h->rnr_retry = 7;
	return rl_byhand_enter_rts(h, now);
}

static enum rl_byhand_verdict hear(struct rl_byhand *at, const struct rl_byhand *from, uint64_t now)
{
	struct rl_byhand_hello w;

	rl_byhand_make_hello(from, &w);
	return rl_byhand_receive_hello(at, &w, at->own_gid, at->peer_gid, now);
}

/* Both ends in RTS, and connected. */
static void join(struct rl_byhand *a, struct rl_byhand *b)
{
	*a = begin(true);
	*b = begin(false);
	go(a, T0);
	go(b, T0);
	assert_int_equal(rl_byhand_tick(a, T0), RL_BYHAND_CONNECT);
	assert_int_equal(hear(b, a, T0), RL_BYHAND_ACCEPT);
	assert_int_equal(hear(a, b, T0), RL_BYHAND_ACCEPT);
}

/* ---- who, and when ---- */

static void the_lower_end_connects(void **state)
{
	struct rl_byhand a = begin(true), b = begin(false);

	go(&a, T0);
	go(&b, T0);
	assert_int_equal(rl_byhand_deadline(&b), 0);
	assert_int_equal(rl_byhand_tick(&b, T0 + 100000), RL_BYHAND_NOTHING);
	assert_true(rl_byhand_deadline(&a) == T0);
	assert_int_equal(rl_byhand_tick(&a, T0), RL_BYHAND_CONNECT);
	/* The address comes first. */
	a = begin(true);
	a.peer_gid[15] = 0;
	go(&a, T0);
	assert_int_equal(rl_byhand_deadline(&a), 0);
}

static void rts_is_awaited_for_a_while(void **state)
{
	struct rl_byhand a = begin(true);
	uint64_t at = rl_byhand_deadline(&a);

	assert_true(at > T0 && at <= T0 + 100);
	assert_int_equal(rl_byhand_tick(&a, at - 1), RL_BYHAND_NOTHING);
	assert_int_equal(rl_byhand_tick(&a, at), RL_BYHAND_CONNECT);
	/* The responder waits as long, and answers NOT_YET until then. */
	a = begin(true);
	go(&a, T0);
	{
		struct rl_byhand b = begin(false);

		assert_int_equal(hear(&b, &a, T0 + 10), RL_BYHAND_NOT_YET);
		assert_int_equal(hear(&b, &a, at), RL_BYHAND_ACCEPT);
	}
}

static void attempts_become_rare(void **state)
{
	struct rl_byhand a = begin(true);
	uint64_t now = T0, pause, last = 0;
	int tries = 0;

	go(&a, T0);
	while (now < T0 + 60000) {
		assert_int_equal(rl_byhand_tick(&a, now), RL_BYHAND_CONNECT);
		assert_int_equal(rl_byhand_deadline(&a), 0);
		rl_byhand_connect_failed(&a, now);
		pause = rl_byhand_deadline(&a) - now;
		assert_true(pause >= 1 && pause <= 1000 && pause >= last);
		/* A late peer is found within a quarter of its delay. */
		assert_true(pause <= 1 + (now - T0) / 4);
		last = pause;
		now += pause;
		tries++;
	}
	assert_in_range(tries, 60, 150);
}

static void both_ends_may_be_one(void **state)
{
	struct rl_byhand h = make_end(true);

	assert_false(rl_byhand_is_self(&h));
	h.peer_qpn = h.own_qpn;
	assert_true(rl_byhand_is_self(&h));
	h.peer_gid[0] = 1;
	assert_false(rl_byhand_is_self(&h));
}

/* It connects with RTS, and hears what it says: its PSNs have to be one. */
static void a_qp_connected_to_itself_accepts_itself(void **state)
{
	struct rl_byhand h = make_end(true);
	uint32_t wrong;

	for (wrong = 0; wrong < 2; wrong++) {
		h = make_end(true);
		h.peer_qpn = h.own_qpn;
		h.rq_psn = A_PSN ^ wrong;
		rl_byhand_enter_rtr(&h, T0);
		assert_int_equal(rl_byhand_deadline(&h), 0);
		assert_int_equal(rl_byhand_tick(&h, T0 + 100000), RL_BYHAND_NOTHING);
		assert_int_equal(go(&h, T0 + 100001), RL_BYHAND_NOTHING);
		assert_int_equal(rl_byhand_tick(&h, T0 + 100001), RL_BYHAND_CONNECT);
		assert_int_equal(hear(&h, &h, T0 + 100001), wrong ? RL_BYHAND_REJECT : RL_BYHAND_ACCEPT);
		if (wrong)
			continue;
		assert_int_equal(h.phase, RL_BYHAND_CONNECTED);
		assert_int_equal(h.peer.rnr_retry, 7);
	}
	/* No other QP is accepted, whatever its hello. */
	rl_byhand_connect_failed(&h, T0 + 100001);
	assert_int_equal(hear(&h, &h, T0 + 100002), RL_BYHAND_REJECT);
}

/* On UC a Send waits for a receive for ever. */
static void a_uc_qp_waits_for_ever(void **state)
{
	struct rl_byhand h = begin(true);
	struct rl_byhand_hello w;

	h.type = IBV_QPT_UC;
	rl_byhand_enter_rts(&h, T0);
	rl_byhand_make_hello(&h, &w);
	assert_int_equal(w.rnr_retry, 7);
}

/* UC does not report a missing peer: one that never came is awaited once, one that has gone is not. */
static void a_uc_qp_reports_no_missing_peer(void **state)
{
	struct rl_byhand a, b;

	a = begin(true);
	a.type = IBV_QPT_UC;
	rl_byhand_enter_rts(&a, T0);
	rl_byhand_posted(&a, T0);
	assert_int_equal(rl_byhand_tick(&a, T0), RL_BYHAND_CONNECT);
	assert_true(rl_byhand_deadline(&a) == T0 + 3000);
	assert_int_equal(rl_byhand_tick(&a, T0 + 3000), RL_BYHAND_DROP_SENDS);
	assert_int_equal(a.phase, RL_BYHAND_CONNECTING);
	assert_int_equal(rl_byhand_deadline(&a), 0);
	rl_byhand_posted(&a, T0 + 5000);
	assert_int_equal(rl_byhand_tick(&a, T0 + 5000), RL_BYHAND_DROP_SENDS);
	/* It is looked for all the same, and what is sent from then on is for it. */
	b = begin(false);
	b.type = IBV_QPT_UC;
	a.sq_psn = A_PSN;
	b.sq_psn = B_PSN;
	rl_byhand_enter_rts(&b, T0);
	assert_int_equal(hear(&b, &a, T0 + 6000), RL_BYHAND_ACCEPT);
	assert_int_equal(hear(&a, &b, T0 + 6000), RL_BYHAND_ACCEPT);
	assert_false(a.timed_out);
	rl_byhand_disconnected(&a, true, true, T0 + 7000);
	assert_int_equal(rl_byhand_tick(&a, T0 + 7000), RL_BYHAND_DROP_SENDS);
	assert_int_equal(a.phase, RL_BYHAND_GONE);
}

/* ---- what fits ---- */

static void a_hello_is_parsed_as_it_was_made(void **state)
{
	const struct rl_byhand_hello w = {
		.type = IBV_QPT_UC, .rts = true, .rnr_retry = 5, .from = 0x123456, .to = 0xfedcba,
		.awaited = 0xabc, .sent = 0x579,
	};
	struct rl_byhand_hello got;
	uint8_t p[RL_BYHAND_HELLO_LEN + 1];
	uint32_t len, bit;

	rl_byhand_write_hello(p, &w);
	assert_true(rl_byhand_read_hello(p, RL_BYHAND_HELLO_LEN, &got));
	assert_int_equal(got.type, w.type);
	assert_true(got.rts);
	assert_int_equal(got.rnr_retry, w.rnr_retry);
	assert_int_equal(got.from, w.from);
	assert_int_equal(got.to, w.to);
	assert_int_equal(got.awaited, w.awaited);
	assert_int_equal(got.sent, w.sent);
	for (len = 0; len < sizeof(p); len++)
		if (len != RL_BYHAND_HELLO_LEN)
			assert_false(rl_byhand_read_hello(p, len, &got));
	/* Magic and version. */
	for (bit = 0; bit < 40; bit++) {
		p[bit / 8] ^= 1 << bit % 8;
		assert_false(rl_byhand_read_hello(p, RL_BYHAND_HELLO_LEN, &got));
		p[bit / 8] ^= 1 << bit % 8;
	}
}

/* A peer that does not know of it says nothing of it, and does not see that it is offered. */
static void fpdus_larger_than_a_segment_are_offered(void **state)
{
	struct rl_byhand h = begin(true);
	struct rl_byhand_hello w, got;
	uint8_t p[RL_BYHAND_HELLO_LEN];
	int rts;

	for (rts = 0; rts < 2; rts++) {
		rl_byhand_make_hello(&h, &w);
		rl_byhand_write_hello(p, &w);
		assert_true(rl_byhand_read_hello(p, sizeof(p), &got));
		assert_int_equal(got.rts, rts);
		assert_true(got.large_fpdus);
		assert_int_equal(p[6], rts | 2);
		p[6] &= ~2;
		assert_true(rl_byhand_read_hello(p, sizeof(p), &got));
		assert_int_equal(got.rts, rts);
		assert_false(got.large_fpdus);
		rl_byhand_enter_rts(&h, T0);
	}
}

/* What another version says may be of any length. */
static void other_versions_are_known_by_name(void **state)
{
	const struct rl_byhand_hello w = { .type = IBV_QPT_RC };
	struct rl_byhand_hello got;
	uint8_t p[24] = { 0 };
	uint32_t len;

	rl_byhand_write_hello(p, &w);
	assert_int_equal(rl_byhand_hello_version(p, RL_BYHAND_HELLO_LEN), RL_BYHAND_VERSION);
	p[4] = 2;
	for (len = 0; len <= sizeof(p); len++) {
		assert_int_equal(rl_byhand_hello_version(p, len), len > 4 ? 2 : 0);
		assert_false(rl_byhand_read_hello(p, len, &got));
	}
	p[0] ^= 1;
	assert_int_equal(rl_byhand_hello_version(p, sizeof(p)), 0);
}

static void other_qps_do_not_match(void **state)
{
	struct rl_byhand a = begin(true), b = begin(false), was;
	struct rl_byhand_hello right, w;
	uint8_t other[16] = { 9 };
	int i;

	go(&a, T0);
	go(&b, T0);
	was = b;
	rl_byhand_make_hello(&a, &right);
#define WRONG(change) do {								\
		w = right;								\
		change;									\
		assert_int_equal(rl_byhand_receive_hello(&b, &w, b.own_gid, b.peer_gid, T0), RL_BYHAND_REJECT); \
		assert_memory_equal(&b, &was, sizeof(b));				\
	} while (0)
	/* However often: who lacks the numbers does not keep the peer out. */
	for (i = 0; i < 300; i++) {
		WRONG(w.from ^= 1);
		WRONG(w.to ^= 1);
		WRONG(w.type = IBV_QPT_UC);
	}
	was.bad_psns = 1;
	WRONG(w.awaited ^= 1);
	was.bad_psns = 2;
	WRONG(w.sent ^= 1);
#undef WRONG
	assert_int_equal(rl_byhand_receive_hello(&b, &right, other, b.peer_gid, T0), RL_BYHAND_REJECT);
	assert_int_equal(rl_byhand_receive_hello(&b, &right, b.own_gid, other, T0), RL_BYHAND_REJECT);
	assert_int_equal(rl_byhand_receive_hello(&b, &right, b.own_gid, b.peer_gid, T0), RL_BYHAND_ACCEPT);
	/* Once it is connected, no other is accepted. */
	assert_int_equal(rl_byhand_receive_hello(&b, &right, b.own_gid, b.peer_gid, T0), RL_BYHAND_REJECT);
	/* And the lower is not asked. */
	rl_byhand_make_hello(&b, &right);
	assert_int_equal(rl_byhand_receive_hello(&a, &right, a.own_gid, a.peer_gid, T0), RL_BYHAND_REJECT);
}

/* Of what a Request says nothing is right in a Reply, neither as it came nor turned about. */
static void mirror_is_no_peer(void **state)
{
	struct rl_byhand_hello w, said;
	struct rl_byhand a;
	int turned, rts;

	for (turned = 0; turned < 2; turned++)
		for (rts = 0; rts < 2; rts++) {
			a = begin(true);
			go(&a, T0);
			rl_byhand_tick(&a, T0);
			rl_byhand_make_hello(&a, &said);
			w = said;
			w.from = said.to;
			w.to = said.from;
			w.rts = rts;
			w.awaited = turned ? said.sent : said.awaited;
			w.sent = turned ? said.awaited : said.sent;
			assert_int_equal(rl_byhand_receive_hello(&a, &w, a.own_gid, a.peer_gid, T0), RL_BYHAND_REJECT);
			assert_int_equal(a.phase, RL_BYHAND_CONNECTING);
		}
}

/* Each half of each PSN that both know is looked at, by one end or by the other. */
static void every_bit_of_a_psn_is_checked(void **state)
{
	struct rl_byhand a, b;
	int bit, of_a;
	bool fits;

	for (of_a = 0; of_a < 2; of_a++)
		for (bit = 0; bit < 24; bit++) {
			a = begin(true);
			b = begin(false);
			(of_a ? &b : &a)->rq_psn ^= 1 << bit;
			go(&a, T0);
			go(&b, T0);
			rl_byhand_tick(&a, T0);
			fits = hear(&b, &a, T0) == RL_BYHAND_ACCEPT;
			assert_int_equal(fits, bit < 12);
			assert_int_equal(hear(&a, &b, T0), fits ? RL_BYHAND_REJECT : RL_BYHAND_ACCEPT);
		}
}

/* Half of a PSN can be guessed by who may try a few thousand times: he may three times. */
static void guesses_are_soon_ignored(void **state)
{
	struct rl_byhand a = begin(true), b = begin(false), other = make_end(false);
	uint64_t now = T0;
	int i;

	go(&a, T0);
	go(&b, T0);
	other.rq_psn ^= 1;
	other.sq_psn = B_PSN;
	other.rts = true;
	rl_byhand_posted(&a, T0);
	for (i = 0; i < 3; i++) {
		assert_int_equal(rl_byhand_tick(&a, now), RL_BYHAND_CONNECT);
		assert_int_equal(hear(&a, &other, now), RL_BYHAND_REJECT);
		rl_byhand_connect_failed(&a, now);
		now += 1000;
	}
	assert_int_equal(rl_byhand_tick(&a, now - 999), RL_BYHAND_NOTHING);
	/* Pending work fails in time. */
	assert_true(rl_byhand_deadline(&a) == T0 + 3000);
	assert_int_equal(rl_byhand_tick(&a, T0 + 3000), RL_BYHAND_GIVE_UP);
	/* The other end hears no Request, not even the right one; until RTR. */
	other = make_end(true);
	other.rq_psn = B_PSN;
	other.sq_psn = A_PSN ^ 1 << 12;
	other.rts = true;
	for (i = 0; i < 3; i++)
		assert_int_equal(hear(&b, &other, T0), RL_BYHAND_REJECT);
	other.sq_psn = A_PSN;
	assert_int_equal(hear(&b, &other, T0), RL_BYHAND_REJECT);
	rl_byhand_enter_rtr(&b, T0);
	go(&b, T0);
	assert_int_equal(hear(&b, &other, T0), RL_BYHAND_ACCEPT);
	/* A connected QP accepts and counts no further hello. */
	other.sq_psn ^= 1 << 12;
	for (i = 0; i < 300; i++)
		assert_int_equal(hear(&b, &other, T0), RL_BYHAND_REJECT);
	rl_byhand_disconnected(&b, false, false, T0);
	other.sq_psn = A_PSN;
	assert_int_equal(hear(&b, &other, T0), RL_BYHAND_ACCEPT);
}

/* Before RTS an end says no PSN, and anybody knows its QPN: of two such ends neither is believed. */
static void an_end_before_rts_connects_to_one_in_rts(void **state)
{
	struct rl_byhand a = begin(true), b = begin(false);
	uint64_t late = T0 + 60000;

	assert_int_equal(rl_byhand_tick(&a, late), RL_BYHAND_CONNECT);
	assert_int_equal(hear(&b, &a, late), RL_BYHAND_NOT_YET);
	rl_byhand_connect_failed(&a, late);
	go(&b, late);
	late = rl_byhand_deadline(&a);
	assert_int_equal(rl_byhand_tick(&a, late), RL_BYHAND_CONNECT);
	assert_int_equal(hear(&b, &a, late), RL_BYHAND_ACCEPT);
	assert_int_equal(hear(&a, &b, late), RL_BYHAND_ACCEPT);
}

/* Only its own attempt, never who connects to it. */
static void a_qp_that_is_its_own_peer_accepts_no_other(void **state)
{
	struct rl_byhand a = begin(true);

	a.peer_qpn = a.own_qpn;
	assert_int_equal(hear(&a, &a, T0 + 60000), RL_BYHAND_REJECT);
	go(&a, T0);
	assert_int_equal(hear(&a, &a, T0), RL_BYHAND_REJECT);
}

static void no_peer_matches_before_rtr(void **state)
{
	struct rl_byhand a = begin(true), b = make_end(false);

	go(&a, T0);
	assert_int_equal(hear(&b, &a, T0), RL_BYHAND_NOT_YET);
	rl_byhand_enter_rtr(&b, T0);
	go(&b, T0);
	rl_byhand_stop(&b);
	assert_int_equal(hear(&b, &a, T0), RL_BYHAND_NOT_YET);
}

/* An end in RTR does not know yet what it will send: the other's word counts when it does. */
static void late_number_that_is_not_awaited_parts(void **state)
{
	struct rl_byhand a = begin(true), b = begin(false);

	go(&a, T0);
	assert_int_equal(rl_byhand_tick(&a, T0), RL_BYHAND_CONNECT);
	assert_int_equal(hear(&b, &a, T0 + 1000), RL_BYHAND_ACCEPT);
	assert_int_equal(hear(&a, &b, T0 + 1000), RL_BYHAND_ACCEPT);
	b.sq_psn = B_PSN ^ 1 << 23;
	assert_int_equal(rl_byhand_enter_rts(&b, T0 + 2000), RL_BYHAND_DISCONNECT);
	assert_int_equal(b.phase, RL_BYHAND_UNCONNECTED);
	/* With the right one it goes on. */
	join(&a, &b);
	assert_int_equal(go(&b, T0), RL_BYHAND_NOTHING);
	assert_int_equal(b.phase, RL_BYHAND_CONNECTED);
}

/* ---- giving up ---- */

static void work_waits_as_long_as_said(void **state)
{
	static const struct { uint8_t timeout, retry_cnt; uint64_t ms; } times[] = {
		{ 20, 0, 4294 }, { 20, 7, 34359 }, { 31, 7, 70368744 },
		/* Of little: what TCP needs. */
		{ 1, 0, 3000 }, { 14, 7, 3000 },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(times); i++) {
		struct rl_byhand b = begin(false);

		go(&b, T0);
		b.timeout = times[i].timeout;
		b.retry_cnt = times[i].retry_cnt;
		assert_int_equal(rl_byhand_deadline(&b), 0);
		rl_byhand_posted(&b, T0 + 5);
		assert_true(rl_byhand_deadline(&b) == T0 + 5 + times[i].ms);
		/* From the first on. */
		rl_byhand_posted(&b, T0 + 500);
		assert_true(rl_byhand_deadline(&b) == T0 + 5 + times[i].ms);
		assert_int_equal(rl_byhand_tick(&b, T0 + 4 + times[i].ms), RL_BYHAND_NOTHING);
		assert_int_equal(rl_byhand_tick(&b, T0 + 5 + times[i].ms), RL_BYHAND_GIVE_UP);
		assert_int_equal(rl_byhand_deadline(&b), 0);
	}
}

static void without_time_out_no_peer_is_given_up(void **state)
{
	struct rl_byhand b = begin(false);

	go(&b, T0);
	b.timeout = 0;
	rl_byhand_posted(&b, T0);
	assert_int_equal(rl_byhand_deadline(&b), 0);
}

/* After its tries, be they short; and without a time-out, or with a long one, after a second. */
static void a_peer_that_has_gone_is_given_up_soon(void **state)
{
	static const struct {
		u8 timeout, retry_cnt;
		u32 ms;
	} times[] = { { 14, 7, 536 }, { 1, 0, 0 }, { 0, 7, 1000 }, { 31, 7, 1000 } };
	struct rl_byhand a, b;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(times); i++) {
		/* With work under way. */
		join(&a, &b);
		a.timeout = b.timeout = times[i].timeout;
		a.retry_cnt = b.retry_cnt = times[i].retry_cnt;
		rl_byhand_disconnected(&a, true, true, T0);
		assert_true(rl_byhand_deadline(&a) == T0 + times[i].ms);
		assert_int_equal(rl_byhand_tick(&a, T0 + times[i].ms), RL_BYHAND_GIVE_UP);
		assert_int_equal(a.phase, RL_BYHAND_OFF);
		/* Or when it comes. */
		rl_byhand_disconnected(&b, true, false, T0);
		assert_int_equal(rl_byhand_deadline(&b), 0);
		assert_int_equal(hear(&b, &a, T0), RL_BYHAND_REJECT);
		rl_byhand_posted(&b, T0 + 50);
		assert_true(rl_byhand_deadline(&b) == T0 + 50 + times[i].ms);
	}
}

/* InfiniBand's retries are over by then. */
static void requests_to_a_dead_peer_fail_at_once(void **state)
{
	struct rl_byhand a, b;

	join(&a, &b);
	rl_byhand_peer_is_dead(&a, true, T0);
	assert_true(rl_byhand_deadline(&a) == T0);
	assert_int_equal(rl_byhand_tick(&a, T0), RL_BYHAND_GIVE_UP);
	/* Nothing was under way: it may come back. */
	join(&a, &b);
	rl_byhand_peer_is_dead(&b, false, T0);
	assert_int_equal(b.phase, RL_BYHAND_UNCONNECTED);
	assert_int_equal(hear(&b, &a, T0), RL_BYHAND_ACCEPT);
	/* An event of a connection that is over already. */
	rl_byhand_enter_rtr(&b, T0);
	rl_byhand_peer_is_dead(&b, true, T0);
	assert_int_equal(b.phase, RL_BYHAND_UNCONNECTED);
}

static void a_peer_may_be_silent_as_long_as_retries_take(void **state)
{
	struct rl_byhand a, b;

	join(&a, &b);
	a.timeout = 14;
	a.retry_cnt = 7;
	assert_int_equal(rl_byhand_dead_ms(&a, 60000), 3000);	/* 0.5 s: less than TCP needs */
	a.timeout = 20;
	assert_int_equal(rl_byhand_dead_ms(&a, 60000), 34359);
	a.timeout = 31;
	assert_int_equal(rl_byhand_dead_ms(&a, 60000), 70368744);
	a.timeout = 0;
	assert_int_equal(rl_byhand_dead_ms(&a, 60000), 60000);
	a.timeout = 14;
	a.rts = false;
	assert_int_equal(rl_byhand_dead_ms(&a, 60000), 60000);
	a.rts = true;
	a.type = IBV_QPT_UC;
	assert_int_equal(rl_byhand_dead_ms(&a, 60000), 60000);
}

static void connection_that_was_not_used_is_made_anew(void **state)
{
	struct rl_byhand a, b;

	join(&a, &b);
	rl_byhand_disconnected(&b, false, true, T0);
	assert_true(rl_byhand_deadline(&b) > T0);
	assert_int_equal(hear(&b, &a, T0), RL_BYHAND_ACCEPT);
	assert_int_equal(rl_byhand_deadline(&b), 0);
}

static void receiver_waits_as_the_sender_says(void **state)
{
	struct rl_byhand a, b;

	join(&a, &b);
	assert_true(rl_byhand_rnr_timeout(&b, 12) == ~0u);
	b.peer.rnr_retry = 3;
	assert_int_equal(rl_byhand_rnr_timeout(&b, 0), 1967);	/* 3 * 655.35 ms */
	assert_int_equal(rl_byhand_rnr_timeout(&b, 31), 1475);
	assert_int_equal(rl_byhand_rnr_timeout(&b, 1), 1);
	b.peer.rnr_retry = 0;
	assert_int_equal(rl_byhand_rnr_timeout(&b, 0), 0);
}

/* ---- modify_qp ---- */

static void table_of_modify_qp(void **state)
{
	const uint32_t init = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
	const uint32_t uc_rtr = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	const uint32_t rtr = uc_rtr | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	const uint32_t rts = IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			     IBV_QP_MAX_QP_RD_ATOMIC;
	uint32_t from, to;

	assert_true(rl_byhand_may_modify(IBV_QPT_RC, IBV_QPS_RESET, IBV_QPS_INIT, init));
	assert_true(rl_byhand_may_modify(IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_RTR, rtr));
	assert_true(rl_byhand_may_modify(IBV_QPT_RC, IBV_QPS_RTR, IBV_QPS_RTS, rts));
	assert_false(rl_byhand_may_modify(IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_RTR, uc_rtr));
	assert_true(rl_byhand_may_modify(IBV_QPT_UC, IBV_QPS_INIT, IBV_QPS_RTR, uc_rtr));
	assert_false(rl_byhand_may_modify(IBV_QPT_UC, IBV_QPS_INIT, IBV_QPS_RTR, rtr));
	assert_true(rl_byhand_may_modify(IBV_QPT_UC, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN));
	assert_true(rl_byhand_may_modify(IBV_QPT_UD, IBV_QPS_RESET, IBV_QPS_INIT,
				       IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
	assert_true(rl_byhand_may_modify(IBV_QPT_UD, IBV_QPS_INIT, IBV_QPS_RTR, 0));
	assert_false(rl_byhand_may_modify(IBV_QPT_RAW_PACKET, IBV_QPS_RESET, IBV_QPS_INIT, init));
	/* Any state ends in these two, and with them nothing is given. */
	for (from = 0; from <= IBV_QPS_ERR; from++)
		for (to = 0; to <= 40; to++) {
			bool ends = to == IBV_QPS_RESET || to == IBV_QPS_ERR;

			if (ends)
				assert_true(rl_byhand_may_modify(IBV_QPT_RC, from, to, 0));
			assert_false(rl_byhand_may_modify(IBV_QPT_RC, from, to, IBV_QP_CAP));
			if (from == IBV_QPS_ERR && !ends)
				assert_false(rl_byhand_may_modify(IBV_QPT_RC, from, to, 0));
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_lower_end_connects),
		cmocka_unit_test(rts_is_awaited_for_a_while),
		cmocka_unit_test(attempts_become_rare),
		cmocka_unit_test(both_ends_may_be_one),
		cmocka_unit_test(a_qp_connected_to_itself_accepts_itself),
		cmocka_unit_test(a_uc_qp_waits_for_ever),
		cmocka_unit_test(a_uc_qp_reports_no_missing_peer),
		cmocka_unit_test(a_hello_is_parsed_as_it_was_made),
		cmocka_unit_test(fpdus_larger_than_a_segment_are_offered),
		cmocka_unit_test(other_versions_are_known_by_name),
		cmocka_unit_test(other_qps_do_not_match),
		cmocka_unit_test(mirror_is_no_peer),
		cmocka_unit_test(every_bit_of_a_psn_is_checked),
		cmocka_unit_test(guesses_are_soon_ignored),
		cmocka_unit_test(an_end_before_rts_connects_to_one_in_rts),
		cmocka_unit_test(a_qp_that_is_its_own_peer_accepts_no_other),
		cmocka_unit_test(no_peer_matches_before_rtr),
		cmocka_unit_test(late_number_that_is_not_awaited_parts),
		cmocka_unit_test(work_waits_as_long_as_said),
		cmocka_unit_test(without_time_out_no_peer_is_given_up),
		cmocka_unit_test(a_peer_that_has_gone_is_given_up_soon),
		cmocka_unit_test(requests_to_a_dead_peer_fail_at_once),
		cmocka_unit_test(a_peer_may_be_silent_as_long_as_retries_take),
		cmocka_unit_test(connection_that_was_not_used_is_made_anew),
		cmocka_unit_test(receiver_waits_as_the_sender_says),
		cmocka_unit_test(table_of_modify_qp),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
