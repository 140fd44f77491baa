// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Every octet arrives at its place and only there. Both ends run the same random mix of Writes,
 * Reads, Sends, immediate data and atomics at once; each buffer that a completion returns is
 * overwritten within that very completion. Every byte's expected value follows from the
 * operation's number, so no copy of the data is kept.
 */
#include "test.h"

#define ARENA (4u << 20)
#define GUARD 64
#define MAX_OPS 64
#define AGED 0x80000000u			/* in a seed: the rings are not new */

enum kind { OP_WRITE, OP_READ, OP_SEND, OP_WRITE_IMM, OP_SEND_IMM, OP_ADD, OP_KINDS };

struct op {
	enum kind kind;
	u32 len;
	u32 src, dst;			/* offsets in the arenas of source and sink */
	bool signalled;
	bool sink_done;			/* Read, Send: the sink has its completion */
};

/* The operations that one end posts. */
struct flow {
	struct pair *pair;
	struct side *from, *to;
	struct host_mr *src;		/* Writes and Sends: local source; Reads: local sink */
	struct host_mr *dst;		/* at the other end */
	struct host_mr *inbox;		/* the other end's receives */
	struct op op[MAX_OPS];
	u32 nops, posted, completed, received;
	u32 send_of[MAX_OPS];		/* operation that takes the n-th receive */
	u32 nsends;
	u64 salt;
};

static u8 pattern(const struct flow *f, u32 op, u32 i)
{
	return (u8)((f->salt + op * 2654435761u + i * 7 + (i >> 8) * 13 + (i >> 16)) >> 3 ^ i);
}

static void fill(const struct flow *f, u32 op, u8 *p, u32 len)
{
	u32 i;

	for (i = 0; i < len; i++)
		p[i] = pattern(f, op, i);
}

static void check(const struct flow *f, u32 op, const u8 *p, u32 len)
{
	u32 i;

	for (i = 0; i < len; i++)
		if (p[i] != pattern(f, op, i))
			fail_msg("operation %u (kind %u, %u octets) differs at %u", op,
				 f->op[op].kind, len, i);
}

static bool takes_receive(enum kind kind)
{
	return kind == OP_SEND || kind == OP_WRITE_IMM || kind == OP_SEND_IMM;
}

static bool brings_back(enum kind kind)
{
	return kind == OP_READ || kind == OP_ADD;
}

/* The immediate data of operation @op, or its summand. */
static u32 number_of(const struct flow *f, u32 op)
{
	return (u32)(f->salt * (op + 3));
}

static u64 word_at(const u8 *p)
{
	u64 word;

	memcpy(&word, p, sizeof(word));
	return word;
}

static void overwrite(u8 *p, u32 len)
{
	memset(p, 0xDD, len);
}

/* A completion of the sending end: buffers of all operations up to it are free. */
static void on_send_cqe(struct host_qp *qp, bool recv, const struct weft_cqe *e, void *arg)
{
	struct flow *f = arg;
	const struct op *o;

	if (recv)
		return;
	assert_int_equal(e->status, WEFT_WC_SUCCESS);
	for (; f->completed <= e->wr_id; f->completed++) {
		u8 *p = f->src->mem + (o = &f->op[f->completed])->src;

		if (brings_back(o->kind))
			check(f, f->completed, p, o->len);
		overwrite(p, o->len);
	}
}

static void on_recv_cqe(struct host_qp *qp, bool recv, const struct weft_cqe *e, void *arg)
{
	struct flow *f = arg;
	u32 op = f->send_of[f->received];
	enum kind kind = f->op[op].kind;

	if (!recv)
		return;
	assert_int_equal(e->status, WEFT_WC_SUCCESS);
	assert_int_equal(e->opcode, kind == OP_WRITE_IMM ? WEFT_WCO_RECV_IMM : WEFT_WCO_RECV);
	assert_int_equal(e->wr_id, f->received++);
	assert_int_equal(e->byte_len, f->op[op].len);
	assert_int_equal(!(e->flags & WEFT_CQE_IMM), kind == OP_SEND);
	if (kind != OP_SEND)
		assert_int_equal(e->imm, number_of(f, op));
	/* RFC 7306 §7: a Write is placed before its immediate data is delivered. */
	if (kind == OP_WRITE_IMM) {
		check(f, op, f->dst->mem + f->op[op].dst, e->byte_len);
		return;
	}
	check(f, op, f->inbox->mem + f->op[op].dst, e->byte_len);
	overwrite(f->inbox->mem + f->op[op].dst, e->byte_len);
}

