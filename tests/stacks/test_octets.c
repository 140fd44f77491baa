// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What a host needs to make a stream of octets from Sends: a receive whose rest is diverted,
 * segments in order, and a user's memory that is returned before all of it was sent.
 */
#include "world.h"

static struct weft_qpc *in_order(struct world *w)
{
	struct weft_qpc *qp = &w->p->s.qp->core;

	qp->in_order = true;
	return qp;
}

static void say(struct world *w, bool last, u32 mo, const char *text)
{
	peer_say(w->p, p_send(P_SEND, last, 1, mo, text, strlen(text)));
}

/* ---- receiving ---- */

static void the_rest_of_a_send_goes_elsewhere(struct world *w)
{
	struct weft_qpc *qp = in_order(w);
	const struct weft_sge sge[2] = { host_sge(w->rw, 100, 3), host_sge(w->rw, 200, 50) };
	struct weft_cqe e;

	say(w, false, 0, "first");
	assert_true(qp->recv_active);
	assert_int_equal(qp->recv_got, 5);
	weft_rq_divert(qp, sge, 2);
	assert_int_equal(qp->recv_got, 5);
	say(w, false, 5, "and");
	/* Diverted again: octets received meanwhile stay where they are. */
	weft_rq_divert(qp, sge + 1, 1);
	say(w, true, 8, "rest");
	e = expect_cqe(w->p->s.rcq, 0, WEFT_WC_SUCCESS);
	assert_int_equal(e.byte_len, 12);
	assert_memory_equal(w->inbox->mem, "first", 5);
	assert_int_equal(w->inbox->mem[5], world_octet(5));
	assert_memory_equal(w->rw->mem + 100, "and", 3);
	assert_int_equal(w->rw->mem[103], world_octet(103));
	assert_memory_equal(w->rw->mem + 200, "rest", 4);
	assert_int_equal(w->rw->mem[204], world_octet(204));
}

static void a_send_before_its_first_octet_is_diverted(struct world *w)
{
	struct weft_qpc *qp = in_order(w);
	struct weft_sge sge = host_sge(w->rw, 0, 9);

	say(w, false, 0, "");
	weft_rq_divert(qp, &sge, 1);
	say(w, true, 0, "elsewhere");
	expect_cqe(w->p->s.rcq, 0, WEFT_WC_SUCCESS);
	assert_memory_equal(w->rw->mem, "elsewhere", 9);
	assert_int_equal(w->inbox->mem[0], world_octet(0));
}

/* The room is that of the last diversion. */
static void what_does_not_fit_elsewhere_is_refused(struct world *w)
{
	struct weft_qpc *qp = in_order(w);
	struct weft_sge sge = host_sge(w->rw, 0, 3);

	say(w, false, 0, "first");
	weft_rq_divert(qp, &sge, 1);
	say(w, true, 5, "more");
	assert_int_equal(qp->error, WEFT_E_DDP_TOO_LONG);
	expect_cqe(w->p->s.rcq, 0, WEFT_WC_LOC_LEN_ERR);
	assert_int_equal(w->rw->mem[0], world_octet(0));
}

static void segments_come_in_order_where_that_is_asked(struct world *w)
{
	struct weft_qpc *qp = in_order(w);

	say(w, false, 4, "last");
	assert_int_equal(qp->error, WEFT_E_DDP_MO);
	expect_cqe(w->p->s.rcq, 0, WEFT_WC_FLUSH_ERR);
}

static void a_gap_is_refused_where_order_is_asked(struct world *w)
{
	struct weft_qpc *qp = in_order(w);

	say(w, false, 0, "abcd");
	say(w, false, 5, "x");
	assert_int_equal(qp->error, WEFT_E_DDP_MO);
}

/* ---- sending ---- */

#define SNDBUF 3000
#define MESSAGE (3 * WORLD_LEN - 7)

struct sender {
	struct world w;
	u8 all[MESSAGE];		/* the octets that must arrive */
	struct host_mr *kept;
};

/* Room for only a part of the message, both in TCP and in a batch. */
static void begin(struct sender *s, u32 batch, bool crc)
{
	struct peer_cfg c;

	peer_cfg_init(&c);
	c.dut_initiates = true;
	c.side.link.mpa.crc = crc;
	c.side.link.batch = batch;
	c.side.sndbuf = SNDBUF;
	world_init(&s->w, &c, WIRE_WHOLE);
	memcpy(s->all, s->w.rw->mem + 7, WORLD_LEN - 7);
	memcpy(s->all + WORLD_LEN - 7, s->w.ronly->mem, WORLD_LEN);
	memcpy(s->all + 2 * WORLD_LEN - 7, s->w.wonly->mem, WORLD_LEN);
	s->kept = host_mr_new(&s->w.p->s.host, PD, BASE, MESSAGE, WEFT_ACCESS_LOCAL_WRITE);
	s->kept->r.base = (uintptr_t)s->kept->mem;
}

