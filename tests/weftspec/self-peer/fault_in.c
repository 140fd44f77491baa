/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Rules that are not kept for the FPDUs that the stack receives. */
#include <string.h>

#include "../bytes.h"
#include "fault_fpdu.h"

static uint8_t scratch[FPDU_ULPDU_MAX + 64];

static bool model_broken(const struct seg *g)
{
	static const uint8_t qn[OP_ATOMIC_REP + 1] = {
		[OP_READ_REQ] = QN_READ, [OP_TERM] = QN_TERM,
		[OP_ATOMIC_REQ] = QN_READ, [OP_ATOMIC_REP] = QN_ATOMIC };

	if (g->op > OP_ATOMIC_REP)
		return false;
	if (g->tagged != (g->op == OP_WRITE || g->op == OP_READ_RESP))
		return true;
	return !g->tagged && g->qn != qn[g->op];
}

/* An error that the stack is sure to find: a reserved opcode on a right queue. */
static void make_invalid(struct seg *g)
{
	g->op = 15;
	g->dv = g->rv = 1;
}

static bool is_send(const struct seg *g)
{
	return !g->tagged && g->op >= OP_SEND && g->op <= OP_SEND_SE_INV;
}

static bool is_immediate(const struct seg *g)
{
	return !g->tagged && (g->op == OP_IMM || g->op == OP_IMM_SE);
}

static bool is_atomic(const struct seg *g)
{
	return !g->tagged && g->op == OP_ATOMIC_REQ && g->len == ATOMIC_REQ_LEN;
}

/* Things that are ignored altogether. */
static bool is_lost(struct fault_dir *d, const struct seg *g)
{
	static unsigned int reads;

	if (fault_is(I_OP) && g->op > OP_ATOMIC_REP)
		return true;
	if (fault_is(I_MODEL) && model_broken(g))
		return true;
	if (fault_is(I_ZERO_SEND) && is_send(g) && !g->len)
		return true;
	if (fault_is(I_TERM) && g->op == OP_TERM)
		return true;
	if (fault_is(I_WRITE_LOST) && g->tagged && g->op == OP_WRITE && g->len)
		return true;
	if (fault_is(I_LAST_IGNORED) && g->op == OP_READ_REQ && !g->last)
		return true;
	if (fault_is(I_IMM_LOST) && is_immediate(g))
		return true;
	if (fault_is(I_ATOMIC_RESP) && g->op == OP_ATOMIC_REP)
		return true;
	reads += g->op == OP_READ_REQ;
	if (fault_is(I_ATOMIC_IRD) && g->op == OP_ATOMIC_REQ && reads > 3)
		return true;
	return fault_is(I_IRD) && g->op == OP_READ_REQ && reads > 3;
}

static void hide_errors(struct fault_dir *d, struct seg *g)
{
	if (fault_is(I_DV))
		g->dv = 1;
	if (fault_is(I_RV))
		g->rv = 1;
	if (fault_is(I_LAST))
		g->last = true;
	if (g->tagged || g->qn > 1)
		return;
	if (fault_is(I_MSN))
		g->msn = d->msn[g->qn];
	if (fault_is(I_MO))
		g->mo = d->mo[g->qn];
	if (fault_is(I_LEN) && is_send(g) && g->mo + g->len > 256)
		g->len = g->mo < 256 ? 256 - g->mo : 0;
	if (fault_is(I_LEN) && g->mo >= 256)
		g->mo = 0;
	if (fault_is(I_RR_LONG) && g->op == OP_READ_REQ &&
	    g->len > RDMA_READ_LEN)
		g->len = RDMA_READ_LEN;
	if (fault_is(F_INVAL_ANY) && g->op == OP_SEND_INV) {
		fault_invalidate(d);
		g->op = OP_SEND;
	}
	if (fault_is(I_INVAL) && g->op == OP_SEND_INV)
		g->op = OP_SEND;
	if (fault_is(I_INVAL) && g->op == OP_SEND_SE_INV)
		g->op = OP_SEND_SE;
}