/* Plans @n operations that do not share memory. */
static void plan(struct flow *f, struct rng *rng, const u32 *sizes, u32 nsizes, u32 n)
{
	u32 i, at = GUARD;

	f->nops = n;
	for (i = 0; i < n; i++) {
		struct op *o = &f->op[i];

		o->kind = rng_below(rng, OP_KINDS);
		o->len = o->kind == OP_ADD ? 8 : sizes[i % nsizes];
		o->src = o->dst = o->kind == OP_ADD ? (at + 7) & ~7u : at + rng_below(rng, 8);
		o->signalled = i == n - 1 || rng_below(rng, 2);
		at = o->src + o->len + GUARD;
		assert_true(at < ARENA);
		if (brings_back(o->kind))
			fill(f, i, f->dst->mem + o->dst, o->len);
		else
			fill(f, i, f->src->mem + o->src, o->len);
		if (takes_receive(o->kind))
			f->send_of[f->nsends++] = i;
	}
}

static void post_receives(struct flow *f)
{
	u32 i;

	for (i = 0; i < f->nsends; i++) {
		const struct op *o = &f->op[f->send_of[i]];
		u32 a = o->len / 3, b = o->len / 5;
		const struct weft_sge sge[3] = {
			host_sge(f->inbox, o->dst, a),
			host_sge(f->inbox, o->dst + a, b),
			host_sge(f->inbox, o->dst + a + b, o->len - a - b),
		};

		assert_true(host_post_recv(f->to->qp, i, sge, 3));
	}
}

/* Cuts [off, off + len) into 1 to 8 SGEs, some of them empty. */
static u8 scatter(struct flow *f, struct rng *rng, u32 off, u32 len, struct weft_sge *sge)
{
	u8 n = 0;

	while (n < 7 && len && rng_below(rng, 4)) {
		u32 part = rng_below(rng, len + 1);

		sge[n++] = host_sge(f->src, off, part);
		off += part;
		len -= part;
	}
	sge[n++] = host_sge(f->src, off, len);
	return n;
}

static u8 opcode_of(enum kind kind)
{
	static const u8 opcodes[] = {
		[OP_WRITE] = WEFT_WR_WRITE, [OP_READ] = WEFT_WR_READ, [OP_SEND] = WEFT_WR_SEND,
		[OP_WRITE_IMM] = WEFT_WR_WRITE_IMM, [OP_SEND_IMM] = WEFT_WR_SEND_IMM,
		[OP_ADD] = WEFT_WR_FETCH_ADD,
	};

	return opcodes[kind];
}

static bool post_one(struct flow *f, struct rng *rng)
{
	const struct op *o = &f->op[f->posted];
	struct host_wr wr = {
		.wr_id = f->posted,
		.opcode = opcode_of(o->kind),
		.flags = o->signalled ? SIG : 0,
		.imm = number_of(f, f->posted),
		.atomic = { .swap_add = number_of(f, f->posted) },
		.rkey = f->dst->r.stag,
		.remote_addr = f->dst->r.base + o->dst,
	};

	if (brings_back(o->kind)) {
		wr.num_sge = 1;
		wr.sge[0] = host_sge(f->src, o->src, o->len);
	} else {
		wr.flags |= rng_below(rng, 2) ? WEFT_WR_SOLICITED : 0;
		wr.num_sge = scatter(f, rng, o->src, o->len, wr.sge);
		if (o->len <= 200 && rng_below(rng, 2)) {
			wr.inline_data = f->src->mem + o->src;
			wr.inline_len = o->len;
		}
	}
	if (!host_post_send(f->from->qp, &wr))
		return false;
	/* The stack has copied inline data at once. */
	if (wr.inline_data)
		overwrite(f->src->mem + o->src, o->len);
	f->posted++;
	return true;
}

