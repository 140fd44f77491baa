// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * However a connection ends, and at whatever moment: each work request and each receive completes
 * exactly once, in the order of posting, and none succeeds after one that failed. Work is posted
 * before, during and after the end.
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
		/* A further post would correct the index. */
		s->silent = true;
		break;
	case NO_RECEIVE:
		/* More Sends than there are receives. */
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
	/* The connection is established before it ends. */
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
		/* A ring with an invalid index is not flushed to its end. */
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

/* ---- a flush in pieces ---- */

#define MANY (2 * WEFT_FLUSH_PIECE + 100)

/* The deepest queues of small entries, on a stack that may send at once. */
static void many_init(struct world *w)
{
	struct peer_cfg c;

	peer_cfg_init(&c);
	c.dut_initiates = true;
	c.side.qp.sq_slots = c.side.qp.rq_slots = 1024;
	c.side.qp.max_slots = c.side.qp.rq_sge = 1;
	c.side.cq_entries = 4096;
	world_init(w, &c, WIRE_WHOLE);
}

static void post_many(struct world *w)
{
	u32 i;

	for (i = 0; i < MANY; i++)
		side_send(&w->p->s, i, SIG, w->rw, 0, 8);
	for (i = NRECV; i < MANY; i++)
		side_recv(&w->p->s, i, w->inbox, 0, RECV_LEN);
}

static void expect_flushed_from(struct host_cq *cq, u32 from, u32 n)
{
	u32 i;

	for (i = from; i < from + n; i++)
		expect_cqe(cq, i, WEFT_WC_FLUSH_ERR);
	expect_no_cqe(cq);
}

static void expect_piece(struct world *w, u32 from, u32 n)
{
	expect_flushed_from(w->p->s.scq, from, n);
	expect_flushed_from(w->p->s.rcq, from, n);
}

static void a_long_flush_is_done_in_pieces(void **state)
{
	struct weft_qpc *qp;
	struct world w;

	many_init(&w);
	qp = &w.p->s.qp->core;
	post_many(&w);
	w.p->s.qp->kicked = false;
	weft_qpc_error(qp);
	expect_piece(&w, 0, WEFT_FLUSH_PIECE);
	/* It asks for another run; the event comes with the first piece. */
	assert_true(w.p->s.qp->kicked);
	assert_int_equal(host_qp_count_events(w.p->s.qp, WEFT_EV_FLUSHED), 1);
	assert_true(weft_qpc_flush(qp));
	expect_piece(&w, WEFT_FLUSH_PIECE, WEFT_FLUSH_PIECE);
	assert_false(weft_qpc_flush(qp));
	expect_piece(&w, 2 * WEFT_FLUSH_PIECE, 100);
	world_fini(&w);
}

static void a_send_run_goes_on_with_the_flush(void **state)
{
	struct world w;
	u32 runs;

	many_init(&w);
	post_many(&w);
	weft_qpc_error(&w.p->s.qp->core);
	for (runs = 0; w.p->s.qp->kicked; runs++) {
		assert_true(runs < 4);
		w.p->s.qp->kicked = false;
		weft_send_run(&w.p->s.link.core, WEFT_SLICE);
	}
	assert_int_equal(runs, 2);
	expect_piece(&w, 0, MANY);
	world_fini(&w);
}

/* The host flushes the rest when the connection releases the QP. */
static void a_flush_goes_on_without_its_connection(void **state)
{
	struct world w;

	many_init(&w);
	post_many(&w);
	w.p->s.qp->kicked = false;
	host_link_reset(&w.p->s.link);
	assert_null(w.p->s.link.core.qp);
	assert_true(w.p->s.qp->kicked);
	peer_run(w.p);
	expect_piece(&w, 0, MANY);
	world_fini(&w);
}

/*
 * Completed Sends wait behind an incomplete Read: all are flushed, whatever is sent between two
 * pieces, and none succeeds because the Read was in another piece.
 */
static void done_work_is_flushed_in_every_piece(void **state)
{
	struct world w;
	u32 i;

	many_init(&w);
	side_read(&w.p->s, 0, SIG, w.wonly, 0, 8, w.ronly, 0);
	for (i = 1; i < MANY; i++)
		side_send(&w.p->s, i, SIG, w.rw, 0, 8);
	peer_run(w.p);
	expect_no_cqe(w.p->s.scq);
	/* A Terminate is due, and is sent between the pieces. */
	peer_say(w.p, p_tagged(P_WRITE, true, w.rw->r.stag ^ 1, WORLD_BASE, "bad", 3));
	peer_run(w.p);
	expect_flushed_from(w.p->s.scq, 0, MANY);
	world_fini(&w);
}

/* Input is read in softirq: no single message of a peer's may complete a deep queue there. */
static void done_work_completes_in_pieces(void **state)
{
	struct world w;
	u32 i, n;

	many_init(&w);
	side_read(&w.p->s, 0, SIG, w.wonly, 0, 8, w.ronly, 0);
	for (i = 1; i < MANY; i++)
		side_send(&w.p->s, i, SIG, w.rw, 0, 8);
	peer_run(w.p);
	expect_no_cqe(w.p->s.scq);
	peer_add(w.p, p_tagged(P_READ_RESP, true, w.wonly->r.stag, WORLD_BASE, "response", 8));
	peer_deliver(w.p);
	for (i = 0; i < MANY; i += n) {
		n = min_t(u32, MANY - i, WEFT_FLUSH_PIECE);
		expect_cqe(w.p->s.scq, i, WEFT_WC_SUCCESS);
		assert_int_equal(drain_cq(w.p->s.scq), n - 1);
		assert_int_equal(w.p->s.qp->kicked, i + n < MANY);
		host_link_tx(&w.p->s.link);
	}
	world_fini(&w);
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
		cmocka_unit_test(a_long_flush_is_done_in_pieces),
		cmocka_unit_test(a_send_run_goes_on_with_the_flush),
		cmocka_unit_test(a_flush_goes_on_without_its_connection),
		cmocka_unit_test(done_work_is_flushed_in_every_piece),
		cmocka_unit_test(done_work_completes_in_pieces),
	};

	return RUN_TESTS("stacks: endings", tests);
}
