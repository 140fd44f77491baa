// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "side.h"

/* ---- one end ---- */

/* Takes up to @n octets at @p, of one kind; returns how many. */
static u32 watch_some(struct watch *w, bool markers, const u8 *p, u32 n)
{
	u32 at = markers ? w->pos % 512 : 4;

	if (at < 4)
		return min_t(u32, n, 4 - at);
	if (markers)
		n = min_t(u32, n, 512 - at);
	if (w->field_len == 2) {
		n = min_t(u32, n, w->left);
		w->left -= n;
		return n;
	}
	w->field = w->field << 8 | *p;
	/* RFC 5044 Fig. 2: PAD to a multiple of four, and the CRC. */
	if (++w->field_len == 2)
		w->left = (2 + w->field + 3) / 4 * 4 + 4 - 2;
	return 1;
}

static void watch(struct side *s, const u8 *p, u32 n, u32 seg_off)
{
	bool markers = s->link.core.st.agreed.tx_markers;
	struct watch *w = &s->seen;
	u32 took;

	for (; n; n -= took, p += took) {
		w->fpdus += !w->len;
		w->aligned += !w->len && !seg_off;
		took = watch_some(w, markers, p, n);
		w->pos += took;
		w->len += took;
		seg_off = (seg_off + took) % s->out.mss;
		if (w->field_len < 2 || w->left)
			continue;
		w->longest = max_t(u32, w->longest, w->len);
		w->len = w->field = w->field_len = 0;
	}
}

static size_t op_write(void *arg, const void *p, size_t len, u32 flags)
{
	struct side *s = arg;
	bool frame = !s->out.calls;
	u32 seg_off;
	size_t n;

	if (flags & WEFT_SEND_FRESH)
		s->out.seg_off = 0;
	seg_off = s->out.seg_off;
	n = wire_write(&s->out, p, len, flags & WEFT_SEND_EOR);
	if (!frame)
		watch(s, p, (u32)n, seg_off);
	return n;
}

static void op_tail(void *arg, struct weft_tcp_tail *tail)
{
	struct side *s = arg;

	tail->mss = max_t(u32, s->out.mss, WEFT_BATCH_SEG_MIN);
	tail->seg_off = s->out.seg_off;
	tail->room = wire_room(&s->out);
}

static u64 op_acked(void *arg)
{
	struct side *s = arg;

	return s->out.sent - wire_waiting(&s->out);
}

static void op_shutdown(void *arg)
{
	struct side *s = arg;

	wire_close(&s->out);
}

static void op_abort(void *arg)
{
	struct side *s = arg;

	wire_drop(&s->out);
	s->aborted = true;
}

static const struct host_link_ops ops = {
	.write = op_write,
	.tail = op_tail,
	.acked = op_acked,
	.shutdown = op_shutdown,
	.abort = op_abort,
};

void side_cfg_init(struct side_cfg *c)
{
	*c = (struct side_cfg){
		.link = {
			.mpa = { .rev = 2, .crc = true, .rtr = WEFT_RTR_ALL, .ird = 8, .ord = 8 },
			.batch = 8,
			.part_min = 24,
		},
		.qp = { .pd = PD, .sq_slots = 256, .rq_slots = 256, .rq_sge = 4 },
		.cq_entries = 1024,
		.mss = 1460,
		.sndbuf = 1 << 17,
	};
}

void side_init(struct side *s, bool initiator, const struct side_cfg *c)
{
	struct host_qp_attr qp = c->qp;

	memset(s, 0, sizeof(*s));
	host_init(&s->host, initiator ? 0x3A7 : 0x1C9);
	s->scq = host_cq_new(c->cq_entries);
	s->rcq = host_cq_new(c->cq_entries);
	if (!qp.scq)
		qp.scq = s->scq;
	if (!qp.rcq)
		qp.rcq = s->rcq;
	s->qp = host_qp_new(&s->host, &qp);
	wire_init(&s->out, c->mss, c->sndbuf);
	host_link_init(&s->link, s->qp, initiator, &c->link, &ops, s);
}

void side_fini(struct side *s)
{
	host_link_fini(&s->link);
	host_fini(&s->host);
	host_cq_free(s->scq);
	host_cq_free(s->rcq);
	wire_fini(&s->out);
}

bool side_ready(const struct side *s)
{
	return host_link_is_ready(&s->link, wire_room(&s->out));
}