static void flow_init(struct flow *f, struct pair *p, u32 i)
{
	struct side *from = &p->s[i], *to = &p->s[!i];

	memset(f, 0, sizeof(*f));
	f->pair = p;
	f->from = from;
	f->to = to;
	f->salt = 0x1234567 * (i + 1);
	f->src = host_mr_new(&from->host, PD, BASE + i, ARENA, RW);
	f->dst = host_mr_new(&to->host, PD, 0x7000 + i, ARENA, RW | WEFT_ACCESS_REMOTE_ATOMIC);
	f->inbox = host_mr_new(&to->host, PD, ~0ull - ARENA - 5, ARENA, WEFT_ACCESS_LOCAL_WRITE);
	assert_true(f->src && f->dst && f->inbox);
	from->scq->on_cqe = on_send_cqe;
	from->scq->arg = f;
	to->rcq->on_cqe = on_recv_cqe;
	to->rcq->arg = f;
}

/* Subtracts the summands again. */
static void put_back(const struct flow *f, u32 op)
{
	u8 *at = f->dst->mem + f->op[op].dst;
	u64 word = word_at(at) - number_of(f, op);

	memcpy(at, &word, sizeof(word));
}

/* Writes have no completion at the sink: checked at the end. */
static void check_sink(const struct flow *f)
{
	u32 i, at = 0;

	for (i = 0; i < f->nops; i++) {
		const struct op *o = &f->op[i];

		if (o->kind == OP_SEND || o->kind == OP_SEND_IMM)
			continue;
		if (o->kind == OP_ADD)
			put_back(f, i);
		check(f, i, f->dst->mem + o->dst, o->len);
		for (; at < o->dst; at++)
			assert_int_equal(f->dst->mem[at], 0);
		at = o->dst + o->len;
	}
}

static bool post_some(struct flow *f, struct rng *rng)
{
	u32 n = rng_upto(rng, 4);

	while (n-- && f->posted < f->nops)
		if (!post_one(f, rng))
			break;
	return f->posted < f->nops;
}

/* As after 2^32 - 20 slots: the positions wrap while work is in the rings. */
static void age_rings(struct pair *p)
{
	const u32 old = 0u - 20;
	u32 i;

	for (i = 0; i < 2; i++) {
		struct host_qp *qp = p->s[i].qp;
		struct weft_sqq *sq = &qp->core.sq;
		struct weft_rqq *rq = &qp->core.rq;

		sq->q.idx = sq->pulled = sq->next = sq->sent = qp->sq_user = old;
		sq->q.ring->kern_idx = sq->q.ring->user_idx = old;
		rq->q.idx = qp->rq_user = old;
		rq->q.ring->kern_idx = rq->q.ring->user_idx = old;
	}
}

