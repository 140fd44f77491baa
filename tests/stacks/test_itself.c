// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A QP that is connected to itself (struct weft_offer.itself): one stack at both ends of one wire.
 */
#include "test.h"

#define RNR	500
#define DEPTH	8			/* asks included */
#define LEN	256

struct alone {
	struct side s;
	struct rng rng;
	enum wire_cut cut;
	struct host_mr *mr, *far;	/* source of sends, target of remote access */
};

typedef void (*alone_case)(struct alone *a);

/* The wire leads back. False: there was nothing to do. */
static bool step(struct alone *a)
{
	struct side *s = &a->s;
	struct wire_batch b;

	if (wire_waiting(&s->out) && !weft_link_is_behind(&s->link.core)) {
		wire_read(&s->out, a->cut, &a->rng, &b);
		host_link_rx(&s->link, b.seg, b.nseg);
		wire_batch_free(&b);
		return true;
	}
	if (!s->aborted && wire_read_fin(&s->out)) {
		host_link_fin(&s->link);
		return true;
	}
	if (!side_ready(s))
		return false;
	host_link_tx(&s->link);
	return true;
}

static void go(struct alone *a)
{
	u32 n = 0;

	while (step(a))
		HOST_ASSERT(++n < 1000 * 1000);
}

static void run(void **state)
{
	alone_case fn = (alone_case)*state;
	enum wire_cut cut;

	for (cut = WIRE_WHOLE; cut <= WIRE_BYTES; cut++) {
		struct alone a = { .rng.s = 1, .cut = cut };
		struct side_cfg c;
		u32 i;

		side_cfg_init(&c);
		c.link.itself = true;
		c.link.ext = true;
		c.link.rnr_ms = RNR;
		c.link.mpa.ird = c.link.mpa.ord = DEPTH;
		c.qp.confirms = true;
		c.sndbuf = 1 << 13;
		side_init(&a.s, true, &c);
		a.s.qp->core.by_hand = true;
		a.mr = host_mr_new(&a.s.host, PD, BASE, 1 << 16, RW);
		a.far = host_mr_new(&a.s.host, PD, 2 * BASE, 1 << 16, RW);
		for (i = 0; i < a.mr->r.len; i++)
			a.mr->mem[i] = (u8)(i * 7 + (i >> 8));
		go(&a);
		assert_true(host_link_is_full(&a.s.link));
		fn(&a);
		side_fini(&a.s);
	}
}

#define CASE(fn) { #fn, run, NULL, NULL, (void *)(fn) }

static void done(struct alone *a, u64 id)
{
	expect_cqe(a->s.scq, id, WEFT_WC_SUCCESS);
}

static void received(struct alone *a, u64 id, u32 len)
{
	struct weft_cqe e = expect_cqe(a->s.rcq, id, WEFT_WC_SUCCESS);

	assert_int_equal(e.byte_len, len);
}

static void nothing(struct alone *a)
{
	go(a);
	expect_no_cqe(a->s.scq);
	expect_no_cqe(a->s.rcq);
	expect_state(&a->s, WEFT_QPS_RTS);
}

static void in_error(struct alone *a)
{
	go(a);
	expect_no_cqe(a->s.scq);
	expect_no_cqe(a->s.rcq);
	assert_int_equal(weft_qpc_verbs_state(&a->s.qp->core), WEFT_VS_ERR);
	assert_true(host_link_is_over(&a->s.link));
}

/* ---- what flows ---- */

static void no_frame_goes_out(struct alone *a)
{
	assert_int_equal(a->s.out.sent, 0);
	assert_int_equal(a->s.link.acts, WEFT_ACT_CONNECTED | WEFT_ACT_AGAIN);
	assert_int_equal(a->s.qp->core.ord, DEPTH - WEFT_ACK_READS);
}

static void what_it_sends_it_receives(struct alone *a)
{
	side_recv(&a->s, 1, a->far, 0, LEN);
	side_recv(&a->s, 2, a->far, LEN, LEN);
	side_send(&a->s, 3, SIG, a->mr, 0, LEN);
	side_send(&a->s, 4, SIG, a->mr, LEN, 10);
	go(a);
	received(a, 1, LEN);
	received(a, 2, 10);
	done(a, 3);
	done(a, 4);
	assert_memory_equal(a->far->mem, a->mr->mem, LEN + 10);
}

