/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <stdio.h>
#include <string.h>

#include "bytes.h"
#include "lint.h"

#define MPA_ULPDU_LIMIT 64768 /* RFC 5044 section 3 */

void seg_print(char *out, size_t size, const struct seg *g)
{
	int n;

	if (g->tagged) {
		snprintf(out, size, "%s STag=%08x TO=%#llx len=%zu%s",
			 op_name(g->op), g->stag, (unsigned long long)g->to,
			 g->len, g->last ? "" : " L=0");
		return;
	}
	n = snprintf(out, size, "%s MSN=%u", op_name(g->op), g->msn);
	if (g->op == OP_READ_REQ && g->len >= RDMA_READ_LEN && !g->mo) {
		struct rreq r;

		rreq_decode(g->data, &r);
		n += snprintf(out + n, size - n, " src=%08x:%#llx size=%u",
			      r.src_stag, (unsigned long long)r.src_to, r.size);
	} else {
		n += snprintf(out + n, size - n, " MO=%u len=%zu", g->mo,
			      g->len);
	}
	if (g->inval)
		n += snprintf(out + n, size - n, " inval=%08x", g->inval);
	if (g->qn > 2 || (g->qn != QN_READ && g->op == OP_READ_REQ))
		n += snprintf(out + n, size - n, " QN=%u", g->qn);
	snprintf(out + n, size - n, "%s", g->last ? "" : " L=0");
}

/* Figure 4 of RFC 5040, and RFC 7306 section 4.1. */
static const struct {
	bool tagged;
	uint8_t qn;
} model[] = {
	[OP_WRITE] = { true, 0 }, [OP_READ_REQ] = { false, QN_READ },
	[OP_READ_RESP] = { true, 0 }, [OP_SEND] = { false, QN_SEND },
	[OP_SEND_INV] = { false, QN_SEND }, [OP_SEND_SE] = { false, QN_SEND },
	[OP_SEND_SE_INV] = { false, QN_SEND }, [OP_TERM] = { false, QN_TERM },
	[OP_IMM] = { false, QN_SEND }, [OP_IMM_SE] = { false, QN_SEND },
	[OP_ATOMIC_REQ] = { false, QN_READ },
	[OP_ATOMIC_REP] = { false, QN_ATOMIC },
};

static bool is_inv(uint8_t op)
{
	return op == OP_SEND_INV || op == OP_SEND_SE_INV;
}

static void lint_model(struct ctx *c, const struct seg *g)
{
	bool known = g->op < sizeof(model) / sizeof(model[0]);
	bool t = known && model[g->op].tagged == g->tagged;

	lint(c, "DDP-01", t, "%s with T=%d", op_name(g->op), g->tagged);
	lint(c, "RDM-04", t && (g->tagged || model[g->op].qn == g->qn),
	     "%s with T=%d QN=%u", op_name(g->op), g->tagged, g->qn);
	lint(c, "DDP-04", !g->rsvd, "DDP Rsvd=%x", g->rsvd);
	lint(c, "DDP-06", g->dv == 1, "DV=%u", g->dv);
	lint(c, "RDM-01", g->rv == 1 && !g->rsv, "RV=%u Rsv=%u", g->rv, g->rsv);
	if (!g->tagged && !is_inv(g->op))
		lint(c, "RDM-12", !g->inval, "%s has Invalidate STag %08x",
		     op_name(g->op), g->inval);
}

static void lint_length(struct ctx *c, const struct seg *g, bool active)
{
	if (!g->len)
		lint(c, "DDP-16", g->last && !active,
		     "%s: an empty segment that is not the whole message",
		     op_name(g->op));
}

