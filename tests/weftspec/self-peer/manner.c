/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <string.h>

#include "../bytes.h"
#include "../term.h"
#include "manner.h"
#include "peer.h"

#define CXGB4_PD_MAX 256
#define CXGB4_DEPTH 128 /* of Reads, the most that it takes */
#define CXGB4_STAG 1    /* and TO, of both ends of its RTR */

static enum manner chosen;

bool manner_is(enum manner m)
{
	return chosen == m;
}

static void set_up(enum manner m)
{
	const bool reads = m == MANNER_CXGB4 || m == MANNER_WINDOWS2;

	self_cfg.p2p = m == MANNER_IRDMA || reads;
	self_cfg.rtr = m == MANNER_IRDMA ? WEFT_RTR_WRITE | WEFT_RTR_READ :
		       reads ? WEFT_RTR_READ : WEFT_RTR_ALL;
	self_cfg.rev = m == MANNER_MPA1 ? 1 : 2;
}

int manner_choose(const char *name)
{
	static const char *const names[] = {
		[MANNER_NONE] = "none", [MANNER_IRDMA] = "irdma",
		[MANNER_CXGB4] = "cxgb4", [MANNER_MPA1] = "mpa1",
		[MANNER_CIFS] = "cifs-le", [MANNER_WINDOWS2] = "windows-rev2",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(names[i], name)) {
			chosen = i;
			set_up(i);
			return 0;
		}
	return -1;
}

/* ---- irdma ---- */

/* It reads the words of any Rev 2 frame, and answers with the one RTR that it will await or send. */
static const char *irdma_refuses(struct fault_dir *in, uint8_t *f, size_t len)
{
	struct mpa_enh *e = &in->asked;

	if (f[17] < 1 || f[17] > 2)
		return "no Rev of its own";
	if (f[17] == 1)
		return NULL;
	f[16] |= MPA_S;
	*e = (struct mpa_enh){ 0 };
	if (len >= MPA_HEAD + MPA_ENH)
		mpa_enh_decode(f + MPA_HEAD, e);
	if (!e->a)
		return "Rev 2 without peer-to-peer";
	if (!e->c && !e->d)
		return "no RTR that it has";
	if (in->initiator && e->ird != MPA_NO_NEGOTIATION && e->ord != MPA_NO_NEGOTIATION &&
	    ((!e->ird && e->d) || e->ord > self_cfg.ird))
		return "too few Reads";
	e->b = false;
	e->c = !e->d;
	if (in->initiator) /* the stack shall choose as it does */
		mpa_enh_encode(f + MPA_HEAD, e);
	return NULL;
}

static void irdma_reply(const struct mpa_enh *asked, struct mpa_enh *e)
{
	e->a = true;
	e->b = false;
	e->c = asked->c;
	e->d = asked->d;
	if (asked->ird == MPA_NO_NEGOTIATION || asked->ord == MPA_NO_NEGOTIATION)
		e->ird = e->ord = MPA_NO_NEGOTIATION;
}

/* ---- cxgb4 ---- */

/* It prefers a Write to a Read, but sends Reads alone: its Terminate names the Write. */
static void judge_rtr(struct mpa_enh *e)
{
	if (e->a && e->d && !e->c)
		return;
	e->a = e->c = true;
	e->b = e->d = false;
}

/* It makes room for as many Reads as it can; "any number" is too many. */
static void judge_depths(struct mpa_enh *e)
{
	if (e->ord <= CXGB4_DEPTH && e->ord > self_cfg.ird)
		e->ord = self_cfg.ird;
	if (e->ord == MPA_NO_NEGOTIATION)
		e->ord--;
	if (e->ird == MPA_NO_NEGOTIATION)
		e->ird--;
}

/* A frame without its words is read beyond its end, where zeros are. */
static void add_words(uint8_t *f, size_t *len)
{
	if (*len >= MPA_HEAD + MPA_ENH)
		return;
	memset(f + *len, 0, MPA_HEAD + MPA_ENH - *len);
	*len = MPA_HEAD + MPA_ENH;
	put16(f + 18, MPA_ENH);
}

static const char *cxgb4_refuses(struct fault_dir *in, uint8_t *f, size_t *len, size_t behind)
{
	struct mpa_enh *e = &in->asked;

	if (f[17] > 2)
		return "no Rev of its own";
	if (*len > MPA_HEAD + CXGB4_PD_MAX)
		return "more private data than it takes";
	if (behind)
		return "octets behind the frame";
	if (!f[17])
		f[17] = 1;
	if (f[17] != 2 || !(f[16] & MPA_S))
		return NULL;
	add_words(f, len);
	mpa_enh_decode(f + MPA_HEAD, e);
	if (in->initiator) {
		judge_rtr(e);
		judge_depths(e);
	} else {
		e->ird = e->ird < CXGB4_DEPTH ? e->ird : CXGB4_DEPTH;
		e->ord = e->ord < CXGB4_DEPTH ? e->ord : CXGB4_DEPTH;
	}
	mpa_enh_encode(f + MPA_HEAD, e);
	return NULL;
}