static void post(struct sender *s)
{
	const struct host_wr wr = {
		.wr_id = 9,
		.opcode = WEFT_WR_SEND,
		.flags = SIG,
		.num_sge = 4,
		.sge = {
			host_sge(s->w.rw, 7, WORLD_LEN - 7), host_sge(s->w.ronly, 5, 0),
			host_sge(s->w.ronly, 0, WORLD_LEN), host_sge(s->w.wonly, 0, WORLD_LEN),
		},
	};

	side_post(&s->w.p->s, &wr);
}

/* The user overwrites everything posted. */
static void scribble(struct sender *s)
{
	memset(s->w.rw->mem, 0xdd, WORLD_LEN);
	memset(s->w.ronly->mem, 0xdd, WORLD_LEN);
	memset(s->w.wonly->mem, 0xdd, WORLD_LEN);
}

static bool keep(struct sender *s, u32 room)
{
	struct weft_qpc *qp = &s->w.p->s.qp->core;
	bool kept = weft_sq_keep(qp, s->kept->mem, room, s->kept->r.stag);

	weft_region_end_run(qp);
	return kept;
}

static void expect_all(struct sender *s)
{
	struct pdu *d = malloc(sizeof(*d));
	u32 got = 0;

	peer_run(s->w.p);
	while (got < MESSAGE) {
		assert_true(peer_next(s->w.p, d));
		assert_int_equal(d->mo, got);
		assert_true(d->len <= MESSAGE - got);
		assert_memory_equal(d->body, s->all + got, d->len);
		got += d->len;
	}
	free(d);
	expect_cqe(s->w.p->s.scq, 9, WEFT_WC_SUCCESS);
}

static void run_sender(u32 batch, bool crc)
{
	const struct weft_qpc *qp;
	struct sender s;

	begin(&s, batch, crc);
	post(&s);
	host_link_tx(&s.w.p->s.link);
	qp = &s.w.p->s.qp->core;
	/* Not all of it was in the batch, and it was cut within a piece. */
	assert_int_equal(qp->tx_kind, WEFT_TXK_WQE);
	assert_int_not_equal(qp->sge_off, 0);
	assert_false(keep(&s, MESSAGE - qp->tx_msg.done - 1));
	assert_true(keep(&s, MESSAGE - qp->tx_msg.done));
	scribble(&s);
	expect_all(&s);
	world_fini(&s.w);
}

static void what_is_left_of_a_send_is_kept(void **state)
{
	run_sender(2, true);
	run_sender(2, false);
}

static void what_was_not_begun_is_kept(void **state)
{
	struct sender s;

	begin(&s, 2, true);
	s.w.p->s.link.core.qp->sq_held = true;
	post(&s);
	host_link_tx(&s.w.p->s.link);
	assert_true(keep(&s, MESSAGE));
	scribble(&s);
	weft_qpc_hold(&s.w.p->s.qp->core, false);
	expect_all(&s);
	world_fini(&s.w);
}

static void less_room_than_is_left_keeps_nothing(void **state)
{
	struct sender s;

	begin(&s, 2, true);
	post(&s);
	host_link_tx(&s.w.p->s.link);
	assert_false(keep(&s, 100));
	expect_all(&s);
	world_fini(&s.w);
}

static void nothing_posted_is_nothing_kept(void **state)
{
	struct sender s;

	begin(&s, 2, true);
	assert_false(keep(&s, MESSAGE));
	world_fini(&s.w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(the_rest_of_a_send_goes_elsewhere),
		CASE(a_send_before_its_first_octet_is_diverted),
		CASE(what_does_not_fit_elsewhere_is_refused),
		CASE(segments_come_in_order_where_that_is_asked),
		CASE(a_gap_is_refused_where_order_is_asked),
		cmocka_unit_test(what_is_left_of_a_send_is_kept),
		cmocka_unit_test(what_was_not_begun_is_kept),
		cmocka_unit_test(less_room_than_is_left_keeps_nothing),
		cmocka_unit_test(nothing_posted_is_nothing_kept),
	};

	return RUN_TESTS("stacks: streams of octets", tests);
}