/* More than the wire holds, in both directions at once. */
static void what_it_writes_it_reads(struct alone *a)
{
	u32 half = a->mr->r.len / 2;

	side_write(&a->s, 1, SIG, a->mr, 0, half, a->far, 0);
	side_read(&a->s, 2, SIG, a->mr, half, half, a->far, 0);
	side_write(&a->s, 3, SIG, a->mr, 0, half, a->far, half);
	go(a);
	done(a, 1);
	done(a, 2);
	done(a, 3);
	assert_memory_equal(a->far->mem, a->mr->mem, half);
	assert_memory_equal(a->far->mem + half, a->mr->mem, half);
	assert_memory_equal(a->mr->mem + half, a->mr->mem, half);
}

/* All work after a waiting Send waits too, but nothing before it, as with an RNR NAK. */
static void a_send_that_waits_keeps_no_answer(struct alone *a)
{
	const struct host_wr with_imm = {
		.wr_id = 4, .opcode = WEFT_WR_WRITE_IMM, .flags = SIG, .num_sge = 1,
		.sge = { host_sge(a->mr, 0, LEN) }, .rkey = a->far->r.stag, .remote_addr = a->far->r.base,
	};

	side_write(&a->s, 1, SIG, a->mr, 0, LEN, a->far, 0);
	go(a);
	done(a, 1);
	side_read(&a->s, 2, SIG, a->mr, LEN, LEN, a->far, 0);
	side_send(&a->s, 3, SIG, a->mr, 0, LEN);
	go(a);
	done(a, 2);
	side_recv(&a->s, 5, a->far, 0, LEN);
	go(a);
	done(a, 3);
	received(a, 5, LEN);
	side_read(&a->s, 2, SIG, a->mr, LEN, LEN, a->far, 0);
	side_post(&a->s, &with_imm);
	side_write(&a->s, 6, SIG, a->mr, 0, LEN, a->far, 0);
	go(a);
	done(a, 2);
	nothing(a);
	side_recv(&a->s, 7, a->far, 0, LEN);
	go(a);
	done(a, 4);
	done(a, 6);
	received(a, 7, LEN);
}

/* ---- errors ---- */

static void bad_write(struct alone *a, u64 id)
{
	struct host_wr wr = {
		.wr_id = id, .opcode = WEFT_WR_WRITE, .num_sge = 1, .sge = { host_sge(a->mr, 0, LEN) },
		.rkey = a->far->r.stag ^ 1, .remote_addr = a->far->r.base,
	};

	side_post(&a->s, &wr);
}

static void a_write_that_is_refused_fails(struct alone *a)
{
	side_recv(&a->s, 9, a->far, 0, LEN);
	side_write(&a->s, 1, SIG, a->mr, 0, LEN, a->far, 0);
	bad_write(a, 2);
	side_write(&a->s, 3, SIG, a->mr, 0, LEN, a->far, 0);
	go(a);
	done(a, 1);
	expect_cqe(a->s.scq, 2, WEFT_WC_REM_ACCESS_ERR);
	expect_cqe(a->s.scq, 3, WEFT_WC_FLUSH_ERR);
	expect_cqe(a->s.rcq, 9, WEFT_WC_FLUSH_ERR);
	in_error(a);
}

static void a_read_that_is_refused_fails(struct alone *a)
{
	struct host_wr wr = {
		.wr_id = 2, .opcode = WEFT_WR_READ, .num_sge = 1, .sge = { host_sge(a->mr, 0, LEN) },
		.rkey = a->far->r.stag ^ 1, .remote_addr = a->far->r.base,
	};

	side_read(&a->s, 1, SIG, a->mr, LEN, LEN, a->far, 0);
	side_post(&a->s, &wr);
	side_read(&a->s, 3, SIG, a->mr, LEN, LEN, a->far, 0);
	go(a);
	done(a, 1);
	expect_cqe(a->s.scq, 2, WEFT_WC_REM_ACCESS_ERR);
	expect_cqe(a->s.scq, 3, WEFT_WC_FLUSH_ERR);
	in_error(a);
}