/* Whether it was a Write or a Read that was asked for, it says Read. */
static void cxgb4_reply(const struct mpa_enh *asked, struct mpa_enh *e)
{
	e->a = e->d = asked->a && (asked->c || asked->d);
	e->b = e->c = false;
}

/* ---- SMB Direct ---- */

static uint8_t *put32_le(uint8_t *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		*p++ = (uint8_t)(v >> 8 * i);
	return p;
}

uint8_t *manner_depths(uint8_t *pd)
{
	if (manner_is(MANNER_MPA1))
		return put32(put32(pd, self_cfg.ird), self_cfg.ord);
	if (manner_is(MANNER_CIFS))
		return put32_le(put32_le(pd, self_cfg.ird), self_cfg.ord);
	return pd;
}

/* ---- all ---- */

void manner_speak(const struct fault_dir *in, bool is_reply, uint8_t *f)
{
	struct mpa_enh e;

	if (manner_is(MANNER_CXGB4) && is_reply && !in->rev)
		f[17] = 0;
	if (!manner_is(MANNER_CXGB4) && !manner_is(MANNER_IRDMA))
		return;
	if (!is_reply || !(f[16] & MPA_S) || get16(f + 18) < MPA_ENH)
		return;
	mpa_enh_decode(f + MPA_HEAD, &e);
	if (manner_is(MANNER_IRDMA))
		irdma_reply(&in->asked, &e);
	else
		cxgb4_reply(&in->asked, &e);
	mpa_enh_encode(f + MPA_HEAD, &e);
}

const char *manner_refuses(struct fault_dir *in, uint8_t *f, size_t *len, size_t behind)
{
	if (manner_is(MANNER_IRDMA))
		return irdma_refuses(in, f, *len);
	if (manner_is(MANNER_CXGB4))
		return cxgb4_refuses(in, f, len, behind);
	return f[17] == 1 || !manner_is(MANNER_MPA1) ? NULL : "no Rev of its own";
}

/* ---- the first FPDUs of cxgb4 ---- */

static uint8_t body[FPDU_ULPDU_MAX];

static void cxgb4_out(struct fault_dir *d, struct seg *g)
{
	struct rreq r;

	memcpy(body, g->data, g->len);
	g->data = body;
	if (g->op == OP_TERM && body[0] == 0x20 && body[1] >= 6)
		body[0] = 0x23;
	if (g->op != OP_READ_REQ || g->len != RDMA_READ_LEN || !d->initiator)
		return;
	rreq_decode(body, &d->other->read);
	r = (struct rreq){ .sink_stag = CXGB4_STAG, .sink_to = CXGB4_STAG,
			   .src_stag = CXGB4_STAG, .src_to = CXGB4_STAG };
	rreq_encode(body, &r);
}

/* True: no more FPDUs need be looked at. */
static bool cxgb4_in(struct fault_dir *d, struct seg *g)
{
	if (g->tagged && !g->len && !g->stag) {
		d->kill = true;
		return true;
	}
	if (!d->initiator)
		return true;
	if (!g->tagged || g->op != OP_READ_RESP || g->len)
		return false;
	d->kill = g->stag != CXGB4_STAG || g->to != CXGB4_STAG;
	g->stag = d->read.sink_stag;
	g->to = d->read.sink_to;
	return true;
}

size_t manner_fpdu(struct fault_dir *d, bool out, const struct fpdu *f, uint8_t *dst)
{
	struct fpdu_break b = { .crc_xor = f->crc_ok || !d->tx.crc ? 0 : 0x5a };
	static uint8_t ulpdu[FPDU_ULPDU_MAX + 64];
	struct seg g;

	d->raw = true;
	memcpy(b.pad, f->pad, sizeof(b.pad));
	if (seg_decode(f->ulpdu, f->len, &g))
		return fpdu_build(&d->tx, dst, f->ulpdu, f->len, &b);
	if (out)
		cxgb4_out(d, &g);
	else
		d->raw = cxgb4_in(d, &g);
	return fpdu_build(&d->tx, dst, ulpdu, seg_encode(ulpdu, &g), &b);
}
