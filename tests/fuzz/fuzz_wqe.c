// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A user that writes anything into its rings, and a peer that sends anything to a stack with
 * registered memory.
 *
 * The input is a script (wqe_script.h): octet 0 chooses the set-up, the rest is steps of one octet
 * and their operands. Some write raw octets over rings and indices, some post what a sane user
 * would, some let the stacks run, some send raw or nearly right octets as the peer. In every case
 * read-only regions keep their octets, no region is held between runs, each run ends, and after
 * the connection's end every queue is flushed. Regions, rings and copies are heap blocks of their
 * exact sizes, so that the sanitizer sees an overrun.
 */
#include "script.h"
#include "wqe_script.h"
#include "../stacks/side.h"

#define REGION_LEN 512
#define MAX_STEPS 400

static u32 number(struct script *s)
{
	u32 v = script_octet(s);

	return v << 24 | (u32)script_octet(s) << 16 | (u32)script_octet(s) << 8 | script_octet(s);
}

/* One end; both ends have their regions in the same order. */
struct end {
	struct side s;
	struct host_mr *mr[WQE_REGIONS];
	bool up;
};

struct stage {
	struct end end[2];		/* [1] only when the peer is a stack */
	struct rng rng;
	bool lone;			/* the peer is the script */
};

/* ---- set-up ---- */

static void fill(struct host_mr *mr)
{
	u32 i;

	for (i = 0; i < mr->r.len; i++)
		mr->mem[i] = (u8)(i ^ mr->r.stag);
}

static bool as_filled(const struct host_mr *mr)
{
	u32 i;

	for (i = 0; i < REGION_LEN; i++)
		if (mr->mem[i] != (u8)(i ^ mr->r.stag))
			return false;
	return true;
}

/* The @i-th region of @h. */
static struct host_mr *region_new(struct host *h, u32 i, u32 access)
{
	u32 pd = i == WQE_FOREIGN ? OTHER_PD : PD;

	switch (i) {
	case WQE_FAST:
		return host_mr_new_fast(h, pd, WQE_BASE, REGION_LEN);
	case WQE_WINDOW_1:
		return host_window_new(h, pd, WEFT_REGION_WINDOW_1);
	case WQE_WINDOW_2:
		return host_window_new(h, pd, WEFT_REGION_WINDOW_2);
	default:
		return host_mr_new(h, pd, WQE_BASE, REGION_LEN, access);
	}
}

static void end_init(struct end *e, bool initiator, const struct side_cfg *c)
{
	static const u32 access[WQE_REGIONS] = {
		[WQE_RW] = WEFT_ACCESS_LOCAL_WRITE | WEFT_ACCESS_REMOTE | WEFT_ACCESS_MW_BIND,
		[WQE_LOCAL] = WEFT_ACCESS_LOCAL_WRITE,
		[WQE_READABLE] = WEFT_ACCESS_REMOTE_READ,
		[WQE_FOREIGN] = WEFT_ACCESS_LOCAL_WRITE | WEFT_ACCESS_REMOTE_WRITE,
	};
	u32 i;

	side_init(&e->s, initiator, c);
	for (i = 0; i < WQE_REGIONS; i++) {
		e->mr[i] = region_new(&e->s.host, i, access[i]);
		fill(e->mr[i]);
	}
	host_mr_bind(e->mr[WQE_FAST], e->s.qp, access[WQE_RW] & ~WEFT_ACCESS_MW_BIND);
	e->up = true;
}

static void lone_start(struct stage *st)
{
	static const u8 request[20] = "MPA ID Req Frame\0\1\0";
	static const u8 reply[20] = "MPA ID Rep Frame\0\1\0";
	struct end *e = &st->end[0];
	struct weft_seg seg = { e->s.link.core.st.initiator ? reply : request, 20 };

	host_link_rx(&e->s.link, &seg, 1);
	FUZZ_ASSERT(host_link_is_full(&e->s.link));
	e->s.out.head = e->s.out.tail;
}

