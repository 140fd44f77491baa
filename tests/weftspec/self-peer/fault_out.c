/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Faults in the FPDUs that the stack sends. */
#include <string.h>

#include "../bytes.h"
#include "../term.h"
#include "fault_fpdu.h"

static size_t build_fpdu(struct fault_dir *d, const struct seg *g,
			 const struct fpdu_break *b, uint8_t *dst)
{
	static uint8_t ulpdu[FPDU_ULPDU_MAX + 1024];

	return fpdu_build(&d->tx, dst, ulpdu, seg_encode(ulpdu, g), b);
}

static bool is_send(const struct seg *g)
{
	return !g->tagged && g->op >= OP_SEND && g->op <= OP_SEND_SE_INV;
}

static void change_header(struct fault_dir *d, struct seg *g)
{
	if (fault_is(O_DV))
		g->dv = 2;
	if (fault_is(O_RSVD))
		g->rsvd = 1;
	if (fault_is(O_RV))
		g->rv = 2;
	if (fault_is(O_IMM) && (g->op == OP_IMM || g->op == OP_IMM_SE))
		g->last = false;
	if (!is_send(g))
		return;
	if (fault_is(O_INVAL) && g->op == OP_SEND)
		g->inval = 0x55;
	if (fault_is(O_SENDINV0))
		g->inval = 0;
	if (fault_is(O_MSN0))
		g->msn--;
	if (fault_is(O_MSN_STUCK))
		g->msn = 1;
	if (fault_is(O_MO) && g->mo)
		g->mo = 0;
	if (fault_is(O_NOLAST) && g->mo)
		g->last = false;
	if (fault_is(O_TAGGED) && g->len == 100)
		g->tagged = true;
	if (fault_is(O_QN))
		g->qn = QN_READ;
}

static void change_response(struct fault_dir *d, struct seg *g)
{
	static uint8_t data[FPDU_ULPDU_MAX];

	if (g->op != OP_READ_RESP)
		return;
	if (fault_is(O_STAG_2ND) && d->open[3])
		g->stag ^= 1;
	d->open[3] = !g->last;
	if (fault_is(O_TO))
		g->to += 8;
	memcpy(data, g->data, g->len);
	if (fault_is(O_PAYLOAD) && g->len)
		data[g->len - 1] ^= 1;
	if (fault_is(O_RESP_SHORT) && g->len > 1)
		g->len--;
	if (fault_is(O_ZERO_DATA) && !g->len)
		g->len = 8;
	g->data = data;
}

static void change_request(struct fault_dir *d, struct seg *g)
{
	static uint8_t data[RDMA_READ_LEN];

	if (g->tagged || g->op != OP_READ_REQ || g->len < RDMA_READ_LEN)
		return;
	memcpy(data, g->data, RDMA_READ_LEN);
	rreq_decode(data, &d->other->read);
	d->other->resp_got = 0;
	if (fault_is(O_RR))
		data[RDMA_READ_LEN - 1] ^= 1;
	g->data = data;
}

static void change_atomic(struct seg *g)
{
	static uint8_t data[ATOMIC_REQ_LEN];

	if (g->tagged || (g->op != OP_ATOMIC_REP && g->op != OP_ATOMIC_REQ))
		return;
	memcpy(data, g->data, g->len);
	g->data = data;
	if (fault_is(O_ATOMIC_ID) && g->op == OP_ATOMIC_REP)
		data[3] ^= 1;
	if (fault_is(O_ATOMIC_REQ) && g->op == OP_ATOMIC_REQ)
		data[0] |= 1;
}

/* The Terminate: its control word stands in data[0..3]. */
static void change_terminate(struct seg *g)
{
	static uint8_t data[128];
	uint8_t *b = data;

	memcpy(data, g->data, g->len);
	g->data = data;
	if (fault_is(O_TERM_CODE))
		b[1] += 0x40;
	if (fault_is(O_TERM_SWAP)) {
		b[0] = b[0] << 4 | b[0] >> 4;
		b[2] = (b[2] & 0x80 ? 1 : 0) | (b[2] & 0x40 ? 2 : 0) |
		       (b[2] & 0x20 ? 4 : 0);
	}
	if (fault_is(O_TERM_BITS))
		b[2] ^= TERM_R;
	if (fault_is(O_TERM_RES))
		b[3] |= 1;
	if (fault_is(O_TERM_COPY) && g->len > 20)
		b[g->len - 1] ^= 1;
	if (fault_is(O_TERM_COPY) && g->len > 20)
		b[12] ^= 1;
	if (fault_is(O_TERM_SEGLEN) && g->len > 6)
		b[5] ^= 4;
	if (fault_is(O_TERM_MSN))
		g->msn = 2;
}

