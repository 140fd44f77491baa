// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * However a connection ends, and in the middle of whatever: each work request
 * and each receive completes exactly once, in the order of posting, and none
 * with success behind one that failed. Work is posted before, while and after.
 */
#include "world.h"

#define OPS 120
#define LEN 20000

enum ending {
	CLOSE, BOTH_CLOSE, ABORT, DROP, BAD_LKEY, BAD_OPCODE, BAD_RKEY, BAD_READ, TOO_LONG,
	NO_RECEIVE, INDEX_JUMP, ENDINGS
};

struct story {
	struct pair p;
	struct rng rng;
	struct host_mr *mr[2];
	u32 posted[2], received[2];	/* by each end */
	u32 done[2], recv_done[2];
	bool failed[2], recv_failed[2];
	u32 recv_ok[2];
	enum ending ending;
	bool silent;			/* end 0 posts no more */
};

static void check_order(u64 wr_id, u8 status, u32 *done, bool *failed)
{
	assert_int_equal(wr_id, (*done)++);
	if (status != WEFT_WC_SUCCESS)
		*failed = true;
	else
		assert_false(*failed);
}

static void collect(struct story *s)
{
	struct weft_cqe e;
	u32 i;

	for (i = 0; i < 2; i++) {
		while (host_cq_poll(s->p.s[i].scq, &e))
			check_order(e.wr_id, e.status, &s->done[i], &s->failed[i]);
		while (host_cq_poll(s->p.s[i].rcq, &e)) {
			check_order(e.wr_id, e.status, &s->recv_done[i], &s->recv_failed[i]);
			s->recv_ok[i] += e.status == WEFT_WC_SUCCESS;
		}
	}
}

static void post(struct story *s, u32 i, struct host_wr *wr)
{
	wr->wr_id = s->posted[i];
	wr->flags |= SIG;
	if (host_post_send(s->p.s[i].qp, wr))
		s->posted[i]++;
}

static struct host_wr next_request(struct story *s, u32 i)
{
	static const u8 kinds[] = { WEFT_WR_SEND, WEFT_WR_WRITE, WEFT_WR_WRITE, WEFT_WR_READ };
	u32 len = rng_below(&s->rng, 5) ? rng_below(&s->rng, 300) : rng_below(&s->rng, LEN);
	u8 kind = kinds[rng_below(&s->rng, sizeof(kinds))];

	if (kind == WEFT_WR_SEND)
		len &= 255;
	return (struct host_wr){
		.opcode = kind,
		.flags = rng_below(&s->rng, 4) ? 0 : WEFT_WR_FENCE,
		.num_sge = 1,
		.sge = { host_sge(s->mr[i], 0, len) },
		.rkey = s->mr[!i]->r.stag,
		.remote_addr = s->mr[!i]->r.base,
	};
}

static void post_recv(struct story *s, u32 i)
{
	struct weft_sge sge = host_sge(s->mr[i], 0, 256);

	if (host_post_recv(s->p.s[i].qp, s->received[i], &sge, 1))
		s->received[i]++;
}

static void post_bad(struct story *s)
{
	struct host_wr wr = next_request(s, 0);

	wr.opcode = WEFT_WR_WRITE;
	wr.sge[0].length = 100;
	switch (s->ending) {
	case BAD_LKEY:
		wr.sge[0].lkey ^= 1;
		break;
	case BAD_OPCODE:
		wr.opcode = 200;
		break;
	case BAD_RKEY:
		wr.rkey ^= 1;
		break;
	case BAD_READ:
		wr.opcode = WEFT_WR_READ;
		wr.remote_addr += LEN;
		break;
	default:
		wr.opcode = WEFT_WR_SEND;
		wr.sge[0].length = 257;
		break;
	}
	post(s, 0, &wr);
}