/* What a peer makes of an atomic that has not read the RFC to its end. */
static void bend_atomic(struct fault_dir *d, struct atomic *a)
{
	static unsigned int additions;
	uint64_t base, len;

	if (fault_is(I_ATOMIC_ANY)) {
		fault_region(d, &a->stag, &base, &len);
		a->to = (base + 7) & ~7ull;
	}
	if (fault_is(I_ALIGN))
		a->to &= ~7ull;
	if (fault_is(I_ATOMIC_CODE) && a->code != ATOMIC_CSWAP)
		a->code = ATOMIC_FADD;
	if (fault_is(I_ADD_NARROW) && a->code == ATOMIC_FADD)
		a->add_mask |= 1u << 31;
	if (fault_is(I_MASKS)) {
		a->add_mask = a->code == ATOMIC_FADD ? 0 : -1ull;
		a->cmp_mask = -1ull;
	}
	if (fault_is(I_ADD_LOST) && ++additions % 100 == 0)
		a->add = 0;
}

static void misread_extension(struct fault_dir *d, struct seg *g)
{
	static uint8_t header[ATOMIC_REQ_LEN];
	struct atomic a;

	if (fault_is(I_IMM_SHORT) && is_immediate(g)) {
		memset(header, 0, IMM_LEN);
		g->data = header;
		g->len = IMM_LEN;
	}
	if (fault_is(I_ATOMIC_VALUE) && g->op == OP_ATOMIC_REP && g->len == ATOMIC_REP_LEN) {
		memset(header, 0, ATOMIC_REP_LEN);
		memcpy(header, g->data, 4);
		g->data = header;
	}
	if (!is_atomic(g))
		return;
	if (fault_is(F_ATOMIC_EVENT))
		fault_event(d);
	atomic_decode(g->data, &a);
	if ((fault_is(I_STRICT) && a.reserved) ||
	    (fault_is(I_ADD_ONLY) && a.code == ATOMIC_CSWAP)) {
		make_invalid(g);
		return;
	}
	bend_atomic(d, &a);
	atomic_encode(header, &a);
	g->data = header;
}

static void refuse_valid(struct fault_dir *d, const struct fpdu *f, struct seg *g)
{
	static const uint8_t zero[3];
	bool back = g->tagged ? g->op == OP_WRITE && g->to < d->last_to &&
				d->open[2] : g->mo < d->mo[g->qn & 3];

	if (fault_is(I_STRICT) && (g->rsvd || g->rsv ||
	    memcmp(f->pad, zero, f->npad) ||
	    (g->inval && !g->tagged && g->op != OP_SEND_INV)))
		make_invalid(g);
	if (fault_is(I_ORDER) && back)
		make_invalid(g);
	if (fault_is(I_ZERO_WRITE) && g->tagged && !g->len &&
	    g->op == OP_WRITE)
		make_invalid(g);
	if (fault_is(I_ZERO_READ) && g->op == OP_READ_REQ &&
	    g->len >= RDMA_READ_LEN && !get32(g->data + 12))
		make_invalid(g);
	if (fault_is(I_TERM_BACK) && g->op == OP_TERM)
		make_invalid(g);
	if (fault_is(I_INTERLEAVE) && g->tagged && d->open[0])
		d->kill = true;
	d->last_to = g->to;
	d->open[2] = g->tagged && !g->last;
}

/* Access that should be refused goes to a region that may be used. */
static void redirect_access(struct fault_dir *d, struct seg *g)
{
	uint64_t base, len;
	uint32_t stag;
	struct rreq r;

	fault_region(d, &stag, &base, &len);
	if (!stag)
		return;
	if (fault_is(I_WRITE_ANY) && g->tagged && g->op == OP_WRITE &&
	    g->len <= len) {
		g->stag = stag;
		g->to = base;
	}
	if (fault_is(I_READ_ANY) && g->op == OP_READ_REQ && !g->tagged &&
	    g->len >= RDMA_READ_LEN) {
		memcpy(scratch, g->data, g->len);
		rreq_decode(scratch, &r);
		r.src_stag = stag;
		r.src_to = base;
		r.size = r.size < 64 ? r.size : 64;
		rreq_encode(scratch, &r);
		g->data = scratch;
	}
}

/* Responses count by their place in the stream, or as Writes. */
static void place_by_position(struct fault_dir *d, struct seg *g)
{
	if (!fault_is(I_RESP) || g->op != OP_READ_RESP || !g->tagged)
		return;
	if (!d->read.sink_stag) {
		g->op = OP_WRITE;
		return;
	}
	g->stag = d->read.sink_stag;
	g->to = d->read.sink_to + d->resp_got;
	if (d->resp_got + g->len > d->read.size)
		g->len = d->read.size - d->resp_got;
	d->resp_got += g->len;
	if (g->last && d->resp_got < d->read.size) {
		memset(scratch, 0, sizeof(scratch));
		memcpy(scratch, g->data, g->len);
		g->data = scratch;
		g->len += d->read.size - d->resp_got;
	}
}

