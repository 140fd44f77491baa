// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "peer.h"

/* ---- octets ---- */

static u8 *put(u8 *p, u64 v, u32 octets)
{
	while (octets--)
		*p++ = (u8)(v >> 8 * octets);
	return p;
}

static u64 get(const u8 *p, u32 octets)
{
	u64 v = 0;

	while (octets--)
		v = v << 8 | *p++;
	return v;
}

/* RFC 5044 §4.4, bit by bit; speed is no object. */
static u32 crc_of(const u8 *p, u32 n)
{
	u32 crc = ~0u;
	u32 bit;

	while (n--) {
		crc ^= *p++;
		for (bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ 0x82F63B78u : crc >> 1;
	}
	return ~crc;
}

/* ---- segments ---- */

static struct pdu *pdu_new(u8 ddp, u8 op, const void *data, u32 len)
{
	struct pdu *d = calloc(1, sizeof(*d));

	assert_true(d && len <= P_BODY);
	d->ddp = ddp | P_DV;
	d->rdmap = P_RV | op;
	d->len = len;
	if (data && len)
		memcpy(d->body, data, len);
	return d;
}

struct pdu *p_tagged(u8 op, bool last, u32 stag, u64 to, const void *data, u32 len)
{
	struct pdu *d = pdu_new(P_T | (last ? P_L : 0), op, data, len);

	d->stag = stag;
	d->to = to;
	return d;
}

struct pdu *p_send(u8 op, bool last, u32 msn, u32 mo, const void *data, u32 len)
{
	struct pdu *d = pdu_new(last ? P_L : 0, op, data, len);

	d->msn = msn;
	d->mo = mo;
	return d;
}

struct pdu *p_read_req(u32 msn, u32 sink, u64 sink_to, u32 size, u32 src, u64 src_to)
{
	struct pdu *d = pdu_new(P_L, P_READ_REQ, NULL, 28);

	d->qn = 1;
	d->msn = msn;
	put(put(put(put(put(d->body, sink, 4), sink_to, 8), size, 4), src, 4), src_to, 8);
	return d;
}

struct pdu *p_imm(u8 op, u32 msn, u64 imm)
{
	struct pdu *d = p_send(op, true, msn, 0, NULL, 8);

	put(d->body, imm, 8);
	return d;
}

struct pdu *p_atomic(u32 msn, u32 code, u32 id, u32 stag, u64 to, u64 data, u64 mask, u64 cmp,
		     u64 cmask)
{
	struct pdu *d = p_send(P_ATOMIC_REQ, true, msn, 0, NULL, 52);
	u8 *p = put(put(put(put(d->body, code, 4), id, 4), stag, 4), to, 8);

	d->qn = 1;
	put(put(put(put(p, data, 8), mask, 8), cmp, 8), cmask, 8);
	return d;
}

struct pdu *p_atomic_resp(u32 msn, u32 id, u64 was)
{
	struct pdu *d = p_send(P_ATOMIC_RESP, true, msn, 0, NULL, 12);

	d->qn = 3;
	put(put(d->body, id, 4), was, 8);
	return d;
}

/* The DDP header; returns its end. */
static u8 *write_header(u8 *p, const struct pdu *d)
{
	*p++ = d->ddp;
	*p++ = d->rdmap;
	if (d->ddp & P_T)
		return put(put(p, d->stag, 4), d->to, 8);
	return put(put(put(put(p, d->inv, 4), d->qn, 4), d->msn, 4), d->mo, 4);
}

static u32 header_len(u8 ddp)
{
	return ddp & P_T ? 14 : 18;
}

static u32 fpdu_len(u32 ulpdu)
{
	return (2 + ulpdu + 3) / 4 * 4 + 4;
}

static void add_fpdu(struct peer *p, struct pdu *d, u32 spoil)
{
	u8 *start = p->out + p->out_len;
	u32 ulpdu = header_len(d->ddp) + d->len;
	u32 total = fpdu_len(ulpdu);
	u32 crc;

	assert_true(p->out_len + total <= sizeof(p->out));
	memset(start, 0, total);
	memcpy(write_header(put(start, ulpdu, 2), d), d->body, d->len);
	crc = p->s.link.core.st.agreed.crc ? crc_of(start, total - 4) ^ spoil : 0xDEADBEEF;
	/* Least significant octet first. */
	put(start + total - 4, __builtin_bswap32(crc), 4);
	p->out_len += total;
	free(d);
}

void peer_add(struct peer *p, struct pdu *d)
{
	add_fpdu(p, d, 0);
}

void peer_add_bad_crc(struct peer *p, struct pdu *d)
{
	add_fpdu(p, d, 0x100);
}

void peer_add_raw(struct peer *p, const void *octets, u32 n)
{
	assert_true(p->out_len + n <= sizeof(p->out));
	memcpy(p->out + p->out_len, octets, n);
	p->out_len += n;
}

/* ---- running the stack ---- */

static void feed(struct peer *p, const u8 *octets, u32 n)
{
	struct wire_batch b;
	struct wire w;

	if (!n)
		return;
	wire_init(&w, 1460, n);
	wire_write(&w, octets, n, false);
	while (wire_waiting(&w)) {
		wire_read(&w, p->cut, &p->rng, &b);
		host_link_rx(&p->s.link, b.seg, b.nseg);
		wire_batch_free(&b);
	}
	wire_fini(&w);
}

void peer_deliver(struct peer *p)
{
	feed(p, p->out, p->out_len);
	p->out_len = 0;
}

static void listen_to(struct peer *p)
{
	struct wire *w = &p->s.out;
	u32 n = wire_waiting(w);

	if (p->in_len + n > p->in_cap) {
		p->in_cap = 2 * (p->in_len + n);
		p->in = realloc(p->in, p->in_cap);
		assert_non_null(p->in);
	}
	if (n)
		memcpy(p->in + p->in_len, w->buf + w->head, n);
	p->in_len += n;
	w->head += n;
	p->fin |= wire_read_fin(w);
}

void peer_run(struct peer *p)
{
	u32 steps = 0;

	listen_to(p);
	while (side_ready(&p->s)) {
		HOST_ASSERT(++steps < 1000000);
		host_link_tx(&p->s.link);
		listen_to(p);
	}
}

void peer_flush(struct peer *p)
{
	peer_deliver(p);
	peer_run(p);
}

void peer_say(struct peer *p, struct pdu *d)
{
	peer_add(p, d);
	peer_flush(p);
}

void peer_close(struct peer *p)
{
	host_link_fin(&p->s.link);
	peer_run(p);
}

/* ---- start-up ---- */

void peer_cfg_init(struct peer_cfg *c)
{
	memset(c, 0, sizeof(*c));
	side_cfg_init(&c->side);
	c->ird = c->ord = 8;
}

/* RFC 5044 Fig. 7, RFC 6581 Fig. 5: our frame, as octets. */
static u32 startup_frame(const struct peer_cfg *c, u8 *f)
{
	bool enhanced = c->side.link.mpa.rev == 2 && (c->ird || c->ord);
	u32 ird, ord;

	memcpy(f, c->dut_initiates ? "MPA ID Rep Frame" : "MPA ID Req Frame", 16);
	f[16] = (c->side.link.mpa.crc ? 0x40 : 0) | (enhanced ? 0x10 : 0);
	f[17] = enhanced ? 2 : 1;
	put(f + 18, enhanced ? 4 : 0, 2);
	if (!enhanced)
		return 20;
	/* RFC 6581 Fig. 5: A and B before IRD, C and D before ORD. */
	ird = c->ird | (c->rtr ? 0x8000 : 0) | (c->rtr & WEFT_RTR_SEND ? 0x4000 : 0);
	ord = c->ord | (c->rtr & WEFT_RTR_WRITE ? 0x8000 : 0) |
	      (c->rtr & WEFT_RTR_READ ? 0x4000 : 0);
	put(put(f + 20, ird, 2), ord, 2);
	return 24;
}

struct peer *peer_new(const struct peer_cfg *c)
{
	struct peer *p = calloc(1, sizeof(*p));
	u8 frame[24];

	assert_non_null(p);
	p->cut = WIRE_WHOLE;
	p->rng.s = 42;
	side_init(&p->s, c->dut_initiates, &c->side);
	feed(p, frame, startup_frame(c, frame));
	listen_to(p);
	assert_true(host_link_is_full(&p->s.link));
	assert_true(p->in_len >= 20 && p->in_len == 20 + get(p->in + 18, 2));
	p->in_at = p->in_len;
	/* What the stack sends at once does not belong to its frame. */
	host_link_take_steps(&p->s.link);
	listen_to(p);
	return p;
}

struct peer *peer_new_plain(void)
{
	struct peer_cfg c;

	peer_cfg_init(&c);
	return peer_new(&c);
}

void peer_free(struct peer *p)
{
	side_fini(&p->s);
	free(p->in);
	free(p);
}

/* ---- reading what the stack sent ---- */

static void read_header(struct pdu *d, const u8 *p)
{
	d->ddp = p[0];
	d->rdmap = p[1];
	if (d->ddp & P_T) {
		d->stag = (u32)get(p + 2, 4);
		d->to = get(p + 6, 8);
		return;
	}
	d->inv = (u32)get(p + 2, 4);
	d->qn = (u32)get(p + 6, 4);
	d->msn = (u32)get(p + 10, 4);
	d->mo = (u32)get(p + 14, 4);
}

bool peer_next(struct peer *p, struct pdu *d)
{
	const u8 *f = p->in + p->in_at;
	u32 left = p->in_len - p->in_at, ulpdu, total, i;

	if (!left)
		return false;
	assert_true(left >= 2);
	ulpdu = (u32)get(f, 2);
	total = fpdu_len(ulpdu);
	assert_true(total <= left && ulpdu >= 14 && ulpdu >= header_len(f[2]));
	for (i = 2 + ulpdu; i < total - 4; i++)
		assert_int_equal(f[i], 0);
	assert_int_equal(__builtin_bswap32((u32)get(f + total - 4, 4)),
			 p->s.link.core.st.agreed.crc ? crc_of(f, total - 4) : 0);
	memset(d, 0, sizeof(*d));
	read_header(d, f + 2);
	d->len = ulpdu - header_len(d->ddp);
	memcpy(d->body, f + 2 + header_len(d->ddp), d->len);
	p->in_at += total;
	return true;
}

const struct pdu *peer_expect(struct peer *p, u8 ddp, u8 rdmap)
{
	static struct pdu d;

	if (!peer_next(p, &d))
		fail_msg("nothing sent, expected %02x %02x", ddp, rdmap);
	assert_int_equal(d.ddp, ddp | P_DV);
	assert_int_equal(d.rdmap, rdmap | P_RV);
	return &d;
}

void peer_expect_silence(struct peer *p)
{
	static struct pdu d;

	if (peer_next(p, &d))
		fail_msg("unexpected FPDU %02x %02x, %u octets", d.ddp, d.rdmap, d.len);
}

void peer_expect_terminate(struct peer *p, u8 layer, u8 etype, u8 code,
			   const struct pdu *offender, bool read)
{
	const struct pdu *d = peer_expect(p, P_L, P_TERM);
	u8 want[4 + 2 + 18 + 28] = { (u8)(layer << 4 | etype), code };
	u8 *end = want + 4;

	assert_int_equal(d->inv, 0);
	assert_int_equal(d->qn, 2);
	assert_int_equal(d->msn, 1);
	assert_int_equal(d->mo, 0);
	if (offender) {
		want[2] = read ? 0xE0 : 0xC0;
		end = put(end, header_len(offender->ddp) + offender->len, 2);
		end = write_header(end, offender);
	}
	if (read) {
		memcpy(end, offender->body, 28);
		end += 28;
	}
	if (memcmp(d->body, want, 4))
		fail_msg("Terminate %02x %02x %02x %02x instead of %02x %02x %02x %02x",
			 d->body[0], d->body[1], d->body[2], d->body[3],
			 want[0], want[1], want[2], want[3]);
	assert_int_equal(d->len, end - want);
	assert_memory_equal(d->body, want, d->len);
	peer_expect_silence(p);
	assert_true(p->fin);
}

void peer_expect_alive(struct peer *p, u32 read_msn, const struct host_mr *mr)
{
	const struct pdu *d;

	peer_say(p, p_read_req(read_msn, 0x77, 0x1234, 8, mr->r.stag, mr->r.base));
	d = peer_expect(p, P_T | P_L, P_READ_RESP);
	assert_int_equal(d->stag, 0x77);
	assert_int_equal(d->to, 0x1234);
	assert_int_equal(d->len, 8);
	assert_memory_equal(d->body, mr->mem, 8);
	peer_expect_silence(p);
	assert_false(p->fin);
}