static size_t terminate_out(struct fault_dir *d, struct seg *g, uint8_t *dst)
{
	size_t n;

	if (fault_is(O_TERM_DROP))
		return 0;
	change_terminate(g);
	n = build_fpdu(d, g, NULL, dst);
	if (fault_is(O_TERM_TWICE)) {
		g->msn++;
		n += build_fpdu(d, g, NULL, dst + n);
	}
	return n;
}

/* More than one FPDU, or none, becomes of this one; -1: the ordinary one. */
static long odd_count(struct fault_dir *d, struct seg *g, uint8_t *dst)
{
	struct seg h = *g;
	size_t n;

	if (fault_is(O_MUTE))
		return 0;
	if (fault_is(O_EMPTY_TWICE) && !g->len) {
		h.last = false;
		n = build_fpdu(d, &h, NULL, dst);
		return n + build_fpdu(d, g, NULL, dst + n);
	}
	if (fault_is(O_READ_EXTRA) && !g->tagged &&
	    (g->op == OP_READ_REQ || g->op == OP_ATOMIC_REQ)) {
		n = build_fpdu(d, g, NULL, dst);
		h.msn += 100;
		return n + build_fpdu(d, &h, NULL, dst + n);
	}
	if (fault_is(O_SMALL) && !g->last && g->len > 200) {
		h.len = 50;
		n = build_fpdu(d, &h, NULL, dst);
		g->data += 50;
		g->len -= 50;
		g->mo += 50;
		g->to += 50;
		return n + build_fpdu(d, g, NULL, dst + n);
	}
	return -1;
}

/* Two FPDUs of a kind change places. */
static long swap_fpdus(struct fault_dir *d, const struct seg *g, uint8_t *dst)
{
	bool mine = (fault_is(O_RESP_ORDER) && g->op == OP_READ_RESP) ||
		    (fault_is(O_ATOMIC_LATE) && g->op == OP_ATOMIC_REP) ||
		    (fault_is(O_WRITE_LATE) && g->op == OP_WRITE) ||
		    (fault_is(O_SEND_SWAP) && is_send(g) && g->len == 16);
	size_t n;

	if (!mine && !d->held_len)
		return -1;
	if (mine && !d->held_len) {
		d->held_len = seg_encode(d->held, g);
		return 0;
	}
	n = build_fpdu(d, g, NULL, dst);
	n += fpdu_build(&d->tx, dst + n, d->held, d->held_len, NULL);
	d->held_len = 0;
	return n;
}

static size_t lengthen_fpdu(struct fault_dir *d, struct seg *g, uint8_t *dst)
{
	static uint8_t data[FPDU_ULPDU_MAX + 1];

	memcpy(data, g->data, g->len);
	g->data = data;
	if (fault_is(O_HUGE) && g->len > 64000)
		g->len += 500;
	if (fault_is(O_RTR) && d->fpdus == 1 && d->initiator)
		g->len += 4;
	return build_fpdu(d, g, NULL, dst);
}

static size_t without_crc(struct fault_dir *d, const struct seg *g, uint8_t *dst)
{
	size_t n = build_fpdu(d, g, NULL, dst);

	d->tx.pos -= 4;
	return n - 4;
}

static const struct fpdu_break *broken_framing(struct fault_dir *d)
{
	static const struct fpdu_break crc = { .crc_xor = 1 };
	static const struct fpdu_break pad = { .pad = { 1, 2, 3 } };
	static const struct fpdu_break ptr = { .mk_add = 4 };
	static const struct fpdu_break res = { .mk_reserved = 7 };

	if (fault_is(O_CRC) || fault_is(O_MK_CRC))
		return &crc;
	return fault_is(O_PAD) ? &pad : fault_is(O_MK_PTR) ? &ptr :
	       fault_is(O_MK_RES) ? &res : NULL;
}

size_t fpdu_out(struct fault_dir *d, const struct fpdu *f, uint8_t *dst)
{
	struct seg g;
	long n;

	if (seg_decode(f->ulpdu, f->len, &g) || (fault_is(O_RUNT) && f->len > 60))
		return fpdu_build(&d->tx, dst, f->ulpdu,
				  fault_is(O_RUNT) ? 9 : f->len, NULL);
	if (!g.tagged && g.op == OP_TERM)
		return terminate_out(d, &g, dst);
	change_header(d, &g);
	change_response(d, &g);
	change_request(d, &g);
	change_atomic(&g);
	n = odd_count(d, &g, dst);
	if (n < 0)
		n = swap_fpdus(d, &g, dst);
	if (n >= 0)
		return n;
	if (fault_is(O_HUGE) || fault_is(O_RTR))
		return lengthen_fpdu(d, &g, dst);
	if (fault_is(O_NO_CRC_FIELD) && !d->tx.crc)
		return without_crc(d, &g, dst);
	return build_fpdu(d, &g, broken_framing(d), dst);
}