static void setup(struct stage *st, u8 how, u8 sizes)
{
	struct side_cfg c;

	memset(st, 0, sizeof(*st));
	st->rng.s = how * 256 + sizes;
	st->lone = how & WQE_LONE;
	side_cfg_init(&c);
	c.mss = how & WQE_SMALL_MSS ? 88 : 1460;
	c.sndbuf = how & WQE_SMALL_MSS ? 300 : 20000;
	c.link.mpa.crc = !st->lone && how & WQE_CRC;
	c.link.mpa.markers = !st->lone && how & WQE_MARKERS;
	c.link.mpa.rev = st->lone ? 1 : 2;
	c.link.mpa.ird = c.link.mpa.ord = sizes >> 4 & 3;
	c.link.mpa.p2p = !st->lone && how & WQE_P2P;
	c.link.ext = !(sizes & 0x80);
	c.qp.sq_slots = 1u << (sizes & 7);
	c.qp.rq_slots = 8;
	c.qp.sig_all = how & WQE_SIG_ALL;
	c.qp.kernel = how & WQE_KERNEL;
	c.qp.max_slots = sizes & 8 ? 2 : 0;
	c.cq_entries = sizes & 0x40 ? 16 : 4096;
	if (!st->lone)
		end_init(&st->end[1], false, &c);
	end_init(&st->end[0], how & WQE_INITIATOR || !st->lone, &c);
	if (st->lone)
		lone_start(st);
}

/* ---- running ---- */

static void deliver(struct stage *st, struct end *to, struct wire *w)
{
	struct wire_batch b;

	wire_read(w, WIRE_RANDOM, &st->rng, &b);
	host_link_rx(&to->s.link, b.seg, b.nseg);
	wire_batch_free(&b);
}

static void reset_all(struct stage *st)
{
	u32 i;

	for (i = 0; i < 2; i++) {
		if (!st->end[i].up)
			continue;
		wire_drop(&st->end[i].s.out);
		host_link_reset(&st->end[i].s.link);
	}
}

static bool act(struct stage *st, u32 i)
{
	struct end *e = &st->end[i], *o = &st->end[!i];

	if (!e->up)
		return false;
	if (side_ready(&e->s)) {
		host_link_tx(&e->s.link);
		if (e->s.aborted && !e->s.out.dropped)
			reset_all(st);
		return true;
	}
	if (!o->up) {
		/* The script does not read, but TCP acknowledges. */
		bool any = wire_waiting(&e->s.out);

		e->s.out.head = e->s.out.tail;
		return any;
	}
	if (wire_waiting(&o->s.out)) {
		deliver(st, e, &o->s.out);
		return true;
	}
	if (!wire_read_fin(&o->s.out))
		return false;
	host_link_fin(&e->s.link);
	return true;
}

/* A turn for each end; false when neither had work. */
static bool turn(struct stage *st)
{
	bool any = act(st, 0);

	return act(st, 1) || any;
}

static void run(struct stage *st, u32 steps)
{
	while (steps-- && turn(st))
		;
}

/* Every run ends: a script can post only a few kilobytes. */
static void run_out(struct stage *st)
{
	u32 steps = 0;

	while (turn(st))
		FUZZ_ASSERT(++steps < 200000);
}

/* ---- steps ---- */

static struct weft_ring *ring_of(struct end *e, bool recv, u32 *slots)
{
	struct weft_ringq *q = recv ? &e->s.qp->core.rq.q : &e->s.qp->core.sq.q;

	*slots = q->slots;
	return q->ring;
}

/* Raw octets over a ring's slots. */
static void scribble(struct script *s, struct end *e, bool recv)
{
	u32 slots, at, n = script_octet(s) & 127;
	u8 *mem = (u8 *)ring_of(e, recv, &slots) + WEFT_RING_DATA;

	for (at = number(s); n--; at++)
		mem[at % (slots * WEFT_SLOT_SIZE)] = script_octet(s);
}

static void move_index(struct script *s, struct end *e, bool recv)
{
	u32 how = script_octet(s), slots;
	struct weft_ring *r = ring_of(e, recv, &slots);

	/* Mostly by a step that a correct user could take. */
	host_scribble_index(e->s.qp, recv, r->user_idx + (how == 255 ? number(s) : how & 15));
}

static void post_send(struct script *s, struct end *e, struct end *o)
{
	struct host_wr wr = { .wr_id = number(s), .opcode = script_octet(s), .flags = script_octet(s) & 7 };
	struct host_mr *remote = o->mr[script_octet(s) % WQE_REGIONS];
	u32 i;

	wr.rkey = remote->r.stag;
	wr.remote_addr = WQE_BASE + script_octet(s);
	wr.inv_stag = e->mr[script_octet(s) % WQE_REGIONS]->r.stag;
	wr.imm = (u64)wr.rkey << 32 | wr.wr_id;
	wr.masked = wr.wr_id & 1;
	wr.atomic = (struct weft_wr_atomic){ wr.imm, wr.wr_id, wr.rkey, wr.inv_stag };
	wr.bind = (struct weft_wr_bind){
		.mw_stag = e->mr[wr.wr_id & 2 ? WQE_WINDOW_1 : WQE_WINDOW_2]->r.stag ^
			   (wr.wr_id >> 8 & 3),
		.mr_lkey = wr.rkey, .addr = wr.remote_addr, .length = wr.wr_id >> 16 & 0x1FF,
		.access = wr.wr_id & 4 ? wr.wr_id >> 24 : WEFT_ACCESS_REMOTE,
	};
	if (wr.opcode == WEFT_WR_REG_MR) {
		wr.reg.stag = e->mr[WQE_FAST]->r.stag ^ (wr.flags & 4);
		wr.reg.access = wr.flags;
	}
	wr.num_sge = script_octet(s) & 7;
	for (i = 0; i < wr.num_sge; i++)
		wr.sge[i] = host_sge(e->mr[script_octet(s) % WQE_REGIONS], script_octet(s), script_octet(s));
	host_post_send(e->s.qp, &wr);
}