static void run_mix(struct pair_cfg *c, const u32 *sizes, u32 nsizes, u32 nops)
{
	struct flow *flow = calloc(2, sizeof(*flow));
	struct rng rng = { c->seed ^ 0xABCDEF };
	struct weft_cqe e;
	struct pair p;
	bool more;
	u32 i;

	c->s[0].link.ext = c->s[1].link.ext = true;
	pair_init(&p, c);
	if (c->seed & AGED)
		age_rings(&p);
	for (i = 0; i < 2; i++) {
		flow_init(&flow[i], &p, i);
		plan(&flow[i], &rng, sizes, nsizes, nops);
		post_receives(&flow[i]);
	}
	do {
		more = post_some(&flow[0], &rng);
		more |= post_some(&flow[1], &rng);
		for (i = rng_below(&rng, 200); i && pair_step(&p); i--)
			;
		for (i = 0; i < 2; i++) {
			while (host_cq_poll(p.s[i].scq, &e) || host_cq_poll(p.s[i].rcq, &e))
				;
		}
	} while (more);
	pair_run(&p);
	for (i = 0; i < 2; i++) {
		assert_int_equal(flow[i].completed, nops);
		assert_int_equal(flow[i].received, flow[i].nsends);
		check_sink(&flow[i]);
		/* MPA-54, 55: an FPDU fits a segment wherever 128 octets of ULPDU do. */
		if (c->s[i].mss >= 150 && !c->s[i].link.large_fpdus)
			assert_in_range(p.s[i].seen.longest, 0, c->s[i].mss);
		assert_int_equal(p.s[i].qp->core.state, WEFT_QPS_RTS);
	}
	pair_fini(&p);
	free(flow);
}

static const u32 small_sizes[] = { 0, 1, 2, 3, 4, 5, 63, 128, 512, 1459, 1460, 4095, 4096, 4097 };
static const u32 large_sizes[] = { 0, 1, 65535, 65536, 65537, (1 << 20) + 1 };
static const u32 mss_list[] = { 88, 134, 536, 1448, 1460, 8948, 65483 };

static void set_mpa(struct pair_cfg *c, bool crc, u32 markers)
{
	u32 i;

	for (i = 0; i < 2; i++) {
		c->s[i].link.mpa.crc = crc;
		c->s[i].link.mpa.markers = markers >> i & 1;
	}
}

static void set_wire(struct pair_cfg *c, u32 mss, u32 sndbuf)
{
	c->s[0].mss = c->s[1].mss = mss;
	c->s[0].sndbuf = c->s[1].sndbuf = sndbuf;
}

static void all_sizes_arrive_for_each_mss_crc_and_marker_choice(void **state)
{
	struct pair_cfg c;
	u32 m, v;

	for (m = 0; m < ARRAY_SIZE(mss_list); m++) {
		for (v = 0; v < 8; v++) {
			pair_cfg_init(&c);
			set_mpa(&c, v & 1, v >> 1);
			set_wire(&c, mss_list[m], 1 << 17);
			c.seed = 100 * m + v;
			c.s[v & 1].link.lean = true;
			run_mix(&c, small_sizes, ARRAY_SIZE(small_sizes), 42);
		}
	}
}

static void long_messages_arrive(void **state)
{
	static const u32 mss[] = { 88, 1448, 8948, 65483 };
	struct pair_cfg c;
	u32 m, v;

	for (m = 0; m < ARRAY_SIZE(mss); m++) {
		for (v = 0; v < 2; v++) {
			pair_cfg_init(&c);
			set_mpa(&c, v, v ? 0 : m);
			set_wire(&c, mss[m], 1 << 18);
			c.seed = 7000 + 10 * m + v;
			run_mix(&c, large_sizes, ARRAY_SIZE(large_sizes), 12);
		}
	}
}

/* One end sends them, or both; each takes those that the other sends, which are shorter at times. */
static void fpdus_larger_than_a_segment_arrive(void **state)		/* MPA-53, MPA-65, MPA-69 */
{
	static const u32 mss[] = { 88, 1448, 8948 };
	struct pair_cfg c;
	u32 m, v, i;

	for (m = 0; m < ARRAY_SIZE(mss); m++) {
		for (v = 0; v < 8; v++) {
			pair_cfg_init(&c);
			set_mpa(&c, v & 1, v >> 1);
			set_wire(&c, mss[m], v & 2 ? 1 << 18 : 20000);
			c.seed = 8000 + 10 * m + v;
			for (i = 0; i < 2; i++) {
				c.s[i].link.batch = i ? 8 : 70;
				c.s[i].link.large_fpdus = !i || v & 1;
				c.s[i].link.part_min = v & 4 ? 0 : 2048;
			}
			run_mix(&c, large_sizes, ARRAY_SIZE(large_sizes), 12);
			run_mix(&c, small_sizes, ARRAY_SIZE(small_sizes), 28);
		}
	}
}