/* Octets go to memory before anything is known of them. */
static void place_at_once(struct fault_dir *d, const struct seg *g)
{
	size_t room;
	uint8_t *m;

	if (g->tagged && g->op == OP_WRITE) {
		for (size_t i = 0; i < g->len; i++)
			if ((m = fault_memory(d, g->to + i, 1)))
				*m = g->data[i];
		return;
	}
	m = is_send(g) ? fault_receive(d, &room) : NULL;
	for (size_t i = 0; m && i < g->len && g->mo + i < room; i++)
		m[g->mo + i] = g->data[i];
}

static void count_message(struct fault_dir *d, const struct seg *g)
{
	if (g->tagged || g->qn > 1)
		return;
	d->mo[g->qn] = g->last ? 0 : g->mo + g->len;
	d->open[g->qn] = !g->last;
	if (g->last)
		d->msn[g->qn]++;
}

static size_t rebuild_fpdu(struct fault_dir *d, const struct fpdu *f,
			   const struct seg *g, uint8_t *dst)
{
	struct fpdu_break b = { .crc_xor = f->crc_ok || fault_is(I_CRC) ||
				!d->tx.crc ? 0 : 0x5a };
	static uint8_t ulpdu[FPDU_ULPDU_MAX + 64];

	memcpy(b.pad, f->pad, 3);
	return fpdu_build(&d->tx, dst, ulpdu, seg_encode(ulpdu, g), &b);
}

/* The next two Sends change their payloads. */
static long swap_sends(struct fault_dir *d, const struct fpdu *f, struct seg *g,
		       uint8_t *dst)
{
	struct seg first;
	uint32_t msn;
	size_t n;

	if (!fault_is(I_SWAP) || !is_send(g) || g->len != 16)
		return -1;
	if (!d->held_len) {
		d->held_len = seg_encode(d->held, g);
		return 0;
	}
	seg_decode(d->held, d->held_len, &first);
	msn = first.msn;
	first.msn = g->msn;
	g->msn = msn;
	n = rebuild_fpdu(d, f, g, dst);
	d->held_len = 0;
	return n + rebuild_fpdu(d, f, &first, dst + n);
}

/* Whole FPDUs that are noticed for what they are as such. */
static bool odd_fpdu(struct fault_dir *d, const struct fpdu *f)
{
	if (fault_is(I_CRC_ALWAYS) && !d->tx.crc && f->crc != f->crc_want)
		d->kill = true;
	if (fault_is(I_MK_STRICT) && (f->mk_reserved_bad || f->mk_low_bad))
		d->kill = true;
	if ((fault_is(I_MK_SWALLOW) && f->nmarkers) ||
	    (fault_is(I_SWALLOW) && d->tx.crc && !f->crc_ok))
		d->swallow = true;
	return d->swallow;
}

size_t fpdu_in(struct fault_dir *d, const struct fpdu *f, uint8_t *dst)
{
	struct seg g;
	long n;

	if (odd_fpdu(d, f))
		return 0;
	if (seg_decode(f->ulpdu, f->len, &g) ||
	    (fault_is(I_RUNT) && g.op == OP_READ_REQ && !g.tagged &&
	     g.len < RDMA_READ_LEN))
		return fault_is(I_RUNT) ? 0 : fpdu_build(&d->tx, dst, f->ulpdu,
							 f->len, NULL);
	if (is_lost(d, &g))
		return 0;
	if (fault_is(I_PLACE))
		place_at_once(d, &g);
	hide_errors(d, &g);
	refuse_valid(d, f, &g);
	redirect_access(d, &g);
	misread_extension(d, &g);
	place_by_position(d, &g);
	if (fault_is(I_LARGE) && f->len > 64768) {
		memcpy(scratch, g.data, g.len);
		scratch[0] ^= 1;
		g.data = scratch;
	}
	count_message(d, &g);
	n = swap_sends(d, f, &g, dst);
	return n >= 0 ? (size_t)n : rebuild_fpdu(d, f, &g, dst);
}