static void post_recv(struct script *s, struct end *e)
{
	struct weft_sge sge[2] = {
		host_sge(e->mr[script_octet(s) % WQE_REGIONS], script_octet(s), script_octet(s)),
		host_sge(e->mr[WQE_LOCAL], 256, script_octet(s)),
	};

	host_post_recv(e->s.qp, 1000, sge, 2);
}

static void say(struct end *e, const u8 *p, u32 n)
{
	u8 *copy = malloc(n ? n : 1);
	struct weft_seg seg = { copy, n };

	memcpy(copy, p, n);
	host_link_rx(&e->s.link, &seg, 1);
	free(copy);
}

static void say_raw(struct script *s, struct end *e)
{
	u32 n = script_octet(s);

	n = min_t(u32, n, (u32)s->left);
	say(e, s->p, n);
	s->p += n;
	s->left -= n;
}

/* A segment whose fields are near what the stack expects; no CRC is agreed on. */
static void say_segment(struct script *s, struct end *e)
{
	const struct weft_qpc *c = &e->s.qp->core;
	const struct host_mr *mr = e->mr[script_octet(s) % WQE_REGIONS];
	u8 f[2 + 18 + 256 + 8] = { 0 };
	u8 ctl = script_octet(s), op = script_octet(s), off = script_octet(s), len = script_octet(s);
	u8 *p = f + 2;
	u32 n, qn = weft_opcode_qn(op & 0x0F);
	u32 msn = qn == WEFT_QN_READ_REQUEST ? c->msn_in_read :
		  qn == WEFT_QN_ATOMIC_RESPONSE ? c->msn_in_atomic : c->msn_in_send;

	*p++ = ctl;
	*p++ = op;
	if (ctl & WEFT_DDP_T) {
		p = weft_put64(weft_put32(p, mr->r.stag), WQE_BASE + off);
	} else {
		p = weft_put32(weft_put32(p, mr->r.stag), qn);
		p = weft_put32(weft_put32(p, msn + (off >> 6 == 3)), off >> 6 ? 0 : off);
	}
	if ((op & 0x0F) == WEFT_OP_READ_REQ && !(ctl & WEFT_DDP_T)) {
		struct weft_read_req r = { 1, 2, len, mr->r.stag, WQE_BASE + off };

		p = weft_read_req_write(p, &r);
	} else if ((op & 0x0F) == WEFT_OP_ATOMIC_REQ && !(ctl & WEFT_DDP_T)) {
		struct weft_atomic_req r = {
			.code = len & 3, .stag = mr->r.stag, .to = WQE_BASE + off,
			.operand = 1, .operand_mask = len, .compare = off, .compare_mask = len >> 2,
		};

		p = weft_atomic_req_write(p, &r);
	} else if ((op & 0x0F) == WEFT_OP_ATOMIC_RESP && !(ctl & WEFT_DDP_T)) {
		p = weft_atomic_resp_write(p, c->orq_count ? c->orq[c->orq_head].msn : len, off);
	} else if ((op & 0x0F) >= WEFT_OP_IMM && len < 250) {
		p = weft_put64(p, (u64)(len & 1 ? WEFT_IMM_OF_SEND : 0) << 32 | off);
	} else {
		memset(p, 0x77, len);
		p += len;
	}
	n = (u32)(p - f) - 2;
	weft_put16(f, (u16)n);
	say(e, f, weft_mpa_fpdu_len(n));
}

/* Toggles a region's validity, or limits the memory for the stage. */
static void change_region(struct script *s, struct end *e)
{
	u8 how = script_octet(s);
	struct host_mr *mr = e->mr[how & 1 ? WQE_FAST : WQE_LOCAL];

	if (how & 2)
		e->s.qp->chunk_limit = (s32)(how >> 4) - 1;
	else
		mr->r.valid = !mr->r.valid;
}