static void a_small_send_buffer_takes_fpdus_in_parts(void **state)
{
	static const u32 sndbuf[] = { 1, 37, 100, 1000, 5000 };
	struct pair_cfg c;
	u32 i, v;

	for (i = 0; i < ARRAY_SIZE(sndbuf); i++) {
		for (v = 0; v < 4; v++) {
			pair_cfg_init(&c);
			set_mpa(&c, v & 1, v >> 1 ? 3 : 0);
			set_wire(&c, 1460, sndbuf[i]);
			c.seed = 300 + 10 * i + v;
			run_mix(&c, small_sizes, ARRAY_SIZE(small_sizes), 28);
		}
	}
}

static void octets_one_by_one_arrive(void **state)	/* SIW-12 */
{
	static const u32 sizes[] = { 65536, 5000 };
	struct pair_cfg c;
	u32 v;

	for (v = 0; v < 4; v++) {
		pair_cfg_init(&c);
		c.cut = WIRE_BYTES;
		c.seed = 520 + v;
		c.s[0].link.large_fpdus = true;
		c.s[0].link.batch = 70;
		set_mpa(&c, v & 1, v >> 1 ? 3 : 0);
		run_mix(&c, sizes, ARRAY_SIZE(sizes), 4);
	}
	for (v = 0; v < 4; v++) {
		pair_cfg_init(&c);
		c.cut = WIRE_BYTES;
		c.seed = 500 + v;
		set_mpa(&c, v & 1, v >> 1 ? 3 : 0);
		run_mix(&c, small_sizes, ARRAY_SIZE(small_sizes), 28);
	}
}

static void ring_positions_wrap(void **state)
{
	struct pair_cfg c;
	u32 i;

	for (i = 0; i < 20; i++) {
		pair_cfg_init(&c);
		c.seed = 700 + i + AGED;
		c.s[i & 1].qp.sq_slots = 32;
		run_mix(&c, small_sizes, ARRAY_SIZE(small_sizes), MAX_OPS);
	}
}

static void many_seeds(void **state)
{
	struct pair_cfg c;
	u32 i;

	for (i = 0; i < 150; i++) {
		struct rng r = { 9000 + i };

		pair_cfg_init(&c);
		c.seed = rng_next(&r) & ~(u64)AGED;
		set_mpa(&c, rng_below(&r, 2), rng_below(&r, 4));
		set_wire(&c, mss_list[rng_below(&r, ARRAY_SIZE(mss_list))],
			 64 << rng_below(&r, 12));
		c.s[0].link.batch = rng_upto(&r, 40);
		c.s[1].link.batch = rng_upto(&r, 3);
		c.s[0].qp.sq_slots = 16 << rng_below(&r, 4);
		c.s[0].link.mpa.ord = (u16)rng_upto(&r, 5);
		c.s[0].link.mpa.ird = (u16)rng_upto(&r, 5);
		c.s[0].link.lean = rng_below(&r, 2);
		c.s[0].link.large_fpdus = rng_below(&r, 2);
		c.s[1].link.part_min = rng_below(&r, 2) * 24;
		c.s[0].link.mpa.p2p = rng_below(&r, 2);
		c.s[0].link.mpa.rtr = (u8)(1 << rng_below(&r, 3));
		run_mix(&c, small_sizes, ARRAY_SIZE(small_sizes), MAX_OPS);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_sizes_arrive_for_each_mss_crc_and_marker_choice),
		cmocka_unit_test(long_messages_arrive),
		cmocka_unit_test(fpdus_larger_than_a_segment_arrive),
		cmocka_unit_test(a_small_send_buffer_takes_fpdus_in_parts),
		cmocka_unit_test(octets_one_by_one_arrive),
		cmocka_unit_test(ring_positions_wrap),
		cmocka_unit_test(many_seeds),
	};

	return RUN_TESTS("stacks: data", tests);
}