static void lint_untagged(struct ctx *c, const struct seg *g, struct watch *w)
{
	const char *op = op_name(g->op);

	if (!w->active) {
		lint(c, w->any ? "DDP-11" : "DDP-10",
		     g->msn == (w->any ? w->msn + 1 : 1), "%s QN %u MSN %u after %u",
		     op, g->qn, g->msn, w->any ? w->msn : 0);
		lint(c, "DDP-13", !g->mo, "%s begins at MO %u", op, g->mo);
	} else {
		bool same = g->msn == w->msn && g->inval == w->inval &&
			    g->op == w->op;

		lint(c, "DDP-09", same, "%s MSN %u changed within a message",
		     op, g->msn);
		lint(c, "DDP-02", g->msn == w->msn,
		     "%s MSN %u begins before MSN %u ended", op, g->msn, w->msn);
		lint(c, "DDP-13", g->mo == w->mo, "%s MO %u, octets before: %u",
		     op, g->mo, w->mo);
		lint(c, "DDP-03", g->mo >= w->mo, "%s MO %u behind %u", op,
		     g->mo, w->mo);
	}
	lint_length(c, g, w->active);
	*w = (struct watch){ .any = true, .active = !g->last, .op = g->op,
			     .msn = g->msn, .inval = g->inval,
			     .mo = g->mo + (uint32_t)g->len };
}

static void lint_tagged(struct ctx *c, const struct seg *g, struct watch *w)
{
	if (w->active) {
		lint(c, "DDP-09", g->stag == w->stag,
		     "%s: STag %08x after %08x in one message", op_name(g->op),
		     g->stag, w->stag);
		lint(c, "DDP-14", g->to == w->to, "%s TO %#llx, expected %#llx",
		     op_name(g->op), (unsigned long long)g->to,
		     (unsigned long long)w->to);
		if (g->last)
			lint(c, "DDP-02", true, "L seen");
	}
	lint_length(c, g, w->active);
	*w = (struct watch){ .any = true, .active = !g->last, .op = g->op,
			     .stag = g->stag, .to = g->to + g->len };
}

static void lint_markers(struct stream *s)
{
	const struct fpdu *f = &s->m.f;
	struct ctx *c = s->c;

	if (!s->rx.markers || !f->nmarkers)
		return;
	lint(c, "MPA-70", s->crc ? f->crc_ok : !f->mk_ptr_bad,
	     "no right Marker at the 512-octet place in the FPDU at %u", f->at);
	lint(c, "MPA-71", !f->mk_reserved_bad && !f->mk_low_bad,
	     "Marker Reserved or low FPDUPTR bits set in the FPDU at %u", f->at);
	lint(c, "MPA-72", !f->mk_ptr_bad,
	     "a FPDUPTR in the FPDU at %u does not point at its length", f->at);
	if (f->at % MARKER_EVERY == 0)
		lint(c, "MPA-73", !f->mk_ptr_bad && (!s->crc || f->crc_ok),
		     "Marker between FPDUs at %u: FPDUPTR or CRC wrong", f->at);
	if ((f->at + f->wire - 8) % MARKER_EVERY == 0)
		lint(c, "MPA-74", !s->crc || f->crc_ok,
		     "Marker behind the PAD of the FPDU at %u: CRC wrong", f->at);
}

/*
 * RFC 5044 section 4.5: the EMSS bounds the ULPDU, 128 bounds it from below.
 * An FPDU that has fewer Markers than the formula reckons with, and so fits
 * with more payload, does what the formula is for.  Where the EMSS is too small
 * for 128, section 4.5 frees the sender of the segmentation rules.  Section 3:
 * DDP SHOULD heed that, and MAY post up to 64768 octets.
 */
static void lint_mulpdu(struct stream *s)
{
	const struct fpdu *f = &s->m.f;
	size_t over = 6 + s->emss % 4, max;

	if (s->rx.markers)
		over += 4 * ((s->emss + MARKER_EVERY - 1) / MARKER_EVERY);
	max = s->emss >= over + 128 && !s->c->o->large_fpdus ? s->emss - over : MPA_ULPDU_LIMIT;
	lint(s->c, s->rx.markers ? "MPA-55" : "MPA-54",
	     (f->len <= max || f->wire <= s->emss) &&
	     (f->len >= 128 || s->m.s.last),
	     "ULPDU of %zu octets%s, EMSS %zu makes it at most %zu", f->len,
	     s->m.s.last ? "" : " with more to come", s->emss, max);
}