static void end_it(struct script *s, struct stage *st)
{
	u8 how = script_octet(s);
	struct end *e = &st->end[!st->lone && how & 1];

	switch (how >> 1 & 3) {
	case 0:
		host_link_close(&e->s.link);
		break;
	case 1:
		host_link_abort(&e->s.link);
		break;
	case 2:
		reset_all(st);
		break;
	default:
		if (st->lone && !e->s.link.rx_closed)
			host_link_fin(&e->s.link);
		break;
	}
}

static void step(struct script *s, struct stage *st)
{
	u8 what = script_octet(s);
	struct end *e = &st->end[0];
	struct end *o = st->lone ? e : &st->end[1];
	struct weft_cqe cqe;

	switch (what & 15) {
	case WQE_SCRIBBLE_SQ:
	case WQE_SCRIBBLE_RQ:
		scribble(s, e, (what & 15) == WQE_SCRIBBLE_RQ);
		break;
	case WQE_MOVE_SQ:
	case WQE_MOVE_RQ:
		move_index(s, e, (what & 15) == WQE_MOVE_RQ);
		break;
	case WQE_POST_SEND:
		post_send(s, e, o);
		break;
	case WQE_POST_RECV:
		post_recv(s, e);
		break;
	case WQE_PEER_POSTS:
		if (what & 16)
			post_recv(s, o);
		else
			post_send(s, o, e);
		break;
	case WQE_RUN:
		run(st, what >> 4);
		break;
	case WQE_RUN_OUT:
		run_out(st);
		break;
	case WQE_SAY_RAW:
		if (st->lone && !e->s.link.rx_closed)
			say_raw(s, e);
		break;
	case WQE_SAY_SEGMENT:
		if (st->lone && !e->s.link.rx_closed)
			say_segment(s, e);
		break;
	case WQE_CHANGE_REGION:
		change_region(s, e);
		break;
	case WQE_POLL:
		while (host_cq_poll(e->s.scq, &cqe) || host_cq_poll(e->s.rcq, &cqe))
			;
		break;
	case WQE_ARM:
		host_cq_arm(what & 16 ? e->s.scq : e->s.rcq, what >> 5);
		break;
	case WQE_CQ_INDEX:
		e->s.scq->ring->user_idx = number(s);
		break;
	case WQE_END:
		end_it(s, st);
		break;
	}
}

/*
 * Without this, a wait for memory would last for ever: the stream's end is seen only after its
 * octets are read.
 */
static void end_shortage(struct stage *st)
{
	u32 i;

	for (i = 0; i < 2; i++) {
		struct end *e = &st->end[i];

		if (!e->up)
			continue;
		e->s.qp->chunk_limit = -1;
		host_link_set_time(&e->s.link, e->s.link.now + 1);
	}
}

/* ---- invariants ---- */

static void check_end(struct end *e)
{
	const struct weft_qpc *c;

	if (!e->up)
		return;
	c = &e->s.qp->core;
	host_assert_quiet(&e->s.host);
	FUZZ_ASSERT(as_filled(e->mr[WQE_FOREIGN]));
	/* Read-only, for local access too. */
	FUZZ_ASSERT(as_filled(e->mr[WQE_READABLE]));
	weft_region_unbind(&e->mr[WQE_WINDOW_1]->r);
	weft_region_unbind(&e->mr[WQE_WINDOW_2]->r);
	FUZZ_ASSERT(!e->mr[WQE_RW]->windows && !e->mr[WQE_LOCAL]->windows);
	/* TERM: the reset arrived before the Terminate could be handed over. */
	FUZZ_ASSERT(c->state >= WEFT_QPS_TERM || c->state == WEFT_QPS_IDLE);
	if (c->state == WEFT_QPS_IDLE)
		return;
	FUZZ_ASSERT(c->sq.q.idx == c->sq.pulled && c->sq.next == c->sq.pulled);
	FUZZ_ASSERT(!c->recv_active && !c->orq_count && !c->irq_count);
	FUZZ_ASSERT(host_qp_count_events(e->s.qp, WEFT_EV_FLUSHED) == 1);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct script s = { data, size };
	static struct stage st;
	u32 n, i;
	u8 how;

	if (size < 3)
		return 0;
	how = script_octet(&s);
	setup(&st, how, script_octet(&s));
	for (n = 0; s.left && n < MAX_STEPS; n++)
		step(&s, &st);
	run_out(&st);
	end_shortage(&st);
	reset_all(&st);
	run_out(&st);
	for (i = 0; i < 2; i++)
		check_end(&st.end[i]);
	for (i = 0; i < 2; i++)
		if (st.end[i].up)
			side_fini(&st.end[i].s);
	return 0;
}