static void end_it(struct story *s)
{
	struct host_qp *qp = s->p.s[0].qp;

	switch (s->ending) {
	case CLOSE:
		host_link_close(&s->p.s[0].link);
		break;
	case BOTH_CLOSE:
		host_link_close(&s->p.s[0].link);
		host_link_close(&s->p.s[1].link);
		break;
	case ABORT:
		host_link_abort(&s->p.s[0].link);
		pair_drop(&s->p);
		break;
	case DROP:
		pair_drop(&s->p);
		break;
	case INDEX_JUMP:
		host_scribble_index(qp, false, qp->sq_user + 100000);
		/* A further post would put the index right again. */
		s->silent = true;
		break;
	case NO_RECEIVE:
		/* More Sends than there will ever be receives. */
		break;
	default:
		post_bad(s);
		break;
	}
}

static void step(struct story *s)
{
	u32 i = rng_below(&s->rng, 2), n;
	struct host_wr wr = next_request(s, i);

	if (i || !s->silent)
		post(s, i, &wr);
	if (s->ending != NO_RECEIVE)
		post_recv(s, i);
	for (n = rng_below(&s->rng, 25); n && pair_step(&s->p); n--)
		;
	if (rng_below(&s->rng, 2))
		collect(s);
}

static void tell(struct story *s, u64 seed, enum ending ending)
{
	struct pair_cfg c;
	u32 i, when;

	memset(s, 0, sizeof(*s));
	s->rng.s = seed;
	s->ending = ending;
	pair_cfg_init(&c);
	c.seed = seed;
	c.s[0].sndbuf = 500 << rng_below(&s->rng, 8);
	c.s[1].link.batch = rng_upto(&s->rng, 20);
	c.s[0].qp.sq_slots = c.s[1].qp.sq_slots = 64;
	pair_init(&s->p, &c);
	for (i = 0; i < 2; i++)
		s->mr[i] = host_mr_new(&s->p.s[i].host, PD, BASE, LEN, RW);
	for (i = 0; i < (ending == NO_RECEIVE ? 4 : 40); i++)
		post_recv(s, i & 1);
	/* The connection stands before it ends. */
	pair_run(&s->p);
	when = rng_below(&s->rng, OPS);
	for (i = 0; i < OPS; i++) {
		if (i == when)
			end_it(s);
		step(s);
	}
	pair_run(&s->p);
}

static void check(struct story *s)
{
	u32 i;

	collect(s);
	for (i = 0; i < 2; i++) {
		expect_state(&s->p.s[i], WEFT_QPS_ERROR);
		/* A ring that cannot be followed is not flushed to its end. */
		if (s->ending != INDEX_JUMP || i)
			assert_int_equal(s->done[i], s->posted[i]);
		assert_int_equal(s->recv_done[i], s->received[i]);
		assert_int_equal(host_qp_count_events(s->p.s[i].qp, WEFT_EV_FLUSHED), 1);
		assert_true(host_qp_count_events(s->p.s[i].qp, WEFT_EV_TERM_SENT) +
			    host_qp_count_events(s->p.s[i].qp, WEFT_EV_TERM_RECEIVED) <= 1);
	}
}

static void stories(void **state)
{
	enum ending ending = (enum ending)(uintptr_t)*state;
	struct story *s = malloc(sizeof(*s));
	u64 seed;

	assert_non_null(s);
	for (seed = 1; seed <= 40; seed++) {
		tell(s, seed * 1000 + ending, ending);
		check(s);
		pair_fini(&s->p);
	}
	free(s);
}

#define STORY(name, ending) { #name, stories, NULL, NULL, (void *)(uintptr_t)(ending) }

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(each_request_completes_once_after_a_close, CLOSE),
		STORY(each_request_completes_once_after_two_closes, BOTH_CLOSE),
		STORY(each_request_completes_once_after_an_abort, ABORT),
		STORY(each_request_completes_once_after_a_reset, DROP),
		STORY(each_request_completes_once_after_a_bad_lkey, BAD_LKEY),
		STORY(each_request_completes_once_after_a_bad_opcode, BAD_OPCODE),
		STORY(each_request_completes_once_after_a_bad_rkey, BAD_RKEY),
		STORY(each_request_completes_once_after_a_bad_read, BAD_READ),
		STORY(each_request_completes_once_after_a_send_too_long, TOO_LONG),
		STORY(each_request_completes_once_without_a_receive, NO_RECEIVE),
		STORY(each_request_completes_once_after_a_broken_ring, INDEX_JUMP),
	};

	return RUN_TESTS("stacks: endings", tests);
}