void side_post(struct side *s, const struct host_wr *wr)
{
	HOST_ASSERT(host_post_send(s->qp, wr));
}

void side_send(struct side *s, u64 wr_id, u8 flags, const struct host_mr *mr, u64 off, u32 len)
{
	const struct host_wr wr = {
		.wr_id = wr_id,
		.opcode = WEFT_WR_SEND,
		.flags = flags,
		.num_sge = mr != NULL,
		.sge = { mr ? host_sge(mr, off, len) : (struct weft_sge){ 0 } },
	};

	side_post(s, &wr);
}

static void post_tagged(struct side *s, u8 opcode, u64 wr_id, u8 flags, struct weft_sge sge,
			const struct host_mr *remote, u64 off)
{
	const struct host_wr wr = {
		.wr_id = wr_id,
		.opcode = opcode,
		.flags = flags,
		.num_sge = 1,
		.sge = { sge },
		.rkey = remote->r.stag,
		.remote_addr = remote->r.base + off,
	};

	side_post(s, &wr);
}

void side_write(struct side *s, u64 wr_id, u8 flags, const struct host_mr *mr, u64 off, u32 len,
		const struct host_mr *to, u64 to_off)
{
	post_tagged(s, WEFT_WR_WRITE, wr_id, flags, host_sge(mr, off, len), to, to_off);
}

void side_read(struct side *s, u64 wr_id, u8 flags, const struct host_mr *sink, u64 off, u32 len,
	       const struct host_mr *from, u64 from_off)
{
	post_tagged(s, WEFT_WR_READ, wr_id, flags, host_sge(sink, off, len), from, from_off);
}

void side_recv(struct side *s, u64 wr_id, const struct host_mr *mr, u64 off, u32 len)
{
	struct weft_sge sge = { 0 };

	if (mr)
		sge = host_sge(mr, off, len);
	HOST_ASSERT(host_post_recv(s->qp, wr_id, &sge, mr != NULL));
}

/* ---- two ends ---- */

void pair_cfg_init(struct pair_cfg *c)
{
	memset(c, 0, sizeof(*c));
	side_cfg_init(&c->s[0]);
	side_cfg_init(&c->s[1]);
	c->cut = WIRE_RANDOM;
	c->seed = 1;
}

void pair_init(struct pair *p, const struct pair_cfg *c)
{
	memset(p, 0, sizeof(*p));
	p->rng.s = c->seed;
	p->cut = c->cut;
	p->limit = 50 * 1000 * 1000;
	side_init(&p->s[1], false, &c->s[1]);
	side_init(&p->s[0], true, &c->s[0]);
}

void pair_fini(struct pair *p)
{
	side_fini(&p->s[0]);
	side_fini(&p->s[1]);
}

static void deliver(struct pair *p, struct side *to, struct wire *w)
{
	struct wire_batch b;

	wire_read(w, p->cut, &p->rng, &b);
	host_link_rx(&to->link, b.seg, b.nseg);
	wire_batch_free(&b);
}

void pair_drop(struct pair *p)
{
	u32 i;

	for (i = 0; i < 2; i++) {
		wire_drop(&p->s[i].out);
		host_link_reset(&p->s[i].link);
	}
}

/* End @i sends, or reads what the other sent; false if there is nothing. */
static bool act(struct pair *p, u32 i, bool send)
{
	struct side *s = &p->s[i];
	struct wire *in = &p->s[!i].out;

	if (send) {
		if (!side_ready(s))
			return false;
		host_link_tx(&s->link);
		if (s->aborted && !p->s[!i].out.dropped)
			pair_drop(p);
		return true;
	}
	/* TCP's window is closed. */
	if (weft_link_is_behind(&s->link.core))
		return false;
	if (wire_waiting(in)) {
		deliver(p, s, in);
		return true;
	}
	if (!wire_read_fin(in))
		return false;
	host_link_fin(&s->link);
	return true;
}

bool pair_step(struct pair *p)
{
	u32 first = rng_below(&p->rng, 4), i;

	for (i = 0; i < 4; i++) {
		u32 what = (first + i) & 3;

		if (act(p, what & 1, what >> 1)) {
			p->clock++;
			return true;
		}
	}
	return false;
}

void pair_run(struct pair *p)
{
	u64 until = p->clock + p->limit;

	while (pair_step(p))
		HOST_ASSERT(p->clock < until);
}