/* Whichever run handles which. */
static void what_went_before_a_refused_read_is_done(struct alone *a)
{
	struct host_wr wr = {
		.wr_id = 3, .opcode = WEFT_WR_READ, .num_sge = 1, .sge = { host_sge(a->mr, 0, LEN) },
		.rkey = a->far->r.stag ^ 1, .remote_addr = a->far->r.base,
	};

	a->s.link.runs++;
	side_read(&a->s, 1, SIG, a->mr, LEN, LEN, a->far, 0);
	side_read(&a->s, 2, SIG, a->mr, LEN, LEN, a->far, 0);
	side_post(&a->s, &wr);
	go(a);
	done(a, 1);
	done(a, 2);
	expect_cqe(a->s.scq, 3, WEFT_WC_REM_ACCESS_ERR);
	in_error(a);
}

/* Work in flight is not reported as the cause; it arrives too late. */
static void an_error_of_its_own_blames_nothing_else(struct alone *a)
{
	struct host_wr wr = {
		.wr_id = 2, .opcode = WEFT_WR_SEND, .num_sge = 1, .sge = { host_sge(a->mr, 0, LEN) },
	};

	wr.sge[0].lkey ^= 1;
	side_recv(&a->s, 9, a->far, 0, LEN);
	side_send(&a->s, 1, SIG, a->mr, 0, LEN);
	side_post(&a->s, &wr);
	go(a);
	expect_cqe(a->s.rcq, 9, WEFT_WC_FLUSH_ERR);
	expect_cqe(a->s.scq, 1, WEFT_WC_FLUSH_ERR);
	expect_cqe(a->s.scq, 2, WEFT_WC_LOC_PROT_ERR);
	in_error(a);
}

static void a_receive_that_cannot_be_filled_fails_both(struct alone *a)
{
	struct weft_sge bad = host_sge(a->far, 0, LEN);

	bad.lkey ^= 1;
	assert_true(host_post_recv(a->s.qp, 9, &bad, 1));
	side_send(&a->s, 1, SIG, a->mr, 0, LEN);
	side_send(&a->s, 2, SIG, a->mr, 0, LEN);
	go(a);
	expect_cqe(a->s.rcq, 9, WEFT_WC_LOC_PROT_ERR);
	expect_cqe(a->s.scq, 1, WEFT_WC_REM_OP_ERR);
	expect_cqe(a->s.scq, 2, WEFT_WC_FLUSH_ERR);
	in_error(a);
}

static void a_receive_that_never_comes_is_missed(struct alone *a)
{
	side_write(&a->s, 1, SIG, a->mr, 0, LEN, a->far, 0);
	side_send(&a->s, 2, SIG, a->mr, 0, LEN);
	side_send(&a->s, 3, SIG, a->mr, 0, LEN);
	go(a);
	host_link_set_time(&a->s.link, a->s.link.now + RNR);
	go(a);
	done(a, 1);
	expect_cqe(a->s.scq, 2, WEFT_WC_RNR_RETRY_EXC_ERR);
	expect_cqe(a->s.scq, 3, WEFT_WC_FLUSH_ERR);
	in_error(a);
}

/* ---- the end ---- */

static void it_is_destroyed(struct alone *a)
{
	side_send(&a->s, 2, SIG, a->mr, 0, LEN);
	go(a);
	host_link_forget(&a->s.link);
	go(a);
	assert_true(a->s.link.rx_closed && a->s.link.tx_closed);
	assert_int_equal(a->s.link.core.state, WEFT_LINK_DEAD);
	assert_false(a->s.aborted);
}

/* Its next connection leads to another QP. */
static void it_is_itself_no_more(struct alone *a)
{
	struct weft_qpc *qp = &a->s.qp->core;

	assert_true(qp->itself);
	host_link_forget(&a->s.link);
	go(a);
	memset(qp->sq.q.ring, 0, sizeof(*qp->sq.q.ring));
	memset(qp->rq.q.ring, 0, sizeof(*qp->rq.q.ring));
	weft_qpc_reset(qp);
	assert_false(qp->itself);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(no_frame_goes_out),
		CASE(what_it_sends_it_receives),
		CASE(what_it_writes_it_reads),
		CASE(a_send_that_waits_keeps_no_answer),
		CASE(a_write_that_is_refused_fails),
		CASE(a_read_that_is_refused_fails),
		CASE(what_went_before_a_refused_read_is_done),
		CASE(an_error_of_its_own_blames_nothing_else),
		CASE(a_receive_that_cannot_be_filled_fails_both),
		CASE(a_receive_that_never_comes_is_missed),
		CASE(it_is_destroyed),
		CASE(it_is_itself_no_more),
	};

	return RUN_TESTS("stacks: a QP with itself", tests);
}