static void lint_frame_of(struct stream *s)
{
	const struct fpdu *f = &s->m.f;
	struct ctx *c = s->c;
	static const uint8_t zero[3];

	lint(c, "MPA-50", !s->m.runt && f->wire % 4 == 0,
	     "FPDU of %zu octets, ULPDU %zu", f->wire, f->len);
	if (f->npad)
		lint(c, "MPA-51", !memcmp(f->pad, zero, f->npad),
		     "PAD %02x%02x%02x", f->pad[0], f->pad[1], f->pad[2]);
	lint(c, "MPA-53", f->len <= MPA_ULPDU_LIMIT, "ULPDU of %zu", f->len);
	if (s->crc)
		lint(c, "MPA-56", f->crc_ok, "CRC %08x, computed %08x", f->crc,
		     f->crc_want);
	if (s->emss)
		lint_mulpdu(s);
	lint_markers(s);
}

void lint_fpdu(struct stream *s)
{
	const struct seg *g = &s->m.s;

	lint_frame_of(s);
	if (s->m.runt)
		return;
	lint_model(s->c, g);
	if (g->tagged)
		lint_tagged(s->c, g, g->op == OP_WRITE ? &s->write : &s->resp);
	else if (g->qn < 4)
		lint_untagged(s->c, g, &s->untagged[g->qn]);
}

void lint_frame(struct stream *s)
{
	const struct mpa_frame *f = &s->theirs;
	uint8_t res = MPA_RES | (f->rev < 2 ? MPA_S : 0);

	lint(s->c, "MPA-16", !(f->flags & res), "flags %02x in a Rev %u frame",
	     f->flags, f->rev);
	lint(s->c, "MPA-26", f->pd_len <= MPA_PD_MAX, "PD_Length %u", f->pd_len);
	if (f->flags & MPA_S) {
		lint(s->c, "ENH-02", f->rev >= 2, "S=1 with Rev %u", f->rev);
		lint(s->c, "ENH-01", f->pd_len >= MPA_ENH,
		     "S=1 with PD_Length %u", f->pd_len);
	}
}

static void lint_term_copy(struct stream *s)
{
	const struct term *t = &s->term;
	const struct offender *o = &s->off;
	size_t head = o->head_len && o->head[0] & 0x80 ? DDP_TAGGED_LEN :
							 DDP_UNTAGGED_LEN;
	bool ok;

	if (!t->ddp || o->head_len < head)
		return;
	ok = t->ddp_len == head && !memcmp(t->ddp, o->head, head);
	if (t->rdma && o->head_len >= head + RDMA_READ_LEN)
		ok &= !memcmp(t->rdma, o->head + head, RDMA_READ_LEN);
	lint(s->c, "RDM-46", ok, "the copied header is not that of the segment");
	lint(s->c, "RDM-47", t->seglen == o->ulpdu_len,
	     "DDP Segment Length %u, the segment had %zu", t->seglen,
	     o->ulpdu_len);
}

void lint_terminate(struct stream *s)
{
	const struct term *t = &s->term;
	const struct seg *g = &s->m.s;
	struct ctx *c = s->c;

	lint(c, "RDM-42", g->last && g->qn == QN_TERM && g->msn == 1 && !g->mo &&
	     !g->inval, "L=%d QN=%u MSN=%u MO=%u Inval=%08x", g->last, g->qn,
	     g->msn, g->mo, g->inval);
	lint(c, "RDM-43", t->read_as == TERM_STRICT &&
	     term_registered(t->layer, t->etype, t->code),
	     "control word %02x %02x %02x %02x%s", s->term_raw[0],
	     s->term_raw[1], s->term_raw[2], s->term_raw[3],
	     t->read_as == TERM_SIW_BITORDER ? ": bits in reversed order" : "");
	lint(c, "RDM-44", !((s->term_raw[2] & 0x1f) | s->term_raw[3]),
	     "Reserved bits set: %02x %02x", s->term_raw[2], s->term_raw[3]);
	lint(c, "RDM-45", !t->cut && !t->left,
	     "Terminate body of %zu octets does not fit its header bits",
	     s->term_len);
	lint_term_copy(s);
}
